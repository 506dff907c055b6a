//! Which bytes are objects, for several threads.
//!
//! The truth is in the pool: chunk words and bitmaps ([`crate::heap`]), which change by the records of commits alone. The index here is
//! volatile and is built when the pool is opened. It knows two things of each place: that it is *taken* (reserved or an object), and
//! that it is *allocated* (an object by a commit, and not claimed by a transaction that will free it).
//!
//! A thread takes objects from chunks of its own arena, without a lock that others want; whoever frees one clears its bit from outside.
//! A chunk that has room and no arena waits in the list of its class. A run that has become empty stays what it is until chunks are
//! scarce: on the medium a run without objects is free space.
//!
//! What is read at every access and hardly ever changes (where the heap ends, how many objects a run has room for) is the standard library's, so
//! that the tests that try every order of events (`orders.rs`) do not try those.
//!
//! | file | holds |
//! |---|---|
//! | `chunk.rs` | what the index knows of a chunk |
//! | `chunks.rs` | the same of all of them, as far as they were ever in use |
//! | `load.rs` | building it from a pool |
//! | `marks.rs` | which chunks the log names |

use std::ops::Range;
use std::sync::{PoisonError, atomic};

use nearpm_interface::media::{CHUNK_BYTES, ChunkWord};

use chunk::{Chunk, holds, place};
use chunks::Chunks;

use super::Reservation;
use super::sync::{AtomicU32, Mutex, MutexGuard, Ordering};
use crate::classes::{CLASSES, capacity_of, class_named};
use crate::error::Error;
use crate::heap::{Form, HeapLayout};
use crate::spans::Spans;
use crate::statistics::HeapState;

mod chunk;
mod chunks;
mod load;
mod marks;

const NONE: u32 = u32::MAX;

/// The chunks that a thread allocates from: one of each class.
pub(crate) struct Arena {
    current: [u32; CLASSES.len()],
}

impl Default for Arena {
    fn default() -> Arena {
        Arena { current: [NONE; CLASSES.len()] }
    }
}

/// A place that an offset names.
#[derive(Clone, Copy)]
enum Place {
    Unit { chunk: u32, unit: u32, class: usize },
    Chunks { chunk: u32, chunks: u32 },
}

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

/// Where runs with room may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    /// Also in arenas of other threads: where chunks are scarce a new run is not made, and the caller looks there.
    Elsewhere,
    /// In the lists alone.
    Listed,
}

/// With fewer free chunks than this, or than three quarters of a small heap, they are scarce: a run for each thread and class would
/// take them all.
const SCARCE: u64 = 512;

/// Chunks that hold no objects.
#[derive(Default)]
struct Free {
    spans: Spans,
    /// Chunks of the log.
    log: u64,
}

impl Free {
    /// Free chunks that no object gets, of `kept` that the log may always have.
    fn kept_free(&self, kept: u64) -> u64 {
        kept.saturating_sub(self.log)
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
    partial: [Mutex<Vec<u32>>; CLASSES.len()],
    /// Chunks of all runs, by class.
    run_chunks: [atomic::AtomicU32; CLASSES.len()],
    free: Mutex<Free>,
    /// Chunks that no object gets, be they free or in the log: without room for its log a pool that is full could not free
    /// anything.
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
            let room = |&c: &u32| u64::from(self.chunks[c].room());
            free += lock(list).iter().map(room).sum::<u64>() * u64::from(CLASSES[class]);
        }
        free
    }

    /// Takes space. `fresh` hears of each range of the heap that comes into use.
    ///
    /// # Errors
    /// [`Error::Full`], also where chunks are scarce and arenas may have [`Runs::Elsewhere`].
    pub fn reserve(
        &self,
        arena: &mut Arena,
        bytes: u64,
        runs: Runs,
        fresh: impl FnOnce(u64, u64),
    ) -> Result<Reservation, Error> {
        if bytes == 0 {
            return Err(Error::ZeroSize { what: "an allocation" });
        }
        match self.layout.classes.class_of(bytes) {
            Some(class) => self.reserve_unit(arena, class, bytes, runs, fresh),
            None => {
                let full = || Error::Full { requested: bytes, free: self.free_bytes() };
                let chunks = u32::try_from(bytes.div_ceil(CHUNK_BYTES)).map_err(|_| full())?;
                let word = ChunkWord::Large { chunks };
                let chunk = self.take_chunks(chunks, word, 0).ok_or_else(full)?;
                let (offset, bytes) = (self.layout.chunk(chunk), u64::from(chunks) * CHUNK_BYTES);
                fresh(offset, bytes);
                Ok(Reservation { offset, bytes })
            }
        }
    }

    fn reserve_unit(
        &self,
        arena: &mut Arena,
        class: usize,
        bytes: u64,
        runs: Runs,
        fresh: impl FnOnce(u64, u64),
    ) -> Result<Reservation, Error> {
        let size = u64::from(CLASSES[class]);
        let mut fresh = Some(fresh);
        loop {
            let chunk = arena.current[class];
            if chunk != NONE {
                if let Some(unit) = self.chunks[chunk].take() {
                    return Ok(Reservation { offset: self.layout.chunk(chunk) + u64::from(unit) * size, bytes: size });
                }
                self.leave(chunk, class);
                arena.current[class] = NONE;
            }
            arena.current[class] = match self.take_partial(class) {
                Some(chunk) => chunk,
                None => {
                    let full = || Error::Full { requested: bytes, free: self.free_bytes() };
                    if runs == Runs::Elsewhere && self.is_scarce() {
                        return Err(full());
                    }
                    let (chunk, chunks) = self.take_run(class).ok_or_else(full)?;
                    if let Some(fresh) = fresh.take() {
                        fresh(self.layout.chunk(chunk), u64::from(chunks) * CHUNK_BYTES);
                    }
                    chunk
                }
            };
        }
    }

    /// Makes a new run: first chunk, and how many there are. Where there is no piece as long as it should be it becomes a shorter one.
    fn take_run(&self, class: usize) -> Option<(u32, u32)> {
        let of_class = &self.run_chunks[class];
        let mut chunks = self.layout.classes.chunks_of_run(class, of_class.load(Ordering::Relaxed));
        loop {
            let word = ChunkWord::Run { object_bytes: CLASSES[class], chunks };
            if let Some(chunk) = self.take_chunks(chunks, word, 0) {
                of_class.fetch_add(chunks, Ordering::Relaxed);
                return Some((chunk, chunks));
            }
            let shorter = self.layout.classes.chunks_of_run(class, chunks / 2);
            if shorter >= chunks {
                return None;
            }
            chunks = shorter;
        }
    }

    fn is_scarce(&self) -> bool {
        lock(&self.free).spans.chunks() < SCARCE.min(self.chunks() / 4 * 3)
    }

    /// Whether so large a part of the heap is in free chunks that space is nothing to be spared: an eighth.
    pub fn has_plenty(&self) -> bool {
        lock(&self.free).spans.chunks() > self.layout.chunks / 8
    }

    /// An arena leaves all its runs, so that other threads may have what is free in them.
    pub fn retire(&self, arena: &mut Arena) {
        for (class, current) in arena.current.iter_mut().enumerate() {
            if *current != NONE {
                self.leave(*current, class);
                *current = NONE;
            }
        }
    }

    /// An arena leaves a run.
    #[inline]
    fn leave(&self, chunk: u32, class: usize) {
        let entry = &self.chunks[chunk];
        entry.hint.store(0, Ordering::Relaxed);
        entry.place.store(place::FULL, Ordering::SeqCst);
        // Whoever frees an object looks at the place after it has cleared the bit: one of the two sees the other.
        if entry.has_room() {
            self.list(chunk, class);
        }
    }

    /// Puts a run that no arena has into the list of its class, unless it is there.
    fn list(&self, chunk: u32, class: usize) {
        let mut list = lock(&self.partial[class]);
        if list.try_reserve(1).is_err() {
            // It stays full for now: whoever frees its next object tries again.
            return;
        }
        let entry = &self.chunks[chunk];
        // Since the caller's object was freed the run may have been emptied, broken up, and filled as one of another class. As long as
        // it is of this one it cannot become another: for that it would have to leave the list that is locked.
        let is_run = || matches!(entry.word(), ChunkWord::Run { object_bytes, .. } if object_bytes == CLASSES[class]);
        if entry.place.load(Ordering::SeqCst) == place::FULL && is_run() {
            entry.place.store(place::LISTED, Ordering::SeqCst);
            list.push(chunk);
        }
    }

    fn take_partial(&self, class: usize) -> Option<u32> {
        let mut list = lock(&self.partial[class]);
        let chunk = list.pop()?;
        let entry = &self.chunks[chunk];
        entry.place.store(place::TAKEN, Ordering::SeqCst);
        entry.hint.store(0, Ordering::Relaxed);
        Some(chunk)
    }

    /// Takes free chunks and makes them what `word` says, in the index. Objects leave those free that the log may have, a segment of
    /// the log at least `spare`. Without enough in one piece, empty runs are broken up.
    pub fn take_chunks(&self, chunks: u32, word: ChunkWord, spare: u64) -> Option<u32> {
        let is_log = matches!(word, ChunkWord::Log { .. });
        let take = || {
            let mut free = lock(&self.free);
            let left = if is_log { spare } else { free.kept_free(self.kept) };
            if free.spans.chunks() < u64::from(chunks) + left {
                return None;
            }
            let chunk = free.spans.take(chunks)?;
            free.log += if is_log { chunks.into() } else { 0 };
            Some(chunk)
        };
        let chunk = take().or_else(|| {
            self.break_up_empty_runs();
            take()
        })?;
        let holds = match word {
            ChunkWord::Log { .. } => holds::LOG,
            ChunkWord::Large { .. } => holds::OBJECT,
            ChunkWord::Run { .. } => holds::RUN,
            ChunkWord::Free | ChunkWord::Tables { .. } => holds::NOTHING,
        };
        self.mark(chunk, chunks, holds);
        let entry = &self.chunks[chunk];
        entry.word.store(word.encode(), Ordering::Relaxed);
        if let ChunkWord::Run { object_bytes, chunks } = word {
            entry.capacity.store(capacity_of(object_bytes, chunks), Ordering::Relaxed);
        }
        entry.unwritten.store(true, Ordering::Relaxed);
        entry.allocated.store(false, Ordering::Relaxed);
        entry.place.store(place::TAKEN, Ordering::Relaxed);
        entry.hint.store(0, Ordering::Relaxed);
        Some(chunk)
    }

    fn break_up_empty_runs(&self) {
        for (list, of_class) in self.partial.iter().zip(&self.run_chunks) {
            lock(list).retain(|&chunk| {
                let entry = &self.chunks[chunk];
                let empty = entry.used.load(Ordering::SeqCst) == 0;
                if empty && let ChunkWord::Run { chunks, .. } = entry.word() {
                    entry.place.store(place::TAKEN, Ordering::SeqCst);
                    self.mark(chunk, chunks, holds::NOTHING);
                    of_class.fetch_sub(chunks, Ordering::Relaxed);
                    lock(&self.free).spans.add(chunk, chunks);
                }
                !empty
            });
        }
    }

    /// Free chunks that the log may have beyond what each lane needs, if it may have `most`.
    pub fn log_budget(&self, most: u64) -> u64 {
        let free = lock(&self.free);
        most.saturating_sub(free.log).min(free.spans.chunks())
    }

    /// Whether an object would have space if these segments of the log, first chunk and number, were free.
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

    /// The place that begins at an offset, taken or not, and its first chunk.
    #[inline]
    fn place(&self, offset: u64) -> Option<(&Chunk, Place)> {
        if !self.range().contains(&offset) {
            return None;
        }
        let inside = (offset - self.layout.first) % CHUNK_BYTES;
        let chunk = ((offset - self.layout.first) / CHUNK_BYTES) as u32;
        let entry = &self.chunks[chunk];
        match entry.word() {
            ChunkWord::Run { object_bytes, .. } => Self::unit_at(entry, chunk, inside, object_bytes),
            ChunkWord::Large { chunks } | ChunkWord::Log { chunks } => {
                (inside == 0).then_some((entry, Place::Chunks { chunk, chunks }))
            }
            ChunkWord::Free | ChunkWord::Tables { .. } => self.place_inside(offset, chunk, entry.back()),
        }
    }

    /// The object of a run, which begins with this chunk, that begins so many bytes behind the start of that.
    #[inline(always)]
    fn unit_at(entry: &Chunk, chunk: u32, inside: u64, object_bytes: u32) -> Option<(&Chunk, Place)> {
        let (class, unit) = (class_named(object_bytes), inside as u32 / object_bytes);
        let begins = u64::from(unit * object_bytes) == inside && unit < entry.capacity.load(Ordering::Relaxed);
        begins.then_some((entry, Place::Unit { chunk, unit, class }))
    }

    /// The place that begins at an offset in a chunk of a run that begins so many chunks in front of it.
    #[cold]
    fn place_inside(&self, offset: u64, chunk: u32, back: u32) -> Option<(&Chunk, Place)> {
        let first = chunk - back;
        let entry = &self.chunks[first];
        match entry.word() {
            ChunkWord::Run { object_bytes, .. } if back > 0 => {
                Self::unit_at(entry, first, offset - self.layout.chunk(first), object_bytes)
            }
            _ => None,
        }
    }

    /// The place of something that is taken, as this index gave it out, and its first chunk.
    #[inline]
    fn taken(&self, offset: u64) -> (&Chunk, Place) {
        self.place(offset).expect("a reservation is a place of the heap")
    }

    /// Bytes of what is taken at an offset.
    pub fn usable_bytes(&self, offset: u64) -> Option<u64> {
        match self.place(offset)? {
            (entry, Place::Unit { unit, class, .. }) => {
                let taken = &entry.bits.get()?.taken[unit as usize / 64];
                (taken.load(Ordering::Relaxed) >> (unit % 64) & 1 == 1).then(|| CLASSES[class].into())
            }
            // A log segment is taken, and no object.
            (entry, Place::Chunks { chunks, .. }) => {
                matches!(entry.word(), ChunkWord::Large { .. }).then(|| u64::from(chunks) * CHUNK_BYTES)
            }
        }
    }

    /// The end of the place that has the byte at an offset, if something is taken there.
    pub fn place_end(&self, offset: u64) -> Option<u64> {
        if !self.range().contains(&offset) {
            return None;
        }
        let chunk = ((offset - self.layout.first) / CHUNK_BYTES) as u32;
        // Of a run over several chunks the first one alone says what it is.
        let first = match self.chunks[chunk].word() {
            ChunkWord::Free => chunk - self.chunks[chunk].back(),
            _ => chunk,
        };
        let entry = &self.chunks[first];
        let ChunkWord::Run { object_bytes, .. } = entry.word() else { return None };
        let (start, size) = (self.layout.chunk(first), u64::from(object_bytes));
        let unit = (offset - start) / size;
        // Of a chunk that has left a run the distance may be an old one.
        (unit < entry.capacity.load(Ordering::Relaxed).into()).then_some(start + (unit + 1) * size)
    }

    /// What makes an object the root; 0 for none.
    pub fn root_change(&self, root: u64) -> Change {
        Change::Word(self.layout.root(), self.layout.form.encode(root))
    }

    /// How the tables are written.
    pub fn form(&self) -> Form {
        self.layout.form
    }

    fn word_change(&self, chunk: u32, word: ChunkWord) -> Change {
        Change::Word(self.layout.word(chunk), self.layout.form.encode_chunk(word))
    }

    /// What makes a reservation an object.
    ///
    /// # Errors
    /// That of `change`.
    #[inline]
    pub fn allocation<E>(&self, offset: u64, mut change: impl FnMut(Change) -> Result<(), E>) -> Result<(), E> {
        let (entry, place) = self.taken(offset);
        let (chunk, mask) = match place {
            Place::Unit { chunk, unit, .. } => (chunk, Some(unit)),
            Place::Chunks { chunk, .. } => (chunk, None),
        };
        if entry.unwritten.load(Ordering::Relaxed) {
            change(self.word_change(chunk, entry.word()))?;
        }
        if let Some(unit) = mask {
            let (word, bit) = self.layout.bit(chunk, unit);
            change(Change::Set(word, bit, self.layout.form))?;
        }
        Ok(())
    }

    /// A reservation has become an object.
    pub fn allocated(&self, offset: u64) {
        let (entry, place) = self.taken(offset);
        if entry.unwritten.load(Ordering::Relaxed) {
            entry.unwritten.store(false, Ordering::Relaxed);
        }
        match place {
            Place::Unit { unit, .. } => {
                entry.bits().allocated[unit as usize / 64].fetch_or(1 << (unit % 64), Ordering::Relaxed);
            }
            Place::Chunks { .. } => entry.allocated.store(true, Ordering::Relaxed),
        }
    }

    /// Claims an object for a transaction that will free it: nobody else can. Gives its bytes.
    pub fn claim(&self, offset: u64) -> Result<u64, Error> {
        let error = Error::NotAllocated { offset };
        match self.place(offset) {
            Some((entry, Place::Unit { unit, class, .. })) => {
                let bits = entry.bits.get().ok_or(error)?;
                let mask = 1 << (unit % 64);
                let before = bits.allocated[unit as usize / 64].fetch_and(!mask, Ordering::Relaxed);
                if before & mask != 0 { Ok(CLASSES[class].into()) } else { Err(Error::NotAllocated { offset }) }
            }
            Some((entry, Place::Chunks { chunks, .. })) => {
                let claimed = entry.allocated.swap(false, Ordering::Relaxed);
                if claimed { Ok(u64::from(chunks) * CHUNK_BYTES) } else { Err(error) }
            }
            None => Err(error),
        }
    }

    /// What makes a claimed object free.
    pub fn removal(&self, offset: u64) -> Change {
        match self.taken(offset).1 {
            Place::Unit { chunk, unit, .. } => {
                let (word, bit) = self.layout.bit(chunk, unit);
                Change::Clear(word, bit, self.layout.form)
            }
            Place::Chunks { chunk, .. } => self.word_change(chunk, ChunkWord::Free),
        }
    }

    /// Gives space back: a reservation that became nothing, or an object whose removal is in the log. What is free stays free.
    pub fn release(&self, offset: u64) {
        match self.place(offset) {
            None => {}
            Some((entry, Place::Unit { chunk, unit, class })) => {
                let word = unit as usize / 64;
                let mask = 1 << (unit % 64);
                if entry.bits().taken[word].fetch_and(!mask, Ordering::SeqCst) & mask == 0 {
                    return;
                }
                entry.hint.fetch_min(word as u8, Ordering::Relaxed);
                entry.used.fetch_sub(1, Ordering::SeqCst);
                if entry.place.load(Ordering::SeqCst) == place::FULL {
                    self.list(chunk, class);
                }
            }
            Some((entry, Place::Chunks { chunk, chunks })) => {
                let is_log = matches!(entry.word(), ChunkWord::Log { .. });
                entry.word.store(ChunkWord::Free.encode(), Ordering::Relaxed);
                self.mark(chunk, chunks, holds::NOTHING);
                let mut free = lock(&self.free);
                free.log -= if is_log { chunks.into() } else { 0 };
                free.spans.add(chunk, chunks);
            }
        }
    }

    /// Whether what is taken at an offset is no object by a commit.
    pub fn is_reserved(&self, offset: u64) -> bool {
        let allocated = match self.place(offset) {
            Some((entry, Place::Unit { unit, .. })) => Self::is_allocated(entry, unit),
            Some((entry, Place::Chunks { .. })) => entry.allocated.load(Ordering::Relaxed),
            None => return false,
        };
        !allocated && self.usable_bytes(offset).is_some()
    }

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

    fn is_allocated(entry: &Chunk, unit: u32) -> bool {
        let bits = entry.bits.get();
        bits.is_some_and(|b| b.allocated[unit as usize / 64].load(Ordering::Relaxed) >> (unit % 64) & 1 == 1)
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
}
