//! `nearpm serve`: the servers.

use nearpm_serve::ServeCommand;

/// Serves until a signal ends it (SIGTERM, SIGINT).
pub fn command(command: ServeCommand) -> anyhow::Result<()> {
    Ok(nearpm_serve::serve(command)?)
}
