//! Crash campaigns on the interpreter: a scenario is run until a planned moment, crashed, recovered
//! (and crashed again in the recovery), and what is left is compared with the scenario's oracle.

mod campaign;
mod checkpoints;
mod database;
mod resumed;
mod several;
mod store;
mod sums;
mod transactions;

use std::collections::HashSet;
use std::rc::Rc;

use anyhow::{Context, Result};
use nearpm_gpu::{Changes, Choice, Device, Interpreted, Medium, PmRegion, Schedule, Watch, Watched};
use serde::{Deserialize, Serialize};

pub use campaign::{Record, Unit, unit};
pub use checkpoints::{Checkpoints, Way};
pub use database::Database;
pub use resumed::{Resumed, Run};
pub use several::Several;
pub use store::Store;
pub use sums::Sums;
pub use transactions::{LogForm, Shared, Transactions};

/// What is crashed.
pub trait Scenario {
    /// Bytes of the region that it works on.
    fn region_bytes(&self) -> u64;

    /// Makes its objects in a fresh region and brings them to where a crash is of interest.
    ///
    /// # Errors
    /// What the library refuses.
    fn prepare(&self, region: &PmRegion) -> Result<()>;

    /// What is crashed.
    ///
    /// # Errors
    /// The planned crash ([`crashed`]), or a failure.
    fn work(&self, region: &PmRegion) -> Result<()>;

    /// Recovers; it may be crashed, too, and be called again.
    ///
    /// # Errors
    /// The planned crash, or a failure.
    fn recover(&self, region: &PmRegion) -> Result<()>;

    /// Whether what is there after the recovery may be there. `finished` says that `work` came to
    /// its end.
    ///
    /// # Errors
    /// What must not be there.
    fn check(&self, region: &PmRegion, finished: bool) -> Result<()>;
}

/// Whether an error is the planned crash.
pub fn crashed(error: &anyhow::Error) -> bool {
    let is_crash = |device: &nearpm_gpu::Error| matches!(device, nearpm_gpu::Error::Crashed(_));
    error.chain().any(|cause| match cause.downcast_ref::<nearpm_gpm::Error>() {
        Some(nearpm_gpm::Error::Device(device)) => is_crash(device),
        _ => cause.downcast_ref().is_some_and(is_crash),
    })
}

/// What a campaign went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Crashes of the work: moments, each with several choices of what survives.
    pub crashes: u64,
    /// Different images that they left, each recovered and checked.
    pub images: u64,
    /// Crashes of these recoveries, each recovered again and checked.
    pub second_crashes: u64,
}

/// How far a campaign goes.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Orders of warps, each with all moments.
    pub schedules: Vec<Schedule>,
    /// What survives of the stores that were pending, at each moment.
    pub choices: Vec<Choice>,
    /// Of the moments of the work every so many are taken: 1 for all.
    pub every: u64,
    /// For each crash of the work so many moments of the recovery.
    pub second: u64,
}

impl Campaign {
    /// Every moment, for launches that are small.
    pub fn thorough(seeds: u64) -> Campaign {
        let mut choices = vec![Choice::None, Choice::All];
        choices.extend((0..seeds).map(Choice::Seeded));
        choices.extend((0..3).flat_map(|thread| [Choice::OnlyThread(thread), Choice::AllButThread(thread)]));
        Campaign { schedules: vec![Schedule::RoundRobin, Schedule::Seeded(1)], choices, every: 1, second: 1 }
    }

    /// Some moments, for the clean test run.
    pub fn sampled(every: u64) -> Campaign {
        let choices = vec![Choice::None, Choice::Seeded(1), Choice::Seeded(2)];
        Campaign { schedules: vec![Schedule::RoundRobin, Schedule::Seeded(7)], choices, every, second: 1 }
    }

    /// Goes through all moments.
    ///
    /// # Errors
    /// The first failure, with what replays it.
    pub fn run(&self, scenario: &dyn Scenario) -> Result<Tally> {
        let mut tally = Tally::default();
        for schedule in &self.schedules {
            self.run_in(scenario, schedule, &mut tally)?;
        }
        Ok(tally)
    }

    /// One run of the work leaves the images of all its crashes. Each image is recovered once,
    /// however many crashes leave it: the recovery depends on nothing else.
    fn run_in(&self, scenario: &dyn Scenario, schedule: &Schedule, tally: &mut Tally) -> Result<()> {
        let prepared = Trial::prepared(scenario, schedule)?;
        let watch = Watch::Every { every: self.every, skip: 0, choices: self.choices.clone(), all_choices: true };
        let seen = prepared.watched(&Changes::default(), watch, |region| scenario.work(region));
        let seen = seen.with_context(|| format!("without a crash, {schedule:?}"))?;
        tally.crashes += seen.crashes.len() as u64;
        let mut known = HashSet::new();
        // As many moments as the last recovery had are expected in the next.
        let mut moments = 1;
        let mut plans = vec![None; seen.images.len()];
        seen.crashes.iter().for_each(|&(plan, image)| plans[image] = Some(plan));
        for (number, (image, plan)) in (0..).zip(seen.images.iter().zip(plans)) {
            moments = self
                .recovered(&prepared, image, number, moments, &mut known, tally)
                .with_context(|| format!("{plan:?}, {schedule:?}"))?;
        }
        Ok(())
    }

    /// An image of a crash, recovered and checked, and crashed in the recovery. Gives the moments
    /// of the recovery.
    fn recovered(
        &self,
        prepared: &Trial<'_>,
        image: &Rc<Changes>,
        number: u64,
        expected: u64,
        known: &mut HashSet<Rc<Changes>>,
        tally: &mut Tally,
    ) -> Result<u64> {
        tally.images += 1;
        known.insert(image.clone());
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        let mut every = (expected / (2 * self.second).max(1)).max(1);
        let seen = loop {
            let mut choices = self.choices.clone();
            choices.rotate_left(mixed as usize % self.choices.len().max(1));
            let watch = Watch::Every { every, skip: mixed % every, choices, all_choices: false };
            let seen = prepared.recover_and_check(image, Some(watch))?;
            if !seen.crashes.is_empty() || seen.moments == 0 || every == 1 {
                break seen;
            }
            every = 1;
        };
        let found = seen.crashes.len() as u64;
        for second in 0..self.second.min(found) {
            let (plan, again) = seen.crashes[((mixed + second * found / self.second.min(found)) % found) as usize];
            tally.second_crashes += 1;
            let again = &seen.images[again];
            if known.insert(again.clone()) {
                let said = || format!("then {plan:?} in the recovery");
                prepared.recover_and_check(again, None).with_context(said)?;
            }
        }
        Ok(seen.moments)
    }
}

#[derive(Clone)]
struct Trial<'s> {
    scenario: &'s dyn Scenario,
    schedule: Schedule,
    /// Before the work.
    image: Rc<[u8]>,
}

/// Volatile memory of the interpreted devices.
const MEMORY: u64 = 64 << 20;

impl<'s> Trial<'s> {
    fn prepared(scenario: &'s dyn Scenario, schedule: &Schedule) -> Result<Trial<'s>> {
        let device: Rc<dyn Device> = Rc::new(Interpreted::new(MEMORY));
        let region = PmRegion::create_in(device, Medium::of_bytes(vec![0; scenario.region_bytes() as usize]))?;
        scenario.prepare(&region)?;
        Ok(Trial { scenario, schedule: schedule.clone(), image: region.close()?.bytes().into() })
    }

    fn opened(&self, changes: &Changes) -> Result<(Rc<Interpreted>, PmRegion)> {
        let device = Rc::new(Interpreted::new(MEMORY));
        device.set_schedule(self.schedule.clone());
        let region = PmRegion::open_in(device.clone(), Medium::of_bytes(changes.on(&self.image)))?;
        Ok((device, region))
    }

    /// Does something on an image, and gives what crashes would have left.
    fn watched(&self, changes: &Changes, watch: Watch, act: impl FnOnce(&PmRegion) -> Result<()>) -> Result<Watched> {
        let (device, region) = self.opened(changes)?;
        device.watch(watch, self.image.clone());
        act(&region)?;
        Ok(device.watched())
    }

    /// Recovers an image, watched or not, and looks at what is there then.
    fn recover_and_check(&self, changes: &Changes, watch: Option<Watch>) -> Result<Watched> {
        let (device, region) = self.opened(changes)?;
        if let Some(watch) = watch {
            device.watch(watch, self.image.clone());
        }
        self.scenario.recover(&region)?;
        let seen = device.watched();
        self.scenario.check(&region, false)?;
        Ok(seen)
    }
}

/// Runs a scenario without a crash, and checks what is left, before and after a recovery.
///
/// # Errors
/// What must not be there.
pub fn run_whole(scenario: &dyn Scenario) -> Result<()> {
    let trial = Trial::prepared(scenario, &Schedule::RoundRobin)?;
    let (device, region) = trial.opened(&Changes::default())?;
    scenario.work(&region)?;
    scenario.check(&region, true)?;
    drop(device);
    let image = Changes::between(&trial.image, region.close()?.bytes());
    let (_, region) = trial.opened(&image)?;
    scenario.recover(&region)?;
    scenario.check(&region, true)
}
