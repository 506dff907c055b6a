//! Recovery of direct pools: what the log says goes home.
//!
//! 1. the records of all segments that are whole and behind the applied word are taken, by number;
//! 2. one that depends on a record that is not there is dropped, as is a transaction of which a
//!    part is missing, and one whose bytes do not lie at home as it says (`at_home.rs`);
//! 3. the new bytes of what was committed are stored, in order, then the old bytes of what was not,
//!    newest first;
//! 4. when that is durable, the applied word rises to the highest number seen, the segments become
//!    free chunks, and the applied word is blank.
//!
//! A power cut in between leaves the log as it was, so that all of it happens again.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use nearpm_interface::geometry::LINE;
use nearpm_interface::media::{ChunkWord, PoolHead};
use nearpm_interface::record::{
    HOME_RECORD_VERSION, Kind, Operation, POOL_APPLIED, POOL_CONFIRMED, RECORD_VERSION, RecordHead, SEGMENT_MAGIC,
    SegmentHead,
};
use nearpm_interface::seal;

use super::Recovery;
use super::at_home::AtHome;
use super::found::{Found, is_later};
use super::home::Home;
use super::pieces::{Pieces, SegmentAt};
use crate::damage::Class;
use crate::error::Error;
use crate::heap::HeapLayout;
use crate::memory::Medium;

/// Versions of segments that can be read.
const VERSIONS: RangeInclusive<u32> = RECORD_VERSION..=HOME_RECORD_VERSION;

/// Number of the last record that is home; `None` where the pool has no segments.
pub(crate) fn applied(medium: &Medium) -> Result<Option<u64>, Error> {
    match medium.load_word(POOL_APPLIED) {
        0 => Ok(None),
        word => seal::open_word(word).map(Some).ok_or(Class::AppliedWord.at(POOL_APPLIED)),
    }
}

/// Every record up to this number was durable once, with what it says lies at home; 0 for none.
pub(crate) fn confirmed(medium: &Medium) -> Result<u64, Error> {
    match medium.load_word(POOL_CONFIRMED) {
        0 => Ok(0),
        word => seal::open_word(word).ok_or(Class::ConfirmedWord.at(POOL_CONFIRMED)),
    }
}

/// Brings the pool to a state in which it has no segments.
pub(crate) fn recover(medium: &Medium, head: &PoolHead, report: &mut Recovery) -> Result<(), Error> {
    // Only then the table of chunks is where it is looked for: shadow paging moves pages.
    let Some(applied) = applied(medium)? else { return Ok(()) };
    let layout = HeapLayout::of(head);
    let segments = segment_chunks(medium, &layout)?;
    let scan_at = |&chunk: &u32| scan(medium, &segment(medium, head, layout.chunk(chunk))?, applied);
    let mut lists = segments.iter().map(scan_at).collect::<Result<Vec<_>, Error>>()?;
    // What could not be read looked like the end of a segment, or like one that was never written.
    medium.backing().alive()?;
    let newest = lists.iter().filter_map(|list| list.last()).map(|r| r.head.sequence).fold(applied, u64::max);
    AtHome::new(medium, head, applied.max(confirmed(medium)?), &lists).sift(&mut lists, newest, report)?;
    let mut records: Vec<Found> = lists.into_iter().flatten().collect();
    records.sort_by_key(|r| r.head.sequence);
    let records = connected(records, applied, report);
    let words = segments.iter().map(|&chunk| layout.word(chunk)).collect();
    let kept = SegmentWords { layout, words };
    replay(medium, head, &records, &kept, report)?;
    medium.drain()?;
    medium.put_word(POOL_APPLIED, seal::seal_word(newest));
    medium.drain()?;
    medium.put_word(POOL_CONFIRMED, 0);
    for chunk in segments {
        medium.put_word(layout.word(chunk), ChunkWord::Free.encode());
    }
    medium.drain()?;
    // Unseen, both: only a pool that shadow paging uses next is spoilt by a word that stays.
    medium.put_word(POOL_APPLIED, 0);
    medium.drain()
}

/// The words of the chunks that segments begin in. A segment is made when no record names its
/// chunk: one that does is older, and its transaction was home then.
struct SegmentWords {
    layout: HeapLayout,
    words: BTreeSet<u64>,
}

impl SegmentWords {
    /// Whether an operation would hide a segment: it changes its word, or that of a large object
    /// that was where the segment is.
    fn hidden_by(&self, operation: &Operation<'_>) -> bool {
        let covered = match *operation {
            Operation::Store(_, data) => data.try_into().map_or(1, |word| self.large_chunks(word)),
            _ => 1,
        };
        let (offset, _) = operation.range();
        self.layout.chunk_of_word(offset).is_some() && self.words.range(offset..offset + 8 * covered).next().is_some()
    }

    /// Chunks that are hidden behind the word of the first one.
    fn large_chunks(&self, word: [u8; 8]) -> u64 {
        match self.layout.form.decode_chunk(u64::from_le_bytes(word)) {
            Some(ChunkWord::Large { chunks }) => chunks.into(),
            _ => 1,
        }
    }
}

/// What a word says, if the heap has so many chunks.
fn fitting(layout: &HeapLayout, chunk: u32, word: u64) -> Option<ChunkWord> {
    layout.form.decode_chunk(word).filter(|word| match word {
        ChunkWord::Tables { .. } => layout.begins_zone(chunk),
        ChunkWord::Log { chunks } | ChunkWord::Large { chunks } | ChunkWord::Run { chunks, .. } => {
            u64::from(chunk) + u64::from(*chunks) <= layout.chunks
        }
        ChunkWord::Free => true,
    })
}

/// The first chunk of each segment, in a pool that has a log.
pub(crate) fn segment_chunks(medium: &Medium, layout: &HeapLayout) -> Result<Vec<u32>, Error> {
    let mut found = Vec::new();
    // What a word says of the chunks behind it goes before their own words. A word that is zero is
    // that of a free chunk.
    let mut next = 0;
    let words = layout.parts().flat_map(|part| {
        let chunk = move |place: u64| part.chunks.start + ((place - part.words) / 8) as u32;
        medium.words(part.words_range()).map(move |(place, word)| (place, chunk(place), word))
    });
    for (place, chunk, word) in words {
        if chunk < next {
            continue;
        }
        next = chunk
            + match fitting(layout, chunk, word) {
                Some(ChunkWord::Log { chunks }) => {
                    found.push(chunk);
                    chunks
                }
                Some(ChunkWord::Large { chunks } | ChunkWord::Tables { chunks }) => chunks,
                // One without objects may have given its other chunks to a segment.
                Some(ChunkWord::Free | ChunkWord::Run { .. }) => 1,
                None => return Err(Class::ChunkWord.at(place)),
            };
    }
    Ok(found)
}

/// Reads and checks the head of a segment.
pub(crate) fn segment(medium: &Medium, pool: &PoolHead, offset: u64) -> Result<SegmentAt, Error> {
    let mut line = [0; SegmentHead::SIZE];
    medium.load(offset, &mut line);
    let head = SegmentHead::from_bytes(&line);
    let sound = seal::is_sealed(&[], &line)
        && head.magic == SEGMENT_MAGIC
        && VERSIONS.contains(&head.version)
        && head.pool == pool.pool
        && offset.checked_add(head.bytes).is_some_and(|end| end <= pool.last());
    if sound {
        Ok(SegmentAt { offset, bytes: head.bytes, nonce: head.nonce })
    } else {
        Err(Class::SegmentHead.at(offset))
    }
}

/// The records of a segment that are behind `applied`. What follows them was torn by a power cut,
/// or was never there: records that were made later would show that it is damage.
pub(crate) fn scan(medium: &Medium, segment: &SegmentAt, applied: u64) -> Result<Vec<Found>, Error> {
    let mut pieces = Pieces::new(medium, *segment);
    let mut records = Vec::new();
    let (mut at, mut last) = (SegmentHead::SIZE, 0);
    while let Some((head, body)) = pieces.record(at) {
        if head.sequence <= last {
            break;
        }
        last = head.sequence;
        if head.sequence > applied {
            let kind = Kind::from_code(head.kind).expect("a record that was decoded has a kind");
            records.push(Found { head, kind, body: body.to_vec(), offset: segment.offset + at as u64 });
        }
        at += RecordHead::stride(head.bytes.into()) as usize;
    }
    let newest = last.max(applied);
    let is_later = |at| pieces.record(at).is_some_and(|(head, _)| is_later(&head, newest));
    if (at..segment.bytes as usize).step_by(LINE).skip(1).any(is_later) {
        return Err(Class::RecordSum.at(segment.offset + at as u64));
    }
    Ok(records)
}

/// Drops records that depend on a missing one. `records` are by number.
fn connected(records: Vec<Found>, applied: u64, report: &mut Recovery) -> Vec<Found> {
    // Every record up to here is there.
    let mut unbroken = applied;
    let mut kept = Vec::with_capacity(records.len());
    for record in records {
        if record.head.depends > unbroken {
            report.torn += 1;
            continue;
        }
        if record.head.sequence == unbroken + 1 {
            unbroken += 1;
        }
        kept.push(record);
    }
    kept
}

/// Carries records out, but for what they say of the chunks of segments: a cut in here must find
/// every segment again.
fn replay(
    medium: &Medium,
    pool: &PoolHead,
    records: &[Found],
    segments: &SegmentWords,
    report: &mut Recovery,
) -> Result<(), Error> {
    let mut home = Home::new(medium);
    let mut parts: BTreeMap<u64, u32> = BTreeMap::new();
    for record in records.iter().filter(|r| r.kind == Kind::Part) {
        *parts.entry(record.head.first).or_default() += 1;
    }
    let whole = |r: &&Found| r.head.parts == 0 || parts.get(&r.head.first) == Some(&r.head.parts);
    let committed: BTreeSet<u64> =
        records.iter().filter(|r| r.kind == Kind::Commit).filter(whole).map(|r| r.head.first).collect();
    for record in records {
        match record.kind {
            Kind::Part | Kind::Commit if committed.contains(&record.head.first) => {
                store(&mut home, pool, record, segments, report)?;
                report.redone += 1;
            }
            Kind::Part | Kind::Commit => report.torn += 1,
            Kind::Undo => {}
        }
    }
    for record in records.iter().rev() {
        if record.kind == Kind::Undo && !committed.contains(&record.head.first) {
            store(&mut home, pool, record, segments, report)?;
            report.undone += 1;
        }
    }
    home.finish();
    Ok(())
}

fn store(
    home: &mut Home<'_>,
    head: &PoolHead,
    record: &Found,
    segments: &SegmentWords,
    report: &mut Recovery,
) -> Result<(), Error> {
    let mut body = &record.body[..];
    while !body.is_empty() {
        let (operation, rest) = Operation::decode(body).ok_or_else(|| Class::RecordOperation.at(record.offset))?;
        body = rest;
        let (offset, bytes) = operation.range();
        if matches!(operation, Operation::Through(_)) {
            continue;
        }
        if offset < head.heap() || offset + bytes > head.last() {
            return Err(Class::RecordRange.at(record.offset));
        }
        if !segments.hidden_by(&operation) {
            home.apply(operation)?;
        }
        report.bytes += if matches!(operation, Operation::Home(..)) { 0 } else { bytes };
    }
    Ok(())
}
