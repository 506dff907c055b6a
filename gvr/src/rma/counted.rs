//! Any backend, with counts of what a rank's own handle does.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;

use super::{Get, Helper, Kind, Op, Place, Rma, Work};
use crate::error::Result;

/// Counts of operations on windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Bytes and words that are written, and elements that are accumulated: calls.
    pub writes: u64,
    /// Bytes that are read: calls.
    pub gets: u64,
    /// Words that are read atomically: calls.
    pub loads: u64,
    /// Additions, swaps and *or*s whose result is waited for.
    pub atomics: u64,
    /// Waits for what was written.
    pub flushes: u64,
    /// Bytes that all of these moved.
    pub bytes: u64,
}

impl Operations {
    /// Operations that a rank waits for before it goes on.
    pub fn waits(&self) -> u64 {
        self.gets + self.loads + self.atomics + self.flushes
    }
}

/// What a rank did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// On windows of other ranks.
    pub far: Operations,
    /// On its own.
    pub own: Operations,
    /// Meetings with all ranks.
    pub meetings: u64,
}

/// A rank's handle of a backend that counts. What its helpers do is not counted.
pub struct Counted {
    rma: Rc<dyn Rma>,
    counts: Rc<Cell<Counts>>,
}

impl Counted {
    /// Counts on top of a handle; the cell has the counts so far.
    pub fn new(rma: Rc<dyn Rma>) -> (Counted, Rc<Cell<Counts>>) {
        let counts = Rc::<Cell<Counts>>::default();
        (Counted { rma, counts: Rc::clone(&counts) }, counts)
    }

    fn count(&self, rank: usize, bytes: usize, of: impl FnOnce(&mut Operations) -> &mut u64) {
        let mut counts = self.counts.get();
        let operations = if rank == self.rma.rank() { &mut counts.own } else { &mut counts.far };
        *of(operations) += 1;
        operations.bytes += bytes as u64;
        self.counts.set(counts);
    }

    fn meet(&self) {
        let mut counts = self.counts.get();
        counts.meetings += 1;
        self.counts.set(counts);
    }
}

impl Rma for Counted {
    fn rank(&self) -> usize {
        self.rma.rank()
    }

    fn ranks(&self) -> usize {
        self.rma.ranks()
    }

    fn alloc(&self, bytes: u64) -> Result<u64> {
        self.rma.alloc(bytes)
    }

    fn expect(&self, offset: u64, bytes: u64) {
        self.rma.expect(offset, bytes);
    }

    fn free(&self, offset: u64, bytes: u64) -> Result<()> {
        self.rma.free(offset, bytes)
    }

    fn put(&self, to: Place, data: &[u8]) -> Result<()> {
        self.count(to.rank, data.len(), |operations| &mut operations.writes);
        self.rma.put(to, data)
    }

    fn begin_get(&self, from: Place, bytes: usize) -> Result<Get> {
        self.count(from.rank, bytes, |operations| &mut operations.gets);
        self.rma.begin_get(from, bytes)
    }

    fn end_get(&self, get: Get, data: &mut [u8]) -> Result<()> {
        self.rma.end_get(get, data)
    }

    fn drop_get(&self, get: Get) -> Result<()> {
        self.rma.drop_get(get)
    }

    fn fetch_add(&self, at: Place, add: u64) -> Result<u64> {
        self.count(at.rank, 8, |operations| &mut operations.atomics);
        self.rma.fetch_add(at, add)
    }

    fn cas(&self, at: Place, expected: u64, new: u64) -> Result<u64> {
        self.count(at.rank, 8, |operations| &mut operations.atomics);
        self.rma.cas(at, expected, new)
    }

    fn bor_many(&self, at: Place, bits: &[u64], before: &mut [u64]) -> Result<()> {
        self.count(at.rank, 8 * bits.len(), |operations| &mut operations.atomics);
        self.rma.bor_many(at, bits, before)
    }

    fn load_many(&self, at: Place, words: &mut [u64]) -> Result<()> {
        self.count(at.rank, 8 * words.len(), |operations| &mut operations.loads);
        self.rma.load_many(at, words)
    }

    fn load_still(&self, at: Place) -> Result<u64> {
        self.count(at.rank, 8, |operations| &mut operations.loads);
        self.rma.load_still(at)
    }

    fn replace_many(&self, at: Place, words: &[u64]) -> Result<()> {
        self.count(at.rank, 8 * words.len(), |operations| &mut operations.writes);
        self.rma.replace_many(at, words)
    }

    fn accumulate(&self, at: Place, kind: Kind, op: Op, data: &[u8]) -> Result<()> {
        self.count(at.rank, data.len(), |operations| &mut operations.writes);
        self.rma.accumulate(at, kind, op, data)
    }

    fn copy_own(&self, from: u64, to: u64, bytes: u64) -> Result<()> {
        self.count(self.rank(), bytes as usize, |operations| &mut operations.writes);
        self.rma.copy_own(from, to, bytes)
    }

    fn get_words(&self, from: Place, to: &[AtomicU64]) -> Result<()> {
        self.count(from.rank, 8 * to.len(), |operations| &mut operations.gets);
        self.rma.get_words(from, to)
    }

    fn flush(&self, rank: usize) -> Result<()> {
        self.count(rank, 0, |operations| &mut operations.flushes);
        self.rma.flush(rank)
    }

    fn order(&self, rank: usize) -> Result<()> {
        self.count(rank, 0, |operations| &mut operations.flushes);
        self.rma.order(rank)
    }

    fn reads_ahead(&self) -> bool {
        self.rma.reads_ahead()
    }

    fn barrier(&self) -> Result<()> {
        self.meet();
        self.rma.barrier()
    }

    fn allgather(&self, words: &[u64]) -> Result<Vec<u64>> {
        self.meet();
        self.rma.allgather(words)
    }

    fn pause(&self) -> Result<()> {
        self.rma.pause()
    }

    fn patience(&self) -> u64 {
        self.rma.patience()
    }

    fn helper(&self) -> Result<Helper> {
        self.rma.helper()
    }

    fn deliver(&self, to: Place, data: &[u8], mark: u64, bell: u64) -> Result<()> {
        self.count(to.rank, data.len(), |operations| &mut operations.writes);
        self.rma.deliver(to, data, mark, bell)
    }

    fn wait_word(&self, offset: u64, was: u64) -> Result<u64> {
        self.rma.wait_word(offset, was)
    }

    fn now(&self) -> u64 {
        self.rma.now()
    }

    fn work(&self, work: Work) -> Result<()> {
        self.rma.work(work)
    }

    fn get(&self, from: Place, data: &mut [u8]) -> Result<()> {
        self.count(from.rank, data.len(), |operations| &mut operations.gets);
        self.rma.get(from, data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::World;
    use crate::array::Options;
    use crate::rma::shm::Shm;

    #[test]
    fn a_first_put_takes_two_atomics_three_writes_and_two_flushes() {
        let shm: Rc<dyn Rma> = Rc::new(Shm::threads(1, 1 << 22).unwrap().remove(0));
        let (counted, counts) = Counted::new(shm);
        let world = World::new(counted);
        let array = world.array::<u64>(&[1 << 10], Options { check: false, ..Options::log(64) }).unwrap();
        let put = |value| {
            let before = counts.get();
            array.put(0..64, &[value; 64]).unwrap();
            let (before, now) = (before.own, counts.get().own);
            let [writes, atomics, flushes] =
                [now.writes - before.writes, now.atomics - before.atomics, now.flushes - before.flushes];
            (writes, atomics, flushes, now.bytes - before.bytes)
        };
        // The claim word, the tail, data, owners and entries of 8 blocks; then the data alone.
        assert_eq!(put(1), (3, 2, 2, 8 + 8 + 512 + 64 + 64));
        assert_eq!(put(2), (1, 0, 0, 512));
        assert_eq!(counts.get().far, Operations::default());
        let meetings = counts.get().meetings;
        array.version_inc("").unwrap();
        assert_eq!(counts.get().meetings - meetings, 2);
    }
}
