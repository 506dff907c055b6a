//! The file of waivers, and how a measurement is judged by it.

use nearpm_verification::coverage::points::{Counts, counted};
use nearpm_verification::coverage::report::Report;
use nearpm_verification::coverage::waivers::Waivers;

/// That each entry matches a point that is not covered is for a measurement to say: `nearpm-verification coverage`.
#[test]
fn the_file_of_waivers_is_well_formed() {
    let waivers = Waivers::read(&Waivers::path()).unwrap();
    assert!(waivers.waiver.len() + waivers.open.len() > 0);
}

fn counts() -> Counts {
    let points = "0\t3\tv_toggle/unit$fifo\tfull:0->1\n1\t3\tv_toggle/unit$fifo\tfull:1->0\n\
        2\t12\tv_branch/unit$fifo\telse\n3\t20\tv_line/unit$port\tblock\n";
    counted(points, &[5, 0, 0, 9]).unwrap()
}

const WAIVERS: &str = r#"
[[waiver]]
module = "unit$fifo"
kind = "toggle"
point = "full:1->*"
reason = "it is never read in this design"
"#;

#[test]
fn what_is_not_covered_is_waived_open_or_a_violation() {
    let report = Report::new(&counts(), &Waivers::parse(WAIVERS).unwrap());
    assert_eq!((report.violations(), report.stale.len()), (1, 0), "{}", report.complaints());
    assert!(report.complaints().contains("unit$fifo: 1 not covered: line 12 else"), "{}", report.complaints());
    assert!(report.table().contains("| toggle | 2 | 1 | 1 | 0 | 0 | 100.0 % |"), "{}", report.table());
    let open = format!(
        "{WAIVERS}\n[[open]]\nmodule = \"unit$*\"\nkind = \"line\"\nreason = \"a scenario with two ports is missing\"\n"
    );
    let report = Report::new(&counts(), &Waivers::parse(&open).unwrap());
    assert_eq!(report.violations(), 0, "{}", report.complaints());
    assert!(report.table().contains("| line | 2 | 1 | 0 | 1 | 0 | 50.0 % |"), "{}", report.table());
}

#[test]
fn a_waiver_that_matches_nothing_is_a_violation() {
    for pattern in ["full:0->1", "gone"] {
        let stale = WAIVERS.replace("full:1->*", pattern);
        let report = Report::new(&counts(), &Waivers::parse(&stale).unwrap());
        assert_eq!(report.stale.len(), 1, "{pattern}");
    }
}

#[test]
fn a_waiver_without_a_reason_or_of_an_unknown_kind_is_refused() {
    assert!(Waivers::parse(&WAIVERS.replace("it is never read in this design", "because")).is_err());
    assert!(Waivers::parse(&WAIVERS.replace("toggle", "statement")).is_err());
    assert!(Waivers::parse(&WAIVERS.replace("point", "signal")).is_err());
}
