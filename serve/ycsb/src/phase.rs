//! One workload, by all clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime};

use indicatif::{ProgressBar, ProgressStyle};

use crate::Error;
use crate::client::{Client, Limits, Shared};
use crate::connection::{Connection, Failure, Protocol, connect};
use crate::inserted::Inserted;
use crate::options::{Length, Options};
use crate::pace::Pace;
use crate::record::Shape;
use crate::requests::{Requests, key};
use crate::scans::Index;
use crate::tally::Tally;
use crate::workload::Workload;

/// Time between two looks at how far clients are.
const LOOK: Duration = Duration::from_millis(200);

/// The server that is asked.
pub struct Target {
    /// What it speaks.
    pub protocol: Protocol,
    /// Where it is.
    pub address: SocketAddr,
    /// How records lie in it.
    pub shape: Shape,
}

impl Target {
    /// Connects to it.
    ///
    /// # Errors
    /// Nobody listens, or does not answer.
    pub fn connect(&self) -> Result<Box<dyn Connection>, Error> {
        connect(self.protocol, self.address, self.shape.layout).map_err(|cause| self.cannot_connect(cause))
    }

    fn cannot_connect(&self, cause: Failure) -> Error {
        Error::Connect { protocol: self.protocol.name(), address: self.address, cause }
    }

    /// Reads the first record, the last, and the one in the middle, before anything is measured.
    ///
    /// # Errors
    /// One is not there, or is none that this client writes.
    pub fn look(&self, records: u64) -> Result<(), Error> {
        let mut connection = self.connect()?;
        for number in [0, records / 2, records - 1] {
            let strange = |cause: String| Error::Strange { number, layout: self.shape.layout, cause };
            let found = connection.read(&key(number)).map_err(|failure| match failure {
                Failure::Refused(_) => strange(failure.to_string()),
                Failure::Lost(_) => self.cannot_connect(failure),
            })?;
            let found = found.ok_or(Error::NotLoaded { number, records })?;
            self.shape.check(number, &found).map_err(|wrong| strange(wrong.to_string()))?;
        }
        Ok(())
    }
}

/// What one workload came to.
#[derive(Clone)]
pub struct Phase {
    /// The workload.
    pub workload: Workload,
    /// When it began.
    pub began: SystemTime,
    /// How long it took, from the first operation of any client to the last.
    pub took: Duration,
    /// What was counted.
    pub tally: Tally,
    /// Why a client lost its connection, if one did.
    pub lost: Option<String>,
}

impl Phase {
    /// Operations that were answered in a second.
    pub fn throughput(&self) -> f64 {
        self.tally.operations() as f64 / self.took.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// So many of `total` are one's share of `clients`.
fn share(total: u64, client: u64, clients: u64) -> u64 {
    total / clients + u64::from(client < total % clients)
}

/// Runs a workload.
///
/// # Errors
/// Not all clients can connect. What happens later is told in the result.
pub fn run(target: &Target, options: &Options, workload: Workload, length: Length) -> Result<Phase, Error> {
    let clients = options.threads;
    let there = if workload == Workload::Load { 0 } else { options.records };
    let shared = Shared {
        shape: target.shape,
        inserted: Arc::new(Inserted::after(there)),
        done: AtomicU64::new(0),
        over: AtomicBool::new(false),
        index: (workload == Workload::E).then(|| Index::of(there)),
    };
    let ready: Vec<_> = (0..clients)
        .map(|client| {
            let inserted = Arc::clone(&shared.inserted);
            let requests = Requests::new(workload, options.records, inserted, options.seed, client);
            Ok(Client { connection: target.connect()?, requests, shared: &shared })
        })
        .collect::<Result<_, Error>>()?;
    // Records that --load inserts are no part of what is measured at a rate.
    let rate = options.target.filter(|_| workload == options.workload);
    let (began, start) = (SystemTime::now(), Instant::now());
    let limits = |client| Limits {
        operations: match length {
            Length::Operations(total) => share(total, client, clients),
            Length::Seconds(_) => u64::MAX,
        },
        until: match length {
            Length::Operations(_) => None,
            Length::Seconds(seconds) => Some(start + Duration::from_secs_f64(seconds)),
        },
        pace: rate.map(|rate| Pace::new(start, rate, client, clients)),
    };
    let mut phase = Phase { workload, began, took: Duration::ZERO, tally: Tally::default(), lost: None };
    std::thread::scope(|scope| {
        let (tell, ended) = channel();
        for (mut client, number) in ready.into_iter().zip(0..) {
            let (limits, tell) = (limits(number), tell.clone());
            scope.spawn(move || {
                let mut tally = Tally::default();
                let lost = client.run(limits, &mut tally).err();
                // The receiver goes on until every client has told.
                let _ = tell.send((tally, lost, start.elapsed()));
            });
        }
        drop(tell);
        let bar = progress(workload, length);
        loop {
            match ended.recv_timeout(LOOK) {
                Ok((tally, lost, at)) => {
                    phase.tally.add(&tally);
                    phase.lost = phase.lost.take().or(lost);
                    phase.took = phase.took.max(at);
                }
                Err(RecvTimeoutError::Timeout) => bar.set_position(shared.done.load(Ordering::Relaxed)),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        bar.finish_and_clear();
    });
    Ok(phase)
}

/// A line on standard error, if somebody sees it.
fn progress(workload: Workload, length: Length) -> ProgressBar {
    let (bar, template) = match length {
        Length::Operations(total) => {
            (ProgressBar::new(total), "{msg:8} [{bar:30}] {human_pos} of {human_len} operations, {per_sec}, {eta}")
        }
        Length::Seconds(_) => (ProgressBar::no_length(), "{msg:8} {human_pos} operations, {per_sec}, {elapsed}"),
    };
    let style = ProgressStyle::with_template(template).expect("it is right").progress_chars("=> ");
    bar.with_style(style).with_message(workload.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_differ_by_one_at_most() {
        for (total, clients) in [(10, 4), (3, 8), (1000, 7), (0, 3)] {
            let shares: Vec<_> = (0..clients).map(|client| share(total, client, clients)).collect();
            assert_eq!(shares.iter().sum::<u64>(), total);
            assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }
}
