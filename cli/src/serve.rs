//! `nearpm serve`: the servers; `nearpm ycsb`: a client that measures them.

use nearpm_serve::ServeCommand;

/// Serves until a signal ends it (SIGTERM, SIGINT).
pub fn command(command: ServeCommand) -> anyhow::Result<()> {
    Ok(nearpm_serve::serve(command)?)
}

/// Measures a server.
pub fn ycsb(options: &nearpm_ycsb::Options) -> anyhow::Result<()> {
    Ok(nearpm_ycsb::command(options)?)
}
