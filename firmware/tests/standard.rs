//! The programs that ship with the card are exactly these, whatever their text looks like.

use nearpm_firmware::{Image, Source, assemble, disassemble, standard};
use nearpm_interface::command::Opcode;
use nearpm_interface::firmware::Operand::{Auxiliary, Destination, Source as From};
use nearpm_interface::firmware::{Descriptor, Instruction, Use, descriptor as d};
use nearpm_interface::geometry::FIRMWARE_SLOT_BYTES;
use nearpm_interface::media::EntryKind;

const END: Instruction = Instruction::End { status: 0 };

fn data(from: nearpm_interface::firmware::Operand, to: nearpm_interface::firmware::Operand) -> Instruction {
    Instruction::Copy { from, from_lines: 0, to, to_lines: 1, lines: true }
}

fn exact() -> Instruction {
    Instruction::Copy { from: From, from_lines: 0, to: Destination, to_lines: 0, lines: false }
}

fn head(
    at: nearpm_interface::firmware::Operand,
    object: nearpm_interface::firmware::Operand,
    kind: EntryKind,
) -> Instruction {
    Instruction::Generate { at, object, kind: kind as u8 }
}

fn flags(bits: &[u32]) -> Descriptor {
    bits.iter().fold(Descriptor::default().with(d::VALID), |head, &bit| head.with(bit))
}

#[test]
fn every_opcode_has_the_program_that_the_hardware_is_built_to() {
    let source_ring = d::IN_RING;
    let destination_ring = d::IN_RING + 1;
    let auxiliary_ring = d::IN_RING + 2;
    let (bytes, entry, word) = (Use::Bytes, Use::Entry, Use::Word);
    let table: Vec<(Opcode, Descriptor, Vec<Instruction>)> = vec![
        (Opcode::Fence, flags(&[d::ORDERED]), vec![END]),
        (
            Opcode::UndoLog,
            flags(&[d::LOGS, destination_ring]).with_use(From, bytes).with_use(Destination, entry),
            vec![data(From, Destination), head(Destination, From, EntryKind::Undo), END],
        ),
        (
            Opcode::Apply,
            flags(&[source_ring, d::CONGRUENT, d::SYNCHRONISES]).with_use(From, bytes).with_use(Destination, bytes),
            vec![exact(), END],
        ),
        (
            Opcode::UndoRedo,
            flags(&[source_ring, auxiliary_ring, d::CONGRUENT, d::LOGS, d::LOGS_DESTINATION])
                .with_use(From, bytes)
                .with_use(Destination, bytes)
                .with_use(Auxiliary, entry),
            vec![
                data(Destination, Auxiliary),
                head(Auxiliary, Destination, EntryKind::Undo),
                Instruction::Wait,
                exact(),
                END,
            ],
        ),
        (
            Opcode::Commit,
            flags(&[destination_ring, d::ORDERED, d::SYNCHRONISES, d::COMMITS]).with_use(Destination, word),
            vec![Instruction::Store { at: Destination }, END],
        ),
        (
            Opcode::Checkpoint,
            flags(&[d::LOGS, destination_ring]).with_use(From, bytes).with_use(Destination, entry),
            vec![data(From, Destination), head(Destination, From, EntryKind::Checkpoint), END],
        ),
        (
            Opcode::ShadowCopy,
            flags(&[d::CONGRUENT]).with_use(From, bytes).with_use(Destination, bytes),
            vec![exact(), END],
        ),
        (
            Opcode::Switch,
            flags(&[d::ORDERED, d::SYNCHRONISES]).with_use(Destination, word),
            vec![Instruction::Store { at: Destination }, END],
        ),
        (
            Opcode::Recover,
            flags(&[source_ring, d::CONGRUENT, d::ORDERED]).with_use(From, bytes).with_use(Destination, bytes),
            vec![exact(), END],
        ),
        (
            Opcode::MirrorLog,
            flags(&[d::LOGS, destination_ring, auxiliary_ring])
                .with_use(From, bytes)
                .with_use(Destination, entry)
                .with_use(Auxiliary, entry),
            vec![
                data(From, Destination),
                head(Destination, From, EntryKind::Undo),
                data(From, Auxiliary),
                head(Auxiliary, From, EntryKind::Undo),
                END,
            ],
        ),
        (Opcode::Map, flags(&[d::PRIVILEGED, d::MAPS]), vec![END]),
        (Opcode::Unmap, flags(&[d::PRIVILEGED, d::ORDERED, d::UNMAPS]), vec![END]),
    ];
    let image = standard();
    assert_eq!(table.len(), Opcode::ALL.len(), "the table has every opcode");
    for (opcode, head, code) in table {
        let found = image.descriptor(opcode as u8).unwrap_or_else(|| panic!("{opcode:?} has a program"));
        assert_eq!(found.with_entry(0), head, "descriptor of {opcode:?}");
        assert_eq!(image.program(opcode as u8).unwrap(), code, "program of {opcode:?}");
    }
    for opcode in (0..=u8::MAX).filter(|&o| Opcode::from_code(o).is_none()) {
        assert_eq!(image.descriptor(opcode), None);
    }
}

#[test]
fn the_image_parses_to_itself_and_fits_a_slot() {
    let image = standard();
    assert!(image.bytes().len() as u64 <= FIRMWARE_SLOT_BYTES);
    let parsed = Image::parse(image.bytes()).unwrap();
    assert_eq!(parsed, image);
    assert_eq!((parsed.name(), parsed.revision()), ("nearpm-standard", 2));
}

#[test]
fn the_disassembly_assembles_to_the_same_bytes() {
    let image = standard();
    let text = disassemble(&image);
    let again = assemble(&[Source { name: "disassembly", text: &text }]).unwrap();
    assert_eq!(again.bytes(), image.bytes(), "{text}");
    assert_eq!(disassemble(&again), text);
}
