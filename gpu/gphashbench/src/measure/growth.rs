//! Growing, and how full a table gets before its stash is needed.

use std::time::Instant;

use anyhow::{Result, ensure};
use nearpm_gphash::{Design, Op, Outcome, Table};
use nearpm_gpmbench::report::Report;

use super::{Bench, Records, SUBJECTS, Subject, VALUE, all, insert, region};

/// A table that doubles, window by window or by a level, with everything looked for behind it.
pub fn growth(bench: &Bench, report: &mut Report) -> Result<()> {
    let pairs: u32 = bench.pick(400, 1 << 23);
    for subject in &SUBJECTS {
        let records = Records::new(&bench.device, VALUE);
        let layout = subject.layout(bench, u64::from(pairs) * 10 / 8, VALUE).growing(1);
        let region = region(bench, &layout)?;
        let mut table = Table::create(&region, "table", &layout, 1)?;
        table.sort_batches(pairs)?;
        insert(bench, &table, &records, 0, pairs, subject.most_updates(&layout).min(1 << 20))?;
        let group = format!("growing, {}: {pairs} pairs, values of {VALUE} B, load 0.8", subject.name);
        let (mut steps, started) = (Vec::new(), Instant::now());
        while table.can_grow() {
            let one = Instant::now();
            table.grow(1)?;
            bench.device.synchronize()?;
            steps.push(one.elapsed());
        }
        let whole = started.elapsed();
        let keys = records.sequence(Op::Get, 0, pairs, 0)?;
        let room = records.room(&keys)?;
        let batch = keys.with_found(room);
        table.run(&batch)?;
        all("search behind growth", records.wrong(&batch, None, Outcome::Done, 1, false)?, pairs)?;
        ensure!(table.check()?.is_sound(), "a check found {}", table.check()?);
        if bench.full {
            report.time(&group, "to twice the size, the wall's time", &[whole], None);
            report.time(&group, "a step (a window or a level)", &steps, None);
        }
        report.value(&group, "steps", steps.len() as f64, "", None);
    }
    Ok(())
}

/// Slots in use, of those besides the stash, when the first key finds none there, or none at all;
/// of design P by the size of the table, too: of more buckets the fullest is fuller.
pub fn load(bench: &Bench, report: &mut Report) -> Result<()> {
    let full: u32 = bench.pick(4096, 1 << 24);
    for subject in &SUBJECTS {
        let sizes: &[u32] = match subject.design {
            Design::Tags => &[full],
            Design::Levels => bench.pick(&[4096], &[1 << 12, 1 << 18, 1 << 24]),
        };
        for &slots in sizes {
            // A table is filled in so many steps that one more makes no difference.
            let batch = (slots / 1024).max(bench.pick(64, 16));
            let (mut least, seeds) = (f64::INFINITY, bench.pick(2, 10));
            for seed in 0..seeds {
                least = least.min(load_of(bench, subject, slots, batch, seed)?);
            }
            let (what, aim) = match subject.design {
                Design::Tags => ("before the stash is used", ">= 94"),
                Design::Levels => ("before a key finds no slot", ">= 92"),
            };
            let group = format!("load factor, {}: {slots} slots, batches of {batch}", subject.name);
            let aim = (slots == full).then_some(aim);
            report.value(&group, format!("{what}, least of {seeds} seeds"), 100.0 * least, "%", aim);
        }
    }
    Ok(())
}

fn load_of(bench: &Bench, subject: &Subject, slots: u32, batch: u32, seed: u32) -> Result<f64> {
    let layout = subject.layout(bench, slots.into(), 16);
    let region = region(bench, &layout)?;
    let table = Table::create(&region, "table", &layout, seed + 1)?;
    let records = Records::new(&bench.device, 16);
    let mut inserted = 0;
    loop {
        let all = records.fill(records.sequence(Op::Insert, u64::from(inserted), batch, 0)?, 1)?;
        table.run(&all)?;
        if table.stash_is_used()? || records.wrong(&all, None, Outcome::Done, 1, false)? > 0 {
            return Ok(f64::from(inserted) / table.slots_in_use() as f64);
        }
        inserted += batch;
    }
}
