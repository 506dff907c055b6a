//! The leanest undo logging in place that a processor can do by itself: the strongest baseline
//! without a card.
//!
//! A store to a range that the transaction has not logged appends one entry to the log - the old
//! bytes with what they are of, from one line on - writes it back, fences, and stores in place.
//! There is no write set: reads go to the memory. The commit writes back what was stored, fences,
//! and stores the transaction's number in one word. A recovery restores the entries of the
//! transaction behind the last number, the newest first.
//!
//! | at | lies |
//! |---|---|
//! | page 0 | nothing of this: it may be somebody else's head |
//! | [`COMMITTED`] | number of the last transaction that counts |
//! | [`ROOT`] | the root |
//! | [`LOG`] | the log: entries of one transaction, from its start on |
//! | behind it | which 16 bytes of the heap are taken, and at which an object starts: a pair of words for each KiB |
//! | behind it | the heap |
//!
//! The tables of the heap are changed by the commit, all under one entry fence, so that what was
//! allocated and what was stored stand and fall together. There is no room for what a product needs
//! besides: one thread, a log of a fixed size, places that are used again only for objects of the
//! same size.

use std::cell::RefCell;
use std::ops::Range;

use nearpm::Error;
use nearpm::memory::{Memory, Work};

use super::places::Places;
use super::ranges::Ranges;
use super::{Store, Transaction};

const LINE: u64 = 64;
/// The number of the last transaction that counts.
const COMMITTED: u64 = 4096;
/// The root.
const ROOT: u64 = COMMITTED + LINE;
/// The log.
const LOG: u64 = 8192;
/// Bytes of an entry before its data: number of the transaction, offset, length, checksum.
const HEAD: usize = 24;
/// Bytes of the heap that a bit stands for.
const GRAIN: u64 = 16;
/// Bytes of the heap that a pair of words stands for, and bytes of the pair.
const GROUP: u64 = 64 * GRAIN;
const PAIR: u64 = 16;

/// What a store counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeanCounts {
    /// Entries that were logged.
    pub entries: u64,
    /// Bytes in them.
    pub bytes_logged: u64,
    /// Fences, those that wait for durability included.
    pub fences: u64,
    /// Lines whose write-back was asked for.
    pub lines_written_back: u64,
}

/// Memory with undo logging in place.
pub struct Lean<M> {
    memory: M,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    places: Places,
    log: Range<u64>,
    heap: Range<u64>,
    /// Number of the transaction under way, or of the next one.
    number: u64,
    /// End of its log.
    tail: u64,
    /// What was logged, or belongs to objects that it has allocated.
    known: Ranges,
    /// What was stored to.
    stored: Ranges,
    allocated: Vec<(u64, u64)>,
    freed: Vec<(u64, u64)>,
    /// Its entries: where, and of which range.
    entries: Vec<(u64, Range<u64>)>,
    entry: Vec<u8>,
    counts: LeanCounts,
}

impl<M: Memory> Lean<M> {
    /// Empty memory, with so many bytes of log.
    ///
    /// # Errors
    /// What the memory refuses.
    pub fn create(memory: M, log_bytes: u64) -> Result<Lean<M>, Error> {
        let heap = Lean::<M>::heap(&memory, log_bytes).start;
        let zeros = [0; 4096];
        for at in (COMMITTED..heap).step_by(zeros.len()) {
            let bytes = (heap - at).min(zeros.len() as u64);
            memory.store(at, &zeros[..bytes as usize]);
            memory.write_back(at, bytes);
        }
        memory.drain()?;
        Lean::open(memory, log_bytes)
    }

    /// What [`Lean::create`] has made and transactions have changed: what was under way is taken
    /// back.
    ///
    /// # Errors
    /// What the memory refuses.
    pub fn open(memory: M, log_bytes: u64) -> Result<Lean<M>, Error> {
        let (log, heap) = (LOG..LOG + log_bytes, Lean::<M>::heap(&memory, log_bytes));
        let number = word(&memory, COMMITTED) + 1;
        let (places, tail) = (Places::from(heap.start), log.start);
        let mut state = State { places, tail, log, heap, number, ..State::default() };
        state.find_entries(&memory);
        if !state.entries.is_empty() {
            state.take_back(&memory)?;
        }
        state.find_objects(&memory);
        Ok(Lean { memory, state: RefCell::new(state) })
    }

    /// The memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Gives the memory back.
    pub fn into_memory(self) -> M {
        self.memory
    }

    /// What was counted since it was opened.
    pub fn counts(&self) -> LeanCounts {
        self.state.borrow().counts
    }

    fn heap(memory: &M, log_bytes: u64) -> Range<u64> {
        let tables = LOG + log_bytes;
        let groups = (memory.bytes() - tables) / (GROUP + PAIR);
        let start = (tables + groups * PAIR).next_multiple_of(4096);
        start..memory.bytes().min(start + groups * GROUP)
    }
}

fn word(memory: &dyn Memory, at: u64) -> u64 {
    let mut bytes = [0; 8];
    memory.load(at, &mut bytes);
    u64::from_le_bytes(bytes)
}

/// The head of an entry, with the checksum of all of it.
fn head(number: u64, range: &Range<u64>, data: &[u8]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&number.to_le_bytes());
    head[8..16].copy_from_slice(&range.start.to_le_bytes());
    head[16..20].copy_from_slice(&((range.end - range.start) as u32).to_le_bytes());
    let sum = crc32c::crc32c_append(crc32c::crc32c(&head[..20]), data);
    head[20..].copy_from_slice(&sum.to_le_bytes());
    head
}

impl State {
    /// Bytes that an entry with so many bytes of data takes.
    fn entry_bytes(bytes: u64) -> u64 {
        (HEAD as u64 + bytes).next_multiple_of(LINE)
    }

    fn write_back(&mut self, memory: &dyn Memory, range: &Range<u64>) {
        self.counts.lines_written_back += range.end.div_ceil(LINE) - range.start / LINE;
        memory.write_back(range.start, range.end - range.start);
    }

    /// Appends an entry of a range; not durable before a fence.
    fn append(&mut self, memory: &dyn Memory, range: Range<u64>) -> Result<(), Error> {
        let bytes = range.end - range.start;
        let end = self.tail + State::entry_bytes(bytes);
        if end > self.log.end {
            return Err(Error::Full { requested: State::entry_bytes(bytes), free: self.log.end - self.tail });
        }
        let mut entry = std::mem::take(&mut self.entry);
        entry.resize(HEAD + bytes as usize, 0);
        memory.load(range.start, &mut entry[HEAD..]);
        memory.charge(Work::Checksum(20 + bytes));
        let head = head(self.number, &range, &entry[HEAD..]);
        entry[..HEAD].copy_from_slice(&head);
        entry.resize((end - self.tail) as usize, 0);
        memory.store(self.tail, &entry);
        self.entry = entry;
        let place = self.tail..end;
        self.write_back(memory, &place);
        self.counts.entries += 1;
        self.counts.bytes_logged += bytes;
        self.entries.push((self.tail, range));
        self.tail = end;
        Ok(())
    }

    fn fence(&mut self, memory: &dyn Memory) -> Result<(), Error> {
        self.counts.fences += 1;
        memory.fence()
    }

    /// Logs what of a range is not known, durable before anything is stored there.
    fn add(&mut self, memory: &dyn Memory, range: Range<u64>) -> Result<(), Error> {
        let mut gaps = Vec::new();
        self.known.gaps(&range, |gap| gaps.push(gap));
        if gaps.is_empty() {
            return Ok(());
        }
        for gap in gaps {
            self.append(memory, gap)?;
        }
        self.fence(memory)?;
        self.known.insert(range);
        Ok(())
    }

    fn store(&mut self, memory: &dyn Memory, at: u64, data: &[u8]) {
        memory.store(at, data);
        self.stored.insert(at..at + data.len() as u64);
    }

    fn check(&self, at: u64, bytes: u64) -> Result<(), Error> {
        let is_inside = at >= self.heap.start && at.checked_add(bytes).is_some_and(|end| end <= self.heap.end);
        if is_inside { Ok(()) } else { Err(Error::OutOfRange { offset: at, length: bytes, heap: self.heap.clone() }) }
    }

    /// Bits of an object in the pair of words of each group that it lies in: taken, starts.
    fn bits(&self, object: u64, bytes: u64) -> impl Iterator<Item = (u64, [u64; 2])> + use<> {
        let table = self.log.end;
        let first = (object - self.heap.start) / GRAIN;
        let end = first + bytes.div_ceil(GRAIN);
        (first / 64..end.div_ceil(64)).map(move |group| {
            let (from, to) = (first.max(group * 64) - group * 64, end.min(group * 64 + 64) - group * 64);
            let taken = u64::MAX >> (64 - (to - from)) << from;
            let starts = if first >= group * 64 { 1 << from } else { 0 };
            (table + group * PAIR, [taken, starts])
        })
    }

    /// Changes the tables by what was allocated and freed, all logged under one fence.
    fn change_tables(&mut self, memory: &dyn Memory) -> Result<(), Error> {
        let mut pairs: Vec<(u64, [u64; 2])> = Vec::new();
        for (objects, is_taken) in
            [(std::mem::take(&mut self.freed), false), (std::mem::take(&mut self.allocated), true)]
        {
            for &(object, bytes) in &objects {
                for (at, bits) in self.bits(object, bytes) {
                    let found = pairs.iter().position(|(pair, _)| *pair == at);
                    let slot = found.unwrap_or_else(|| {
                        pairs.push((at, [word(memory, at), word(memory, at + 8)]));
                        pairs.len() - 1
                    });
                    for (word, bits) in pairs[slot].1.iter_mut().zip(bits) {
                        *word = if is_taken { *word | bits } else { *word & !bits };
                    }
                }
            }
            if is_taken { self.allocated = objects } else { self.freed = objects }
        }
        if pairs.is_empty() {
            return Ok(());
        }
        for (at, _) in &pairs {
            self.append(memory, *at..*at + PAIR)?;
        }
        self.fence(memory)?;
        for (at, [taken, starts]) in pairs {
            let mut bytes = [0; PAIR as usize];
            bytes[..8].copy_from_slice(&taken.to_le_bytes());
            bytes[8..].copy_from_slice(&starts.to_le_bytes());
            self.store(memory, at, &bytes);
        }
        Ok(())
    }

    /// What was stored is durable, then the number of the transaction.
    fn finish(&mut self, memory: &dyn Memory) -> Result<(), Error> {
        let stored = std::mem::take(&mut self.stored);
        let mut line = 0;
        for range in stored.iter() {
            // Two ranges may have a line in common.
            let range = range.start.max(line)..range.end.next_multiple_of(LINE);
            if range.start < range.end {
                self.write_back(memory, &range);
                line = range.end;
            }
        }
        self.stored = stored;
        self.fence(memory)?;
        memory.store(COMMITTED, &self.number.to_le_bytes());
        self.write_back(memory, &(COMMITTED..COMMITTED + 8));
        self.counts.fences += 1;
        memory.drain()?;
        self.number += 1;
        self.tail = self.log.start;
        self.entries.clear();
        self.known.clear();
        self.stored.clear();
        Ok(())
    }

    fn commit(&mut self, memory: &dyn Memory) -> Result<(), Error> {
        self.change_tables(memory)?;
        if !(self.stored.is_empty() && self.entries.is_empty()) {
            self.finish(memory)?;
        }
        for (object, bytes) in self.freed.drain(..) {
            self.places.put(object, bytes);
        }
        self.allocated.clear();
        self.known.clear();
        Ok(())
    }

    /// Restores the entries, the newest first; then they count no more.
    fn take_back(&mut self, memory: &dyn Memory) -> Result<(), Error> {
        let entries = std::mem::take(&mut self.entries);
        let mut data = Vec::new();
        for (at, range) in entries.iter().rev() {
            data.resize((range.end - range.start) as usize, 0);
            memory.load(at + HEAD as u64, &mut data);
            self.store(memory, range.start, &data);
        }
        self.finish(memory)
    }

    fn abort(&mut self, memory: &dyn Memory) -> Result<(), Error> {
        let taken_back =
            if self.stored.is_empty() && self.entries.is_empty() { Ok(()) } else { self.take_back(memory) };
        for (object, bytes) in self.allocated.drain(..) {
            if self.places.remove(object).is_ok() {
                self.places.put(object, bytes);
            }
        }
        for (object, bytes) in self.freed.drain(..) {
            self.places.keep(object, bytes);
        }
        self.known.clear();
        taken_back
    }

    /// The entries of the transaction that was under way, to the first that was not durable.
    fn find_entries(&mut self, memory: &dyn Memory) {
        let mut data = Vec::new();
        while self.tail + LINE <= self.log.end {
            let mut found = [0; HEAD];
            memory.load(self.tail, &mut found);
            let of = |at: usize| u64::from_le_bytes(found[at..at + 8].try_into().expect("eight bytes"));
            let (start, bytes) = (of(8), of(16) as u32 as u64);
            let end = start.saturating_add(bytes);
            if end > memory.bytes() || self.tail + State::entry_bytes(bytes) > self.log.end {
                return;
            }
            data.resize(bytes as usize, 0);
            memory.load(self.tail + HEAD as u64, &mut data);
            if found != head(self.number, &(start..end), &data) {
                return;
            }
            self.entries.push((self.tail, start..end));
            self.tail += State::entry_bytes(bytes);
        }
    }

    /// The objects that the tables tell of; what lies between them may be taken again for objects
    /// of just that size.
    fn find_objects(&mut self, memory: &dyn Memory) {
        let groups = (self.heap.end - self.heap.start) / GROUP;
        let (heap, table) = (self.heap.start, self.log.end);
        // Where what is read now began, and whether it is an object.
        let (mut since, mut is_object) = (heap, false);
        let mut found = Vec::new();
        for group in 0..groups {
            let [taken, starts] = [0, 8].map(|at| word(memory, table + group * PAIR + at));
            if !is_object && taken == 0 {
                continue;
            }
            for bit in 0..64 {
                let at = heap + group * GROUP + bit * GRAIN;
                let [taken, starts] = [taken, starts].map(|word| word >> bit & 1 == 1);
                if starts || taken != is_object {
                    found.push((since, at, is_object));
                    (since, is_object) = (at, taken);
                }
            }
        }
        if is_object {
            found.push((since, heap + groups * GROUP, true));
        }
        for (from, to, is_object) in found.into_iter().filter(|(from, to, _)| from < to) {
            if is_object { self.places.keep(from, to - from) } else { self.places.put(from, to - from) }
        }
    }
}

impl<M: Memory> Store for Lean<M> {
    fn transaction(&self, body: &mut dyn FnMut(&mut dyn Transaction) -> Result<(), Error>) -> Result<(), Error> {
        let mut state = self.state.borrow_mut();
        let done = body(&mut LeanTransaction { memory: &self.memory, state: &mut state });
        let done = done.and_then(|()| state.commit(&self.memory));
        if done.is_err() {
            state.abort(&self.memory)?;
        }
        done
    }
}

struct LeanTransaction<'l> {
    memory: &'l dyn Memory,
    state: &'l mut State,
}

impl Transaction for LeanTransaction<'_> {
    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.state.check(offset, data.len() as u64)?;
        self.memory.load(offset, data);
        Ok(())
    }
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.declare(offset, data.len() as u64)?;
        self.state.store(self.memory, offset, data);
        Ok(())
    }
    fn declare(&mut self, offset: u64, bytes: u64) -> Result<(), Error> {
        self.state.check(offset, bytes)?;
        self.state.add(self.memory, offset..offset + bytes)
    }
    fn alloc(&mut self, bytes: u64) -> Result<u64, Error> {
        let bytes = bytes.next_multiple_of(GRAIN);
        let object = self.state.places.take(bytes, self.state.heap.end)?;
        self.state.allocated.push((object, bytes));
        // Nobody refers to it before the commit.
        self.state.known.insert(object..object + bytes);
        // It will be stored to: lines of which others have a part are fetched meanwhile.
        for line in [object, object + bytes].into_iter().filter(|at| !at.is_multiple_of(LINE)) {
            self.memory.prefetch(line / LINE * LINE, LINE);
        }
        Ok(object)
    }
    fn free(&mut self, offset: u64) -> Result<(), Error> {
        let State { places, allocated, freed, .. } = &mut *self.state;
        let bytes = places.remove(offset)?;
        match allocated.iter().rposition(|(object, _)| *object == offset) {
            // It was never there.
            Some(at) => {
                allocated.swap_remove(at);
                places.put(offset, bytes);
            }
            // Its place stays taken until the commit.
            None => freed.push((offset, bytes)),
        }
        Ok(())
    }
    fn root(&mut self) -> Result<u64, Error> {
        Ok(word(self.memory, ROOT))
    }
    fn set_root(&mut self, offset: u64) -> Result<(), Error> {
        self.state.add(self.memory, ROOT..ROOT + 8)?;
        self.state.store(self.memory, ROOT, &offset.to_le_bytes());
        Ok(())
    }
}
