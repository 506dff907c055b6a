//! What the client is told when it is started.

use std::path::PathBuf;

use nearpm_workloads::programs::ycsb::MOST_MORE;

use crate::Error;
use crate::connection::Protocol;
use crate::record::{LEAST_FIELD_BYTES, Layout, Shape};
use crate::workload::Workload;

/// Operations of the paper's set-up.
const OPERATIONS: u64 = 10_000;
/// Bytes of a record at most.
const MOST_RECORD_BYTES: u64 = 64 << 20;

/// What the client is told when it is started.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// What the server speaks
    #[arg(long, value_enum)]
    pub server: Protocol,
    /// Address and port of the server
    #[arg(long, value_name = "HOST:PORT")]
    pub connect: String,
    /// load, a, b, c, d, e or f of YCSB's core workloads; w1, w3, w4 or wtail of the NearPM paper
    #[arg(long)]
    pub workload: Workload,
    /// Insert the records first, as fast as the server takes them
    #[arg(long)]
    pub load: bool,
    /// Records that are inserted, or that are there
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub records: u64,
    /// Operations of all clients together [default: 10000]
    #[arg(long, conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    pub operations: Option<u64>,
    /// Seconds that the workload runs, instead of a number of operations
    #[arg(long, value_parser = positive)]
    pub seconds: Option<f64>,
    /// Clients, each with a thread and a connection of its own, which wait for each answer
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: u64,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Fields of a record
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub fields: u64,
    /// Bytes of a field, at least 16
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(LEAST_FIELD_BYTES as u64..))]
    pub field_bytes: u64,
    /// How a record lies in the server [default: hash for redis, ordered for e; value for
    /// memcached, and for w1, w3, w4 and wtail, whose records have up to 400 bytes more]
    #[arg(long, value_enum)]
    pub layout: Option<Layout>,
    /// Operations in a second that are to be begun, whether the server keeps up or not: latency
    /// counts from the moment when an operation was to begin, so that a server that stalls is
    /// charged for those that wait meanwhile
    #[arg(long, value_parser = positive)]
    pub target: Option<f64>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Write the latencies to a file: HdrHistogram's log, version 2, in nanoseconds, with the kinds
    /// of operations as tags
    #[arg(long, value_name = "FILE")]
    pub histogram: Option<PathBuf>,
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    if number > 0.0 && number <= 1e9 {
        Ok(number)
    } else {
        Err("more than 0 is asked for, and at most 1000000000".to_owned())
    }
}

/// How much of a workload there is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// So many operations.
    Operations(u64),
    /// So many seconds.
    Seconds(f64),
}

impl Options {
    /// What records look like.
    ///
    /// # Errors
    /// The server or the workload has no such records.
    pub fn shape(&self) -> Result<Shape, Error> {
        let paper = matches!(self.workload, Workload::Paper(_));
        let one_value = paper || self.server == Protocol::Memcached;
        let scans = self.workload == Workload::E;
        if scans && self.server == Protocol::Memcached {
            return Err(Error::Options("workload E scans keys in their order, which memcached cannot".to_owned()));
        }
        if scans && self.layout.is_some_and(|layout| layout != Layout::Ordered) {
            return Err(Error::Options("workload E scans keys in their order: --layout ordered".to_owned()));
        }
        if one_value && self.layout.is_some_and(|layout| layout != Layout::Value) {
            let why = if paper { "the paper's workloads write whole records" } else { "memcached has no hashes" };
            return Err(Error::Options(format!("{why}: --layout value")));
        }
        let bytes = self.fields.checked_mul(self.field_bytes).filter(|&bytes| bytes <= MOST_RECORD_BYTES);
        if bytes.is_none() {
            return Err(Error::Options("a record has at most 64 MiB: --fields times --field-bytes is more".to_owned()));
        }
        let layout = match (self.layout, one_value, scans) {
            (Some(layout), ..) => layout,
            (None, true, _) => Layout::Value,
            (None, _, true) => Layout::Ordered,
            _ => Layout::Hash,
        };
        Ok(Shape {
            layout,
            fields: self.fields as usize,
            field_bytes: self.field_bytes as usize,
            most_more: if paper { MOST_MORE } else { 0 },
        })
    }

    /// The workloads to run, one after the other.
    ///
    /// # Errors
    /// Options that have no meaning for the workload.
    pub fn phases(&self) -> Result<Vec<(Workload, Length)>, Error> {
        let load = (Workload::Load, Length::Operations(self.records));
        if self.workload == Workload::Load {
            if self.load || self.operations.is_some() || self.seconds.is_some() {
                let text = "the workload load inserts each of --records once: no --load, --operations or --seconds";
                return Err(Error::Options(text.to_owned()));
            }
            return Ok(vec![load]);
        }
        let length = match self.seconds {
            Some(seconds) => Length::Seconds(seconds),
            None => Length::Operations(self.operations.unwrap_or(OPERATIONS)),
        };
        Ok(self.load.then_some(load).into_iter().chain([(self.workload, length)]).collect())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn parse(line: &str) -> Result<Options, String> {
        let words = "ycsb --connect 127.0.0.1:1".split(' ').chain(line.split(' '));
        Line::try_parse_from(words).map(|line| line.options).map_err(|error| error.to_string())
    }

    /// Options of a line, for a server that nobody asks.
    pub(crate) fn options(line: &str) -> Options {
        parse(line).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn the_arguments_are_consistent() {
        Line::command().debug_assert();
    }

    #[test]
    fn records_lie_as_the_server_and_the_workload_ask() {
        let shape = |line: &str| options(line).shape().map(|shape| (shape.layout, shape.most_more)).ok();
        assert_eq!(shape("--server redis --workload a"), Some((Layout::Hash, 0)));
        assert_eq!(shape("--server redis --workload a --layout value"), Some((Layout::Value, 0)));
        assert_eq!(shape("--server redis --workload e"), Some((Layout::Ordered, 0)));
        assert_eq!(shape("--server redis --workload e --layout hash"), None);
        assert_eq!(shape("--server memcached --workload e"), None);
        assert_eq!(shape("--server memcached --workload f"), Some((Layout::Value, 0)));
        assert_eq!(shape("--server redis --workload w3"), Some((Layout::Value, 400)));
        assert_eq!(shape("--server redis --workload w3 --layout hash"), None);
        assert_eq!(shape("--server memcached --workload a --layout hash"), None);
        assert_eq!(shape("--server redis --workload a --fields 10000 --field-bytes 10000"), None);
    }

    #[test]
    fn phases_are_the_load_and_the_workload() {
        let phases = |line: &str| options(&format!("--server redis {line}")).phases().ok();
        let load = (Workload::Load, Length::Operations(1000));
        assert_eq!(phases("--workload load"), Some(vec![load]));
        assert_eq!(phases("--workload a"), Some(vec![(Workload::A, Length::Operations(10_000))]));
        assert_eq!(phases("--workload d --load --seconds 2"), Some(vec![load, (Workload::D, Length::Seconds(2.0))]));
        assert_eq!(phases("--workload load --operations 5"), None);
        assert_eq!(phases("--workload load --load"), None);
    }

    #[test]
    fn what_has_no_meaning_is_refused() {
        for (line, why) in [
            ("--server redis --workload g", "load, a, b, c, d, e, f, w1"),
            ("--server mysql --workload a", "mysql"),
            ("--server redis --workload a --records 0", "--records"),
            ("--server redis --workload a --threads 0", "--threads"),
            ("--server redis --workload a --field-bytes 15", "--field-bytes"),
            ("--server redis --workload a --seconds 0", "more than 0"),
            ("--server redis --workload a --target nan", "more than 0"),
            ("--server redis --workload a --seconds 1 --operations 1", "--seconds"),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.contains(why), "{line}: {error}");
        }
    }
}
