//! Copies between device memory and slots, with their digests.

use nearpm_gpu::{Buffer, Launch};
use nearpm_interface::region::CheckpointElement;

use super::{Checkpoint, Element, data_offset};
use crate::error::Result;
use crate::kernels::library;

/// Blocks and threads of a copy: enough for the link.
const BLOCKS: u32 = 264;
const THREADS: u32 = 512;
/// Elements from so many bytes on are brought to PM by the copy engine, whose writes on the link
/// are longer than those of kernels: 5 % faster, which is more than the launches it takes. Its copy
/// has arrived when the device is waited for.
const BY_COPY_ENGINE: u64 = 16 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    ToPm,
    FromPm,
}

/// What a launch copies (`checkpoint_item` of `gpm.cu`), as the device's memory has it.
#[derive(Default)]
pub(super) struct Items {
    bytes: Vec<u8>,
    buffer: Option<Buffer>,
}

fn items_of<'e>(items: impl Iterator<Item = (&'e Element, &'e CheckpointElement)>) -> Vec<u8> {
    items
        .flat_map(|(element, stored)| [element.address, stored.offset, element.bytes])
        .flat_map(u64::to_le_bytes)
        .collect()
}

/// Bytes of an item.
const ITEM: usize = 24;

/// The number in a slot of an element's first 8 bytes: they are numbered through the slot, so that
/// elements that change places are found.
pub(super) fn first_of(stored: &CheckpointElement) -> u64 {
    stored.offset / 8
}

/// Blocks for `bytes` bytes.
fn blocks_for(bytes: u64) -> u32 {
    (bytes / 16).div_ceil(THREADS.into()).clamp(1, BLOCKS.into()) as u32
}

impl Checkpoint {
    /// Runs the copies of all elements; gives the digest.
    pub(super) fn copy(
        &self,
        elements: &[Element],
        table: &[CheckpointElement],
        slot: u64,
        direction: Direction,
    ) -> Result<u64> {
        self.digest.fill(0)?;
        let slot = slot + data_offset(self.head.threads);
        let by_engine = |element: &Element| direction == Direction::ToPm && element.bytes >= BY_COPY_ENGINE;
        let all = || elements.iter().zip(table);
        for (element, stored) in all().filter(|(element, _)| by_engine(element)) {
            self.region.device().copy(slot + stored.offset, element.address, element.bytes)?;
            self.digest_of(element.address, stored, &self.digest)?;
        }
        let items = items_of(all().filter(|(element, _)| !by_engine(element)));
        if !items.is_empty() {
            let bytes = elements.iter().filter(|element| !by_engine(element)).map(|element| element.bytes).sum();
            let arguments = [
                self.items(&items)?.into(),
                ((items.len() / ITEM) as u32).into(),
                slot.into(),
                u32::from(direction == Direction::ToPm).into(),
                self.digest.address().into(),
            ];
            let launch = Launch::new(blocks_for(bytes), THREADS, arguments);
            self.region.device().launch(library().kernel("checkpoint_copy"), &launch)?;
        }
        Ok(words_of(&self.digest)?[0])
    }

    /// The address of items in the device's memory, where they are as a rule from the checkpoint
    /// before.
    fn items(&self, bytes: &[u8]) -> Result<u64> {
        let mut items = self.items.borrow_mut();
        if items.bytes != bytes {
            let buffer = Buffer::new(self.region.device(), bytes.len() as u64)?;
            buffer.upload(bytes)?;
            *items = Items { bytes: bytes.to_vec(), buffer: Some(buffer) };
        }
        Ok(items.buffer.as_ref().map_or(0, Buffer::address))
    }

    /// Adds the digest of an element's memory at an address to what a buffer has; does not wait.
    pub(super) fn digest_of(&self, from: u64, stored: &CheckpointElement, digest: &Buffer) -> Result<()> {
        let arguments = [from.into(), stored.bytes.into(), first_of(stored).into(), digest.address().into()];
        let launch = Launch::new(blocks_for(stored.bytes), THREADS, arguments);
        Ok(self.region.device().launch(library().kernel("checkpoint_digest"), &launch)?)
    }

    /// Copies an element's pages that are not those whose digests `pages` has, or all, and brings
    /// the digests up to date; does not wait.
    pub(super) fn copy_changed(
        &self,
        from: u64,
        stored: &CheckpointElement,
        slot: u64,
        pages: u64,
        all: bool,
    ) -> Result<()> {
        let to = slot + data_offset(self.head.threads) + stored.offset;
        let arguments = [
            to.into(),
            from.into(),
            stored.bytes.into(),
            first_of(stored).into(),
            pages.into(),
            u32::from(all).into(),
            self.digest.address().into(),
        ];
        let launch = Launch::new(blocks_for(stored.bytes), THREADS, arguments);
        Ok(self.region.device().launch(library().kernel("checkpoint_changed"), &launch)?)
    }
}

/// What a buffer has, in words of 8 bytes, after the work before it.
pub(super) fn words_of(buffer: &Buffer) -> Result<Vec<u64>> {
    Ok(buffer.download()?.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word)).collect())
}
