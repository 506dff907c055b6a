//! What each figure runs, and what it shows of that.

use anyhow::{Context, Result, bail};
use nearpm_gpusim::{Config, Policy, Rule, Statistics};

use super::runs::{Bar, What};
use crate::kernels::Lowering;
use crate::programs::NAMES;

/// What a row shows, of bars by their place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shows {
    /// How many times as fast the first is as the second.
    SpeedUp(usize, usize),
    /// The same with what the buffers hold when all threads have ended.
    WholeSpeedUp(usize, usize),
    /// Cycles of the first by those of the second.
    Time(usize, usize),
    /// Lines of persistent data that loads did not find in L1, of the first by those of the second.
    Misses(usize, usize),
    /// The part that scopes have in the gain over epochs, the first: of the second, which has none,
    /// and the third.
    Scopes(usize, usize, usize),
}

impl Shows {
    pub fn value(self, of: &[Statistics]) -> f64 {
        let cycles = |bar: usize| of[bar].cycles as f64;
        let whole = |bar: usize| (of[bar].cycles + of[bar].drain_cycles) as f64;
        match self {
            Shows::SpeedUp(bar, over) => cycles(over) / cycles(bar),
            Shows::WholeSpeedUp(bar, over) => whole(over) / whole(bar),
            Shows::Time(bar, over) => cycles(bar) / cycles(over),
            Shows::Misses(bar, over) => of[bar].pm_read_misses as f64 / of[over].pm_read_misses.max(1) as f64,
            Shows::Scopes(epoch, without, with) => {
                let gain = |bar| cycles(epoch) / cycles(bar) - 1.0;
                (gain(with) - gain(without)) / gain(with)
            }
        }
    }
}

/// A figure before its runs.
pub(super) struct Plan {
    pub names: &'static [&'static str],
    pub bars: Vec<Bar>,
    pub rows: Vec<(String, Shows)>,
}

fn plan(bars: Vec<Bar>, rows: &[(&str, Shows)]) -> Plan {
    let rows = rows.iter().map(|(label, shows)| (label.to_string(), *shows)).collect();
    Plan { names: &NAMES, bars, rows }
}

/// The plan of a figure for the configurations of a family.
pub(super) fn of(number: u32, family: &str) -> Result<Plan> {
    let named = |rest: &str| named(family, rest);
    Ok(match number {
        6 => plan(
            models(family)?,
            &[
                ("epoch-far over GPM", Shows::SpeedUp(1, 0)),
                ("SBRP-far over epoch-far", Shows::SpeedUp(2, 1)),
                ("SBRP-far over GPM", Shows::SpeedUp(2, 0)),
                ("epoch-near over epoch-far", Shows::SpeedUp(3, 1)),
                ("SBRP-near over epoch-near", Shows::SpeedUp(4, 3)),
                ("SBRP-near over SBRP-far", Shows::SpeedUp(4, 2)),
                ("SBRP-near over GPM", Shows::SpeedUp(4, 0)),
            ],
        ),
        // Programs that use block scope.
        7 => Plan {
            names: &NAMES[3..],
            ..plan(
                scopes(family)?,
                &[("scopes' share, far", Shows::Scopes(0, 1, 2)), ("scopes' share, near", Shows::Scopes(3, 4, 5))],
            )
        },
        8 => plan(
            models(family)?,
            &[("SBRP-far of epoch-far", Shows::Misses(2, 1)), ("SBRP-near of epoch-near", Shows::Misses(4, 3))],
        ),
        9 => plan(
            vec![named("epoch-far-eadr")?, named("sbrp-far-eadr")?],
            &[("SBRP-far over epoch-far, eADR", Shows::SpeedUp(1, 0))],
        ),
        10 => sensitivity(family)?,
        11 => recovery(family)?,
        12 => improvements(family)?,
        _ => bail!("no figure {number}: there are 6 to 12"),
    })
}

fn named(family: &str, rest: &str) -> Result<Bar> {
    let base = format!("{family}-{rest}");
    let config = Config::named(&base).with_context(|| format!("no configuration {base}"))?;
    Ok(Bar { base, config, lowering: Lowering::Hardware, what: What::Run })
}

fn changed(bar: &Bar, change: impl FnOnce(&mut Config)) -> Bar {
    let mut bar = bar.clone();
    change(&mut bar.config);
    bar
}

fn models(family: &str) -> Result<Vec<Bar>> {
    let mut bars = vec![Bar { lowering: Lowering::Gpm, ..named(family, "epoch-far")? }];
    for rest in ["epoch-far", "sbrp-far", "epoch-near", "sbrp-near"] {
        bars.push(named(family, rest)?);
    }
    Ok(bars)
}

fn scopes(family: &str) -> Result<Vec<Bar>> {
    let mut bars = Vec::new();
    for place in ["far", "near"] {
        let sbrp = named(family, &format!("sbrp-{place}"))?;
        bars.push(named(family, &format!("epoch-{place}"))?);
        bars.push(changed(&sbrp, |config| config.scopes_off = true));
        bars.push(sbrp);
    }
    Ok(bars)
}

fn sensitivity(family: &str) -> Result<Plan> {
    let sbrp = named(family, "sbrp-near")?;
    let mut plan = plan(vec![named(family, "epoch-near")?], &[]);
    let mut add = |label: String, bar: Bar, epoch: Option<Bar>| {
        let over = epoch.map_or(0, |epoch| {
            plan.bars.push(epoch);
            plan.bars.len() - 1
        });
        plan.bars.push(bar);
        plan.rows.push((label, Shows::SpeedUp(plan.bars.len() - 1, over)));
    };
    for (label, entries) in [("12.5", 64), ("25", 128), ("50", 256), ("100", 512)] {
        add(format!("PB {label} %"), changed(&sbrp, |config| config.buffer_entries = entries), None);
    }
    for window in [2, 4, 6, 8, 10, 12] {
        // The artifact lets one more through than it says.
        let through = window + sbrp.config.window - 6;
        add(format!("window {window}"), changed(&sbrp, |config| config.window = through), None);
    }
    for (label, rest) in [("50", "near-half"), ("100", "near"), ("200", "near-double")] {
        let epoch = named(family, &format!("epoch-{rest}"))?;
        add(format!("bandwidth {label} %"), named(family, &format!("sbrp-{rest}"))?, Some(epoch));
    }
    Ok(plan)
}

fn recovery(family: &str) -> Result<Plan> {
    let mut bars = Vec::new();
    for rest in ["epoch-near", "sbrp-near", "improved-near"] {
        bars.push(Bar { what: What::Recovery, ..named(family, rest)? });
    }
    bars.push(named(family, "sbrp-near")?);
    let rows = [
        ("SBRP-near of epoch-near", Shows::Time(1, 0)),
        ("improved-near of epoch-near", Shows::Time(2, 0)),
        ("SBRP-near of a run", Shows::Time(1, 3)),
    ];
    Ok(plan(bars, &rows))
}

fn improvements(family: &str) -> Result<Plan> {
    let (sbrp, improved) = (named(family, "sbrp-near")?, named(family, "improved-near")?);
    let bars = vec![
        sbrp.clone(),
        changed(&sbrp, |config| config.counters = 4),
        changed(&sbrp, |config| config.versions = true),
        changed(&sbrp, |config| config.lazy_durability = true),
        changed(&sbrp, |config| config.policy = Policy::Adaptive),
        changed(&improved, |config| config.versions = true),
        improved,
        changed(&sbrp, |config| (config.generations, config.bypass) = (true, 32)),
        changed(&sbrp, |config| (config.granule, config.buffer_entries) = (8, 184)),
        changed(&sbrp, |config| config.queue_merges = true),
        changed(&sbrp, |config| config.without = Rule::ALL.into_iter().filter(|&rule| rule != Rule::Fifo).collect()),
    ];
    let labels = [
        "4 flush counters",
        "versions",
        "lazy durability",
        "adaptive window",
        "all four",
        "improved-near",
        "generations of flushes, marked heads passed",
        "entries by 8 bytes",
        "writes merge in queues",
        "bound: a buffer that orders nothing",
    ];
    let mut rows: Vec<_> = labels.iter().enumerate().map(|(i, label)| (*label, Shows::SpeedUp(i + 1, 0))).collect();
    rows.push(("improved-near, last flush counted", Shows::WholeSpeedUp(6, 0)));
    rows.push(("bound, last flush counted", Shows::WholeSpeedUp(10, 0)));
    Ok(plan(bars, &rows))
}
