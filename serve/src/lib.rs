//! Servers on persistent pools: Redis's protocol and memcached's, durable before they answer.
//!
//! `docs/serve.md` is the page for users.
//!
//! | module | holds |
//! |---|---|
//! | [`options`] | what a server is told when it is started |
//! | [`server`], `shared`, `listener`, `worker`, `connection` | threads, what they share, event loops, clients |
//! | `stream` | TLS |
//! | `limits`, `metrics` | descriptors; what Prometheus fetches |
//! | `house` | expiry, synchronisation in the background |
//! | `batch` | group commit |
//! | `fault` | errors of the system |
//! | `effects` | what requests do besides changing the pool: answers to clients that wait, messages to others |
//! | [`foreground`] | serving until a signal |
//! | [`access`] | users, passwords, what each may do |
//! | [`service`] | what a protocol is to the server |
//! | `store` | keys and values in a pool |
//! | `glob` | patterns of names |
//! | [`redis`], [`memcached`] | the protocols |
//! | [`tally`] | what is counted |
//! | [`fuzzing`] | what holds of the parsers for every input |

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod access;
mod batch;
mod connection;
mod effects;
mod fault;
pub mod foreground;
pub mod fuzzing;
mod glob;
mod house;
mod limits;
mod listener;
pub mod memcached;
mod metrics;
pub mod options;
pub mod redis;
pub mod server;
pub mod service;
mod shared;
mod store;
mod stream;
pub mod tally;
mod worker;

use std::io;
use std::path::Path;
use std::sync::Arc;

pub use foreground::{ServeCommand, serve};
use nearpm::Error;
use nearpm::direct::DirectPool;

use access::Access;
use fault::system;
use listener::Listener;
pub use options::{Eviction, Level, Options, Survival};
pub use server::Server;
use server::Start;
use service::Service;
use tally::Totals;

/// Refuses what names nothing: who takes a command away relies on it, and a pool is made in a
/// folder that is there.
fn look_at_names<S: Service>(options: &Options) -> Result<(), Error> {
    let unknown = |what: String, why| Err(system(&what, io::Error::new(io::ErrorKind::NotFound, why)));
    if let Some((name, _)) = options.access.renamed.iter().find(|(name, _)| !S::has_command(name)) {
        return unknown(format!("rename the command {name:?}"), "there is no such command");
    }
    let folder = Path::new(&options.pool).parent().filter(|folder| !folder.as_os_str().is_empty());
    // A card's pool is named otherwise: `card:device/name`.
    match folder.filter(|folder| !options.pool.contains(':') && !folder.is_dir()) {
        Some(folder) => unknown(format!("look into {}", folder.display()), "there is no such folder"),
        None => Ok(()),
    }
}

/// Takes the address, then opens the pool, or creates it together with what the service keeps
/// there: a server that cannot start leaves no pool behind.
fn start<S: Service>(
    mut options: Options,
    service: impl Fn(&DirectPool, &Options, Arc<Totals>, Arc<Access>) -> Result<S, Error>,
) -> Result<Server<S>, Error> {
    look_at_names::<S>(&options)?;
    options.network.max_clients = limits::clients(options.network.max_clients);
    let access = Arc::new(Access::new(&options.access)?);
    let tls = stream::tls(&options.network)?;
    let metrics = options.metrics.as_deref().map(metrics::bind).transpose()?;
    let listener = Listener::bind(options.network.address(S::PORT)?)?;
    let totals = Arc::default();
    let serve = |pool: &DirectPool| service(pool, &options, Arc::clone(&totals), access.clone());
    let fill = |pool: &DirectPool| serve(pool).map(drop);
    let pool = DirectPool::open_or_create_with(&options.pool, options.bytes, &options.direct(), fill)?;
    let service = serve(&pool)?;
    Server::start(Start { service, pool, options, totals, access, tls }, listener, metrics)
}

/// Starts a server that speaks Redis's protocol.
///
/// # Errors
/// The pool cannot be opened, or holds something else; the address is taken.
pub fn start_redis(options: Options) -> Result<Server<redis::Redis>, Error> {
    start(options, redis::Redis::new)
}

/// Starts a server that speaks memcached's protocol.
///
/// # Errors
/// As [`start_redis`].
pub fn start_memcached(options: Options) -> Result<Server<memcached::Memcached>, Error> {
    start(options, memcached::Memcached::new)
}
