//! `nearpm pool`: pools that no program has open. What the verbs do is done by the library
//! ([`nearpm::check`]); here it is asked for and printed.
//!
//! Exit status: 0 for a sound pool, 1 for an error, 3 for damage that was found (or left by a
//! repair). 2 is a wrong command line.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;

mod check;
mod copy;
mod create;
mod dump;
mod hex;
mod import;
mod info;
mod recover;
mod resize;
mod stats;

/// Status when damage was found.
const DAMAGED: u8 = 3;

/// A pool, and how to print what is found.
#[derive(Args)]
pub struct Target {
    /// The pool: a file, or card:NAME/POOL
    location: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What to do with a pool.
#[derive(Subcommand)]
pub enum PoolCommand {
    /// Make a new pool
    Create(create::CreateArguments),
    /// Say what a pool is, without changing a byte
    Info(Target),
    /// Look for damage; without changing a byte unless it is to be repaired
    Check(check::CheckArguments),
    /// Recover a pool, and do nothing else
    Recover(Target),
    /// Print the objects of a pool, or bytes of it as they are
    Dump(dump::DumpArguments),
    /// Print the state of the allocator
    Stats(Target),
    /// Copy a pool to a new one, also of another size
    Copy(copy::CopyArguments),
    /// Make a new pool of one that PMDK's libpmemobj wrote: its objects, type numbers, root, and
    /// the identifiers in them
    Import(import::ImportArguments),
    /// Make a pool larger or shorter, where it lies
    Resize(resize::ResizeArguments),
}

/// Runs the command.
pub fn command(command: &PoolCommand) -> Result<ExitCode> {
    match command {
        PoolCommand::Create(arguments) => create::command(arguments),
        PoolCommand::Info(target) => info::command(target),
        PoolCommand::Check(arguments) => check::command(arguments),
        PoolCommand::Recover(target) => recover::command(target),
        PoolCommand::Dump(arguments) => dump::command(arguments),
        PoolCommand::Stats(target) => stats::command(target),
        PoolCommand::Copy(arguments) => copy::command(arguments),
        PoolCommand::Import(arguments) => import::command(arguments),
        PoolCommand::Resize(arguments) => resize::command(arguments),
    }
}

/// Prints a result as JSON.
fn print_json(value: &impl Serialize) -> Result<()> {
    println!("{}", serde_json::to_string_pretty(value)?);
    Ok(())
}

/// One line of a description.
fn line(name: &str, value: impl std::fmt::Display) {
    println!("{name:<16} {value}");
}
