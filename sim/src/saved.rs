//! What a power cut left in the card's save area, read from the medium as a card reads it at
//! power-up.

use nearpm_interface::geometry::{LINE, SAVE_BASE};
use nearpm_interface::save::{
    ARM_LINE, ArmWord, HEAD_LINE, ITEM_LINE, ITEM_STORE, LINES_PER_ITEM, MAPPING_LINE, MAX_ITEMS, PROGRESS_LINE,
    ProgressWord, SAVE_MAGIC, SaveHead, SavedItem,
};
use nearpm_interface::seal;

use crate::core::Medium;

/// The save area of a card without power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Generation that is armed; 0 where none is.
    pub generation: u64,
    /// Its image, if there is a whole one.
    pub image: Option<Image>,
}

/// A whole image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Commands that were accepted and had not retired.
    pub commands: usize,
    /// Host stores that were accepted and not durable.
    pub stores: usize,
    /// Items that a replay has finished.
    pub replayed: usize,
}

impl Image {
    /// Commands and stores.
    pub fn items(&self) -> usize {
        self.commands + self.stores
    }
}

impl Saved {
    /// Whether a card that powers up on it has to report a loss: a generation was running, and
    /// there is no whole image of it.
    pub fn is_loss(&self) -> bool {
        self.generation > 0 && self.image.is_none()
    }

    /// Reads the save area.
    pub fn read(medium: &Medium) -> Saved {
        let lines = |first: usize, count: usize| &medium.bytes[SAVE_BASE as usize + first * LINE..][..count * LINE];
        let word = |line| u64::from_le_bytes(lines(line, 1)[..8].try_into().expect("eight bytes"));
        let Some(ArmWord::Running(generation)) = ArmWord::decode(word(ARM_LINE)) else { return Saved::default() };
        let raw: &[u8; LINE] = lines(HEAD_LINE, 1).try_into().expect("a line");
        let head = SaveHead::from_bytes(raw);
        let items = usize::from(head.items);
        let ours = head.magic == SAVE_MAGIC && head.generation == generation && items <= MAX_ITEMS;
        if !ours || !seal::is_sealed(lines(MAPPING_LINE, ITEM_LINE - MAPPING_LINE + LINES_PER_ITEM * items), raw) {
            return Saved { generation, image: None };
        }
        let kinds = (0..items).map(|item| {
            let second = lines(ITEM_LINE + LINES_PER_ITEM * item + 1, 1);
            SavedItem::from_bytes(second.try_into().expect("a line")).kind
        });
        let commands = kinds.filter(|kind| *kind != ITEM_STORE).count();
        let progress = ProgressWord::decode(word(PROGRESS_LINE)).filter(|p| p.generation == generation as u32);
        let replayed = progress.map_or(0, |p| usize::from(p.items));
        Saved { generation, image: Some(Image { commands, stores: items - commands, replayed }) }
    }
}
