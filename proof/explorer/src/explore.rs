//! The exploration: every crash of a program, what recovery makes of it, and crashes in the
//! recovery, to a fixed point.
//!
//! **Which moments.** Between two fences that make something certain, stores only add states to
//! those that a crash may leave. So a crash just before each such fence, and wherever what is
//! allowed changes, leaves every state that a crash at any event may leave. The same holds of
//! commands, which a fence makes certain to arrive. Behind a link a fence gives order alone: what a
//! crash leaves at a fence it also leaves later, up to the next read that pushes, so that it has to
//! be allowed there ([`Trace::allowed`]).
//!
//! **Which states.** `eager`: all of them, each word decided before the recovery begins; equal
//! images are recovered from once. Lazily: a word is decided when the recovery or the check loads
//! it. What never loads a word does the same for each of its values, so that one run stands for all
//! states that differ in such words alone. Where a second recovery loads a word that the first left
//! undecided, the cut is explored anew with that word decided first, so that the argument holds
//! there, too.
//!
//! **Crashes in the recovery.** The stores of a recovery are taken as those of the program were. An
//! image that was seen is not recovered from again; when no new one is left, any number of crashes
//! in a row was explored.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::AddAssign;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::arena::Arena;
use crate::choices::Choices;
use crate::crash::{CrashMemory, Kept, Run, Start};
use crate::image::{Image, mix};
use crate::media::{PossibleMedia, PossibleMedium};
use crate::program::{Checker, Program, Recorded};
use crate::quiet::quietly;
use crate::trace::{Bounds, Done, LINE_WORDS, Step, Trace};

/// After one in so many recoveries a transaction tries the pool: it takes longer than the recovery.
const PROBE_ONE_IN: u64 = 16;

/// How much is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Every word is decided before a recovery begins, not when it is loaded.
    pub eager: bool,
    /// Most lines that a crash leaves with a store that is half there.
    pub tears: u32,
    /// Most runs of recovery for a cut; what is beyond is counted as cut short.
    pub runs_per_cut: u64,
    /// Of so many images that the program's own crashes leave one is followed into crashes of its
    /// recovery; 0: none.
    pub again_one_in: u64,
    /// Most crashes in a row.
    pub in_a_row: usize,
    /// Most media that are gone on with where commands found lines that were not certain, or each
    /// other: a correct library leaves one.
    pub media: usize,
}

impl Limits {
    /// Everything.
    pub const EXHAUSTIVE: Limits =
        Limits { eager: true, tears: u32::MAX, runs_per_cut: u64::MAX, again_one_in: 1, in_a_row: 4, media: 64 };
    /// Words are decided when they are loaded; a crash tears one line, and some recoveries are cut
    /// once.
    pub const LAZY: Limits =
        Limits { eager: false, tears: 1, runs_per_cut: 512, again_one_in: 256, in_a_row: 2, media: 16 };
}

/// What was explored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Runs of the program.
    pub executions: u64,
    /// Moments at which it was cut.
    pub cuts: u64,
    /// Distinct crash states: images with what they may hold, each recovered from.
    pub states: u64,
    /// Of those, the ones that a crash in a recovery leaves.
    pub again: u64,
    /// Runs of recovery and check.
    pub recoveries: u64,
    /// Most crashes in a row.
    pub deepest: u64,
    /// States behind the longest allowed row of crashes, whose recovery was not cut any more: where
    /// there are none, a fixed point was reached.
    pub not_followed: u64,
    /// Cuts, of programs and of recoveries, whose states were not all explored.
    pub cut_short: u64,
    /// Cuts that were explored anew because a second recovery loaded what the first did not.
    pub refined: u64,
    /// Most media that a run may have left before a crash: more than one where commands found lines
    /// that were not certain, or each other.
    pub media: u64,
}

impl AddAssign for Report {
    fn add_assign(&mut self, more: Report) {
        self.executions += more.executions;
        self.cuts += more.cuts;
        self.states += more.states;
        self.again += more.again;
        self.recoveries += more.recoveries;
        self.deepest = self.deepest.max(more.deepest);
        self.not_followed += more.not_followed;
        self.cut_short += more.cut_short;
        self.refined += more.refined;
        self.media = self.media.max(more.media);
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} crash states ({} of crashes in recovery, at most {} in a row, {} not followed), {} recoveries, {} cuts of {} executions; {} \
             cuts not to the end, {} explored anew, at most {} media before a crash",
            self.states,
            self.again,
            self.deepest,
            self.not_followed,
            self.recoveries,
            self.cuts,
            self.executions,
            self.cut_short,
            self.refined,
            self.media
        )
    }
}

/// A crash: when, the words that it left as a store made them, and how commands arrived. All other
/// words are as they were durable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crash {
    /// Steps that were done, of the program since its memory was blank, or of the recovery.
    pub step: usize,
    /// Index of each word, and number of the store to its line, from 1.
    pub kept: Vec<Kept>,
    /// What was decided about commands, in the order in which [`crate::commands`] asks; 0 stands
    /// for each that is left out at the end. At the crash 1 loses a command; in front of a store 1
    /// carries out one that the card has accepted and 0 leaves it for later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<usize>,
}

/// A state that no crash may leave: the crashes that lead to it, the first in the program, the
/// others each in the recovery from the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The crashes.
    pub crashes: Vec<Crash>,
    /// What is wrong.
    pub message: String,
}

/// Hashes are hashed enough.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("only words are hashed");
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

/// An image whose recovery is to be cut.
struct Job {
    image: Image,
    unknown: Arc<BTreeSet<usize>>,
    steps: Vec<Step>,
    crashes: Vec<Crash>,
}

/// Why a cut is left before its end.
enum Stop {
    Failed(Failure),
    /// A recovery has loaded words that stood for any value.
    Met(Vec<usize>),
}

struct Explorer<'p> {
    checker: &'p dyn Checker,
    trace: &'p Trace,
    limits: Limits,
    arena: Option<Arena>,
    seen: HashSet<u64, BuildHasherDefault<Identity>>,
    /// Seen since the cut began.
    new: Vec<(u64, bool)>,
    /// Words that are decided before a recovery begins.
    first: BTreeSet<usize>,
    jobs: Vec<Job>,
    report: Report,
}

/// Explores a program.
///
/// # Errors
/// The program itself failed.
pub fn explore(program: &Program, limits: Limits) -> Result<(Report, Option<Failure>), String> {
    Ok(explore_recorded(&program.record()?, limits))
}

fn explore_recorded(recorded: &Recorded, limits: Limits) -> (Report, Option<Failure>) {
    let trace = &recorded.trace;
    let mut explorer = Explorer {
        checker: &*recorded.checker,
        trace,
        limits,
        arena: Some(Arena::new(recorded.words)),
        seen: HashSet::default(),
        new: Vec::new(),
        first: BTreeSet::new(),
        jobs: Vec::new(),
        report: Report { executions: 1, ..Report::default() },
    };
    let mut media = PossibleMedia::new(trace.after_power_up(vec![0; recorded.words]), limits.media);
    let mut failure = None;
    for index in 0..=trace.steps.len() {
        let step = trace.steps.get(index);
        let changes = trace.bounds.iter().any(|change| change.0 == index);
        let is_cut = changes || step.is_none_or(|step| media.are_narrowed_by(step));
        if let (true, Some(bounds)) = (is_cut, trace.allowed(index)) {
            explorer.report.cuts += 1;
            failure = explorer.cut(&media, index, &bounds).err();
        }
        if failure.is_some() {
            break;
        }
        step.into_iter().for_each(|step| media.take(step));
    }
    explorer.note(&media);
    explorer.report.states = explorer.seen.len() as u64;
    (explorer.report, failure)
}

/// Schedules that a program ran by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedules {
    /// Its crashes were explored.
    pub explored: u64,
    /// Its steps were those of an explored one, in the same places and with the same values, so
    /// that its crashes were not explored. Values that are drawn anew in each run were not compared
    /// ([`Done::is_repeated_by`]).
    pub repeated: u64,
}

impl Schedules {
    /// All by which it ran.
    pub fn run(self) -> u64 {
        self.explored + self.repeated
    }
}

/// What was explored, the schedules, and the program that failed with its schedule.
pub type Scheduled = (Report, Schedules, Option<(Program, Failure)>);

/// Explores a program of two threads by every schedule with at most so many switches where a thread
/// could have gone on, and at most so many schedules. Beside a reader, who stores nothing, a
/// program does the same steps by most of them: crashes of one that [repeats](Done::is_repeated_by)
/// an explored one are left out, and counted so. What its reader saw is compared by every schedule.
///
/// # Errors
/// The program itself failed.
pub fn explore_schedules(
    program: &Program,
    limits: Limits,
    switches: usize,
    schedules: u64,
) -> Result<Scheduled, String> {
    let (mut total, mut done) = (Report::default(), Schedules::default());
    let mut waiting = VecDeque::from([program.schedule.clone()]);
    let mut known: Vec<Done> = Vec::new();
    while let Some(schedule) = waiting.pop_front().filter(|_| done.run() < schedules) {
        let next = schedule.last().map_or(0, |last| last + 1);
        let program = Program { schedule, ..program.clone() };
        let recorded = program.record()?;
        if program.schedule.len() < switches {
            let more = |at: usize| program.schedule.iter().copied().chain([at]).collect();
            waiting.extend((next..recorded.turns).map(more));
        }
        if program.reader.is_some() {
            if known.iter().any(|known| known.is_repeated_by(&recorded.trace)) {
                done.repeated += 1;
                continue;
            }
            known.push(Done::new(recorded.trace.clone(), &program.record()?.trace));
        }
        done.explored += 1;
        let (report, failure) = explore_recorded(&recorded, limits);
        total += report;
        if let Some(failure) = failure {
            return Ok((total, done, Some((program, failure))));
        }
    }
    Ok((total, done, None))
}

impl Explorer<'_> {
    /// Explores what a crash of the program at this moment leaves.
    fn cut(&mut self, media: &PossibleMedia, index: usize, bounds: &Bounds) -> Result<(), Failure> {
        self.first.clear();
        loop {
            self.new.clear();
            self.jobs.clear();
            match self.cut_once(media, index, bounds) {
                Ok(()) => return Ok(()),
                Err(Stop::Failed(failure)) => return Err(failure),
                Err(Stop::Met(words)) => {
                    // With their neighbours, which belong to the same record.
                    let line = |word: usize| word / LINE_WORDS * LINE_WORDS;
                    self.first.extend(words.into_iter().flat_map(|word| line(word)..line(word) + LINE_WORDS));
                    self.report.refined += 1;
                    for (key, again) in self.new.drain(..) {
                        self.seen.remove(&key);
                        self.report.again -= u64::from(again);
                    }
                }
            }
        }
    }

    fn cut_once(&mut self, media: &PossibleMedia, index: usize, bounds: &Bounds) -> Result<(), Stop> {
        for possible in media.crashed() {
            self.states(&possible, index, bounds, &[], &Arc::default())?;
        }
        while let Some(job) = self.jobs.pop() {
            self.report.deepest = self.report.deepest.max(job.crashes.len() as u64 + 1);
            let mut media = PossibleMedia::new(self.trace.after_power_up(job.image.words()), self.limits.media);
            for index in 0..=job.steps.len() {
                let step = job.steps.get(index);
                if step.is_none_or(|step| media.are_narrowed_by(step)) {
                    for possible in media.crashed() {
                        self.states(&possible, index, bounds, &job.crashes, &job.unknown)?;
                    }
                }
                step.into_iter().for_each(|step| media.take(step));
            }
            self.note(&media);
        }
        Ok(())
    }

    fn note(&mut self, media: &PossibleMedia) {
        self.report.cut_short += u64::from(media.is_cut_short);
        self.report.media = self.report.media.max(media.width as u64);
    }

    /// Recovers from every state that a crash leaves.
    fn states(
        &mut self,
        PossibleMedium { medium, chosen }: &PossibleMedium,
        step: usize,
        bounds: &Bounds,
        crashes: &[Crash],
        unknown: &Arc<BTreeSet<usize>>,
    ) -> Result<(), Stop> {
        let mut durable: Option<Image> = None;
        let durable_hash = medium.hash() ^ hash_of(bounds);
        let open = medium.possible();
        let mut choices = Choices::default();
        for runs in 0.. {
            if runs == self.limits.runs_per_cut {
                self.report.cut_short += 1;
                break;
            }
            let start = Start {
                durable: medium.durable(),
                open: open.clone(),
                choices,
                tears: self.limits.tears,
                unknown: unknown.clone(),
                one_domain: self.trace.one_domain,
            };
            let memory = CrashMemory::new(self.arena.take().expect("runs follow each other"), start);
            memory.decide((!self.limits.eager).then_some(&self.first));
            let skipped = self.limits.eager && self.seen.contains(&memory.hash(medium.durable(), durable_hash));
            let outcome = if skipped { Ok(()) } else { self.check(&memory, bounds) };
            let is_new = !skipped && self.enter(memory.hash(medium.durable(), durable_hash), crashes);
            let followed = is_new && self.is_followed(crashes);
            let left =
                followed.then(|| memory.image(durable.get_or_insert_with(|| Image::new(medium.durable().to_vec()))));
            let (run, arena) = memory.end();
            self.arena = Some(arena);
            let last = |kept: &[Kept]| Crash { step, kept: kept.to_vec(), commands: chosen.clone() };
            let crash = |kept: &[Kept]| crashes.iter().cloned().chain([last(kept)]).collect();
            if let Err(message) = outcome {
                return Err(Stop::Failed(Failure { crashes: crash(&run.kept), message }));
            }
            let Run { choices: made, kept, steps, met, .. } = run;
            if !met.is_empty() {
                return Err(Stop::Met(met));
            }
            if let Some((image, left)) = left {
                self.jobs.push(Job { image, unknown: Arc::new(left), steps, crashes: crash(&kept) });
            }
            choices = made;
            if !choices.advance() {
                break;
            }
        }
        Ok(())
    }

    /// Notes a state; whether it is new.
    fn enter(&mut self, key: u64, crashes: &[Crash]) -> bool {
        let is_new = self.seen.insert(key);
        if is_new {
            self.new.push((key, !crashes.is_empty()));
            self.report.again += u64::from(!crashes.is_empty());
        }
        is_new
    }

    /// Whether the recovery from a new state is cut, too.
    fn is_followed(&mut self, crashes: &[Crash]) -> bool {
        let number = self.seen.len() as u64;
        let is_chosen =
            self.limits.again_one_in > 0 && (!crashes.is_empty() || number.is_multiple_of(self.limits.again_one_in));
        let is_last = crashes.len() + 1 >= self.limits.in_a_row;
        self.report.not_followed += u64::from(is_chosen && is_last);
        is_chosen && !is_last
    }

    fn check(&mut self, memory: &CrashMemory, bounds: &Bounds) -> Result<(), String> {
        let probe = self.report.recoveries.is_multiple_of(PROBE_ONE_IN);
        self.report.recoveries += 1;
        checked(self.checker, memory, bounds, probe)
    }
}

/// Recovers and checks; a panic is a failure like any other.
pub fn checked(checker: &dyn Checker, memory: &CrashMemory, bounds: &Bounds, probe: bool) -> Result<(), String> {
    quietly(|| catch_unwind(AssertUnwindSafe(|| checker.check(memory, bounds, probe)))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(format!("a panic: {text}"))
    })
}

fn hash_of(bounds: &Bounds) -> u64 {
    let hash = |(thread, &(low, high)): (usize, &(usize, usize))| mix(usize::MAX - thread, (low << 32 | high) as u64);
    bounds.iter().enumerate().map(hash).fold(0, |a, b| a ^ b)
}
