//! A table of the processor, whose batches come from the GPU and whose answers go back to it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nearpm_gphash::{Op, Outcome};
use nearpm_gpmbench::report::Report;
use nearpm_gpu::{Buffer, Medium};

use super::Bench;
use crate::processor::{Answers, Batch, Shard, Threads, VALUE, hash};

/// Threads: of a machine with as many cores or more.
const THREADS: usize = 16;

pub fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let pairs: u64 = bench.pick(1 << 9, 1 << 24);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    // Parts are filled unevenly, by their hashes.
    let slots = (pairs as usize * 10 / 8 / threads * 17 / 16).next_multiple_of(4).max(64);
    for size in [bench.pick(64, 1 << 20), bench.pick(16, 1 << 12)] {
        // A table of its own: deleted pairs leave marks, which searches go past. Its memory is
        // touched before it is measured.
        let mut medium = Medium::memfd((threads * Shard::bytes(slots)) as u64)?;
        medium.bytes_mut().fill(0);
        // In small batches fewer pairs: as many as a second or two takes.
        let records = pairs.min(size * bench.pick(8, 1 << 10));
        let group = format!("processor, {threads} threads: {records} pairs, values of {VALUE} B, batches of {size}");
        std::thread::scope(|scope| {
            let table = Threads::new(scope, medium.bytes_mut(), threads, slots);
            all(&Run { bench, table }, report, &group, records, size)
        })?;
    }
    Ok(())
}

/// All operations on all records, one after the other.
fn all(run: &Run<'_>, report: &mut Report, group: &str, records: u64, size: u64) -> Result<()> {
    for (name, op, seed, wanted) in [
        ("insert", Op::Insert, 1, Outcome::Done),
        ("search", Op::Get, 1, Outcome::Done),
        ("update", Op::Update, 2, Outcome::Done),
        ("search behind updates", Op::Get, 2, Outcome::Done),
        ("delete", Op::Delete, 0, Outcome::Done),
        ("search behind deletes", Op::Get, 0, Outcome::Absent),
    ] {
        let (alone, moved) = run.records(op, records, size, seed, wanted)?;
        // Beside what the cost model predicts, a time of this program would be taken for one.
        if run.bench.full {
            let millions = records as f64 / 1e6;
            report.rate(group, format!("{name}, on the processor"), millions, "M/s", &[alone], None);
            report.rate(group, format!("{name}, from and to the GPU"), millions, "M/s", &[alone + moved], None);
        }
    }
    Ok(())
}

struct Run<'b> {
    bench: &'b Bench,
    table: Threads,
}

fn value_of(key: u64, seed: u64) -> [u8; 8] {
    (key ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes()
}

impl Run<'_> {
    /// An operation on this many records, in batches: the time on the processor, and that of what
    /// is moved. Each answer is looked at.
    fn records(&self, op: Op, records: u64, size: u64, seed: u64, wanted: Outcome) -> Result<(Duration, Duration)> {
        let (mut alone, mut moved) = (Duration::ZERO, Duration::ZERO);
        for first in (0..records).step_by(size as usize) {
            let numbers = first..(first + size).min(records);
            // Searches go through all pairs in another order than that of their inserts.
            let key = |number: u64| hash(if op == Op::Get { number * 5 % records } else { number } + 1).max(1);
            let keys: Vec<u64> = numbers.map(key).collect();
            let values = if op.puts() {
                keys.iter().flat_map(|&key| value_of(key, seed).repeat(VALUE / 8)).collect()
            } else {
                Vec::new()
            };
            let batch = Arc::new(Batch { op, keys, values });
            moved += self.down(&batch)?;
            let started = Instant::now();
            let answers = self.table.run(&batch)?;
            alone += started.elapsed();
            moved += self.up(&answers)?;
            check(&batch, &answers, seed, wanted)?;
        }
        Ok((alone, moved))
    }

    /// Keys and values come from the GPU.
    fn down(&self, batch: &Batch) -> Result<Duration> {
        let keys: Vec<u8> = batch.keys.iter().flat_map(|key| key.to_le_bytes()).collect();
        let mut took = Duration::ZERO;
        for bytes in [&keys, &batch.values].into_iter().filter(|bytes| !bytes.is_empty()) {
            let buffer = Buffer::new(&self.bench.device, bytes.len() as u64)?;
            buffer.upload(bytes)?;
            let started = Instant::now();
            let down = buffer.download()?;
            took += started.elapsed();
            ensure!(down == *bytes, "what came from the GPU is something else");
        }
        Ok(took)
    }

    /// Outcomes and values go to the GPU, a thread's behind another's.
    fn up(&self, answers: &[Answers]) -> Result<Duration> {
        let mut took = Duration::ZERO;
        for answers in answers.iter().filter(|answers| !answers.outcomes.is_empty()) {
            let outcomes: Vec<u8> = answers.outcomes.iter().map(|&outcome| outcome as u8).collect();
            for bytes in [&outcomes, &answers.values].into_iter().filter(|bytes| !bytes.is_empty()) {
                let buffer = Buffer::new(&self.bench.device, bytes.len() as u64)?;
                let started = Instant::now();
                buffer.upload(bytes)?;
                took += started.elapsed();
            }
        }
        Ok(took)
    }
}

/// Whether each operation has its answer, and each read its value.
fn check(batch: &Batch, answers: &[Answers], seed: u64, wanted: Outcome) -> Result<()> {
    let mut seen = 0;
    for answers in answers {
        for (at, (&place, &outcome)) in answers.places.iter().zip(&answers.outcomes).enumerate() {
            seen += 1;
            let key = batch.keys[place as usize];
            ensure!(outcome == wanted, "{:?} of {key:#x}: {outcome:?}: no figure is printed", batch.op);
            if batch.op == Op::Get && outcome == Outcome::Done {
                let value = &answers.values[at * VALUE..][..VALUE];
                ensure!(
                    value == value_of(key, seed).repeat(VALUE / 8),
                    "{key:#x} has another value: no figure is printed"
                );
            }
        }
    }
    ensure!(seen == batch.keys.len(), "{seen} of {} operations were answered: no figure is printed", batch.keys.len());
    Ok(())
}
