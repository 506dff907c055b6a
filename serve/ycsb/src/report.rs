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

    /// Writes the latencies as HdrHistogram's log, version 2: an interval for each kind of operation of each workload.
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
mod tests {
    use std::time::SystemTime;

    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::options::tests::options;
    use crate::tally::Tally;

    fn report(tally: Tally) -> Report {
        let options = options("--server redis --workload a");
        let (began, took) = (SystemTime::now(), Duration::from_secs(2));
        let phase = Phase { workload: Workload::A, began, took, tally, lost: None };
        let (address, shape) = (SocketAddr::from(([127, 0, 0, 1], 1)), options.shape().expect("it has one"));
        Report { options, address, shape, phases: vec![phase] }
    }

    /// Reads of 1 to 1000 microseconds, and an update.
    fn tally() -> Tally {
        let mut tally = Tally::default();
        (1..=1000).for_each(|micros| tally.answered(Kind::Read, Duration::from_micros(micros), micros > 1));
        tally.answered(Kind::Update, Duration::from_micros(7), true);
        tally
    }

    #[test]
    fn json_and_text_tell_what_was_counted() {
        let report = report(tally());
        let json = report.json();
        let read = &json["phases"][0]["kinds"][0];
        assert_eq!((&read["kind"], &read["count"], &read["misses"]), (&"read".into(), &1000.into(), &1.into()));
        assert_eq!(json["phases"][0]["operations_per_second"], 500.5);
        for (name, expected) in [
            ("min", 1.0),
            ("mean", 500.5),
            ("p50", 500.0),
            ("p95", 950.0),
            ("p99", 990.0),
            ("p99_9", 999.0),
            ("max", 1000.0),
        ] {
            let found = read["latency_us"][name].as_f64().expect("a number");
            assert!((found / expected - 1.0).abs() < 2e-3, "{name}: {found}, expected {expected}");
        }
        let text = report.text();
        assert!(text.contains("a: 1001 operations in 2.00 s, 500 operations/s"), "{text}");
        let update = text.lines().find(|line| line.starts_with("update")).expect("updates are told");
        assert!(update.ends_with("7.0"), "{text}");
    }

    #[test]
    fn histograms_are_read_back() {
        let report = report(tally());
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        report.write_histograms(&path).expect("it is written");
        let text = std::fs::read(&path).expect("it is there");
        let mut found = Vec::new();
        for entry in IntervalLogIterator::new(&text) {
            if let LogEntry::Interval(interval) = entry.expect("a line of a log") {
                let bytes =
                    base64::Engine::decode(&base64::engine::general_purpose::STANDARD, interval.encoded_histogram());
                let bytes = bytes.expect("base 64");
                let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut &bytes[..]).expect("a histogram");
                found.push((
                    interval.tag().expect("a kind").as_str().to_owned(),
                    histogram.len(),
                    histogram.value_at_quantile(0.5),
                ));
            }
        }
        let expected = report.phases[0]
            .tally
            .kinds
            .values()
            .map(|count| (count.latencies.len(), count.latencies.value_at_quantile(0.5)));
        let expected: Vec<_> = ["a.read", "a.update"]
            .map(str::to_owned)
            .into_iter()
            .zip(expected)
            .map(|(tag, (count, half))| (tag, count, half))
            .collect();
        assert_eq!(found, expected);
        assert!(report.write_histograms(folder.path()).is_err());
    }

    #[test]
    fn the_verdict_names_what_went_wrong() {
        assert!(report(tally()).verdict().is_ok());
        let verdict = |change: &dyn Fn(&mut Phase)| {
            let mut report = report(tally());
            change(&mut report.phases[0]);
            report.verdict().expect_err("something went wrong").to_string()
        };
        let refused = verdict(&|phase| phase.tally.refused(Kind::Update, "OOM".to_owned()));
        assert!(refused.contains("1 operations were refused") && refused.ends_with("OOM"), "{refused}");
        let wrong = verdict(&|phase| phase.tally.wrong(Kind::Read, "bad".to_owned()));
        assert!(wrong.contains("1 found what was never written") && wrong.ends_with("bad"), "{wrong}");
        let lost = verdict(&|phase| phase.lost = Some("gone".to_owned()));
        assert!(lost.contains("lost after 1001 operations: gone"), "{lost}");
        let mut missed = Tally::default();
        missed.answered(Kind::Read, Duration::from_micros(1), false);
        missed.answered(Kind::Insert, Duration::from_micros(1), true);
        assert!(matches!(report(missed).verdict(), Err(Error::AllMissed { .. })));
    }
}
