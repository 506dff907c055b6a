//! The same programs give the same arrays on every backend, with every layout and protocol.

use nearpm_gvr::persist::Memories;
use nearpm_gvr::programs::{anneal, digest, pcg, synthetic, tally};
use nearpm_gvr::rma::local::{self, Schedule};
use nearpm_gvr::rma::net::{self, Network, Profile};
use nearpm_gvr::rma::shm::Shm;
use nearpm_gvr::{Access, Flush, Job, Options, Protocol, Result, World};

const WINDOW: u64 = 1 << 23;

fn layouts() -> [Options; 6] {
    let paper = Options { protocol: Protocol::Paper, log_blocks: 20_000, ..Options::log(64) };
    let by_messages = |options| Options { access: Access::Message, ..options };
    [
        Options::flat(),
        Options::log(64),
        Options::log(128),
        paper,
        by_messages(Options::flat()),
        by_messages(Options::log(64)),
    ]
}

/// Runs a program on a backend with each layout.
fn digests(ranks: usize, program: impl Fn(&World, Options) -> Result<u32> + Sync) -> Vec<u32> {
    // Ranks stay until nobody asks their servers.
    let together = |world: &World, options| {
        let digest = program(world, options).unwrap();
        world.barrier().unwrap();
        digest
    };
    let mut all = Vec::new();
    for options in layouts() {
        let handles = Shm::threads(ranks, WINDOW).unwrap();
        let on_shm: Vec<u32> = std::thread::scope(|scope| {
            let run = |shm| together(&World::new(shm), options);
            let threads: Vec<_> = handles.into_iter().map(|shm| scope.spawn(move || run(shm))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let schedule = Schedule::of_seed(ranks as u64);
        let (on_local, _) = local::run(ranks, WINDOW, &schedule, |local| together(&World::new(local), options));
        all.extend(on_shm);
        all.extend(on_local);
        let profile = Network::Fdr10.profile();
        let on_net = net::run(ranks, WINDOW, profile, |net| together(&World::new(net), options));
        all.extend(on_net.unwrap().0);
    }
    all
}

fn assert_same(digests: &[u32]) {
    assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:x?}");
}

#[test]
fn a_tally_is_the_same_everywhere() {
    let program = |world: &World, options| {
        let tally = world.array::<u64>(&[300], options)?;
        let settings = tally::Settings { batches: 3, particles: 24, work: 0, compute: 10, seed: 7 };
        tally::run(world, &tally, &settings)?;
        digest(&tally)
    };
    // Whatever the number of ranks.
    assert_same(&[digests(1, program), digests(2, program), digests(3, program)].concat());
}

#[test]
fn an_annealed_netlist_is_the_same_everywhere() {
    let program = |world: &World, options| {
        let places = world.array::<u64>(&[200], options)?;
        anneal::run(world, &places, &anneal::Settings { temperatures: 3, tries: 40, compute: 10, seed: 3 })?;
        let mut seen = places.get_vec(0..200)?;
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..200), "every place has one element");
        digest(&places)
    };
    assert_same(&digests(2, program));
}

#[test]
fn conjugate_gradients_end_at_ones_and_the_same_everywhere() {
    let program = |world: &World, options| {
        let vectors = pcg::Vectors::new(6, |_, dims| world.array(dims, options))?;
        let solved = pcg::solve(world, &vectors, 6, 40, |_| Ok(()))?;
        assert!(solved.error < 1e-8, "{solved:?}");
        digest(&vectors.x)
    };
    assert_same(&digests(2, program));
}

#[test]
fn a_synthetic_run_is_the_same_everywhere() {
    let program = |world: &World, options| {
        let array = world.array::<u64>(&[2048], options)?;
        let settings = synthetic::Settings { versions: 12, reads: 5, writes: 5, k: 0.25, seed: 1 };
        synthetic::run(world, &array, &settings)?;
        digest(&array)
    };
    assert_same(&digests(1, program));
    assert_same(&digests(3, program));
}

/// Virtual time of a program that computes for a while between versions of 32 KiB a rank, on
/// storage a hundred times slower than memory.
fn virtual_time(flush: Flush) -> u64 {
    let memories = Memories::default();
    let profile = Profile { storage: 100, ..Network::Fdr10.profile() };
    let run = net::run(2, WINDOW, profile, |net| -> Result<()> {
        let world = World::new(net);
        let job = Job::create(&world, &memories, 1 << 20)?;
        let array = job.array::<u64>("a", &[8192], Options::log(512))?;
        job.set_flush(flush)?;
        for round in 1..6_u64 {
            let part = array.part(world.rank());
            array.put(part.clone(), &part.map(|at| at.wrapping_mul(round << 32 | 0x9e37_79b9)).collect::<Vec<_>>())?;
            array.version_inc("")?;
            world.compute(5_000_000)?;
        }
        job.version_wait()
    });
    let (ends, ran) = run.unwrap();
    ends.into_iter().for_each(|end| end.unwrap());
    ran.end
}

#[test]
fn in_virtual_time_a_program_does_not_wait_for_what_is_flushed_in_the_background() {
    let (waiting, background) = (virtual_time(Flush::Wait), virtual_time(Flush::Background));
    assert_eq!(background, virtual_time(Flush::Background), "a run is a function of its program");
    let stored = Network::Fdr10.profile().copy(32 << 10) * 99;
    let saved = waiting - background;
    assert!(saved > 4 * stored, "{saved} of five times {stored}");
}

/// Nanoseconds that the threads of this process have run; fails where the system does not say.
#[cfg(target_os = "linux")]
fn processor_time() -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap().path());
    // One may have ended since it was listed.
    let ran = threads.filter_map(|thread| std::fs::read_to_string(thread.join("schedstat")).ok());
    let ran: u64 = ran.map(|ran| ran.split_whitespace().next().unwrap().parse::<u64>().unwrap()).sum();
    assert!(ran > 0, "no /proc/self/task/*/schedstat says how long a thread has run");
    ran
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_that_nobody_asks_leaves_its_processor_to_others() {
    use std::time::{Duration, Instant};
    const RANKS: usize = 3;
    let handles = Shm::threads(RANKS, WINDOW).unwrap();
    let used = std::thread::scope(|scope| {
        let rank = |shm| -> Result<f64> {
            let world = World::new(shm);
            let array = world.array::<u64>(&[64], Options { access: Access::Message, ..Options::log(64) })?;
            array.put(0..64, &[7; 64])?;
            array.version_inc("")?;
            world.barrier()?;
            let (start, before) = (Instant::now(), processor_time());
            std::thread::sleep(Duration::from_secs(1));
            let used = processor_time().saturating_sub(before) as f64 / start.elapsed().as_nanos() as f64;
            assert_eq!(array.get_vec(0..64)?, [7; 64]);
            world.barrier()?;
            array.free()?;
            Ok(used)
        };
        let ranks: Vec<_> = handles.into_iter().map(|shm| scope.spawn(move || rank(shm).unwrap())).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).fold(f64::INFINITY, f64::min)
    });
    assert!(used < 0.02 * RANKS as f64, "{RANKS} servers took {:.1} % of a processor", 100.0 * used);
}
