//! What a card may find at power-up that a short run never leaves: the numbers of a long life.

use nearpm_firmware::Image;
use nearpm_interface::command::Command;
use nearpm_interface::firmware::{IMAGE_LINES, Instruction};
use nearpm_interface::geometry::{FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, LINE_U64, SAVE_BASE};
use nearpm_interface::save::{
    ARM_LINE, ArmWord, HEAD_LINE, ITEM_COMMAND, ITEM_LINE, LINES_PER_ITEM, MAPPING_LINE, MAX_ITEMS, PROGRESS_LINE,
    ProgressWord, SaveHead, SavedItem,
};
use nearpm_interface::seal;
use nearpm_interface::status::Status;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::memory::Contents;

fn line(number: usize) -> u64 {
    SAVE_BASE + number as u64 * LINE_U64
}

/// Whether the save holds a command whose program ends with a failure of its own, as it then does
/// in the replay, which is a loss.
pub fn fails_in_replay(contents: &Contents) -> bool {
    let saved = SaveHead::from_bytes(&contents.line(line(HEAD_LINE)));
    let image = (0..2).find_map(|slot| {
        let lines = (FIRMWARE_BASE + slot * FIRMWARE_SLOT_BYTES..).step_by(LINE_U64 as usize);
        let bytes: Vec<u8> = lines.take(IMAGE_LINES).flat_map(|line| contents.line(line)).collect();
        Image::parse(&bytes).ok().filter(|image| image.crc() == saved.firmware_crc)
    });
    let Some(image) = image else { return false };
    let items = (ITEM_LINE..).step_by(LINES_PER_ITEM).take(MAX_ITEMS.min(saved.items.into()));
    items.filter(|at| SavedItem::from_bytes(&contents.line(line(at + 1))).kind == ITEM_COMMAND).any(|at| {
        let opcode = Command::from_bytes(&contents.line(line(at))).opcode;
        let end = image.program(opcode).and_then(|code| code.last().copied());
        end.is_some_and(|end| end != Instruction::End { status: Status::Ok.code() })
    })
}

/// Moves the order numbers of a whole save by one number, and gives it another generation: what a
/// card leaves that has served for years.
pub fn age(contents: &mut Contents, rng: &mut ChaCha8Rng) {
    let arm = contents.line(line(ARM_LINE));
    let word = u64::from_le_bytes(arm[..8].try_into().expect("eight bytes"));
    let head = contents.line(line(HEAD_LINE));
    let mut saved = SaveHead::from_bytes(&head);
    let items = ITEM_LINE..ITEM_LINE + LINES_PER_ITEM * usize::from(saved.items);
    let body = |contents: &Contents| -> Vec<u8> {
        (MAPPING_LINE..items.end).flat_map(|number| contents.line(line(number))).collect()
    };
    let running = ArmWord::decode(word) == Some(ArmWord::Running(saved.generation));
    let progress = contents.line(line(PROGRESS_LINE));
    let progress = ProgressWord::decode(u64::from_le_bytes(progress[..8].try_into().expect("eight bytes")));
    // A replay that has begun goes on where it was.
    let begun = progress.is_some_and(|progress| progress.generation == saved.generation as u32);
    if begun || !running || usize::from(saved.items) > MAX_ITEMS || !seal::is_sealed(&body(contents), &head) {
        return;
    }
    // In every other case the next ones carry, mostly into the highest bits.
    let order = match (u64::MAX >> rng.random_range(1..6)).checked_sub(rng.random_range(0..60)) {
        Some(order) if rng.random() && order >= saved.order => order,
        _ => saved.order + (rng.random_range(0..u64::MAX - saved.order - (1 << 32)) >> rng.random_range(0..64)),
    };
    let years = order - saved.order;
    saved.order = order;
    saved.generation = match rng.random() {
        true => rng.random_range(1..(1 << 48) - 1000) >> rng.random_range(0..48) | 1,
        false => (1 << rng.random_range(20..48)) - rng.random_range(1..3),
    };
    for number in items.clone().skip(1).step_by(LINES_PER_ITEM) {
        let item = SavedItem::from_bytes(&contents.line(line(number)));
        let bytes = SavedItem { order: item.order + years, ..item }.to_bytes();
        contents.write(line(number), &bytes, u64::MAX);
    }
    let mut sealed = SaveHead { crc: 0, ..saved }.to_bytes();
    seal::seal(&body(contents), &mut sealed);
    contents.write(line(HEAD_LINE), &sealed, u64::MAX);
    let word = ArmWord::Running(saved.generation).encode().to_le_bytes();
    contents.write(line(ARM_LINE), &std::array::from_fn(|at| if at < 8 { word[at] } else { arm[at] }), u64::MAX);
}
