//! What a card may find at power-up that a short run never leaves: the numbers of a long life.

use nearpm_interface::geometry::{LINE_U64, SAVE_BASE};
use nearpm_interface::save::{
    ARM_LINE, ArmWord, HEAD_LINE, ITEM_LINE, LINES_PER_ITEM, MAPPING_LINE, MAX_ITEMS, PROGRESS_LINE, ProgressWord,
    SaveHead, SavedItem,
};
use nearpm_interface::seal;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::memory::Contents;

fn line(number: usize) -> u64 {
    SAVE_BASE + number as u64 * LINE_U64
}

/// Moves the order numbers of a whole save by one number, and gives it another generation: what a card leaves that has served for years.
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
    let years = rng.random_range(0..u64::MAX - saved.order - (1 << 32)) >> rng.random_range(0..64);
    saved.order += years;
    saved.generation = rng.random_range(1..(1 << 48) - 1000) >> rng.random_range(0..48) | 1;
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
