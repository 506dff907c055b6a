//! Caches: YCSB A, B and C with a fifth of the pairs, or of the buckets, in the GPU's memory; sizes
//! and policies; what filling costs.

use std::time::Duration;

use anyhow::Result;
use nearpm_gphash::{CacheOptions, Design, Op, Operations, Outcome, Policy, Table};
use nearpm_gpmbench::report::Report;
use nearpm_gpu::{Buffer, PmRegion};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Bench, Records, SUBJECTS, Subject, VALUE, all, insert, region};
use crate::skew::{Choice, draw};

/// A workload: name, share of reads in percent, which records.
const WORKLOADS: [(&str, u32, Choice); 4] = [
    ("C", 100, Choice::Scrambled),
    ("C, Zipf over the pairs", 100, Choice::Zipf),
    ("B", 95, Choice::Scrambled),
    ("A", 50, Choice::Scrambled),
];

/// A table that was filled, and what runs on it.
struct Run<'b> {
    bench: &'b Bench,
    subject: &'b Subject,
    records: Records,
    region: PmRegion,
    pairs: u32,
}

/// What batches came to.
struct Warm {
    times: Vec<Duration>,
    /// Share of a batch's operations that the cache had the answer of, where that is counted.
    hits: Option<f64>,
}

/// The measurements of caches.
pub fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let pairs: u32 = bench.pick(400, 1 << 24);
    for subject in &SUBJECTS {
        let records = Records::new(&bench.device, VALUE);
        let layout = subject.layout(bench, u64::from(pairs) * 10 / 8, VALUE);
        let region = region(bench, &layout)?;
        let mut table = Table::create(&region, "table", &layout, 1)?;
        table.sort_batches(bench.pick(400, 1 << 22))?;
        insert(bench, &table, &records, 0, pairs, subject.most_updates(&layout).min(bench.pick(400, 1 << 22)))?;
        drop(table);
        let run = Run { bench, subject, records, region, pairs };
        run.workloads(report)?;
        run.sizes(report)?;
    }
    Ok(())
}

impl Run<'_> {
    /// A table with a cache for a share of the pairs, or of the buckets.
    fn open(&self, share: f64, policy: Policy) -> Result<Table> {
        let layout = Table::layout_of(&self.region, "table")?;
        let options = CacheOptions::share(&layout, share);
        let options = match self.subject.design {
            Design::Tags => CacheOptions { entries: ((f64::from(self.pairs) * share) as u32).max(4), ..options },
            Design::Levels => options,
        };
        let sampled = self.bench.pick(0, options.sampled);
        let mut table = Table::open_cached(&self.region, "table", CacheOptions { sampled, policy, ..options })?;
        table.sort_batches(self.bench.pick(400, 1 << 22))?;
        Ok(table)
    }

    fn batch(&self, piece: usize, reads: u32, choice: Choice, seed: u64) -> Result<(Operations, Buffer)> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let chosen = draw(choice, self.pairs, piece, seed);
        let ops: Vec<Op> =
            (0..piece).map(|_| if random.random_range(0..100) < reads { Op::Get } else { Op::Update }).collect();
        let codes = Buffer::of_words(&self.bench.device, &ops.iter().map(|&op| op as u32).collect::<Vec<_>>())?;
        let batch = self.records.chosen(Op::Get, &chosen)?;
        let batch = match reads {
            100 => batch,
            _ => self.records.fill(batch.each(&self.bench.device, &ops)?, 2)?,
        };
        let room = self.records.room(&batch)?;
        Ok((batch.with_found(room), codes))
    }

    /// Batches until the cache has what is popular, and some more, whose times count; a turn before
    /// each `turns`-th, whose time counts, too.
    fn warm(
        &self,
        table: &Table,
        (reads, choice): (u32, Choice),
        piece: usize,
        (warming, counting): (usize, usize),
        turns: usize,
    ) -> Result<Warm> {
        let (mut times, mut missed) = (Vec::new(), 0);
        for number in 0..warming + counting {
            let (batch, codes) = self.batch(piece, reads, choice, (1000 * reads) as u64 + number as u64)?;
            self.bench.device.synchronize()?;
            let mut failed = Ok(());
            let elapsed = self.bench.device.time(&mut || {
                let turn = if number.is_multiple_of(turns) { table.turn_cache() } else { Ok(()) };
                failed = turn.and_then(|()| table.run(&batch));
                Ok(())
            })?;
            failed?;
            all("a cached batch", self.records.wrong(&batch, Some(&codes), Outcome::Done, 2, true)?, piece as u32)?;
            if number >= warming {
                times.push(elapsed.time.max(Duration::from_nanos(1)));
                missed += table.missed().unwrap_or(0);
            }
        }
        let hits = 1.0 - f64::from(missed) / (piece * counting) as f64;
        Ok(Warm { times, hits: (self.subject.design == Design::Tags && reads == 100).then_some(hits) })
    }

    fn workloads(&self, report: &mut Report) -> Result<()> {
        let ours = self.subject.design == Design::Tags;
        let group =
            format!("YCSB with a cache of 20 %, {}: {} pairs, values of {VALUE} B", self.subject.name, self.pairs);
        let most = self.subject.most_updates(&Table::layout_of(&self.region, "table")?) as usize;
        for (name, reads, choice) in WORKLOADS {
            let table = self.open(0.2, Policy::Lfu)?;
            let whole: usize = self.bench.pick(200, 1 << 22);
            let piece = if reads == 100 { whole } else { most.min(whole) };
            let warming = if ours && reads == 100 { self.bench.pick(2, 40) } else { self.bench.pick(2, 8) };
            let warm = self.warm(&table, (reads, choice), piece, (warming, self.bench.pick(2, 6)), 1)?;
            let millions = piece as f64 / 1e6;
            let aim = (ours && reads == 100).then_some(">= 1500");
            let what = format!("{name}, batches of {piece}, turns included");
            report.rate(&group, what, millions, "M/s", &warm.times, aim);
            if let Some(hits) = warm.hits {
                report.value(&group, format!("{name}: found in the cache"), 100.0 * hits, "%", None);
            }
            report.value(&group, format!("{name}: values or buckets cached"), f64::from(table.cached()?), "", None);
            if reads == 100 {
                // The contents stay as they are: no turn comes.
                let frozen = self.warm(&table, (reads, choice), piece, (1, self.bench.pick(1, 5)), usize::MAX)?;
                report.rate(&group, format!("{name}, without turns"), millions, "M/s", &frozen.times, None);
                let times = self.turns(&table)?;
                report.time(&group, format!("{name}: a turn, with what it fills"), &times, None);
            }
        }
        Ok(())
    }

    /// Times of turns with nothing beside them.
    fn turns(&self, table: &Table) -> Result<Vec<Duration>> {
        let turn = |_| {
            let mut failed = Ok(());
            let elapsed = self.bench.device.time(&mut || {
                failed = table.turn_cache();
                self.bench.device.join()
            })?;
            failed?;
            Ok(elapsed.time.max(Duration::from_nanos(1)))
        };
        (0..self.bench.pick(1, 5)).map(turn).collect()
    }

    /// C with other sizes and policies (figure 11), and the batches while an empty cache fills
    /// (figure 15).
    fn sizes(&self, report: &mut Report) -> Result<()> {
        let group = format!("YCSB C by size of the cache, {}: {} pairs", self.subject.name, self.pairs);
        let policies: &[Policy] = match self.subject.design {
            Design::Levels => &[Policy::Lfu, Policy::Lru, Policy::Random],
            Design::Tags => &[Policy::Lfu],
        };
        let piece: usize = self.bench.pick(100, 1 << 20);
        let shares: &[f64] = self.bench.pick(&[0.2], &[0.0, 0.1, 0.2, 0.3, 0.4]);
        for &share in shares {
            for &policy in policies {
                let table = self.open(share, policy)?;
                let warming =
                    if self.subject.design == Design::Tags { self.bench.pick(1, 30) } else { self.bench.pick(1, 8) };
                let warm = self.warm(&table, (100, Choice::Scrambled), piece, (warming, self.bench.pick(1, 4)), 1)?;
                let what = format!("{:.0} %, {policy:?}", 100.0 * share);
                report.rate(&group, &*what, piece as f64 / 1e6, "M/s", &warm.times, None);
                if let Some(hits) = warm.hits {
                    report.value(&group, format!("{what}: found in the cache"), 100.0 * hits, "%", None);
                }
            }
        }
        let group = format!("filling a cache of 20 % beside batches of {piece}, {}", self.subject.name);
        let table = self.open(0.2, Policy::Lfu)?;
        for number in 0..self.bench.pick(2, 8) {
            let warm = self.warm(&table, (100, Choice::Scrambled), piece, (0, 1), 1)?;
            report.rate(&group, format!("C, batch {number}"), piece as f64 / 1e6, "M/s", &warm.times, None);
        }
        Ok(())
    }
}
