//! Servers on persistent pools: Redis's protocol and memcached's, durable before they answer.
//!
//! `docs/serve.md` is the page for users.
//!
//! | module | holds |
//! |---|---|
//! | [`options`] | what a server is told when it is started |
//! | [`server`], `worker`, `connection` | threads, event loops, clients |
//! | `batch` | group commit |
//! | [`foreground`] | serving until a signal |
//! | [`service`] | what a protocol is to the server |
//! | `store` | keys and values in a pool |
//! | [`redis`], [`memcached`] | the protocols |
//! | [`tally`] | what is counted |

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod batch;
mod connection;
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
pub use server::Server;

fn open(options: &Options) -> Result<DirectPool, Error> {
    DirectPool::open_or_create(&options.pool, options.bytes, &options.direct())
}

/// Starts a server that speaks Redis's protocol.
///
/// # Errors
/// The pool cannot be opened, or holds something else; the address is taken.
pub fn start_redis(options: Options) -> Result<Server<redis::Redis>, Error> {
    let (pool, totals) = (open(&options)?, Arc::default());
    let service = redis::Redis::new(&pool, &options, Arc::clone(&totals))?;
    Server::start(service, pool, options, totals)
}

/// Starts a server that speaks memcached's protocol.
///
/// # Errors
/// As [`start_redis`].
pub fn start_memcached(options: Options) -> Result<Server<memcached::Memcached>, Error> {
    let (pool, totals) = (open(&options)?, Arc::default());
    let service = memcached::Memcached::new(&pool, &options, Arc::clone(&totals))?;
    Server::start(service, pool, options, totals)
}
