//! Which bytes are objects, for several threads.
//!
//! The truth is in the pool: chunk words and bitmaps ([`crate::heap`]), which change by commits
//! alone. The index here is volatile and is built when the pool is opened. It knows two things of
//! each place: that it is *taken* (reserved or an object), and that it is *allocated* (an object by
//! a commit, and not claimed by a transaction that will free it).
//!
//! A thread takes objects from chunks of its own arena, without a lock that others want; whoever
//! frees one clears its bit from outside. A run that has room and no arena waits in the list of its
//! class. A run that has become empty stays what it is until chunks are scarce: on the medium a run
//! without objects is free space. Pools by offsets, whose transactions come one after the other,
//! have objects put to the lowest place ([`Placement::Lowest`]) and ask for empty runs to be
//! dissolved.
//!
//! What is read at every access and hardly ever changes (where the heap ends, how many objects a
//! run has room for) is the standard library's, so that the tests that try every order of events
//! (`orders.rs`) do not try those.
//!
//! | file | holds |
//! |---|---|
//! | `chunk.rs` | what the index knows of a chunk |
//! | `chunks.rs` | the same of all of them, as far as they were ever in use |
//! | `list.rs` | the runs of one size that no thread has at hand |
//! | `load.rs` | building it from a pool |
//! | `runs.rs` | taking space: runs, and whole chunks |
//! | `places.rs` | what an offset names: taken, allocated, claimed, free |
//! | `objects.rs` | going through all of them |
//! | `marks.rs` | which chunks the log names |

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{PoisonError, atomic};

use nearpm_interface::media::{CHUNK_BYTES, ChunkWord};

use chunks::Chunks;
use list::List;

use super::sync::{AtomicU32, Mutex, MutexGuard};
use crate::heap::classes::CLASSES;
use crate::heap::spans::{Spans, Spread};
use crate::heap::{Form, HeapLayout};

mod chunk;
mod chunks;
mod list;
mod load;
mod marks;
mod objects;
mod places;
mod runs;

pub(crate) use runs::{Arena, Runs};

/// A change that makes a place an object, or free, when it is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Store this word.
    Word(u64, u64),
    /// Set these bits of a word of this form.
    Set(u64, u64, Form),
    /// Clear these bits of a word of this form.
    Clear(u64, u64, Form),
}

impl Change {
    /// Offset of the word.
    pub fn offset(&self) -> u64 {
        match *self {
            Change::Word(offset, _) | Change::Set(offset, ..) | Change::Clear(offset, ..) => offset,
        }
    }
}

/// Where new objects go.
pub(crate) enum Placement {
    /// Each thread has runs at hand, which are the longer the more there are of their size: threads
    /// keep out of each other's way. New chunks of a striped pool are spread over its members.
    Apart(Option<Spread>),
    /// To the lowest place that is free, in runs as short as can be: the objects of one thread lie
    /// close together, so that few lines and pages of a card change. New chunks are spread as well.
    Lowest(Option<Spread>),
}

/// Chunks that hold no objects.
#[derive(Default)]
struct Free {
    spans: Spans,
    /// How new chunks are spread over the members of a striped pool.
    spread: Option<Spread>,
    /// Chunks of the log.
    log: u64,
}

impl Free {
    /// Free chunks that no object gets, of `kept` that the log may always have.
    fn kept_free(&self, kept: u64) -> u64 {
        kept.saturating_sub(self.log)
    }

    /// Takes free chunks: of a striped pool on the member whose turn it is, if that has them.
    fn take(&mut self, layout: &HeapLayout, chunks: u32) -> Option<u32> {
        let turn = self.spread.as_mut().map(|spread| spread.stripes(layout));
        let in_turn = turn.and_then(|mut stripes| stripes.find_map(|range| self.spans.take_in(range, chunks)));
        in_turn.or_else(|| self.spans.take(chunks))
    }
}

/// The index.
pub(crate) struct Heap {
    /// As it was when the pool was opened: it may have grown.
    layout: HeapLayout,
    /// Offset of the end of the last chunk.
    end: atomic::AtomicU64,
    chunks: Chunks,
    /// Runs that may have room and are in no arena, by class.
    partial: [Mutex<List>; CLASSES.len()],
    /// Chunks of all runs, by class.
    run_chunks: [atomic::AtomicU32; CLASSES.len()],
    /// Runs are as short as can be.
    short_runs: bool,
    free: Mutex<Free>,
    /// Chunks that no object gets, be they free or in the log: without room for its log a pool that
    /// is full could not free anything.
    kept: u64,
    /// Counts cuts of the log.
    cuts: AtomicU32,
    /// Records from before this cut are dead.
    settled: AtomicU32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Heap {
    /// Offsets that objects may have.
    #[inline]
    pub fn range(&self) -> Range<u64> {
        self.layout.first..self.end.load(Ordering::Relaxed)
    }

    /// All chunks.
    pub fn chunks(&self) -> u64 {
        (self.end.load(Ordering::Relaxed) - self.layout.first) / CHUNK_BYTES
    }

    /// The layout as it is now.
    pub fn layout(&self) -> HeapLayout {
        self.layout.with_chunks(self.chunks())
    }

    /// The pool has grown, and the tables of the new chunks say that these are free.
    pub fn grow(&self, to: &HeapLayout) {
        let former = self.layout();
        let new = self.end.load(Ordering::Relaxed)..to.range().end;
        self.end.store(new.end, Ordering::Release);
        let mut next = former.chunks as u32;
        for zone in to.zones_since(&former) {
            self.add_free(next..zone.chunks.start);
            let tables = ChunkWord::Tables { chunks: zone.tables };
            self.chunks[zone.chunks.start].word.store(tables.encode(), Ordering::Relaxed);
            next = zone.chunks.start + zone.tables;
        }
        self.add_free(next..to.chunks as u32);
    }

    /// Free bytes: in free chunks, and in runs with room that no thread has at hand.
    pub fn free_bytes(&self) -> u64 {
        let chunks = lock(&self.free);
        let mut free = chunks.spans.chunks().saturating_sub(chunks.kept_free(self.kept)) * CHUNK_BYTES;
        drop(chunks);
        for (class, list) in self.partial.iter().enumerate() {
            free += lock(list).sum(|run| self.chunks[run].room().into()) * u64::from(CLASSES[class]);
        }
        free
    }

    /// Free chunks that the log may have beyond what each lane needs, if it may have `most`.
    pub fn log_budget(&self, most: u64) -> u64 {
        let free = lock(&self.free);
        most.saturating_sub(free.log).min(free.spans.chunks())
    }

    /// Whether an object would have space if these segments of the log, first chunk and number,
    /// were free.
    pub fn has_space_without(&self, bytes: u64, log: impl Iterator<Item = (u32, u32)>) -> bool {
        let chunks = bytes.div_ceil(CHUNK_BYTES);
        let mut spans = lock(&self.free).spans.clone();
        log.for_each(|(chunk, chunks)| spans.add(chunk, chunks));
        let Ok(piece) = u32::try_from(chunks) else { return false };
        spans.chunks() >= chunks.saturating_add(self.kept) && spans.take(piece).is_some()
    }

    /// Offset and bytes of chunks, and the offset of the first one's word.
    pub fn chunk_range(&self, chunk: u32, chunks: u32) -> (u64, u64, u64) {
        (self.layout.chunk(chunk), u64::from(chunks) * CHUNK_BYTES, self.layout.word(chunk))
    }

    /// Blocks of chunks that take memory.
    #[cfg(test)]
    pub fn blocks_in_use(&self) -> usize {
        self.chunks.blocks_in_use()
    }

    /// Where the tables say what a range of the heap is.
    pub fn tables_of(&self, range: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
        let first = ((range.start - self.layout.first) / CHUNK_BYTES) as u32;
        let last = ((range.end - 1 - self.layout.first) / CHUNK_BYTES) as u32;
        self.layout().tables_of(first..last + 1)
    }

    /// What makes an object the root; 0 for none.
    pub fn root_change(&self, root: u64) -> Change {
        Change::Word(self.layout.root(), self.layout.form.encode(root))
    }

    /// How the tables are written.
    pub fn form(&self) -> Form {
        self.layout.form
    }
}
