//! One trial: a guest works, the power is cut, another guest recovers; and the verdict.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::cxl;
use crate::image;
use crate::machine::{self, Device, Machine};
use crate::message::GuestMessage;
use crate::packages::{self, Packages};
use crate::simulator::Simulator;
use crate::task::{Known, Memory, Task};

/// How long a guest may live. It takes some seconds; a busy machine makes minutes of them.
const LIFE: Duration = Duration::from_secs(400);
/// How long a guest may take to see that the card has gone.
const NOTICE: Duration = Duration::from_secs(60);
/// Cycles of the card between the order for the cut and the cut, of which it has as many as
/// accesses take, so that many of them find commands under way.
const CUT_CYCLES: std::ops::Range<u64> = 1_000..20_000;

/// The programs that a trial needs.
#[derive(Clone, Debug)]
pub struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// Those of a folder in which cargo has built them.
    ///
    /// # Errors
    /// If one is missing.
    pub fn of(folder: &Path) -> Result<Programs> {
        for name in ["nearpm", "nearpm-sim", "nearpm-guest-init"] {
            ensure!(
                folder.join(name).is_file(),
                "{} is not there: build it with `cargo build --release -p nearpm-cli -p nearpm-simcard -p nearpm-guest`",
                folder.join(name).display()
            );
        }
        Ok(Programs { folder: folder.to_owned() })
    }

    fn get(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Packages, a folder that goes with its value, and the image in it.
fn prepare(programs: &Programs) -> Result<(Packages, TempDir, PathBuf)> {
    let packages = Packages::get(&packages::cache())?;
    let folder = tempfile::tempdir()?;
    let image = folder.path().join("initramfs");
    image::write(&image, &packages, &programs.get("nearpm-guest-init"), &programs.get("nearpm"))?;
    Ok((packages, folder, image))
}

/// What is tried.
#[derive(Clone, Debug)]
pub struct Trial {
    /// How the PM window is reached: `trapping` or `mapped`.
    pub window: String,
    /// What is behind it: `model` or `rtl`.
    pub card: String,
    /// Seed of operations and cut.
    pub seed: u64,
    /// Operations in all.
    pub operations: usize,
    /// The power fails some time after so many are acknowledged.
    pub cut_after: usize,
    /// So many operations more than were acknowledged are said to be: a fault that a test plants.
    /// The trial must fail then.
    pub untrue: usize,
}

/// What a trial has shown.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    /// Operations that were acknowledged on the serial line before the card had gone.
    pub acknowledged: usize,
    /// Operations that were started.
    pub started: usize,
    /// Operations whose effects the second guest has found.
    pub kept: usize,
    /// Items that the card did at power-up, because they were under way when the power failed; 0
    /// without a card.
    pub replayed: u64,
}

impl Trial {
    /// Carries it out; every line of the guests goes to `show`.
    ///
    /// # Errors
    /// Whatever is not as it must be.
    pub fn run(&self, programs: &Programs, show: &mut dyn FnMut(&str)) -> Result<Verdict> {
        ensure!(
            self.cut_after > 0 && self.cut_after + self.untrue < self.operations,
            "the cut must come between two operations"
        );
        let (packages, folder, image) = prepare(programs)?;
        let simulator = Simulator::start(&programs.get("nearpm-sim"), folder.path(), &self.window, &self.card)?;
        let boot = |known| {
            let task = Task {
                memory: Memory::Card(machine::CARD.into()),
                seed: self.seed,
                operations: self.operations,
                known,
            };
            Machine::boot(&packages, &image, &Device::Card(&simulator.socket()), &task)
        };
        show(&format!("host: {}", packages.versions.trim_end().replace('\n', ", ")));
        show(&format!("host: first guest, window {}, card {}, seed {}", self.window, self.card, self.seed));
        let known = self.first_life(&boot(None)?, &simulator, show)?;
        // The first machine is off, as a machine without power is.
        show(&format!(
            "host: power-up; {} operations are acknowledged, {} were started; second guest",
            known.acknowledged, known.started
        ));
        simulator.tell("power-up")?;
        simulator.tell("resume")?;
        let told = Known { acknowledged: known.acknowledged + self.untrue, started: known.started + self.untrue };
        let Found { kept, replayed } = second_life(&boot(Some(told))?, told, show)?;
        let Known { acknowledged, started } = known;
        Ok(Verdict { acknowledged, started, kept, replayed })
    }

    /// A number by the seed, so that the power fails somewhere in an operation.
    fn cut_cycles(&self) -> u64 {
        let drawn = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        CUT_CYCLES.start + drawn % (CUT_CYCLES.end - CUT_CYCLES.start)
    }

    fn first_life(&self, machine: &Machine, simulator: &Simulator, show: &mut dyn FnMut(&str)) -> Result<Known> {
        let mut until = Instant::now() + LIFE;
        let mut acknowledged = None;
        let mut is_cut = false;
        loop {
            let Some(line) = next(machine, until, show)? else { bail!("the first guest ended before the cut") };
            match line {
                GuestMessage::Acknowledged(count) => acknowledged = Some(count),
                GuestMessage::Failed(why) => bail!("the first guest failed: {why}"),
                GuestMessage::Gone { acknowledged: said, started, why } => {
                    ensure!(is_cut, "the card had gone before the cut: {why}");
                    let acknowledged = acknowledged.unwrap_or_default();
                    ensure!(said == acknowledged, "{said} were acknowledged, and the line has {acknowledged}");
                    ensure!(simulator.statistic("powered")? == 0, "the power is on");
                    return Ok(Known { acknowledged, started });
                }
                GuestMessage::Passed | GuestMessage::Kept(_) | GuestMessage::Replayed(_) => {
                    bail!("the first guest says {line}")
                }
                GuestMessage::Step(_) => {}
            }
            if !is_cut && acknowledged.is_some_and(|count| count >= self.cut_after) {
                // Its time would run on while the guest's machine is emulated, and all be done
                // before the next access.
                simulator.tell("pause")?;
                let cycle = simulator.statistic("cycle")? + self.cut_cycles();
                simulator.tell(&format!("cut-at cycle={cycle} seed={}", self.seed))?;
                show(&format!("host: the power will fail in the card's cycle {cycle}"));
                is_cut = true;
                until = Instant::now() + NOTICE;
            }
        }
    }
}

/// A trial without a card: a pool on CXL memory, in a file that is mapped from it (DAX). The power
/// cut ends the machine and leaves the memory as it was.
#[derive(Clone, Debug)]
pub struct CxlTrial {
    /// Seed of the operations.
    pub seed: u64,
    /// Operations in all.
    pub operations: usize,
    /// The power fails when so many are acknowledged, or some more.
    pub cut_after: usize,
}

impl CxlTrial {
    /// Carries it out; every line of the guests goes to `show`.
    ///
    /// # Errors
    /// Whatever is not as it must be.
    pub fn run(&self, programs: &Programs, show: &mut dyn FnMut(&str)) -> Result<Verdict> {
        ensure!(self.cut_after > 0 && self.cut_after < self.operations, "the cut must come between two operations");
        let (packages, folder, image) = prepare(programs)?;
        let (memory, labels) = (folder.path().join("memory"), folder.path().join("labels"));
        cxl::make(&memory, &labels)?;
        let boot = |known| {
            let task = Task { memory: Memory::Cxl, seed: self.seed, operations: self.operations, known };
            Machine::boot(&packages, &image, &Device::Cxl(&memory, &labels), &task)
        };
        show(&format!("host: {}", packages.versions.trim_end().replace('\n', ", ")));
        show(&format!("host: first guest, memory on CXL, seed {}", self.seed));
        let acknowledged = self.first_life(&mut boot(None)?, show)?;
        // A line is out before the next operation begins.
        let known = Known { acknowledged, started: (acknowledged + 1).min(self.operations) };
        show(&format!("host: {acknowledged} operations are acknowledged; second guest"));
        let Found { kept, replayed } = second_life(&boot(Some(known))?, known, show)?;
        Ok(Verdict { acknowledged, started: known.started, kept, replayed })
    }

    fn first_life(&self, machine: &mut Machine, show: &mut dyn FnMut(&str)) -> Result<usize> {
        let until = Instant::now() + LIFE;
        let mut acknowledged = 0;
        let mut is_cut = false;
        while let Some(line) = next(machine, until, show)? {
            match line {
                GuestMessage::Acknowledged(count) => acknowledged = count,
                GuestMessage::Step(_) => {}
                other => bail!("the first guest says {other}"),
            }
            if !is_cut && acknowledged >= self.cut_after {
                machine.cut();
                show("host: THE POWER IS CUT");
                is_cut = true;
            }
        }
        ensure!(is_cut, "the first guest ended before the cut");
        Ok(acknowledged)
    }
}

/// What a second guest has found.
#[derive(Debug)]
struct Found {
    kept: usize,
    replayed: u64,
}

fn second_life(machine: &Machine, known: Known, show: &mut dyn FnMut(&str)) -> Result<Found> {
    let until = Instant::now() + LIFE;
    let (mut kept, mut replayed) = (None, 0);
    let mut passed = false;
    while let Some(line) = next(machine, until, show)? {
        match line {
            GuestMessage::Kept(count) => kept = Some(count),
            GuestMessage::Replayed(count) => replayed = count,
            GuestMessage::Passed => passed = true,
            GuestMessage::Failed(why) => bail!("the second guest failed: {why}"),
            GuestMessage::Gone { why, .. } => bail!("the card has gone without a cut: {why}"),
            GuestMessage::Acknowledged(_) | GuestMessage::Step(_) => {}
        }
    }
    ensure!(passed, "the second guest ended without a word");
    let kept = kept.context("the second guest does not say what it found")?;
    let possible = known.acknowledged..=known.started;
    ensure!(possible.contains(&kept), "the effects of {kept} operations are there, of {known:?}");
    Ok(Found { kept, replayed })
}

/// The next line of the guest's program; shows what else comes.
fn next(machine: &Machine, until: Instant, show: &mut dyn FnMut(&str)) -> Result<Option<GuestMessage>> {
    while let Some(text) = machine.line(until)? {
        show(&text);
        if let Ok(line) = text.parse() {
            return Ok(Some(line));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict on a second guest that says this.
    fn verdict(lines: &str) -> Result<usize> {
        let machine = Machine::follow(std::process::Command::new("printf").arg(lines)).unwrap();
        second_life(&machine, Known { acknowledged: 40, started: 41 }, &mut |_| ()).map(|found| found.kept)
    }

    #[test]
    fn a_second_guest_passes_only_by_its_own_word_and_with_all_that_was_acknowledged() {
        for kept in [40, 41] {
            assert_eq!(verdict(&format!("noise\nguest: kept {kept}\nguest: passed\n")).unwrap(), kept);
        }
        for (lines, part) in [
            ("guest: kept 39\nguest: passed\n", "39 operations"),
            ("guest: kept 42\nguest: passed\n", "42 operations"),
            ("guest: passed\n", "does not say"),
            ("guest: kept 40\n", "without a word"),
            ("", "without a word"),
            ("guest: kept 40\nguest: failed at the end\n", "at the end"),
            ("guest: kept 40\nguest: gone 1 2 all ones\n", "without a cut"),
        ] {
            let error = verdict(lines).unwrap_err().to_string();
            assert!(error.contains(part), "{lines}: {error}");
        }
    }
}
