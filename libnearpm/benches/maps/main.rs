//! Insertions into maps by the Rust API, beside the same map in C over `libpmemobj.so.1` of this
//! library:
//!
//! ```console
//! $ ./x pmemobj
//! $ cargo bench -p nearpm --bench maps -- --library target/pmemobj
//! ```
//!
//! An operation is one transaction { allocate an object of 8 B; insert it under a random key }, on
//! a pool in `/dev/shm` whose lines are written back as those of persistent memory. Each round runs
//! every program once, so that the ratio of a round is that of the same minutes. The C programs are
//! those of `evaluation/pmdk/programs`.

mod btree;
mod hashmap;

use std::path::{Path, PathBuf};
use std::time::Instant;

use nearpm::prelude::*;
use nearpm_bench::case::Case;
use nearpm_bench::library::{Library, Persistence, Rig, Timing};
use nearpm_bench::machine;
use nearpm_bench::programs::Programs;
use nearpm_statistics::median;
use tempfile::TempDir;

type Failure = Box<dyn std::error::Error>;

/// A map from keys to objects of 8 bytes. Zeros are an empty one.
pub trait Map: Persistent {
    fn insert(tx: &mut impl Store, map: Ptr<Self>, key: u64, value: Ptr<u64>) -> Result<(), Error>;
    fn find(from: &impl Load, map: Ptr<Self>, key: u64) -> Result<Option<u64>, Error>;
}

impl Map for PHashMap<u64, Option<Ptr<u64>>> {
    fn insert(tx: &mut impl Store, map: Ptr<Self>, key: u64, value: Ptr<u64>) -> Result<(), Error> {
        map.insert(tx, &key, Some(value)).map(drop)
    }

    fn find(from: &impl Load, map: Ptr<Self>, key: u64) -> Result<Option<u64>, Error> {
        map.get(from, &key)?.flatten().map(|value| from.get(value)).transpose()
    }
}

impl Map for PBTreeMap<u64, Option<Ptr<u64>>> {
    fn insert(tx: &mut impl Store, map: Ptr<Self>, key: u64, value: Ptr<u64>) -> Result<(), Error> {
        map.insert(tx, &key, Some(value)).map(drop)
    }

    fn find(from: &impl Load, map: Ptr<Self>, key: u64) -> Result<Option<u64>, Error> {
        map.get(from, &key)?.flatten().map(|value| from.get(value)).transpose()
    }
}

/// The keys of `evaluation/pmdk/programs/common.c`.
fn sequence(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    z.max(1)
}

/// Time that this process has had a processor, in nanoseconds.
fn processor_nanoseconds() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is this function's own, and the call writes nothing else.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What an insertion takes.
fn insertions<M: Map>(folder: &TempDir, ops: u64) -> Result<Timing, Failure> {
    let options = nearpm::Options::new().survives(Survives::AsPersistentMemory).prefault(true);
    let path = folder.path().join("pool");
    let location = path.to_str().ok_or("the folder has a strange name")?;
    let pool = DirectPool::create(location, (64 << 20) + ops * 1024, &options)?;
    let map = pool.tx(|tx| tx.root_or_zeroed::<M>())?;
    let (begun, processor) = (Instant::now(), processor_nanoseconds());
    for index in 0..ops {
        let key = sequence(1, index);
        pool.tx(|tx| {
            let value = tx.alloc(!key)?;
            M::insert(tx, map, key, value)
        })?;
    }
    let wall = begun.elapsed().as_nanos() as f64 / ops as f64;
    let processor = (processor_nanoseconds() - processor) as f64 / ops as f64;
    pool.read(|from| {
        for index in 0..ops {
            let key = sequence(1, index);
            assert_eq!(M::find(from, map, key)?, Some(!key));
        }
        Ok(())
    })?;
    pool.close()?;
    std::fs::remove_file(&path)?;
    Ok(Timing { wall, processor })
}

/// What the command line says.
struct Options {
    library: Option<PathBuf>,
    ops: u64,
    rounds: usize,
}

fn options() -> Result<Options, Failure> {
    let mut options = Options { library: None, ops: 10_000, rounds: 7 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} takes a value"));
        match argument.as_str() {
            "--library" => options.library = Some(value()?.into()),
            "--ops" => options.ops = value()?.parse()?,
            "--rounds" => options.rounds = value()?.parse()?,
            // Cargo says it to every benchmark.
            "--bench" => {}
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    Ok(options)
}

/// How a program in Rust runs.
type Insertions = fn(&TempDir, u64) -> Result<Timing, Failure>;

/// The name of each map in C, and the programs in Rust beside it.
const MAPS: [(&str, [(&str, Insertions); 2]); 2] = [
    (
        "hashmap",
        [
            ("the same in Rust", insertions::<hashmap::HashMap>),
            ("PHashMap", insertions::<PHashMap<u64, Option<Ptr<u64>>>>),
        ],
    ),
    (
        "btree",
        [
            ("the same in Rust", insertions::<btree::BTree>),
            ("PBTreeMap", insertions::<PBTreeMap<u64, Option<Ptr<u64>>>>),
        ],
    ),
];

/// A line of the table: medians, and the median of the ratios to C, each of one round.
fn report(map: &str, title: &str, samples: &[Timing], in_c: &[Timing]) {
    let clocks: [fn(&Timing) -> f64; 2] = [|timing| timing.wall, |timing| timing.processor];
    let cells = clocks.map(|clock| {
        let time = median(samples.iter().map(clock));
        match in_c {
            [] => format!("{time:7.0}      "),
            _ => format!("{time:7.0} {:5.2}", median(samples.iter().zip(in_c).map(|(one, c)| clock(one) / clock(c)))),
        }
    });
    println!("{map:8} {title:17} {}   {}", cells[0], cells[1]);
}

fn main() -> Result<(), Failure> {
    let options = options()?;
    let memory = machine::memory_folder()?;
    let folder = tempfile::Builder::new().prefix("nearpm-bench-").tempdir_in(&memory)?;
    // A relative path is meant from where cargo was called, which is the root of the workspace.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let library = options.library.map(|path| Library::in_folder(&root.join(path))).transpose()?;
    let programs = library.is_some().then(Programs::build).transpose()?;
    println!("ns an insertion of a random key, {} a run, medians of {} rounds", options.ops, options.rounds);
    println!("                              wall  of C      cpu  of C");
    for (name, programs_in_rust) in MAPS {
        let (mut in_c, mut in_rust) = (Vec::new(), [const { Vec::new() }; 2]);
        for round in 0..=options.rounds {
            if let (Some(library), Some(programs)) = (&library, &programs) {
                let rig = Rig { programs, pools: &memory, persistence: Persistence::Instructions };
                in_c.push(rig.time(library, &Case::map(name, options.ops))?);
            }
            for ((_, run), samples) in programs_in_rust.iter().zip(&mut in_rust) {
                samples.push(run(&folder, options.ops)?);
            }
            if round == 0 {
                // The first one warms up.
                in_c.clear();
                in_rust.iter_mut().for_each(Vec::clear);
            }
        }
        if !in_c.is_empty() {
            report(name, "in C", &in_c, &in_c);
        }
        for ((title, _), samples) in programs_in_rust.iter().zip(&in_rust) {
            report(name, title, samples, &in_c);
        }
    }
    Ok(())
}
