//! What a program computes for, with the cost of memory left out as far as a cache can: measured
//! natively, once, and stored.
//!
//! The simulated host charges for accesses to memory, for checksums and for commands, not for
//! instructions. So each transaction is charged
//!
//! - what the program takes by itself, on bare memory that lies in the cache;
//! - what the library takes beside it, with the same mechanism and the processor's copies, on such
//!   memory. That holds the copies into the cache as well, so that a card's column is charged with
//!   copying that it does not do, and not with the instructions that make a command: the same time
//!   in each column;
//! - for programs that serve requests, what reading a request from a socket and writing the answer
//!   takes.
//!
//! Times were taken on the machine that the file names, which is not the paper's.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nearpm::memory::{MappedMemory, Memory, Survives};
use nearpm::{Engine, Error, Mechanism, Options, Pool};
use nearpm_workloads::programs::ycsb::Mix;
use nearpm_workloads::programs::{Inputs, Program, Setup, Workload};
use nearpm_workloads::store::{Bare, Store};
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

mod paths;

pub use paths::{Paths, name as path};

/// The stored measurement.
const STORED: &str = include_str!("../compute.toml");
/// Transactions of a measurement; few enough that what they touch stays in the cache. The first
/// half touches every page of the log.
const COUNT: usize = 2_000;
/// Bytes of the log, which is used again and again.
const RING_BYTES: u32 = 128 << 10;
/// Measurements of each; the least counts, which other work has disturbed least.
const ROUNDS: u64 = 9;

/// Times of one program, in nanoseconds a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// By itself.
    pub program_ns: f64,
    /// A request's way in and out, where there is one.
    pub request_ns: f64,
    /// The library beside it, under each mechanism.
    pub undo_ns: f64,
    /// Redo logging.
    pub redo_ns: f64,
    /// Checkpointing.
    pub checkpoint_ns: f64,
    /// Shadow paging.
    pub shadow_ns: f64,
}

impl Times {
    /// What every configuration is charged with, the bare one too.
    pub fn program(&self) -> f64 {
        self.program_ns + self.request_ns
    }

    /// What the library is charged with beside it.
    pub fn library(&self, mechanism: Mechanism) -> f64 {
        match mechanism {
            Mechanism::Undo => self.undo_ns,
            Mechanism::Redo => self.redo_ns,
            Mechanism::Checkpoint => self.checkpoint_ns,
            Mechanism::Shadow => self.shadow_ns,
        }
    }
}

/// A measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compute {
    /// What was measured on, and how.
    pub origin: String,
    /// Times, by program.
    pub programs: BTreeMap<String, Times>,
    /// What each path executes, which is counted and stored apart.
    #[serde(skip)]
    pub paths: Paths,
}

impl Compute {
    /// The measurement that is stored with this program.
    ///
    /// # Errors
    /// If the stored text is wrong, or a program is missing.
    pub fn stored() -> Result<Compute> {
        let compute: Compute = toml::from_str(STORED).context("the stored compute times are wrong")?;
        let compute = Compute { paths: Paths::stored()?, ..compute };
        Program::ALL.iter().try_for_each(|program| compute.of(*program).map(drop))?;
        Ok(compute)
    }

    /// The file that stores it.
    ///
    /// # Errors
    /// If it cannot be written as TOML.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).context("the times cannot be written")
    }

    /// Times of a program.
    ///
    /// # Errors
    /// If it has none.
    pub fn of(&self, program: Program) -> Result<Times> {
        self.programs.get(program.name()).copied().with_context(|| format!("no compute time of {}", program.name()))
    }

    /// Measures here. `progress` is told what is being measured.
    ///
    /// # Errors
    /// If a pool in memory cannot be made.
    pub fn measure(origin: String, progress: &dyn Fn(&str)) -> Result<Compute> {
        let mut programs = BTreeMap::new();
        for program in Program::ALL {
            progress(program.name());
            let request_ns = match program {
                Program::Memcached => request_ns(b"STORED\r\n")?,
                Program::Redis => request_ns(b"+OK\r\n")?,
                _ => 0.0,
            };
            let program_ns = least(|seed| bare_ns(program, seed))?;
            let library = |mechanism| {
                let with = least(|seed| with_library_ns(program, mechanism, seed))?;
                Ok::<f64, anyhow::Error>(round(f64::max(with - program_ns, 0.0)))
            };
            let times = Times {
                program_ns: round(program_ns),
                request_ns: round(request_ns),
                undo_ns: library(Mechanism::Undo)?,
                redo_ns: library(Mechanism::Redo)?,
                checkpoint_ns: library(Mechanism::Checkpoint)?,
                shadow_ns: library(Mechanism::Shadow)?,
            };
            programs.insert(program.name().to_owned(), times);
        }
        Ok(Compute { origin, programs, paths: Paths::default() })
    }
}

fn round(ns: f64) -> f64 {
    ns.round()
}

fn least(mut measure: impl FnMut(u64) -> Result<f64>) -> Result<f64> {
    let times = (0..ROUNDS).map(&mut measure).collect::<Result<Vec<f64>>>()?;
    Ok(times.into_iter().fold(f64::INFINITY, f64::min))
}

/// What processors were busy for with this thread.
///
/// # Errors
/// If the system has no such clock.
pub fn processor_time() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).context("no clock of the thread")?.into())
}

fn workload(program: Program, seed: u64, count: usize) -> Box<dyn Workload> {
    // Updates of records that are there: new ones would measure how the system gives memory to a
    // process.
    program.make(&Setup { inputs: Inputs::Corrected, seed, count, share: 200, mix: Mix::Wtail })
}

/// Nanoseconds a transaction of the second half, when everything is warm.
fn timed(count: usize, mut transaction: impl FnMut(usize) -> Result<()>) -> Result<f64> {
    (0..count / 2).try_for_each(&mut transaction)?;
    let start = processor_time()?;
    (count / 2..count).try_for_each(&mut transaction)?;
    Ok((processor_time()? - start).as_nanos() as f64 / (count - count / 2) as f64)
}

/// Memory whose lines stay in the cache: nothing is written back, nothing goes around the cache,
/// and nothing is waited for. What that costs on a card the simulated host charges.
struct InCache(MappedMemory);

impl InCache {
    fn new(bytes: u64) -> Result<InCache> {
        let file = tempfile::NamedTempFile::new_in("/dev/shm").context("no file in memory can be made")?;
        file.as_file().set_len(bytes)?;
        Ok(InCache(MappedMemory::map(file.reopen()?, file.path(), Survives::ProcessCrash)?))
    }
}

impl Memory for InCache {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
    fn load(&self, offset: u64, data: &mut [u8]) {
        self.0.load(offset, data);
    }
    fn store(&self, offset: u64, data: &[u8]) {
        self.0.store(offset, data);
    }
    fn write_back(&self, _offset: u64, _bytes: u64) {}
    fn fence(&self) -> Result<(), Error> {
        Ok(())
    }
    fn invalidate(&self, _offset: u64, _bytes: u64) {}
}

fn bare_ns(program: Program, seed: u64) -> Result<f64> {
    let program = workload(program, seed, COUNT);
    let bare = Bare::new(InCache::new(2 * program.bytes())?);
    program.create(&bare)?;
    timed(program.count(), |n| {
        bare.transaction(&mut |tx| {
            let root = tx.root()?;
            program.apply(tx, root, n)
        })?;
        Ok(())
    })
}

fn with_library_ns(program: Program, mechanism: Mechanism, seed: u64) -> Result<f64> {
    let program = workload(program, seed, COUNT);
    let pool = pool_in_cache(&*program, mechanism)?;
    let root = pool.root()?;
    timed(program.count(), |n| {
        pool.tx(|tx| program.apply(tx, root, n))?;
        Ok(())
    })
}

/// A pool in the cache with a program in it.
fn pool_in_cache(program: &dyn Workload, mechanism: Mechanism) -> Result<Pool> {
    let options = Options::new().mechanism(mechanism).engine(Engine::Cpu).lanes(1);
    let options = options.ring_bytes(RING_BYTES).epoch_ops(crate::served::EPOCH as u64);
    let memory = InCache::new((3 * program.bytes() + (8 << 20)).next_multiple_of(1 << 20))?;
    let pool = options.create_in(Box::new(memory))?;
    program.create(&pool)?;
    Ok(pool)
}

/// Executes the first of `of` transactions of what is timed with the library, for a counter of
/// instructions.
///
/// # Errors
/// If a pool in memory cannot be made.
pub fn execute(program: Program, mechanism: Mechanism, of: usize, count: usize) -> Result<()> {
    let program = workload(program, 1, of);
    let pool = pool_in_cache(&*program, mechanism)?;
    let root = pool.root()?;
    (0..count).try_for_each(|n| pool.tx(|tx| program.apply(tx, root, n)))?;
    Ok(())
}

/// What a server does for a request beside the transaction: it reads it from a socket and writes
/// the answer. The client's side is not counted.
fn request_ns(answer: &[u8]) -> Result<f64> {
    const REQUEST_BYTES: usize = 1_250;
    let (mut client, mut server) = UnixStream::pair().context("no pair of sockets")?;
    let (request, mut received, mut answered) = (vec![7; REQUEST_BYTES], vec![0; REQUEST_BYTES], vec![0; answer.len()]);
    let mut total = Duration::ZERO;
    for _ in 0..COUNT {
        client.write_all(&request)?;
        let start = processor_time()?;
        server.read_exact(&mut received)?;
        server.write_all(answer)?;
        total += processor_time()? - start;
        client.read_exact(&mut answered)?;
    }
    ensure!(answered == answer, "the sockets lose bytes");
    Ok(total.as_nanos() as f64 / COUNT as f64)
}
