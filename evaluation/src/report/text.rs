//! Predictions beside what the paper publishes, for people and for the page.

use std::fmt::Write as _;

use anyhow::Result;
use maud::{Markup, html};
use nearpm::Mechanism;
use nearpm_workloads::programs::{Inputs, Program};

use super::tables::{predictions, tables};
use crate::case::Configuration;
use crate::plan::{OURS, PAPER};
use crate::published::{MECHANISMS, TATP_REGION, WHOLE};
use crate::recovery::Recoveries;
use crate::results::Record;
use crate::summary::{Mean, Selection, Summary};

/// What the paper's baseline is here.
pub const BASELINE: &str = "The paper's baseline is reconstructed, for the paper does not say more of it than that it runs on the processor: every fence waits 436 ns for the card, and \
                            nothing is fetched ahead; under undo logging each range's log entry is waited for by itself.";

/// A published figure and what the model makes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What.
    pub what: String,
    /// Values are shares, in percent.
    pub is_share: bool,
    /// What the paper says.
    pub published: f64,
    /// The model with the paper's profile and its own baseline: the paper's inputs, and those of the released code. `None` where
    /// a run is missing.
    pub predicted: [Option<Average>; 2],
    /// The same against the library's best path on the processor, which is as durable under both.
    pub against_best: [Option<Average>; 2],
    /// This project's card against that.
    pub ours: Option<Average>,
    /// The same against the processor's cheapest mechanism that promises at least as much, where values are ratios to a baseline.
    pub over_cheapest: Option<Average>,
}

/// An average over the programs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Average {
    /// The mean.
    pub mean: Mean,
    /// The geometric mean, where values are ratios of several programs.
    pub geometric: Option<Mean>,
}

impl Average {
    /// Of shares, or of one program.
    fn of(mean: Mean) -> Average {
        Average { mean, geometric: None }
    }

    /// Of ratios.
    fn of_ratios(summary: &Summary, value: impl Fn(&Summary, Program) -> Option<Mean>) -> Option<Average> {
        Some(Average { mean: summary.average(&value)?, geometric: summary.geometric(&value) })
    }
}

impl Comparison {
    /// The prediction's distance from what is published, in percent.
    pub fn deviation(&self) -> Option<f64> {
        Some(100.0 * (self.predicted[0]?.mean.value / self.published - 1.0))
    }
}

/// What is compared: a value of a selection over a baseline, which is the same mechanism in a configuration or, without one, the processor's cheapest
/// that promises as much.
type Value<'v> = &'v dyn Fn(&Selection, Option<Configuration>) -> Option<Average>;

/// Every published average.
pub fn comparisons(summary: &Summary) -> Vec<Comparison> {
    let (paper, best) = (Some(Configuration::PaperCpu), Some(Configuration::Cpu));
    let mut all = Vec::new();
    let mut add = |what: String, is_share: bool, published: f64, value: Value<'_>, m: Mechanism| {
        let with = |profile, inputs| Selection { inputs, ..Selection::new(profile, m) };
        let predicted = Inputs::ALL.map(|inputs| value(&with(PAPER, inputs), paper));
        let against_best = Inputs::ALL.map(|inputs| value(&with(PAPER, inputs), best));
        let [ours, over_cheapest] = [best, None].map(|baseline| value(&with(OURS, Inputs::Corrected), baseline));
        all.push(Comparison { what, is_share, published, predicted, against_best, ours, over_cheapest });
    };
    for published in MECHANISMS {
        let (name, m) = (published.name, published.mechanism);
        for (of, value) in WHOLE.into_iter().zip(published.whole) {
            let average = |s: &Selection, baseline: Option<Configuration>| {
                Average::of_ratios(summary, |summary, p| match baseline {
                    Some(baseline) => summary.whole(s, p, of, baseline),
                    None => summary.over_cheapest(s, p, of),
                })
            };
            add(format!("{name}: whole programs, {}", of.title()), false, value, &average, m);
        }
        let delayed = Configuration::Delayed;
        let regions = |s: &Selection, baseline: Option<Configuration>| {
            let baseline = baseline?;
            Average::of_ratios(summary, |summary, p| summary.region(s, p, delayed, baseline))
        };
        add(format!("{name}: regions, {}", delayed.title()), false, published.region, &regions, m);
        let share = |s: &Selection, baseline: Option<Configuration>| {
            let baseline = baseline?;
            summary.average(|summary, p| summary.share_of(s, p, baseline)).map(Average::of)
        };
        add(format!("{name}: share of crash consistency"), true, published.share, &share, m);
        let moved = |s: &Selection, baseline: Option<Configuration>| {
            let baseline = baseline?;
            summary.average(|summary, p| summary.movement(s, p, baseline)).map(Average::of)
        };
        add(format!("{name}: data movement in it"), true, published.movement, &moved, m);
        let parallel = |s: &Selection, baseline: Option<Configuration>| {
            baseline?;
            summary.average(|summary, p| summary.parallel(s, p, Configuration::Card)).map(Average::of)
        };
        add(format!("{name}: parallel share"), true, published.parallel, &parallel, m);
    }
    let tatp = |s: &Selection, baseline: Option<Configuration>| {
        summary.region(s, Program::Tatp, Configuration::Card, baseline?).map(Average::of)
    };
    add("logging: regions of TATP, one device".into(), false, TATP_REGION, &tatp, Mechanism::Undo);
    all
}

/// The tables as Markdown, for which the micro-benchmarks are run, and how fast the simulator was.
///
/// # Errors
/// If a profile is wrong, or a micro-benchmark fails.
pub fn text(records: &[Record], recoveries: &[Recoveries]) -> Result<String> {
    let summary = Summary::new(records);
    let mut text = String::from(
        "All times are simulated: the host model and the transaction-level card with the profiles' values, or the card's RTL where it says RTL cycles; nothing was measured on a card.\n",
    );
    writeln!(text, "{BASELINE}")?;
    for table in tables(&summary, recoveries)? {
        write!(text, "\n{}:\n\n{}", table.title, table.markdown())?;
    }
    let on_rtl = super::beside_the_model(records);
    if !on_rtl.rows.is_empty() {
        write!(text, "\n{}:\n\n{}", on_rtl.title, on_rtl.markdown())?;
    }
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
    writeln!(text, "\n{}", speed(records))?;
    Ok(text)
}

/// How fast the simulator was, over all results of the model: by processor time, which does not depend on what else the machine had to do.
pub fn speed(records: &[Record]) -> String {
    let records: Vec<&Record> = records.iter().filter(|record| record.case.device.is_model()).collect();
    let sum = |value: fn(&Record) -> f64| records.iter().copied().map(value).sum::<f64>();
    let (simulated_ns, cpu_s) = (sum(|record| record.outcome.ns), sum(|record| record.cpu_s));
    let transactions = sum(|record| record.outcome.transactions as f64);
    format!(
        "The simulator: {} cases, {transactions:.0} transactions, {:.0} ms of simulated time, in {cpu_s:.0} s of processor time, making and checking of pools included: \
         {:.0} transactions and {:.0} us a second of one processor.",
        records.len(),
        simulated_ns / 1e6,
        transactions / cpu_s,
        simulated_ns / 1e3 / cpu_s,
    )
}

/// The comparison as a section of the page.
pub fn section(summary: &Summary) -> Markup {
    html! {
        section id="published" {
            h2 { "Predictions beside what the paper publishes" }
            p {
                "Each deviation is printed as it is; nothing was tuned to these figures. " (BASELINE) " The best CPU path of this library logs all ranges under one fence and is as durable."
            }
            (predictions(summary).html())
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
