//! Servers on persistent pools: Redis's protocol and memcached's, durable before they answer.
//!
//! `docs/serve.md` is the page for users.
//!
//! | module | holds |
//! |---|---|
//! | [`options`] | what a server is told when it is started |
//! | [`server`], `worker`, `connection` | threads, event loops, clients |
//! | `batch` | group commit |
//! | `effects` | what requests do besides changing the pool: answers to clients that wait, messages to others |
//! | [`foreground`] | serving until a signal |
//! | [`service`] | what a protocol is to the server |
//! | `store` | keys and values in a pool |
//! | [`redis`], [`memcached`] | the protocols |
//! | [`tally`] | what is counted |

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod batch;
mod connection;
mod effects;
pub mod foreground;
pub mod memcached;
pub mod options;
pub mod redis;
pub mod server;
pub mod service;
mod store;
pub mod tally;
mod worker;

use std::sync::Arc;

pub use foreground::{ServeCommand, serve};
use nearpm::Error;
use nearpm::direct::DirectPool;

pub use options::{Eviction, Level, Options, Survival};
pub use server::{Listener, Server};
use service::Service;
use tally::Totals;

/// Takes the address, then opens the pool, or creates it together with what the service keeps there: a server that cannot start
/// leaves no pool behind.
fn start<S: Service>(
    options: Options,
    service: impl Fn(&DirectPool, &Options, Arc<Totals>) -> Result<S, Error>,
) -> Result<Server<S>, Error> {
    let listener = Listener::bind(&options.listen)?;
    let totals = Arc::default();
    let serve = |pool: &DirectPool| service(pool, &options, Arc::clone(&totals));
    let fill = |pool: &DirectPool| serve(pool).map(drop);
    let pool = DirectPool::open_or_create_with(&options.pool, options.bytes, &options.direct(), fill)?;
    let service = serve(&pool)?;
    Server::start(service, pool, options, totals, listener)
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
