//! Which warp runs when.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::Run;

/// The order in which warps (and the parts of a diverged warp) run. Each is deterministic, so that
/// a failure is replayed by its schedule and its step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// Each warp in turn for a fixed number of steps: the fastest.
    #[default]
    RoundRobin,
    /// Turns of random length by a random part of a random warp.
    Seeded(u64),
    /// The choices of an earlier run, then the first that is possible. See [`every_schedule`].
    Replay(Choices),
    /// A block runs first, for so many warp instructions; then all others run to their ends, and
    /// then it goes on: a thread that is held up anywhere, for long. Others that wait for it are
    /// not let run for ever.
    Held {
        /// Number of the block.
        block: u64,
        /// Warp instructions before it is held up.
        steps: u64,
    },
}

/// Choices of one schedule, and what else was possible: what [`every_schedule`] goes through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// The number chosen at each choice; a run adds those that it makes.
    pub taken: Vec<u32>,
    /// How often a part that could go on may be made to wait for another.
    pub preemptions: u32,
    possible: Vec<u32>,
    /// Where no choice is given, the launch stops to ask for it.
    asks: bool,
}

impl Choices {
    /// To replay a schedule with these choices, made under this bound on preemptions.
    pub fn new(taken: Vec<u32>, preemptions: u32) -> Self {
        Self { taken, preemptions, possible: Vec::new(), asks: false }
    }

    /// None are taken: the launch stops at each ([`Picker::undecided`]).
    pub(crate) fn asked_for(preemptions: u32) -> Self {
        Self { asks: true, ..Self::new(Vec::new(), preemptions) }
    }

    /// The next schedule in depth-first order; None after the last.
    fn next(mut self) -> Option<Choices> {
        self.taken.truncate(self.possible.len());
        while let Some(last) = self.taken.pop() {
            let possible = self.possible.pop()?;
            if last + 1 < possible {
                self.taken.push(last + 1);
                return Some(Choices::new(self.taken, self.preemptions));
            }
        }
        None
    }
}

impl std::fmt::Display for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Schedule::RoundRobin => write!(f, "round robin"),
            Schedule::Seeded(seed) => write!(f, "seed {seed}"),
            Schedule::Replay(choices) => write!(f, "choices {:?}, {} preemptions", choices.taken, choices.preemptions),
            Schedule::Held { block, steps } => write!(f, "block {block} held up behind {steps} instructions"),
        }
    }
}

/// What [`every_schedule`] went through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explored {
    /// Schedules run.
    pub schedules: u64,
    /// Whether all within the bound were run (false: `limit` was reached).
    pub complete: bool,
}

/// Calls `body` with every schedule that preempts a running warp at most `preemptions` times (depth
/// first, each replayed from the start), until `limit` schedules were run. Parts of warps are only
/// preempted before instructions that other threads can notice: accesses to global and shared
/// memory, fences, barriers. One that jumps backward gives way to the next, so that loops that wait
/// end. `body` must launch exactly once with the [`Run`] it is given (it may resume that launch,
/// crash it, and recover with runs of its own).
///
/// # Errors
/// The first error of `body`. [`crate::Crash::replay`] and [`crate::Fault::schedule`] name the
/// choices.
pub fn every_schedule<E>(
    preemptions: u32,
    limit: u64,
    mut body: impl FnMut(&mut Run) -> Result<(), E>,
) -> Result<Explored, E> {
    let mut next = Some(Choices::new(Vec::new(), preemptions));
    let mut schedules = 0;
    while let Some(choices) = next {
        if schedules == limit {
            return Ok(Explored { schedules, complete: false });
        }
        let mut run = Run { schedule: Schedule::Replay(choices), ..Run::default() };
        body(&mut run)?;
        schedules += 1;
        next = match run.schedule {
            Schedule::Replay(choices) => choices.next(),
            _ => None,
        };
    }
    Ok(Explored { schedules, complete: true })
}

/// Makes the choices of a launch.
#[derive(Clone, Debug)]
pub(crate) struct Picker {
    pub schedule: Schedule,
    random: ChaCha8Rng,
    made: usize,
    spent: u32,
    /// Warp instructions that the block that is to be held up has to run before, and others may
    /// while it is.
    held: [u64; 2],
    /// Options of the choice that is asked for.
    undecided: Option<u32>,
}

/// Warp instructions of others while a block is held up: enough for what ends.
const MEANWHILE: u64 = 1 << 16;

/// Steps of a turn, in round robin: long, so that a warp's registers stay in the cache.
const TURN: u64 = 512;

impl Picker {
    pub fn new(schedule: Schedule) -> Self {
        let seed = if let Schedule::Seeded(seed) = schedule { seed } else { 0 };
        let mut schedule = schedule;
        if let Schedule::Replay(choices) = &mut schedule {
            choices.possible.clear();
        }
        let held = if let Schedule::Held { steps, .. } = schedule { [steps, MEANWHILE] } else { [0; 2] };
        Self { schedule, random: ChaCha8Rng::seed_from_u64(seed), made: 0, spent: 0, held, undecided: None }
    }

    /// Steps of the next turn, and whether it ends before the next instruction that others can
    /// notice.
    pub fn turn(&mut self) -> (u64, bool) {
        match self.schedule {
            Schedule::RoundRobin => (TURN, false),
            Schedule::Seeded(_) => {
                let most = self.random.random_range(0..8);
                (self.random.random_range(1..=1u64 << most), false)
            }
            Schedule::Replay(_) => (u64::MAX, true),
            Schedule::Held { .. } if self.held[0] > 0 => (TURN.min(self.held[0]), false),
            Schedule::Held { .. } => (TURN, false),
        }
    }

    /// Notes that a block has run.
    pub fn ran(&mut self, number: u64, steps: u64) {
        if let Schedule::Held { block, .. } = self.schedule {
            let left = &mut self.held[usize::from(number != block)];
            *left = left.saturating_sub(steps);
        }
    }

    /// Whether a block that is to be held up runs now, rather than the others: it is its turn, or
    /// theirs is over.
    pub fn held_runs(&self) -> bool {
        self.held[0] > 0 || self.held[1] == 0
    }

    /// Whether the block is not held up any more, as others wait for it.
    pub fn is_released(&self) -> bool {
        self.held == [0, 0]
    }

    /// Counts turns.
    pub fn next_turn(&mut self) -> usize {
        self.made += 1;
        self.made
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.random.random_range(0..bound)
    }

    /// Options of the choice that is asked for, where the launch has stopped for that.
    pub fn undecided(&self) -> Option<u32> {
        self.undecided
    }

    /// Makes the choice that is asked for.
    pub fn decide(&mut self, taken: u32) {
        self.undecided = None;
        if let Schedule::Replay(choices) = &mut self.schedule {
            choices.taken.push(taken);
        }
    }

    /// Preemptions so far.
    pub fn spent(&self) -> u32 {
        self.spent
    }

    /// One of `options` parts. `next` has the turn by default; `free` when the part that ran last
    /// cannot go on, so that choosing another costs nothing. None where that is to be asked for.
    pub fn choose(&mut self, options: usize, next: usize, free: bool) -> Option<usize> {
        let Schedule::Replay(choices) = &mut self.schedule else { return Some(next) };
        if options == 1 || (!free && self.spent >= choices.preemptions) {
            return Some(next);
        }
        let taken = match choices.taken.get(self.made) {
            Some(&taken) => (taken as usize).min(options - 1),
            None if choices.asks => {
                self.undecided = Some(options as u32);
                return None;
            }
            None => {
                choices.taken.push(0);
                0
            }
        };
        choices.possible.push(options as u32);
        self.made += 1;
        if taken > 0 && !free {
            self.spent += 1;
        }
        // Choice 0 is the default, the others follow it.
        Some((next + taken) % options)
    }
}
