//! Incremental checkpoints: only pages that changed go over the link.
//!
//! For each slot the device's memory has the digests of the pages that the slot holds. A page whose
//! digest is another one now is copied; of two different pages one in 2^64 has the same digest.
//! What a slot holds is not known after it was opened, or filled in another way: then all is
//! copied.

use nearpm_gpu::Buffer;
use nearpm_interface::region::CHECKPOINT_SLOTS;

use super::copy::words_of;
use super::{Checkpoint, Element, Taken, bytes_of, layout};
use crate::error::Result;

/// Bytes of a page: `PAGE` of `gpm.cu`.
const PAGE: u64 = 4096;

/// What the slots of a group hold.
pub(super) struct Pages {
    /// Of each slot, a digest a page.
    digests: [Buffer; CHECKPOINT_SLOTS as usize],
    /// Whether they are what the slot holds.
    known: [bool; CHECKPOINT_SLOTS as usize],
}

fn pages_of(element: &Element) -> u64 {
    element.bytes.div_ceil(PAGE)
}

impl Checkpoint {
    /// What a slot holds is not known from now on.
    pub(super) fn forget_pages(&self, group: u32, slot: u64) {
        if let Some(pages) = &mut self.pages.borrow_mut()[group as usize] {
            pages.known[slot as usize] = false;
        }
    }

    /// Takes a checkpoint of a group of which only the pages of 4 KiB are copied that differ from
    /// what the slot holds: those that changed since the checkpoint before the last. It is durable
    /// when this returns; until then the one before it is.
    ///
    /// # Errors
    /// As for [`Checkpoint::checkpoint`].
    pub fn checkpoint_changed(&self, group: u32) -> Result<Taken> {
        let elements = self.elements(group)?;
        let (slot, sequence) = self.next(group)?;
        let (digests, known) = self.take_pages(group, slot, &elements)?;
        self.blank(group, slot)?;
        let (table, place) = (layout(&elements), self.region.address(self.place(group, slot)));
        self.digest.fill(0)?;
        let mut at = digests;
        for (element, stored) in elements.iter().zip(&table) {
            self.copy_changed(element.address, stored, place, at, !known)?;
            at += 8 * pages_of(element);
        }
        let counted = words_of(&self.digest)?;
        self.seal(group, slot, sequence, counted[0], &table)?;
        if let Some(pages) = &mut self.pages.borrow_mut()[group as usize] {
            pages.known[slot as usize] = true;
        }
        Ok(Taken { sequence, bytes: bytes_of(&elements), moved: counted[1] })
    }

    /// Where the digests of a slot's pages are, and whether they are what it holds; from now on
    /// they are not, until that is said.
    fn take_pages(&self, group: u32, slot: u64, elements: &[Element]) -> Result<(u64, bool)> {
        let mut all = self.pages.borrow_mut();
        let mine = &mut all[group as usize];
        if mine.is_none() {
            let count: u64 = elements.iter().map(pages_of).sum();
            let digests = || Buffer::new(self.region.device(), 8 * count);
            *mine = Some(Pages { digests: [digests()?, digests()?], known: [false; CHECKPOINT_SLOTS as usize] });
        }
        let pages = mine.as_mut().expect("it was just made");
        let known = std::mem::replace(&mut pages.known[slot as usize], false);
        Ok((pages.digests[slot as usize].address(), known))
    }
}
