//! Throughput and latency by the size of a batch (figures 5 and 6), configurations of the paper's
//! design (figure 13).

use std::time::Duration;

use anyhow::Result;
use nearpm_gphash::{Layout, Op, Outcome, Table};
use nearpm_gpmbench::report::Report;

use super::{Bench, Records, SUBJECTS, Subject, VALUE, all, insert, region};

/// Micro-benchmarks by the size of a batch. What a batch of inserts has put in, one of deletes
/// takes out.
pub fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    for subject in &SUBJECTS {
        curve(bench, subject, report)?;
    }
    configurations(bench, report)
}

fn curve(bench: &Bench, subject: &Subject, report: &mut Report) -> Result<()> {
    let pairs: u32 = bench.pick(400, 1 << 22);
    let records = Records::new(&bench.device, VALUE);
    let layout = subject.layout(bench, u64::from(pairs) * 10 / 7, VALUE);
    let region = region(bench, &layout)?;
    let mut table = Table::create(&region, "table", &layout, 1)?;
    table.sort_batches(bench.pick(128, 1 << 20))?;
    let most = subject.most_updates(&layout);
    insert(bench, &table, &records, 0, pairs, most.min(bench.pick(128, 1 << 20)))?;
    let group = format!("by size of a batch, {}: {pairs} pairs, values of {VALUE} B", subject.name);
    let sizes: &[u32] = bench.pick(&[32, 128], &[1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20]);
    for &size in sizes.iter().filter(|&&size| size <= most) {
        for (name, op, first, outcome) in [
            ("search", Op::Get, 0, Outcome::Done),
            ("search of what is not there", Op::Get, 2 * pairs, Outcome::Absent),
            ("update", Op::Update, 0, Outcome::Done),
            ("insert", Op::Insert, pairs, Outcome::Done),
            ("delete", Op::Delete, pairs, Outcome::Done),
        ] {
            let batch = records.fill(records.sequence(op, first.into(), size, 0)?, 1)?;
            let room = records.room(&batch)?;
            let batch = if op == Op::Get { batch.with_found(room) } else { batch };
            // What changes the table happens once; the rest a few times.
            let repeats = if matches!(op, Op::Insert | Op::Delete) { 1 } else { bench.repeats };
            let mut times: Vec<Duration> = Vec::new();
            for _ in 0..repeats {
                times.push(bench.time(&table, std::slice::from_ref(&batch))?);
                all(name, records.wrong(&batch, None, outcome, 1, false)?, size)?;
            }
            report.step(&group, format!("{name}, batch of {size}"), &times, 1, None);
            report.rate(&group, format!("{name}, batches of {size}"), f64::from(size) / 1e6, "M/s", &times, None);
        }
    }
    Ok(())
}

/// Design P with other levels, hash functions and slots: 32 slots are looked at at once in each.
fn configurations(bench: &Bench, report: &mut Report) -> Result<()> {
    let subject = &SUBJECTS[1];
    let slots: u64 = bench.pick(1 << 12, 1 << 22);
    for (levels, hashes, width) in [(1, 1, 32), (1, 2, 16), (2, 2, 8), (2, 1, 16), (4, 2, 4), (4, 1, 8)] {
        // Together the levels have as many slots as were asked for.
        let share = (0..levels).map(|level| 1.0 / f64::from(1 << level)).sum::<f64>() * f64::from(width);
        let buckets = ((slots as f64 / share) as u32).next_multiple_of(1 << (levels - 1));
        let layout = Layout { levels, hashes, width, buckets, ..Layout::levels(slots, 16) };
        let region = region(bench, &layout)?;
        let table = Table::create(&region, "table", &layout, 1)?;
        let records = Records::new(&bench.device, 16);
        let group = format!("configurations, {}: {slots} slots, values of 16 B", subject.name);
        let name = format!("{levels}L-{hashes}H-{width}S");
        let piece: u32 = bench.pick(32, 1 << 14);
        let mut inserted = 0;
        loop {
            let batch = records.fill(records.sequence(Op::Insert, inserted.into(), piece, 0)?, 1)?;
            table.run(&batch)?;
            if records.wrong(&batch, None, Outcome::Done, 1, false)? > 0 {
                break;
            }
            inserted += piece;
        }
        let load = 100.0 * f64::from(inserted) / table.slots_in_use() as f64;
        report.value(&group, format!("{name}: slots in use before a refusal"), load, "%", None);
        let keys = records.sequence(Op::Get, 0, inserted, 0)?;
        let times: Vec<Duration> =
            (0..bench.repeats).map(|_| bench.time(&table, std::slice::from_ref(&keys))).collect::<Result<_>>()?;
        all("search", records.wrong(&keys, None, Outcome::Done, 1, false)?, inserted)?;
        report.rate(&group, format!("{name}: search, keys only"), f64::from(inserted) / 1e6, "M/s", &times, None);
    }
    Ok(())
}
