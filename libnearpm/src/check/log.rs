//! The logs of a pool as they lie there, before a recovery reads them.

use nearpm_interface::geometry::LINE;
use nearpm_interface::media::{
    PoolHead, RING_EPOCH, RING_EXTENT, RING_HEAD_BYTES, RING_REDO_APPLIED, RING_REDO_COMMITTED,
};
use nearpm_interface::record::{POOL_APPLIED, POOL_CONFIRMED, SEGMENT_MAGIC, SegmentHead};
use nearpm_interface::seal;

use super::{Class, Found, one_bit, tables};
use crate::error::Error;
use crate::heap::HeapLayout;
use crate::memory::Medium;
use crate::recovery;
use crate::recovery::pieces::SegmentAt;
use crate::recovery::segments;

/// What is wrong with rings, segments and records.
pub(super) fn examine(medium: &Medium, head: &PoolHead) -> Vec<Found> {
    let mut found = Vec::new();
    for lane in 0..head.lanes {
        ring(medium, head, lane, &mut found);
    }
    if medium.load_word(POOL_APPLIED) != 0 {
        segments(medium, head, &mut found);
    }
    found
}

fn ring(medium: &Medium, head: &PoolHead, lane: u16, found: &mut Vec<Found>) {
    let ring = head.ring(lane);
    let epoch = medium.load_word(ring + RING_EPOCH);
    let others = [RING_REDO_COMMITTED, RING_REDO_APPLIED].map(|at| medium.load_word(ring + at));
    if epoch == 0 || seal::open_word(epoch).is_none() && others == [0; 2] {
        let one = Found::new(Class::RingWord, ring + RING_EPOCH);
        // A ring that was never used has no entries, and all its words are zero.
        match recovery::has_entries(medium, head, lane) {
            true => found.push(one),
            false if epoch != 0 => found.push(one.mend_word(Some(0))),
            false => {}
        }
        return;
    }
    for at in [RING_EPOCH, RING_REDO_COMMITTED, RING_REDO_APPLIED] {
        let word = medium.load_word(ring + at);
        if seal::open_word(word).is_none() {
            found.push(Found::new(Class::RingWord, ring + at).mend_word(one_bit::sealed_word(word, |_| true)));
        }
    }
    let word = medium.load_word(ring + RING_EXTENT);
    if word != 0 && seal::open_word(word).is_none() {
        // The whole ring is always right: what lies behind the extent is dead, and only takes time
        // to read.
        let in_ring = |bytes| (RING_HEAD_BYTES..=head.ring_bytes.into()).contains(&bytes);
        let mended = one_bit::sealed_word(word, in_ring).unwrap_or(0);
        found.push(Found::new(Class::RingExtent, ring + RING_EXTENT).mend_word(Some(mended)));
    }
}

fn segments(medium: &Medium, head: &PoolHead, found: &mut Vec<Found>) {
    let layout = HeapLayout::of(head);
    let has_moved = may_have_moved_pages(medium, head);
    let chunks = if has_moved { Ok(Vec::new()) } else { segments::segment_chunks(medium, &layout) };
    let chunks = match chunks {
        Ok(chunks) => chunks,
        Err(error) => return found.push(tables::mend_chunk_word(medium, head, Found::of(&error))),
    };
    let applied = match segments::applied(medium) {
        Ok(applied) => applied.unwrap_or(0),
        Err(error) => {
            let damaged = medium.load_word(POOL_APPLIED);
            // Without segments there is no log, and the word is zero; of a pool whose pages have
            // moved it is not known.
            let is_zero = chunks.is_empty() && (!has_moved || damaged.is_power_of_two());
            let mended = if is_zero { Some(0) } else { one_bit::sealed_word(damaged, |_| true) };
            return found.push(Found::of(&error).mend_word(mended));
        }
    };
    if let Err(error) = segments::confirmed(medium) {
        let damaged = medium.load_word(POOL_CONFIRMED);
        let accepted = |word| word == 0 || seal::open_word(word).is_some();
        found.push(Found::of(&error).mend_word(one_bit::word(damaged, accepted)));
    }
    for chunk in chunks {
        match segments::segment(medium, head, layout.chunk(chunk)) {
            Ok(segment) => records(medium, &segment, applied, found),
            Err(error) => found.push(segment_head(medium, Found::of(&error))),
        }
    }
}

fn segment_head(medium: &Medium, found: Found) -> Found {
    let mut line = [0; LINE];
    medium.load(found.finding.offset, &mut line);
    match one_bit::sealed_line(&line) {
        Some(line) if SegmentHead::from_bytes(&line).magic == SEGMENT_MAGIC => found.mend(line.to_vec()),
        _ => found,
    }
}

fn records(medium: &Medium, segment: &SegmentAt, applied: u64, found: &mut Vec<Found>) {
    let Err(error @ Error::Corrupt { offset, .. }) = segments::scan(medium, segment, applied) else { return };
    let rest = medium.load_vec(offset, segment.offset + segment.bytes - offset);
    let mended = one_bit::record(&rest, segment.nonce);
    let one = Found::of(&error);
    found.push(if let Some(record) = mended { one.mend(record) } else { one });
}

/// Whether shadow paging may have moved the tables that say where segments are: these have no
/// records that count then, and a recovery looks behind the rings.
fn may_have_moved_pages(medium: &Medium, head: &PoolHead) -> bool {
    let table = head.table()..head.table() + head.pages * 8;
    let is_used = |lane| recovery::has_entries(medium, head, lane);
    head.spare > 0 && (medium.words(table).next().is_some() || (0..head.lanes).any(is_used))
}

/// The segments that can be read.
pub(super) fn segments_of(medium: &Medium, head: &PoolHead) -> Vec<SegmentAt> {
    if medium.load_word(POOL_APPLIED) == 0 || may_have_moved_pages(medium, head) {
        return Vec::new();
    }
    let layout = HeapLayout::of(head);
    let chunks = segments::segment_chunks(medium, &layout).unwrap_or_default();
    chunks.into_iter().filter_map(|chunk| segments::segment(medium, head, layout.chunk(chunk)).ok()).collect()
}
