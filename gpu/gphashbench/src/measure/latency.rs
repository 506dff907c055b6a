//! A small batch, from the processor's keys to the processor's answers.

use std::time::{Duration, Instant};

use anyhow::Result;
use nearpm_gphash::{Design, Op, Operations, Outcome};
use nearpm_gpmbench::report::Report;

use super::{Bench, Records, Subject, all};

/// Operations of a batch, as in the paper.
const BATCH: u32 = 1 << 12;

pub fn measure(bench: &Bench, subject: &Subject, report: &mut Report) -> Result<()> {
    let bits: u32 = bench.pick(8, 24);
    let pairs = 1u32 << bits;
    let records = Records::new(&bench.device, 128);
    let (_region, table) = subject.create(bench, u64::from(pairs) * 10 / 8, 128, BATCH)?;
    let piece = pairs.min(1 << 20);
    for first in (0..pairs).step_by(piece as usize) {
        let batch = records.fill(records.sequence(Op::Insert, first.into(), piece, 0)?, 1)?;
        table.run(&batch)?;
        all("insert", records.wrong(&batch, None, Outcome::Done, 1, false)?, piece)?;
    }
    let batch_of = bench.pick(pairs, BATCH);
    let group = format!("{}: batch of {batch_of} in {pairs} pairs", subject.name);
    let aim = (subject.design == Design::Tags).then_some("<= 70 (80 on an H100)");
    for (name, op) in [("search", Op::Get), ("update", Op::Update)] {
        let batch = records.fill(records.sequence(op, 0, batch_of, 0)?, 1)?;
        let room = records.room(&batch)?;
        let batch = if op == Op::Get { batch.with_found(room) } else { batch };
        let keys = batch.keys.download()?;
        let (mut whole, mut kernel) = (Vec::new(), Vec::new());
        for repeat in 0..=bench.repeats * 4 {
            let inner = bench.time(&table, std::slice::from_ref(&batch))?;
            let started = Instant::now();
            round_trip(&table, &batch, &keys)?;
            let outer = started.elapsed();
            if repeat > 0 {
                kernel.push(inner);
                whole.push(outer);
            }
        }
        all(name, records.wrong(&batch, None, Outcome::Done, 1, false)?, batch_of)?;
        report.step(&group, format!("{name} with value, on the device"), &kernel, 1, aim);
        if bench.full {
            report.step(&group, format!("{name} with value, keys up and outcomes down"), &whole, 1, None);
        }
    }
    pipelined(bench, &table, &records, batch_of, &group, report)
}

fn round_trip(table: &nearpm_gphash::Table, batch: &Operations, keys: &[u8]) -> Result<()> {
    batch.keys.upload(keys)?;
    table.run(batch)?;
    batch.outcomes.download()?;
    Ok(())
}

/// Batches one behind the other, without waiting in between.
fn pipelined(
    bench: &Bench,
    table: &nearpm_gphash::Table,
    records: &Records,
    batch_of: u32,
    group: &str,
    report: &mut Report,
) -> Result<()> {
    const DEPTH: u32 = 32;
    let batch = records.sequence(Op::Get, 0, batch_of, 0)?;
    let room = records.room(&batch)?;
    let batch = batch.with_found(room);
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..bench.repeats {
        let mut failed = Ok(());
        let elapsed = bench.device.time(&mut || {
            failed = (0..DEPTH).try_for_each(|_| table.run(&batch));
            Ok(())
        })?;
        failed?;
        times.push(elapsed.time.max(Duration::from_nanos(1)));
    }
    all("search", records.wrong(&batch, None, Outcome::Done, 1, false)?, batch_of)?;
    report.step(
        group,
        format!("search with value, each of {DEPTH} in a row"),
        &times,
        DEPTH,
        Some("<= 70 (80 on an H100)"),
    );
    Ok(())
}
