//! One operation at a time: insert, search, update, delete; recovery.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nearpm_gphash::{Design, Op, Operations, Outcome, Table};
use nearpm_gpmbench::report::Report;
use nearpm_gpu::PmRegion;

use super::{Bench, Records, SUBJECTS, Subject, VALUE, all};

/// What a run has at hand.
struct Run<'b> {
    bench: &'b Bench,
    subject: &'b Subject,
    records: Records,
    /// Pairs of the table.
    pairs: u32,
    group: String,
    aims: bool,
}

pub fn measure(bench: &Bench, subject: &Subject, report: &mut Report) -> Result<()> {
    let bits: u32 = bench.pick(9, 24);
    let pairs = 1u32 << bits;
    let group = format!("{}: {pairs} pairs, values of {VALUE} B, load 0.8", subject.name);
    let aims = subject.design == Design::Tags;
    let run = Run { bench, subject, records: Records::new(&bench.device, VALUE), pairs, group, aims };
    let (region, table) = run.inserted(report)?;
    let layout = table.layout();
    let besides = layout.bytes() as f64 - layout.slots() as f64 * f64::from(VALUE);
    report.value(
        &run.group,
        "PM a slot besides its value, spare cells included",
        besides / layout.slots() as f64,
        "B",
        Some("<= 26"),
    );
    let memory = table.layout().device_bytes() as f64 / table.layout().slots() as f64;
    report.value(&run.group, "GPU memory a slot", memory, "B", run.aim("2 for tags"));
    run.insert_again(&table, report)?;
    run.search(&table, bits, report)?;
    run.update(&table, report)?;
    drop(table);
    let table = run.recover(&region, report)?;
    run.delete(&table, bits, report)
}

/// Our table in the GPU's memory alone, by the same kernels: what a slower medium costs; their
/// fences stay.
pub fn volatile(bench: &Bench, report: &mut Report) -> Result<()> {
    let (subject, bits) = (&SUBJECTS[0], bench.pick(9, 24));
    // The interpreter's cost model is of PM alone: there it is tried out, and tells nothing.
    let mut untold = Report::default();
    let report = if bench.full { report } else { &mut untold };
    let pairs = 1u32 << bits;
    let group = format!("{}, a volatile copy: {pairs} pairs, values of {VALUE} B, load 0.8", subject.name);
    let run = Run { bench, subject, records: Records::new(&bench.device, VALUE), pairs, group, aims: false };
    let (region, empty) = subject.create(bench, u64::from(pairs) * 10 / 8, VALUE, pairs)?;
    drop(empty);
    // It is not gone through window by window: the GPU translates all of its own memory.
    let table = run.filled(|| Ok(Table::open_volatile(&region, "table")?), "insert with value", report)?;
    run.search(&table, bits, report)?;
    run.update(&table, report)?;
    run.delete(&table, bits, report)
}

impl Run<'_> {
    fn aim(&self, aim: &'static str) -> Option<&'static str> {
        self.aims.then_some(aim)
    }

    fn millions(&self, count: u32) -> f64 {
        f64::from(count) / 1e6
    }

    /// Batches of at most `most` operations that go through all records.
    fn pieces(&self, op: Op, most: u32, seed: u32) -> Result<Vec<Operations>> {
        let mut first = 0;
        let mut batches = Vec::new();
        while first < self.pairs {
            let count = most.min(self.pairs - first);
            batches.push(self.records.fill(self.records.sequence(op, first.into(), count, 0)?, seed)?);
            first += count;
        }
        self.bench.device.synchronize()?;
        Ok(batches)
    }

    /// Operations of a batch of inserts: all at once where no cells are taken for it.
    fn most_inserts(&self) -> u32 {
        match self.subject.design {
            Design::Tags => self.pairs,
            Design::Levels => self.bench.pick(self.pairs / 16, 1 << 20),
        }
    }

    /// Inserts into a few tables, one after the other, of which the last is kept. The first one's
    /// figure is told by itself, too: the link and the GPU have not been busy before it.
    fn inserted(&self, report: &mut Report) -> Result<(PmRegion, Table)> {
        let mut region = None;
        let table = self.filled(
            || {
                let slots = u64::from(self.pairs) * 10 / 8;
                let (of, table) = self.subject.create(self.bench, slots, VALUE, self.pairs)?;
                region = Some(of);
                Ok(table)
            },
            "insert with value, durable",
            report,
        )?;
        Ok((region.expect("a table was made"), table))
    }

    fn filled(&self, mut empty: impl FnMut() -> Result<Table>, what: &str, report: &mut Report) -> Result<Table> {
        let mut times = Vec::new();
        loop {
            let table = empty()?;
            let batches = self.pieces(Op::Insert, self.most_inserts(), 1)?;
            times.push(self.bench.time(&table, &batches)?);
            for batch in &batches {
                all("insert", self.records.wrong(batch, None, Outcome::Done, 1, false)?, batch.count())?;
            }
            if times.len() < self.bench.pick(1, 4) {
                continue;
            }
            let millions = self.millions(self.pairs);
            let aim = self.aim(">= 160 (136 on an H100)");
            let later = if times.len() > 1 { &times[1..] } else { &times[..] };
            report.rate(&self.group, what, millions, "M/s", later, aim);
            report.rate(&self.group, "the same, the first table of the run", millions, "M/s", &times[..1], None);
            return Ok(table);
        }
    }

    fn insert_again(&self, table: &Table, report: &mut Report) -> Result<()> {
        let batches = self.pieces(Op::Insert, self.most_inserts(), 2)?;
        let time = self.bench.time(table, &batches)?;
        for batch in &batches {
            all("insert again", self.records.wrong(batch, None, Outcome::Exists, 1, false)?, batch.count())?;
        }
        report.rate(&self.group, "insert of keys that are there", self.millions(self.pairs), "M/s", &[time], None);
        Ok(())
    }

    fn repeated(&self, table: &Table, batch: &Operations) -> Result<Vec<Duration>> {
        (0..self.bench.repeats).map(|_| self.bench.time(table, std::slice::from_ref(batch))).collect()
    }

    fn search(&self, table: &Table, bits: u32, report: &mut Report) -> Result<()> {
        let keys = self.records.sequence(Op::Get, 0, self.pairs, bits)?;
        let times = self.repeated(table, &keys)?;
        all("search of keys", self.records.wrong(&keys, None, Outcome::Done, 1, false)?, self.pairs)?;
        report.rate(
            &self.group,
            "search, keys only",
            self.millions(self.pairs),
            "M/s",
            &times,
            self.aim(">= 600 (510 on an H100)"),
        );
        let room = self.records.room(&keys)?;
        room.fill(0)?;
        let batch = keys.with_found(room);
        let times = self.repeated(table, &batch)?;
        all("search", self.records.wrong(&batch, None, Outcome::Done, 1, false)?, self.pairs)?;
        report.rate(
            &self.group,
            "search with value",
            self.millions(self.pairs),
            "M/s",
            &times,
            self.aim(">= 250 (212 on an H100)"),
        );
        drop(batch);
        let absent = self.records.sequence(Op::Get, u64::from(self.pairs), self.pairs, bits)?;
        let times = self.repeated(table, &absent)?;
        all("search of absent keys", self.records.wrong(&absent, None, Outcome::Absent, 1, false)?, self.pairs)?;
        report.rate(&self.group, "search of keys that are not there", self.millions(self.pairs), "M/s", &times, None);
        Ok(())
    }

    fn update(&self, table: &Table, report: &mut Report) -> Result<()> {
        let most = self.subject.most_updates(table.layout()).min(self.bench.pick(self.pairs, 1 << 21));
        let batches = self.pieces(Op::Update, most, 2)?;
        let time = self.bench.time(table, &batches)?;
        for batch in &batches {
            all("update", self.records.wrong(batch, None, Outcome::Done, 2, false)?, batch.count())?;
        }
        report.rate(
            &self.group,
            format!("update with value, batches of {most}"),
            self.millions(self.pairs),
            "M/s",
            &[time],
            self.aim(">= 150 (128 on an H100)"),
        );
        drop(batches);
        let keys = self.records.sequence(Op::Get, 0, self.pairs, 0)?;
        let room = self.records.room(&keys)?;
        let batch = keys.with_found(room);
        table.run(&batch)?;
        all("search behind updates", self.records.wrong(&batch, None, Outcome::Done, 2, false)?, self.pairs)?;
        let times = self.repeated(table, &batch)?;
        report.rate(&self.group, "search with value behind updates", self.millions(self.pairs), "M/s", &times, None);
        Ok(())
    }

    fn recover(&self, region: &PmRegion, report: &mut Report) -> Result<Table> {
        let mut times = Vec::new();
        let mut table = None;
        for _ in 0..self.bench.repeats.min(3) {
            drop(table.take());
            self.bench.device.synchronize()?;
            let started = Instant::now();
            let opened = self.subject.open(region, self.pairs)?;
            self.bench.device.synchronize()?;
            times.push(started.elapsed());
            ensure!(opened.found().live == self.pairs, "recovery found {}", opened.found());
            table = Some(opened);
        }
        if self.bench.full {
            report.time(
                &self.group,
                "opening again: recovery, memory and its sorter; without mapping",
                &times,
                self.aim("<= 30"),
            );
        }
        let table = table.expect("it was opened");
        let found = table.check()?;
        ensure!(found.is_sound(), "a check found {found}");
        Ok(table)
    }

    fn delete(&self, table: &Table, bits: u32, report: &mut Report) -> Result<()> {
        let batch = self.records.sequence(Op::Delete, 0, self.pairs, bits)?;
        let time = self.bench.time(table, std::slice::from_ref(&batch))?;
        all("delete", self.records.wrong(&batch, None, Outcome::Done, 1, false)?, self.pairs)?;
        report.rate(
            &self.group,
            "delete",
            self.millions(self.pairs),
            "M/s",
            &[time],
            self.aim(">= 350 (297 on an H100)"),
        );
        let batch = batch.all(Op::Get);
        table.run(&batch)?;
        all("search behind deletes", self.records.wrong(&batch, None, Outcome::Absent, 1, false)?, self.pairs)
    }
}
