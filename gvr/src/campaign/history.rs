//! Random programs on simulated ranks, whose every element is checked.
//!
//! All ranks put, get, accumulate, compare-and-swap and wait, at random; sometimes they make a
//! version; sometimes one reads an old version, which it may hold on to. An element's operations
//! must be linearizable ([`super::linear`]): a put from its call to the next wait, an old version
//! as of its making.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::linear::{Act, Event, is_linearizable};
use crate::array::{Access, Array, Cursor, Fault, Keep, Options, Protocol};
use crate::error::{Error, Result};
use crate::rma::local::{self, Schedule};
use crate::{Op, World};

/// What a history is made of.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Seed of the operations and of their order.
    pub seed: u64,
    /// Protocol of the array; `None` for a flat one.
    pub protocol: Option<Protocol>,
    /// How ranks reach each other.
    pub access: Access,
    /// A fault that is planted.
    pub fault: Option<Fault>,
}

/// What a history covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// Events of all elements.
    pub events: u64,
    /// Versions that were made.
    pub versions: u64,
    /// Blocks that cleaning moved.
    pub moved: u64,
    /// Steps of the scheduler.
    pub steps: u64,
}

impl std::ops::AddAssign for Covered {
    fn add_assign(&mut self, other: Covered) {
        self.events += other.events;
        self.versions += other.versions;
        self.moved += other.moved;
        self.steps += other.steps;
    }
}

/// Everything that the ranks did, by element.
type Log = Mutex<Vec<Vec<Event>>>;

/// A rank's side of a history.
struct Player<'a> {
    array: &'a Array<u64>,
    rank: usize,
    random: ChaCha8Rng,
    log: &'a Log,
    clock: &'a AtomicU64,
    /// Puts that were not waited for: place in the log.
    unsure: Vec<(usize, usize)>,
    /// Seen of old versions: element, version, value.
    old: Vec<(usize, u64, u64)>,
    cursors: Vec<(u64, Cursor<u64>)>,
    values: u64,
}

const PHASES: u64 = 5;

/// When an operation is sure to have happened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sure {
    Now,
    AtWait,
    Never,
}

impl Player<'_> {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn range(&mut self) -> std::ops::Range<u64> {
        let count = self.array.dims()[0];
        let start = self.random.random_range(0..count);
        start..(start + self.random.random_range(1..6)).min(count)
    }

    fn note(&mut self, element: u64, start: u64, act: Act, sure: Sure) {
        let (end, maybe) = (if sure == Sure::Now { self.now() } else { u64::MAX }, sure == Sure::Never);
        let mut log = self.log.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let events = &mut log[element as usize];
        events.push(Event { rank: self.rank, start, end, act, maybe });
        if sure == Sure::AtWait {
            self.unsure.push((element as usize, events.len() - 1));
        }
    }

    fn wait(&mut self) -> Result<()> {
        self.array.wait()?;
        self.settle();
        Ok(())
    }

    /// What was unsure is done.
    fn settle(&mut self) {
        let end = self.now();
        let mut log = self.log.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for (element, at) in self.unsure.drain(..) {
            log[element][at].end = end;
        }
    }

    /// Changes the array. Where a log is full, cursors are given up, and some of it may have
    /// happened.
    fn try_change(&mut self, change: impl FnOnce(&Array<u64>) -> Result<()>) -> Result<Sure> {
        match change(self.array) {
            Ok(()) => Ok(Sure::AtWait),
            Err(Error::LogFull { .. }) => {
                self.array.acknowledge();
                self.cursors.clear();
                Ok(Sure::Never)
            }
            Err(error) => Err(error),
        }
    }

    fn value(&mut self) -> u64 {
        self.values += 1;
        (self.rank as u64 + 1) << 32 | self.values << 8
    }

    fn act(&mut self) -> Result<()> {
        let (start, range) = (self.now(), self.range());
        match self.random.random_range(0..10) {
            0..3 => {
                let data: Vec<u64> = range.clone().map(|_| self.value()).collect();
                let sure = self.try_change(|array| array.put(range.clone(), &data))?;
                range.zip(data).for_each(|(element, value)| self.note(element, start, Act::Write(value), sure));
            }
            3 => {
                let data: Vec<u64> = range.clone().map(|_| self.random.random_range(1..4)).collect();
                let sure = self.try_change(|array| array.accumulate(range.clone(), &data, Op::Sum))?;
                range.zip(data).for_each(|(element, more)| self.note(element, start, Act::Add(more), sure));
            }
            4 => {
                let element = range.start;
                let expected = self.array.get_vec(element..=element)?[0];
                let (start, new) = (self.now(), self.value());
                let mut seen = 0;
                let sure = self.try_change(|array| {
                    seen = array.compare_and_swap(&[element], expected, new)?;
                    Ok(())
                })?;
                // One that found the log full has changed nothing.
                if sure == Sure::AtWait {
                    self.note(element, start, Act::Swap(expected, new, seen), Sure::Now);
                }
            }
            5 => self.wait()?,
            6 => self.look_back(range)?,
            _ => {
                let seen = self.array.get_vec(range.clone())?;
                range.zip(seen).for_each(|(element, value)| self.note(element, start, Act::Read(value), Sure::Now));
            }
        }
        if self.random.random_bool(0.3) { self.wait() } else { Ok(()) }
    }

    /// Reads an old version, by a cursor that stays or by a new one.
    fn look_back(&mut self, range: std::ops::Range<u64>) -> Result<()> {
        if self.cursors.is_empty() || self.random.random_bool(0.3) {
            let versions = self.array.versions();
            if versions.is_empty() {
                return Ok(());
            }
            let number = versions[self.random.random_range(0..versions.len())].number;
            let cursor = self.array.at(number)?;
            self.cursors.push((number, cursor));
        }
        let at = self.random.random_range(0..self.cursors.len());
        let mut data = vec![0; (range.end - range.start) as usize];
        self.cursors[at].1.get(range.clone(), &mut data)?;
        let version = self.cursors[at].0;
        self.old.extend(range.zip(data).map(|(element, value)| (element as usize, version, value)));
        if self.random.random_bool(0.4) {
            self.cursors.swap_remove(at);
        }
        Ok(())
    }

    /// Makes a version; cursors that hold too much are given up.
    fn close(&mut self) -> Result<(u64, u64)> {
        let number = match self.array.version_inc("") {
            Err(Error::Pinned { .. } | Error::Elsewhere { .. }) => {
                self.cursors.clear();
                self.array.version_inc("")?
            }
            done => done?,
        };
        self.settle();
        Ok((number, self.now()))
    }

    fn play(mut self) -> Result<Played> {
        let mut made = Vec::new();
        for _ in 0..PHASES {
            for _ in 0..self.random.random_range(1..5) {
                self.act()?;
            }
            let before = self.now();
            let (number, after) = self.close()?;
            made.push((number, before, after));
        }
        // The newest version is read by all, whole.
        let number = made.last().map_or(0, |(number, ..)| *number);
        let count = self.array.dims()[0];
        let mut data = vec![0; count as usize];
        self.array.at(number)?.get(0..count, &mut data)?;
        self.old.extend(data.into_iter().enumerate().map(|(element, value)| (element, number, value)));
        Ok(Played { old: self.old, made, moved: self.array.counters().blocks_moved })
    }
}

struct Played {
    old: Vec<(usize, u64, u64)>,
    /// Version, when it was begun and when it was made.
    made: Vec<(u64, u64, u64)>,
    moved: u64,
}

/// The array of a seed.
fn options(program: &Program, random: &mut ChaCha8Rng) -> Options {
    let options = match program.protocol {
        Some(protocol) => Options { protocol, ..Options::log([16, 24, 32][random.random_range(0..3_usize)]) },
        None => Options::flat(),
    };
    // The paper's log is not cleaned.
    let log_blocks = if program.protocol == Some(Protocol::Paper) { 512 } else { 0 };
    Options {
        keep: Keep::Last(random.random_range(1..4)),
        fault: program.fault,
        access: program.access,
        log_blocks,
        ..options
    }
}

/// Plays a history and checks it.
///
/// # Errors
/// What an operation failed with, or what is wrong with the history, in words.
pub fn play(program: &Program) -> std::result::Result<Covered, String> {
    let mut random = ChaCha8Rng::seed_from_u64(program.seed ^ 0x0067_7672);
    let ranks = random.random_range(2..4);
    let count = random.random_range(8..25_u64);
    let options = options(program, &mut random);
    let (log, clock): (Log, AtomicU64) = (Mutex::new(vec![Vec::new(); count as usize]), AtomicU64::new(1));
    let (played, ran) = local::run(ranks, 1 << 17, &Schedule::of_seed(program.seed), |local| {
        let world = World::new(local);
        let array = world.array::<u64>(&[count], options)?;
        let rank = world.rank();
        let random = ChaCha8Rng::seed_from_u64(program.seed.wrapping_mul(31).wrapping_add(rank as u64));
        let player = Player {
            array: &array,
            rank,
            random,
            log: &log,
            clock: &clock,
            unsure: Vec::new(),
            old: Vec::new(),
            cursors: Vec::new(),
            values: 0,
        };
        player.play()
    });
    let played = super::all_of(played)?;
    let log = log.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut covered = judge(log, &played)?;
    covered.steps = ran.steps;
    Ok(covered)
}

fn judge(mut log: Vec<Vec<Event>>, played: &[Played]) -> std::result::Result<Covered, String> {
    // A version is as of a moment when all had begun to make it and none had gone on.
    let mut moments: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for (number, before, after) in played.iter().flat_map(|played| &played.made) {
        let moment = moments.entry(*number).or_insert((0, u64::MAX));
        *moment = (moment.0.max(*before), moment.1.min(*after));
    }
    let mut old: Vec<_> = played.iter().flat_map(|played| played.old.iter().copied()).collect();
    old.sort_unstable();
    old.dedup();
    for (element, version, value) in old {
        let (start, end) = moments[&version];
        log[element].push(Event { rank: usize::MAX, start, end, act: Act::Read(value), maybe: false });
    }
    let wrong = log.iter().position(|events| !is_linearizable(events));
    if let Some(element) = wrong {
        log[element].sort_by_key(|event| event.start);
        let events: Vec<String> = log[element].iter().map(|event| format!("  {event:?}")).collect();
        return Err(format!("no order gives what was seen of element {element}:\n{}", events.join("\n")));
    }
    Ok(Covered {
        events: log.iter().map(|events| events.len() as u64).sum(),
        versions: played[0].made.len() as u64,
        moved: played.iter().map(|played| played.moved).sum(),
        steps: 0,
    })
}
