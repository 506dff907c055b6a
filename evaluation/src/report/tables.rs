//! Tables of results: in the text of `nearpm bench`, on the page, and in `docs/evaluation.md`,
//! which a test holds to the stored results of the quick form.

use anyhow::Result;
use nearpm::Mechanism;
use nearpm_sim::microbenchmark::{self, PUBLISHED};
use nearpm_text::size;
use nearpm_workloads::programs::Program;

use super::beyond::{LOG_BYTES, log_rate};
use super::columns;
use super::comparisons::{Average, Comparison, comparisons};
use super::profile;
use super::table::{MISSING, Table, head, short, whole};
use crate::case::Configuration;
use crate::copies::LOGS;
use crate::meter::Kind;
use crate::plan::{OURS, PAPER, UNIT_STEPS};
use crate::recovery::{POOLS, Point, Recoveries, WORK};
use crate::summary::{Mean, Selection, Summary};

/// This project's card at its clocks, the fastest first.
const CLOCKS: [&str; 3] = [OURS, "vcu118-250", "vcu118-200"];
/// Copies of a size in the micro-benchmark of the aims.
const COPIES: u64 = 100;
/// Aim of whole programs: so many percent of their ceiling.
const OF_CEILING: f64 = 80.0;
/// What is said of an aim that is not reached.
const MISSED: &str = "**missed**";

/// Every table.
///
/// # Errors
/// If a profile is wrong, or a micro-benchmark fails.
pub fn tables(summary: &Summary, recoveries: &[Recoveries]) -> Result<Vec<Table>> {
    let mut all = vec![
        calibration()?,
        super::copies()?,
        predictions(summary),
        programs(summary),
        programs_on_this_card(summary),
        columns::cheapest(summary),
        whereabouts(summary),
        aims()?,
        ceilings(summary),
        units()?,
        recovery_by_work(recoveries),
        recovery_by_pool(recoveries),
    ];
    all.extend(columns::by_path(summary));
    Ok(all)
}

/// A mean, with its deviation where there is one.
fn mean(Mean { value, deviation }: Mean, unit: &str) -> String {
    match deviation {
        Some(deviation) => format!("{value:.2} ± {deviation:.2}{unit}"),
        None if unit.is_empty() => format!("{value:.2}"),
        None => format!("{value:.1}{unit}"),
    }
}

/// An average: the mean, and in brackets the geometric one.
fn both_means(Average { mean: of, geometric }: Average, unit: &str) -> String {
    let geometric = geometric.map_or(String::new(), |Mean { value, .. }| format!(" ({value:.2})"));
    mean(of, unit) + &geometric
}

/// The points that the paper's profile is calibrated on.
fn calibration() -> Result<Table> {
    let paper = profile(PAPER)?;
    let points =
        microbenchmark::run(&paper, &microbenchmark::model(&paper), &PUBLISHED.map(|(bytes, _)| bytes), COPIES)?;
    let row = |((bytes, published), point): (_, &microbenchmark::Point)| {
        vec![size(u64::from(bytes)), format!("{published}"), short(point.speed_up())]
    };
    Ok(Table {
        name: "calibration",
        title: "The two points that the paper's profile is calibrated on",
        head: head(["copy, waiting for each", "paper", PAPER]),
        rows: PUBLISHED.into_iter().zip(&points).map(row).collect(),
    })
}

/// What the paper publishes beside what the model makes of it.
pub fn predictions(summary: &Summary) -> Table {
    let row = |c: Comparison| {
        let unit = if c.is_share { " %" } else { "" };
        let cell = |value: Option<Average>| value.map_or(MISSING.into(), |value| both_means(value, unit));
        let deviation = c.deviation().map_or(MISSING.into(), |percent| format!("{percent:+.0} %"));
        let [corrected, released] = c.predicted.map(cell);
        let [over_best, released_over_best] = c.against_best.map(cell);
        let published = mean(Mean { value: c.published, deviation: None }, unit);
        vec![c.what.clone(), published, corrected, deviation, released, over_best, released_over_best, cell(c.ours)]
            .into_iter()
            .chain([c.over_cheapest.map_or("-".into(), |value| both_means(value, unit))])
            .collect()
    };
    Table {
        name: "predictions",
        title: "Predictions beside what the paper publishes",
        head: head([
            "mean over nine programs (geometric mean)",
            "paper",
            "model, paper's profile and reconstructed baseline",
            "deviation",
            "with released inputs",
            "over the best CPU path",
            "over it with released inputs",
            "this card over it",
            "this card over the cheapest CPU mechanism",
        ]),
        rows: comparisons(summary).into_iter().map(row).collect(),
    }
}

/// One device with the paper's profile, by program: over the reconstructed baseline, and over the
/// best path on the processor.
fn programs(summary: &Summary) -> Table {
    let cell = |over: [Option<Mean>; 2]| over.map(|value| value.map_or("-".into(), |m| short(m.value))).join(" / ");
    let row = |mechanism: Mechanism| {
        let s = Selection::new(PAPER, mechanism);
        let over = |base| {
            let s = s.clone();
            move |summary: &Summary, program| summary.whole(&s, program, Configuration::Card, base)
        };
        let (paper, best) = (over(Configuration::PaperCpu), over(Configuration::Cpu));
        let of = |program| cell([paper(summary, program), best(summary, program)]);
        let average = cell([summary.average(&paper), summary.average(&best)]);
        let geometric = cell([summary.geometric(&paper), summary.geometric(&best)]);
        [mechanism.name().to_owned(), average, geometric].into_iter().chain(Program::ALL.map(of)).collect()
    };
    Table {
        name: "programs",
        title: "One device with the paper's profile, over the reconstructed baseline / over the best CPU path",
        head: head(["", "mean", "geometric mean"].into_iter().chain(Program::ALL.map(Program::name))),
        rows: Mechanism::ALL.map(row).to_vec(),
    }
}

/// This project's card, by program: over the best path on the processor.
fn programs_on_this_card(summary: &Summary) -> Table {
    let cell = |value: Option<Mean>| value.map_or("-".into(), |value| mean(value, ""));
    let row = |mechanism: Mechanism| {
        let s = Selection::new(OURS, mechanism);
        let over = |summary: &Summary, program| summary.whole(&s, program, Configuration::Card, Configuration::Cpu);
        let averages = [cell(summary.average(over)), cell(summary.geometric(over))];
        let each = Program::ALL.map(|p| cell(over(summary, p)));
        [mechanism.name().to_owned()].into_iter().chain(averages).chain(each).collect()
    };
    Table {
        name: "programs on this card",
        title: "One device of this project at 300 MHz, over the best CPU path",
        head: head(["", "mean", "geometric mean"].into_iter().chain(Program::ALL.map(Program::name))),
        rows: Mechanism::ALL.map(row).to_vec(),
    }
}

/// Where each nanosecond of a transaction goes with this project's card: means over the programs.
fn whereabouts(summary: &Summary) -> Table {
    let row = |(mechanism, of): (Mechanism, Configuration)| {
        let s = Selection::new(OURS, mechanism);
        let part = |kind: Kind| {
            let average = summary.average(|summary, program| {
                let parts = summary.breakdown(&s, program, of)?;
                let (_, value) = parts.into_iter().find(|(name, _)| name == kind.name())?;
                Some(Mean { value, deviation: None })
            });
            average.map(|mean| mean.value)
        };
        let parts = Kind::ALL.map(part);
        let all = parts.iter().copied().sum::<Option<f64>>();
        let cells = parts.into_iter().chain([all]).map(|ns| ns.map_or("-".into(), whole));
        let label = match of {
            Configuration::Bare => of.title().to_owned(),
            _ => format!("{}, {}", mechanism.name(), of.title()),
        };
        [label].into_iter().chain(cells).collect()
    };
    let both = |mechanism| [Configuration::Cpu, Configuration::Card].map(|of| (mechanism, of));
    // Without crash consistency there is no mechanism.
    let floor = (Mechanism::Undo, Configuration::Bare);
    Table {
        name: "whereabouts",
        title: "Where a transaction's time goes with this project's card at 300 MHz, mean over the nine programs, ns",
        head: head([""].into_iter().chain(Kind::ALL.map(Kind::name)).chain(["all"])),
        rows: [floor].into_iter().chain(Mechanism::ALL.into_iter().flat_map(both)).map(row).collect(),
    }
}

/// How far whole programs come on a card of this project.
struct Reached {
    /// How much faster than the best path on the processor they would be without crash consistency:
    /// what Amdahl's law allows.
    ceiling: f64,
    /// Share of that which they reach, in percent.
    of_ceiling: f64,
    /// How much faster they would be if only the library's instructions were left of it.
    with_instructions: f64,
    /// Share of that which they reach, in percent.
    of_instructions: f64,
}

impl Reached {
    /// Averages over the programs.
    fn new(summary: &Summary, name: &str, mechanism: Mechanism) -> Option<Reached> {
        let s = Selection::new(name, mechanism);
        let over = |summary: &Summary, program, of| summary.whole(&s, program, of, Configuration::Cpu);
        let ceiling = |summary: &Summary, program| over(summary, program, Configuration::Bare);
        let instructions =
            |summary: &Summary, program| summary.whole_with_instructions(&s, program, Configuration::Cpu);
        type Limit<'l> = &'l dyn Fn(&Summary, Program) -> Option<Mean>;
        let average = |limit: Limit<'_>| Some(summary.average(limit)?.value);
        let reached = |limit: Limit<'_>| {
            average(&|summary, program| {
                let mut part = over(summary, program, Configuration::Card)?;
                part.value *= 100.0 / limit(summary, program)?.value;
                Some(part)
            })
        };
        Some(Reached {
            ceiling: average(&ceiling)?,
            of_ceiling: reached(&ceiling)?,
            with_instructions: average(&instructions)?,
            of_instructions: reached(&instructions)?,
        })
    }

    /// What is said of the ceiling, for which there is an aim, and of what instructions leave of
    /// it.
    fn cells(&self) -> [String; 4] {
        let percent = |share: f64| format!("{share:.0} %");
        [
            short(self.ceiling),
            aimed(percent(self.of_ceiling), self.of_ceiling >= OF_CEILING),
            short(self.with_instructions),
            percent(self.of_instructions),
        ]
    }
}

/// What is said of a value that should not be on the wrong side of an aim.
fn aimed(text: String, is_reached: bool) -> String {
    if is_reached { text } else { format!("{text}, {MISSED}") }
}

/// Aims of this project's card by itself, with what it reaches.
fn aims() -> Result<Table> {
    let mut rows = vec![
        head(["waiting copy of 64 B at least 1.4"]),
        head(["waiting copy of 4 KiB at least 6"]),
        head(["waiting copy of 16 KiB at least 10"]),
        head(["asynchronous log of 64 B at most 100 ns, fence included"]),
    ];
    for name in CLOCKS {
        let profile = profile(name)?;
        let copies = microbenchmark::run(&profile, &microbenchmark::model(&profile), &[64, 4096, 16384], COPIES)?;
        let copies = copies.iter().zip([1.4, 6.0, 10.0]).map(|(point, aim)| {
            let load = aimed(format!("{} by a load", short(point.speed_up())), point.speed_up() >= aim);
            let by_record = point.speed_up_by_record();
            format!("{load}; {}", aimed(format!("{} by the record", short(by_record)), by_record >= aim))
        });
        let log_ns = microbenchmark::asynchronous_log(&profile, &microbenchmark::model(&profile), 64, LOGS)?;
        let log = aimed(format!("{log_ns:.0} ns"), log_ns <= 100.0);
        rows.iter_mut().zip(copies.chain([log])).for_each(|(row, cell)| row.push(cell));
    }
    Ok(Table {
        name: "aims",
        title: "Aims with this project's card",
        head: head(["aim", "300 MHz", "250 MHz", "200 MHz"]),
        rows,
    })
}

/// How far whole programs come on this project's card, at the clocks at which all of them were run.
fn ceilings(summary: &Summary) -> Table {
    let row = |(name, mechanism): (&str, Mechanism)| {
        let cells = Reached::new(summary, name, mechanism)?.cells();
        Some([format!("{}, {name}", mechanism.name())].into_iter().chain(cells).collect())
    };
    let all = CLOCKS.into_iter().flat_map(|name| Mechanism::ALL.map(|mechanism| (name, mechanism)));
    Table {
        name: "ceilings",
        title: "Whole programs on this project's card, averages: aim 80 % of Amdahl's ceiling",
        head: head([
            "",
            "Amdahl's ceiling, over the best CPU path",
            "reached of it",
            "what the library's instructions leave of it",
            "reached of that",
        ]),
        rows: all.filter_map(row).collect(),
    }
}

/// Rates of a card that is never idle.
fn units() -> Result<Table> {
    let mut rows = Vec::new();
    for name in [OURS, PAPER] {
        let profile = profile(name)?;
        for bytes in LOG_BYTES {
            let rate = |units| short(log_rate(&profile, units, bytes));
            let label = format!("{name}, {}", size(u64::from(bytes)));
            rows.push([label].into_iter().chain(UNIT_STEPS.map(rate)).collect());
        }
    }
    Ok(Table {
        name: "units",
        title: "Undo logs of a card that is never idle, million a second",
        head: head(
            [""].into_iter()
                .map(str::to_owned)
                .chain(UNIT_STEPS.map(|n| format!("{n} unit{}", if n == 1 { "" } else { "s" }))),
        ),
        rows,
    })
}

/// Times of recoveries, by what was varied.
fn recovery(recoveries: &[Recoveries], points: fn(&Recoveries) -> &[Point]) -> Vec<Vec<String>> {
    let row = |of: &Recoveries| {
        let (card, times) =
            (points(of).iter().map(|p| p.card_ns / 1e3), points(of).iter().map(|p| whole(p.ns() / 1e3)));
        let most = card.fold(0.0, f64::max);
        [of.mechanism.name().to_owned()].into_iter().chain(times).chain([format!("{most:.0}")]).collect()
    };
    recoveries.iter().map(row).collect()
}

fn recovery_head(first: &str, sizes: &[u64]) -> Vec<String> {
    head(
        [first.to_owned()]
            .into_iter()
            .chain(sizes.iter().map(|bytes| size(*bytes)))
            .chain(["the card's part, at most".into()]),
    )
}

fn recovery_by_work(recoveries: &[Recoveries]) -> Table {
    Table {
        name: "recovery-work",
        title: "Recovery of a pool of 64 MiB by what was under way, us",
        head: recovery_head("under way, us", &WORK),
        rows: recovery(recoveries, |of| &of.by_work),
    }
}

fn recovery_by_pool(recoveries: &[Recoveries]) -> Table {
    Table {
        name: "recovery-pool",
        title: "Recovery by the pool, with 64 KiB under way, us",
        head: recovery_head("pool, us", &POOLS),
        rows: recovery(recoveries, |of| &of.by_pool),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::{POOL_BYTES, WORK_BYTES};

    #[test]
    fn numbers_are_as_long_as_they_help() {
        assert_eq!([7.4, 999.6, 1234567.0].map(whole), ["7", "1 000", "1 234 567"]);
        assert_eq!([1.006, 9.994, 9.996, 84.04].map(short), ["1.01", "9.99", "10.0", "84.0"]);
        assert_eq!(aimed("1.35".into(), false), "1.35, **missed**");
    }

    #[test]
    fn columns_that_were_not_run_are_left_out() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = vec![row(["1", MISSING, "2"]), row([MISSING, MISSING, "3"])];
        let table = Table { name: "", title: "", head: row(["a", "b", "c"]), rows }.of_what_was_run();
        assert_eq!(table.markdown(), format!("| a | c |\n|---|---|\n| 1 | 2 |\n| {MISSING} | 3 |\n"));
        let empty = Table { rows: Vec::new(), ..table };
        assert_eq!(empty.clone().of_what_was_run(), empty);
    }

    #[test]
    fn titles_name_the_sizes_that_were_run() {
        assert!(recovery_by_work(&[]).title.contains(&size(POOL_BYTES)));
        assert!(recovery_by_pool(&[]).title.contains(&size(WORK_BYTES)));
    }
}
