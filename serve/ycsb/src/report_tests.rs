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
