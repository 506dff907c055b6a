//! `nearpm bench --native`: the programs on this processor.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use nearpm::{Mechanism, Survives};
use nearpm_bench::machine::{Machine, file_system, memory_folder};
use nearpm_bench::statistics::Figure;
use nearpm_evaluation::case::{Case, Configuration};
use nearpm_evaluation::natively::{self, Files, NAME, ORIGIN};
use nearpm_evaluation::place::{Place, Timing};
use nearpm_evaluation::plan::Scope;
use nearpm_evaluation::results::{Line, table_with};
use nearpm_workloads::programs::{Inputs, Program};

use super::COMMIT;
use crate::card::is_virtual_machine;
use crate::table::{Table, size};

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Folder of the pools, or the path of their file; a tmpfs where there is none.
    pub pool: Option<PathBuf>,
    /// What the pools survive. On a tmpfs, where `msync` does nothing, they are persistent memory where nothing is said, and elsewhere they survive power cuts.
    pub survives: Option<Survives>,
    /// Programs; all where there is none.
    pub programs: Vec<Program>,
    /// Mechanisms; all where there is none.
    pub mechanisms: Vec<Mechanism>,
    /// Tables, numbers of transactions, and seeds.
    pub scope: Scope,
    /// Transactions of each case, where not the scope's.
    pub transactions: Option<usize>,
    /// Rounds of each case, behind one that warms up.
    pub rounds: usize,
}

/// What happens meanwhile.
pub enum Event<'e> {
    /// So many cases will be run.
    Begins(usize),
    /// A case was run once, perhaps to warm up.
    Ran(&'e Timing),
    /// All rounds of a case were run.
    Measured(&'e Case, Figure),
}

/// What came of it.
pub struct Measured {
    /// For people.
    pub text: String,
    /// The table of comma-separated values.
    pub csv: String,
    /// What ended it early: the rest is of the programs before.
    pub failed: Option<anyhow::Error>,
}

/// Columns of the table behind those that every result has.
const FURTHER: [&str; 10] = [
    "machine",
    "file_system",
    "durable_by",
    "rounds",
    "least_ns",
    "most_ns",
    "over_bare",
    "fences",
    "lines_written_back",
    "processor_share",
];

/// A case with all its rounds.
struct Row {
    case: Case,
    ns: Figure,
    /// Against what the same round took without crash consistency.
    over_bare: Figure,
    /// Shares of the time in which the program had a processor, round by round.
    shares: Vec<f64>,
    fences: f64,
    lines: f64,
}

impl Row {
    /// The rows of cases that were run in turn, the first of them without crash consistency.
    fn all(timings: &[Vec<Timing>]) -> Result<Vec<Row>> {
        let samples = |timings: &[Timing]| timings.iter().map(|timing| timing.ns_per_transaction).collect::<Vec<f64>>();
        let bare = samples(timings.first().context("there is a floor")?);
        let row = |timings: &Vec<Timing>| {
            let last = timings.last().context("there is a round")?;
            let ns = samples(timings);
            Ok(Row {
                case: last.case.clone(),
                ns: Figure::of(&ns).context("there is a round")?,
                over_bare: Figure::of_ratios(&ns, &bare).context("there is a round")?,
                shares: timings.iter().map(|timing| timing.processor_ns / timing.ns_per_transaction).collect(),
                fences: last.each(last.fences),
                lines: last.each(last.lines),
            })
        };
        timings.iter().map(row).collect()
    }

    fn is_bare(&self) -> bool {
        self.case.configuration == Configuration::Bare
    }

    fn mechanism(&self) -> &'static str {
        if self.is_bare() { self.case.configuration.name() } else { self.case.mechanism.name() }
    }

    /// Part of the time that crash consistency takes.
    fn share(&self) -> f64 {
        1.0 - 1.0 / self.over_bare.median
    }
}

/// Runs it.
///
/// # Errors
/// If the place is none for pools, or has no room for the largest. A case that fails ends it early, and what was found before is kept.
pub fn run(plan: &Plan, tell: &mut dyn FnMut(Event<'_>)) -> Result<Measured> {
    let machine = Machine::here();
    let files = Files::at(&plan.pool.clone().map_or_else(memory_folder, Ok)?)?;
    let file_system = file_system(files.folder())?;
    let survives = plan.survives.unwrap_or(match file_system.as_str() {
        "tmpfs" => Survives::AsPersistentMemory,
        _ => Survives::PowerCut,
    });
    let start = Instant::now();
    let place = Place {
        name: NAME,
        location: &|_| files.location(),
        now_ns: &|| start.elapsed().as_nanos() as u64,
        room: u64::MAX,
        units: 0,
        survives,
        is_prepared: true,
    };
    let mechanisms = if plan.mechanisms.is_empty() { Mechanism::ALL.to_vec() } else { plan.mechanisms.clone() };
    let programs = if plan.programs.is_empty() { Program::ALL.to_vec() } else { plan.programs.clone() };
    let groups = natively::groups(&plan.scope, &programs, &mechanisms, plan.transactions);
    // The cases of a group have pools of one size.
    let sizes = groups.iter().filter_map(|group| Some(place.bytes(group.first()?)));
    let largest = sizes.max().context("nothing is left to run")?;
    let flush = files.try_out(largest, survives)?;
    tell(Event::Begins(groups.iter().map(Vec::len).sum()));
    let (mut rows, mut failed) = (Vec::new(), None);
    for group in &groups {
        match natively::in_turn(&place, group, plan.rounds, &mut |timing| tell(Event::Ran(timing))) {
            Ok(timings) => {
                let measured = Row::all(&timings)?;
                measured.iter().for_each(|row| tell(Event::Measured(&row.case, row.ns)));
                rows.extend(measured);
            }
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    let described = describe(&machine);
    let mut text = format!("Measured natively: {described}; program of commit {COMMIT}.\n");
    let load = machine.load.map_or("unknown".into(), |load| load.to_string());
    text += &format!("Load of the machine when it began: {load}.\n");
    text += &format!(
        "Pools in files on {file_system}, the largest of {}, durable by {}; no card. {} rounds behind one that warms up, in turn.\n",
        size(largest),
        flush.name(),
        plan.rounds
    );
    text += &tables(&rows, plan.scope.seeds);
    let lines = rows.iter().map(|row| {
        let line =
            Line { case: &row.case, commit: COMMIT, origin: ORIGIN, ns_per_transaction: row.ns.median, inside: None };
        let busy = Figure::of(&row.shares).map_or(0.0, |figure| figure.median);
        let numbers = [row.ns.min, row.ns.max, row.over_bare.median, row.fences, row.lines, busy];
        let [least, most, over_bare, fences, lines, busy] = numbers.map(|number| format!("{number:.3}"));
        let further = [
            described.clone(),
            file_system.clone(),
            flush.name().to_owned(),
            plan.rounds.to_string(),
            least,
            most,
            over_bare,
            fences,
            lines,
            busy,
        ];
        (line, further)
    });
    Ok(Measured { csv: table_with(FURTHER, lines), text, failed })
}

/// The machine in a line.
fn describe(machine: &Machine) -> String {
    let kind = if is_virtual_machine() { ", a virtual machine" } else { "" };
    format!("{}, {} processors, {}{kind}", machine.cpu, machine.processors, machine.kernel)
}

/// What was found, by inputs.
fn tables(rows: &[Row], seeds: u64) -> String {
    let shares: Vec<f64> = rows.iter().flat_map(|row| row.shares.iter().copied()).collect();
    let percent = |share: f64| (100.0 * share).round().min(100.0);
    let mut text = Figure::of(&shares).map_or(String::new(), |Figure { median, min, .. }| {
        format!("The program had a processor {} % of the time (least {} %).\n", percent(median), percent(min))
    });
    for inputs in Inputs::ALL {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.case.inputs == inputs).collect();
        if !rows.is_empty() {
            let name = inputs.name();
            text += &format!(
                "\nNanoseconds a transaction, {name} inputs: median (least..most).\n\n{}",
                times(&rows, seeds)
            );
        }
    }
    text
}

fn times(rows: &[&Row], seeds: u64) -> Table {
    let headings = ["program", "seed", "mechanism", "ns", "over bare", "share of it", "fences", "lines written back"];
    // With one seed nobody asks for it.
    let kept = |cells: Vec<String>| {
        let cells = cells.into_iter().enumerate().filter(|(column, _)| seeds > 1 || *column != 1);
        cells.map(|(_, cell)| cell).collect::<Vec<String>>()
    };
    let headings = kept(headings.map(str::to_owned).to_vec());
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<&str>>());
    for row in rows {
        let mut cells = vec![row.case.program.name().to_owned(), row.case.seed.to_string(), row.mechanism().to_owned()];
        cells.push(whole(row.ns));
        if row.is_bare() {
            cells.extend(["-", "-", "-", "-"].map(str::to_owned));
        } else {
            let Figure { median, min, max } = row.over_bare;
            cells.push(format!("{median:.2} ({min:.2}..{max:.2})"));
            cells.push(format!("{:.1} %", 100.0 * row.share()));
            cells.extend([row.fences, row.lines].map(|each| format!("{each:.2}")));
        }
        table.row(kept(cells));
    }
    for mechanism in Mechanism::ALL {
        let with: Vec<&&Row> = rows.iter().filter(|row| !row.is_bare() && row.case.mechanism == mechanism).collect();
        if with.len() < 2 {
            continue;
        }
        let mean = |of: fn(&Row) -> f64| with.iter().map(|row| of(row)).sum::<f64>() / with.len() as f64;
        let cells = ["average", "-", mechanism.name(), "-"].map(str::to_owned);
        let means = [format!("{:.2}", mean(|row| row.over_bare.median)), format!("{:.1} %", 100.0 * mean(Row::share))];
        let nothing = ["-", "-"].map(str::to_owned);
        table.row(kept(cells.into_iter().chain(means).chain(nothing).collect()));
    }
    table
}

/// Nanoseconds, with a digit behind the point where they are few.
fn whole(figure: Figure) -> String {
    let Figure { median, min, max } = figure;
    if median < 100.0 {
        format!("{median:.1} ({min:.1}..{max:.1})")
    } else {
        format!("{median:.0} ({min:.0}..{max:.0})")
    }
}

/// Runs it with progress, and prints what came of it.
pub fn command(plan: &Plan) -> Result<Measured> {
    let style =
        ProgressStyle::with_template("{msg:60!} [{bar:30}] {human_pos}/{human_len} {eta}").expect("it is right");
    let bar = ProgressBar::new(0).with_style(style.progress_chars("=> "));
    let (mut number, mut of) = (0, 0);
    let measured = run(plan, &mut |event| match event {
        Event::Begins(cases) => {
            of = cases;
            bar.set_length(cases as u64);
        }
        Event::Ran(timing) => bar.set_message(format!("{}: {:.0} ns", timing.case, timing.ns_per_transaction)),
        Event::Measured(case, ns) => {
            number += 1;
            bar.inc(1);
            // A bar is for terminals; in a log each case is a line.
            if bar.is_hidden() {
                eprintln!("{number} of {of}: {case}: {} ns", whole(ns));
            }
        }
    });
    bar.finish_and_clear();
    let measured = measured?;
    print!("{}", measured.text);
    Ok(measured)
}
