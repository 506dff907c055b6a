//! Figure 11: hierarchical coalesced logs against the best conventional one.

use std::time::Duration;

use anyhow::{Result, ensure};
use nearpm_gpm::{Form, Log, MIRROR, Shape};
use nearpm_gpu::Launch;

use super::Bench;
use crate::kernels::micro;
use crate::pattern::pattern;
use crate::report::Report;

const GROUP: &str = "Logs of 16 B entries (figure 11)";
/// Threads a block.
const BLOCK: u32 = 256;

pub fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    for threads in bench.scale.pick(vec![512u32], vec![1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18]) {
        let one = hierarchical(bench, report, GROUP, threads, Form::Sealed)?;
        hierarchical(bench, report, GROUP, threads, Form::Tail)?;
        for (flags, head, aim) in [(0, "PM", ">= 10 from 16 k threads"), (MIRROR, "HBM", ">= 8 from 16 k threads")] {
            let best = best_conventional(bench, report, threads, flags, head)?;
            report.value(
                GROUP,
                format!("HCL one fence over conventional, head in {head}, {threads} threads"),
                one / best,
                "x",
                Some(aim),
            );
        }
    }
    Ok(())
}

/// Millions of inserts a second, each of which is looked at.
pub(super) fn hierarchical(bench: &Bench, report: &mut Report, group: &str, threads: u32, form: Form) -> Result<f64> {
    let rounds = bench.scale.pick(4, (1 << 24) / threads);
    let inserts = u64::from(threads) * u64::from(rounds);
    let (kernel, bytes, name, aim) = match form {
        Form::Sealed => ("hcl_sealed", 12, "HCL one fence (12 B + seal 4 B)", ">= 2900 at 262144"),
        Form::Tail => ("hcl_tail", 16, "HCL two fences (16 B + tail 4 B)", ">= 2300 at 262144"),
    };
    let region = bench.region(inserts * 16 + 8 * u64::from(threads) + (4 << 20))?;
    let shape = Shape { blocks: threads / BLOCK, threads: BLOCK };
    let log = Log::create_hcl(&region, "log", shape, bytes, rounds, form)?;
    let launch =
        |seed: u32| Launch::new(shape.blocks, shape.threads, [log.address().into(), rounds.into(), seed.into()]);
    let times = bench.times(|_| Ok(log.clear()?), |seed| bench.device.launch(micro().kernel(kernel), &launch(seed)))?;
    log.check()?;
    let (mut count, mut wrong) = (0, 0);
    log.visit(&mut |thread, slot, words| {
        let place = (thread.wrapping_mul(rounds).wrapping_add(slot)).wrapping_mul(words.len() as u32);
        let expected = (place..).zip(words).all(|(place, &word)| word == pattern(place, bench.last()));
        count += 1;
        wrong += u64::from(!expected);
    })?;
    ensure!(count == inserts && wrong == 0, "{name}: {count} of {inserts} entries are there, {wrong} of them wrong");
    report.rate(group, format!("{name}, {threads} threads"), inserts as f64 / 1e6, "M/s", &times, Some(aim));
    Ok(rate(inserts, &times))
}

fn rate(inserts: u64, times: &[Duration]) -> f64 {
    let mut times = times.to_vec();
    times.sort();
    inserts as f64 / 1e6 / times[times.len() / 2].as_secs_f64()
}

/// The best over numbers of partitions, in millions of inserts a second.
fn best_conventional(bench: &Bench, report: &mut Report, threads: u32, flags: u32, head: &str) -> Result<f64> {
    let mut best: Option<(f64, u32, Vec<Duration>, u64)> = None;
    for partitions in bench.scale.pick(vec![16u32, 64], vec![256, 1024, 4096, 16384, 65536, 262_144]) {
        if partitions > threads {
            break;
        }
        let rounds = bench.scale.pick(2, ((1u32 << 18) / threads).max(1) * 2);
        let inserts = u64::from(threads) * u64::from(rounds);
        let room = inserts * 16;
        let region = bench.region(room + u64::from(partitions) * 512 + (4 << 20))?;
        let log = Log::create_conventional(&region, "log", partitions, room)?.with_flags(flags)?;
        let arguments = |seed: u32| [log.address().into(), rounds.into(), seed.into()];
        let times = bench.times(
            |_| Ok(log.clear()?),
            |seed| {
                bench
                    .device
                    .launch(micro().kernel("conv_insert"), &Launch::over(threads.into(), BLOCK, arguments(seed)))
            },
        )?;
        log.check()?;
        let (mut seen, mut wrong) = (0, 0u64);
        log.visit(&mut |_, _, words| {
            for entry in words.chunks(4) {
                let expected = (0..3).all(|i| entry[1 + i as usize] == pattern(entry[0] + i, bench.last()));
                seen += 1;
                wrong += u64::from(!expected);
            }
        })?;
        ensure!(seen == inserts && wrong == 0, "conventional log: {seen} of {inserts} entries, {wrong} of them wrong");
        let found = rate(inserts, &times);
        if best.as_ref().is_none_or(|(best, ..)| found > *best) {
            best = Some((found, partitions, times, inserts));
        }
    }
    let (best, partitions, times, inserts) = best.expect("there is a number of partitions");
    let name = format!("best conventional, head in {head}, {threads} threads ({partitions} partitions)");
    report.rate(GROUP, name, inserts as f64 / 1e6, "M/s", &times, None);
    Ok(best)
}
