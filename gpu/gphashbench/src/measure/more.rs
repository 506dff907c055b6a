//! Caches, growing, wide keys, and how full a table gets before its stash is needed.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nearpm_gphash::{CacheOptions, Design, Keys, Layout, Op, Operations, Outcome, Table};
use nearpm_gpmbench::report::Report;
use nearpm_gpu::{Buffer, Medium, PmRegion};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Bench, Records, SUBJECTS, Subject, all};
use crate::skew::{Choice, draw};

const VALUE: u32 = 128;

fn region(bench: &Bench, layout: &Layout) -> Result<PmRegion> {
    let medium = Medium::memfd((layout.bytes() + (1 << 20)).next_multiple_of(1 << 21))?;
    Ok(PmRegion::create_in(bench.device.clone(), medium)?)
}

/// Inserts records from `first` on, in batches, each looked at.
fn insert(bench: &Bench, table: &Table, records: &Records, first: u32, count: u32, most: u32) -> Result<Duration> {
    let mut time = Duration::ZERO;
    for at in (first..first + count).step_by(most as usize) {
        let piece = most.min(first + count - at);
        let batch = records.fill(records.sequence(Op::Insert, at.into(), piece, 0)?, 1)?;
        time += bench.time(table, std::slice::from_ref(&batch))?;
        all("insert", records.wrong(&batch, None, Outcome::Done, 1, false)?, piece)?;
    }
    Ok(time)
}

/// YCSB A, B and C with a fifth of the values, or of the buckets, in the cache; a turn before each batch, whose time counts.
pub fn cache(bench: &Bench, report: &mut Report) -> Result<()> {
    let pairs: u32 = bench.pick(400, 1 << 24);
    let count: usize = bench.pick(200, 1 << 22);
    let batches: usize = bench.pick(4, 12);
    for subject in &SUBJECTS {
        let records = Records::new(&bench.device, VALUE);
        let layout = subject.layout(bench, u64::from(pairs) * 10 / 8, VALUE);
        let region = region(bench, &layout)?;
        drop(Table::create(&region, "table", &layout, 1)?);
        let options = CacheOptions::share(&layout, 0.2);
        let options = CacheOptions { sampled: bench.pick(0, options.sampled), ..options };
        let mut table = Table::open_cached(&region, "table", options)?;
        table.sort_batches(count as u32)?;
        let most = subject.most_updates(&layout).min(count as u32);
        insert(bench, &table, &records, 0, pairs, most)?;
        let group = format!("YCSB with a cache of 20 %, {}: {pairs} pairs, values of {VALUE} B", subject.name);
        for (number, (name, reads)) in [("C", 100), ("B", 95), ("A", 50)].into_iter().enumerate() {
            let piece = if reads == 100 { count } else { most as usize };
            let mut random = ChaCha8Rng::seed_from_u64(number as u64);
            let mut times = Vec::new();
            for batch in 0..batches {
                let chosen = draw(Choice::Scrambled, pairs, piece, (number * 1000 + batch) as u64);
                let ops: Vec<Op> = (0..piece)
                    .map(|_| if random.random_range(0..100) < reads { Op::Get } else { Op::Update })
                    .collect();
                let batch = records.chosen(Op::Get, &chosen)?.each(&bench.device, &ops)?;
                let batch = records.fill(batch, 2 + number as u32)?;
                let room = records.room(&batch)?;
                let batch = batch.with_found(room);
                let mut failed = Ok(());
                let elapsed = bench.device.time(&mut || {
                    failed = table.turn_cache().and_then(|()| table.run(&batch));
                    Ok(())
                })?;
                failed?;
                times.push(elapsed.time.max(Duration::from_nanos(1)));
                let codes = Buffer::of_words(&bench.device, &ops.iter().map(|&op| op as u32).collect::<Vec<_>>())?;
                all(name, records.wrong(&batch, Some(&codes), Outcome::Done, 2 + number as u32, true)?, piece as u32)?;
            }
            // The first batches fill the cache.
            let warm = &times[batches / 2..];
            let aim = (subject.design == Design::Tags && reads == 100).then_some(">= 1500");
            report.rate(
                &group,
                format!("{name}, batches of {piece}, turns included"),
                piece as f64 / 1e6,
                "M/s",
                warm,
                aim,
            );
            report.value(&group, format!("{name}: values or buckets cached"), f64::from(table.cached()?), "", None);
        }
    }
    Ok(())
}

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

/// Keys of 32 bytes: insert and search.
pub fn wide(bench: &Bench, report: &mut Report) -> Result<()> {
    let pairs: u32 = bench.pick(300, 1 << 23);
    for subject in &SUBJECTS {
        let layout = subject.layout(bench, u64::from(pairs) * 10 / 8, VALUE).with_keys(Keys::Fixed(32));
        let region = region(bench, &layout)?;
        let mut table = Table::create(&region, "table", &layout, 1)?;
        table.sort_batches(pairs)?;
        let keys = |record: u32| {
            [1u64, 2, 3, 4].map(|word| (u64::from(record) << 8 | word).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        };
        let group = format!("keys of 32 B, {}: {pairs} pairs, values of {VALUE} B, load 0.8", subject.name);
        let most = subject.most_updates(&layout).min(1 << 20);
        let (mut inserting, mut searching) = (Duration::ZERO, Duration::ZERO);
        for first in (0..pairs).step_by(most as usize) {
            let count = most.min(pairs - first);
            let bytes: Vec<u8> = (first..first + count).flat_map(keys).flat_map(u64::to_le_bytes).collect();
            let values = Buffer::new(&bench.device, u64::from(count) * u64::from(VALUE))?;
            // The value is the key, four times.
            values.upload(
                &bytes.chunks(32).flat_map(|key| [key; VALUE as usize / 32]).flatten().copied().collect::<Vec<_>>(),
            )?;
            let batch = Operations::of_stored(&bench.device, Op::Insert, count, &bytes)?.with_values(values);
            inserting += bench.time(&table, std::slice::from_ref(&batch))?;
            let done = table.outcomes(&batch)?.into_iter().all(|outcome| outcome == Outcome::Done);
            ensure!(done, "an insert was not done: no figure is printed");
            let found = Buffer::zeroed(&bench.device, u64::from(count) * u64::from(VALUE))?;
            let batch = batch.all(Op::Get).with_found(found);
            searching += bench.time(&table, std::slice::from_ref(&batch))?;
            let read = batch.found.as_ref().map_or(Ok(Vec::new()), Buffer::download)?;
            let same =
                read.chunks(32).zip(bytes.chunks(32).flat_map(|key| [key; VALUE as usize / 32])).all(|(a, b)| a == b);
            ensure!(same, "a search read another value: no figure is printed");
        }
        let millions = f64::from(pairs) / 1e6;
        report.rate(&group, "insert with value, durable", millions, "M/s", &[inserting], None);
        report.rate(&group, "search with value, behind its insert", millions, "M/s", &[searching], None);
    }
    Ok(())
}

/// Slots in use, of those besides the stash, when the first key finds none there, or none at all.
pub fn load(bench: &Bench, report: &mut Report) -> Result<()> {
    let slots: u32 = bench.pick(4096, 1 << 24);
    let batch = bench.pick(64, 1 << 14);
    for subject in &SUBJECTS {
        let mut least = f64::INFINITY;
        let seeds = bench.pick(2, 10);
        for seed in 0..seeds {
            least = least.min(load_of(bench, subject, slots, batch, seed)?);
        }
        let (what, aim) = match subject.design {
            Design::Tags => ("before the stash is used", ">= 94"),
            Design::Levels => ("before a key finds no slot", ">= 92"),
        };
        let group = format!("load factor, {}: {slots} slots, batches of {batch}", subject.name);
        report.value(&group, format!("{what}, least of {seeds} seeds"), 100.0 * least, "%", Some(aim));
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
