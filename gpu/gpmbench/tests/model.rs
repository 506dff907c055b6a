//! The cost model, against what was measured on a card: both are numbers that do not change from
//! run to run.

use nearpm_gpmbench::model::{compare, random_persists};
use nearpm_gpmbench::report::Report;

#[test]
fn the_model_is_within_ten_percent_of_the_cards() {
    for (text, least) in [(include_str!("../results/h100.json"), 11), (include_str!("../results/h200.json"), 20)] {
        let card: Report = serde_json::from_str(text).unwrap();
        let all = compare(&card).unwrap();
        assert!(all.iter().filter(|compared| compared.outside.is_none()).count() >= least, "{all:#?}");
        for compared in all {
            eprintln!("{:+.1} % {compared:?}", compared.off());
            assert!(
                compared.outside.is_some() || compared.off().abs() <= 10.0,
                "{:+.1} % {compared:?}",
                compared.off()
            );
        }
    }
}

/// Over 1, 2 and 4 GiB, as they were measured on an H200 (105 to 116, 60, 48 M/s) and an H100 (109
/// over 1 GiB).
#[test]
fn random_persists_fall_off_the_cliff_as_on_cards() {
    for (bytes, measured) in [(1u64 << 30, 109.0), (2 << 30, 60.0), (4 << 30, 48.0)] {
        let found = random_persists(bytes);
        assert!((found / measured - 1.0).abs() <= 0.1, "{found} for {measured} over {} GiB", bytes >> 30);
    }
}
