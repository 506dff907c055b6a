//! Crash campaigns on the interpreter: a scenario is run until a planned moment, crashed, recovered (and crashed again in the recovery), and what
//! is left is compared with the scenario's oracle.

mod campaign;
mod checkpoints;
mod database;
mod resumed;
mod several;
mod store;
mod sums;
mod transactions;

use std::rc::Rc;

use anyhow::{Context, Result};
use nearpm_gpu::{Choice, CrashPlan, Device, Interpreted, Medium, Moment, PmRegion, Schedule, Stop};

pub use campaign::Record;
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

    /// Whether what is there after the recovery may be there. `finished` says that `work` came to its end.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Crashes of the work, each recovered and checked.
    pub crashes: u64,
    /// Crashes of the recovery besides, each recovered again and checked.
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

    fn run_in(&self, scenario: &dyn Scenario, schedule: &Schedule, tally: &mut Tally) -> Result<()> {
        let prepared = Trial::prepared(scenario, schedule)?;
        let (launches, stores) = prepared.moments(|region| scenario.work(region)).context("without a crash")?;
        let mut number = 0;
        for launch in 0..launches {
            // Until the launch ends before its moment.
            for event in (1..).step_by(self.every as usize) {
                let moment = Moment::Launch { after: launch, stop: Stop::PersistEvent(event) };
                let mut crash = |&choice: &Choice| {
                    number += 1;
                    self.crash(&prepared, CrashPlan { moment, choice }, number, tally)
                };
                let mut choices = self.choices.iter();
                // Whether the moment is there does not depend on what survives it.
                if !choices.next().map_or(Ok(false), &mut crash)? {
                    break;
                }
                choices.try_for_each(|choice| crash(choice).map(drop))?;
            }
        }
        for store in 0..stores {
            for &choice in &self.choices[..3.min(self.choices.len())] {
                self.crash(&prepared, CrashPlan { moment: Moment::Store { after: store }, choice }, number, tally)?;
                number += 1;
            }
        }
        Ok(())
    }

    /// One crash of the work. Says whether it happened.
    fn crash(&self, prepared: &Trial<'_>, plan: CrashPlan, number: u64, tally: &mut Tally) -> Result<bool> {
        let said = || format!("{plan:?}, {:?}", prepared.schedule);
        let (image, finished) =
            prepared.crash(&prepared.image, Some(plan), |region| prepared.scenario.work(region)).with_context(said)?;
        if finished {
            return Ok(false);
        }
        tally.crashes += 1;
        prepared.recover_and_check(&image, false).with_context(said)?;
        for second in 0..self.second {
            let after = Trial { image: image.clone(), ..prepared.clone() };
            let (launches, stores) = after.moments(|region| prepared.scenario.recover(region)).with_context(said)?;
            let choice = self.choices[(number + second) as usize % self.choices.len()];
            let moment = second_moment(number + second, launches, stores);
            let plan = CrashPlan { moment, choice };
            let (image, _) =
                after.crash(&image, Some(plan), |region| prepared.scenario.recover(region)).with_context(said)?;
            let said = || format!("then {plan:?} in the recovery");
            prepared
                .recover_and_check(&image, false)
                .with_context(said)
                .with_context(|| format!("{:?}", prepared.schedule))?;
            tally.second_crashes += 1;
        }
        Ok(true)
    }
}

/// A moment of a recovery, another one for each number.
fn second_moment(number: u64, launches: u64, stores: u64) -> Moment {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    if launches == 0 || stores > 0 && mixed.is_multiple_of(4) {
        return Moment::Store { after: mixed / 4 % stores.max(1) };
    }
    Moment::Launch { after: mixed % launches, stop: Stop::PersistEvent(1 + mixed / launches % 7) }
}

#[derive(Clone)]
struct Trial<'s> {
    scenario: &'s dyn Scenario,
    schedule: Schedule,
    image: Vec<u8>,
}

/// Volatile memory of the interpreted devices.
const MEMORY: u64 = 64 << 20;

impl<'s> Trial<'s> {
    fn prepared(scenario: &'s dyn Scenario, schedule: &Schedule) -> Result<Trial<'s>> {
        let device: Rc<dyn Device> = Rc::new(Interpreted::new(MEMORY));
        let region = PmRegion::create_in(device, Medium::of_bytes(vec![0; scenario.region_bytes() as usize]))?;
        scenario.prepare(&region)?;
        Ok(Trial { scenario, schedule: schedule.clone(), image: region.close()?.bytes().to_vec() })
    }

    /// Does something on an image until it ends, or the planned crash. Gives the image then, and whether it ended.
    fn crash(
        &self,
        image: &[u8],
        plan: Option<CrashPlan>,
        act: impl FnOnce(&PmRegion) -> Result<()>,
    ) -> Result<(Vec<u8>, bool)> {
        let (image, finished, _) = self.act(image, plan, act)?;
        Ok((image, finished))
    }

    /// Launches and stores of something that is not crashed.
    fn moments(&self, act: impl FnOnce(&PmRegion) -> Result<()>) -> Result<(u64, u64)> {
        let never = CrashPlan { moment: Moment::Store { after: u64::MAX }, choice: Choice::None };
        Ok(self.act(&self.image, Some(never), act)?.2)
    }

    fn act(
        &self,
        image: &[u8],
        plan: Option<CrashPlan>,
        act: impl FnOnce(&PmRegion) -> Result<()>,
    ) -> Result<(Vec<u8>, bool, (u64, u64))> {
        let device = Rc::new(Interpreted::new(MEMORY));
        device.set_schedule(self.schedule.clone());
        let region = PmRegion::open_in(device.clone(), Medium::of_bytes(image.to_vec()))?;
        device.plan_crash(plan);
        let finished = match act(&region) {
            Ok(()) => true,
            Err(error) if crashed(&error) => false,
            Err(error) => return Err(error),
        };
        let moments = (device.launches(), device.stores());
        device.plan_crash(None);
        Ok((region.close()?.bytes().to_vec(), finished, moments))
    }

    fn recover_and_check(&self, image: &[u8], finished: bool) -> Result<()> {
        let scenario = self.scenario;
        self.act(image, None, |region| {
            scenario.recover(region)?;
            scenario.check(region, finished)
        })
        .map(drop)
    }
}

/// Runs a scenario without a crash, and checks what is left, before and after a recovery.
///
/// # Errors
/// What must not be there.
pub fn run_whole(scenario: &dyn Scenario) -> Result<()> {
    let trial = Trial::prepared(scenario, &Schedule::RoundRobin)?;
    let (image, finished) = trial.crash(&trial.image, None, |region| {
        scenario.work(region)?;
        scenario.check(region, true)
    })?;
    anyhow::ensure!(finished, "it crashed without a plan");
    trial.recover_and_check(&image, true)
}
