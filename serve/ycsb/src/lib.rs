//! A client of the Yahoo! Cloud Serving Benchmark (Cooper et al., SoCC 2010) for servers that speak
//! Redis's or memcached's protocol.
//!
//! `docs/serve.md` is the page for users.
//!
//! | module | holds |
//! |---|---|
//! | [`options`] | what the client is told when it is started |
//! | [`workload`] | workloads: kinds of operations, their shares, which records are asked for |
//! | `requests`, `inserted` | the requests of one client by seed, keys, records that several insert |
//! | [`record`] | what records hold, and how they are checked |
//! | `connection` | the two protocols |
//! | `client`, `pace` | one client: its operations and when they begin |
//! | [`phase`] | one workload by all clients |
//! | [`tally`], [`report`] | latencies, and what is told of them |

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod client;
mod connection;
mod inserted;
pub mod options;
mod pace;
pub mod phase;
pub mod record;
pub mod report;
mod requests;
mod scans;
pub mod tally;
pub mod workload;

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

pub use connection::{Connection, Failure, Protocol};
pub use options::Options;
use phase::Target;
pub use record::Layout;
pub use report::Report;
pub use requests::key;
pub use workload::{Kind, Workload};

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Options that contradict each other.
    #[error("{0}")]
    Options(String),
    /// The name of the server is not known.
    #[error("cannot find {name:?}: {cause}")]
    Address {
        /// What was given.
        name: String,
        /// Why.
        cause: std::io::Error,
    },
    /// Nobody listens, or does not answer.
    #[error("cannot connect to {protocol} at {address}: {cause}")]
    Connect {
        /// What it is to speak.
        protocol: &'static str,
        /// Where.
        address: SocketAddr,
        /// Why.
        cause: Failure,
    },
    /// Records are not there.
    #[error("record {number} of {records} is not there: insert them first, with --load or --workload load")]
    NotLoaded {
        /// The record that was looked for.
        number: u64,
        /// Records that are to be there.
        records: u64,
    },
    /// Records are not laid out as they are to be.
    #[error(
        "record {number} is not as it is to be ({cause}): insert the records with the same --layout, --fields and --field-bytes, here {layout:?}"
    )]
    Strange {
        /// The record that was looked for.
        number: u64,
        /// The layout that is asked for.
        layout: Layout,
        /// What was found.
        cause: String,
    },
    /// A connection was lost.
    #[error("{workload}: the connection to {address} was lost after {operations} operations: {cause}")]
    Lost {
        /// The server.
        address: SocketAddr,
        /// The workload.
        workload: &'static str,
        /// Operations that were answered before, of all clients.
        operations: u64,
        /// Why.
        cause: String,
    },
    /// Operations were refused, or read what was never written.
    #[error("{workload}: {errors} operations were refused, {wrong} found what was never written; the first: {first}")]
    Failed {
        /// The workload.
        workload: &'static str,
        /// Operations that were refused.
        errors: u64,
        /// Operations that read something wrong.
        wrong: u64,
        /// The first of them.
        first: String,
    },
    /// No operation has found its record.
    #[error("{workload}: no operation has found its record: insert the records first, with --load")]
    AllMissed {
        /// The workload.
        workload: &'static str,
    },
    /// A histogram cannot be written.
    #[error("cannot write the latencies to {path:?}: {cause}")]
    Histogram {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
}

fn address(name: &str) -> Result<SocketAddr, Error> {
    let failed = |cause| Error::Address { name: name.to_owned(), cause };
    let mut found = name.to_socket_addrs().map_err(failed)?;
    found.next().ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))
}

/// Runs what is asked for. What went wrong with single operations, or ended it early, is told by
/// [`Report::verdict`].
///
/// # Errors
/// It cannot begin: the options, the server, the records.
pub fn run(options: &Options) -> Result<Report, Error> {
    let (shape, phases, address) = (options.shape()?, options.phases()?, address(&options.connect)?);
    let target = Target { protocol: options.server, address, shape };
    let mut report = Report { options: options.clone(), address, shape, phases: Vec::new() };
    for (workload, length) in phases {
        if workload.needs_records() {
            target.look(options.records)?;
        }
        report.phases.push(phase::run(&target, options, workload, length)?);
        if report.verdict().is_err() {
            break;
        }
    }
    Ok(report)
}

/// Runs what is asked for and prints what came of it.
///
/// # Errors
/// It cannot begin, or something went wrong on the way.
pub fn command(options: &Options) -> Result<(), Error> {
    let report = run(options)?;
    if options.json {
        println!("{:#}", report.json());
    } else {
        print!("{}", report.text());
    }
    if let Some(path) = &options.histogram {
        report.write_histograms(path)?;
    }
    report.verdict()
}
