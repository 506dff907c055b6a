//! Memory that knows what could have persisted.
//!
//! **Fault model.** Every store goes to a cache line. A line reaches the durable image in three
//! ways only: it was written back and a fence of the same processor followed; it was evicted at a
//! moment of the cache's choosing; or the power fails, and then each 8-byte word of a line that is
//! dirty, or written back without a fence yet, holds either its durable, its written-back or its
//! current value. Choices come from a seed, so that a run repeats to the byte.
//!
//! A program that works in place stores through [`Memory::address`], unseen: from then on a line
//! that differs from what is durable is looked for whenever it matters, at an eviction, a
//! write-back of it, and a cut.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nearpm_interface::geometry::{LINE, LINE_U64};

use super::{Memory, View, check_range};
use crate::error::Error;

/// Bytes that are compared at once.
const PAGE: usize = 4096;

/// What a probe was called for: it sees memory just before this takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A store.
    Store,
    /// A write-back.
    WriteBack,
    /// A fence.
    Fence,
}

/// What survives a power cut.
pub type Image = Vec<u8>;

/// Called at each event with its number and a way to ask what would survive a cut at this moment.
type Probe = Box<dyn FnMut(u64, Event, &mut dyn FnMut(u64) -> Image) + Send>;

/// Memory with a model of the processor's caches. Clones share the memory, so that a test keeps one
/// while a pool owns another.
#[derive(Clone)]
pub struct TestMemory {
    size: u64,
    state: Arc<Mutex<State>>,
    probe: Arc<Mutex<Option<Probe>>>,
}

struct State {
    /// What loads see.
    current: View,
    /// The address was given out: stores may come unseen.
    mapped: bool,
    /// A fence is that of all processors.
    one_domain: bool,
    /// What a power cut leaves of lines that are clean.
    durable: Vec<u8>,
    /// Lines whose current bytes may differ from the durable ones; with what each processor wrote
    /// back and has not fenced.
    open: BTreeMap<u64, Pending>,
    events: u64,
    evict_one_in: u64,
    random: Random,
}

/// What awaits a fence, by processor.
type Pending = Vec<(u64, [u8; LINE])>;

thread_local!(static PROCESSOR: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });

/// The processor that the calling thread runs on: one of its own, unless a test said which.
fn processor() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 32);
    PROCESSOR.with(|processor| {
        if processor.get() == 0 {
            processor.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        processor.get()
    })
}

/// Moves the calling thread to a processor, 1 to 2^32 - 1.
pub fn run_on_processor(number: u32) {
    PROCESSOR.set(number.max(1).into());
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): small, and the same on every machine.
pub(super) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl State {
    fn current_line(&self, line: u64) -> [u8; LINE] {
        let mut bytes = [0; LINE];
        self.current.load(line * LINE_U64, &mut bytes);
        bytes
    }

    fn all(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.durable.len()];
        self.current.load(0, &mut bytes);
        bytes
    }

    /// Finds the lines that were stored to through the address.
    fn find_unseen_stores(&mut self) {
        if !self.mapped {
            return;
        }
        let mut now = [0; PAGE];
        for (page, durable) in self.durable.chunks(PAGE).enumerate() {
            let now = &mut now[..durable.len()];
            self.current.load((page * PAGE) as u64, now);
            if now == durable {
                continue;
            }
            for (line, (now, durable)) in now.chunks_exact(LINE).zip(durable.chunks_exact(LINE)).enumerate() {
                if now != durable {
                    self.open.entry((page * PAGE / LINE + line) as u64).or_default();
                }
            }
        }
    }

    fn persist(&mut self, line: u64, content: [u8; LINE]) {
        self.durable[line as usize * LINE..][..LINE].copy_from_slice(&content);
        if self.durable[line as usize * LINE..][..LINE] == self.current_line(line) {
            self.open.remove(&line);
        }
    }

    /// The cache may evict a line at any moment.
    fn maybe_evict(&mut self) {
        if self.evict_one_in == 0 || !self.random.next().is_multiple_of(self.evict_one_in) {
            return;
        }
        self.find_unseen_stores();
        if self.open.is_empty() {
            return;
        }
        let at = self.random.next() as usize % self.open.len();
        let line = *self.open.keys().nth(at).expect("the index is below the length");
        self.persist(line, self.current_line(line));
    }

    fn surviving(&self, seed: u64) -> Image {
        let mut random = Random(seed);
        let mut image = self.durable.clone();
        for (&line, pending) in &self.open {
            let current = self.current_line(line);
            // Mostly lines survive whole or not at all; then order shows best.
            let line_fate = random.next() % 4;
            for word in 0..LINE / 8 {
                let at = line as usize * LINE + word * 8;
                let fate = if line_fate == 3 { random.next() % 3 } else { line_fate };
                let source = match (fate, pending.is_empty()) {
                    (0, _) => continue,
                    (1, false) => &pending[random.next() as usize % pending.len()].1,
                    _ => &current,
                };
                image[at..at + 8].copy_from_slice(&source[word * 8..][..8]);
            }
        }
        image
    }
}

impl TestMemory {
    /// Zeroed memory of `bytes` bytes, a whole number of lines.
    pub fn new(bytes: usize) -> TestMemory {
        TestMemory::from_image(vec![0; bytes])
    }

    /// Memory that holds what survived, with nothing in the caches.
    ///
    /// # Panics
    /// If the image is not a whole number of lines.
    pub fn from_image(image: Image) -> TestMemory {
        assert_eq!(image.len() % LINE, 0, "memory is whole lines");
        let current = View::anonymous(image.len() as u64).expect("the system has memory for a test");
        current.store(0, &image);
        TestMemory {
            size: image.len() as u64,
            state: Arc::new(Mutex::new(State {
                current,
                mapped: false,
                one_domain: false,
                durable: image,
                open: BTreeMap::new(),
                events: 0,
                evict_one_in: 0,
                random: Random(1),
            })),
            probe: Arc::default(),
        }
    }

    /// Makes a fence that of all processors, as `msync` is.
    pub fn one_domain(self) -> TestMemory {
        self.lock().one_domain = true;
        self
    }

    /// Evicts a random dirty line at about one in `one_in` events; 0 never.
    pub fn evict(self, one_in: u64, seed: u64) -> TestMemory {
        let mut state = self.lock();
        state.evict_one_in = one_in;
        state.random = Random(seed);
        drop(state);
        self
    }

    /// What would survive a power cut now, by `seed`.
    pub fn surviving(&self, seed: u64) -> Image {
        let mut state = self.lock();
        state.find_unseen_stores();
        state.surviving(seed)
    }

    /// What would survive if every dirty line were lost.
    pub fn durable(&self) -> Image {
        self.lock().durable.clone()
    }

    /// What loads see.
    pub fn current(&self) -> Image {
        self.lock().all()
    }

    /// Stores, write-backs and fences so far.
    pub fn events(&self) -> u64 {
        self.lock().events
    }

    /// Lines that a power cut now would leave undefined.
    pub fn open_lines(&self) -> usize {
        let mut state = self.lock();
        state.find_unseen_stores();
        state.open.len()
    }

    /// Calls `probe` just before each store, write-back and fence, with the number of the event,
    /// its kind, and a way to ask what survives a cut at this moment by a seed. The probe must not
    /// touch this memory.
    pub fn probe(&self, probe: impl FnMut(u64, Event, &mut dyn FnMut(u64) -> Image) + Send + 'static) {
        *self.probe.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(probe));
    }

    /// Ends the calls of the probe.
    pub fn stop_probe(&self) {
        *self.probe.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn event(&self, event: Event) {
        let mut state = self.lock();
        state.events += 1;
        let number = state.events;
        state.maybe_evict();
        drop(state);
        if let Some(probe) = self.probe.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            probe(number, event, &mut |seed| self.surviving(seed));
        }
    }
}

impl Memory for TestMemory {
    fn bytes(&self) -> u64 {
        self.size
    }

    fn load(&self, offset: u64, data: &mut [u8]) {
        check_range(self.size, offset, data.len() as u64);
        self.lock().current.load(offset, data);
    }

    fn store(&self, offset: u64, data: &[u8]) {
        check_range(self.size, offset, data.len() as u64);
        self.event(Event::Store);
        let mut state = self.lock();
        state.current.store(offset, data);
        if !data.is_empty() {
            for line in offset / LINE_U64..(offset + data.len() as u64).div_ceil(LINE_U64) {
                state.open.entry(line).or_default();
            }
        }
    }

    fn write_back(&self, offset: u64, bytes: u64) {
        check_range(self.size, offset, bytes);
        self.event(Event::WriteBack);
        let mut state = self.lock();
        if bytes == 0 {
            return;
        }
        for line in offset / LINE_U64..(offset + bytes).div_ceil(LINE_U64) {
            let content = state.current_line(line);
            if state.mapped && content != state.durable[line as usize * LINE..][..LINE] {
                state.open.entry(line).or_default();
            }
            if let Some(pending) = state.open.get_mut(&line) {
                pending.retain(|(by, _)| *by != processor());
                pending.push((processor(), content));
            }
        }
    }

    fn fence(&self) -> Result<(), Error> {
        self.event(Event::Fence);
        let mut state = self.lock();
        let (here, all) = (processor(), state.one_domain);
        let mut written = Vec::new();
        for (&line, pending) in &mut state.open {
            written.extend(pending.extract_if(.., |(by, _)| all || *by == here).map(|(_, content)| (line, content)));
        }
        for (line, content) in written {
            state.persist(line, content);
        }
        Ok(())
    }

    /// The caches are coherent, and there is nothing to drop: as on a mapped file nothing is
    /// written back.
    fn invalidate(&self, offset: u64, bytes: u64) {
        check_range(self.size, offset, bytes);
    }

    fn drains_for_all(&self) -> bool {
        self.lock().one_domain
    }

    fn address(&self) -> Option<*mut u8> {
        let mut state = self.lock();
        state.mapped = true;
        Some(state.current.base())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_write_back_and_a_fence_make_a_store_certain() {
        let memory = TestMemory::new(128);
        memory.store(0, &[1; 8]);
        assert_eq!(memory.durable()[0], 0);
        memory.fence().unwrap();
        assert_eq!(memory.durable()[0], 0, "a fence without a write-back persists nothing");
        memory.write_back(0, 8);
        assert_eq!(memory.durable()[0], 0, "nor does a write-back without a fence");
        memory.store(0, &[2; 8]);
        memory.fence().unwrap();
        assert_eq!(memory.durable()[0], 1, "what was written back is what was there then");
        let survivors: std::collections::BTreeSet<u8> = (0..64).map(|seed| memory.surviving(seed)[0]).collect();
        assert_eq!(survivors, [1, 2].into());
    }

    #[test]
    fn eviction_persists_without_a_fence() {
        let memory = TestMemory::new(64).evict(1, 5);
        memory.store(0, &[1; 8]);
        memory.store(8, &[2; 8]);
        assert_eq!(memory.durable()[0], 1);
    }
}
