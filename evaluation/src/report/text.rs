//! Predictions beside what the paper publishes, for people and for the page.

use std::fmt::Write as _;

use anyhow::Result;
use maud::{Markup, html};
use nearpm::Mechanism;
use nearpm_sim::microbenchmark;
use nearpm_workloads::programs::{Inputs, Program};

use crate::case::Configuration;
use crate::meter::Kind;
use crate::plan::{OURS, PAPER};
use crate::published::{MECHANISMS, TATP_REGION, WHOLE};
use crate::recovery::{self, Point, Recoveries};
use crate::results::Record;
use crate::summary::{Mean, Selection, Summary};

/// A published figure and what the model makes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What.
    pub what: String,
    /// What the paper says.
    pub published: f64,
    /// The model with the paper's profile and its own baseline: the paper's inputs, and those of the released code. `None` where
    /// a run is missing.
    pub predicted: [Option<f64>; 2],
    /// The same against the library's best path on the processor.
    pub against_best: Option<f64>,
    /// This project's card against that.
    pub ours: Option<f64>,
}

impl Comparison {
    /// The prediction's distance from what is published, in percent.
    pub fn deviation(&self) -> Option<f64> {
        Some(100.0 * (self.predicted[0]? / self.published - 1.0))
    }
}

/// Every published average.
pub fn comparisons(summary: &Summary) -> Vec<Comparison> {
    let (paper, best) = (Configuration::PaperCpu, Configuration::Cpu);
    let mut all = Vec::new();
    let mut add =
        |what: String, published: f64, value: &dyn Fn(&Selection, Configuration) -> Option<f64>, m: Mechanism| {
            let with = |profile, inputs| Selection { inputs, ..Selection::new(profile, m) };
            let predicted = Inputs::ALL.map(|inputs| value(&with(PAPER, inputs), paper));
            let against_best = value(&with(PAPER, Inputs::Corrected), best);
            let ours = value(&with(OURS, Inputs::Corrected), best);
            all.push(Comparison { what, published, predicted, against_best, ours });
        };
    for published in MECHANISMS {
        let (name, m) = (published.name, published.mechanism);
        for (of, value) in WHOLE.into_iter().zip(published.whole) {
            let average = |s: &Selection, baseline| summary.average(|p| summary.whole(s, p, of, baseline));
            add(format!("{name}: whole programs, {}", of.title()), value, &average, m);
        }
        let delayed = Configuration::Delayed;
        let regions = |s: &Selection, baseline| summary.average(|p| summary.region(s, p, delayed, baseline));
        add(format!("{name}: regions, {}", delayed.title()), published.region, &regions, m);
        let share = |s: &Selection, baseline| summary.average(|p| summary.share_of(s, p, baseline));
        add(format!("{name}: share of crash consistency, %"), published.share, &share, m);
        let moved = |s: &Selection, baseline| summary.average(|p| summary.movement(s, p, baseline));
        add(format!("{name}: data movement in it, %"), published.movement, &moved, m);
        let parallel = |s: &Selection, _| summary.average(|p| summary.parallel(s, p, Configuration::Card));
        add(format!("{name}: parallel share, %"), published.parallel, &parallel, m);
    }
    let tatp = |s: &Selection, baseline| {
        summary.region(s, Program::Tatp, Configuration::Card, baseline).map(|mean| mean.value)
    };
    add("logging: regions of TATP, one device".into(), TATP_REGION, &tatp, Mechanism::Undo);
    all
}

fn cell(value: Option<f64>) -> String {
    value.map_or("not available".into(), |value| format!("{value:.2}"))
}

const HEADINGS: [&str; 7] = [
    "average over nine programs",
    "paper",
    "model, paper's profile and baseline",
    "deviation",
    "with released inputs",
    "against the best CPU path",
    "this card against it",
];

fn rows(summary: &Summary) -> Vec<[String; 7]> {
    let row = |c: Comparison| {
        let deviation = c.deviation().map_or("not available".into(), |percent| format!("{percent:+.0} %"));
        let [corrected, released] = c.predicted.map(cell);
        [c.what, format!("{:.2}", c.published), corrected, deviation, released, cell(c.against_best), cell(c.ours)]
    };
    comparisons(summary).into_iter().map(row).collect()
}

/// Share of what Amdahl's law allows that whole programs reach on this project's card, in percent.
fn of_the_ceiling(summary: &Summary, mechanism: Mechanism) -> Option<(f64, f64)> {
    let s = Selection::new(OURS, mechanism);
    let ceiling = summary.average(|p| summary.whole(&s, p, Configuration::Bare, Configuration::Cpu))?;
    let reached = summary.average(|p| {
        let mut part = summary.whole(&s, p, Configuration::Card, Configuration::Cpu)?;
        part.value *= 100.0 / summary.whole(&s, p, Configuration::Bare, Configuration::Cpu)?.value;
        Some(part)
    })?;
    Some((ceiling, reached))
}

/// The comparison as Markdown, and the micro-benchmarks, which are run for it.
///
/// # Errors
/// If a profile is wrong, or a micro-benchmark fails.
pub fn text(records: &[Record], recoveries: &[Recoveries]) -> Result<String> {
    let summary = Summary::new(records);
    let mut text = String::new();
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    text.push_str(&line(&HEADINGS.map(str::to_owned)));
    text.push_str(&line(&std::array::from_fn::<String, 7, _>(|_| "---".into())));
    rows(&summary).iter().for_each(|row| text.push_str(&line(row)));
    writeln!(text, "\nAmdahl's law on the paper's own figures:")?;
    for published in MECHANISMS {
        let [one, _, delayed] = published.whole;
        writeln!(
            text,
            "- {}: {} % of the time, regions {} times faster: {:.2} (at most {:.2}); it reports {one} and {delayed}.",
            published.name,
            published.share,
            published.region,
            published.amdahl(),
            published.ceiling(),
        )?;
    }
    writeln!(text, "\nThis card, one device, against the ceiling of its own best baseline (aim: 80 %):")?;
    for mechanism in Mechanism::ALL {
        if let Some((ceiling, reached)) = of_the_ceiling(&summary, mechanism) {
            writeln!(
                text,
                "- {}: the ceiling is {ceiling:.2} on average, and {reached:.0} % of it is reached.",
                mechanism.name()
            )?;
        }
    }
    writeln!(text, "\nMicro-benchmarks (aims: copies 1.4, 6 and 10 times, asynchronous log 100 ns):")?;
    for name in [OURS, "vcu118-250", "vcu118-200", PAPER] {
        let profile = super::profile(name)?;
        let copies = microbenchmark::run(&profile, &[64, 4096, 16384], 100)?;
        let [small, page, large] = [0, 1, 2].map(|i: usize| copies[i].speed_up());
        let log_ns = microbenchmark::asynchronous_log(&profile, 64, 20_000)?;
        writeln!(
            text,
            "- {name}: copies {small:.2} at 64 B, {page:.2} at 4 KiB, {large:.2} at 16 KiB; asynchronous 64 B log {log_ns:.0} ns."
        )?;
    }
    text.push_str(&recovery_times(recoveries)?);
    text.push_str(&whereabouts(&summary));
    text.push_str(&speed(records));
    Ok(text)
}

/// How fast the simulator was, over all results.
fn speed(records: &[Record]) -> String {
    let sum = |value: fn(&Record) -> f64| records.iter().map(value).sum::<f64>();
    let (simulated_ns, wall_s) = (sum(|record| record.outcome.ns), sum(|record| record.wall_s));
    let transactions = sum(|record| record.outcome.transactions as f64);
    format!(
        "\nThe simulator: {transactions:.0} transactions, {:.1} ms of simulated time in {wall_s:.0} s of wall-clock and one thread each, making and checking of pools \
         included: {:.0} transactions and {:.0} us a second.\n",
        simulated_ns / 1e6,
        transactions / wall_s,
        simulated_ns / 1e3 / wall_s,
    )
}

/// Where each nanosecond of a transaction goes with this project's card: means over the programs.
fn whereabouts(summary: &Summary) -> String {
    let mut text =
        format!("\nWhere a transaction's time goes with {OURS}, mean over the nine programs, first seed, ns:\n\n");
    let names = Kind::ALL.map(Kind::name).join(" | ");
    text.push_str(&format!("| mechanism | configuration | {names} | all |\n|{}\n", "---|".repeat(Kind::ALL.len() + 3)));
    for mechanism in Mechanism::ALL {
        let s = Selection::new(OURS, mechanism);
        for of in [Configuration::Cpu, Configuration::Card] {
            let part = |kind: Kind| {
                summary.average(|program| {
                    let parts = summary.breakdown(&s, program, of)?;
                    let (_, value) = parts.into_iter().find(|(name, _)| name == kind.name())?;
                    Some(Mean { value, deviation: None })
                })
            };
            let parts = Kind::ALL.map(part);
            let all = parts.iter().copied().sum::<Option<f64>>();
            let cells = parts.into_iter().chain([all]).map(|ns| ns.map_or("-".into(), |ns| format!("{ns:.0}")));
            let cells = cells.collect::<Vec<String>>().join(" | ");
            text.push_str(&format!("| {} | {} | {cells} |\n", mechanism.name(), of.title()));
        }
    }
    text
}

/// Recovery times of this project's card.
fn recovery_times(recoveries: &[Recoveries]) -> Result<String> {
    let mut text = format!(
        "\nRecovery with {OURS}, from power-up to an open pool of {} MiB, by KiB under way (card and driver, and the library), us:\n",
        recovery::POOL_BYTES >> 20
    );
    for Recoveries { mechanism, by_work, by_pool } in recoveries {
        let each = |p: &Point| format!("{} KiB {:.1}+{:.1}", p.work_bytes >> 10, p.card_ns / 1e3, p.pool_ns / 1e3);
        writeln!(text, "- {}: {}", mechanism.name(), by_work.iter().map(each).collect::<Vec<_>>().join(", "))?;
        let each = |p: &Point| format!("{} MiB {:.1}", p.pool_bytes >> 20, p.ns() / 1e3);
        let sizes = by_pool.iter().map(each).collect::<Vec<_>>().join(", ");
        writeln!(text, "  by the pool, {} KiB under way: {sizes}", recovery::WORK_BYTES >> 10)?;
    }
    Ok(text)
}

/// The comparison as a section of the page.
pub fn section(summary: &Summary) -> Markup {
    html! {
        section id="published" {
            h2 { "Predictions beside what the paper publishes" }
            p {
                "Each deviation is printed as it is; nothing was tuned to these figures. The paper's baseline waits for each range's log entry, and each of \
                 its fences waits for the card; the best CPU path of this library logs all ranges under one fence and is as durable."
            }
            div class="wide" {
                table {
                    tr { @for heading in HEADINGS { th { (heading) } } }
                    @for row in rows(summary) { tr { @for cell in row { td { (cell) } } } }
                }
            }
            h2 { "Amdahl's law on the paper's own figures" }
            div class="wide" {
                table {
                    tr { th { "" } th { "share" } th { "regions" } th { "so whole programs" } th { "at most" } th { "it reports, one device" } th { "delayed" } }
                    @for p in MECHANISMS {
                        tr {
                            td { (p.name) } td { (p.share) " %" } td { (p.region) }
                            td { (format!("{:.2}", p.amdahl())) } td { (format!("{:.2}", p.ceiling())) }
                            td { (p.whole[0]) } td { (p.whole[2]) }
                        }
                    }
                }
            }
        }
    }
}
