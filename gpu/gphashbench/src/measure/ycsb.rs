//! YCSB A, B, C, D, F and LOAD. E scans, which a hash table cannot.

use std::collections::BTreeMap;

use anyhow::Result;
use nearpm_gphash::{Op, Outcome};
use nearpm_gpmbench::report::Report;
use nearpm_gpu::Buffer;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Bench, LOAD, Records, SUBJECTS, Subject, VALUE, WORKLOADS, all};
use crate::skew::draw;

pub fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let pairs: u32 = bench.pick(400, 1 << 24);
    let count: usize = bench.pick(400, 1 << 22);
    let mut rates: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for subject in &SUBJECTS {
        for (name, rate) in subject_runs(bench, subject, pairs, count, report)? {
            rates.entry(name).or_default().push(rate);
        }
    }
    for (name, rates) in rates {
        report.value("YCSB, N over P", name, rates[0] / rates[1], "x", Some(">= 2"));
    }
    Ok(())
}

fn subject_runs(
    bench: &Bench,
    subject: &Subject,
    pairs: u32,
    count: usize,
    report: &mut Report,
) -> Result<Vec<(&'static str, f64)>> {
    let records = Records::new(&bench.device, VALUE);
    let group = format!("YCSB, {}: {pairs} pairs, values of {VALUE} B, theta 0.99", subject.name);
    // Room for what D inserts.
    let (_region, table) = subject.create(bench, u64::from(pairs) * 10 / 8, VALUE, count as u32)?;
    let most = subject.most_updates(table.layout()).min(count as u32);
    let mut load = std::time::Duration::ZERO;
    for first in (0..pairs).step_by(most as usize) {
        let piece = most.min(pairs - first);
        let batch = records.fill(records.sequence(Op::Insert, first.into(), piece, 0)?, 1)?;
        load += bench.time(&table, std::slice::from_ref(&batch))?;
        all(LOAD, records.wrong(&batch, None, Outcome::Done, 1, false)?, piece)?;
    }
    let mut rates = vec![(LOAD, f64::from(pairs) / load.as_secs_f64())];
    report.rate(&group, format!("{LOAD}, batches of {most}"), f64::from(pairs) / 1e6, "M/s", &[load], None);
    let mut inserted = pairs;
    let wanted = |name| bench.workloads.is_empty() || bench.workloads.contains(&name);
    for (number, (name, reads, other, choice)) in WORKLOADS.into_iter().enumerate() {
        if !wanted(name) {
            continue;
        }
        let mut random = ChaCha8Rng::seed_from_u64(number as u64);
        // Batches as large as the design's spare cells allow.
        let piece = if reads == 100 { count } else { (most as usize).min(count) };
        let mut times = Vec::new();
        let mut done = 0;
        while done < count {
            let piece = piece.min(count - done);
            let mut chosen = draw(choice, inserted, piece, (number * 1000 + done) as u64);
            let ops: Vec<Op> =
                (0..piece).map(|_| if random.random_range(0..100) < reads { Op::Get } else { other }).collect();
            if other == Op::Insert {
                for (record, _) in chosen.iter_mut().zip(&ops).filter(|(_, op)| **op == Op::Insert) {
                    *record = inserted;
                    inserted += 1;
                }
            }
            let batch =
                records.fill(records.chosen(Op::Get, &chosen)?.each(&bench.device, &ops)?, 2 + number as u32)?;
            let room = records.room(&batch)?;
            let batch = batch.with_found(room);
            times.push(bench.time(&table, std::slice::from_ref(&batch))?);
            let codes = Buffer::of_words(&bench.device, &ops.iter().map(|&op| op as u32).collect::<Vec<_>>())?;
            all(name, records.wrong(&batch, Some(&codes), Outcome::Done, 2 + number as u32, true)?, piece as u32)?;
            done += piece;
        }
        let total: std::time::Duration = times.iter().sum();
        rates.push((name, count as f64 / total.as_secs_f64()));
        report.rate(&group, format!("{name}, batches of {piece}"), count as f64 / 1e6, "M/s", &[total], None);
    }
    Ok(rates)
}
