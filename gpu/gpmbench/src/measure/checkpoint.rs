//! Checkpoints of 256 MiB, against CPU-assisted persistence.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use nearpm_gpm::{Checkpoint, Element};
use nearpm_gpu::{Access, Buffer, Launch, PmRegion};
use nearpm_statistics::median_time;

use super::assisted::Assisted;
use super::{Bench, verify, words};
use crate::kernels::micro;
use crate::pattern::pattern;
use crate::report::Report;

const GROUP: &str = "Checkpoint";

pub fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let bytes: u64 = bench.scale.pick(1 << 16, 256 << 20);
    let region = bench.region(3 * bytes + (8 << 20))?;
    let memory = bench.buffer(bytes)?;
    let fill = |seed: u32| {
        bench.device.launch(
            micro().kernel("stream_persist"),
            &Launch::new(bench.scale.pick(4, 1056), 256, [memory.address().into(), bytes.into(), seed.into()]),
        )
    };
    let expected = |seed: u32| (0..(bytes / 4) as u32).map(move |place| pattern(place, seed));
    let checkpoint = Checkpoint::create(&region, "checkpoint", bytes, 1, 1)?;
    checkpoint.register(0, Element { name: "memory".to_owned(), address: memory.address(), bytes })?;
    let mut times = Vec::new();
    for repeat in 0..=bench.last() {
        fill(repeat)?;
        bench.device.synchronize()?;
        let time = bench.wall(&mut || Ok(checkpoint.checkpoint(0).map(drop)?))?;
        times.push(time);
    }
    times.remove(0);
    let size = bench.scale.pick("64 KiB", "256 MiB");
    report.time(GROUP, format!("{size}, with digest, sealed"), &times, Some("<= 5.3"));
    memory.fill(0)?;
    let mut restores = Vec::new();
    for _ in 0..bench.repeats {
        restores.push(bench.wall(&mut || {
            ensure!(checkpoint.restore(0)?.is_some(), "no checkpoint is there");
            Ok(())
        })?);
    }
    verify("restored memory", words(&memory.download()?), expected(bench.last()))?;
    report.time(GROUP, format!("restore of {size}"), &restores, None);
    from_disk(bench, report, &region, &memory, &expected(bench.last()).collect::<Vec<_>>(), size)?;
    if bench.scale == super::Scale::Full {
        let ours = median_time(&times);
        let ways = Assisted::new(bench, GROUP, size, vec![&memory])?;
        ways.all(report, ours, Some(">= 1.3"))?;
    }
    Ok(())
}

/// The same from a file of this folder that the region was drained to: the card loads from the
/// file's pages, which nothing copies before.
fn from_disk(
    bench: &Bench,
    report: &mut Report,
    region: &PmRegion,
    memory: &Buffer,
    expected: &[u32],
    size: &str,
) -> Result<()> {
    let path = PathBuf::from(format!("nearpm-drained-{}.region", std::process::id()));
    region.drain_to(&path)?;
    let drained = PmRegion::map(bench.device.clone(), &path, 0, Access::Read);
    // Who has it open has it without its name.
    std::fs::remove_file(&path)?;
    let drained = drained?;
    memory.fill(0)?;
    let checkpoint = Checkpoint::open(&drained, "checkpoint")?;
    checkpoint.register(0, Element { name: "memory".to_owned(), address: memory.address(), bytes: memory.bytes() })?;
    let mut restores = Vec::new();
    for _ in 0..bench.repeats {
        restores.push(bench.wall(&mut || {
            ensure!(checkpoint.restore(0)?.is_some(), "no checkpoint is in the drained region");
            Ok(())
        })?);
    }
    verify("memory restored from a file", words(&memory.download()?), expected.iter().copied())?;
    report.time(
        GROUP,
        format!("restore of {size} straight from a file of this folder"),
        &restores,
        Some("<= 5.96 (45 GB/s)"),
    );
    Ok(())
}
