//! `nearpm gpu`: programs of a GPU that persist, by `nearpm-gpmbench` and `nearpm-gphashbench`;
//! `nearpm sbrp`: their persistency, by `nearpm-sbrp`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use nearpm_gphashbench::command::HashCommand;

/// What to do with GPUs and their persistent memory.
#[derive(Subcommand)]
pub enum GpuCommand {
    /// Programs with logs, batches and checkpoints
    #[command(flatten)]
    Programs(nearpm_gpmbench::command::GpuCommand),
    /// Hash tables in persistent memory: crash them on the interpreter, or measure a GPU
    #[command(subcommand)]
    Hash(HashCommand),
}

/// Runs the command.
pub fn command(command: &GpuCommand) -> Result<ExitCode> {
    let sound = match command {
        GpuCommand::Programs(command) => nearpm_gpmbench::command::command(command, &["gpu", "bench"])?,
        GpuCommand::Hash(command) => nearpm_gphashbench::command::command(command)?,
    };
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs a command of `nearpm sbrp`.
pub fn persistency(command: &nearpm_sbrp::command::SbrpCommand) -> Result<ExitCode> {
    let sound = nearpm_sbrp::command::command(command)?;
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
