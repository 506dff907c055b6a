//! A hash table of the processor in persistent memory, for batches: what a GPU's program uses where
//! the processor manages its data ("CPU-assisted", GPHash section 4.1, which takes Clevel, Dash and
//! SEPH). Each thread has a part of the table to itself, by the hash of the keys, so that it needs
//! no lock; an answer counts when its batch has ended, and is durable then, as with the GPU's
//! tables.

mod shard;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

use anyhow::{Context, Result, anyhow};
use nearpm_gphash::{Op, Outcome};

pub use shard::{Shard, hash};

/// Bytes of a value.
pub const VALUE: usize = 128;

/// Operations on keys of 8 bytes, all of one kind.
#[derive(Debug)]
pub struct Batch {
    /// What is done.
    pub op: Op,
    /// With which keys; 0 is none.
    pub keys: Vec<u64>,
    /// The values that are put, one behind the other; empty where none is.
    pub values: Vec<u8>,
}

/// What a thread made of its operations of a batch.
#[derive(Debug, Default)]
pub struct Answers {
    /// Their places in the batch.
    pub places: Vec<u32>,
    /// How each ended.
    pub outcomes: Vec<Outcome>,
    /// The values that were read, one behind the other.
    pub values: Vec<u8>,
}

/// For each part of a batch, by thread: the places of that thread's operations.
type Places = Vec<Vec<Vec<u32>>>;

enum Work {
    Sort(Arc<Batch>, std::ops::Range<usize>),
    Do(Arc<Batch>, Arc<Places>),
}

enum Done {
    Sorted(Vec<Vec<u32>>),
    Answered(Answers),
}

/// Threads, each with its part of a table.
pub struct Threads {
    workers: Vec<(Sender<Work>, Receiver<Done>)>,
}

impl Threads {
    /// A thread for each part of `memory`, which is a table without pairs. `slots` is of each part.
    pub fn new<'s>(scope: &'s Scope<'s, '_>, memory: &'s mut [u8], count: usize, slots: usize) -> Threads {
        let parts = memory.chunks_exact_mut(Shard::bytes(slots)).take(count).enumerate();
        let start = |(number, memory): (usize, &'s mut [u8])| {
            let (work, to_do) = channel();
            let (done, answers) = channel();
            scope.spawn(move || serve(Shard::new(memory, slots), (number, count), &to_do, &done));
            (work, answers)
        };
        Threads { workers: parts.map(start).collect() }
    }

    /// Does a batch. What each thread answered, when all is durable.
    ///
    /// # Errors
    /// A thread that has ended.
    pub fn run(&self, batch: &Arc<Batch>) -> Result<Vec<Answers>> {
        let part = batch.keys.len().div_ceil(self.workers.len());
        for (number, (work, _)) in self.workers.iter().enumerate() {
            let range = (number * part).min(batch.keys.len())..((number + 1) * part).min(batch.keys.len());
            work.send(Work::Sort(batch.clone(), range)).map_err(|_| ended())?;
        }
        let sorted = self.workers.iter().map(|(_, answers)| match answers.recv().context(ended())? {
            Done::Sorted(places) => Ok(places),
            Done::Answered(_) => Err(ended()),
        });
        let places = Arc::new(sorted.collect::<Result<Places>>()?);
        for (work, _) in &self.workers {
            work.send(Work::Do(batch.clone(), places.clone())).map_err(|_| ended())?;
        }
        let answered = self.workers.iter().map(|(_, answers)| match answers.recv().context(ended())? {
            Done::Answered(answers) => Ok(answers),
            Done::Sorted(_) => Err(ended()),
        });
        answered.collect()
    }
}

fn ended() -> anyhow::Error {
    anyhow!("a thread of the table has ended")
}

/// What a thread, by its number, of so many, does until nobody has work for it.
fn serve(mut shard: Shard<'_>, (number, count): (usize, usize), work: &Receiver<Work>, done: &Sender<Done>) {
    while let Ok(work) = work.recv() {
        let answer = match work {
            Work::Sort(batch, range) => {
                let mut places = vec![Vec::with_capacity(range.len() / count * 5 / 4); count];
                for place in range {
                    places[(hash(batch.keys[place]) >> 40) as usize % count].push(place as u32);
                }
                Done::Sorted(places)
            }
            Work::Do(batch, places) => {
                let places: Vec<u32> = places.iter().flat_map(|part| part[number].iter().copied()).collect();
                Done::Answered(shard.run(&batch, places))
            }
        };
        if done.send(answer).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn values(keys: &[u64], seed: u8) -> Vec<u8> {
        keys.iter().flat_map(|key| [key.to_le_bytes()[0] ^ seed; VALUE]).collect()
    }

    /// Batches of all kinds against a map.
    #[test]
    fn batches_do_what_a_map_does() {
        let (count, slots) = (3, 512);
        let mut memory = vec![0; count * Shard::bytes(slots)];
        let mut model: HashMap<u64, u8> = HashMap::new();
        std::thread::scope(|scope| {
            let threads = Threads::new(scope, &mut memory, count, slots);
            for (round, op) in
                [Op::Put, Op::Get, Op::Update, Op::Delete, Op::Put, Op::Insert, Op::Get].into_iter().enumerate()
            {
                let keys: Vec<u64> =
                    (1..=900).filter(|key| round == 1 || !(key + round as u64).is_multiple_of(5)).collect();
                let seed = round as u8;
                let batch = Arc::new(Batch { op, values: values(&keys, seed), keys });
                let mut seen = 0;
                for answers in threads.run(&batch).unwrap() {
                    for (at, (&place, &outcome)) in answers.places.iter().zip(&answers.outcomes).enumerate() {
                        seen += 1;
                        let key = batch.keys[place as usize];
                        let (there, value) = (model.get(&key).copied(), key.to_le_bytes()[0] ^ seed);
                        let expected = match (op, there) {
                            (Op::Insert, Some(_)) => Outcome::Exists,
                            (Op::Get | Op::Update | Op::Delete, None) => Outcome::Absent,
                            _ => Outcome::Done,
                        };
                        assert_eq!(outcome, expected, "{op:?} of {key}");
                        match (op, outcome) {
                            (Op::Get, Outcome::Done) => {
                                assert_eq!(answers.values[at * VALUE..][..VALUE], [there.unwrap(); VALUE]);
                            }
                            (Op::Delete, _) => _ = model.remove(&key),
                            (Op::Put | Op::Insert | Op::Update, Outcome::Done) => _ = model.insert(key, value),
                            _ => {}
                        }
                    }
                }
                assert_eq!(seen, batch.keys.len(), "{op:?}");
            }
        });
        assert!(model.len() > 700);
    }

    #[test]
    fn a_part_without_room_says_so_and_keeps_what_it_has() {
        let mut memory = vec![0; Shard::bytes(64)];
        let mut shard = Shard::new(&mut memory, 64);
        let keys: Vec<u64> = (1..=100).collect();
        let batch = Batch { op: Op::Insert, values: values(&keys, 0), keys };
        let answers = shard.run(&batch, (0..100).collect());
        let full = answers.outcomes.iter().filter(|&&outcome| outcome == Outcome::Full).count();
        assert_eq!(full, 100 - 64);
        let gets = Batch { op: Op::Get, keys: batch.keys, values: Vec::new() };
        let found = shard.run(&gets, (0..100).collect());
        assert_eq!(found.outcomes.iter().filter(|&&outcome| outcome == Outcome::Done).count(), 64);
    }
}
