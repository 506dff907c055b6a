//! Figures beyond the paper's.

use anyhow::Result;
use nearpm::Mechanism;
use nearpm_sim::microbenchmark;
use nearpm_sim::profile::{EMBEDDED, Profile};
use nearpm_text::size;
use nearpm_workloads::programs::Program;

use super::figures::{EDGE, exact, origin, programs, series, unit_names};
use super::svg::{Chart, Form, Panel, Series};
use super::{Figure, command, profile};
use crate::case::Configuration;
use crate::meter::Kind;
use crate::plan::{DEVICE_STEPS, MANY_THREADS, OURS, PAPER, SCALED, THREADED, UNIT_STEPS, WINDOWS};
use crate::published::{MECHANISMS, Published, WHOLE};
use crate::recovery::{self, POOLS, Point, Recoveries, WORK};
use crate::summary::{Mean, Selection, Summary};

/// Logs of each size whose rate is taken.
const LOGS: u64 = 2_000;
/// Their sizes.
pub const LOG_BYTES: [u32; 3] = [64, 1024, 4096];

/// Undo logs of a size, million a second, of a card with so many units that is never idle.
pub fn log_rate(profile: &Profile, units: usize, bytes: u32) -> f64 {
    microbenchmark::log_rate(profile, units, bytes, LOGS)
}

/// All of them.
pub fn all(summary: &Summary, recoveries: &[Recoveries]) -> Result<Vec<Figure>> {
    let mut figures: Vec<Figure> = MECHANISMS.iter().map(|published| this_card(summary, published)).collect();
    figures.push(busy_units(summary)?);
    figures.push(units_with_threads(summary));
    figures.push(devices(summary));
    figures.push(other_profiles(summary));
    figures.extend(recovery_times(summary, recoveries));
    figures.extend(MECHANISMS.iter().map(|published| breakdown(summary, published)));
    Ok(figures)
}

/// What units bring where commands wait for them: run here and now.
fn busy_units(summary: &Summary) -> Result<Figure> {
    let mut all = Vec::new();
    for name in [PAPER, OURS] {
        let profile = profile(name)?;
        for bytes in LOG_BYTES {
            let rate = |units| exact(log_rate(&profile, units, bytes));
            all.push(Series::new(format!("{name}, {bytes} B"), UNIT_STEPS.map(rate).to_vec()));
        }
    }
    Ok(Figure {
        id: "units-busy".into(),
        title: "Units of a card that is never idle".into(),
        published: "nothing".into(),
        limit: None,
        origin: "simulated: transaction-level card with the named profiles, without a host".into(),
        command: command(summary),
        remark: "Undo logs in as many slots as there are, without a host that waits. The RTL has four units; another number is the model's card with the same decoder, \
                 arbitration and memory, which is what bounds it: a command every eight cycles, and the memory or the internal bus."
            .into(),
        chart: Chart {
            title: "rate of undo logs by units of the card".into(),
            form: Form::Lines,
            unit: "million logs a second".into(),
            groups: unit_names(),
            panels: Panel::only(all),
            published: Vec::new(),
        },
    })
}

fn units_with_threads(summary: &Summary) -> Figure {
    let mut all = Vec::new();
    for profile in [PAPER, OURS] {
        for program in THREADED {
            let value = |units: usize| {
                let s = Selection { units, threads: MANY_THREADS, ..Selection::new(profile, Mechanism::Undo) };
                summary.whole(&s, program, Configuration::Card, Configuration::Cpu)
            };
            let name = format!("{}, {profile}", program.name());
            all.push(Series::new(name, UNIT_STEPS.into_iter().map(value).collect()));
        }
    }
    Figure {
        id: "units-threads".into(),
        title: format!("Units of the card, {MANY_THREADS} threads"),
        published: "nothing".into(),
        limit: None,
        origin: origin(&[PAPER, OURS]),
        command: command(summary),
        remark:
            "Throughput with one card over that of the best path on the processor with as many threads, undo logging."
                .into(),
        chart: Chart {
            title: format!("speed-up of memcached and redis with {MANY_THREADS} threads by units"),
            form: Form::Bars,
            unit: "times the processor's throughput".into(),
            groups: unit_names(),
            panels: Panel::only(all),
            published: Vec::new(),
        },
    }
}

/// Recovery times, of recoveries that ran here and now.
fn recovery_times(summary: &Summary, recoveries: &[Recoveries]) -> [Figure; 2] {
    let figure = |id: &str, title: &str, what: &str, groups: &[u64], points: fn(&Recoveries) -> &[Point]| {
        let one = |of: &Recoveries| {
            Series::new(of.mechanism.name(), points(of).iter().map(|point| exact(point.ns() / 1000.0)).collect())
        };
        Figure {
            id: id.into(),
            title: title.into(),
            published: "nothing".into(),
            limit: None,
            origin: format!("simulated: host model and transaction-level card with the profile {OURS}"),
            command: command(summary),
            remark: format!(
                "From power-up to an open pool, {what}. The card boots and finishes what its save kept, the driver brings it up, the library reads log and heap tables \
                 and restores. Not in it: the system's own boot, and the processor's instructions. What was under way was checked in each."
            ),
            chart: Chart {
                title: title.into(),
                form: Form::Lines,
                unit: "us".into(),
                groups: groups.iter().map(|bytes| size(*bytes)).collect(),
                panels: Panel::only(recoveries.iter().map(one).collect()),
                published: Vec::new(),
            },
        }
    };
    let fixed = |bytes: u64, what: &str| format!("with {} {what}", size(bytes));
    [
        figure(
            "recovery-work",
            "Recovery by what was under way",
            &fixed(recovery::POOL_BYTES, "in the pool, pages of 4 KiB under way"),
            &WORK,
            |of| &of.by_work,
        ),
        figure(
            "recovery-pool",
            "Recovery by size of the pool",
            &fixed(recovery::WORK_BYTES, "under way"),
            &POOLS,
            |of| &of.by_pool,
        ),
    ]
}

fn this_card(summary: &Summary, published: &Published) -> Figure {
    let s = Selection::new(OURS, published.mechanism);
    let of = |configuration: Configuration, name: &str| {
        series(summary, name, |summary, program| summary.whole(&s, program, configuration, Configuration::Cpu))
    };
    let mut all: Vec<Series> =
        WHOLE.into_iter().map(|configuration| of(configuration, configuration.title())).collect();
    all.push(of(Configuration::Bare, "limit: no crash consistency").into_limit());
    Figure {
        id: format!("card-{}", published.mechanism.name()),
        title: format!("This project's card against the best path on the processor, {}", published.name),
        published: "nothing: the paper has no such baseline".into(),
        limit: Some("the same loads and stores without any crash consistency".into()),
        origin: origin(&[OURS]),
        command: command(summary),
        remark: format!("At equal durability, and with posted order on the processor too. {EDGE}"),
        chart: Chart {
            title: format!("speed-up over the best path on the processor under {}", published.name),
            form: Form::Bars,
            unit: "times as fast as the best CPU path".into(),
            groups: programs(),
            panels: Panel::only(all),
            published: Vec::new(),
        },
    }
}

fn devices(summary: &Summary) -> Figure {
    let time_us = |s: &Selection, program, of| {
        let time = summary.time(s, program, of)?;
        Some(Mean { value: time.value / 1000.0, deviation: time.deviation.map(|d| d / 1000.0) })
    };
    let mut all = Vec::new();
    for program in SCALED {
        for configuration in [Configuration::Software, Configuration::Delayed] {
            let value = |devices: usize| {
                let s = Selection { devices, ..Selection::new(OURS, Mechanism::Undo) };
                let of = if devices == 1 { Configuration::Card } else { configuration };
                time_us(&s, program, of)
            };
            let name = format!("{}, {}", program.name(), configuration.name());
            all.push(Series::new(name, DEVICE_STEPS.into_iter().map(value).collect()));
        }
        let floor = time_us(&Selection::new(OURS, Mechanism::Undo), program, Configuration::Bare);
        let name = format!("{}, limit", program.name());
        all.push(Series::new(name, vec![floor; DEVICE_STEPS.len()]).into_limit());
    }
    Figure {
        id: "devices".into(),
        title: "Devices: time of a transaction over one to eight cards".into(),
        published: "one and two devices only, in Fig. 15 and 16".into(),
        limit: Some("the same loads and stores without any crash consistency, on one card".into()),
        origin: origin(&[OURS]),
        command: command(summary),
        remark: "Undo logging, one thread. A pool is striped over the cards; a transaction that has ranges on several commits on all or on none, \
                 and is read back from each, one after the other."
            .into(),
        chart: Chart {
            title: "time of a transaction by devices".into(),
            form: Form::Lines,
            unit: "us a transaction".into(),
            groups: DEVICE_STEPS.map(|devices| devices.to_string()).to_vec(),
            panels: Panel::only(all),
            published: Vec::new(),
        },
    }
}

fn other_profiles(summary: &Summary) -> Figure {
    let names: Vec<&str> = EMBEDDED.iter().map(|(name, _)| *name).filter(|name| !WINDOWS.contains(name)).collect();
    // The programs that were run on all of them.
    let s = |name: &str, mechanism| Selection::new(name, mechanism);
    let ran = |program: &Program| {
        let there = |name: &&str| {
            summary.whole(&s(name, Mechanism::Undo), *program, Configuration::Card, Configuration::Cpu).is_some()
        };
        names.iter().all(there)
    };
    let ran: Vec<Program> = Program::ALL.into_iter().filter(ran).collect();
    let of = |published: &Published| {
        let value = |name: &&str| {
            let whole = |program: &Program| {
                summary.whole(&s(name, published.mechanism), *program, Configuration::Card, Configuration::Cpu)
            };
            let values: Vec<f64> = ran.iter().filter_map(|program| Some(whole(program)?.value)).collect();
            Mean::of(&values).map(|mean| Mean { deviation: None, ..mean })
        };
        Series::new(published.name, names.iter().map(value).collect())
    };
    Figure {
        id: "profiles-compared".into(),
        title: "One device on other hosts, links and cards".into(),
        published: "nothing".into(),
        limit: None,
        origin: "simulated: host model and transaction-level card with each profile; most of their values are estimates, as their sources say".into(),
        command: command(summary),
        remark: format!(
            "Mean of {}, over the best path on the processor.",
            ran.iter().map(|program| program.name()).collect::<Vec<_>>().join(", ")
        ),
        chart: Chart {
            title: "speed-up on other profiles".into(),
            form: Form::Bars,
            unit: "times as fast as the best CPU path".into(),
            groups: names.iter().map(|name| name.replace("paper-vcu118", "paper")).collect(),
            panels: Panel::only(MECHANISMS.iter().map(of).collect()),
            published: Vec::new(),
        },
    }
}

fn breakdown(summary: &Summary, published: &Published) -> Figure {
    let s = Selection::new(OURS, published.mechanism);
    let columns: Vec<(Program, Configuration)> = Program::ALL
        .into_iter()
        .flat_map(|program| [(program, Configuration::Cpu), (program, Configuration::Card)])
        .collect();
    let found: Vec<_> =
        columns.iter().map(|(program, configuration)| summary.breakdown(&s, *program, *configuration)).collect();
    let of = |kind: Kind| {
        let value = |parts: &Option<Vec<(String, f64)>>| {
            let part = parts.as_ref()?.iter().find(|(name, _)| name == kind.name())?.1;
            exact(part / 1000.0)
        };
        Series::new(kind.name(), found.iter().map(value).collect())
    };
    let short = |(program, configuration): &(Program, Configuration)| {
        let name: String = program.name().chars().take(4).collect();
        format!("{name}{}", if *configuration == Configuration::Cpu { "" } else { "*" })
    };
    Figure {
        id: format!("where-{}", published.mechanism.name()),
        title: format!("Where each nanosecond of a transaction goes, {}", published.name),
        published: "nothing".into(),
        limit: None,
        origin: origin(&[OURS]),
        command: command(summary),
        remark: "Of the processor's time: the best path on the processor, and one card (*). Compute is what program and library compute for, measured natively; \
                 load, store and write-back are accesses to the card's memory; post is commands; wait is for the card's answers; library is ordinary memory and checksums."
            .into(),
        chart: Chart {
            title: format!("parts of the time of a transaction under {}", published.name),
            form: Form::Stacked,
            unit: "us a transaction".into(),
            groups: columns.iter().map(short).collect(),
            panels: Panel::only(Kind::ALL.into_iter().map(of).collect()),
            published: Vec::new(),
        },
    }
}
