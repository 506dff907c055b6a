//! Checkpoints of 256 MiB, against CPU-assisted persistence.

use std::fs::File;
use std::io::{Seek, Write};
use std::time::Duration;

use anyhow::{Result, ensure};
use nearpm_gpm::{Checkpoint, Element};
use nearpm_gpu::{Buffer, Launch, ObjectKind, persist_with_threads};

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
    if bench.scale == super::Scale::Full {
        let plain = region.add("assisted", ObjectKind::Data, bytes, |_| Ok(()))?;
        assisted(bench, report, &region, plain.offset, &memory, &times)?;
        file_system(bench, report, &memory)?;
    }
    Ok(())
}

/// CAP-mm: the copy engine, then write-back by threads of the processor.
fn assisted(
    bench: &Bench,
    report: &mut Report,
    region: &nearpm_gpu::PmRegion,
    offset: u64,
    memory: &Buffer,
    ours: &[Duration],
) -> Result<()> {
    let bytes = memory.bytes();
    let copy = bench.times(|_| Ok(()), |_| bench.device.copy(region.address(offset), memory.address(), bytes))?;
    report.time(GROUP, "the copy engine alone (nothing is durable by that)", &copy, None);
    let mut best = f64::INFINITY;
    for threads in [1, 2, 4, 8, 16] {
        let mut times = Vec::new();
        for _ in 0..bench.repeats {
            times.push(bench.wall(&mut || {
                bench.device.copy(region.address(offset), memory.address(), bytes)?;
                bench.device.synchronize()?;
                region.mapped(|all| persist_with_threads(&all[offset as usize..][..bytes as usize], threads));
                Ok(())
            })?);
        }
        report.time(GROUP, format!("CAP-mm, {threads} threads"), &times, None);
        times.sort();
        best = best.min(times[times.len() / 2].as_secs_f64());
    }
    let mut ours = ours.to_vec();
    ours.sort();
    report.value(GROUP, "GPM over the best CAP-mm", best / ours[ours.len() / 2].as_secs_f64(), "x", Some(">= 1.3"));
    Ok(())
}

/// CAP-fs: a copy to memory of the processor, write, fsync.
fn file_system(bench: &Bench, report: &mut Report, memory: &Buffer) -> Result<()> {
    for (folder, name) in [("/dev/shm", "tmpfs"), (".", "this folder")] {
        let Ok(mut file) = tempfile_in(folder) else { continue };
        let mut times = Vec::new();
        for _ in 0..3 {
            times.push(bench.wall(&mut || {
                let bytes = memory.download()?;
                file.rewind()?;
                file.write_all(&bytes)?;
                Ok(file.sync_all()?)
            })?);
        }
        report.time(GROUP, format!("CAP-fs, file on {name}"), &times, None);
    }
    Ok(())
}

/// A file that has no name.
fn tempfile_in(folder: &str) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().read(true).write(true).custom_flags(libc::O_TMPFILE).mode(0o600).open(folder)
}
