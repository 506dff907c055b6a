//! `nearpm gpu`: programs of a GPU that persist. What the verbs do is done by `nearpm-gpmbench`.

use std::process::ExitCode;

use anyhow::Result;
pub use nearpm_gpmbench::command::GpuCommand;

/// Runs the command.
pub fn command(command: &GpuCommand) -> Result<ExitCode> {
    let sound = nearpm_gpmbench::command::command(command, &["gpu", "bench"])?;
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
