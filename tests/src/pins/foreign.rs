//! What a card may find in its memory that no tool of ours leaves there: firmware and saves whose
//! seals hold, and which are anything else.
//!
//! The card checks magic, version and checksum of an image, and nothing of what its words say; of a
//! save it checks the same. Whoever writes either is trusted with the memory, but not with the
//! card: whatever it finds, it answers.

use nearpm_firmware::check::OPERANDS;
use nearpm_interface::command::{OPCODES, Opcode};
use nearpm_interface::firmware::{
    Descriptor, IMAGE_FORMAT, IMAGE_LINES, IMAGE_MAGIC, ISA_VERSION, ImageHead, Instruction, Operand, PROGRAM_WORDS,
    Use, descriptor,
};
use nearpm_interface::geometry::{FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, LINE, LINE_U64, MAP_ENTRIES, SAVE_BASE};
use nearpm_interface::save::{
    ARM_LINE, ArmWord, FIRMWARE_WORD_OFFSET, HEAD_LINE, ITEM_COMMAND, ITEM_LINE, ITEM_PARKED, ITEM_STORE, MAPPING_LINE,
    MAX_ITEMS, PROGRESS_LINE, ProgressWord, SAVE_LINES, SAVE_MAGIC, SAVE_VERSION, SaveHead, SavedItem, firmware_word,
};
use nearpm_interface::seal;
use nearpm_interface::status::Status;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::memory::Contents;
use super::traffic::Traffic;

/// One case of so many.
fn rarely(rng: &mut ChaCha8Rng, one_in: u32) -> bool {
    rng.random_range(0..one_in) == 0
}

/// Any number, small ones as often as large ones.
fn any(rng: &mut ChaCha8Rng) -> u64 {
    rng.random::<u64>() >> rng.random_range(0..u64::BITS)
}

/// Any number, or one whose next ones change many of its bits.
fn near_a_carry(rng: &mut ChaCha8Rng) -> u64 {
    if rng.random() {
        any(rng)
    } else {
        (u64::MAX >> rng.random_range(0..u64::BITS)).saturating_sub(rng.random_range(0..40))
    }
}

/// What a head says of lost stores, as count, lowest and highest address: mostly that there are
/// none. The addresses are any words, whatever the count is.
fn lost(rng: &mut ChaCha8Rng) -> (u32, u64, u64) {
    let count = match rng.random_range(0..8) {
        0 | 1 => rng.random(),
        // Where the count ends.
        2 => u32::MAX - rng.random_range(0..2),
        3 => rng.random_range(1..4),
        _ => 0,
    };
    (count, any(rng), any(rng))
}

/// A descriptor of any uses and flags, but for those that map and unmap, without which nobody could
/// use a pool. The length of a command is checked.
fn declaration(rng: &mut ChaCha8Rng, opcode: usize) -> Descriptor {
    let standard = nearpm_firmware::standard();
    let known = standard.descriptor(opcode as u8).unwrap_or_default();
    if [Opcode::Map as usize, Opcode::Unmap as usize].contains(&opcode) && !rarely(rng, 16) {
        return known;
    }
    let word = match rng.random_range(0..4) {
        0 => known.0,
        1 => known.0 ^ 1 << rng.random_range(0..u32::BITS),
        _ => rng.random(),
    };
    let other = Descriptor(word & !(1 << descriptor::MAPS | 1 << descriptor::UNMAPS));
    let sized = OPERANDS.iter().any(|&operand| matches!(other.operand_use(operand), Use::Bytes | Use::Entry));
    let other = if sized { other } else { other.with_use(OPERANDS[rng.random_range(0..3)], Use::Bytes) };
    other.with(descriptor::VALID).with_entry(rng.random())
}

/// A word of a program: mostly one that a unit can carry out.
fn word(rng: &mut ChaCha8Rng) -> u32 {
    let mut operand = || Operand::from_code(rng.random_range(0..3)).expect("one of three");
    let (first, second) = (operand(), operand());
    match rng.random_range(0..8) {
        0 => rng.random(),
        1 => Instruction::End { status: rng.random() }.encode(),
        2..=4 => {
            let (from_lines, to_lines, lines) = (rng.random(), rng.random(), rng.random());
            Instruction::Copy { from: first, from_lines, to: second, to_lines, lines }.encode()
        }
        5 => Instruction::Generate { at: first, object: second, kind: rng.random() }.encode(),
        6 => Instruction::Store { at: first }.encode(),
        _ => Instruction::Wait.encode(),
    }
}

/// Leaves other firmware, and mostly another save, in a memory that has some. A line of either may
/// fail, and one that a store of the save writes.
pub fn leave(contents: &mut Contents, traffic: &mut Traffic, peers: bool, rng: &mut ChaCha8Rng) {
    contents.any_firmware = true;
    if rarely(rng, 3) {
        let items = SAVE_BASE + (ITEM_LINE * LINE) as u64;
        let slots = [0, 1].map(|slot| (FIRMWARE_BASE + slot * FIRMWARE_SLOT_BYTES, IMAGE_LINES));
        let areas = [(SAVE_BASE, 4), (SAVE_BASE, SAVE_LINES), (items, 24), (items, 4), slots[0], slots[1]];
        let (base, lines) = areas[rng.random_range(0..areas.len())];
        contents.bad.push(base + (rng.random_range(0..lines) * LINE) as u64);
    }
    let slots = [0, 1].map(|slot| (slot, image(contents, slot, rng)));
    if !rarely(rng, 4) {
        save(contents, slots[rng.random_range(0..slots.len())], traffic, peers, rng);
    }
}

/// Lets the progress word of a memory count 256 items more, if it has one.
pub fn count_beyond(contents: &mut Contents) {
    let at = line_at(PROGRESS_LINE);
    let mut line = contents.line(at);
    let word = u64::from_le_bytes(line[..8].try_into().expect("eight bytes"));
    let Some(progress) = ProgressWord::decode(word) else { return };
    let counted = ProgressWord { items: progress.items | 0x100, ..progress };
    line[..8].copy_from_slice(&counted.encode().to_le_bytes());
    contents.write(at, &line, u64::MAX);
}

/// Writes a sealed image of any programs to a slot; gives its checksum.
fn image(contents: &mut Contents, slot: u64, rng: &mut ChaCha8Rng) -> u32 {
    let mut declared: Vec<Descriptor> = (0..OPCODES).map(|opcode| declaration(rng, opcode)).collect();
    if rarely(rng, 4) {
        declared[Opcode::Fence as usize] = Descriptor::default();
    }
    let words = (0..PROGRAM_WORDS).map(|_| word(rng)).collect();
    put_image(contents, slot, declared, words, rng)
}

/// Writes a sealed image to a slot, of whose programs none waits for anything: they copy as often
/// as they can. It has no fence.
pub fn leave_copies(contents: &mut Contents, slot: u64, rng: &mut ChaCha8Rng) {
    let mut declared: Vec<Descriptor> = (0..OPCODES).map(|opcode| declaration(rng, opcode)).collect();
    declared[Opcode::Fence as usize] = Descriptor::default();
    let (from, to) = (Operand::Source, Operand::Destination);
    let copy = Instruction::Copy { from, from_lines: 0, to, to_lines: 0, lines: false };
    let mut words = vec![copy.encode(); PROGRAM_WORDS];
    words[PROGRAM_WORDS - 1] = Instruction::End { status: Status::Ok.code() }.encode();
    put_image(contents, slot, declared, words, rng);
}

/// Writes a sealed image to a slot; gives its checksum.
fn put_image(
    contents: &mut Contents,
    slot: u64,
    declared: Vec<Descriptor>,
    mut words: Vec<u32>,
    rng: &mut ChaCha8Rng,
) -> u32 {
    for opcode in [Opcode::Map, Opcode::Unmap] {
        // The length of what no operand uses is not looked at, and units copy it as it is.
        let entry = usize::from(declared[opcode as usize].entry()) % PROGRAM_WORDS;
        words[entry] = Instruction::End { status: rng.random() }.encode();
    }
    let declared = declared.iter().map(|declared| declared.0);
    let body: Vec<u8> = declared.chain(words).flat_map(u32::to_le_bytes).collect();
    let head = ImageHead {
        magic: IMAGE_MAGIC,
        format: IMAGE_FORMAT,
        isa: ISA_VERSION,
        words: rng.random(),
        revision: rng.random(),
        name: rng.random(),
        reserved: [0; 12],
        crc: 0,
    };
    let mut line = head.to_bytes();
    seal::seal(&body, &mut line);
    let base = FIRMWARE_BASE + slot * FIRMWARE_SLOT_BYTES;
    let lines = std::iter::once(&line[..]).chain(body.chunks_exact(LINE));
    for (data, address) in lines.zip((base..).step_by(LINE)) {
        contents.write(address, data.try_into().expect("a line"), u64::MAX);
    }
    ImageHead::from_bytes(&line).crc
}

/// Writes a sealed save of any commands and stores, made by firmware with this checksum, which
/// boots from this slot; with `peers` its commands wait for other cards.
fn save(
    contents: &mut Contents,
    (slot, firmware): (u64, u32),
    traffic: &mut Traffic,
    peers: bool,
    rng: &mut ChaCha8Rng,
) {
    let generation = near_a_carry(rng) & ((1 << 48) - 1);
    let items = match rng.random_range(0..8) {
        0 => 0,
        1 => MAX_ITEMS as u16,
        2 => rng.random(),
        3 | 4 => rng.random_range(0..MAX_ITEMS as u16),
        _ => rng.random_range(0..12),
    };
    // Of one kind, now and then: as many as a save holds are replayed, each from far inside its
    // program.
    let (items, only) = match rng.random_range(0..6) {
        0 => (MAX_ITEMS as u16, Some(ITEM_STORE)),
        1 => (MAX_ITEMS as u16, Some(ITEM_COMMAND)),
        _ => (items, None),
    };
    let mut body: Vec<u8> = (0..MAP_ENTRIES).flat_map(|number| traffic.saved_mapping(number, rng).to_bytes()).collect();
    let mut order = near_a_carry(rng);
    for _ in 0..items.min(MAX_ITEMS as u16) {
        // In any order, some numbers twice.
        order = match rng.random_range(0..8) {
            0 => any(rng),
            1 => order,
            2..=3 => order.wrapping_sub(1),
            _ => order.wrapping_add(1 + any(rng) % 9),
        };
        let kind = only.unwrap_or_else(|| match rng.random_range(0..32) {
            0 => rng.random(),
            1..16 if peers => ITEM_PARKED,
            1..24 => ITEM_COMMAND,
            _ => ITEM_STORE,
        });
        let data = if kind == ITEM_STORE { rng.random() } else { traffic.command(rng, peers).encode() };
        let address = traffic.memory(rng).address;
        // That store is lost in the replay, beside what the head says.
        if kind == ITEM_STORE && rarely(rng, 32) {
            contents.bad.push(address / LINE_U64 * LINE_U64);
        }
        let item = SavedItem {
            order,
            address,
            strobes: rng.random(),
            kind,
            page: rng.random(),
            resume: if rng.random() { 0 } else { rng.random::<u8>() | if only.is_some() { 0x80 } else { 0 } },
            released: rng.random(),
            reserved: [0; 32],
            reserved_tail: [0; 4],
        };
        body.extend(data);
        body.extend(item.to_bytes());
    }
    let (stores_lost, lost_first, lost_last) = lost(rng);
    let firmware_crc = if only.is_none() && rarely(rng, 4) { rng.random() } else { firmware };
    let head = SaveHead {
        items,
        generation: if rarely(rng, 16) { any(rng) } else { generation },
        order: if rng.random() { order } else { near_a_carry(rng) },
        firmware_crc,
        device: rng.random(),
        stores_lost,
        lost_first,
        lost_last,
        ..SaveHead::default()
    };
    put_save(contents, head, &body);
    let arm = if rarely(rng, 16) { ArmWord::Clean(generation) } else { ArmWord::Running(generation) };
    // Without its tag a word names no firmware.
    let in_force = if rarely(rng, 8) { any(rng) >> 8 } else { firmware_word(slot as u8, firmware) };
    contents.write(line_at(ARM_LINE), &words(arm.encode(), in_force), u64::MAX);
    let progress = ProgressWord {
        generation: if rarely(rng, 8) { rng.random() } else { generation as u32 },
        items: if rarely(rng, 8) { rng.random() } else { rng.random_range(0..=items.max(1)) },
        resume: rng.random(),
    };
    let begun = if rng.random() { progress.encode() } else { any(rng) };
    contents.write(line_at(PROGRESS_LINE), &words(begun, 0), u64::MAX);
}

/// Address of a line of the save area.
fn line_at(number: usize) -> u64 {
    SAVE_BASE + (number * LINE) as u64
}

/// A line of two words, of which the second is where that of the firmware lies.
fn words(first: u64, second: u64) -> [u8; LINE] {
    let mut line = [0; LINE];
    line[..8].copy_from_slice(&first.to_le_bytes());
    line[FIRMWARE_WORD_OFFSET as usize..][..8].copy_from_slice(&second.to_le_bytes());
    line
}

/// Writes mappings and items of a save, and its head, sealed.
fn put_save(contents: &mut Contents, head: SaveHead, body: &[u8]) {
    let mut line = SaveHead { magic: SAVE_MAGIC, version: SAVE_VERSION, crc: 0, ..head }.to_bytes();
    seal::seal(body, &mut line);
    for (data, number) in body.chunks_exact(LINE).zip(MAPPING_LINE..) {
        contents.write(line_at(number), data.try_into().expect("a line"), u64::MAX);
    }
    contents.write(line_at(HEAD_LINE), &line, u64::MAX);
}

/// The bytes of the store with this number of such a save.
pub fn store_of(order: u64, generation: u64) -> [u8; LINE] {
    [(order as u8).wrapping_add(generation as u8); LINE]
}

/// Leaves a save without mappings and with as many stores as one holds, to lines from `base` on,
/// for the firmware that is in force.
pub fn leave_stores(contents: &mut Contents, base: u64, generation: u64) {
    let arm = contents.line(line_at(ARM_LINE));
    let in_force = &arm[FIRMWARE_WORD_OFFSET as usize..][..8];
    let in_force = u64::from_le_bytes(in_force.try_into().expect("eight bytes"));
    let items = (1..=MAX_ITEMS as u64).flat_map(|order| {
        let address = base + (order - 1) * LINE_U64;
        let item = SavedItem { order, address, strobes: u64::MAX, kind: ITEM_STORE, ..SavedItem::default() };
        [store_of(order, generation), item.to_bytes()].concat()
    });
    let body: Vec<u8> = std::iter::repeat_n(0, MAP_ENTRIES * LINE).chain(items).collect();
    let head = SaveHead {
        items: MAX_ITEMS as u16,
        generation,
        order: MAX_ITEMS as u64,
        firmware_crc: in_force as u32,
        ..SaveHead::default()
    };
    put_save(contents, head, &body);
    contents.write(line_at(ARM_LINE), &words(ArmWord::Running(generation).encode(), in_force), u64::MAX);
    contents.write(line_at(PROGRESS_LINE), &words(0, 0), u64::MAX);
}
