//! Checkpoints of what changed, and checkpoints in flight.

use anyhow::{Result, ensure};
use nearpm_gpm::{Checkpoint, Concurrent, Element};
use nearpm_gpu::{Buffer, Launch};
use nearpm_statistics::median_time;

use super::Bench;
use crate::kernels::micro;
use crate::report::Report;

const GROUP: &str = "Incremental and concurrent checkpoints";
/// Bytes of a page.
const PAGE: u64 = 4096;

pub fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let bytes: u64 = bench.scale.pick(1 << 16, 256 << 20);
    let memory = bench.buffer(bytes)?;
    changed(bench, report, &memory)?;
    in_flight(bench, report, &memory)
}

/// Stores to the first `bytes` bytes of each part of `every` bytes, so that of each part one page
/// changes.
fn touch(bench: &Bench, memory: &Buffer, every: u64, seed: u32) -> Result<()> {
    for start in (0..memory.bytes()).step_by((every * 256) as usize) {
        let parts = (memory.bytes() - start).min(every * 256).div_ceil(every);
        let arguments = [(memory.address() + start).into(), every.into(), (parts as u32).into(), seed.into()];
        bench.device.launch(micro().kernel("touch_parts"), &Launch::over(parts, 256, arguments))?;
    }
    Ok(bench.device.synchronize()?)
}

fn element(memory: &Buffer) -> Element {
    Element { name: "memory".to_owned(), address: memory.address(), bytes: memory.bytes() }
}

fn changed(bench: &Bench, report: &mut Report, memory: &Buffer) -> Result<()> {
    let bytes = memory.bytes();
    let region = bench.region(3 * bytes + (8 << 20))?;
    let checkpoint = Checkpoint::create(&region, "checkpoint", bytes, 1, 1)?;
    checkpoint.register(0, element(memory))?;
    let mut whole = Vec::new();
    for seed in 0..=bench.last() {
        touch(bench, memory, PAGE, seed)?;
        whole.push(bench.wall(&mut || Ok(checkpoint.checkpoint(0).map(drop)?))?);
    }
    whole.remove(0);
    report.time(GROUP, "all of it", &whole, None);
    // What both slots hold is known from then on.
    (0..2).try_for_each(|_| checkpoint.checkpoint_changed(0).map(drop))?;
    for (percent, every) in [(100, PAGE), (50, 2 * PAGE), (10, 10 * PAGE), (1, 100 * PAGE)] {
        let (mut times, mut moved) = (Vec::new(), 0);
        for seed in 0..=bench.last() {
            touch(bench, memory, every, 100 * percent + seed)?;
            times.push(bench.wall(&mut || {
                moved = checkpoint.checkpoint_changed(0)?.moved;
                Ok(())
            })?);
        }
        times.remove(0);
        let kept = memory.download()?;
        memory.fill(0)?;
        ensure!(checkpoint.restore(0)?.is_some() && memory.download()? == kept, "an incremental checkpoint is wrong");
        report.time(GROUP, format!("{percent} % of the pages changed, {} KiB copied", moved >> 10), &times, None);
        let over = median_time(&whole).as_secs_f64() / median_time(&times).as_secs_f64().max(1e-9);
        report.value(GROUP, format!("{percent} % changed: over a whole one"), over, "x", None);
    }
    Ok(())
}

/// Rounds of work of the program.
const ROUNDS: u32 = 12;

/// Tells a time, but on the interpreter, whose model knows nothing of what goes on beside kernels.
fn tell(bench: &Bench, report: &mut Report, name: String, time: std::time::Duration) {
    if bench.scale == super::Scale::Full {
        report.time(GROUP, name, &[time], None);
    }
}

/// A program that works in its memory for about as long as a checkpoint takes, and takes one a
/// round.
fn in_flight(bench: &Bench, report: &mut Report, memory: &Buffer) -> Result<()> {
    let passes = bench.scale.pick(2, 40);
    let work = |seed: u32| -> Result<()> {
        (0..passes).try_for_each(|pass| {
            let arguments = [memory.address().into(), memory.bytes().into(), (seed + pass).into()];
            let launch = Launch::new(bench.scale.pick(4, 1056), 256, arguments);
            Ok(bench.device.launch(micro().kernel("stream_persist"), &launch)?)
        })
    };
    let alone = bench.wall(&mut || {
        (0..ROUNDS).try_for_each(work)?;
        Ok(bench.device.synchronize()?)
    })?;
    tell(bench, report, format!("{ROUNDS} rounds of work, no checkpoint"), alone);
    let region = bench.region(3 * memory.bytes() + (8 << 20))?;
    let checkpoint = Checkpoint::create(&region, "checkpoint", memory.bytes(), 1, 1)?;
    checkpoint.register(0, element(memory))?;
    let waiting = bench.wall(&mut || {
        (0..ROUNDS).try_for_each(|round| {
            work(round)?;
            Ok(checkpoint.checkpoint(0).map(drop)?)
        })
    })?;
    tell(bench, report, "the same, with a checkpoint a round that is waited for".to_owned(), waiting);
    for flights in [1u32, 2, 3] {
        let region = bench.region((2 * u64::from(flights) + 1) * (memory.bytes() + (1 << 20)) + (8 << 20))?;
        let concurrent = Concurrent::create(&region, "checkpoint", memory.bytes(), 1, flights)?;
        concurrent.register(element(memory))?;
        let time = bench.wall(&mut || {
            let mut flying = std::collections::VecDeque::new();
            for round in 0..ROUNDS {
                work(round)?;
                if flying.len() == flights as usize {
                    flying.pop_front().map_or(Ok(()), |flight| concurrent.finish(flight).map(drop))?;
                }
                flying.push_back(concurrent.begin()?);
            }
            Ok(flying.into_iter().try_for_each(|flight| concurrent.finish(flight).map(drop))?)
        })?;
        let kept = memory.download()?;
        memory.fill(0)?;
        let taken = concurrent.restore()?.map(|taken| taken.sequence);
        let right = taken == Some(ROUNDS.into()) && memory.download()? == kept;
        ensure!(right, "with {flights} in flight checkpoint {taken:?} was restored, or another memory");
        tell(bench, report, format!("the same, {flights} in flight"), time);
    }
    Ok(())
}
