//! Going through all that there is.

use std::collections::BTreeSet;
use std::ops::Range;

use nearpm_interface::media::{CHUNK_BYTES, ChunkWord};

use super::super::sync::Ordering;
use super::{Heap, lock};
use crate::statistics::HeapState;

impl Heap {
    /// The first allocated object behind `after`; 0: the first of all.
    pub fn next_object(&self, after: u64) -> Option<u64> {
        let start = after.max(self.layout.first).checked_sub(self.layout.first)?;
        let first = (start / CHUNK_BYTES) as u32;
        let mut chunk = first;
        while u64::from(chunk) < self.chunks() {
            let entry = match self.chunks.look(chunk) {
                Ok(entry) => entry,
                Err(end) => {
                    chunk = end;
                    continue;
                }
            };
            if chunk == first {
                // In the middle of a run its objects may follow.
                chunk -= entry.back();
            }
            let (entry, base) = (&self.chunks[chunk], self.layout.chunk(chunk));
            match entry.word() {
                ChunkWord::Run { object_bytes, chunks } => {
                    let units = entry.capacity.load(Ordering::Relaxed);
                    let found = (0..units)
                        .filter(|u| base + u64::from(u * object_bytes) > after)
                        .find(|u| Self::is_allocated(entry, *u));
                    if let Some(unit) = found {
                        return Some(base + u64::from(unit * object_bytes));
                    }
                    // Without objects its other chunks are free, or something else.
                    chunk += if entry.used.load(Ordering::Relaxed) > 0 { chunks } else { 1 };
                }
                ChunkWord::Large { chunks } => {
                    if entry.allocated.load(Ordering::Relaxed) && base > after {
                        return Some(base);
                    }
                    chunk += chunks;
                }
                ChunkWord::Log { chunks } | ChunkWord::Tables { chunks } => chunk += chunks,
                ChunkWord::Free => chunk += 1,
            }
        }
        None
    }

    /// What there is, reservations included.
    pub fn state(&self) -> HeapState {
        let mut next = 0;
        HeapState::of(std::iter::from_fn(|| {
            if u64::from(next) >= self.chunks() {
                return None;
            }
            let found = self.chunks.look(next).map(|entry| (entry.word(), entry.used.load(Ordering::Relaxed)));
            let (word, used) = found.unwrap_or((ChunkWord::Free, 0));
            next += match word {
                ChunkWord::Large { chunks } | ChunkWord::Log { chunks } | ChunkWord::Tables { chunks } => chunks,
                ChunkWord::Run { chunks, .. } if used > 0 => chunks,
                ChunkWord::Free | ChunkWord::Run { .. } => 1,
            };
            Some((word, used))
        }))
    }

    /// Ranges of chunks that hold objects or reservations, rising.
    pub fn ranges_in_use(&self) -> Vec<Range<u64>> {
        let mut ranges = Vec::new();
        let mut chunk = 0;
        while u64::from(chunk) < self.chunks() {
            let entry = match self.chunks.look(chunk) {
                Ok(entry) => entry,
                Err(end) => {
                    chunk = end;
                    continue;
                }
            };
            let (chunks, in_use) = match entry.word() {
                ChunkWord::Run { chunks, .. } if entry.used.load(Ordering::Relaxed) > 0 => (chunks, true),
                ChunkWord::Run { .. } => (1, false),
                ChunkWord::Large { chunks } => (chunks, true),
                ChunkWord::Log { chunks } | ChunkWord::Tables { chunks } => (chunks, false),
                ChunkWord::Free => (1, false),
            };
            if in_use {
                let start = self.layout.chunk(chunk);
                ranges.push(start..start + u64::from(chunks) * CHUNK_BYTES);
            }
            chunk += chunks;
        }
        ranges
    }

    /// Allocated objects: offset and usable bytes, rising.
    pub fn objects(&self) -> Vec<(u64, u64)> {
        let mut objects = Vec::new();
        for in_use in self.ranges_in_use() {
            let chunk = ((in_use.start - self.layout.first) / CHUNK_BYTES) as u32;
            let entry = &self.chunks[chunk];
            if let ChunkWord::Run { object_bytes, .. } = entry.word() {
                let units = (0..entry.capacity.load(Ordering::Relaxed)).filter(|&unit| Self::is_allocated(entry, unit));
                let offset = |unit: u32| in_use.start + u64::from(unit) * u64::from(object_bytes);
                objects.extend(units.map(|unit| (offset(unit), object_bytes.into())));
            } else if entry.allocated.load(Ordering::Relaxed) {
                objects.push((in_use.start, in_use.end - in_use.start));
            }
        }
        objects
    }

    /// Whether an index that was built from the tables alone has the same objects, and the same
    /// free chunks. Objects that open transactions have claimed are objects there still, and what
    /// nobody has but reservations is free.
    pub fn says_the_same(&self, tables: &Heap, claimed: &BTreeSet<u64>) -> bool {
        let mut objects = self.objects_with(claimed).into_iter();
        let mut spans = lock(&self.free).spans.clone();
        let mut of_tables = tables.objects().into_iter();
        for range in self.ranges_in_use() {
            let own = objects.as_slice().partition_point(|&(object, _)| object < range.end);
            if own == 0 {
                let chunk = ((range.start - self.layout.first) / CHUNK_BYTES) as u32;
                spans.add(chunk, ((range.end - range.start) / CHUNK_BYTES) as u32);
            }
            if !objects.by_ref().take(own).eq(of_tables.by_ref().take(own)) {
                return false;
            }
        }
        of_tables.next().is_none() && spans == lock(&tables.free).spans
    }

    /// Allocated objects, and those of them that transactions have claimed to free them.
    pub fn objects_with(&self, claimed: &BTreeSet<u64>) -> Vec<(u64, u64)> {
        let mut objects = self.objects();
        if !claimed.is_empty() {
            objects.extend(claimed.iter().filter_map(|&object| Some((object, self.usable_bytes(object)?))));
            objects.sort_unstable();
        }
        objects
    }
}
