//! `nearpm bench pmdk`: PMDK and what stands in for it, on this machine.

use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use nearpm_bench::case::Selection;
use nearpm_bench::programs::Programs;
use nearpm_bench::{pmdk, report};

use nearpm_text::Table;

/// Arguments of `nearpm bench pmdk`.
#[derive(Args, Clone, Debug)]
pub struct PmdkArguments {
    /// Folder of the libpmemobj.so.1 that is to replace PMDK's; without it PMDK and the floor are
    /// measured
    #[arg(long, value_name = "DIR")]
    lib: Option<PathBuf>,
    /// Measure the library of `--lib` in place as well, in the same rounds
    #[arg(long, requires = "lib")]
    in_place: bool,
    /// Folder of PMDK's libpmemobj.so.1 [default: the installed one]
    #[arg(long, value_name = "DIR")]
    pmdk: Option<PathBuf>,
    /// Build the programs in this folder, for a machine without a compiler, and measure nothing
    #[arg(long, value_name = "DIR", conflicts_with = "built")]
    build: Option<PathBuf>,
    /// Programs that `--build` has built in this folder
    #[arg(long, value_name = "DIR")]
    built: Option<PathBuf>,
    /// Rounds of each case, after one that warms up
    #[arg(long, default_value_t = 7)]
    pairs: usize,
    /// Insertions into each map; the least is also that of the other programs
    #[arg(long, value_delimiter = ',', default_value = "10000,100000", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    ops: Vec<u64>,
    /// Programs: btree, rbtree, skiplist, hashmap, adds, alloc, persists, calls, session, threads
    /// [default: all]
    #[arg(long, value_delimiter = ',', value_parser = selection)]
    programs: Vec<Selection>,
    /// Folder on a disk, for pools that are made durable by msync
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
    /// Folder for the other pools [default: a tmpfs]
    #[arg(long, value_name = "DIR")]
    pools: Option<PathBuf>,
    /// Time that is shown of one thread: on a machine with other work processor time is the fair
    /// one
    #[arg(long, value_enum, default_value = "wall")]
    clock: ClockChoice,
    /// Write every sample to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// How `--clock` is said.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum ClockChoice {
    /// What a user waits for
    Wall,
    /// What processors were busy for, all threads together
    Processor,
}

fn selection(name: &str) -> Result<Selection> {
    Selection::named(name).ok_or_else(|| {
        let names: Vec<&str> = Selection::all().into_iter().map(Selection::name).collect();
        anyhow!("there is no program {name}, only {}", names.join(", "))
    })
}

/// Runs the command.
pub fn command(arguments: &PmdkArguments) -> Result<()> {
    if let Some(folder) = &arguments.build {
        return Programs::build_in(folder).map(drop);
    }
    let selection = if arguments.programs.is_empty() { Selection::all() } else { arguments.programs.clone() };
    let options = pmdk::Options {
        library: arguments.lib.clone(),
        in_place: arguments.in_place,
        pmdk: arguments.pmdk.clone(),
        built: arguments.built.clone(),
        pairs: arguments.pairs,
        ops: arguments.ops.clone(),
        selection,
        files: arguments.files.clone(),
        pools: arguments.pools.clone(),
        clock: match arguments.clock {
            ClockChoice::Wall => pmdk::Clock::Wall,
            ClockChoice::Processor => pmdk::Clock::Processor,
        },
    };
    // Opened first: a path that cannot be written is an error at once, not after minutes.
    let json = match &arguments.json {
        None => None,
        Some(path) => Some(File::create(path).with_context(|| format!("{} cannot be written", path.display()))?),
    };
    let bar = ProgressBar::new_spinner();
    let progress = |what: &str| {
        // A spinner is for terminals; in a log each step is a line.
        if bar.is_hidden() {
            eprintln!("    {what}");
        }
        bar.set_message(what.to_string());
    };
    let measured = pmdk::run(&options, &progress);
    bar.finish_and_clear();
    let measured = measured?;
    print(&measured);
    if let Some(file) = json {
        serde_json::to_writer_pretty(file, &measured).context("the samples cannot be written")?;
    }
    Ok(())
}

fn print(measured: &pmdk::Report) {
    println!("{}", report::origin(measured));
    for section in report::sections(measured) {
        let mut table = Table::new(&section.headings);
        section.rows.into_iter().for_each(|row| table.row(row));
        println!("{}\n\n{table}", section.title);
    }
    if measured.counted.is_none() {
        println!("Fences and lines were NOT counted: this system does not let a process trace its children (ptrace).");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_none_is_named_with_those_that_are() {
        let error = selection("ctree").expect_err("there is no such program").to_string();
        assert_eq!(
            error,
            "there is no program ctree, only btree, rbtree, skiplist, hashmap, adds, alloc, persists, calls, session, threads"
        );
        assert_eq!(selection("threads").expect("a program"), Selection::Threads);
    }
}
