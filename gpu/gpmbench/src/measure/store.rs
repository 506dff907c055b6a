//! gpKVS: batches of SETs with undo, against CPU-assisted persistence; recovery.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nearpm_gpm::Outcome;
use nearpm_gpu::{Medium, ObjectKind, PmRegion, persist_scattered, persist_with_threads};
use nearpm_statistics::median_time;

use super::assisted::Assisted;
use super::opened::{COUNT, GROUP, Opened, THREADS, over};
use super::{Bench, changed, mixed};
use crate::kernels::kvs as kvs_kernels;
use crate::kvs::{Kvs, Model, Sets, batch_of, region_bytes};
use crate::report::Report;

/// SETs of a batch on the interpreter.
const SMALL_COUNT: usize = 300;
/// Batches of a run, as in the paper.
const BATCHES: u32 = 25;

pub fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let (set_bits, count): (u32, usize) = bench.scale.pick((9, SMALL_COUNT), (25, COUNT));
    let medium = Medium::memfd(region_bytes(set_bits, count as u32).next_multiple_of(1 << 21))?;
    let region = PmRegion::create_in(bench.device.clone(), medium)?;
    let kvs = Kvs::create(&region, set_bits, count as u32, kvs_kernels())?;
    let size = bench.scale.pick("64 KiB".to_owned(), format!("{} GiB", (128u64 << set_bits) >> 30));
    let mut model = Model::new(set_bits);
    let mut opened = Opened { kvs: &kvs, region: &region, model: &mut model };
    let logged = batches(bench, &mut opened, count)?;
    let name = format!("{count} SETs with undo, table {size}, end to end");
    report.rate(GROUP, name, count as f64 / 1e6, "M/s", &logged, Some(">= 300 at 4 GiB"));
    report.time(GROUP, format!("the same, a batch, table {size}"), &logged, None);
    if bench.scale == super::Scale::Full {
        assisted(bench, report, &mut opened, &size)?;
        [(4096, "pages of 4 KiB"), (128, "sets of 128 B")]
            .into_iter()
            .try_for_each(|(bytes, what)| changed::measure(bench, report, &mut opened, bytes, what))?;
        near(bench, report, &mut opened)?;
        by_file(bench, report, &kvs)?;
    }
    mixed::measure(bench, report, &mut opened, count)?;
    let operation: Duration = median_time(&logged) * BATCHES;
    drop(kvs);
    recovery(bench, report, region, &mut model, operation)
}

/// Times of batches, by the wall: sort, kernels, and the words that make them all or nothing.
fn batches(bench: &Bench, opened: &mut Opened<'_>, count: usize) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for repeat in 0..=bench.repeats as u64 {
        let pairs = batch_of(repeat, count, 1 << 40);
        let sets = Sets::new(&bench.device, &pairs)?;
        bench.device.synchronize()?;
        let time = bench.wall(&mut || opened.kvs.set(&sets).map(drop))?;
        if repeat > 0 {
            times.push(time);
        }
        opened.model.apply(&pairs);
        opened.check_keys(&pairs)?;
    }
    opened.check_table("SETs with undo")?;
    Ok(times)
}

/// CAP-mm: the whole table is copied, and written back by threads of the processor.
fn assisted(bench: &Bench, report: &mut Report, opened: &mut Opened<'_>, size: &str) -> Result<()> {
    let Opened { kvs, region, .. } = *opened;
    let (offset, bytes) = kvs.table();
    let mut best: Option<(Vec<Duration>, usize)> = None;
    for threads in [1, 4, 8, 16] {
        let mut times = Vec::new();
        for repeat in 0..3 {
            let pairs = batch_of(100 + repeat, COUNT, 1 << 40);
            let sets = Sets::new(&bench.device, &pairs)?;
            opened.model.apply(&pairs);
            bench.device.synchronize()?;
            times.push(bench.wall(&mut || {
                kvs.set_assisted(&sets)?;
                bench.device.synchronize()?;
                region.mapped(|all| persist_with_threads(&all[offset as usize..][..bytes as usize], threads));
                Ok(())
            })?);
        }
        let faster = best.as_ref().is_none_or(|(best, _)| median_time(&times) < median_time(best));
        if faster {
            best = Some((times, threads));
        }
    }
    opened.check_table("CAP-mm of the whole table")?;
    let (times, threads) = best.expect("there is a number of threads");
    report.time(GROUP, format!("CAP-mm of the whole table, {size}, best of 1 to 16 threads ({threads})"), &times, None);
    if let Some(ours) = report.find(GROUP, &format!("the same, a batch, table {size}")) {
        let over = median_time(&times).as_secs_f64() * 1e3 / ours;
        report.value(GROUP, "GPM over CAP-mm of the whole table", over, "x", Some(">= 15"));
    }
    Ok(())
}

/// GPM-NDP: the same kernels, and write-back of what they stored by threads of the processor: a
/// pair a SET, and the log.
fn near(bench: &Bench, report: &mut Report, opened: &mut Opened<'_>) -> Result<()> {
    let Opened { kvs, region, .. } = *opened;
    let (offset, bytes) = kvs.table();
    let log = region.find("kvs.log", ObjectKind::SealedLog)?;
    let mut times = Vec::new();
    for repeat in 0..3 {
        let pairs = batch_of(300 + repeat, COUNT, 1 << 40);
        let sets = Sets::new(&bench.device, &pairs)?;
        opened.model.apply(&pairs);
        bench.device.synchronize()?;
        times.push(bench.wall(&mut || {
            let mut write_back = |places: &[u32]| {
                region.mapped(|all| {
                    let table = &all[offset as usize..][..bytes as usize];
                    std::thread::scope(|scope| {
                        for part in places.chunks(places.len().div_ceil(THREADS).max(1)) {
                            let stored = part.iter().filter(|&&place| place != u32::MAX);
                            scope.spawn(move || persist_scattered(table, stored.map(|&place| 16 * place as usize)));
                        }
                    });
                    persist_with_threads(&all[log.offset as usize..][..log.bytes as usize], THREADS);
                });
            };
            kvs.set_near(&sets, &mut write_back).map(drop)
        })?);
    }
    opened.check_table("GPM-NDP")?;
    report.time(GROUP, format!("GPM-NDP with undo, {THREADS} threads write back"), &times, None);
    over(report, "GPM over GPM-NDP", &times);
    Ok(())
}

/// CAP-fs of the whole table.
fn by_file(bench: &Bench, report: &mut Report, kvs: &Kvs) -> Result<()> {
    let ways = Assisted::new(bench, GROUP, "the whole table", vec![kvs.mirror()])?;
    if let Some(time) = ways.by_file(report)? {
        over(report, "GPM over CAP-fs of the whole table", &[time]);
    }
    Ok(())
}

/// A batch whose commit never comes, undone when the store is opened again.
fn recovery(
    bench: &Bench,
    report: &mut Report,
    region: PmRegion,
    model: &mut Model,
    operation: Duration,
) -> Result<()> {
    let (kvs, _) = Kvs::open(&region, kvs_kernels())?;
    let count = bench.scale.pick(SMALL_COUNT, COUNT);
    let before = batch_of(1000, count, 1 << 40);
    model.apply(&before);
    kvs.set(&Sets::new(&bench.device, &before)?)?;
    // The same keys with other values, left active: all of its entries are there.
    let after: Vec<(u64, u64)> = before.iter().map(|&(key, value)| (key, !value)).collect();
    let sets = Sets::new(&bench.device, &after)?;
    kvs.set_without_commit(&sets)?;
    bench.device.synchronize()?;
    drop(kvs);
    let started = Instant::now();
    let (kvs, outcome, undo) = Kvs::open_timed(&region, kvs_kernels())?;
    bench.device.synchronize()?;
    let all = started.elapsed();
    ensure!(matches!(outcome, Outcome::Undone { .. }), "the batch that was left active was not undone: {outcome:?}");
    let opened = Opened { kvs: &kvs, region: &region, model };
    opened.check_keys(&before)?;
    opened.check_table("undo of a batch")?;
    if bench.scale == super::Scale::Small {
        // These are times of this program, not of a device.
        return Ok(());
    }
    report.time(GROUP, format!("recovery: undo of {count} SETs"), &[undo], None);
    report.time(GROUP, "opening again: undo, log, copy of the table to the device's memory", &[all], None);
    let share = undo.as_secs_f64() / operation.as_secs_f64() * 100.0;
    report.value(GROUP, format!("undo, of the time of {BATCHES} batches"), share, "%", Some("<= 5 (paper 18.96)"));
    Ok(())
}
