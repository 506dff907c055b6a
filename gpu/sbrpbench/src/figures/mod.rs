//! Figures 6 to 11 of the paper, and what our improvements add, each from runs of the six programs.

mod published;
mod table;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};
use nearpm_gpusim::{Config, Policy, Statistics};

use crate::device::Simulated;
use crate::kernels::Lowering;
use crate::programs::{NAMES, Size, program};
pub use table::{Row, Table};

/// Figures that there are: 12 is ours.
pub const FIGURES: std::ops::RangeInclusive<u32> = 6..=12;

/// What is run for a bar.
#[derive(Clone, Debug)]
struct Bar {
    label: String,
    config: Config,
    lowering: Lowering,
}

fn bar(label: &str, config: Config) -> Bar {
    Bar { label: label.to_string(), config, lowering: Lowering::Hardware }
}

fn named(family: &str, rest: &str) -> Result<Config> {
    let name = format!("{family}-{rest}");
    Config::named(&name).with_context(|| format!("no configuration {name}"))
}

/// What a bar shows, from all bars of a program.
type Value = fn(&[Statistics], usize) -> f64;

/// What a run is to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Run,
    Recovery,
}

/// Runs a program, or its longest recovery, and looks at the result before it says what it took.
fn measure(name: &str, size: Size, bar: &Bar, what: What) -> Result<Statistics> {
    let program = program(name, size)?;
    let context = || format!("{} under {}", program.name(), bar.label);
    let mut device = Simulated::new(&bar.config, bar.lowering, program.image())?;
    program.run(&mut device).with_context(context)?;
    program.check_done(&device.image()).with_context(context)?;
    if what == What::Run {
        return Ok(device.statistics);
    }
    let mut image = device.image();
    program.crash_late(&mut image);
    let mut device = Simulated::new(&bar.config, bar.lowering, image)?;
    program.recover(&mut device).with_context(context)?;
    program.check_recovered(&device.image()).with_context(context)?;
    Ok(device.statistics)
}

/// Runs all bars of all programs, on two threads. By program, then by bar.
fn measure_all(names: &[&str], size: Size, bars: &[Bar], what: What) -> Result<Vec<Vec<Statistics>>> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new((0..names.len() * bars.len()).map(|_| None).collect::<Vec<_>>());
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let (Some(name), Some(bar)) = (names.get(index / bars.len()), bars.get(index % bars.len())) else { return };
            let result = measure(name, size, bar, what);
            if let Ok(mut results) = results.lock() {
                results[index] = Some(result);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    let results = results.into_inner().map_err(|_| anyhow::anyhow!("a run did not end"))?;
    let flat = results.into_iter().map(|result| result.context("a run is missing")?).collect::<Result<Vec<_>>>()?;
    Ok(flat.chunks(bars.len()).map(<[Statistics]>::to_vec).collect())
}

/// A figure as a table, beside what the paper's text says.
///
/// # Errors
/// No such figure or family, or a run that went wrong.
pub fn figure(number: u32, family: &str, size: Size) -> Result<Table> {
    let (names, bars, value): (&[&str], Vec<Bar>, Value) = match number {
        6 => (&NAMES, models(family)?, |all, i| cycles(&all[1]) / cycles(&all[i])),
        7 => (&NAMES[3..], scopes(family)?, share_of_scopes),
        8 => (&NAMES, models(family)?, |all, i| all[i].pm_read_misses as f64 / all[1].pm_read_misses.max(1) as f64),
        9 => (&NAMES, pairs(family, &["far-eadr"])?, over_the_one_before),
        10 => (&NAMES, sensitivity(family)?, over_epoch),
        11 => (&NAMES, recovery(family)?, |all, i| cycles(&all[i]) / cycles(&all[0])),
        12 => (&NAMES, improvements(family)?, |all, i| cycles(&all[0]) / cycles(&all[i])),
        _ => bail!("no figure {number}: there are {} to {}", FIGURES.start(), FIGURES.end()),
    };
    let what = if number == 11 { What::Recovery } else { What::Run };
    let all = measure_all(names, size, &bars, what)?;
    let shown = (0..bars.len()).filter(|&index| number != 7 || index % 3 == 2);
    let rows = shown.map(|index| Row {
        label: bars[index].label.clone(),
        values: all.iter().map(|statistics| value(statistics, index)).collect(),
        published: published::of(number, &bars[index].label),
    });
    let mut rows: Vec<Row> = rows.collect();
    if number == 11 {
        rows.push(part_of_the_run(names, size, &bars[1], &all)?);
    }
    Ok(Table {
        title: published::title(number).to_string(),
        columns: names.iter().map(ToString::to_string).collect(),
        rows,
    })
}

fn cycles(statistics: &Statistics) -> f64 {
    statistics.cycles as f64
}

/// Bars in pairs: speed-up of the second over the first.
fn over_the_one_before(all: &[Statistics], index: usize) -> f64 {
    cycles(&all[index - index % 2]) / cycles(&all[index])
}

/// The first of each bandwidth's bars is the epoch's; where one bandwidth is looked at, there is one epoch.
fn over_epoch(all: &[Statistics], index: usize) -> f64 {
    let epoch = match index {
        0..=9 => 0,
        10 | 11 => 10,
        _ => 12,
    };
    cycles(&all[epoch]) / cycles(&all[index])
}

/// Of bars in threes (epoch, without scopes, with them): the part of the gain that scopes have.
fn share_of_scopes(all: &[Statistics], index: usize) -> f64 {
    let first = index - index % 3;
    let gain = |i: usize| cycles(&all[first]) / cycles(&all[i]) - 1.0;
    (gain(first + 2) - gain(first + 1)) / gain(first + 2)
}

fn models(family: &str) -> Result<Vec<Bar>> {
    let mut bars = vec![Bar { lowering: Lowering::Gpm, ..bar("GPM", named(family, "epoch-far")?) }];
    for (label, rest) in
        [("epoch-far", "epoch-far"), ("SBRP-far", "sbrp-far"), ("epoch-near", "epoch-near"), ("SBRP-near", "sbrp-near")]
    {
        bars.push(bar(label, named(family, rest)?));
    }
    Ok(bars)
}

fn scopes(family: &str) -> Result<Vec<Bar>> {
    let mut bars = Vec::new();
    for place in ["far", "near"] {
        let sbrp = named(family, &format!("sbrp-{place}"))?;
        bars.push(bar("epoch", named(family, &format!("epoch-{place}"))?));
        bars.push(bar("without scopes", Config { scopes_off: true, ..sbrp.clone() }));
        bars.push(bar(&format!("scopes' share, {place}"), sbrp));
    }
    Ok(bars)
}

fn pairs(family: &str, places: &[&str]) -> Result<Vec<Bar>> {
    let mut bars = Vec::new();
    for place in places {
        bars.push(bar(&format!("epoch-{place}"), named(family, &format!("epoch-{place}"))?));
        bars.push(bar(&format!("SBRP-{place}"), named(family, &format!("sbrp-{place}"))?));
    }
    Ok(bars)
}

fn sensitivity(family: &str) -> Result<Vec<Bar>> {
    let sbrp = named(family, "sbrp-near")?;
    let mut bars = vec![bar("epoch-near", named(family, "epoch-near")?)];
    for (label, entries) in [("PB 12.5 %", 64), ("PB 25 %", 128), ("PB 50 %", 256), ("PB 100 %", 512)] {
        bars.push(bar(label, Config { buffer_entries: entries, ..sbrp.clone() }));
    }
    for window in [2, 4, 8, 10, 12] {
        bars.push(bar(&format!("window {window}"), Config { window, ..sbrp.clone() }));
    }
    bars.extend(pairs(family, &["near-half", "near-double"])?);
    Ok(bars)
}

fn recovery(family: &str) -> Result<Vec<Bar>> {
    let improved = named(family, "improved-near")?;
    Ok(vec![
        bar("epoch-near", named(family, "epoch-near")?),
        bar("SBRP-near", named(family, "sbrp-near")?),
        bar("improved-near", improved),
    ])
}

/// The recovery as a part of a run without a crash, under SBRP-near.
fn part_of_the_run(names: &[&str], size: Size, sbrp: &Bar, recoveries: &[Vec<Statistics>]) -> Result<Row> {
    let runs = measure_all(names, size, std::slice::from_ref(sbrp), What::Run)?;
    let part = |(recovery, run): (&Vec<Statistics>, &Vec<Statistics>)| cycles(&recovery[1]) / cycles(&run[0]);
    let label = "part of a run".to_string();
    let published = published::of(11, &label);
    Ok(Row { label, values: recoveries.iter().zip(&runs).map(part).collect(), published })
}

fn improvements(family: &str) -> Result<Vec<Bar>> {
    let sbrp = named(family, "sbrp-near")?;
    let improved = named(family, "improved-near")?;
    Ok(vec![
        bar("SBRP-near", sbrp.clone()),
        bar("4 flush counters", Config { counters: 4, ..sbrp.clone() }),
        bar("versions", Config { versions: true, ..sbrp.clone() }),
        bar("lazy durability", Config { lazy_durability: true, ..sbrp.clone() }),
        bar("adaptive window", Config { policy: Policy::Adaptive, ..sbrp }),
        bar("improved-near", improved),
    ])
}
