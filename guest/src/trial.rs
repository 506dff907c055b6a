//! One trial: a guest works, the power is cut, another guest recovers; and the verdict.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::image;
use crate::line::Line;
use crate::machine::{self, Machine};
use crate::packages::{self, Packages};
use crate::simulator::Simulator;
use crate::task::{Known, Task};

/// How long a guest may live. It takes some seconds; a busy machine makes minutes of them.
const LIFE: Duration = Duration::from_secs(400);
/// How long a guest may take to see that the card has gone.
const NOTICE: Duration = Duration::from_secs(60);
/// Microseconds between the last acknowledgement before the cut and the cut, at most: longer than an operation takes.
const LATEST_US: u64 = 40_000;

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
}

impl Trial {
    /// Carries it out; every line of the guests goes to `show`.
    ///
    /// # Errors
    /// Whatever is not as it must be.
    pub fn run(&self, programs: &Programs, show: &mut dyn FnMut(&str)) -> Result<Verdict> {
        ensure!(self.cut_after > 0 && self.cut_after < self.operations, "the cut must come between two operations");
        let packages = Packages::get(&packages::cache())?;
        let folder = tempfile::tempdir()?;
        let image = folder.path().join("initramfs");
        image::write(&image, &packages, &programs.get("nearpm-guest-init"), &programs.get("nearpm"))?;
        let simulator = Simulator::start(&programs.get("nearpm-sim"), folder.path(), &self.window, &self.card)?;
        let boot = |known| {
            let task = Task { card: machine::CARD.into(), seed: self.seed, operations: self.operations, known };
            Machine::boot(&packages, &image, &simulator.socket(), &task)
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
        let kept = second_life(&boot(Some(known))?, known, show)?;
        let Known { acknowledged, started } = known;
        Ok(Verdict { acknowledged, started, kept })
    }

    fn first_life(&self, machine: &Machine, simulator: &Simulator, show: &mut dyn FnMut(&str)) -> Result<Known> {
        let mut until = Instant::now() + LIFE;
        let mut acknowledged = None;
        let mut is_cut = false;
        loop {
            let Some(line) = next(machine, until, show)? else { bail!("the first guest ended before the cut") };
            match line {
                Line::Acknowledged(count) => acknowledged = Some(count),
                Line::Failed(why) => bail!("the first guest failed: {why}"),
                Line::Gone { acknowledged: said, started, why } => {
                    ensure!(is_cut, "the card had gone before the cut: {why}");
                    let acknowledged = acknowledged.unwrap_or_default();
                    ensure!(said == acknowledged, "{said} were acknowledged, and the line has {acknowledged}");
                    ensure!(simulator.statistic("powered")? == 0, "the power is on");
                    return Ok(Known { acknowledged, started });
                }
                Line::Passed | Line::Kept(_) => bail!("the first guest says {line}"),
                Line::Step(_) => {}
            }
            if !is_cut && acknowledged.is_some_and(|count| count >= self.cut_after) {
                // Somewhere in an operation.
                std::thread::sleep(Duration::from_micros(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) % LATEST_US));
                simulator.tell(&format!("cut seed={}", self.seed))?;
                show(&format!("host: THE POWER IS CUT, {} ms after the start", machine.age().as_millis()));
                is_cut = true;
                until = Instant::now() + NOTICE;
            }
        }
    }
}

fn second_life(machine: &Machine, known: Known, show: &mut dyn FnMut(&str)) -> Result<usize> {
    let until = Instant::now() + LIFE;
    let mut kept = None;
    let mut passed = false;
    while let Some(line) = next(machine, until, show)? {
        match line {
            Line::Kept(count) => kept = Some(count),
            Line::Passed => passed = true,
            Line::Failed(why) => bail!("the second guest failed: {why}"),
            Line::Gone { why, .. } => bail!("the card has gone without a cut: {why}"),
            Line::Acknowledged(_) | Line::Step(_) => {}
        }
    }
    ensure!(passed, "the second guest ended without a word");
    let kept = kept.context("the second guest does not say what it found")?;
    let possible = known.acknowledged..=known.started;
    ensure!(possible.contains(&kept), "the effects of {kept} operations are there, of {known:?}");
    Ok(kept)
}

/// The next line of the guest's program; shows what else comes.
fn next(machine: &Machine, until: Instant, show: &mut dyn FnMut(&str)) -> Result<Option<Line>> {
    while let Some(text) = machine.line(until)? {
        show(&text);
        if let Ok(line) = text.parse() {
            return Ok(Some(line));
        }
    }
    Ok(None)
}
