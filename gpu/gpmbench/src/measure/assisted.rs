//! What the paper compares GPM with, for memory of the device that is to be made durable:
//! CPU-assisted persistence through a mapping (CAP-mm) or a file (CAP-fs), stores of kernels that
//! the processor writes back (GPM-NDP), and a projection for caches that the power supply saves
//! (eADR).

use std::fs::File;
use std::io::{Seek, Write};
use std::time::Duration;

use anyhow::{Result, ensure};
use nearpm_gpu::{Buffer, Launch, ObjectKind, PmRegion, persist_with_threads};
use nearpm_statistics::median_time;

use super::Bench;
use crate::kernels::micro;
use crate::report::Report;

/// Threads of the processor that are tried: the best counts.
pub const THREADS: [usize; 5] = [1, 2, 4, 8, 16];

/// The paper's ways, for some memory of the device.
pub struct Assisted<'b> {
    bench: &'b Bench,
    group: &'b str,
    /// What the memory is, for names of values.
    what: String,
    memory: Vec<&'b Buffer>,
    region: PmRegion,
    /// Where each buffer has its place.
    places: Vec<u64>,
}

impl<'b> Assisted<'b> {
    /// Persistent memory for copies of `memory`.
    ///
    /// # Errors
    /// No room.
    pub fn new(bench: &'b Bench, group: &'b str, what: &str, memory: Vec<&'b Buffer>) -> Result<Assisted<'b>> {
        let bytes: u64 = memory.iter().map(|buffer| buffer.bytes().next_multiple_of(4096)).sum();
        let region = bench.region(bytes + (4 << 20))?;
        let place = |(number, buffer): (usize, &&Buffer)| -> Result<u64> {
            Ok(region.add(&format!("copy {number}"), ObjectKind::Data, buffer.bytes(), |_| Ok(()))?.offset)
        };
        let places = memory.iter().enumerate().map(place).collect::<Result<_>>()?;
        Ok(Assisted { bench, group, what: what.to_owned(), memory, region, places })
    }

    fn parts(&self) -> impl Iterator<Item = (&'b Buffer, u64)> {
        self.memory.iter().copied().zip(self.places.iter().copied())
    }

    /// What is there is what the device has: without that no time is told.
    fn check(&self, way: &str) -> Result<()> {
        for (buffer, place) in self.parts() {
            let stored = self.region.read_vec(place, buffer.bytes() as usize)?;
            ensure!(stored == buffer.download()?, "{way} of {}: what was stored is not what the device has", self.what);
            // The next way starts from something else.
            self.region.zero(place, buffer.bytes())?;
        }
        Ok(())
    }

    fn write_back(&self, threads: usize) {
        self.region.mapped(|all| {
            for (buffer, place) in self.parts() {
                persist_with_threads(&all[place as usize..][..buffer.bytes() as usize], threads);
            }
        });
    }

    /// The best of several numbers of threads, each of which is told.
    fn best(&self, report: &mut Report, way: &str, mut act: impl FnMut(usize) -> Result<()>) -> Result<Duration> {
        let mut best = Duration::MAX;
        for threads in THREADS {
            let times = (0..self.bench.repeats).map(|_| self.bench.wall(&mut || act(threads)));
            let times = times.collect::<Result<Vec<_>>>()?;
            self.check(way)?;
            report.time(self.group, format!("{}: {way}, {threads} threads", self.what), &times, None);
            best = best.min(median_time(&times));
        }
        Ok(best)
    }

    fn copy(&self) -> Result<()> {
        for (buffer, place) in self.parts() {
            self.bench.device.copy(self.region.address(place), buffer.address(), buffer.bytes())?;
        }
        Ok(self.bench.device.synchronize()?)
    }

    /// CAP-mm: the copy engine, then write-back by threads of the processor.
    ///
    /// # Errors
    /// What is there is wrong.
    pub fn by_mapping(&self, report: &mut Report) -> Result<Duration> {
        self.best(report, "CAP-mm", |threads| {
            self.copy()?;
            self.write_back(threads);
            Ok(())
        })
    }

    /// GPM-NDP: kernels store to persistent memory, and the processor writes its caches back.
    ///
    /// # Errors
    /// What is there is wrong.
    pub fn near(&self, report: &mut Report) -> Result<Duration> {
        let blocks = self.bench.scale.pick(4, 1056);
        self.best(report, "GPM-NDP", |threads| {
            for (buffer, place) in self.parts() {
                let (to, from) = (self.region.address(place).into(), buffer.address().into());
                let launch = Launch::new(blocks, 256, [to, from, buffer.bytes().into()]);
                self.bench.device.launch(micro().kernel("copy_stores"), &launch)?;
            }
            self.bench.device.synchronize()?;
            self.write_back(threads);
            Ok(())
        })
    }

    /// CAP with caches that the power supply saves, a projection: what CAP-mm does but for the
    /// write-back.
    ///
    /// # Errors
    /// What is there is wrong.
    pub fn saved_by_power(&self, report: &mut Report) -> Result<Duration> {
        let times =
            (0..self.bench.repeats).map(|_| self.bench.wall(&mut || self.copy())).collect::<Result<Vec<_>>>()?;
        self.check("CAP-eADR")?;
        let name = format!("{}: CAP-eADR (projection: the copy without write-back)", self.what);
        report.time(self.group, name, &times, None);
        Ok(median_time(&times))
    }

    /// CAP-fs: a copy to memory of the processor, write, fsync; on tmpfs and in this folder. The
    /// faster one's time.
    ///
    /// # Errors
    /// What the device or the system refuses.
    pub fn by_file(&self, report: &mut Report) -> Result<Option<Duration>> {
        let mut best = None;
        for (folder, name) in [("/dev/shm", "tmpfs"), (".", "this folder")] {
            let Ok(mut file) = unnamed_in(folder) else { continue };
            let mut times = Vec::new();
            for _ in 0..self.bench.repeats.min(3) {
                times.push(self.bench.wall(&mut || {
                    file.rewind()?;
                    for buffer in &self.memory {
                        file.write_all(&buffer.download()?)?;
                    }
                    Ok(file.sync_all()?)
                })?);
            }
            self.check_file(&mut file)?;
            report.time(self.group, format!("{}: CAP-fs, file on {name}", self.what), &times, None);
            let time = median_time(&times);
            best = Some(best.map_or(time, |best: Duration| best.min(time)));
        }
        Ok(best)
    }

    fn check_file(&self, file: &mut File) -> Result<()> {
        use std::io::Read;
        file.rewind()?;
        for buffer in &self.memory {
            let mut stored = vec![0; buffer.bytes() as usize];
            file.read_exact(&mut stored)?;
            ensure!(stored == buffer.download()?, "CAP-fs of {}: the file is not what the device has", self.what);
        }
        Ok(())
    }

    /// All ways, and GPM over each of them; `ours` is its median.
    ///
    /// # Errors
    /// What is there is wrong.
    pub fn all(&self, report: &mut Report, ours: Duration, over_mapping: Option<&str>) -> Result<()> {
        let ways = [
            ("the best CAP-mm", Some(self.by_mapping(report)?), over_mapping),
            ("the best GPM-NDP", Some(self.near(report)?), None),
            ("CAP-fs", self.by_file(report)?, None),
            ("CAP-eADR (projection)", Some(self.saved_by_power(report)?), None),
        ];
        for (way, time, aim) in ways {
            let Some(time) = time else { continue };
            let over = time.as_secs_f64() / ours.as_secs_f64().max(1e-9);
            report.value(self.group, format!("{}: GPM over {way}", self.what), over, "x", aim);
        }
        Ok(())
    }
}

/// A file that has no name.
fn unnamed_in(folder: &str) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().read(true).write(true).custom_flags(libc::O_TMPFILE).mode(0o600).open(folder)
}
