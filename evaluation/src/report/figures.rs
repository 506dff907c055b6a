//! The paper's figures.

use anyhow::Result;
use nearpm::Mechanism;
use nearpm_sim::microbenchmark::{self, PUBLISHED, SIZES};
use nearpm_workloads::programs::Program;

use super::svg::{Chart, Series};
use super::{Figure, Form, command, profile};
use crate::case::Configuration;
use crate::plan::{OURS, PAPER, THREAD_STEPS, THREADED, UNIT_STEPS};
use crate::published::{MECHANISMS, Published, TATP_REGION, WHOLE};
use crate::summary::{Mean, Selection, Summary};

/// Copies of each size in the micro-benchmark.
const COPIES: u64 = 50;

/// All of them, in the paper's order.
pub fn all(summary: &Summary) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    figures.push(shares(summary));
    figures.push(movement(summary));
    figures.extend(MECHANISMS.iter().map(|published| regions(summary, published)));
    figures.extend(MECHANISMS.iter().map(|published| whole(summary, published)));
    figures.push(copies(summary)?);
    figures.push(parallel(summary));
    figures.push(units(summary));
    figures.extend([PAPER, OURS].map(|profile| threads(summary, profile)));
    Ok(figures)
}

pub fn programs() -> Vec<String> {
    Program::ALL.iter().map(|program| program.name().to_owned()).chain(["average".to_owned()]).collect()
}

/// A value of each program and the average.
pub fn series(summary: &Summary, name: &str, value: impl Fn(Program) -> Option<Mean>) -> Series {
    let average = summary.average(&value).map(|value| Mean { value, deviation: None });
    Series { name: name.into(), values: Program::ALL.iter().map(|program| value(*program)).chain([average]).collect() }
}

pub fn origin(profile: &str) -> String {
    format!(
        "simulated: host model and transaction-level card with the profile {profile}; the paper's inputs, commits durable when they return"
    )
}

fn shares(summary: &Summary) -> Figure {
    let of = |published: &Published| {
        let s = Selection::new(PAPER, published.mechanism);
        series(summary, published.name, |program| summary.share_of(&s, program, Configuration::PaperCpu))
    };
    Figure {
        id: "fig1a".into(),
        title: "Fig. 1a: share of crash consistency on the processor".into(),
        published: MECHANISMS.map(|p| format!("{} {} %", p.name, p.share)).join(", ") + " on average; single programs not available",
        origin: origin(PAPER),
        command: command(summary),
        remark: "The time above that of the same loads and stores without any crash consistency, in the paper's way on the processor. The paper does not say \
                 how it found its regions; its programs do more beside them than ours, so that its shares are smaller."
            .into(),
        form: Form::Bars,
        chart: Chart {
            title: "share of crash consistency in the run time, by program".into(),
            unit: "% of the run time".into(),
            groups: programs(),
            series: MECHANISMS.iter().map(of).collect(),
            published: Vec::new(),
        },
    }
}

fn movement(summary: &Summary) -> Figure {
    let of = |published: &Published| {
        let s = Selection::new(PAPER, published.mechanism);
        series(summary, published.name, |program| summary.movement(&s, program, Configuration::PaperCpu))
    };
    Figure {
        id: "fig1bcd".into(),
        title: "Fig. 1b to 1d: data movement in crash consistency".into(),
        published: MECHANISMS.map(|p| format!("{} {} %", p.name, p.movement)).join(", ") + " on average; the other parts not available",
        origin: origin(PAPER),
        command: command(summary),
        remark: "Loads, stores and write-backs of the card's memory among what crash consistency adds. The rest is fences, waits and the library's instructions."
            .into(),
        form: Form::Bars,
        chart: Chart {
            title: "share of data movement in crash consistency, by program".into(),
            unit: "% of what crash consistency adds".into(),
            groups: programs(),
            series: MECHANISMS.iter().map(of).collect(),
            published: Vec::new(),
        },
    }
}

fn letter(published: &Published) -> char {
    match published.mechanism {
        Mechanism::Checkpoint => 'b',
        Mechanism::Shadow => 'c',
        _ => 'a',
    }
}

fn regions(summary: &Summary, published: &Published) -> Figure {
    let s = Selection::new(PAPER, published.mechanism);
    let of = |configuration: Configuration| {
        series(summary, configuration.title(), |program| {
            summary.region(&s, program, configuration, Configuration::PaperCpu)
        })
    };
    let tatp = format!("; TATP {TATP_REGION}x");
    Figure {
        id: format!("fig15{}", letter(published)),
        title: format!("Fig. 15{}: speed-up of crash consistency, {}", letter(published), published.name),
        published: format!(
            "{}x on average{}; other programs not available",
            published.region,
            if published.mechanism == Mechanism::Undo { &tatp } else { "" }
        ),
        origin: origin(PAPER),
        command: command(summary),
        remark: "Over the paper's baseline. What crash consistency adds to the floor holds all of the library's work, which no card takes away; the first \
                 series is this library's best path on the processor."
            .into(),
        form: Form::Bars,
        chart: Chart {
            title: format!("speed-up of regions under {}", published.name),
            unit: "times as fast as the paper's baseline".into(),
            groups: programs(),
            series: [Configuration::Cpu].into_iter().chain(WHOLE).map(of).collect(),
            published: vec![("paper, average".into(), published.region)],
        },
    }
}

fn whole(summary: &Summary, published: &Published) -> Figure {
    let s = Selection::new(PAPER, published.mechanism);
    let of = |configuration: Configuration| {
        series(summary, configuration.title(), |program| {
            summary.whole(&s, program, configuration, Configuration::PaperCpu)
        })
    };
    let limit = series(summary, "limit: no crash consistency", |program| {
        summary.whole(&s, program, Configuration::Bare, Configuration::PaperCpu).map(|mean| Mean {
            // Beyond this the other bars could not be read.
            value: mean.value.min(6.0),
            deviation: None,
        })
    });
    let [one, software, delayed] = published.whole;
    Figure {
        id: format!("fig16{}", letter(published)),
        title: format!("Fig. 16{}: speed-up of whole programs, {}", letter(published), published.name),
        published: format!(
            "one device {one}x, software synchronisation {software}x, delayed {delayed}x on average; single programs not available"
        ),
        origin: origin(PAPER),
        command: command(summary),
        remark: "Over the paper's baseline, whose commits are as durable. Bars of the limit end at 6.".into(),
        form: Form::Bars,
        chart: Chart {
            title: format!("speed-up of whole programs under {}", published.name),
            unit: "times as fast as the paper's baseline".into(),
            groups: programs(),
            series: [Configuration::Cpu].into_iter().chain(WHOLE).map(of).chain([limit]).collect(),
            published: vec![("paper, one device, average".into(), one)],
        },
    }
}

/// Fig. 17, run here and now: it takes a second.
fn copies(summary: &Summary) -> Result<Figure> {
    let mut all = Vec::new();
    for name in [PAPER, OURS, "vcu118-250", "vcu118-200", "pcie5"] {
        let points = microbenchmark::run(&profile(name)?, &SIZES, COPIES)?;
        let values = points.iter().map(|point| Some(Mean { value: point.speed_up(), deviation: None })).collect();
        all.push(Series { name: name.into(), values });
    }
    let published = |bytes| {
        let found = PUBLISHED.iter().find(|(size, _)| *size == bytes);
        found.map(|(_, value)| Mean { value: *value, deviation: None })
    };
    all.push(Series { name: "paper".into(), values: SIZES.iter().map(|&bytes| published(bytes)).collect() });
    Ok(Figure {
        id: "fig17".into(),
        title: "Fig. 17: copies, waiting for each".into(),
        published: PUBLISHED.map(|(bytes, value)| format!("{value}x at {bytes} B")).join(", ") + "; between them not available",
        origin: "simulated: host model and transaction-level card with the named profiles".into(),
        command: command(summary),
        remark: "The profile paper-vcu118 is calibrated on these two points, and on nothing else. Aims of this project's card: 1.4x at 64 B, 6x at 4 KiB, 10x at 16 KiB."
            .into(),
        form: Form::Lines,
        chart: Chart {
            title: "speed-up of copies by their size".into(),
            unit: "times as fast as the processor".into(),
            groups: SIZES.map(|bytes| if bytes < 1024 { format!("{bytes} B") } else { format!("{} KiB", bytes / 1024) }).to_vec(),
            series: all,
            published: Vec::new(),
        },
    })
}

fn parallel(summary: &Summary) -> Figure {
    let of = |published: &Published| {
        let s = Selection::new(PAPER, published.mechanism);
        series(summary, published.name, |program| summary.parallel(&s, program, Configuration::Card))
    };
    Figure {
        id: "fig18".into(),
        title: "Fig. 18: share in which card and processor work at once".into(),
        published: MECHANISMS.map(|p| format!("{} {} %", p.name, p.parallel)).join(", ") + " on average; single programs not available",
        origin: origin(PAPER),
        command: command(summary),
        remark: "Time in which the card has commands and the processor does not wait for its answer. The paper's is the share that could be parallel.".into(),
        form: Form::Bars,
        chart: Chart {
            title: "share of the run time in which card and processor work at once".into(),
            unit: "% of the run time".into(),
            groups: programs(),
            series: MECHANISMS.iter().map(of).collect(),
            published: Vec::new(),
        },
    }
}

/// Names of the steps of units.
pub fn unit_names() -> Vec<String> {
    UNIT_STEPS.map(|units| format!("{units} unit{}", if units == 1 { "" } else { "s" })).to_vec()
}

fn units(summary: &Summary) -> Figure {
    let of = |published: &Published| {
        let value = |units: usize| {
            let s = Selection { units, ..Selection::new(PAPER, published.mechanism) };
            let average = summary.average(|program| {
                // The baseline has no units.
                summary.whole(&s, program, Configuration::Card, Configuration::PaperCpu)
            });
            average.map(|value| Mean { value, deviation: None })
        };
        Series { name: published.name.into(), values: UNIT_STEPS.into_iter().map(value).collect() }
    };
    Figure {
        id: "fig19".into(),
        title: "Fig. 19: units of the card".into(),
        published: "more units are faster; values not available".into(),
        origin: origin(PAPER),
        command: command(summary),
        remark: "Averages over the nine programs, one thread. The RTL has four units; another number is the model's card with the same stages, arbitration and memory."
            .into(),
        form: Form::Bars,
        chart: Chart {
            title: "speed-up of whole programs by units of the card".into(),
            unit: "times as fast as the paper's baseline".into(),
            groups: unit_names(),
            series: MECHANISMS.iter().map(of).collect(),
            published: Vec::new(),
        },
    }
}

fn threads(summary: &Summary, profile: &str) -> Figure {
    let of = |program: Program| {
        let value = |threads: usize| {
            let s = Selection { threads, ..Selection::new(profile, Mechanism::Undo) };
            summary.whole(&s, program, Configuration::Card, Configuration::Cpu)
        };
        Series { name: program.name().into(), values: THREAD_STEPS.into_iter().map(value).collect() }
    };
    Figure {
        id: format!("fig20-{profile}"),
        title: format!("Fig. 20: threads, {profile}"),
        published: "the speed-up falls with threads, and stays above 1; values not available".into(),
        origin: origin(profile),
        command: command(summary),
        remark: "Throughput with one card over that of the best path on the processor with as many threads, undo logging. memcached has a pool a thread on one card, redis one for \
                 all, on which one transaction runs at a time. Cores share the link and one cache in the model."
            .into(),
        form: Form::Lines,
        chart: Chart {
            title: "speed-up of memcached and redis by threads".into(),
            unit: "times the processor's throughput".into(),
            groups: THREAD_STEPS.map(|threads| threads.to_string()).to_vec(),
            series: THREADED.into_iter().map(of).collect(),
            published: Vec::new(),
        },
    }
}
