//! Our protocol between two ranks under every order of their accesses that the memory model of the
//! processor's language allows, by loom.
//!
//! The memory of the ranks is that of `rma::shm`, word by word: the same accesses with the same
//! orderings. What is checked is the first version of an array of two blocks a rank: its claims,
//! its log, and its entries.

use std::cell::Cell;
use std::sync::Arc as Shared;

use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::sync::{Arc, Condvar, Mutex};
use nearpm_gvr::array::Fault;
use nearpm_gvr::rma::{Get, Kind, Op, Place, Rma};
use nearpm_gvr::{Array, Keep, Options, Result, World};

const RANKS: usize = 2;
/// Words of a window.
const WORDS: usize = 512;

struct Meeting {
    come: usize,
    brought: Vec<u64>,
    met: Vec<u64>,
    number: u64,
}

struct Memory {
    windows: Vec<Vec<AtomicU64>>,
    meeting: Mutex<Meeting>,
    over: Condvar,
}

struct Rank {
    memory: Arc<Memory>,
    rank: usize,
    taken: Cell<u64>,
}

impl Rank {
    fn words(&self, at: Place, count: usize) -> &[AtomicU64] {
        assert_eq!(at.offset % 8, 0, "this memory has words alone");
        &self.memory.windows[at.rank][at.offset as usize / 8..][..count]
    }
}

fn words_of(data: &[u8]) -> Vec<u64> {
    data.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect()
}

impl Rma for Rank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        RANKS
    }

    fn alloc(&self, bytes: u64) -> Result<u64> {
        let start = self.taken.replace(self.taken.get() + bytes.next_multiple_of(8));
        assert!(self.taken.get() <= 8 * WORDS as u64, "{bytes} bytes are more than the window has");
        Ok(start)
    }

    fn free(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    fn put(&self, to: Place, data: &[u8]) -> Result<()> {
        for (word, new) in self.words(to, data.len() / 8).iter().zip(words_of(data)) {
            word.store(new, Ordering::Relaxed);
        }
        Ok(())
    }

    fn begin_get(&self, from: Place, bytes: usize) -> Result<Get> {
        Ok(Get { from, bytes, number: 0, ready: 0 })
    }

    fn end_get(&self, get: Get, data: &mut [u8]) -> Result<()> {
        for (word, to) in self.words(get.from, data.len() / 8).iter().zip(data.chunks_exact_mut(8)) {
            to.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        Ok(())
    }

    fn drop_get(&self, _: Get) -> Result<()> {
        Ok(())
    }

    fn fetch_add(&self, at: Place, add: u64) -> Result<u64> {
        Ok(self.words(at, 1)[0].fetch_add(add, Ordering::AcqRel))
    }

    fn cas(&self, at: Place, expected: u64, new: u64) -> Result<u64> {
        let done = self.words(at, 1)[0].compare_exchange(expected, new, Ordering::AcqRel, Ordering::Acquire);
        Ok(done.unwrap_or_else(|now| now))
    }

    fn bor_many(&self, at: Place, bits: &[u64], before: &mut [u64]) -> Result<()> {
        for ((word, bits), before) in self.words(at, bits.len()).iter().zip(bits).zip(before) {
            *before = word.fetch_or(*bits, Ordering::AcqRel);
        }
        Ok(())
    }

    fn load_many(&self, at: Place, words: &mut [u64]) -> Result<()> {
        for (word, to) in self.words(at, words.len()).iter().zip(words) {
            *to = word.load(Ordering::Acquire);
        }
        Ok(())
    }

    fn replace_many(&self, at: Place, words: &[u64]) -> Result<()> {
        for (word, new) in self.words(at, words.len()).iter().zip(words) {
            word.store(*new, Ordering::Release);
        }
        Ok(())
    }

    fn accumulate(&self, at: Place, kind: Kind, op: Op, data: &[u8]) -> Result<()> {
        assert_eq!(kind.bytes(), 8, "this memory has words alone");
        for (word, new) in self.words(at, data.len() / 8).iter().zip(words_of(data)) {
            let mut old = word.load(Ordering::Relaxed);
            while let Err(now) =
                word.compare_exchange(old, kind.combine(op, old, new), Ordering::AcqRel, Ordering::Relaxed)
            {
                old = now;
            }
        }
        Ok(())
    }

    // As over shared memory.
    fn order(&self, _: usize) -> Result<()> {
        fence(Ordering::Release);
        Ok(())
    }

    fn flush(&self, _: usize) -> Result<()> {
        fence(Ordering::SeqCst);
        Ok(())
    }

    fn barrier(&self) -> Result<()> {
        self.allgather(&[]).map(drop)
    }

    fn allgather(&self, words: &[u64]) -> Result<Vec<u64>> {
        let mut meeting = self.memory.meeting.lock().unwrap();
        let at = self.rank * words.len();
        meeting.brought.resize(RANKS * words.len(), 0);
        meeting.brought[at..at + words.len()].copy_from_slice(words);
        meeting.come += 1;
        if meeting.come == RANKS {
            meeting.met = std::mem::take(&mut meeting.brought);
            meeting.come = 0;
            meeting.number += 1;
            self.memory.over.notify_all();
            return Ok(meeting.met.clone());
        }
        let number = meeting.number;
        while meeting.number == number {
            meeting = self.memory.over.wait(meeting).unwrap();
        }
        Ok(meeting.met.clone())
    }

    fn pause(&self) -> Result<()> {
        loom::thread::yield_now();
        Ok(())
    }

    fn patience(&self) -> u64 {
        1000
    }
}

/// Runs two ranks with an array of two blocks each, in every order; or in those with so many
/// switches at most from a rank that could go on.
fn every_order(options: Options, switches: Option<usize>, body: impl Fn(&World, &Array<u64>) + Send + Sync + 'static) {
    let body = Shared::new(body);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = switches;
    model.check(move || {
        let windows = (0..RANKS).map(|_| (0..WORDS).map(|_| AtomicU64::new(0)).collect()).collect();
        let meeting = Meeting { come: 0, brought: Vec::new(), met: Vec::new(), number: 0 };
        let memory = Arc::new(Memory { windows, meeting: Mutex::new(meeting), over: Condvar::new() });
        let rank = |rank, memory| {
            let body = Shared::clone(&body);
            move || {
                let world = World::new(Rank { memory, rank, taken: Cell::new(0) });
                let words = options.block() / 8;
                let array = world.array::<u64>(&[2 * words * RANKS as u64], options).unwrap();
                body(&world, &array);
            }
        };
        let other = loom::thread::spawn(rank(1, Arc::clone(&memory)));
        rank(0, memory)();
        other.join().unwrap();
    });
}

fn small(block: u64) -> Options {
    Options { keep: Keep::Last(1), check: false, ..Options::log(block) }
}

fn reads_all_or_nothing(options: Options) {
    every_order(options, None, |world, array| {
        if world.rank() == 0 {
            array.put(0..2, &[8, 9]).unwrap();
            array.wait().unwrap();
        } else {
            let seen = array.get_vec(0..2).unwrap();
            assert!(seen == [0, 0] || seen == [8, 9], "half of a first put is read: {seen:?}");
        }
    });
}

#[test]
fn a_first_put_is_seen_whole_or_not_at_all() {
    reads_all_or_nothing(small(16));
}

#[test]
fn an_entry_before_its_data_is_found() {
    let options = Options { fault: Some(Fault::PointerBeforeData), ..small(16) };
    let found = std::panic::catch_unwind(|| reads_all_or_nothing(options));
    assert!(found.is_err(), "no order shows the fault");
}

#[test]
fn both_ranks_write_into_the_same_two_blocks_and_nothing_is_lost() {
    every_order(small(16), Some(4), |world, array| {
        let rank = world.rank() as u64;
        // Each writes the end of one block and the beginning of the next, or one end of either.
        if rank == 0 {
            array.put(1..3, &[11, 12]).unwrap();
        } else {
            array.put(0..1, &[20]).unwrap();
        }
        array.wait().unwrap();
        world.barrier().unwrap();
        assert_eq!(array.get_vec(0..4).unwrap(), [20, 11, 12, 0]);
    });
}

#[test]
fn both_ranks_add_to_the_same_element() {
    every_order(small(8), Some(4), |world, array| {
        array.accumulate(0..1, &[1 + world.rank() as u64], Op::Sum).unwrap();
        array.wait().unwrap();
        world.barrier().unwrap();
        assert_eq!(array.get_vec(0..1).unwrap(), [3]);
    });
}
