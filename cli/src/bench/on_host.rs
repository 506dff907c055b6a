//! `nearpm bench --native`: the programs on this processor.

use std::path::PathBuf;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use nearpm::{Mechanism, Survives};
use nearpm_bench::machine::{file_system, memory_folder};
use nearpm_evaluation::on_host::{self, Files, Row, Setting, csv};
use nearpm_evaluation::place::Place;
use nearpm_evaluation::plan::Scope;
use nearpm_evaluation::report;
use nearpm_workloads::programs::Program;

use super::COMMIT;
use crate::card::is_virtual_machine;
use nearpm_text::size;

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Folder of the pools, or the path of their file; a tmpfs where there is none.
    pub pool: Option<PathBuf>,
    /// What the pools survive. On a tmpfs, where `msync` does nothing, they are persistent memory
    /// where nothing is said, and elsewhere they survive power cuts.
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

/// What came of it.
pub struct Measured {
    /// The table of comma-separated values.
    pub csv: String,
    /// What ended it early: the rest is of the programs before.
    pub failed: Option<anyhow::Error>,
}

/// Runs it with progress, and prints what came of it.
///
/// # Errors
/// If the place is none for pools, or has no room for the largest. A case that fails ends it early,
/// and what was found before is kept.
pub fn command(plan: &Plan) -> Result<Measured> {
    let files = Files::at(&plan.pool.clone().map_or_else(memory_folder, Ok)?)?;
    let file_system = file_system(files.folder())?;
    let survives = plan.survives.unwrap_or(match file_system.as_str() {
        "tmpfs" => Survives::AsPersistentMemory,
        _ => Survives::PowerCut,
    });
    files.with_place(survives, |place| measure(plan, &files, &file_system, place))
}

fn measure(plan: &Plan, files: &Files, file_system: &str, place: &Place<'_>) -> Result<Measured> {
    let mechanisms = if plan.mechanisms.is_empty() { Mechanism::ALL.to_vec() } else { plan.mechanisms.clone() };
    let programs = if plan.programs.is_empty() { Program::ALL.to_vec() } else { plan.programs.clone() };
    let groups = on_host::groups(&plan.scope, &programs, &mechanisms, plan.transactions);
    // The cases of a group have pools of one size.
    let sizes = groups.iter().filter_map(|group| Some(place.bytes(group.first()?)));
    let largest = sizes.max().context("nothing is left to run")?;
    let flush = files.try_out(largest, place.survives)?;
    let setting = Setting::here(COMMIT, is_virtual_machine(), file_system, flush);
    eprintln!(
        "pools of up to {} in {} ({file_system}), durable by {}",
        size(largest),
        files.folder().display(),
        flush.name()
    );

    let runs = groups.iter().map(Vec::len).sum::<usize>() * (plan.rounds + 1);
    let style =
        ProgressStyle::with_template("{msg:60!} [{bar:30}] {human_pos}/{human_len} {eta}").expect("it is right");
    let bar = ProgressBar::new(runs as u64).with_style(style.progress_chars("=> "));
    let (mut rows, mut failed) = (Vec::new(), None);
    for (number, group) in groups.iter().enumerate() {
        let timings = on_host::in_turn(place, group, plan.rounds, &mut |timing| {
            bar.inc(1);
            bar.set_message(format!("{}: {:.0} ns", timing.case, timing.ns_per_transaction));
        });
        match timings {
            Ok(timings) => rows.extend(Row::all(&timings, &setting)?),
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
        // A bar is for terminals; in a log each program is a line.
        if bar.is_hidden() {
            eprintln!("{} of {}: {}, {}", number + 1, groups.len(), group[0].program.name(), group[0].inputs.name());
        }
    }
    bar.finish_and_clear();
    if !rows.is_empty() {
        println!("{}", report::described(&rows));
        report::on_host(&rows).iter().for_each(|table| print!("\n{}:\n\n{}", table.title, table.markdown()));
    }
    Ok(Measured { csv: csv(&rows)?, failed })
}
