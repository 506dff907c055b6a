//! YCSB with keys of 32 bytes, by the size of a batch (figure 6); and its batches, for keys of any
//! size.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use nearpm_gphash::{Keys, Op, Operations, Outcome, Table};
use nearpm_gpmbench::report::Report;
use nearpm_gpu::Buffer;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::wide::words_of;
use super::{Bench, SUBJECTS, Subject, VALUE, WORKLOADS, region};
use crate::skew::{Choice, draw};

const KEY: u32 = 32;

pub fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    SUBJECTS.iter().try_for_each(|subject| of(bench, subject, report))
}

fn of(bench: &Bench, subject: &Subject, report: &mut Report) -> Result<()> {
    let pairs: u32 = bench.pick(300, 1 << 22);
    // Room for what D inserts.
    let layout = subject.layout(bench, u64::from(pairs) * 10 / 7, VALUE).with_keys(Keys::Fixed(KEY));
    let (region, largest) = (region(bench, &layout)?, bench.pick(64, 1 << 20));
    let mut table = Table::create(&region, "table", &layout, 1)?;
    table.sort_batches(largest)?;
    let most = subject.most_updates(&layout).min(largest);
    let mut run = Run::new(bench, &table, KEY);
    for first in (0..pairs).step_by(most as usize) {
        run.batch(&vec![Op::Insert; most.min(pairs - first) as usize], Choice::Latest, 0)?;
    }
    let group =
        format!("YCSB by size of a batch, keys of {KEY} B, {}: {pairs} pairs, values of {VALUE} B", subject.name);
    let sizes: &[u32] = bench.pick(&[16, 64], &[1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20]);
    for (number, &size) in sizes.iter().filter(|&&size| size <= most).enumerate() {
        // F is not among them here.
        for (name, reads, other, choice) in WORKLOADS.into_iter().filter(|(name, ..)| *name != "F") {
            let times = run.workload((reads, other, choice), size, 100 * number as u64)?;
            report.rate(&group, format!("{name}, batches of {size}"), f64::from(size) / 1e6, "M/s", &times, None);
        }
    }
    run.read_all(most)
}

/// Batches on a table, whose keys and values the processor makes.
pub(super) struct Run<'r> {
    bench: &'r Bench,
    table: &'r Table,
    /// Bytes of a key.
    key: u32,
    /// Of each record that the table has: the newest version of its value that was acknowledged.
    newest: Vec<u64>,
    /// Versions of values that were put, one a batch.
    versions: u64,
}

/// What a version makes of each word of a key, to be its value.
fn mask(version: u64) -> u64 {
    version.wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
}

fn value_of(key: &[u64], version: u64) -> impl Iterator<Item = u64> {
    key.iter().map(move |word| word ^ mask(version)).cycle().take(VALUE as usize / 8)
}

impl<'r> Run<'r> {
    /// On a table that is empty.
    pub fn new(bench: &'r Bench, table: &'r Table, key: u32) -> Run<'r> {
        Run { bench, table, key, newest: Vec::new(), versions: 0 }
    }

    /// Times of batches of a workload: share of reads in percent, what the others are, and which
    /// records are asked for. A cache has its turn before each.
    pub fn workload(
        &mut self,
        (reads, other, choice): (u32, Op, Choice),
        size: u32,
        seed: u64,
    ) -> Result<Vec<Duration>> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut times = Vec::new();
        for repeat in 0..=self.bench.repeats as u64 {
            let draw = |_| if random.random_range(0..100) < reads { Op::Get } else { other };
            let ops: Vec<Op> = (0..size).map(draw).collect();
            times.push(self.batch(&ops, choice, seed + repeat)?);
        }
        // The first of a size loads its kernels.
        times.remove(0);
        Ok(times)
    }

    /// Runs a batch of operations, each on a record that is there, or for an insert on the next
    /// one. The time; each answer and each value that was read is looked at.
    pub fn batch(&mut self, ops: &[Op], choice: Choice, seed: u64) -> Result<Duration> {
        let there = self.newest.len() as u32;
        let mut chosen = if there == 0 { vec![0; ops.len()] } else { draw(choice, there, ops.len(), seed) };
        let inserts = ops.iter().zip(&mut chosen).filter(|(op, _)| **op == Op::Insert);
        inserts.zip(there..).for_each(|((_, record), next)| *record = next);
        self.on(ops, &chosen)
    }

    /// Each record is read, in batches of up to `most`.
    pub fn read_all(&mut self, most: u32) -> Result<()> {
        let all: Vec<u32> = (0..self.newest.len() as u32).collect();
        all.chunks(most as usize).try_for_each(|records| self.on(&vec![Op::Get; records.len()], records).map(drop))
    }

    /// Runs operations on records by number.
    fn on(&mut self, ops: &[Op], records: &[u32]) -> Result<Duration> {
        let (device, key) = (&self.bench.device, self.key);
        let keys: Vec<Vec<u64>> = records.iter().map(|&record| words_of(record, key).collect()).collect();
        self.versions += 1;
        let version = self.versions;
        // A wide key is whole units of 16 bytes.
        let padding = if self.table.layout().keys == Keys::Words { 0 } else { key.next_multiple_of(16) - key };
        let padded = |key: &Vec<u64>| key.iter().copied().chain(std::iter::repeat_n(0, padding as usize / 8)).collect();
        let stored: Vec<u8> =
            keys.iter().flat_map(|key| -> Vec<u64> { padded(key) }).flat_map(u64::to_le_bytes).collect();
        let put: Vec<u8> = keys.iter().flat_map(|key| value_of(key, version)).flat_map(u64::to_le_bytes).collect();
        let values = Buffer::new(device, put.len() as u64)?;
        values.upload(&put)?;
        let found = Buffer::zeroed(device, put.len() as u64)?;
        let batch = Operations::of_stored(device, Op::Get, ops.len() as u32, &stored)?.each(device, ops)?;
        let batch = batch.with_values(values).with_found(found);
        let mut ran = Ok(());
        let elapsed = device.time(&mut || {
            ran = self.table.turn_cache().and_then(|()| self.table.run(&batch));
            Ok(())
        })?;
        ran?;
        let done = self.table.outcomes(&batch)?.into_iter().all(|outcome| outcome == Outcome::Done);
        ensure!(done, "an operation was not done: no figure is printed");
        let read = batch.found.as_ref().map_or(Ok(Vec::new()), Buffer::download)?;
        let puts = ops.iter().zip(records).filter(|(op, _)| op.puts());
        let put: HashSet<u32> = puts.map(|(_, &record)| record).collect();
        for ((at, value), &record) in read.chunks(VALUE as usize).enumerate().zip(records) {
            // What a batch does happens at the same time: who reads what it puts finds either.
            let before = self.newest.get(record as usize).copied();
            let may_be = before.into_iter().chain(put.contains(&record).then_some(version));
            let is_read = matches!(ops[at], Op::Get | Op::Rmw);
            let is = |version: u64| value_of(&keys[at], version).flat_map(u64::to_le_bytes).eq(value.iter().copied());
            ensure!(!is_read || may_be.into_iter().any(is), "a search read another value: no figure is printed");
        }
        self.newest.resize(self.newest.len() + ops.iter().filter(|op| **op == Op::Insert).count(), version);
        put.into_iter().for_each(|record| self.newest[record as usize] = version);
        Ok(elapsed.time.max(Duration::from_nanos(1)))
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use nearpm_gpu::Interpreted;

    use super::*;
    use crate::measure::Bench;

    const PAIRS: u32 = 40;

    fn interpreted() -> Bench {
        Bench { device: Rc::new(Interpreted::new(1 << 26)), full: false, repeats: 1, spares: 4, workloads: Vec::new() }
    }

    fn batch_of(op: Op) -> Vec<Op> {
        vec![op; PAIRS as usize]
    }

    /// Whoever reads a value that was overwritten before the batch is told, though it is a whole
    /// one of that key.
    #[test]
    fn an_old_value_is_not_taken_for_the_newest() {
        let bench = interpreted();
        for (subject, keys) in SUBJECTS.iter().flat_map(|subject| [(subject, Keys::Words), (subject, Keys::Fixed(KEY))])
        {
            let layout = subject.layout(&bench, 100, VALUE).with_keys(keys);
            let region = region(&bench, &layout).unwrap();
            let table = Table::create(&region, "table", &layout, 1).unwrap();
            let bytes = if keys == Keys::Words { 8 } else { KEY };
            let mut run = Run::new(&bench, &table, bytes);
            run.batch(&batch_of(Op::Insert), Choice::Latest, 0).unwrap();
            run.batch(&batch_of(Op::Get), Choice::Zipf, 1).unwrap();
            // Each record is put by some, and read by others.
            let mixed: Vec<Op> = (0..PAIRS as usize).map(|at| [Op::Get, Op::Update, Op::Rmw][at % 3]).collect();
            for seed in 2..5 {
                run.batch(&mixed, Choice::Zipf, seed).unwrap();
            }
            run.read_all(16).unwrap();
            // Behind its back all have their first values again.
            let mut other = Run::new(&bench, &table, bytes);
            other.newest = vec![0; PAIRS as usize];
            let all: Vec<u32> = (0..PAIRS).collect();
            other.on(&batch_of(Op::Update), &all).unwrap();
            let refused = run.read_all(16).unwrap_err().to_string();
            assert!(refused.contains("another value"), "{refused}");
        }
    }
}
