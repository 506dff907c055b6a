//! What was measured: for people, as JSON, and as HdrHistogram's log.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use serde_json::{Value, json};

use crate::Error;
use crate::options::Options;
use crate::phase::Phase;
use crate::record::{Layout, Shape};
use crate::workload::{Kind, Workload};

/// Quantiles of latencies that are told, with their names in JSON and for people.
const QUANTILES: [(f64, &str, &str); 4] =
    [(0.5, "p50", "p50"), (0.95, "p95", "p95"), (0.99, "p99", "p99"), (0.999, "p99_9", "p99.9")];

/// What was measured.
pub struct Report {
    /// What was asked for.
    pub options: Options,
    /// The server.
    pub address: SocketAddr,
    /// How records lay in it.
    pub shape: Shape,
    /// The workloads, in their order.
    pub phases: Vec<Phase>,
}

/// Microseconds of a latency in nanoseconds.
fn micros(nanoseconds: f64) -> f64 {
    nanoseconds / 1000.0
}

fn latency_json(latencies: &Histogram<u64>) -> Value {
    let mut cells = json!({
        "min": micros(latencies.min() as f64),
        "mean": micros(latencies.mean()),
        "max": micros(latencies.max() as f64),
    });
    for (quantile, name, _) in QUANTILES {
        cells[name] = micros(latencies.value_at_quantile(quantile) as f64).into();
    }
    cells
}

fn phase_json(phase: &Phase) -> Value {
    let kinds = phase.tally.kinds.iter().map(|(kind, count)| {
        json!({
            "kind": kind,
            "count": count.latencies.len(),
            "errors": count.errors,
            "wrong": count.wrong,
            "misses": count.misses,
            "latency_us": latency_json(&count.latencies),
        })
    });
    json!({
        "workload": phase.workload.name(),
        "operations": phase.tally.operations(),
        "seconds": phase.took.as_secs_f64(),
        "operations_per_second": phase.throughput(),
        "kinds": kinds.collect::<Vec<_>>(),
        "lost": phase.lost,
        "first_error": phase.tally.first,
    })
}

impl Report {
    /// As JSON. Latencies are in microseconds.
    pub fn json(&self) -> Value {
        json!({
            "server": self.options.server,
            "address": self.address.to_string(),
            "records": self.options.records,
            "record": self.shape,
            "threads": self.options.threads,
            "seed": self.options.seed,
            "target": self.options.target,
            "phases": self.phases.iter().map(phase_json).collect::<Vec<_>>(),
        })
    }

    /// For people.
    pub fn text(&self) -> String {
        let Options { server, records, threads, seed, target, .. } = &self.options;
        let layout = match self.shape.layout {
            Layout::Hash => "hashes",
            Layout::Ordered => "hashes and an index",
            Layout::Value => "one value each",
        };
        let fields = format!("{} x {} B", self.shape.fields, self.shape.field_bytes);
        let more = if self.shape.most_more == 0 {
            String::new()
        } else {
            format!(" and up to {} B more", self.shape.most_more)
        };
        let mut text = format!(
            "{} at {}: {records} records of {fields}{more} ({layout}), {threads} clients, seed {seed}\n",
            server.name(),
            self.address
        );
        if let Some(target) = target {
            let _ = writeln!(text, "{target} operations/s are begun; latency counts from when each was to begin");
        }
        for phase in &self.phases {
            let (operations, took) = (phase.tally.operations(), phase.took.as_secs_f64());
            let _ = writeln!(
                text,
                "\n{}: {operations} operations in {took:.2} s, {:.0} operations/s\n",
                phase.workload.name(),
                phase.throughput()
            );
            let quantiles: String = QUANTILES.iter().map(|(_, _, name)| format!("{name:>10}")).collect();
            let _ = writeln!(
                text,
                "{:17} {:>9} {:>7} {:>7} {:>7}{:>10}{:>10}{quantiles}{:>10}  us",
                "", "count", "errors", "wrong", "misses", "min", "mean", "max"
            );
            for (kind, count) in &phase.tally.kinds {
                let latencies = &count.latencies;
                let quantiles = QUANTILES.iter().map(|(quantile, ..)| latencies.value_at_quantile(*quantile) as f64);
                let cells = [latencies.min() as f64, latencies.mean()].into_iter().chain(quantiles);
                let cells = cells.chain([latencies.max() as f64]).map(|cell| format!("{:>10.1}", micros(cell)));
                let _ = writeln!(
                    text,
                    "{:17} {:>9} {:>7} {:>7} {:>7}{}",
                    kind.name(),
                    latencies.len(),
                    count.errors,
                    count.wrong,
                    count.misses,
                    cells.collect::<String>()
                );
            }
        }
        text
    }

    /// Writes the latencies as HdrHistogram's log, version 2: an interval for each kind of
    /// operation of each workload.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_histograms(&self, path: &Path) -> Result<(), Error> {
        let failed = |cause: String| Error::Histogram { path: path.to_owned(), cause };
        let Some(first) = self.phases.first() else { return Ok(()) };
        let mut file = BufWriter::new(File::create(path).map_err(|error| failed(error.to_string()))?);
        let mut serializer = V2DeflateSerializer::new();
        let mut log = IntervalLogWriterBuilder::new()
            .add_comment(&format!(
                "nearpm ycsb {}, {}: nanoseconds",
                env!("CARGO_PKG_VERSION"),
                self.options.server.name()
            ))
            .with_start_time(first.began)
            .with_base_time(first.began)
            .with_max_value_divisor(1e6)
            .begin_log_with(&mut file, &mut serializer)
            .map_err(|error| failed(error.to_string()))?;
        for phase in &self.phases {
            let after = phase.began.duration_since(first.began).unwrap_or(Duration::ZERO);
            for (kind, count) in &phase.tally.kinds {
                let name = format!("{}.{}", phase.workload.name(), kind.name());
                log.write_histogram(&count.latencies, after, phase.took, Tag::new(&name))
                    .map_err(|error| failed(error.to_string()))?;
            }
        }
        file.flush().map_err(|error| failed(error.to_string()))
    }

    /// Whether everything went well.
    ///
    /// # Errors
    /// What did not.
    pub fn verdict(&self) -> Result<(), Error> {
        for phase in &self.phases {
            let Phase { workload, tally, lost, .. } = phase;
            if let Some(cause) = lost.clone() {
                let (address, operations) = (self.address, tally.operations());
                return Err(Error::Lost { address, workload: workload.name(), operations, cause });
            }
            let (errors, wrong) = (tally.sum(|count| count.errors), tally.sum(|count| count.wrong));
            if errors + wrong > 0 {
                let first = tally.first.clone().unwrap_or_default();
                return Err(Error::Failed { workload: workload.name(), errors, wrong, first });
            }
            if all_missed(phase) {
                return Err(Error::AllMissed { workload: workload.name() });
            }
        }
        Ok(())
    }
}

/// Whether no operation that needs a record has found one.
fn all_missed(phase: &Phase) -> bool {
    let need = phase.tally.kinds.iter().filter(|(kind, _)| **kind != Kind::Insert);
    let (count, misses) =
        need.fold((0, 0), |(count, misses), (_, kind)| (count + kind.latencies.len(), misses + kind.misses));
    phase.workload != Workload::Load && count > 0 && misses == count
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
