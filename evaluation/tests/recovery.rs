//! Times of recoveries: what they hold, and what they depend on.

use nearpm::Mechanism;
use nearpm_evaluation::meter::Kind;
use nearpm_evaluation::recovery::{self, Point};
use nearpm_sim::profile::Profile;

fn points(mechanism: Mechanism, work: &[u64], pool: u64) -> Vec<Point> {
    let profile = Profile::load("vcu118-300").expect("an embedded profile");
    let run = |&bytes: &u64| recovery::run(&profile, mechanism, pool, bytes).unwrap_or_else(|e| panic!("{e:#}"));
    work.iter().map(run).collect()
}

#[test]
fn a_recovery_does_what_was_under_way_and_its_parts_are_its_whole() {
    for mechanism in Mechanism::ALL {
        for point in points(mechanism, &[0, 16 << 10, 256 << 10], 16 << 20) {
            let parts: u64 = Kind::ALL.into_iter().map(|kind| point.noted.of(kind)).sum();
            println!(
                "{}, {} B: {:.1} + {:.1} us, {} entries",
                mechanism.name(),
                point.work_bytes,
                point.card_ns / 1e3,
                point.pool_ns / 1e3,
                point.entries
            );
            assert!(
                (parts as f64 / 1000.0 / point.ns() - 1.0).abs() < 0.02,
                "{}: {parts} ps of {point:?}",
                mechanism.name()
            );
            let logged = matches!(mechanism, Mechanism::Undo | Mechanism::Checkpoint);
            if logged {
                assert!(point.entries >= point.work_bytes / 4096, "{}: {point:?}", mechanism.name());
            }
        }
    }
}

#[test]
fn more_under_way_takes_longer_where_a_log_is_rolled_back() {
    for mechanism in [Mechanism::Undo, Mechanism::Checkpoint] {
        let found = points(mechanism, &[4 << 10, 64 << 10, 1 << 20], 16 << 20);
        assert!(found.windows(2).all(|pair| pair[0].ns() < pair[1].ns()), "{}: {found:?}", mechanism.name());
    }
}

#[test]
fn what_is_no_page_is_refused() {
    let profile = Profile::load("vcu118-300").expect("an embedded profile");
    let error = recovery::run(&profile, Mechanism::Undo, 16 << 20, 100).expect_err("no page");
    assert!(error.to_string().contains("no whole pages"), "{error:#}");
}
