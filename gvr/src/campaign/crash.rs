//! Random programs on durable arrays that are stopped anywhere, and what is there afterwards.
//!
//! Each element is written by one rank alone, so that a version's contents are known. A run ends by
//! a power cut at a step of the ranks, by one in the middle of a pool's stores, by the end of one
//! rank, or in order. The job is opened again on some number of ranks, possibly cut again while it
//! is being opened, and must then be as of a cut that was begun, not older than any that a rank was
//! told of; every version that is kept must be what was written. Then it goes on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::array::{Array, Fault, Keep, Options};
use crate::error::{Error, Result};
use crate::persist::{Flush, Holder, Job, Memories, PowerCut};
use crate::rma::local::{self, Local, Schedule, Stop};
use crate::{World, version_inc_all};

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Seed of everything.
    pub seed: u64,
    /// A fault that is planted.
    pub fault: Option<Fault>,
}

/// What runs covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// Runs that were stopped.
    pub stops: u64,
    /// Versions that were compared with the model.
    pub versions: u64,
    /// Openings on another number of ranks than before.
    pub moved: u64,
    /// Openings that took a cut back.
    pub taken_back: u64,
    /// Pools that were lost, of which a partner had a copy.
    pub lost: u64,
    /// Cuts that were on their way to the pools while the program went on.
    pub flown: u64,
}

impl std::ops::AddAssign for Covered {
    fn add_assign(&mut self, other: Covered) {
        self.stops += other.stops;
        self.versions += other.versions;
        self.moved += other.moved;
        self.taken_back += other.taken_back;
        self.lost += other.lost;
        self.flown += other.flown;
    }
}

const ARRAYS: usize = 2;
const NAMES: [&str; ARRAYS] = ["positions", "charges"];
const WINDOW: u64 = 1 << 18;
const POOL: u64 = 1 << 20;

/// What arrays were written with.
#[derive(Default)]
struct Model {
    /// Of each array, by the version that they belong to: element and value.
    written: [BTreeMap<u64, BTreeMap<u64, u64>>; ARRAYS],
    /// Versions of the arrays behind each cut that was begun: numbers of the next ones.
    cuts: Vec<[u64; ARRAYS]>,
    /// The newest cut that a rank was told to be durable: place in `cuts`, plus 1.
    told: usize,
}

impl Model {
    /// Contents of an array behind its version `next` - 1.
    fn contents(&self, array: usize, next: u64, count: u64) -> Vec<u64> {
        let mut data = vec![0; count as usize];
        for (element, value) in self.written[array].range(..next).flat_map(|(_, written)| written) {
            data[*element as usize] = *value;
        }
        data
    }

    /// What was found is what there is now.
    fn settle(&mut self, next: [u64; ARRAYS]) -> std::result::Result<(), String> {
        let at =
            if next == [0; ARRAYS] { Some(0) } else { self.cuts.iter().position(|cut| *cut == next).map(|at| at + 1) };
        let Some(at) = at else { return Err(format!("versions {next:?} were never cut together: {:?}", self.cuts)) };
        if at < self.told {
            return Err(format!("cut {} was told to be durable, and {at} was found", self.told));
        }
        self.cuts.truncate(at);
        self.told = at;
        for (written, next) in self.written.iter_mut().zip(next) {
            written.retain(|version, _| *version < next);
        }
        Ok(())
    }
}

type Shared = Mutex<Model>;

fn with<R>(model: &Shared, act: impl FnOnce(&mut Model) -> R) -> R {
    act(&mut model.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Sizes of a seed.
#[derive(Clone, Copy)]
struct Sizes {
    counts: [u64; ARRAYS],
    options: [Options; ARRAYS],
}

fn sizes(program: &Program, random: &mut ChaCha8Rng) -> Sizes {
    let options = |random: &mut ChaCha8Rng| Options {
        keep: Keep::Last(random.random_range(1..4)),
        fault: program.fault,
        compress: random.random_bool(0.5),
        ..Options::log([16, 64][random.random_range(0..2_usize)])
    };
    let options = [options(random), options(random)];
    Sizes { counts: [random.random_range(6..40), random.random_range(6..40)], options }
}

/// Writes, and makes cuts. Gives how many of them were sealed in the background.
fn work(job: &Job, sizes: &Sizes, model: &Shared, random: &mut ChaCha8Rng, same: &mut ChaCha8Rng) -> Result<u64> {
    let arrays = open_arrays(job, sizes)?;
    let background = same.random_bool(0.5);
    job.set_flush(if background { Flush::Background } else { Flush::Wait })?;
    let mut flown = 0;
    let told = |next: &[u64; ARRAYS]| {
        with(model, |model| {
            model.told = model.told.max(model.cuts.iter().position(|cut| cut == next).map_or(0, |at| at + 1))
        });
    };
    let (rank, ranks) = (job.world().rank() as u64, job.world().ranks() as u64);
    for _ in 0..same.random_range(1..5) {
        for (at, array) in arrays.iter().enumerate() {
            for _ in 0..random.random_range(0..4) {
                let element = random.random_range(0..sizes.counts[at]) / ranks * ranks + rank;
                if element < sizes.counts[at] {
                    let value = random.random();
                    with(model, |model| model.written[at].entry(array.version()).or_default().insert(element, value));
                    array.put(element..=element, &[value])?;
                    // Two puts of one element have no order without.
                    array.wait()?;
                }
            }
        }
        // All ranks draw the same.
        let chosen = [&[0][..], &[1], &[0, 1]][same.random_range(0..3_usize)];
        let before = [arrays[0].version(), arrays[1].version()];
        let mut next = before;
        chosen.iter().for_each(|at| next[*at] += 1);
        with(model, |model| {
            if model.cuts.last() != Some(&next) {
                model.cuts.push(next);
            }
        });
        let faces: Vec<_> = chosen.iter().map(|at| arrays[*at].face()).collect();
        version_inc_all(&faces, &format!("{next:?}"))?;
        if background {
            flown += 1;
            told(&before);
            if same.random_bool(0.3) {
                job.version_wait()?;
                told(&next);
            }
        } else {
            told(&next);
        }
    }
    Ok(flown)
}

fn open_arrays(job: &Job, sizes: &Sizes) -> Result<[Array<u64>; ARRAYS]> {
    let open = |at: usize| job.array::<u64>(NAMES[at], &[sizes.counts[at]], sizes.options[at]);
    Ok([open(0)?, open(1)?])
}

/// Waits for what was put and not cut.
fn arrays_wait(job: &Job, sizes: &Sizes) -> Result<()> {
    open_arrays(job, sizes)?.iter().try_for_each(Array::wait)
}

/// Compares everything that is there with the model; gives how many versions were compared.
fn compare(job: &Job, sizes: &Sizes, model: &Shared) -> Result<std::result::Result<u64, String>> {
    let arrays = open_arrays(job, sizes)?;
    let next = [arrays[0].version(), arrays[1].version()];
    let mut compared = 0;
    for (at, array) in arrays.iter().enumerate() {
        let count = sizes.counts[at];
        let mut data = vec![0; count as usize];
        array.get(0..count, &mut data)?;
        // With what was put since the newest version.
        let wanted = with(model, |model| model.contents(at, next[at] + 1, count));
        if data != wanted {
            let (found, report) = (array.versions(), job.report());
            return Ok(Err(format!(
                "array {at} is not as of its version {}: {data:x?}, not {wanted:x?}; {found:?}, {report:?}",
                next[at]
            )));
        }
        for version in array.versions() {
            array.at(version.number)?.get(0..count, &mut data)?;
            let wanted = with(model, |model| model.contents(at, version.number + 1, count));
            if data != wanted {
                let (number, found, report) = (version.number, array.versions(), job.report());
                return Ok(Err(format!(
                    "version {number} of array {at} is {data:x?}, not {wanted:x?}; {found:?}, {report:?}"
                )));
            }
            compared += 1;
        }
    }
    Ok(Ok(compared))
}

/// How a run is to end, and how it did.
struct Ending {
    schedule: Schedule,
    cut: Option<Arc<PowerCut>>,
    at_step: Option<Arc<Mutex<Option<Memories>>>>,
}

impl Ending {
    fn draw(memories: &Memories, ranks: usize, random: &mut ChaCha8Rng) -> Ending {
        let mut ending = Ending { schedule: Schedule::of_seed(random.random()), cut: None, at_step: None };
        let (step, seed) = (1 << random.random_range(3..12_u32), random.random());
        let step = random.random_range(step / 2..2 * step);
        match random.random_range(0..8) {
            0..3 => {
                let (left, all) = (Arc::new(Mutex::new(None)), memories.clone());
                ending.at_step = Some(Arc::clone(&left));
                ending.schedule.at_stop = Some(Arc::new(move || {
                    *left.lock().unwrap_or_else(PoisonError::into_inner) = Some(all.surviving(seed));
                }));
                ending.schedule.stop = Some(Stop::All { step });
            }
            3..6 => {
                let cut = PowerCut::new(step * 2, seed);
                ending.schedule.halt = Some(Arc::clone(&cut.halt));
                ending.cut = Some(cut);
            }
            6 => ending.schedule.stop = Some(Stop::One { rank: random.random_range(0..ranks), step }),
            _ => {}
        }
        ending
    }

    /// What is left of the memories.
    fn left(&self, memories: &Memories) -> (Memories, bool) {
        let at_step = self.at_step.as_ref().and_then(|left| left.lock().unwrap_or_else(PoisonError::into_inner).take());
        let left = at_step.or_else(|| self.cut.as_ref().and_then(|cut| cut.left()));
        let stopped = left.is_some();
        (left.unwrap_or_else(|| memories.surviving(0)), stopped)
    }
}

/// Runs a seed to its end.
///
/// # Errors
/// What is wrong, in words.
pub fn play(program: &Program) -> std::result::Result<Covered, String> {
    let mut random = ChaCha8Rng::seed_from_u64(program.seed ^ 0x0063_7261_7368);
    let sizes = sizes(program, &mut random);
    let (model, mut memories, mut covered) = (Shared::default(), Memories::default(), Covered::default());
    // Every fourth job has partner copies, and loses a rank's own pool now and then.
    let partners = program.seed % 4 == 3;
    if partners {
        memories = memories.with_partners();
    }
    let mut before = None;
    for round in 0..4 {
        let ranks = random.random_range(1..4);
        // The last round ends in order, so that everything is seen.
        let ending = if round == 3 { None } else { Some(Ending::draw(&memories, ranks, &mut random)) };
        let schedule =
            ending.as_ref().map_or_else(|| Schedule::of_seed(random.random()), |ending| ending.schedule.clone());
        let watched = match ending.as_ref().and_then(|ending| ending.cut.as_ref()) {
            Some(cut) => memories.clone().with_cut(cut),
            None => memories.clone(),
        };
        let seed = random.random();
        let settled = AtomicBool::new(false);
        let (given, _) =
            local::run(ranks, WINDOW, &schedule, |local| round_of(local, &watched, &sizes, &model, seed, &settled));
        for outcome in given {
            covered += match outcome {
                Ok(Ok(seen)) => seen,
                Ok(Err(wrong)) => return Err(format!("round {round} on {ranks} ranks: {wrong}")),
                Err(Error::Stopped { .. } | Error::DeadRank { .. }) if ending.is_some() => Covered::default(),
                Err(error) => return Err(format!("round {round} on {ranks} ranks: {error}")),
            };
        }
        covered.moved += u64::from(before.is_some_and(|before| before != ranks));
        before = Some(ranks);
        if let Some(ending) = ending {
            let (left, stopped) = ending.left(&memories);
            memories = left;
            covered.stops += u64::from(stopped);
            if partners && random.random_bool(0.5) {
                memories.lose(random.random_range(0..ranks), Holder::Owner);
                covered.lost += 1;
            }
        }
    }
    Ok(covered)
}

/// A rank's life: it opens the job, compares, works.
fn round_of(
    local: Local,
    memories: &Memories,
    sizes: &Sizes,
    model: &Shared,
    seed: u64,
    settled: &AtomicBool,
) -> Result<std::result::Result<Covered, String>> {
    let world = World::new(local);
    let mut random = ChaCha8Rng::seed_from_u64(seed.wrapping_add(1 + world.rank() as u64));
    let mut same = ChaCha8Rng::seed_from_u64(seed);
    let job = Job::open_or_create(&world, memories, POOL)?;
    let mut covered = Covered::default();
    // The first rank that is here says what was found, before any compares or goes on.
    let first = !settled.swap(true, Ordering::SeqCst);
    let arrays = open_arrays(&job, sizes)?;
    if first && let Err(wrong) = with(model, |model| model.settle([arrays[0].version(), arrays[1].version()])) {
        return Ok(Err(wrong));
    }
    drop(arrays);
    covered.taken_back = u64::from(first && job.report().taken_back > 0);
    world.barrier()?;
    match compare(&job, sizes, model)? {
        Ok(compared) => covered.versions = compared,
        Err(wrong) => return Ok(Err(format!("when it was opened, {wrong}"))),
    }
    world.barrier()?;
    covered.flown = work(&job, sizes, model, &mut random, &mut same)?;
    arrays_wait(&job, sizes)?;
    // What is there at the end of a run in order is there at once.
    world.barrier()?;
    Ok(compare(&job, sizes, model)?.map(|compared| {
        covered.versions += compared;
        covered
    }))
}
