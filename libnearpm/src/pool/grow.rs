//! Pools that become larger, or shorter again.
//!
//! What a pool grows by has tables of its own ([`nearpm_interface::media::first_zone`]). First its
//! file gets room, then new tables are blank and durable, then one word says where the pool ends.
//! Whatever is interrupted before that leaves the pool as it was, in a file that may be longer than
//! it is.

use nearpm_interface::geometry::LINE;
use nearpm_interface::media::{CHUNK_BYTES, POOL_GROWN, POOL_NEXT_HEAD, PoolHead, SEALED_VERSION, SPAN_VERSION};

use super::format;
use crate::error::{Error, Problem};
use crate::heap::HeapLayout;
use crate::memory::Medium;

/// What a pool on a card says to whoever wants it larger.
pub(crate) const ON_CARD: &str = "a pool on a card has the bytes that the card's table of pools gives it: copy it to a larger one \
                                  (nearpm pool copy --size)";

/// Refuses pools that have no room for zones.
pub(crate) fn check(head: &PoolHead) -> Result<(), Problem> {
    if matches!(head.version, SEALED_VERSION | SPAN_VERSION) && head.spare == 0 {
        return Ok(());
    }
    let what = "only pools that DirectPool or pmemobj_create made grow, not those of formats 1 and 2: copy it to a larger one \
                (nearpm pool copy --size)";
    Err(Problem::BadOption { what })
}

/// Bytes that a pool has now.
pub(crate) fn bytes(head: &PoolHead) -> u64 {
    if head.grown() == 0 { head.bytes } else { head.grown() }
}

/// The head of a pool that grows to so many bytes, or somewhat fewer: chunks are whole.
///
/// # Errors
/// [`Problem::TooSmall`] where that is no growth.
pub(crate) fn plan(head: &PoolHead, to: u64) -> Result<PoolHead, Problem> {
    check(head)?;
    format::check_bytes(to)?;
    let layout = HeapLayout::of(head);
    if head.grown() != 0 && to < head.grown() + CHUNK_BYTES {
        return Ok(*head);
    }
    let Some(grown) = layout.grown_to(to) else {
        return Err(Problem::TooSmall { bytes: to, minimum: layout.least_growth() });
    };
    Ok(head.with_grown(grown.range().end))
}

/// Makes a pool larger on a medium that has room for it: `old` becomes `new`.
pub(crate) fn write(medium: &Medium, old: &PoolHead, new: &PoolHead) -> Result<PoolHead, Error> {
    let head = with_version(medium, old)?;
    let (former, layout) = (HeapLayout::of(old), HeapLayout::of(new));
    for zone in layout.zones_since(&former) {
        medium.put_zeros(layout.chunk(zone.chunks.start), u64::from(zone.tables) * CHUNK_BYTES);
        medium.put_word(layout.word(zone.chunks.start), layout.tables_word(&zone));
    }
    medium.drain()?;
    end_at(medium, head.with_grown(new.grown()))
}

/// Says where a pool ends.
pub(crate) fn end_at(medium: &Medium, head: PoolHead) -> Result<PoolHead, Error> {
    medium.put_word(POOL_GROWN, format::grown_word(&head));
    medium.drain()?;
    Ok(head)
}

/// Gives a pool of an earlier version the one whose pools grow. Its line is written once beside its
/// place before it is written there, where a cut may tear it.
fn with_version(medium: &Medium, head: &PoolHead) -> Result<PoolHead, Error> {
    if head.version == SPAN_VERSION {
        return Ok(*head);
    }
    let next = PoolHead { version: SPAN_VERSION, ..*head };
    // Nobody has looked at it so far.
    medium.put_word(POOL_GROWN, 0);
    medium.put(POOL_NEXT_HEAD, &format::line_of(&next));
    medium.drain()?;
    format::put_head(medium, next)?;
    medium.put_zeros(POOL_NEXT_HEAD, LINE as u64);
    medium.drain()?;
    Ok(next)
}

/// Finishes what a cut has interrupted while a head was written. Of a pool that can be read.
pub(crate) fn settle_head(medium: &Medium, head: &PoolHead) -> Result<(), Error> {
    let mut line = [0; LINE];
    medium.load(0, &mut line);
    if line == format::line_of(head) {
        return Ok(());
    }
    format::put_head(medium, *head)?;
    medium.put_zeros(POOL_NEXT_HEAD, LINE as u64);
    medium.drain()
}
