//! The programs with checkpoints at the paper's sizes where a card has the memory: DNN, CFD, HS,
//! BLK.

use std::time::Duration;

use anyhow::{Result, ensure};
use nearpm_statistics::median_time;

use super::assisted::Assisted;
use super::{Bench, Scale};
use crate::programs::{
    BlackScholes, Cfd, Digits, Dnn, Hotspot, Iterative, Mesh, Net, Stepper, flow_of, is_price, learnt_by, part_of,
    prices_of, region_bytes,
};
use crate::report::Report;

pub(super) const GROUP: &str = "Programs";
/// Iterations from checkpoint to checkpoint, as in the paper.
const EVERY: u32 = 10;

pub fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    network(bench, report)?;
    gas(bench, report)?;
    hotspot(bench, report)?;
    black_scholes(bench, report)
}

/// Times of iterations without and with checkpoints, and of a restore.
fn iterated<S: Stepper>(
    bench: &Bench,
    report: &mut Report,
    name: &str,
    make: impl Fn() -> Result<S>,
    check: impl Fn(&S) -> Result<()>,
) -> Result<()> {
    let program = make()?;
    let state: u64 = program.state().iter().map(|(_, buffer)| buffer.bytes()).sum();
    let region = bench.region(region_bytes(&program))?;
    let mut program = Iterative::open(&region, program, EVERY)?;
    // The first iterations load the kernels.
    program.run_until(EVERY)?;
    let run = bench.wall(&mut || program.run_until(3 * EVERY))?;
    let take: Vec<Duration> = (0..3).map(|_| bench.wall(&mut || program.take().map(drop))).collect::<Result<_>>()?;
    check(&program.program)?;
    report.time(GROUP, format!("{name}: {} iterations, 2 checkpoints", 2 * EVERY), &[run], None);
    report.time(GROUP, format!("{name}: a checkpoint of {:.1} MiB", state as f64 / f64::from(1 << 20)), &take, None);
    if bench.scale == Scale::Full {
        let memory = program.program.state().into_iter().map(|(_, buffer)| buffer).collect();
        Assisted::new(bench, GROUP, name, memory)?.all(report, median_time(&take), None)?;
    }
    drop(program);
    let again = Iterative::open(&region, make()?, EVERY)?;
    let restored = again.done();
    let time = bench.wall(&mut || again.restore().map(drop));
    ensure!(restored == 3 * EVERY, "{name}: {restored} iterations are there after a restore, not {}", 3 * EVERY);
    report.time(GROUP, format!("{name}: restore"), &[time?], None);
    Ok(())
}

fn network(bench: &Bench, report: &mut Report) -> Result<()> {
    let (net, count) = match bench.scale {
        Scale::Small => (Net { side: 16, maps: [2, 3], hidden: 6, batch: 4 }, 10),
        // As many pictures as the paper's set has.
        Scale::Full => (Net::PAPER, 60_000),
    };
    let digits = Digits::new(net.side, count);
    // The oracle takes a second a pass at the paper's size.
    let passes = bench.scale.pick(3 * EVERY, 3);
    let mut few = Dnn::new(&bench.device, net, &digits)?;
    (0..passes).try_for_each(|pass| few.step(pass))?;
    let same = few
        .learnt()?
        .iter()
        .map(|weight| weight.to_bits())
        .eq(learnt_by(net, &digits, passes).iter().map(|weight| weight.to_bits()));
    ensure!(same, "DNN: after {passes} passes the weights are not the processor's");
    drop(few);
    let check = |program: &Dnn| {
        ensure!(program.learnt()?.iter().all(|weight| weight.is_finite()), "DNN: a weight is no number");
        Ok(())
    };
    let name = format!("DNN of side {}, batches of {}", net.side, net.batch);
    iterated(bench, report, &name, || Dnn::new(&bench.device, net, &digits), check)
}

fn gas(bench: &Bench, report: &mut Report) -> Result<()> {
    // Its two copies are the paper's 8.9 MB.
    let mesh = Mesh::around_a_rod(bench.scale.pick(156, 232_536));
    let expected = flow_of(&mesh, 3 * EVERY);
    let check = |program: &Cfd| {
        let found = program.variables()?;
        let same = found.iter().map(|value| value.to_bits()).eq(expected.iter().map(|value| value.to_bits()));
        ensure!(same && found.iter().all(|value| value.is_finite()), "CFD: the flow is not the processor's");
        Ok(())
    };
    iterated(bench, report, &format!("CFD of {} cells", mesh.cells), || Cfd::new(&bench.device, &mesh), check)
}

fn hotspot(bench: &Bench, report: &mut Report) -> Result<()> {
    let (rows, columns) = bench.scale.pick((16, 24), (16384, 16384));
    let name = format!("HS {rows} x {columns}");
    let check = |program: &Hotspot| {
        let found = program.temperatures()?;
        ensure!(found.iter().all(|cell| cell.is_finite()), "HS: a temperature is no number");
        // The oracle of all of it takes too long at the paper's size: corners, and what lies in the
        // middle.
        let across = |all: u32| {
            let (all, side) = (all as usize, 64.min(all as usize / 2));
            [0..side, all / 2 - side / 2..all / 2 + side / 2, all - side..all]
        };
        for part in across(rows).into_iter().zip(across(columns)) {
            let expected = part_of(rows, columns, [part.0.clone(), part.1.clone()], 3 * EVERY);
            let line = |row: usize| &found[row * columns as usize + part.1.start..][..part.1.len()];
            let same = part.0.clone().flat_map(line).eq(&expected);
            ensure!(same, "HS: temperatures of rows {:?}, columns {:?} are not the processor's", part.0, part.1);
        }
        Ok(())
    };
    iterated(bench, report, &name, || Hotspot::new(&bench.device, rows, columns), check)
}

fn black_scholes(bench: &Bench, report: &mut Report) -> Result<()> {
    let options = bench.scale.pick(200, 1 << 28);
    let check = |program: &BlackScholes| {
        let (calls, puts) = program.prices()?;
        ensure!(calls.iter().chain(&puts).all(|price| price.is_finite()), "BLK: a price is no number");
        // The oracle takes a quarter of a millisecond an option: some thousands of them,
        // throughout.
        for option in (0..calls.len()).step_by(calls.len().div_ceil(4096)) {
            let same = [calls[option], puts[option]]
                .into_iter()
                .zip(prices_of(option, 3 * EVERY))
                .all(|(a, b)| is_price(a, b));
            ensure!(same, "BLK: option {option}'s prices are not the processor's");
        }
        Ok(())
    };
    let name = format!("BLK {options} options");
    iterated(bench, report, &name, || BlackScholes::new(&bench.device, options), check)
}
