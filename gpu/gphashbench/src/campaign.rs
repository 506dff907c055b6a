//! Many histories, each with crashes: by seed, so that a campaign can be split and resumed.

use anyhow::{Context, Result};
use nearpm_gpu::{Choice, Schedule};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::trial::{Shape, Subject, Trial};

/// What a campaign went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Histories that ran to their end and were checked.
    pub histories: u64,
    /// Crashes, each recovered and checked.
    pub crashes: u64,
    /// Those of them of which the recovery was crashed, too.
    pub twice: u64,
}

/// A history of a seed, and crashes of it at random steps.
///
/// # Errors
/// The first that is not (durably) linearizable, with its seed.
pub fn history(subject: &Subject, seed: u64, crashes: u64, tally: &mut Tally) -> Result<()> {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x6870_676e);
    let shape = Shape {
        warps: random.random_range(1..=4),
        lanes: random.random_range(1..=4),
        rounds: random.random_range(1..=3),
        keys: random.random_range(1..=3),
    };
    let said = || format!("seed {seed}");
    let trial = Trial::new(subject, shape, seed).with_context(said)?;
    let schedule = if seed.is_multiple_of(16) { Schedule::RoundRobin } else { Schedule::Seeded(seed) };
    let steps = trial.run(&schedule).with_context(said)?;
    tally.histories += 1;
    for _ in 0..crashes {
        let (step, choice) = (random.random_range(1..=steps), choice(&mut random));
        let again = random.random_bool(0.5).then(|| (random.random_range(1..200), choice));
        let said = || format!("seed {seed}, crash at step {step}, {choice:?}, then {again:?}");
        trial.crash(&schedule, step, choice, again).with_context(said)?;
        tally.crashes += 1;
        tally.twice += u64::from(again.is_some());
    }
    Ok(())
}

fn choice(random: &mut ChaCha8Rng) -> Choice {
    match random.random_range(0..6) {
        0 => Choice::None,
        1 => Choice::OnlyThread(random.random_range(0..128)),
        2 => Choice::AllButThread(random.random_range(0..128)),
        _ => Choice::Seeded(random.random()),
    }
}
