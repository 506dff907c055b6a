//! Figures of whole programs, and of durable versions.

use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use nearpm::Store;
use nearpm::direct::DirectPool;

use super::{Figure, NEVER, Times};
use crate::array::{Array, Element, Keep, Options};
use crate::error::{Error, Result};
use crate::persist::{Flush, Folder, Job};
use crate::programs::{anneal, pcg, tally};
use crate::rma::counted::{Counted, Counts};
use crate::world::World;

/// Bytes of a rank's part that a durable version changes.
const CHANGED: u64 = 16 << 20;

/// What is put in a round.
fn filled(mine: &std::ops::Range<u64>, round: u64) -> Vec<u64> {
    mine.clone().map(|at| (at + round).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

/// The shortest times of durable versions, in nanoseconds.
struct Durable {
    /// `version_inc`, where it waits for the pools.
    waiting: f64,
    /// `version_inc`, where versions are flushed in the background.
    blocked: f64,
    /// From its beginning until the version is durable.
    flushed: f64,
    /// A transaction of as many bytes.
    alone: f64,
}

/// Versions that the job keeps.
const KEPT: u64 = 2;

/// A durable version in which all of a part changed, beside one transaction of as many bytes in a
/// pool of the same folder. Both pools are as large and keep as much, so that what is new lies in
/// both where nothing was for as long.
pub(super) fn durable(world: &World, folder: &Path, rounds: u64) -> Result<Vec<Figure>> {
    let path = folder.join("nearpm-gvr-bench");
    let alone = folder.join(format!("nearpm-gvr-bench-{}.pool", world.rank()));
    let clear = || {
        // From a run that was interrupted; where they are not, nothing is to be done.
        let _ = (std::fs::remove_file(&alone), if world.rank() == 0 { std::fs::remove_dir_all(&path) } else { Ok(()) });
        world.barrier()
    };
    clear()?;
    let job = Job::create(world, &Folder::new(&path), 8 * CHANGED)?;
    let options = Options { keep: Keep::Last(KEPT), ..Options::log(8192) };
    let array = job.array::<u64>("bench", &[CHANGED / 8 * world.ranks() as u64], options)?;
    let name = alone.to_str().ok_or_else(|| Error::option("the folder's name is no UTF-8: choose another"))?;
    let pool = DirectPool::create(name, 8 * CHANGED, &nearpm::Options::new())?;
    let mut objects = VecDeque::new();
    let mine = array.part(world.rank());
    let never = f64::INFINITY;
    let mut times = Durable { waiting: never, blocked: never, flushed: never, alone: never };
    let rounds = rounds.min(24);
    for round in 0..rounds {
        let data = filled(&mine, round);
        array.put(mine.clone(), &data)?;
        array.wait()?;
        // First all that wait: where the two took turns, the pool held a version more than with
        // either alone.
        let background = 2 * round >= rounds;
        job.set_flush(if background { Flush::Background } else { Flush::Wait })?;
        world.barrier()?;
        let start = Instant::now();
        let spent = || start.elapsed().as_nanos() as f64;
        array.version_inc("")?;
        if background {
            times.blocked = times.blocked.min(spent());
            job.version_wait()?;
            times.flushed = times.flushed.min(spent());
        } else {
            times.waiting = times.waiting.min(spent());
        }
        world.barrier()?;
        let start = Instant::now();
        let object = pool.tx(|tx| {
            let object = tx.alloc_bytes(CHANGED)?;
            tx.write(object, bytemuck::cast_slice(&data))?;
            Ok(object)
        })?;
        times.alone = times.alone.min(start.elapsed().as_nanos() as f64);
        objects.push_back(object);
        if objects.len() as u64 > KEPT {
            pool.tx(|tx| objects.pop_front().map_or(Ok(()), |oldest| tx.free_object(oldest)))?;
        }
    }
    drop(array);
    job.close()?;
    pool.close()?;
    let start = Instant::now();
    let job = Job::open(world, &Folder::new(&path))?;
    let opened = start.elapsed().as_secs_f64();
    let array = job.array::<u64>("bench", &[CHANGED / 8 * world.ranks() as u64], options)?;
    if array.get_vec(mine.clone())? != filled(&mine, rounds - 1) {
        return Err(Error::option("what was durable is not what is read back: no figure is printed"));
    }
    drop(array);
    job.close()?;
    clear()?;
    let rate = 2.0 * CHANGED as f64 / opened / 1e6;
    let figure = |name, ours| Figure { name, times: Times { flat: times.alone, ours, paper: None } };
    let (mib, blocked) = (CHANGED >> 20, 100.0 * times.blocked / times.flushed);
    Ok(vec![
        figure(format!("durable version of {mib} MiB a rank; reopened at {rate:.0} MB/s a rank"), times.waiting),
        figure(format!("the same in the background; the program waits {blocked:.1} % of it"), times.flushed),
    ])
}

/// What a run of a program gives: the digest of its array, bytes of its old versions, and how many
/// versions it made.
struct Run {
    digest: u32,
    bytes: u64,
    versions: u64,
}

/// What is noted around a program's work, without the making of its arrays and the reading of what
/// they hold.
type Around<'a> = &'a mut dyn FnMut(&dyn Fn() -> Result<()>) -> Result<()>;

/// A whole program.
struct Program {
    name: &'static str,
    /// Bytes of a block.
    block: u64,
    run: fn(&World, Options, Around<'_>) -> Result<Run>,
}

impl Program {
    fn options(&self) -> [Options; 2] {
        let kept = |options: Options| Options { keep: Keep::Last(10), check: false, ..options };
        [kept(Options::flat()), kept(Options::log(self.block))]
    }

    /// Runs all layouts, and gives what each gave with its time in nanoseconds.
    fn compare(&self, world: &World) -> Result<[(Run, f64); 2]> {
        let measure = |options| -> Result<(Run, f64)> {
            let mut spent = 0.0;
            let mut around = |work: &dyn Fn() -> Result<()>| {
                world.barrier()?;
                let start = Instant::now();
                work()?;
                spent = start.elapsed().as_nanos() as f64;
                Ok(())
            };
            Ok(((self.run)(world, options, &mut around)?, spent))
        };
        let [flat, ours] = self.options();
        let (flat, ours) = (measure(flat)?, measure(ours)?);
        if flat.0.digest != ours.0.digest {
            let what = format!("{}: the layouts do not give the same array: no figure is printed", self.name);
            return Err(Error::option(what));
        }
        Ok([flat, ours])
    }
}

fn run_tally(world: &World, options: Options, around: Around<'_>) -> Result<Run> {
    let tally = world.array::<u64>(&[1 << 20], options)?;
    let settings = tally::Settings { batches: 10, particles: 2000, work: 100, compute: 0, seed: 1 };
    around(&|| tally::run(world, &tally, &settings).map(drop))?;
    let run = Run::of(&tally)?;
    tally.free()?;
    Ok(run)
}

fn run_pcg(world: &World, options: Options, around: Around<'_>) -> Result<Run> {
    let vectors = pcg::Vectors::new(40, |_, dims| world.array(dims, options))?;
    around(&|| pcg::solve(world, &vectors, 40, 60, |_| Ok(())).map(drop))?;
    let run = Run::of(&vectors.x)?;
    [vectors.x, vectors.r, vectors.p].into_iter().try_for_each(Array::free)?;
    Ok(run)
}

fn run_anneal(world: &World, options: Options, around: Around<'_>) -> Result<Run> {
    let places = world.array::<u64>(&[1 << 19], options)?;
    let settings = anneal::Settings { temperatures: 10, tries: 4000, compute: 0, seed: 1 };
    around(&|| anneal::run(world, &places, &settings).map(drop))?;
    let run = Run::of(&places)?;
    places.free()?;
    Ok(run)
}

impl Run {
    fn of<T: Element>(array: &Array<T>) -> Result<Run> {
        let versions = array.version();
        Ok(Run { digest: crate::programs::digest(array)?, bytes: array.version_bytes()?, versions })
    }
}

const PROGRAMS: [Program; 3] = [
    Program { name: "tally like OpenMC's, 8 MiB, 10 versions", block: 512, run: run_tally },
    // The paper's size of blocks (table II): a version changes all of them.
    Program { name: "PCG, 40^3 unknowns, a version an iteration", block: 8192, run: run_pcg },
    Program { name: "annealer like canneal, 4 MiB, 10 versions", block: 512, run: run_anneal },
];

/// Whole programs, the better of the layouts' runs by turns.
pub(super) fn programs(world: &World, rounds: u64) -> Result<Vec<Figure>> {
    let figure = |program: &Program| {
        let mut times = Times { paper: None, ..NEVER };
        let mut saved = 0.0;
        for _ in 0..(rounds / 3).max(3) {
            let [flat, ours] = program.compare(world)?;
            (times.flat, times.ours) = (times.flat.min(flat.1), times.ours.min(ours.1));
            saved = 100.0 * (1.0 - ours.0.bytes as f64 / flat.0.bytes as f64);
        }
        Ok(Figure { name: format!("{}; {saved:.1} % less memory", program.name), times })
    };
    PROGRAMS.iter().map(figure).collect()
}

/// What the first rank does for a version of each program, on windows of others and on its own.
pub(super) fn counts(world: &World) -> Result<()> {
    let (counted, counts) = Counted::new(Rc::clone(&world.rma));
    let counting = World::new(counted);
    if world.rank() == 0 {
        println!("a version, by rank 0 of {}", world.ranks());
        println!(
            "{:<52} {:>7} {:>7} {:>7} {:>7} {:>7} {:>9} {:>8} {:>8}",
            "", "writes", "gets", "loads", "atomics", "flushes", "KiB", "waits", "meetings"
        );
    }
    for program in &PROGRAMS {
        let mut digests = Vec::new();
        for (layout, options) in ["flat", "log"].into_iter().zip(program.options()) {
            let mut done = Counts::default();
            let mut around = |work: &dyn Fn() -> Result<()>| {
                counts.set(Counts::default());
                work()?;
                done = counts.get();
                Ok(())
            };
            let run = (program.run)(&counting, options, &mut around)?;
            digests.push(run.digest);
            let Counts { far, own, meetings } = done;
            let each = |count: u64| count as f64 / run.versions.max(1) as f64;
            for (whose, done) in [("others", far), ("own", own)] {
                if world.rank() == 0 {
                    println!(
                        "{:<52} {:>7.1} {:>7.1} {:>7.1} {:>7.1} {:>7.1} {:>9.1} {:>8.1} {:>8.1}",
                        format!("{}, {layout}, {whose}", program.name.split(',').next().unwrap_or_default()),
                        each(done.writes),
                        each(done.gets),
                        each(done.loads),
                        each(done.atomics),
                        each(done.flushes),
                        each(done.bytes) / 1024.0,
                        each(done.waits()),
                        each(meetings)
                    );
                }
            }
        }
        if digests[0] != digests[1] {
            let what = format!("{}: the layouts do not give the same array: no count holds", program.name);
            return Err(Error::option(what));
        }
    }
    Ok(())
}
