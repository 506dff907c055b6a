//! Taking space: objects of runs, and whole chunks.

use nearpm_interface::media::{CHUNK_BYTES, ChunkWord};

use super::super::Reservation;
use super::super::sync::Ordering;
use super::chunk::{holds, place};
use super::{Heap, lock};
use crate::error::Error;
use crate::heap::classes::{CLASSES, capacity_of, class_named};

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

/// Where runs with room may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    /// Also in arenas of other threads: where chunks are scarce a new run is not made, and the
    /// caller looks there.
    Elsewhere,
    /// In the lists alone.
    Listed,
}

/// With fewer free chunks than this, or than three quarters of a small heap, they are scarce: a run
/// for each thread and class would take them all.
const SCARCE: u64 = 512;

impl Heap {
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

    /// Makes a new run: first chunk, and how many there are. Where there is no piece as long as it
    /// should be it becomes a shorter one.
    fn take_run(&self, class: usize) -> Option<(u32, u32)> {
        let of_class = &self.run_chunks[class];
        let so_far = if self.short_runs { 0 } else { of_class.load(Ordering::Relaxed) };
        let mut chunks = self.layout.classes.chunks_of_run(class, so_far);
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

    /// Whether so large a part of the heap is in free chunks that space is nothing to be spared: an
    /// eighth.
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

    /// An arena leaves the run that it has for objects of so many bytes, if another one is to serve
    /// before it.
    pub fn prefer_lowest(&self, arena: &mut Arena, bytes: u64) {
        let Some(class) = self.layout.classes.class_of(bytes) else { return };
        let current = arena.current[class];
        if current != NONE && lock(&self.partial[class]).is_before(current) {
            self.leave(current, class);
            arena.current[class] = NONE;
        }
    }

    /// An arena leaves a run.
    #[inline]
    fn leave(&self, chunk: u32, class: usize) {
        let entry = &self.chunks[chunk];
        entry.hint.store(0, Ordering::Relaxed);
        entry.place.store(place::FULL, Ordering::SeqCst);
        // Whoever frees an object looks at the place after it has cleared the bit: one of the two
        // sees the other.
        if entry.has_room() {
            self.list(chunk, class);
        }
    }

    /// Puts a run that no arena has into the list of its class, unless it is there.
    pub(super) fn list(&self, chunk: u32, class: usize) {
        let mut list = lock(&self.partial[class]);
        if list.try_reserve().is_err() {
            // It stays full for now: whoever frees its next object tries again.
            return;
        }
        let entry = &self.chunks[chunk];
        // Since the caller's object was freed the run may have been emptied, broken up, and filled
        // as one of another class. As long as it is of this one it cannot become another: for that
        // it would have to leave the list that is locked.
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

    /// Takes free chunks and makes them what `word` says, in the index. Objects leave those free
    /// that the log may have, a segment of the log at least `spare`. Without enough in one piece,
    /// empty runs are broken up.
    pub fn take_chunks(&self, chunks: u32, word: ChunkWord, spare: u64) -> Option<u32> {
        let is_log = matches!(word, ChunkWord::Log { .. });
        let take = || {
            let mut free = lock(&self.free);
            let left = if is_log { spare } else { free.kept_free(self.kept) };
            if free.spans.chunks() < u64::from(chunks) + left {
                return None;
            }
            let chunk = free.take(&self.layout, chunks)?;
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
        for list in &self.partial {
            lock(list).retain(|chunk| {
                let empty = self.chunks[chunk].used.load(Ordering::SeqCst) == 0;
                if empty {
                    self.free_run(chunk);
                }
                !empty
            });
        }
    }

    /// A run that has no objects becomes free chunks. No arena has it.
    pub fn dissolve(&self, chunk: u32) {
        if let ChunkWord::Run { object_bytes, .. } = self.chunks[chunk].word() {
            lock(&self.partial[class_named(object_bytes)]).remove(chunk);
            self.free_run(chunk);
        }
    }

    /// An empty run that is in no list becomes free chunks.
    fn free_run(&self, chunk: u32) {
        let entry = &self.chunks[chunk];
        if let ChunkWord::Run { object_bytes, chunks } = entry.word() {
            entry.place.store(place::TAKEN, Ordering::SeqCst);
            self.mark(chunk, chunks, holds::NOTHING);
            self.run_chunks[class_named(object_bytes)].fetch_sub(chunks, Ordering::Relaxed);
            lock(&self.free).spans.add(chunk, chunks);
        }
    }
}
