//! Starting ranks by `mpiexec`.

use std::ffi::OsStr;
use std::process::Command;

/// What launchers of MPI tell each process that they start: those of MPICH, of Open MPI and of
/// PMIx.
const TOLD: [&str; 3] = ["PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"];

/// Whether a launcher of MPI has started this process.
pub fn is_rank() -> bool {
    TOLD.iter().any(|name| std::env::var_os(name).is_some())
}

/// The command that starts a program as so many ranks. `MPIEXEC` names another launcher than
/// `mpiexec`.
pub fn command(ranks: usize, program: &OsStr) -> Command {
    let launcher = std::env::var_os("MPIEXEC").unwrap_or_else(|| "mpiexec".into());
    let mut command = Command::new(launcher);
    command.arg("-n").arg(ranks.to_string()).arg(program);
    command
}
