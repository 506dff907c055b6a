//! gpKVS: batches of SETs with undo, against CPU-assisted persistence; recovery.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nearpm_gpm::Outcome;
use nearpm_gpu::{Medium, ObjectKind, PmRegion, persist_with_threads, store_pieces};

use super::Bench;
use crate::kernels::kvs as kvs_kernels;
use crate::kvs::{Kvs, Sets, batch_of, region_bytes};
use crate::report::Report;

const GROUP: &str = "gpKVS";
/// Batches of a run, as in the paper.
const BATCHES: u32 = 25;
/// Threads of the processor that store what changed.
const THREADS: usize = 16;

pub fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let (set_bits, count): (u32, usize) = bench.scale.pick((9, 300), (25, 1 << 21));
    let medium = Medium::memfd(region_bytes(set_bits, count as u32).next_multiple_of(1 << 21))?;
    let region = PmRegion::create_in(bench.device.clone(), medium)?;
    let kvs = Kvs::create(&region, set_bits, count as u32, kvs_kernels())?;
    let size = bench.scale.pick("64 KiB".to_owned(), format!("{} GiB", (128u64 << set_bits) >> 30));
    let logged = batches(bench, &kvs, count)?;
    let name = format!("{count} SETs with undo, table {size}, end to end");
    report.rate(GROUP, name, count as f64 / 1e6, "M/s", &logged, Some(">= 300 at 4 GiB"));
    report.time(GROUP, format!("the same, a batch, table {size}"), &logged, None);
    if bench.scale == super::Scale::Full {
        assisted(bench, report, &kvs, &region, count, &size)?;
        [(4096, "pages of 4 KiB"), (128, "sets of 128 B")]
            .into_iter()
            .try_for_each(|(bytes, what)| gathered(bench, report, &kvs, &region, count, bytes, what))?;
    }
    let operation: Duration = median(&logged) * BATCHES;
    drop(kvs);
    recovery(bench, report, region, count, operation)
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    times[times.len() / 2]
}

/// Times of batches, by the wall: sort, kernels, and the words that make them all or nothing.
fn batches(bench: &Bench, kvs: &Kvs, count: usize) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for repeat in 0..=bench.repeats as u64 {
        let pairs = batch_of(repeat, count, 1 << 40);
        let sets = Sets::new(&bench.device, &pairs)?;
        bench.device.synchronize()?;
        let time = bench.wall(&mut || kvs.set(&sets).map(drop))?;
        if repeat > 0 {
            times.push(time);
        }
        check(kvs, &pairs)?;
    }
    Ok(times)
}

/// Each key of the batch has its last value.
fn check(kvs: &Kvs, pairs: &[(u64, u64)]) -> Result<()> {
    let last: HashMap<u64, u64> = pairs.iter().copied().collect();
    let keys: Vec<u64> = last.keys().copied().collect();
    let found = kvs.get(&keys)?;
    let wrong = keys.iter().zip(found).filter(|(key, found)| last[key] != *found).count();
    // A set that was full gave a pair up; at the sizes that are measured that is rare.
    ensure!(wrong * 100 <= keys.len(), "{wrong} of {} keys do not have their values", keys.len());
    Ok(())
}

/// CAP-mm: the whole table is copied, and written back by threads of the processor.
fn assisted(bench: &Bench, report: &mut Report, kvs: &Kvs, region: &PmRegion, count: usize, size: &str) -> Result<()> {
    let (offset, bytes) = kvs.table();
    let mut best: Option<(Vec<Duration>, usize)> = None;
    for threads in [1, 4, 8, 16] {
        let mut times = Vec::new();
        for repeat in 0..3 {
            let sets = Sets::new(&bench.device, &batch_of(100 + repeat, count, 1 << 40))?;
            bench.device.synchronize()?;
            times.push(bench.wall(&mut || {
                kvs.set_assisted(&sets)?;
                bench.device.synchronize()?;
                region.mapped(|all| persist_with_threads(&all[offset as usize..][..bytes as usize], threads));
                Ok(())
            })?);
        }
        let faster = best.as_ref().is_none_or(|(best, _)| median(&times) < median(best));
        if faster {
            best = Some((times, threads));
        }
    }
    let (times, threads) = best.expect("there is a number of threads");
    report.time(GROUP, format!("CAP-mm of the whole table, {size}, best of 1 to 16 threads ({threads})"), &times, None);
    if let Some(ours) = report.find(GROUP, &format!("the same, a batch, table {size}")) {
        let over = median(&times).as_secs_f64() * 1e3 / ours;
        report.value(GROUP, "GPM over CAP-mm of the whole table", over, "x", Some(">= 15"));
    }
    Ok(())
}

/// CAP-mm of what changed: brought together on the GPU, copied to the processor's memory, stored and written back by threads of the processor.
fn gathered(
    bench: &Bench,
    report: &mut Report,
    kvs: &Kvs,
    region: &PmRegion,
    count: usize,
    bytes: u32,
    what: &str,
) -> Result<()> {
    let (offset, table) = kvs.table();
    // Pages at most as the table has.
    let most = (count as u64 * u64::from(bytes)).min(table);
    let (staging, bounce) = (bench.buffer(most)?, bench.region(most + (1 << 20))?);
    let place = bounce.add("bounce", ObjectKind::Data, most, |_| Ok(()))?.offset;
    let mut times = Vec::new();
    let mut moved = 0;
    for repeat in 0..3 {
        let sets = Sets::new(&bench.device, &batch_of(200 + repeat, count, 1 << 40))?;
        bench.device.synchronize()?;
        times.push(bench.wall(&mut || {
            let pieces = kvs.set_gathered(&sets, bytes, &staging)?;
            moved = pieces.len() as u64 * u64::from(bytes);
            bench.device.copy(bounce.address(place), staging.address(), moved)?;
            bench.device.synchronize()?;
            bounce.mapped(|from| {
                region.mapped_mut(|to| {
                    let to = &mut to[offset as usize..][..table as usize];
                    store_pieces(to, &pieces, bytes as usize, &from[place as usize..], THREADS);
                });
            });
            Ok(())
        })?);
    }
    let name = format!("CAP-mm of changed {what}, {} MiB a batch, {THREADS} threads", moved >> 20);
    report.time(GROUP, name, &times, None);
    if let Some(ours) =
        report.rows.iter().rev().find(|row| row.name.starts_with("the same, a batch")).map(|row| row.value)
    {
        let over = median(&times).as_secs_f64() * 1e3 / ours;
        report.value(GROUP, format!("GPM over CAP-mm of changed {what}"), over, "x", None);
    }
    Ok(())
}

/// A batch whose commit never comes, undone when the store is opened again.
fn recovery(bench: &Bench, report: &mut Report, region: PmRegion, count: usize, operation: Duration) -> Result<()> {
    let (kvs, _) = Kvs::open(&region, kvs_kernels())?;
    let before = batch_of(1000, count, 1 << 40);
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
    check(&kvs, &before)?;
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
