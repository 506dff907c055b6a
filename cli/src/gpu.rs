//! `nearpm gpu`: programs of a GPU that persist, by `nearpm-gpmbench`; `nearpm sbrp`: their persistency, by `nearpm-sbrp`.

use std::process::ExitCode;

use anyhow::Result;
pub use nearpm_gpmbench::command::GpuCommand;

/// Runs the command.
pub fn command(command: &GpuCommand) -> Result<ExitCode> {
    let sound = nearpm_gpmbench::command::command(command, &["gpu", "bench"])?;
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs a command of `nearpm sbrp`.
pub fn persistency(command: &nearpm_sbrp::command::SbrpCommand) -> Result<ExitCode> {
    let sound = nearpm_sbrp::command::command(command)?;
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
