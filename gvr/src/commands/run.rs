//! Starting programs as ranks.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use clap::Args;

use super::backend::{Backend, run_by_mpi};
use crate::error::Result;
use crate::rma::shm;

#[derive(Args)]
pub struct RunArguments {
    /// Ranks
    #[arg(short = 'n', long, default_value_t = 2)]
    ranks: usize,
    /// What connects the ranks
    #[arg(long, value_enum, default_value_t = Backend::Shm)]
    backend: Backend,
    /// MiB of shared memory of each rank; with MPI the program says so itself
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    window_mib: u64,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

pub fn command(arguments: &RunArguments) -> Result<ExitCode> {
    if arguments.backend == Backend::Mpi {
        let (program, rest) = (&arguments.program[0], &arguments.program[1..]);
        return run_by_mpi(arguments.ranks, program, rest);
    }
    let ends = shm::launch_all(arguments.ranks, arguments.window_mib << 20, |_| {
        let mut command = Command::new(&arguments.program[0]);
        command.args(&arguments.program[1..]);
        command
    })?;
    for (rank, end) in ends.iter().enumerate().filter(|(_, end)| !end.success()) {
        eprintln!("rank {rank} of {}: {end}", arguments.ranks);
    }
    Ok(if ends.iter().all(std::process::ExitStatus::success) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
