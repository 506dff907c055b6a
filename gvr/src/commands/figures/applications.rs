//! Figures 10 to 13: three programs with old versions in memory, in storage ten times slower, and a
//! hundred times; and their memory.
//!
//! They are the paper's programs made smaller: a fiftieth of its neutrons and of its tally (a tenth
//! with `--full`), so that the ratio of computing to copying stays; the matrix of a smaller grid;
//! fewer elements and swaps.

use super::table::{Table, ratio};
use super::{Contender, assert_same, contenders, on_net};
use crate::array::{Keep, Options};
use crate::error::Result;
use crate::programs::{anneal, digest, pcg, tally};
use crate::rma::net::Profile;
use crate::world::World;

/// What a rank's run took and gave: nanoseconds, bytes of old versions, what the array holds.
type Given = (u64, u64, u32);

/// A program of the paper.
struct Program {
    figure: u64,
    title: &'static str,
    paper: &'static str,
    /// Bytes of a block: the paper's (table II).
    block: u64,
    /// Bytes of a block of a second array of ours.
    small: u64,
    /// Bytes of memory of a rank.
    window: fn(ranks: usize, full: bool) -> u64,
    /// Blocks of the paper's log on a rank, which is not cleaned, of blocks of so many bytes.
    log_blocks: fn(ranks: usize, full: bool, block: u64) -> u64,
    run: fn(&World, Options, full: bool) -> Result<Given>,
}

/// How much slower storage of old versions is than memory (IV-A3).
const STORAGES: [(u64, &str); 3] = [(1, "DRAM"), (10, "NVRAM, 10 x"), (100, "SSD, 100 x")];
const VERSIONS: u64 = 10;

/// Neutrons of a rank in a batch: 5000 in the paper.
fn neutrons(full: bool) -> u64 {
    if full { 500 } else { 100 }
}

/// Cells of the tally: 67 MB in the paper, for 5000 neutrons.
fn cells(full: bool) -> u64 {
    67_000_000 / 8 * neutrons(full) / 5000
}

/// Points along an edge of the grid: 100 in the paper.
fn side(full: bool) -> u64 {
    if full { 64 } else { 40 }
}

/// Elements of the netlist on each rank.
const ELEMENTS: u64 = 1 << 15;
const ITERATIONS: u64 = 40;

const PROGRAMS: [Program; 3] = [
    Program {
        figure: 10,
        title: "Figure 10, tally like OpenMC's, speed",
        paper: "with DRAM 4.7 % slower than flat on 32 nodes; with SSD on 2, log 20 % faster; less hurt by slow storage than flat",
        block: 8192,
        small: 512,
        window: |ranks, full| (cells(full) * 8 / ranks as u64 + (1 << 18)) * 2 * (VERSIONS + 4) + (32 << 20),
        log_blocks: |ranks, full, block| {
            (cells(full) * 8 / ranks as u64 / block + 2) * (VERSIONS + 1) * (1 + ranks as u64 / 2)
        },
        run: run_tally,
    },
    Program {
        figure: 11,
        title: "Figure 11, PCG on the matrix of HPCG, a version an iteration, speed",
        paper: "at worst 3.7 % slower than flat; slow storage hurts both",
        block: 8192,
        small: 2048,
        window: |ranks, full| 3 * (side(full).pow(3) * 8 / ranks as u64 + (1 << 17)) * (ITERATIONS + 16),
        log_blocks: |ranks, full, block| (side(full).pow(3) * 8 / ranks as u64 / block + 2) * (ITERATIONS + 2),
        run: run_pcg,
    },
    Program {
        figure: 12,
        title: "Figure 12, annealer like canneal, 10 us computed behind each get, speed",
        paper: "at most 26 % slower than flat",
        block: 512,
        small: 64,
        window: |_, _| (ELEMENTS * 8 + (1 << 17)) * 2 * (VERSIONS + 6),
        log_blocks: |_, _, block| ELEMENTS * 8 / block * (VERSIONS + 3),
        run: run_anneal,
    },
];

fn finish<T: crate::Element>(world: &World, array: &crate::Array<T>, start: u64) -> Result<Given> {
    let (spent, bytes) = (world.rma().now() - start, array.version_bytes()?);
    world.barrier()?;
    let digest = if world.rank() == 0 { digest(array)? } else { 0 };
    world.barrier()?;
    Ok((spent, bytes, digest))
}

fn run_tally(world: &World, options: Options, full: bool) -> Result<Given> {
    let array = world.array::<u64>(&[cells(full)], options)?;
    let start = world.rma().now();
    let particles = neutrons(full) * world.ranks() as u64;
    // Five collisions a neutron, and 1500 neutrons a second and core, which is of the order of
    // OpenMC's speed.
    let settings = tally::Settings { batches: VERSIONS, particles, work: 0, compute: 133_000, seed: 1 };
    tally::run(world, &array, &settings)?;
    let given = finish(world, &array, start)?;
    array.free()?;
    Ok(given)
}

fn run_pcg(world: &World, options: Options, full: bool) -> Result<Given> {
    let side = side(full);
    let vectors = pcg::Vectors::new(side, |_, dims| world.array(dims, options))?;
    let start = world.rma().now();
    pcg::solve(world, &vectors, side, ITERATIONS, |_| Ok(()))?;
    let given = finish(world, &vectors.x, start)?;
    [vectors.x, vectors.r, vectors.p].into_iter().try_for_each(crate::Array::free)?;
    Ok(given)
}

fn run_anneal(world: &World, options: Options, full: bool) -> Result<Given> {
    let ranks = world.ranks() as u64;
    let array = world.array::<u64>(&[ELEMENTS * ranks], options)?;
    let start = world.rma().now();
    let tries = if full { 100 } else { 20 } * ranks;
    anneal::run(world, &array, &anneal::Settings { temperatures: VERSIONS, tries, compute: 10_000, seed: 1 })?;
    let given = finish(world, &array, start)?;
    array.free()?;
    Ok(given)
}

/// The slowest rank's time, and the bytes of old versions of all.
fn measure(profile: Profile, program: &Program, contender: Contender, ranks: usize, full: bool) -> Result<Given> {
    let options = Options { keep: Keep::Last(VERSIONS), ..contender.options };
    let window = (program.window)(ranks, full);
    let (given, _) = on_net(ranks, window, profile, |world| (program.run)(world, options, full))?;
    let slowest = given.iter().map(|one| one.0).max().unwrap_or(0);
    Ok((slowest, given.iter().map(|one| one.1).sum(), given[0].2))
}

fn arrays(program: &Program, ranks: usize, full: bool) -> [Contender; 4] {
    let [flat, paper, ours] = contenders(program.block, VERSIONS, (program.log_blocks)(ranks, full, program.block));
    let small = Options { layout: crate::Layout::Log { block: program.small }, ..ours.options };
    [flat, paper, ours, Contender { options: small }]
}

/// The figures that are wanted.
pub(super) fn figures(profile: Profile, full: bool, wanted: &[u64]) -> Result<Vec<Table>> {
    let ranks: &[usize] = if full { &[2, 4, 8, 16, 32, 64] } else { &[2, 8, 32] };
    let mut tables = Vec::new();
    let paper = "the log takes 14.5 % less than flat for OpenMC (blocks of 8192 B), 30 % less for canneal (512 B), nothing less for PCG";
    // The paper's log has no record of which blocks old versions alone hold, so that its memory is
    // not counted.
    let head = ["", "flat", "ours", "ours, small blocks", "small block"];
    let mut memory = Table::new("Figure 13, memory of old versions, flat = 100", paper, &head);
    for program in &PROGRAMS {
        if !wanted.contains(&program.figure) && !wanted.contains(&13) {
            continue;
        }
        let ours = format!("ours, blocks of {} B", program.block);
        let head = ["ranks, storage", "flat ms", "paper's/flat", &ours, "ours, small", "ours to flat in DRAM"];
        let mut table = Table::new(program.title, program.paper, &head);
        for &ranks in ranks {
            let mut in_dram = 0.0;
            for (storage, name) in STORAGES {
                let profile = Profile { storage, ..profile };
                let measured =
                    arrays(program, ranks, full).map(|contender| measure(profile, program, contender, ranks, full));
                let measured: Vec<Given> = measured.into_iter().collect::<Result<_>>()?;
                assert_same(program.title, &measured.iter().map(|one| one.2).collect::<Vec<_>>())?;
                let times: Vec<f64> = measured.iter().map(|one| one.0 as f64).collect();
                if storage == 1 {
                    in_dram = times[0];
                }
                let shares = times[1..].iter().map(|time| ratio(times[0] / time));
                let cells = std::iter::once(format!("{:.2}", times[0] / 1e6)).chain(shares);
                table.row(format!("{ranks}, {name}"), cells.chain([ratio(in_dram / times[2])]));
                if storage == 1 && Some(&ranks) == RANKS_OF_MEMORY.iter().find(|known| **known == ranks) {
                    let share = |one: &Given| format!("{:.1}", 100.0 * one.1 as f64 / measured[0].1 as f64);
                    let small = format!("{} B", program.small);
                    memory.row(
                        format!("{}, {ranks} ranks", short(program.figure)),
                        [0, 2, 3].map(|kind| share(&measured[kind])).into_iter().chain([small]),
                    );
                }
            }
        }
        if wanted.contains(&program.figure) {
            tables.push(table);
        }
    }
    if wanted.contains(&13) {
        tables.push(memory);
    }
    Ok(tables)
}

/// The paper shows memory on 32 nodes.
const RANKS_OF_MEMORY: [usize; 1] = [32];

fn short(figure: u64) -> &'static str {
    match figure {
        10 => "tally",
        11 => "PCG",
        _ => "annealer",
    }
}
