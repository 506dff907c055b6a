//! Copies between device memory and slots, with their digests.

use nearpm_gpu::{Buffer, Launch};
use nearpm_interface::region::CheckpointElement;

use super::{Checkpoint, Element, data_offset};
use crate::error::Result;
use crate::kernels::library;

/// Blocks and threads of a copy: enough for the link.
const BLOCKS: u32 = 264;
const THREADS: u32 = 512;
/// Elements from so many bytes on are brought to PM by the copy engine, whose writes on the link are longer than those of kernels: 5 % faster. Its
/// copy has arrived when the device is waited for.
const BY_COPY_ENGINE: u64 = 1 << 20;

pub(super) enum Direction {
    ToPm,
    FromPm,
}

/// The number in a slot of an element's first 8 bytes: they are numbered through the slot, so that elements that change places are found.
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
        kernel: &'static str,
        elements: &[Element],
        table: &[CheckpointElement],
        slot: u64,
        direction: Direction,
    ) -> Result<u64> {
        self.digest.fill(0)?;
        for (element, stored) in elements.iter().zip(table) {
            let pm = slot + data_offset(self.head.threads) + stored.offset;
            let (to, from) = match direction {
                Direction::ToPm => (pm, element.address),
                Direction::FromPm => (element.address, pm),
            };
            if matches!(direction, Direction::ToPm) && element.bytes >= BY_COPY_ENGINE {
                self.region.device().copy(to, from, element.bytes)?;
                self.digest_of(from, stored, &self.digest)?;
                continue;
            }
            let (bytes, digest) = (element.bytes.into(), self.digest.address().into());
            let arguments = [to.into(), from.into(), bytes, first_of(stored).into(), digest];
            let launch = Launch::new(blocks_for(element.bytes), THREADS, arguments);
            self.region.device().launch(library().kernel(kernel), &launch)?;
        }
        Ok(words_of(&self.digest)?[0])
    }

    /// Adds the digest of an element's memory at an address to what a buffer has; does not wait.
    pub(super) fn digest_of(&self, from: u64, stored: &CheckpointElement, digest: &Buffer) -> Result<()> {
        let arguments = [from.into(), stored.bytes.into(), first_of(stored).into(), digest.address().into()];
        let launch = Launch::new(blocks_for(stored.bytes), THREADS, arguments);
        Ok(self.region.device().launch(library().kernel("checkpoint_digest"), &launch)?)
    }

    /// Copies an element's pages that are not those whose digests `pages` has, or all, and brings the digests up to date; does not wait.
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
