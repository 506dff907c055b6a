//! The logs of a pool's lanes: in a pool that was closed none has anything to do.

use super::checksum::{fletcher64, go_on};
use super::{Original, Refusal, word};

/// More lanes than a pool has: PMDK makes 1024.
const TOO_MANY: u64 = 1 << 16;
/// Bytes of a lane: a redo log of the allocator, one of transactions, an undo log.
const LANE: usize = 3072;
const REDO_LOGS: [std::ops::Range<usize>; 2] = [0..256, 256..960];
const UNDO_LOG: std::ops::Range<usize> = 960..LANE;
/// Bytes of a log's head: sum, next, capacity, generation, flags.
const HEAD: usize = 64;
const CAPACITY: usize = 16;
const GENERATION: usize = 24;
/// Entries that carry bytes have these types in their uppermost three bits, and are behind a head
/// of this many bytes.
const WITH_BYTES: [u64; 2] = [0b101, 0b110];
const ENTRY_HEAD: usize = 24;
const LINE: usize = 64;

/// Bytes of a valid entry at the start of what is left of a log; `None` where the entries end.
fn entry(rest: &[u8], generation: u64) -> Option<usize> {
    let place = rest.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes)).filter(|&place| place != 0)?;
    if !WITH_BYTES.contains(&(place >> 61)) {
        return (rest.len() >= 16).then_some(16);
    }
    let payload = usize::try_from(word(rest.get(..ENTRY_HEAD)?, 16)).ok()?;
    let bytes = payload.checked_add(ENTRY_HEAD)?.checked_next_multiple_of(LINE)?;
    let whole = rest.get(..bytes)?;
    let sum = go_on(fletcher64(whole, 8, bytes), &generation.to_le_bytes());
    (sum == word(whole, 8)).then_some(bytes)
}

fn entries(log: &[u8]) -> usize {
    let data = &log[HEAD..];
    let mut end = 0;
    while let Some(bytes) = entry(&data[end..], word(log, GENERATION)) {
        end += bytes;
    }
    end
}

/// A redo log that recovery would apply: its sum holds.
fn redo_is_pending(log: &[u8]) -> bool {
    let bytes = entries(log).min(word(log, CAPACITY) as usize);
    bytes != 0 && fletcher64(&log[..HEAD + bytes], 0, HEAD + bytes) == word(log, 0)
}

/// Whether any lane has work for a recovery.
pub(super) fn check(original: &Original) -> Result<(), Refusal> {
    let (start, count) = original.lanes;
    let end = Some(count).filter(|&count| count < TOO_MANY).and_then(|count| start.checked_add(count * LANE as u64));
    if end.is_none_or(|end| end > original.heap.0) {
        return Err(Refusal::Damaged { what: "the lanes lie outside of their place", offset: start });
    }
    let mut lane = [0; LANE];
    for number in 0..count {
        original.read(start + number * LANE as u64, &mut lane)?;
        if REDO_LOGS.into_iter().any(|log| redo_is_pending(&lane[log])) {
            return Err(Refusal::NotClosed { what: "a redo log waits to be applied" });
        }
        if entries(&lane[UNDO_LOG]) != 0 {
            return Err(Refusal::NotClosed { what: "a transaction was left open" });
        }
    }
    Ok(())
}
