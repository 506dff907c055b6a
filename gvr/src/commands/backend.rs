//! What connects the ranks of a command.

use std::ffi::{OsStr, OsString};
use std::process::{ExitCode, ExitStatus};

use clap::ValueEnum;

use crate::error::Result;
use crate::rma::shm;
use crate::world::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Backend {
    /// Shared memory of this machine
    Shm,
    /// MPI, where this program was built with it
    Mpi,
}

impl Backend {
    pub fn name(self) -> &'static str {
        match self {
            Backend::Shm => "shm",
            Backend::Mpi => "mpi",
        }
    }

    pub fn says(self) -> &'static str {
        match self {
            Backend::Shm => "shared memory",
            Backend::Mpi => "MPI, on one machine unless mpiexec was told of others",
        }
    }

    /// Bytes of memory of each rank, for a command that needs `bytes`, and more only for what it
    /// does not use: MPI takes all at once.
    pub fn window(self, bytes: u64) -> u64 {
        match self {
            Backend::Shm => 8 * bytes,
            Backend::Mpi => bytes,
        }
    }

    /// The world of this process as a rank, `None` if it is the one that starts them.
    pub fn launched(self, window: u64) -> Result<Option<World>> {
        match self {
            Backend::Shm => Ok(shm::launched()?.map(World::new)),
            Backend::Mpi => World::launched(window),
        }
    }

    /// Starts this program as ranks with the same arguments, and tells `ended` how each ended; of
    /// MPI's only `mpiexec` is known. Gives whether all did well.
    pub fn run(
        self,
        ranks: usize,
        window: u64,
        variables: &[(&str, String)],
        ended: impl Fn(&str, ExitStatus),
    ) -> Result<bool> {
        if self == Backend::Mpi {
            let again = super::again(variables)?;
            let program = again.get_program().to_owned();
            let arguments: Vec<OsString> = again.get_args().map(OsStr::to_owned).collect();
            let end = mpiexec(ranks, &program, &arguments, variables)?;
            ended("mpiexec", end);
            return Ok(end.success());
        }
        let ends = super::launch(ranks, window, variables)?.wait()?;
        ends.iter().enumerate().for_each(|(rank, end)| ended(&format!("rank {rank}"), *end));
        Ok(ends.iter().all(ExitStatus::success))
    }

    /// Starts this program as ranks, and ends as they do.
    pub fn launch_and_wait(self, ranks: usize, window: u64) -> Result<ExitCode> {
        let well = self.run(ranks, window, &[], |_, _| {})?;
        Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Starts another program as ranks of MPI, and ends as they do.
pub(super) fn run_by_mpi(ranks: usize, program: &OsStr, arguments: &[OsString]) -> Result<ExitCode> {
    let end = mpiexec(ranks, program, arguments, &[])?;
    Ok(if end.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(feature = "mpi")]
fn mpiexec(ranks: usize, program: &OsStr, arguments: &[OsString], variables: &[(&str, String)]) -> Result<ExitStatus> {
    use crate::error::Error;
    let mut command = crate::rma::mpi::command(ranks, program);
    command.args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
    let what = format!("start {} (install an MPI, or name its launcher by MPIEXEC)", command.get_program().display());
    command.status().map_err(Error::io(what))
}

#[cfg(not(feature = "mpi"))]
fn mpiexec(_: usize, _: &OsStr, _: &[OsString], _: &[(&str, String)]) -> Result<ExitStatus> {
    Err(crate::error::Error::option(
        "this program was built without MPI: install one and build with `--features mpi`, or take --backend shm",
    ))
}
