//! One trial of a campaign: a short run and its power cuts, all chosen by seed and number.

use nearpm::Mechanism;
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_sim::core::Activity;
use nearpm_sim::host::{Cut, Event};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::cut::{PowerCuts, Strike};
use crate::job::{CardChoice, CommitChoice, HostChoice, MixChoice, PostingChoice, RunArguments, Workload};
use nearpm_cards::SimulatedCard;

/// Power cuts of a trial: one while the pool is worked on for the first time, and one in each of
/// three further lives.
pub const CUTS: usize = 4;
/// Operations of an epoch: several epochs a trial.
const EPOCH: u64 = 5;
/// Bytes of the log ring, most of what recovery reads; the largest transaction of a trial fits.
const RING_BYTES: u32 = 32 << 10;
/// Bytes of the pool.
const POOL_BYTES: u64 = 512 << 10;
/// Cycles of a boot, and of the longest one with a replay: later the host has the card.
const BOOT_CYCLES: [u64; 2] = [150, 4000];
/// Cycles from the first power-up to the first operation, and accesses of the host.
const MAKING_CYCLES: u64 = 18_000;
const MAKING_ACCESSES: u64 = 160;
/// Cycles of a save of little, and of one of much: what a save with too little energy has is drawn
/// below them.
const SAVE_CYCLES: [u64; 2] = [200, 900];

/// Operations of a trial: fewer where each takes long to simulate.
fn ops(kind: SimulatedCard) -> usize {
    match kind {
        SimulatedCard::Model => 32,
        SimulatedCard::Rtl => 12,
    }
}

/// A run and its power cuts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The run, without its cuts.
    pub run: RunArguments,
    /// The cuts; each comes.
    pub strikes: Vec<Strike>,
}

impl Trial {
    /// Trial `number` of the campaign of a seed, with so many cuts. The first sixteen are each pair
    /// of workload and mechanism on an ordinary and on an adversarial host.
    pub fn new(kind: SimulatedCard, memory_ports: MemoryPorts, seed: u64, number: u64, cuts: usize) -> Trial {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(number);
        let card = match kind {
            SimulatedCard::Rtl => CardChoice::Rtl,
            SimulatedCard::Model => CardChoice::Model,
        };
        let mut run = RunArguments {
            workload: [Workload::Btree, Workload::Hashmap][(number % 2) as usize],
            mechanism: Mechanism::ALL[(number / 2 % 4) as usize],
            card,
            memory_ports,
            ops: ops(kind),
            mix: [MixChoice::Inserts, MixChoice::Churn][random.random_range(0..2)],
            power_cut: PowerCuts::default(),
            // Short enough to be typed again.
            seed: random.random_range(0..1 << 32),
            commits: CommitChoice::Durable,
            epoch: EPOCH,
            ring: RING_BYTES,
            pool: Some(POOL_BYTES),
            host: [HostChoice::Ordinary, HostChoice::Adversarial][(number / 8 % 2) as usize],
            posting: [PostingChoice::Line, PostingChoice::Combining, PostingChoice::Uncached]
                [random.random_range(0..3)],
            waves: None,
            json: false,
        };
        let strikes = (0..cuts).map(|life| strike(&mut random, kind, life, cuts)).collect();
        if !run.mechanism.has_epochs() && random.random_bool(0.4) {
            run.commits = CommitChoice::Asynchronous;
        }
        Trial { run, strikes }
    }
}

/// The cut of one life.
fn strike(random: &mut ChaCha8Rng, kind: SimulatedCard, life: usize, cuts: usize) -> Strike {
    // Behind a torn save there is no further life, so that only the last cut may make one.
    let energy = (life + 1 == cuts && random.random_bool(0.5)).then(|| below(random, SAVE_CYCLES));
    let in_replay = random.random_bool(0.6).then(|| in_the_replay(random));
    if life > 0 && random.random_bool(0.4) {
        let cut = match random.random_range(0..8) {
            0 => Cut::AtCycle(1 + below(random, BOOT_CYCLES)),
            1..=4 => near_an_event(random, kind, 60),
            _ => Cut::AtAccess(random.random_range(1..=250)),
        };
        return Strike { operation: None, cut: Some(cut), in_replay, energy };
    }
    if life == 0 && random.random_bool(0.1) {
        let cut = match random.random_range(0..3) {
            0 => Cut::AtCycle(random.random_range(1..=MAKING_CYCLES)),
            1 => near_an_event(random, kind, 150),
            _ => Cut::AtAccess(random.random_range(1..=MAKING_ACCESSES)),
        };
        return Strike { operation: None, cut: Some(cut), in_replay, energy };
    }
    // Each life has its share of the operations.
    let share = ops(kind) / cuts;
    let operation = Some(life * share + random.random_range(0..share.max(1)));
    let cut = match random.random_range(0..16) {
        0..=9 => Some(near_an_event(random, kind, 8)),
        10..=14 => Some(Cut::AtAccess(random.random_range(1..=150))),
        _ => None,
    };
    Strike { operation, cut, in_replay, energy }
}

/// A boot only reads, so that the first writes to become durable are those of a replay: its items
/// and how far it has come.
fn in_the_replay(random: &mut ChaCha8Rng) -> Cut {
    let event = Event::Inside(Activity::Durable);
    Cut::AfterEvent { event, count: random.random_range(1..=6), delay_cycles: 1 + below(random, [24, 100]) }
}

/// A number below the first bound, or, one in four times, below the second.
fn below(random: &mut ChaCha8Rng, bounds: [u64; 2]) -> u64 {
    let bound = bounds[usize::from(random.random_range(0..4) == 0)];
    random.random_range(0..bound)
}

/// The events that cuts are close to, the more often the more rows.
const EVENTS: [Event; 13] = [
    Event::CommandAccepted,
    Event::CommandAccepted,
    Event::CommandAccepted,
    Event::WriteAccepted,
    Event::WriteAccepted,
    Event::ReadAnswered,
    Event::Completion,
    Event::Inside(Activity::Issued),
    Event::Inside(Activity::Issued),
    Event::Inside(Activity::Durable),
    Event::Inside(Activity::Durable),
    // The RTL's ports do not show the last kind.
    Event::Inside(Activity::Retired),
    Event::Inside(Activity::Retired),
];

/// Some cycles behind one of the next `count` events of a kind.
fn near_an_event(random: &mut ChaCha8Rng, kind: SimulatedCard, count: u64) -> Cut {
    let shown = match kind {
        SimulatedCard::Rtl => &EVENTS[..EVENTS.len() - 2],
        SimulatedCard::Model => &EVENTS[..],
    };
    let event = shown[random.random_range(0..shown.len())];
    // Three in four within the life of a small log, the rest within that of several or of a page.
    let delay_cycles = 1 + below(random, [24, 400]);
    Cut::AfterEvent { event, count: random.random_range(1..=count), delay_cycles }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_repeat_by_seed_and_number() {
        let trial = |seed, number| Trial::new(SimulatedCard::Model, MemoryPorts::One, seed, number, CUTS);
        assert_eq!(trial(1, 7), trial(1, 7));
        assert_ne!(trial(1, 7), trial(2, 7));
        assert_ne!(trial(1, 7).strikes, trial(1, 7 + 16).strikes);
    }

    #[test]
    fn sixteen_trials_are_every_workload_mechanism_and_host() {
        let kinds: std::collections::BTreeSet<String> = (0..16)
            .map(|number| Trial::new(SimulatedCard::Rtl, MemoryPorts::Two, 1, number, CUTS).run)
            .map(|run| format!("{:?} {:?} {:?}", run.workload, run.mechanism, run.host))
            .collect();
        assert_eq!(kinds.len(), 16);
    }

    #[test]
    fn only_a_last_cut_lacks_energy() {
        for number in 0..200 {
            let strikes = Trial::new(SimulatedCard::Model, MemoryPorts::One, 3, number, CUTS).strikes;
            assert!(strikes[..CUTS - 1].iter().all(|strike| strike.energy.is_none()));
        }
    }
}
