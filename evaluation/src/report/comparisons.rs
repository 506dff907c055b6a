//! Published averages, and what the model makes of each.

use nearpm::Mechanism;
use nearpm_workloads::programs::{Inputs, Program};

use crate::case::Configuration;
use crate::plan::{OURS, PAPER};
use crate::published::{MECHANISMS, TATP_REGION, WHOLE};
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
    /// The model with the paper's profile and its own baseline: the paper's inputs, and those of
    /// the released code. `None` where a run is missing.
    pub predicted: [Option<Average>; 2],
    /// The same against the library's best path on the processor, which is as durable under both.
    pub against_best: [Option<Average>; 2],
    /// This project's card against that.
    pub ours: Option<Average>,
    /// The same against the processor's cheapest mechanism that promises at least as much, where
    /// values are ratios to a baseline.
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

/// What is compared: a value of a selection over a baseline, which is the same mechanism in a
/// configuration or, without one, the processor's cheapest that promises as much.
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
