//! Figure 9: the synthetic workload of figure 8.

use super::table::{Table, micros, ratio};
use super::{Contender, assert_same, contenders, on_net};
use crate::error::Result;
use crate::programs::{digest, synthetic};
use crate::rma::net::Profile;

/// What a run is made of.
#[derive(Clone, Copy)]
struct Shape {
    ranks: usize,
    /// Words of each rank's part.
    part: u64,
    reads: u64,
    writes: u64,
    k: f64,
    block: u64,
}

const BASE: Shape = Shape { ranks: 4, part: 1 << 16, reads: 5, writes: 5, k: 0.025, block: 128 };
const VERSIONS: u64 = 4;
const LOCALITIES: [(f64, &str); 3] = [(0.0025, "radix sort"), (0.025, "N-body"), (0.25, "matrix multiply")];
const HEAD: [&str; 7] =
    ["", "flat us", "paper's log us", "ours us", "paper's/flat", "ours/flat", "ours, memory to flat's"];

/// Nanoseconds of a version, and bytes of old ones on all ranks.
fn run(profile: Profile, contender: Contender, shape: Shape) -> Result<(f64, u64, u32)> {
    let Shape { ranks, part, reads, writes, k, .. } = shape;
    let (given, _) = on_net(ranks, part * 8 * 10 + (64 << 20), profile, |world| {
        let array = world.array::<u64>(&[part * ranks as u64], contender.options)?;
        let mine = array.part(world.rank());
        array.put(mine.clone(), &mine.collect::<Vec<_>>())?;
        array.version_inc("filled")?;
        world.barrier()?;
        let start = world.rma().now();
        let settings = synthetic::Settings { versions: VERSIONS, reads, writes, k, seed: 9 };
        synthetic::run(world, &array, &settings)?;
        let spent = (world.rma().now() - start) as f64 / VERSIONS as f64;
        let bytes = array.version_bytes()?;
        world.barrier()?;
        let digest = if world.rank() == 0 { digest(&array)? } else { 0 };
        array.free()?;
        Ok((spent, bytes, digest))
    })?;
    let slowest = given.iter().map(|one| one.0).fold(0.0, f64::max);
    Ok((slowest, given.iter().map(|one| one.1).sum(), given[0].2))
}

fn row(profile: Profile, table: &mut Table, name: String, shape: Shape) -> Result<()> {
    let log_blocks = shape.part * 8 / shape.block * 2 + 2 * VERSIONS * shape.writes * shape.ranks as u64 + 64;
    let measured = contenders(shape.block, VERSIONS, log_blocks).map(|contender| run(profile, contender, shape));
    let measured: Vec<_> = measured.into_iter().collect::<Result<_>>()?;
    assert_same(&name, &measured.iter().map(|one| one.2).collect::<Vec<_>>())?;
    let [flat, paper, ours] = measured[..] else { return Ok(()) };
    let times = measured.iter().map(|one| micros(one.0));
    let more =
        [ratio(flat.0 / paper.0), ratio(flat.0 / ours.0), format!("{:.2} %", 100.0 * ours.1 as f64 / flat.1 as f64)];
    table.row(name, times.chain(more));
    Ok(())
}

/// Figures 9(a) to 9(d).
pub(super) fn figures(profile: Profile, full: bool) -> Result<Vec<Table>> {
    let title = |letter: &str, what: &str| format!("Figure 9({letter}), synthetic workload, time of a version, {what}");
    let mut interval = Table::new(
        title("a", "512 KiB a rank, 4 ranks, block 128 B"),
        "19 times faster at 10 operations a version, less than 0.06 % of the memory; slower than flat at long intervals and large k",
        &HEAD,
    );
    for (k, like) in LOCALITIES {
        let most = if full { 4 } else { 2 };
        for operations in [10, 100, 1000, 10_000].into_iter().take(most) {
            let shape = Shape { reads: operations / 2, writes: operations / 2, k, ..BASE };
            row(profile, &mut interval, format!("{like}, {operations} operations"), shape)?;
        }
    }
    let mut scaling = Table::new(
        title("b", "50 operations, k 0.25"),
        "worse with more processes, hardly changed by larger arrays",
        &HEAD,
    );
    let ranks: &[usize] = if full { &[2, 4, 8, 16, 32, 64] } else { &[2, 8, 32] };
    for &ranks in ranks {
        let shape = Shape { ranks, reads: 25, writes: 25, k: 0.25, part: 1 << 16, ..BASE };
        row(profile, &mut scaling, format!("{ranks} ranks, 512 KiB each"), shape)?;
    }
    for part in [1 << 14, 1 << 17] {
        let shape = Shape { reads: 25, writes: 25, k: 0.25, part, ..BASE };
        row(profile, &mut scaling, format!("4 ranks, {} KiB each", part >> 7), shape)?;
    }
    let mut reads = Table::new(title("c", "200 operations, k 0.25"), "better with more reads", &HEAD);
    for share in [0, 25, 50, 75, 95] {
        let shape = Shape { reads: 2 * share, writes: 200 - 2 * share, k: 0.25, ..BASE };
        row(profile, &mut reads, format!("{share} % reads"), shape)?;
    }
    let mut blocks =
        Table::new(title("d", "200 operations, k 0.25"), "larger blocks are faster and save less memory", &HEAD);
    for block in [128, 512, 2048, 8192] {
        let shape = Shape { reads: 100, writes: 100, k: 0.25, block, ..BASE };
        row(profile, &mut blocks, format!("block {block} B"), shape)?;
    }
    Ok(vec![interval, scaling, reads, blocks])
}
