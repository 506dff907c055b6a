//! The allocator: which bytes of the heap are objects.
//!
//! The truth is in the pool: one word per chunk and one bitmap per chunk, changed through the transaction like any other data, so that
//! they are rolled back with it. An index in memory makes finding space fast; it is built when the pool is opened.
//!
//! Invariants, between transactions:
//! - the index says what the pool says;
//! - a free chunk has a zero bitmap;
//! - a run without an object is free, whatever its word says: direct pools leave such runs.
//!
//! An object that a transaction frees stays taken in the index until the commit, so that nothing is put over bytes that
//! an abort needs.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

use nearpm_interface::media::{CHUNK_BYTES, ChunkWord};

use crate::damage::Class;
use crate::error::Error;
use crate::heap::HeapLayout;
use crate::heap::classes::{BITMAP_WORDS, CLASSES, capacity_of, class_named};
use crate::heap::spans::{Spans, Spread};
use crate::heap::tables::{Bitmaps, HeapTables};
use crate::mechanism::{Context, Protocol};
use crate::statistics::HeapState;

/// A run, as the index knows it.
struct Run {
    class: usize,
    /// Chunks that it has.
    chunks: u32,
    used: u32,
    /// Words below have no free bit.
    hint: usize,
    bitmap: [u64; BITMAP_WORDS],
}

impl Run {
    fn word(&self) -> ChunkWord {
        ChunkWord::Run { object_bytes: CLASSES[self.class], chunks: self.chunks }
    }

    fn capacity(&self) -> u32 {
        capacity_of(CLASSES[self.class], self.chunks)
    }

    fn take(&mut self) -> Option<u32> {
        let capacity = self.capacity();
        for word in self.hint..BITMAP_WORDS {
            let free = (!self.bitmap[word]).trailing_zeros();
            let unit = word as u32 * 64 + free;
            if unit >= capacity {
                return None;
            }
            if free < 64 {
                self.hint = word;
                self.bitmap[word] |= 1 << free;
                self.used += 1;
                return Some(unit);
            }
        }
        None
    }

    fn give(&mut self, unit: u32) {
        self.bitmap[unit as usize / 64] &= !(1 << (unit % 64));
        self.hint = self.hint.min(unit as usize / 64);
        self.used -= 1;
    }

    fn has(&self, unit: u32) -> bool {
        self.bitmap[unit as usize / 64] >> (unit % 64) & 1 == 1
    }
}

/// What an open transaction has done to the index, or will do to it at commit.
enum Step {
    /// Took an object of a run.
    Took { chunk: u32, unit: u32 },
    /// Made a run.
    MadeRun { chunk: u32 },
    /// Took whole chunks.
    TookChunks { chunk: u32, chunks: u32 },
    /// Will free an object of a run.
    Frees { chunk: u32, unit: u32 },
    /// Will free whole chunks.
    FreesChunks { chunk: u32, chunks: u32 },
    /// Will free a run that has become empty.
    FreesRun { chunk: u32 },
}

/// Where an object is.
#[derive(Clone, Copy)]
enum Object {
    Unit { chunk: u32, unit: u32, bytes: u64 },
    Chunks { chunk: u32, chunks: u32 },
}

/// The index of a pool's heap, and what the open transaction does to it.
pub(crate) struct Allocator {
    layout: HeapLayout,
    runs: HashMap<u32, Run>,
    /// The other chunks of runs, each with the first one.
    inner: HashMap<u32, u32>,
    /// First chunk to chunks of an object that has whole ones.
    large: BTreeMap<u32, u32>,
    /// Runs with room, by class.
    partial: [BTreeSet<u32>; CLASSES.len()],
    /// Free chunks: first to number, joined.
    spans: Spans,
    /// How new chunks are spread over the members of a striped pool.
    spread: Option<Spread>,
    steps: Vec<Step>,
    /// Objects that the open transaction has freed.
    freed: HashSet<u64>,
}

/// Access to the pool through the open transaction.
pub(crate) struct Session<'a> {
    pub cx: &'a mut Context,
    pub protocol: &'a mut dyn Protocol,
}

impl Session<'_> {
    fn load(&mut self, offset: u64) -> Result<u64, Error> {
        let mut bytes = [0; 8];
        self.protocol.read(self.cx, offset, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn store(&mut self, offset: u64, word: u64) -> Result<(), Error> {
        self.protocol.write(self.cx, offset, &word.to_le_bytes())
    }
}

impl Allocator {
    /// Builds the index from a recovered pool, checking what it reads.
    pub fn load(cx: &mut Context, protocol: &mut dyn Protocol) -> Result<Allocator, Error> {
        let layout = HeapLayout::of(&cx.head);
        let mut allocator = Allocator {
            layout,
            runs: HashMap::new(),
            inner: HashMap::new(),
            large: BTreeMap::new(),
            partial: std::array::from_fn(|_| BTreeSet::new()),
            spans: Spans::default(),
            spread: Spread::of(&cx.head),
            steps: Vec::new(),
            freed: HashSet::new(),
        };
        let tables = HeapTables::load(
            layout,
            Bitmaps::OfRuns,
            |range| vec![range],
            |offset, bytes| protocol.read(cx, offset, bytes),
        )?;
        let mut chunk = 0;
        while u64::from(chunk) < layout.chunks {
            let (word, chunks) = tables.sound(chunk)?;
            match word {
                ChunkWord::Run { object_bytes, .. } if tables.bits(chunk) > 0 => {
                    let class = class_named(object_bytes);
                    let run = Run { class, chunks, used: tables.bits(chunk), hint: 0, bitmap: *tables.bitmap(chunk) };
                    if run.used < run.capacity() {
                        allocator.partial[class].insert(chunk);
                    }
                    allocator.insert_run(chunk, run);
                }
                ChunkWord::Large { .. } => {
                    allocator.large.insert(chunk, chunks);
                }
                ChunkWord::Tables { .. } => {}
                _ => allocator.spans.add(chunk, 1),
            }
            chunk += chunks;
        }
        Ok(allocator)
    }

    fn insert_run(&mut self, chunk: u32, run: Run) {
        self.inner.extend((chunk + 1..chunk + run.chunks).map(|inner| (inner, chunk)));
        self.runs.insert(chunk, run);
    }

    /// Where the heap's parts are.
    pub fn layout(&self) -> &HeapLayout {
        &self.layout
    }

    /// Offsets that programs may use.
    pub fn range(&self) -> Range<u64> {
        self.layout.range()
    }

    /// Free bytes: in free chunks, and in runs with room.
    pub fn free_bytes(&self) -> u64 {
        let chunks = self.spans.chunks() * CHUNK_BYTES;
        let units = |chunk: &u32| {
            let run = &self.runs[chunk];
            u64::from(run.capacity() - run.used) * u64::from(CLASSES[run.class])
        };
        chunks + self.partial.iter().flatten().map(units).sum::<u64>()
    }

    /// What there is.
    pub fn state(&self) -> HeapState {
        let mut next = 0;
        HeapState::of(std::iter::from_fn(|| {
            let chunk = next;
            next += self.large.get(&chunk).or(self.runs.get(&chunk).map(|run| &run.chunks)).copied().unwrap_or(1);
            let (word, used) = match (self.large.get(&chunk), self.runs.get(&chunk)) {
                (Some(&chunks), _) => (ChunkWord::Large { chunks }, 0),
                (None, Some(run)) => (run.word(), run.used),
                (None, None) => (ChunkWord::Free, 0),
            };
            (u64::from(chunk) < self.layout.chunks).then_some((word, used))
        }))
    }

    /// Allocated objects: offset and usable bytes, rising.
    pub fn objects(&self) -> Vec<(u64, u64)> {
        let mut objects: Vec<(u64, u64)> = self
            .large
            .iter()
            .map(|(&chunk, &chunks)| (self.layout.chunk(chunk), u64::from(chunks) * CHUNK_BYTES))
            .collect();
        for (&chunk, run) in &self.runs {
            let bytes = u64::from(CLASSES[run.class]);
            let units = (0..run.capacity()).filter(|&u| run.has(u));
            objects.extend(units.map(|u| (self.layout.chunk(chunk) + u64::from(u) * bytes, bytes)));
        }
        objects.sort_unstable();
        objects
    }

    /// Allocates; gives the offset and the usable bytes.
    ///
    /// # Errors
    /// [`Error::ZeroSize`] and [`Error::Full`] leave everything as it was. After any other the transaction must be aborted.
    pub fn alloc(&mut self, session: &mut Session<'_>, bytes: u64) -> Result<(u64, u64), Error> {
        if bytes == 0 {
            return Err(Error::ZeroSize { what: "an allocation" });
        }
        match self.layout.classes.class_of(bytes) {
            Some(class) => self.alloc_unit(session, class, bytes),
            None => self.alloc_chunks(session, bytes),
        }
    }

    fn full(&self, requested: u64) -> Error {
        Error::Full { requested, free: self.free_bytes() }
    }

    fn alloc_unit(&mut self, session: &mut Session<'_>, class: usize, bytes: u64) -> Result<(u64, u64), Error> {
        let chunk = match self.partial[class].first() {
            Some(&chunk) => chunk,
            None => self.make_run(session, class, bytes)?,
        };
        let run = self.runs.get_mut(&chunk).expect("a chunk with room is a run");
        let unit = run.take().expect("a run with room has a free object");
        if run.used == run.capacity() {
            self.partial[class].remove(&chunk);
        }
        self.steps.push(Step::Took { chunk, unit });
        let (place, bit) = self.layout.bit(chunk, unit);
        self.change_bits(session, place, |bits| bits | bit)?;
        let bytes = u64::from(CLASSES[class]);
        Ok((self.layout.chunk(chunk) + u64::from(unit) * bytes, bytes))
    }

    /// Changes bits of a word of a bitmap: of the pool's, not the index's, because objects that this transaction freed are free
    /// there already.
    fn change_bits(&self, session: &mut Session<'_>, place: u64, change: impl FnOnce(u64) -> u64) -> Result<(), Error> {
        let form = self.layout.form;
        let bits = form.decode(session.load(place)?).ok_or_else(|| Class::BitmapWord.at(place))?;
        session.store(place, form.encode(change(bits)))
    }

    fn make_run(&mut self, session: &mut Session<'_>, class: usize, bytes: u64) -> Result<u32, Error> {
        // The shortest ones: this allocator is that of small pools.
        let chunks = self.layout.classes.chunks_of_run(class, 0);
        let chunk = self.take_chunks(chunks).ok_or_else(|| self.full(bytes))?;
        let run = Run { class, chunks, used: 0, hint: 0, bitmap: [0; BITMAP_WORDS] };
        let word = run.word();
        self.insert_run(chunk, run);
        self.partial[class].insert(chunk);
        self.steps.push(Step::MadeRun { chunk });
        self.store_word(session, chunk, word)?;
        Ok(chunk)
    }

    fn store_word(&self, session: &mut Session<'_>, chunk: u32, word: ChunkWord) -> Result<(), Error> {
        session.store(self.layout.word(chunk), self.layout.form.encode_chunk(word))
    }

    /// Takes free chunks: of a striped pool on the member whose turn it is, if that has them.
    fn take_chunks(&mut self, chunks: u32) -> Option<u32> {
        let turn = self.spread.as_mut().map(|spread| spread.stripes(&self.layout));
        let in_turn = turn.and_then(|mut stripes| stripes.find_map(|range| self.spans.take_in(range, chunks)));
        in_turn.or_else(|| self.spans.take(chunks))
    }

    fn alloc_chunks(&mut self, session: &mut Session<'_>, bytes: u64) -> Result<(u64, u64), Error> {
        let chunks = u32::try_from(bytes.div_ceil(CHUNK_BYTES)).map_err(|_| self.full(bytes))?;
        let chunk = self.take_chunks(chunks).ok_or_else(|| self.full(bytes))?;
        self.large.insert(chunk, chunks);
        self.steps.push(Step::TookChunks { chunk, chunks });
        self.store_word(session, chunk, ChunkWord::Large { chunks })?;
        Ok((self.layout.chunk(chunk), u64::from(chunks) * CHUNK_BYTES))
    }

    /// The allocated object that starts at an offset.
    fn find(&self, offset: u64) -> Result<Object, Error> {
        let error = Error::NotAllocated { offset };
        if !self.range().contains(&offset) || self.freed.contains(&offset) {
            return Err(error);
        }
        let at = ((offset - self.layout.first) / CHUNK_BYTES) as u32;
        let chunk = self.inner.get(&at).copied().unwrap_or(at);
        let inside = offset - self.layout.chunk(chunk);
        if let Some(&chunks) = self.large.get(&chunk) {
            return if inside == 0 { Ok(Object::Chunks { chunk, chunks }) } else { Err(error) };
        }
        let Some(run) = self.runs.get(&chunk) else { return Err(error) };
        let bytes = u64::from(CLASSES[run.class]);
        let unit = (inside / bytes) as u32;
        if !inside.is_multiple_of(bytes) || unit >= run.capacity() || !run.has(unit) {
            return Err(error);
        }
        Ok(Object::Unit { chunk, unit, bytes })
    }

    /// Usable bytes of an object.
    pub fn size_of(&self, offset: u64) -> Result<u64, Error> {
        Ok(match self.find(offset)? {
            Object::Unit { bytes, .. } => bytes,
            Object::Chunks { chunks, .. } => u64::from(chunks) * CHUNK_BYTES,
        })
    }

    /// Frees.
    ///
    /// # Errors
    /// [`Error::NotAllocated`] leaves everything as it was. After any other the transaction must be aborted.
    pub fn free(&mut self, session: &mut Session<'_>, offset: u64) -> Result<(), Error> {
        match self.find(offset)? {
            Object::Unit { chunk, unit, .. } => {
                self.freed.insert(offset);
                self.steps.push(Step::Frees { chunk, unit });
                let (place, bit) = self.layout.bit(chunk, unit);
                self.change_bits(session, place, |bits| bits & !bit)
            }
            Object::Chunks { chunk, chunks } => {
                self.freed.insert(offset);
                self.steps.push(Step::FreesChunks { chunk, chunks });
                self.store_word(session, chunk, ChunkWord::Free)
            }
        }
    }

    /// The open transaction is about to commit: chunks that it emptied become free in the pool.
    pub fn prepare(&mut self, session: &mut Session<'_>) -> Result<(), Error> {
        let mut left: BTreeMap<u32, u32> = BTreeMap::new();
        for step in &self.steps {
            if let Step::Frees { chunk, .. } = *step {
                *left.entry(chunk).or_insert(self.runs[&chunk].used) -= 1;
            }
        }
        for (chunk, left) in left {
            if left == 0 {
                self.steps.push(Step::FreesRun { chunk });
                self.store_word(session, chunk, ChunkWord::Free)?;
            }
        }
        Ok(())
    }

    /// The open transaction has committed.
    pub fn commit(&mut self) {
        for step in std::mem::take(&mut self.steps) {
            match step {
                Step::Took { .. } | Step::MadeRun { .. } | Step::TookChunks { .. } => {}
                Step::Frees { chunk, unit } => self.give(chunk, unit),
                Step::FreesRun { chunk } => self.drop_run(chunk),
                Step::FreesChunks { chunk, chunks } => {
                    self.large.remove(&chunk);
                    self.spans.add(chunk, chunks);
                }
            }
        }
        self.freed.clear();
    }

    /// The open transaction was taken back.
    pub fn abort(&mut self) {
        for step in std::mem::take(&mut self.steps).into_iter().rev() {
            match step {
                Step::Took { chunk, unit } => self.give(chunk, unit),
                Step::MadeRun { chunk } => self.drop_run(chunk),
                Step::TookChunks { chunk, chunks } => {
                    self.large.remove(&chunk);
                    self.spans.add(chunk, chunks);
                }
                Step::Frees { .. } | Step::FreesRun { .. } | Step::FreesChunks { .. } => {}
            }
        }
        self.freed.clear();
    }

    fn give(&mut self, chunk: u32, unit: u32) {
        let run = self.runs.get_mut(&chunk).expect("an object is in a run");
        run.give(unit);
        self.partial[run.class].insert(chunk);
    }

    fn drop_run(&mut self, chunk: u32) {
        let run = self.runs.remove(&chunk).expect("a run is known by its chunk");
        assert_eq!(run.used, 0, "only an empty run becomes free");
        (chunk + 1..chunk + run.chunks).for_each(|inner| {
            self.inner.remove(&inner);
        });
        self.partial[run.class].remove(&chunk);
        self.spans.add(chunk, run.chunks);
    }

    /// Compares the index with the pool.
    pub fn check(&self, cx: &mut Context, protocol: &mut dyn Protocol) -> Result<(), Error> {
        let pool = Allocator::load(cx, protocol)?;
        let differs = pool.objects() != self.objects() || pool.spans != self.spans;
        if differs {
            return Err(Error::Corrupt { what: "the heap differs from its index", offset: self.layout.word(0) });
        }
        Ok(())
    }
}
