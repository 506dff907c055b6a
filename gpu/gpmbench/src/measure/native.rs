//! The programs with native persistence at the paper's sizes: PS, SRAD, BFS.

use std::time::Duration;

use anyhow::{Result, ensure};
use nearpm_statistics::median_time;

use super::assisted::Assisted;
use super::programs::GROUP;
use super::{Bench, Scale};
use crate::cpu::Image;
use crate::kernels::prefix;
use crate::prefix::{Sizes, Sums, input_of, sums_of};
use crate::programs::{Bfs, Graph, Srad, image_of, levels_of, start_of_image};
use crate::report::Report;

pub fn sums(bench: &Bench, report: &mut Report) -> Result<()> {
    let sizes = sums_sizes(bench.scale);
    let region = bench.region(sizes.region_bytes())?;
    let program = Sums::create(&region, sizes, prefix())?;
    let input = input_of(1, sizes.count());
    program.begin(&input)?;
    let mut times = Vec::new();
    for _ in 0..=bench.repeats.min(3) {
        program.again()?;
        times.push(bench.wall(&mut || program.run())?);
    }
    // The first loads the kernels.
    times.remove(0);
    let found = program.sums()?;
    ensure!(found == sums_of(&input, sizes), "PS: the sums are wrong");
    drop(input);
    let name = format!("PS, {} arrays of {} numbers", sizes.arrays, sizes.blocks * sizes.threads);
    report.rate(GROUP, name, sizes.count() as f64 / 1e9, "G numbers/s", &times, None);
    report.time(GROUP, "PS, the run", &times, None);
    // What is done is not done again.
    let again = bench.wall(&mut || program.run())?;
    report.time(GROUP, "PS, a run of which everything is done", &[again], None);
    let load = bench.wall(&mut || program.load())?;
    report.time(GROUP, "PS, the input brought to the device's memory", &[load], None);
    drop((program, region));
    by_processor(bench, report, "PS, its sums", median_time(&times), &words_of(found.into_iter().map(u32::to_le_bytes)))
}

/// Arrays of 1 M numbers: the paper's 1 K of them.
pub fn sums_sizes(scale: Scale) -> Sizes {
    scale.pick(Sizes { arrays: 2, blocks: 4, threads: 64 }, Sizes { arrays: 1024, blocks: 1024, threads: 1024 })
}

fn words_of(words: impl Iterator<Item = [u8; 4]>) -> Vec<u8> {
    words.flatten().collect()
}

/// CAP and GPM-NDP for what a program stores in a step that takes GPM `ours`: the transfer alone,
/// without the computation before it, so that what is said of GPM is the least.
fn by_processor(bench: &Bench, report: &mut Report, what: &str, ours: Duration, stored: &[u8]) -> Result<()> {
    if bench.scale == Scale::Small {
        return Ok(());
    }
    let memory = bench.buffer(stored.len() as u64)?;
    memory.upload(stored)?;
    Assisted::new(bench, GROUP, what, vec![&memory])?.all(report, ours, None)
}

pub fn srad(bench: &Bench, report: &mut Report) -> Result<()> {
    let (rows, columns) = bench.scale.pick((12, 16), (131_072, 1024));
    let region = bench.region(Srad::region_bytes(rows, columns))?;
    let program = Srad::open(&region, rows, columns)?;
    let iterations = bench.scale.pick(3, 10);
    program.run_until(1)?;
    let time = bench.wall(&mut || program.run_until(1 + iterations))?;
    let image = program.image()?;
    let expected = match bench.scale {
        Scale::Small => image_of(rows, columns, 1 + iterations),
        // What measures the processor alone takes seconds where the oracle takes minutes.
        Scale::Full => {
            let mut by_processor = Image::new(start_of_image(rows, columns), columns as usize);
            let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
            (0..1 + iterations).for_each(|_| by_processor.advance(threads));
            by_processor.pixels().iter().map(|&pixel| f64::from(pixel)).collect()
        }
    };
    let close = |(&found, &expected): (&f32, &f64)| (f64::from(found) - expected).abs() <= 0.001 * expected;
    ensure!(image.len() == expected.len() && image.iter().zip(&expected).all(close), "SRAD: the image is wrong");
    drop(expected);
    report.time(GROUP, format!("SRAD {rows} x {columns}: {iterations} iterations, each persisted"), &[time], None);
    drop((program, region));
    let stored = words_of(image.into_iter().map(f32::to_le_bytes));
    by_processor(bench, report, "SRAD, the image of an iteration", time / iterations as u32, &stored)
}

pub fn bfs(bench: &Bench, report: &mut Report) -> Result<()> {
    // As many nodes as the map of the USA's roads has, and its 6000 levels.
    let (length, width) = bench.scale.pick((20, 6), (6000, 4000));
    let graph = Graph::roads(length, width, 1);
    let region = bench.region(Bfs::region_bytes(&graph))?;
    let mut program = Bfs::open(&region, &graph)?;
    let mut last = 0;
    let time = bench.wall(&mut || {
        last = program.run()?;
        Ok(())
    })?;
    let found = program.levels()?;
    ensure!(found == levels_of(&graph), "BFS: levels are wrong");
    report.time(GROUP, format!("BFS of {} nodes, {last} levels, each persisted", graph.nodes()), &[time], None);
    drop((program, region));
    let stored = words_of(found.into_iter().map(u32::to_le_bytes));
    let level = time / (last as u32).max(1);
    by_processor(bench, report, "BFS, the costs of all nodes, a level", level, &stored)?;
    // A node and its cost each, brought together by the kernel that finds them.
    let found = stored.len() * 2 / (last as usize).max(1) / 8 * 8;
    by_processor(bench, report, "BFS, the costs of those found, gathered, a level", level, &stored[..found])
}
