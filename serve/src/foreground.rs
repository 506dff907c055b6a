//! Serving until a signal, or until the pool can go on no more.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nearpm::Error;
use sd_notify::NotifyState;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::fault::system;
use crate::options::Options;
use crate::server::Server;
use crate::service::Service;
use crate::{start_memcached, start_redis};

/// Time between two looks for a signal.
const LOOK: Duration = Duration::from_millis(50);

/// Protocols.
#[derive(clap::Subcommand)]
pub enum ServeCommand {
    /// Redis's protocol (RESP2 and RESP3)
    Redis(Options),
    /// memcached's protocol (text and meta)
    Memcached(Options),
}

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// What kept the server from starting, what ended it, what its end met.
pub fn serve(command: ServeCommand) -> Result<(), Error> {
    let (ServeCommand::Redis(options) | ServeCommand::Memcached(options)) = &command;
    // A program that has a logger of its own keeps it.
    let _ = env_logger::Builder::new().filter_level(options.log_level).try_init();
    match command {
        ServeCommand::Redis(options) => until_a_signal(|| start_redis(options)),
        ServeCommand::Memcached(options) => until_a_signal(|| start_memcached(options)),
    }
}

/// Tells systemd, if it has started the server and wants to know (`Type=notify`).
fn tell_systemd(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        log::warn!("systemd was not told: {error}");
    }
}

fn until_a_signal<S: Service>(start: impl FnOnce() -> Result<Server<S>, Error>) -> Result<(), Error> {
    let asked = Arc::new(AtomicBool::new(false));
    let register = |signal| signal_hook::flag::register(signal, asked.clone());
    for signal in [SIGTERM, SIGINT] {
        register(signal).map_err(|error: io::Error| system("listen for signals", error))?;
    }
    let server = start()?;
    // On a line of its own, for programs that wait for it and for the port.
    println!("ready at {}", server.address());
    log::info!("ready at {}", server.address());
    tell_systemd(&[NotifyState::Ready]);
    let failed = loop {
        if asked.load(Ordering::Acquire) {
            break None;
        }
        if let Some(error) = server.failed(LOOK) {
            break Some(error);
        }
    };
    log::info!("stopping");
    tell_systemd(&[NotifyState::Stopping]);
    let stopped = server.stop();
    match failed {
        Some(error) => Err(error),
        None => stopped,
    }
}
