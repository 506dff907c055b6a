//! Figures, each against a flat array of the same run.
//!
//! The first rank measures, on the part of the last one. A time is that of the best batch: on a
//! busy machine others tell of the neighbours. What was put is read back and compared before a rate
//! is printed.

mod programs;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;

use programs::{counts, durable, programs};

use super::backend::Backend;
use crate::array::{Array, Keep, Options, Protocol};
use crate::error::{Error, Result};
use crate::programs::synthetic;
use crate::world::World;

#[derive(Args)]
pub struct BenchArguments {
    /// Ranks, as processes
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    ranks: u64,
    /// What connects the ranks
    #[arg(long, value_enum, default_value_t = Backend::Shm)]
    backend: Backend,
    /// Batches of each measurement
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    rounds: u64,
    /// MiB of the synthetic workload's array on each rank
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=1024))]
    mib: u64,
    /// `version_inc` of 1 GiB a rank, too: takes 5 GiB of memory a rank
    #[arg(long)]
    large: bool,
    /// In place of times: what the programs do for a version, by operations
    #[arg(long, conflicts_with_all = ["json", "rounds"])]
    counts: bool,
    /// Folder of the durable figure's pools, by default that of temporary files
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Only the figures whose name holds this
    #[arg(long, default_value = "")]
    only: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Bytes of memory of each rank that the figures need as they are by default.
const WINDOW: u64 = 1 << 30;
/// The same, with `--large`.
const LARGE_WINDOW: u64 = 6 << 30;
/// Words of a part in measurements of single operations: 1 MiB.
const PART: u64 = 1 << 17;
/// Bytes of a block, as in the paper's.
const BLOCK: u64 = 128;

/// The three arrays that are compared.
struct Trio {
    flat: Array<u64>,
    ours: Array<u64>,
    paper: Option<Array<u64>>,
}

/// Nanoseconds of one operation.
#[derive(Clone, Copy)]
struct Times {
    pub flat: f64,
    pub ours: f64,
    pub paper: Option<f64>,
}

struct Figure {
    pub name: String,
    pub times: Times,
}

/// What `--only` can choose.
const NAMES: [&str; 5] = ["put get", "version_inc", "synthetic", "programs", "durable"];

pub fn command(arguments: &BenchArguments) -> Result<ExitCode> {
    if !NAMES.iter().any(|name| name.contains(&arguments.only)) {
        let what = format!("no figure's name holds {:?}: give a part of one of {NAMES:?}", arguments.only);
        return Err(Error::option(what));
    }
    let window = arguments.backend.window(if arguments.large { LARGE_WINDOW } else { WINDOW });
    let Some(world) = arguments.backend.launched(window)? else {
        return arguments.backend.launch_and_wait(arguments.ranks as usize, window);
    };
    if arguments.counts {
        return counts(&world).map(|()| ExitCode::SUCCESS);
    }
    let mut figures = Vec::new();
    let wants = |name: &str| name.contains(&arguments.only);
    for bytes in [8_u64, 128, 1024, 8192, 65536] {
        if wants("put get") {
            figures.extend(operations(&world, bytes, arguments.rounds)?);
        }
    }
    if wants("version_inc") {
        figures.extend(versions(&world, arguments.rounds, arguments.large)?);
    }
    if wants("synthetic") {
        figures.extend(synthetic_figures(&world, arguments)?);
    }
    if wants("programs") {
        figures.extend(programs(&world, arguments.rounds)?);
    }
    if wants("durable") {
        figures.extend(durable(
            &world,
            &arguments.folder.clone().unwrap_or_else(std::env::temp_dir),
            arguments.rounds,
        )?);
    }
    if world.rank() == 0 {
        print(&figures, arguments, world.ranks());
    }
    Ok(ExitCode::SUCCESS)
}

fn print(figures: &[Figure], arguments: &BenchArguments, ranks: usize) {
    if arguments.json {
        let rows: Vec<_> = figures
            .iter()
            .map(|Figure { name, times }| {
                serde_json::json!({"name": name, "flat_ns": times.flat, "log_ns": times.ours, "paper_ns": times.paper})
            })
            .collect();
        println!("{:#}", serde_json::json!({"ranks": ranks, "backend": arguments.backend.name(), "figures": rows}));
        return;
    }
    println!("{ranks} ranks as processes over {}; times of the best batch", arguments.backend.says());
    println!("{:<44} {:>12} {:>12} {:>12} {:>9} {:>9}", "", "flat ns", "log ns", "paper ns", "log/flat", "paper/fl.");
    for Figure { name, times } in figures {
        let paper = times.paper.map_or("-".to_owned(), |paper| format!("{paper:.0}"));
        let ratio = times.paper.map_or("-".to_owned(), |paper| speed(times.flat / paper));
        println!(
            "{name:<44} {:>12.0} {:>12.0} {paper:>12} {:>9} {ratio:>9}",
            times.flat,
            times.ours,
            speed(times.flat / times.ours)
        );
    }
    println!("log/flat, paper/flat: speed relative to the flat array");
}

fn speed(ratio: f64) -> String {
    if ratio >= 2.0 { format!("{ratio:.1} x") } else { format!("{:.1} %", 100.0 * ratio) }
}

impl Trio {
    fn new(world: &World, words: u64, block: u64, keep: u64, log_blocks: u64) -> Result<Trio> {
        let dims = [words * world.ranks() as u64];
        let kept = |options: Options| Options { keep: Keep::Last(keep), check: false, ..options };
        let paper = Options { protocol: Protocol::Paper, log_blocks, ..kept(Options::log(block)) };
        Ok(Trio {
            flat: world.array(&dims, kept(Options::flat()))?,
            ours: world.array(&dims, kept(Options::log(block)))?,
            paper: if log_blocks > 0 { Some(world.array(&dims, paper)?) } else { None },
        })
    }

    fn each(&self, mut act: impl FnMut(&Array<u64>) -> Result<f64>) -> Result<Times> {
        let (flat, ours) = (act(&self.flat)?, act(&self.ours)?);
        Ok(Times { flat, ours, paper: self.paper.as_ref().map(act).transpose()? })
    }

    fn free(self) -> Result<()> {
        self.flat.free()?;
        self.ours.free()?;
        self.paper.map_or(Ok(()), Array::free)
    }
}

/// The better of two measurements.
fn best(a: Times, b: Times) -> Times {
    let paper = a.paper.zip(b.paper).map(|(a, b)| a.min(b));
    Times { flat: a.flat.min(b.flat), ours: a.ours.min(b.ours), paper }
}

const NEVER: Times = Times { flat: f64::INFINITY, ours: f64::INFINITY, paper: Some(f64::INFINITY) };

/// The states of the paper's Fig. 5 and 6, in the order in which a round goes through them.
const STATES: [&str; 5] = ["first put", "put hit", "get hit", "get, entries maybe old but right", "get miss"];

/// Puts and gets of so many bytes. Each array goes through all states before the next one's turn,
/// so that the same of each lies in caches.
fn operations(world: &World, bytes: u64, rounds: u64) -> Result<Vec<Figure>> {
    // The paper's log is not cleaned: it needs room for all rounds.
    let blocks = PART * 8 / BLOCK;
    let trio = Trio::new(world, PART, BLOCK, 2, blocks * (2 * rounds + 4))?;
    let mut times = [NEVER; STATES.len()];
    for round in 0..rounds {
        let (flat, ours) = (states(world, &trio.flat, bytes, round)?, states(world, &trio.ours, bytes, round)?);
        let paper = trio.paper.as_ref().map(|paper| states(world, paper, bytes, round)).transpose()?;
        for (at, times) in times.iter_mut().enumerate() {
            let paper = paper.map(|paper| paper[at]);
            *times = best(*times, Times { flat: flat[at], ours: ours[at], paper });
        }
    }
    trio.free()?;
    // Of one rank's own part nothing is unknown to it.
    let measured = if world.ranks() > 1 { STATES.len() } else { STATES.len() - 1 };
    let figure = |(state, times)| Figure { name: format!("{state}, {bytes} B, block {BLOCK}"), times };
    Ok(STATES.into_iter().zip(times).take(measured).map(figure).collect())
}

/// Nanoseconds of an operation in each of the [`STATES`].
fn states(world: &World, array: &Array<u64>, bytes: u64, round: u64) -> Result<[f64; STATES.len()]> {
    let words = bytes / 8;
    let last = (world.ranks() as u64 - 1) * PART;
    // One that is no larger than a block is alone in its block, or the next one would be no first.
    let stride = words.max(BLOCK / 8);
    let count = (PART / stride).min(2048);
    let place = |at: u64| last + at * stride..last + at * stride + words;
    let data: Vec<u64> = (0..words).map(|word| round << 32 | word).collect();
    let put_all = || {
        timed(world, count, || (0..count).try_for_each(|at| array.put(place(at), &data).and_then(|()| array.wait())))
    };
    let mut buffer = vec![0; words as usize];
    let mut get_all = || {
        buffer.fill(0);
        let time = timed(world, count, || (0..count).try_for_each(|at| array.get(place(at), &mut buffer)))?;
        // All places hold the same: the last one tells whether a get of this state brings what was
        // put.
        if world.rank() == 0 && buffer != data {
            return Err(Error::option("a get does not bring what was put: no figure is printed"));
        }
        Ok(time)
    };
    let (first, put_hit, get_hit) = (put_all()?, put_all()?, get_all()?);
    verify(world, array, count, place, &data)?;
    array.version_inc("")?;
    let same = get_all()?;
    // Its owner moves every block.
    if world.rank() == world.ranks() - 1 {
        (0..count).try_for_each(|at| array.put(place(at), &data))?;
    }
    array.version_inc("")?;
    let miss = if world.ranks() > 1 { get_all()? } else { f64::INFINITY };
    Ok([first, put_hit, get_hit, same, miss])
}

/// Time of the first rank, in nanoseconds for each of `count`; the others wait.
fn timed(world: &World, count: u64, act: impl FnOnce() -> Result<()>) -> Result<f64> {
    world.barrier()?;
    let start = Instant::now();
    if world.rank() == 0 {
        act()?;
    }
    let spent = start.elapsed();
    world.barrier()?;
    Ok(spent.as_nanos() as f64 / count as f64)
}

/// What was put is there.
fn verify(
    world: &World,
    array: &Array<u64>,
    count: u64,
    place: impl Fn(u64) -> std::ops::Range<u64>,
    data: &[u64],
) -> Result<()> {
    if world.rank() == world.ranks() - 1 {
        for at in 0..count {
            if array.get_vec(place(at))? != data {
                return Err(Error::option(format!(
                    "the put at {:?} is not what is read there: no figure is printed",
                    place(at)
                )));
            }
        }
    }
    world.barrier()
}

/// Words of a part of 1 GiB.
const LARGE_PART: u64 = 1024 * PART;

/// `version_inc` of 1 MiB a rank with one block changed, of a part that is 64 times as large and,
/// where it is wanted, of one that is 1024 times as large. Each array makes all of its versions
/// before the next one's turn.
fn versions(world: &World, rounds: u64, large: bool) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for part in [PART, 64 * PART, LARGE_PART] {
        if part == LARGE_PART && !large {
            continue;
        }
        let blocks = part * 8 / BLOCK;
        // Copies of 1 GiB take their time, and memory.
        let (rounds, keep) = if part == LARGE_PART { (8, 1) } else { (rounds.max(8), 4) };
        let trio = Trio::new(world, part, BLOCK, keep, if part == PART { blocks + rounds + 8 } else { 0 })?;
        let mine = trio.flat.part(world.rank());
        let times = trio.each(|array| {
            for start in mine.clone().step_by(PART as usize) {
                let fill: Vec<u64> = (start..start + PART).collect();
                array.put(start..start + PART, &fill)?;
            }
            array.version_inc("")?;
            (0..rounds)
                .map(|round| one_block(world, array, mine.start + round * 16 % part, round))
                .try_fold(f64::INFINITY, |best, time| Ok(best.min(time?)))
        })?;
        trio.free()?;
        let mib = (part * 8) >> 20;
        figures.push(Figure { name: format!("version_inc, {mib} MiB a rank, one block changed"), times });
    }
    Ok(figures)
}

/// Nanoseconds of a `version_inc` before which this rank has put one word, of elements that count
/// up; the version is then read.
fn one_block(world: &World, array: &Array<u64>, at: u64, word: u64) -> Result<f64> {
    array.put(at..at + 1, &[word])?;
    array.wait()?;
    world.barrier()?;
    let start = Instant::now();
    let version = array.version_inc("")?;
    let spent = start.elapsed();
    let mut seen = [0; 2];
    array.at(version)?.get(at..at + 2, &mut seen)?;
    if seen != [word, at + 1] {
        return Err(Error::option(format!("version {version} is {seen:?} at {at}: no figure is printed")));
    }
    Ok(spent.as_nanos() as f64)
}

fn synthetic_figures(world: &World, arguments: &BenchArguments) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let part = arguments.mib << 17;
    for (k, like) in [(0.0025, "radix sort"), (0.025, "N-body"), (0.25, "matrix multiply")] {
        let trio = Trio::new(world, part, BLOCK, 10, 0)?;
        let mine = trio.flat.part(world.rank());
        let fill: Vec<u64> = (mine.start..mine.end).collect();
        trio.each(|array| array.put(mine.clone(), &fill).and_then(|()| array.version_inc("")).map(|_| 0.0))?;
        let settings = synthetic::Settings { versions: arguments.rounds.max(12), reads: 5, writes: 5, k, seed: 9 };
        let mut sums = Vec::new();
        let times = trio.each(|array| {
            world.barrier()?;
            let start = Instant::now();
            synthetic::run(world, array, &settings)?;
            let spent = start.elapsed().as_nanos() as f64 / settings.versions as f64;
            sums.push(crate::programs::digest(array)?);
            Ok(spent)
        })?;
        let bytes = (trio.ours.version_bytes()? as f64, trio.flat.version_bytes()? as f64);
        trio.free()?;
        if sums.windows(2).any(|two| two[0] != two[1]) {
            return Err(Error::option("the layouts do not give the same array: no figure is printed"));
        }
        let saved = 100.0 * (1.0 - bytes.0 / bytes.1);
        let times = Times { paper: None, ..times };
        let name = format!("synthetic, 5 puts, {like}; {saved:.2} % less memory");
        figures.push(Figure { name, times });
    }
    Ok(figures)
}
