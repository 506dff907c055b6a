//! A table far beyond what a GPU translates at once.

use std::time::Duration;

use anyhow::Result;
use nearpm_gphash::{Op, Outcome};
use nearpm_gpmbench::report::Report;

use super::{Bench, Records, SUBJECTS, all};

/// Values of 16 bytes, many pairs.
pub fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let subject = &SUBJECTS[0];
    let bits: u32 = bench.pick(10, 28);
    let (pairs, piece) = (1u32 << bits, 1u32 << (bits - 3));
    let records = Records::new(&bench.device, 16);
    let (_region, table) = subject.create(bench, u64::from(pairs) * 10 / 8, 16, piece)?;
    let group = format!(
        "{}: {pairs} pairs, values of 16 B, {:.1} GiB",
        subject.name,
        table.layout().bytes() as f64 / f64::from(1 << 30)
    );
    let mut times = Vec::new();
    for first in (0..pairs).step_by(piece as usize) {
        let batch = records.fill(records.sequence(Op::Insert, first.into(), piece, 0)?, 1)?;
        times.push(bench.time(&table, std::slice::from_ref(&batch))?);
        all("insert", records.wrong(&batch, None, Outcome::Done, 1, false)?, piece)?;
    }
    report.rate(
        &group,
        format!("insert, batches of {piece}, partitioned"),
        f64::from(piece) / 1e6,
        "M/s",
        &times,
        Some(">= 150"),
    );
    let keys = records.sequence(Op::Get, 0, piece, 0)?;
    let room = records.room(&keys)?;
    let batch = keys.with_found(room);
    let times: Vec<Duration> =
        (0..bench.repeats).map(|_| bench.time(&table, std::slice::from_ref(&batch))).collect::<Result<_>>()?;
    all("search", records.wrong(&batch, None, Outcome::Done, 1, false)?, piece)?;
    report.rate(
        &group,
        format!("search with value, batches of {piece}, partitioned"),
        f64::from(piece) / 1e6,
        "M/s",
        &times,
        Some(">= 150"),
    );
    let small = records.sequence(Op::Get, 0, bench.pick(64, (1 << 15) - 1), 0)?;
    let room = records.room(&small)?;
    let batch = small.with_found(room);
    let times: Vec<Duration> =
        (0..bench.repeats).map(|_| bench.time(&table, std::slice::from_ref(&batch))).collect::<Result<_>>()?;
    all("search", records.wrong(&batch, None, Outcome::Done, 1, false)?, batch.count())?;
    report.rate(&group, "search with value as it comes", f64::from(batch.count()) / 1e6, "M/s", &times, None);
    Ok(())
}
