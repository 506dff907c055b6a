//! What an offset names, and what becomes of it.

use nearpm_interface::media::{CHUNK_BYTES, ChunkWord};

use super::super::sync::Ordering;
use super::chunk::{Chunk, holds, place};
use super::{Change, Heap, lock};
use crate::error::Error;
use crate::heap::classes::{CLASSES, class_named};

/// A place that an offset names.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Unit { chunk: u32, unit: u32, class: usize },
    Chunks { chunk: u32, chunks: u32 },
}

impl Heap {
    /// The place that begins at an offset, taken or not, and its first chunk.
    #[inline]
    pub(super) fn place(&self, offset: u64) -> Option<(&Chunk, Place)> {
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

    /// The object of a run, which begins with this chunk, that begins so many bytes behind the
    /// start of that.
    #[inline(always)]
    fn unit_at(entry: &Chunk, chunk: u32, inside: u64, object_bytes: u32) -> Option<(&Chunk, Place)> {
        let (class, unit) = (class_named(object_bytes), inside as u32 / object_bytes);
        let begins = u64::from(unit * object_bytes) == inside && unit < entry.capacity.load(Ordering::Relaxed);
        begins.then_some((entry, Place::Unit { chunk, unit, class }))
    }

    /// The place that begins at an offset in a chunk of a run that begins so many chunks in front
    /// of it.
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
    pub(super) fn taken(&self, offset: u64) -> (&Chunk, Place) {
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

    /// The end of the place of a run that has the byte at an offset, be it taken or free. Chunks of
    /// an object's own are no place of a run.
    pub fn place_end(&self, offset: u64) -> Option<u64> {
        if !self.range().contains(&offset) {
            return None;
        }
        let chunk = ((offset - self.layout.first) / CHUNK_BYTES) as u32;
        let belongs_to = self.chunks[chunk].holds.load(Ordering::Relaxed);
        if belongs_to != holds::RUN && belongs_to != holds::INNER {
            // The word may be of a run that was there.
            return None;
        }
        // Of a run over several chunks the first one alone says what it is.
        let first = chunk - self.chunks[chunk].back();
        let entry = &self.chunks[first];
        let ChunkWord::Run { object_bytes, .. } = entry.word() else { return None };
        let (start, size) = (self.layout.chunk(first), u64::from(object_bytes));
        let unit = (offset - start) / size;
        // Behind the last place is what no place has.
        (unit < entry.capacity.load(Ordering::Relaxed).into()).then_some(start + (unit + 1) * size)
    }

    pub(super) fn word_change(&self, chunk: u32, word: ChunkWord) -> Change {
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
    #[inline]
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
    #[inline]
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
    #[inline]
    pub fn removal(&self, offset: u64) -> Change {
        match self.taken(offset).1 {
            Place::Unit { chunk, unit, .. } => {
                let (word, bit) = self.layout.bit(chunk, unit);
                Change::Clear(word, bit, self.layout.form)
            }
            Place::Chunks { chunk, .. } => self.word_change(chunk, ChunkWord::Free),
        }
    }

    /// The run that a place is in, if it is in one: its first chunk, and how many places of it are
    /// taken.
    pub fn run_of(&self, offset: u64) -> Option<(u32, u32)> {
        match self.place(offset)? {
            (entry, Place::Unit { chunk, .. }) => Some((chunk, entry.used.load(Ordering::Relaxed))),
            (_, Place::Chunks { .. }) => None,
        }
    }

    /// What makes a run without objects free chunks.
    pub fn run_removal(&self, chunk: u32) -> Change {
        self.word_change(chunk, ChunkWord::Free)
    }

    /// Gives space back: a reservation that became nothing, or an object whose removal is in the
    /// log. What is free stays free.
    #[inline]
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

    pub(super) fn is_allocated(entry: &Chunk, unit: u32) -> bool {
        let bits = entry.bits.get();
        bits.is_some_and(|b| b.allocated[unit as usize / 64].load(Ordering::Relaxed) >> (unit % 64) & 1 == 1)
    }
}
