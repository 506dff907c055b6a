//! Connections to servers.

mod memcached;
mod redis;

use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;

use crate::record::{Fields, Layout};

/// How long a connection waits for the server.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Redis's protocol (RESP2)
    Redis,
    /// memcached's text protocol
    Memcached,
}

impl Protocol {
    /// Name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Redis => "redis",
            Protocol::Memcached => "memcached",
        }
    }
}

/// A request that was not answered as it should be.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The server refused it. The connection goes on.
    #[error("the server refuses: {0}")]
    Refused(String),
    /// The connection is lost, or cannot be followed any more.
    #[error("{0}")]
    Lost(String),
}

impl Failure {
    fn lost(error: &std::io::Error) -> Failure {
        Failure::Lost(match error.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
                format!("no answer within {} s", PATIENCE.as_secs())
            }
            std::io::ErrorKind::UnexpectedEof => "the server closed it".to_owned(),
            _ => error.to_string(),
        })
    }
}

/// A connection to a server, one request at a time.
pub trait Connection: Send {
    /// Writes a record, whether it is there or not.
    ///
    /// # Errors
    /// As all: the server refuses, or the connection is lost.
    fn insert(&mut self, key: &str, record: &Fields) -> Result<(), Failure>;

    /// Writes fields of a record that is there; false: it was not.
    fn update(&mut self, key: &str, fields: &Fields) -> Result<bool, Failure>;

    /// Reads a record. `None`: it is not there.
    fn read(&mut self, key: &str) -> Result<Option<Fields>, Failure>;

    /// Reads so many records in the order of their keys, from one on.
    fn scan(&mut self, _key: &str, _count: u64) -> Result<Vec<(String, Fields)>, Failure> {
        Err(Failure::Refused("it cannot scan".to_owned()))
    }
}

/// Connects.
///
/// # Errors
/// Nobody listens, or does not answer.
pub fn connect(protocol: Protocol, address: SocketAddr, layout: Layout) -> Result<Box<dyn Connection>, Failure> {
    Ok(match protocol {
        Protocol::Redis => Box::new(redis::Redis::connect(address, layout)?),
        Protocol::Memcached => Box::new(memcached::Memcached::connect(address)?),
    })
}
