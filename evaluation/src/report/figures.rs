//! The paper's figures.

use anyhow::Result;
use nearpm::Mechanism;
use nearpm_sim::microbenchmark::{self, PUBLISHED, SIZES};
use nearpm_workloads::programs::Program;

use super::comparisons::BASELINE;
use super::svg::{Chart, Form, Panel, Series};
use super::table::MISSING;
use super::{Figure, command, on_rtl, profile};
use crate::case::Configuration;
use crate::copies::COPIES;
use crate::plan::{OURS, PAPER, THREAD_STEPS, THREADED, UNIT_STEPS};
use crate::published::{MECHANISMS, Published, TATP_REGION, WHOLE};
use crate::summary::{Mean, Selection, Summary};

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
    figures.push(threads(summary));
    Ok(figures)
}

/// Groups of a value of each program: the programs and their average.
pub fn programs() -> Vec<String> {
    Program::ALL.iter().map(|program| program.name().to_owned()).chain(["average".to_owned()]).collect()
}

/// The same with further groups.
fn programs_and(further: &[&str]) -> Vec<String> {
    programs().into_iter().chain(further.iter().map(|name| (*name).to_owned())).collect()
}

/// A value without a deviation.
pub fn exact(value: f64) -> Option<Mean> {
    Some(Mean { value, deviation: None })
}

/// A value of each program and the average.
pub fn series(summary: &Summary, name: &str, value: impl Fn(&Summary, Program) -> Option<Mean>) -> Series {
    let average = summary.average(&value);
    Series::new(name, Program::ALL.iter().map(|program| value(summary, *program)).chain([average]).collect())
}

/// A value of each program, and in further groups those that are given.
fn series_and(
    summary: &Summary,
    name: &str,
    value: impl Fn(&Summary, Program) -> Option<Mean>,
    further: impl IntoIterator<Item = Option<Mean>>,
) -> Series {
    let mut series = series(summary, name, value);
    series.values.extend(further);
    series
}

/// What both profiles have: the paper's card, and this project's.
fn both(series: impl Fn(&str) -> Vec<Series>) -> Vec<Panel> {
    [PAPER, OURS].map(|profile| Panel { name: profile.into(), series: series(profile) }).to_vec()
}

/// What values of some profiles are.
pub fn origin(profiles: &[&str]) -> String {
    format!(
        "simulated: host model and transaction-level card with the profile{} {}; the paper's inputs, commits durable when they return, epochs when they end",
        if profiles.len() == 1 { "" } else { "s" },
        profiles.join(" and ")
    )
}

/// Averages of a limit by mechanism and profile, for people.
fn limits(summary: &Summary, value: impl Fn(&Summary, &Selection, Program) -> Option<Mean>) -> String {
    let of = |profile: &str| {
        let one = |published: &Published| {
            let s = Selection::new(profile, published.mechanism);
            let average = summary.average(|summary, program| value(summary, &s, program));
            let average = average.map_or(MISSING.to_owned(), |limit| format!("{:.2}x", limit.value));
            format!("{} {average}", published.name)
        };
        format!("{} ({profile})", MECHANISMS.iter().map(one).collect::<Vec<_>>().join(", "))
    };
    [PAPER, OURS].map(of).join("; ")
}

fn shares(summary: &Summary) -> Figure {
    let of = |profile: &str, published: &Published| {
        let s = Selection::new(profile, published.mechanism);
        let share = |summary: &Summary, program| summary.share_of(&s, program, Configuration::PaperCpu);
        series_and(summary, published.name, share, [exact(published.share)])
    };
    let ceiling = |summary: &Summary, s: &Selection, program| summary.whole_limit(s, program, Configuration::PaperCpu);
    Figure {
        id: "fig1a".into(),
        title: "Fig. 1a: share of crash consistency on the processor".into(),
        published: MECHANISMS.map(|p| format!("{} {} %", p.name, p.share)).join(", ") + " on average; single programs not available",
        limit: Some(format!(
            "by Amdahl's law, whole programs without any of it would be this many times as fast, on average: {}",
            limits(summary, ceiling)
        )),
        origin: origin(&[PAPER, OURS]),
        command: command(summary),
        remark: "The time above that of the same loads and stores without any crash consistency, in the paper's way on the processor. The paper does not say \
                 how it found its regions; its programs do more beside them than ours, so that its shares are smaller."
            .into(),
        chart: Chart {
            title: "share of crash consistency in the run time, by program".into(),
            form: Form::Bars,
            unit: "% of the run time".into(),
            groups: programs_and(&["paper"]),
            panels: both(|profile| MECHANISMS.iter().map(|published| of(profile, published)).collect()),
            published: Vec::new(),
        },
    }
}

fn movement(summary: &Summary) -> Figure {
    let of = |profile: &str, published: &Published| {
        let s = Selection::new(profile, published.mechanism);
        let moved = |summary: &Summary, program| summary.movement(&s, program, Configuration::PaperCpu);
        series_and(summary, published.name, moved, [exact(published.movement)])
    };
    let ceiling =
        |summary: &Summary, s: &Selection, program| summary.without_movement(s, program, Configuration::PaperCpu);
    Figure {
        id: "fig1bcd".into(),
        title: "Fig. 1b to 1d: data movement in crash consistency".into(),
        published: MECHANISMS.map(|p| format!("{} {} %", p.name, p.movement)).join(", ") + " on average; the other parts not available",
        limit: Some(format!(
            "by Amdahl's law, whole programs that moved no data for it would be this many times as fast, on average: {}",
            limits(summary, ceiling)
        )),
        origin: origin(&[PAPER, OURS]),
        command: command(summary),
        remark: "Loads, stores and write-backs of the card's memory among what crash consistency adds. The rest is fences, waits and the library's instructions."
            .into(),
        chart: Chart {
            title: "share of data movement in crash consistency, by program".into(),
            form: Form::Bars,
            unit: "% of what crash consistency adds".into(),
            groups: programs_and(&["paper"]),
            panels: both(|profile| MECHANISMS.iter().map(|published| of(profile, published)).collect()),
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

/// Where a bar of a limit ends.
pub const EDGE: &str = "Bars of the limit that are higher than the chart end at its edge; the table has their values.";

fn regions(summary: &Summary, published: &Published) -> Figure {
    let base = Configuration::PaperCpu;
    let of = |profile: &str| {
        let s = Selection::new(profile, published.mechanism);
        let bar = |configuration: Configuration| {
            let value = |summary: &Summary, program| summary.region(&s, program, configuration, base);
            series(summary, configuration.title(), value)
        };
        let limit = |summary: &Summary, program| summary.region_limit(&s, program, base);
        let limit = series(summary, "limit: the library's instructions", limit);
        [Configuration::Cpu].into_iter().chain(WHOLE).map(bar).chain([limit.into_limit()]).collect()
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
        limit: Some("regions of which nothing is left but the library's instructions, measured natively and charged alike in each column".into()),
        origin: origin(&[PAPER, OURS]),
        command: command(summary),
        remark: format!(
            "Over the paper's baseline. {BASELINE} What crash consistency adds to the floor holds all of the library's work, which no card takes away; the first \
             series is this library's best path on the processor. {EDGE}"
        ),
        chart: Chart {
            title: format!("speed-up of regions under {}", published.name),
            form: Form::Bars,
            unit: "times as fast as the paper's baseline".into(),
            groups: programs(),
            panels: both(of),
            published: vec![("paper, average".into(), published.region)],
        },
    }
}

fn whole(summary: &Summary, published: &Published) -> Figure {
    let base = Configuration::PaperCpu;
    let of = |profile: &str| {
        let s = Selection::new(profile, published.mechanism);
        let bar = |configuration: Configuration| {
            let said = WHOLE.iter().position(|one| *one == configuration).and_then(|at| exact(published.whole[at]));
            let value = |summary: &Summary, program| summary.whole(&s, program, configuration, base);
            series_and(summary, configuration.title(), value, [said])
        };
        let limit = |summary: &Summary, program| summary.whole_limit(&s, program, base);
        let limit = series_and(summary, "limit: no crash consistency", limit, [None]).into_limit();
        [Configuration::Cpu].into_iter().chain(WHOLE).map(bar).chain([limit]).collect()
    };
    let [one, software, delayed] = published.whole;
    Figure {
        id: format!("fig16{}", letter(published)),
        title: format!("Fig. 16{}: speed-up of whole programs, {}", letter(published), published.name),
        published: format!(
            "one device {one}x, software synchronisation {software}x, delayed {delayed}x on average; single programs not available"
        ),
        limit: Some("the same loads and stores without any crash consistency: Amdahl's ceiling of the baseline's share in Fig. 1a".into()),
        origin: origin(&[PAPER, OURS]),
        command: command(summary),
        remark: format!("Over the paper's baseline, whose commits are as durable. {BASELINE} {EDGE}"),
        chart: Chart {
            title: format!("speed-up of whole programs under {}", published.name),
            form: Form::Bars,
            unit: "times as fast as the paper's baseline".into(),
            groups: programs_and(&["paper"]),
            panels: both(of),
            published: Vec::new(),
        },
    }
}

/// Fig. 17, run here and now: it takes a second.
fn copies(summary: &Summary) -> Result<Figure> {
    let (mut all, mut limits) = (Vec::new(), Vec::new());
    for name in [PAPER, OURS, "vcu118-250", "vcu118-200", "pcie5"] {
        let profile = profile(name)?;
        let points = microbenchmark::run(&profile, &microbenchmark::model(&profile), &SIZES, COPIES)?;
        all.push(Series::new(name, points.iter().map(|point| exact(point.speed_up())).collect()));
        if [PAPER, OURS].contains(&name) {
            let values = points.iter().map(|point| exact(point.limit())).collect();
            limits.push(Series::new(format!("limit, {name}"), values).into_limit());
        }
    }
    let (rtl, commit) = on_rtl::stored()?;
    all.push(Series::new(format!("{OURS}, RTL cycles"), rtl.iter().map(|point| exact(point.speed_up())).collect()));
    let published = |bytes| PUBLISHED.iter().find(|(size, _)| *size == bytes).and_then(|(_, value)| exact(*value));
    all.push(Series::new("paper", SIZES.iter().map(|&bytes| published(bytes)).collect()));
    all.extend(limits);
    Ok(Figure {
        id: "fig17".into(),
        title: "Fig. 17: copies, waiting for each".into(),
        published: PUBLISHED.map(|(bytes, value)| format!("{value}x at {bytes} B")).join(", ") + "; between them not available",
        limit: Some("a card that copies in no time: what remains is the load across the link that both wait for at the end".into()),
        origin: format!(
            "simulated: host model and transaction-level card with the named profiles; \"RTL cycles\": the same host and link, and the Verilated RTL as the card, \
             stored with commit {commit} by {}",
            on_rtl::COPIES_COMMAND
        ),
        command: command(summary),
        remark: "The profile paper-vcu118 is calibrated on these two points, and on nothing else. Aims of this project's card: 1.4x at 64 B, 6x at 4 KiB, 10x at 16 KiB. \
                 Limits that are higher than the chart end at its edge; the table has their values."
            .into(),
        chart: Chart {
            title: "speed-up of copies by their size".into(),
            form: Form::Lines,
            unit: "times as fast as the processor".into(),
            groups: SIZES.map(|bytes| nearpm_text::size(bytes.into())).to_vec(),
            panels: Panel::only(all),
            published: Vec::new(),
        },
    })
}

fn parallel(summary: &Summary) -> Figure {
    let of = |profile: &str, published: &Published| {
        let s = Selection::new(profile, published.mechanism);
        let limit = summary.average(|summary, program| summary.busy(&s, program, Configuration::Card));
        let share = |summary: &Summary, program| summary.parallel(&s, program, Configuration::Card);
        series_and(summary, published.name, share, [limit, exact(published.parallel)])
    };
    Figure {
        id: "fig18".into(),
        title: "Fig. 18: share in which card and processor work at once".into(),
        published: MECHANISMS.map(|p| format!("{} {} %", p.name, p.parallel)).join(", ") + " on average; single programs not available",
        limit: Some("the share in which the card works at all, on average".into()),
        origin: origin(&[PAPER, OURS]),
        command: command(summary),
        remark: "Time in which the card has commands and the processor does not wait for its answer. The paper's is the share that could be parallel.".into(),
        chart: Chart {
            title: "share of the run time in which card and processor work at once".into(),
            form: Form::Bars,
            unit: "% of the run time".into(),
            groups: programs_and(&["limit", "paper"]),
            panels: both(|profile| MECHANISMS.iter().map(|published| of(profile, published)).collect()),
            published: Vec::new(),
        },
    }
}

/// Names of the steps of units.
pub fn unit_names() -> Vec<String> {
    UNIT_STEPS.map(|units| format!("{units} unit{}", if units == 1 { "" } else { "s" })).to_vec()
}

fn units(summary: &Summary) -> Figure {
    // The baseline has no units.
    let base = Configuration::PaperCpu;
    let of = |profile: &str, published: &Published| {
        let value = |units: usize| {
            let s = Selection { units, ..Selection::new(profile, published.mechanism) };
            summary.average(|summary, program| summary.whole(&s, program, Configuration::Card, base))
        };
        let s = Selection::new(profile, published.mechanism);
        let limit = summary.average(|summary, program| summary.whole_limit(&s, program, base));
        Series::new(published.name, UNIT_STEPS.into_iter().map(value).chain([limit]).collect())
    };
    Figure {
        id: "fig19".into(),
        title: "Fig. 19: units of the card".into(),
        published: "more units are faster; values not available".into(),
        limit: Some("the same loads and stores without any crash consistency, as in Fig. 16".into()),
        origin: origin(&[PAPER, OURS]),
        command: command(summary),
        remark: "Averages over the nine programs, one thread. The RTL has four units; another number is the model's card with the same stages, arbitration and memory."
            .into(),
        chart: Chart {
            title: "speed-up of whole programs by units of the card".into(),
            form: Form::Bars,
            unit: "times as fast as the paper's baseline".into(),
            groups: unit_names().into_iter().chain(["limit".into()]).collect(),
            panels: both(|profile| MECHANISMS.iter().map(|published| of(profile, published)).collect()),
            published: Vec::new(),
        },
    }
}

fn threads(summary: &Summary) -> Figure {
    let of = |profile: &str| {
        let line = |program: Program, name: &str, value: &dyn Fn(&Selection) -> Option<Mean>| {
            let with = |threads: usize| Selection { threads, ..Selection::new(profile, Mechanism::Undo) };
            let values = THREAD_STEPS.into_iter().map(|threads| value(&with(threads))).collect();
            Series::new(format!("{}, {name}", program.name()), values)
        };
        let over = |program, base| move |s: &Selection| summary.whole(s, program, Configuration::Card, base);
        let baselines =
            [(Configuration::PaperCpu, "over the paper's baseline"), (Configuration::Cpu, "over the best path")];
        let lines = baselines
            .into_iter()
            .flat_map(|(base, name)| THREADED.map(|program| line(program, name, &over(program, base))));
        let limit = |program| {
            line(program, "limit over the paper's baseline", &|s| {
                summary.whole_limit(s, program, Configuration::PaperCpu)
            })
            .into_limit()
        };
        lines.chain(THREADED.map(limit)).collect()
    };
    Figure {
        id: "fig20".into(),
        title: "Fig. 20: threads".into(),
        published: "the speed-up falls with threads, and stays above 1; values not available".into(),
        limit: Some(
            "one thread without crash consistency, times the threads, over the paper's baseline; of redis, whose pool one transaction has at a time, no faster \
             than its loads and stores one after the other"
                .into(),
        ),
        origin: origin(&[PAPER, OURS]),
        command: command(summary),
        remark: "Throughput with one card over that of the processor with as many threads, undo logging: in the paper's way, and on this library's best path. memcached has a \
                 pool a thread on one card, redis one for all, on which one transaction runs at a time. Cores share the link and one cache in the model. \
                 Limits that are higher than the chart end at its edge; the table has their values."
            .into(),
        chart: Chart {
            title: "speed-up of memcached and redis by threads".into(),
            form: Form::Lines,
            unit: "times the processor's throughput".into(),
            groups: THREAD_STEPS.map(|threads| threads.to_string()).to_vec(),
            panels: both(of),
            published: Vec::new(),
        },
    }
}
