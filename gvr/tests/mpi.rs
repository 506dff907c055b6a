//! Ranks that MPI connects, as `mpiexec` starts them: the same programs give the same arrays as
//! over shared memory.
//!
//! The test starts itself as the ranks. Without the feature `mpi` there is nothing to test, and it
//! says so.

fn main() {
    // Listed and chosen as a test of the usual harness is.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        if !arguments.iter().any(|argument| argument == "--ignored") {
            println!("programs_over_mpi: test");
        }
        return;
    }
    #[cfg(feature = "mpi")]
    mpi::main();
    #[cfg(not(feature = "mpi"))]
    println!(
        "SKIPPED: built without MPI; `cargo test -p nearpm-gvr --features mpi --test mpi` tests it (Debian: mpich)"
    );
}

#[cfg(feature = "mpi")]
mod mpi {
    use std::process::{Command, Output};
    use std::time::{Duration, Instant};

    use nearpm_gvr::persist::Folder;
    use nearpm_gvr::programs::{anneal, digest, pcg, synthetic, tally};
    use nearpm_gvr::rma::mpi::{command, is_rank};
    use nearpm_gvr::rma::shm::Shm;
    use nearpm_gvr::rma::{Kind, Op, Place};
    use nearpm_gvr::{Access, Error, Flush, Job, Options, Protocol, Result, World};

    const WINDOW: u64 = 1 << 23;
    /// What the ranks are to do.
    const WHAT: &str = "NEARPM_GVR_MPI_TEST";

    pub fn main() {
        if is_rank() {
            let world = World::launched(WINDOW).unwrap().expect("a launcher has started this rank");
            match std::env::var(WHAT).as_deref() {
                Ok("programs") => println!("digests {:x?}", programs(&world).unwrap()),
                Ok("words") => words(&world).unwrap(),
                Ok("messages") => messages(&world).unwrap(),
                Ok("durable") => durable(&world).unwrap(),
                Ok("leaves") => leaves(&world),
                Ok("away") => away(&world).unwrap(),
                what => panic!("{what:?} is nothing that ranks are started for"),
            }
            return;
        }
        for ranks in [1, 2, 3] {
            same_arrays(ranks, &[]);
        }
        same_arrays(2, &FAR);
        assert!(start("words", 3, &[]).status.success());
        for what in ["words", "away", "messages"] {
            assert!(start(what, 2, &FAR_WITH_PROGRESS).status.success());
        }
        assert!(start("words", 2, &FAR).status.success());
        assert!(start("away", 2, &[]).status.success());
        assert!(start("messages", 2, &[]).status.success());
        versions_are_durable();
        ranks_are_told_who_left();
        println!("test programs_over_mpi ... ok");
    }

    /// Makes MPICH take each rank for one of another machine, so that operations are MPI's, and
    /// those of a rank that waits are its own to work on: with a thread for progress the two ranks
    /// here would be four. Other implementations do not know it, and reach windows as ever.
    const FAR: [(&str, &str); 2] = [("MPIR_CVAR_NOLOCAL", "1"), ("NEARPM_GVR_PROGRESS", "never")];
    /// The same with such a thread of each rank.
    const FAR_WITH_PROGRESS: [(&str, &str); 2] = [("MPIR_CVAR_NOLOCAL", "1"), ("NEARPM_GVR_PROGRESS", "always")];

    fn start(what: &str, ranks: usize, variables: &[(&str, &str)]) -> Output {
        let mut command: Command = command(ranks, std::env::current_exe().unwrap().as_os_str());
        let output = command.env(WHAT, what).envs(variables.iter().copied()).output().expect("mpiexec runs");
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        println!("{what} on {ranks}: {}{}", said(&output.stdout), said(&output.stderr));
        output
    }

    /// Every program with every layout.
    fn programs(world: &World) -> Result<Vec<u32>> {
        let paper = Options { protocol: Protocol::Paper, log_blocks: 20_000, ..Options::log(64) };
        let mut digests = Vec::new();
        for options in [Options::flat(), Options::log(64), Options::log(128), paper] {
            let array = world.array::<u64>(&[300], options)?;
            tally::run(world, &array, &tally::Settings { batches: 3, particles: 24, work: 0, compute: 0, seed: 7 })?;
            digests.push(digest(&array)?);
            array.free()?;
            let array = world.array::<u64>(&[200], options)?;
            anneal::run(world, &array, &anneal::Settings { temperatures: 3, tries: 40, compute: 0, seed: 3 })?;
            digests.push(digest(&array)?);
            array.free()?;
            let array = world.array::<u64>(&[2048], options)?;
            let settings = synthetic::Settings { versions: 12, reads: 5, writes: 5, k: 0.25, seed: 1 };
            synthetic::run(world, &array, &settings)?;
            digests.push(digest(&array)?);
            array.free()?;
            let vectors = pcg::Vectors::new(6, |_, dims| world.array(dims, options))?;
            assert!(pcg::solve(world, &vectors, 6, 40, |_| Ok(()))?.error < 1e-8);
            digests.push(digest(&vectors.x)?);
        }
        Ok(digests)
    }

    fn same_arrays(ranks: usize, variables: &[(&str, &str)]) {
        let output = start("programs", ranks, variables);
        assert!(output.status.success());
        let on_shm: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let run = |shm| programs(&World::new(shm)).unwrap();
            let handles = Shm::threads(ranks, WINDOW).unwrap();
            let threads: Vec<_> = handles.into_iter().map(|shm| scope.spawn(move || run(shm))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let wanted = format!("digests {:x?}", on_shm[0]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(said.matches(&wanted).count(), ranks, "each rank has read what shared memory gives: {wanted}");
    }

    /// Counts are exact, whatever the ranks do at the same time.
    fn words(world: &World) -> Result<()> {
        const EACH: u64 = 2000;
        let (rma, ranks) = (world.rma(), world.ranks());
        let at = Place { rank: ranks - 1, offset: rma.alloc(4096)? };
        let mut won = 0;
        for bit in 0..EACH {
            rma.fetch_add(at, 1)?;
            won += u64::from(rma.cas(at.plus(8), bit, bit + 1)? == bit);
            let mut before = [0; 2];
            rma.bor_many(at.plus(64 + bit / 64 * 8), &[1 << (bit % 64), 0], &mut before)?;
            won += u64::from(before[0] >> (bit % 64) & 1 == 0) << 32;
            rma.accumulate(at.plus(16), Kind::F64, Op::Sum, bytemuck::bytes_of(&0.5_f64))?;
        }
        rma.flush(at.rank)?;
        rma.barrier()?;
        assert_eq!(rma.load(at)?, EACH * ranks as u64);
        assert_eq!(f64::from_bits(rma.load(at.plus(16))?), 0.5 * (EACH * ranks as u64) as f64);
        let swaps = rma.load(at.plus(8))?;
        let all = rma.allgather(&[won])?;
        assert_eq!(all.iter().map(|won| won >> 32).sum::<u64>(), EACH, "each bit is won once");
        assert_eq!(all.iter().map(|won| won & 0xffff_ffff).sum::<u64>(), swaps, "each swap counts once");
        let data: Vec<u8> = (0..1000_u32).map(|byte| byte as u8).collect();
        rma.put(at.plus(1001 * world.rank() as u64 + 1), &data)?;
        rma.flush(at.rank)?;
        rma.barrier()?;
        for rank in 0..ranks as u64 {
            let mut seen = vec![0; data.len()];
            rma.get(at.plus(1001 * rank + 1), &mut seen)?;
            assert_eq!(seen, data);
        }
        rma.barrier()
    }

    /// Puts, gets and atomics on the part of a rank that does not call MPI end long before it does
    /// again.
    fn away(world: &World) -> Result<()> {
        const AWAY: Duration = Duration::from_secs(4);
        let array = world.array::<u64>(&[2 << 10], Options::log(64))?;
        world.barrier()?;
        let start = Instant::now();
        if world.rank() == 1 {
            std::thread::sleep(AWAY);
        } else {
            for at in array.part(1) {
                array.put(at..=at, &[at])?;
                array.accumulate(at..=at, &[1], Op::Sum)?;
                array.wait()?;
            }
            assert!(array.get_vec(array.part(1))?.into_iter().eq(array.part(1).map(|at| at + 1)));
            assert!(start.elapsed() < AWAY / 2, "operations waited for a rank that sleeps: {:?}", start.elapsed());
        }
        array.version_inc("")?;
        array.free()
    }

    /// A server of each rank is a second thread that calls MPI.
    fn messages(world: &World) -> Result<()> {
        let options = Options { access: Access::Message, ..Options::log(64) };
        let array = world.array::<u64>(&[64], options)?;
        let (rank, ranks) = (world.rank() as u64, world.ranks() as u64);
        for round in 0..4 {
            for at in (rank..64).step_by(ranks as usize) {
                array.put(at..=at, &[round << 8 | at])?;
            }
            array.wait()?;
            world.barrier()?;
            array.accumulate(7..=7, &[1 << 32], Op::Sum)?;
            array.version_inc("")?;
            let wanted: Vec<u64> = (0..64).map(|at| round << 8 | at).collect();
            let mut seen = array.get_vec(0..64)?;
            assert_eq!(seen[7] >> 32, ranks);
            seen[7] &= 0xffff_ffff;
            assert_eq!(seen, wanted);
            world.barrier()?;
        }
        array.free()
    }

    const FOLDER: &str = "NEARPM_GVR_MPI_FOLDER";

    /// Versions that a second thread seals, and partner copies.
    fn durable(world: &World) -> Result<()> {
        let folder = Folder::new(std::env::var(FOLDER).expect("the test says where")).with_partners();
        let job = Job::create(world, &folder, 1 << 20)?;
        let array = job.array::<u64>("a", &[256], Options::log(64))?;
        job.set_flush(Flush::Background)?;
        for round in 0..6_u64 {
            let part = array.part(world.rank());
            array.put(part.clone(), &part.map(|at| round << 16 | at).collect::<Vec<_>>())?;
            array.version_inc("")?;
        }
        array.version_wait()?;
        drop(array);
        job.close()
    }

    fn versions_are_durable() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job");
        let mut command: Command = command(2, std::env::current_exe().unwrap().as_os_str());
        command.env(WHAT, "durable").env(FOLDER, &path);
        assert!(command.status().expect("mpiexec runs").success());
        let world = World::new(Shm::threads(1, WINDOW).unwrap().remove(0));
        let job = Job::open(&world, &Folder::new(&path)).unwrap();
        let array = job.array::<u64>("a", &[256], Options::log(64)).unwrap();
        assert!(array.get_vec(0..256).unwrap().into_iter().eq((0..256).map(|at| 5 << 16 | at)));
        assert_eq!(array.versions().len(), 6);
    }

    /// Rank 1 goes; the others get an error in place of waiting for ever.
    fn leaves(world: &World) {
        if world.rank() == 1 {
            return;
        }
        let error = world.barrier().and_then(|()| world.barrier()).unwrap_err();
        assert!(matches!(error, Error::DeadRank { rank: 1, ranks: 3 }), "{error}");
        println!("told: {error}");
    }

    fn ranks_are_told_who_left() {
        let output = start("leaves", 3, &[]);
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stdout).matches("told: rank 1 of 3 is gone").count(), 2);
    }
}
