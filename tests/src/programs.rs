//! Firmware other than the standard one: its programs at other places, and random programs that the
//! checker takes.

use nearpm_firmware::check::{self, OPERANDS};
use nearpm_firmware::{Image, standard};
use nearpm_interface::command::{OPCODES, Opcode};
use nearpm_interface::firmware::{Descriptor, Instruction, Operand, PROGRAM_WORDS, Use, descriptor};
use nearpm_interface::media::EntryKind;
use nearpm_interface::status::Status;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, RngExt};

/// A program with its opcode and what it declares.
type Program = (u8, Descriptor, Vec<Instruction>);

/// The programs that ship with the card, at other places of the program memory.
pub fn standard_elsewhere(rng: &mut impl Rng) -> Image {
    let standard = standard();
    laid_out(rng, programs_of(&standard, |_| true))
}

/// Whether an opcode is one of the two that map and unmap pools, which random firmware leaves as
/// they are.
pub fn maps(opcode: u8) -> bool {
    [Opcode::Map as u8, Opcode::Unmap as u8].contains(&opcode)
}

/// Random programs, and the two that map and unmap: without them nobody could use a pool.
pub fn random(rng: &mut impl Rng) -> Image {
    let mut programs = programs_of(&standard(), maps);
    let most = rng.random_range(PROGRAM_WORDS / 4..PROGRAM_WORDS);
    let mut words: usize = 1 + programs.iter().map(|(_, _, code)| code.len()).sum::<usize>();
    for opcode in (0..OPCODES as u8).filter(|opcode| !maps(*opcode)) {
        let (head, code) = program(rng);
        if words + code.len() <= most {
            words += code.len();
            programs.push((opcode, head, code));
        }
    }
    programs.shuffle(rng);
    laid_out(rng, programs)
}

fn programs_of(image: &Image, wanted: impl Fn(u8) -> bool) -> Vec<Program> {
    let program = |opcode| Some((opcode, image.descriptor(opcode)?, image.program(opcode)?));
    (0..OPCODES as u8).filter(|opcode| wanted(*opcode)).filter_map(program).collect()
}

/// An image of these programs in their order, with random gaps between them.
///
/// # Panics
/// If they do not fit, or are not taken as firmware.
fn laid_out(rng: &mut impl Rng, programs: Vec<Program>) -> Image {
    let mut words = vec![Instruction::End { status: Status::FirmwareFault.code() }.encode(); PROGRAM_WORDS];
    let mut descriptors = [Descriptor::default(); OPCODES];
    let mut at = 1;
    let mut left: usize = programs.iter().map(|(_, _, code)| code.len()).sum();
    for (opcode, head, code) in programs {
        let narrower = rng.random_range(0..4);
        at += rng.random_range(0..=(PROGRAM_WORDS - at - left) >> narrower);
        for (to, instruction) in words[at..].iter_mut().zip(&code) {
            *to = instruction.encode();
        }
        descriptors[usize::from(opcode)] = head.with_entry(at as u8);
        at += code.len();
        left -= code.len();
    }
    let name = format!("laid-out-{}", rng.random_range(0..1000));
    Image::new(&name, rng.random(), descriptors, words)
        .unwrap_or_else(|error| panic!("the programs are sound: {error}"))
}

/// A random program that the checker takes.
fn program(rng: &mut impl Rng) -> (Descriptor, Vec<Instruction>) {
    loop {
        let head = declaration(rng);
        let code = code(rng, head);
        if check::program(head, &code).is_ok() {
            return (head, code);
        }
    }
}

/// A random declaration; many are of no use.
fn declaration(rng: &mut impl Rng) -> Descriptor {
    let mut head = Descriptor::default().with(descriptor::VALID);
    let mut set = |condition: bool, bit| {
        if condition {
            head = head.with(bit);
        }
    };
    let mut uses = |all: &[Use]| *all.choose(rng).expect("some");
    let how = [
        uses(&[Use::None, Use::Bytes, Use::Bytes]),
        uses(&[Use::None, Use::Bytes, Use::Bytes, Use::Entry, Use::Word]),
        uses(&[Use::None, Use::None, Use::Entry, Use::Word]),
    ];
    let (logs, stores) = (how.contains(&Use::Entry), how.contains(&Use::Word));
    set(logs, descriptor::LOGS);
    set(logs && how[1] == Use::Bytes && rng.random(), descriptor::LOGS_DESTINATION);
    set(how[..2] == [Use::Bytes; 2], descriptor::CONGRUENT);
    set(stores || rng.random_range(0..4) == 0, descriptor::ORDERED);
    set(stores && rng.random(), descriptor::COMMITS);
    set(!logs && rng.random_range(0..4) == 0, descriptor::SYNCHRONISES);
    set(rng.random_range(0..8) == 0, descriptor::PRIVILEGED);
    for (operand, how) in OPERANDS.into_iter().zip(how) {
        let in_ring = how == Use::Entry || how != Use::None && rng.random_range(0..4) == 0;
        set(in_ring, descriptor::IN_RING + operand as u32);
    }
    OPERANDS.into_iter().zip(how).fold(head, |head, (operand, how)| head.with_use(operand, how))
}

/// What the declaration is for, in some order, some of it twice, with waits between.
fn code(rng: &mut impl Rng, head: Descriptor) -> Vec<Instruction> {
    let mut parts: Vec<Vec<Instruction>> = Vec::new();
    for operand in OPERANDS {
        match head.operand_use(operand) {
            Use::Entry => {
                let object = head.logged();
                let kind = *[EntryKind::Undo, EntryKind::Redo, EntryKind::Checkpoint].choose(rng).expect("three kinds");
                parts.push(vec![
                    Instruction::Copy { from: object, from_lines: 0, to: operand, to_lines: 1, lines: true },
                    Instruction::Generate { at: operand, object, kind: kind as u8 },
                ]);
            }
            Use::Word => parts.push(vec![Instruction::Store { at: operand }]),
            Use::Bytes if operand == Operand::Destination && head.flag(descriptor::CONGRUENT) => {
                let (from, to) = (Operand::Source, Operand::Destination);
                parts.push(vec![Instruction::Copy { from, from_lines: 0, to, to_lines: 0, lines: false }]);
            }
            Use::Bytes | Use::None => {}
        }
    }
    if rng.random_range(0..4) == 0 {
        parts.extend(parts.choose(rng).cloned());
    }
    parts.shuffle(rng);
    let mut code = Vec::new();
    for part in parts {
        if rng.random_range(0..3) == 0 {
            code.push(Instruction::Wait);
        }
        code.extend(part);
    }
    if rng.random_range(0..6) == 0 {
        code.push(Instruction::Wait);
    }
    // A log that fails holds the stores that it covers for good: other tests do that.
    let failures = [Status::Ok, Status::Ok, Status::Ok, Status::MemoryError, Status::FirmwareFault];
    let status = if head.flag(descriptor::LOGS) { Status::Ok } else { *failures.choose(rng).expect("some") };
    code.push(Instruction::End { status: status.code() });
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// What random programs have to bring: everything that the checker lets a program do.
    #[test]
    fn random_programs_do_all_that_programs_may() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (mut programs, mut late) = (0, 0);
        let mut met = [0; 7];
        for _ in 0..200 {
            let image = random(&mut rng);
            for (opcode, head, code) in programs_of(&image, |_| true) {
                programs += 1;
                late += usize::from(head.entry() >= 64);
                let ends = |status: Status| code.last() == Some(&Instruction::End { status: status.code() });
                let is = [
                    head.flag(descriptor::LOGS_DESTINATION),
                    head.flag(descriptor::COMMITS),
                    head.operand_use(Operand::Auxiliary) == Use::Entry,
                    code.contains(&Instruction::Wait),
                    ends(Status::FirmwareFault),
                    OPERANDS.into_iter().filter(|o| head.operand_use(*o) == Use::Entry).count() == 2,
                    code.iter().filter(|i| matches!(i, Instruction::Copy { .. })).count() > 2,
                ];
                met.iter_mut().zip(is).for_each(|(met, is)| *met += usize::from(is));
                assert!(image.descriptor(opcode).is_some());
            }
        }
        assert!(met.iter().all(|met| met * 50 > programs), "{met:?} of {programs}");
        assert!(late * 4 > programs, "{late} of {programs} lie in the upper half of the memory");
    }
}
