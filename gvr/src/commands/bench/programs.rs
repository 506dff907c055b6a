//! Figures of whole programs, and of durable versions.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Instant;

use nearpm::Store;
use nearpm::direct::DirectPool;

use super::{Figure, NEVER, Times};
use crate::array::{Array, Keep, Options};
use crate::error::{Error, Result};
use crate::persist::{Flush, Folder, Job};
use crate::programs::{anneal, pcg, tally};
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

/// A durable version in which all of a part changed, beside one transaction of as many bytes in a pool of the same folder. Both pools are as
/// large and keep as much, so that what is new lies in both where nothing was for as long.
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
        let background = round % 2 == 1;
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

/// Whole programs, the better of the layouts' runs by turns.
pub(super) fn programs(world: &World, rounds: u64) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut compare = |name: &str, block: u64, run: &dyn Fn(Options) -> Result<(u32, u64)>| -> Result<()> {
        let mut times = Times { paper: None, ..NEVER };
        let mut bytes = (0, 0);
        for _ in 0..(rounds / 3).max(3) {
            let mut digests = Vec::new();
            let mut measure = |options: Options| -> Result<(f64, u64)> {
                world.barrier()?;
                let start = Instant::now();
                let (digest, bytes) = run(options)?;
                digests.push(digest);
                Ok((start.elapsed().as_nanos() as f64, bytes))
            };
            let (flat, ours) = (
                measure(Options { keep: Keep::Last(10), ..Options::flat() })?,
                measure(Options { keep: Keep::Last(10), check: false, ..Options::log(block) })?,
            );
            if digests[0] != digests[1] {
                return Err(Error::option(format!(
                    "{name}: the layouts do not give the same array: no figure is printed"
                )));
            }
            (times.flat, times.ours, bytes) = (times.flat.min(flat.0), times.ours.min(ours.0), (flat.1, ours.1));
        }
        let saved = 100.0 * (1.0 - bytes.1 as f64 / bytes.0 as f64);
        figures.push(Figure { name: format!("{name}; {saved:.1} % less memory"), times });
        Ok(())
    };
    compare("tally like OpenMC's, 8 MiB, 10 versions", 512, &|options| {
        let tally = world.array::<u64>(&[1 << 20], options)?;
        tally::run(world, &tally, &tally::Settings { batches: 10, particles: 2000, work: 100, compute: 0, seed: 1 })?;
        let done = (crate::programs::digest(&tally)?, tally.version_bytes()?);
        tally.free()?;
        Ok(done)
    })?;
    // The paper's size of blocks (table II): a version changes all of them.
    compare("PCG, 40^3 unknowns, a version an iteration", 8192, &|options| {
        let vectors = pcg::Vectors::new(40, |_, dims| world.array(dims, options))?;
        pcg::solve(world, &vectors, 40, 60, |_| Ok(()))?;
        let done = (crate::programs::digest(&vectors.x)?, vectors.x.version_bytes()?);
        [vectors.x, vectors.r, vectors.p].into_iter().try_for_each(Array::free)?;
        Ok(done)
    })?;
    compare("annealer like canneal, 4 MiB, 10 versions", 512, &|options| {
        let places = world.array::<u64>(&[1 << 19], options)?;
        anneal::run(world, &places, &anneal::Settings { temperatures: 10, tries: 4000, compute: 0, seed: 1 })?;
        let done = (crate::programs::digest(&places)?, places.version_bytes()?);
        places.free()?;
        Ok(done)
    })?;
    Ok(figures)
}
