//! The file of waivers, and how a measurement is judged by it.

use nearpm_verification::coverage::points::{Counts, add};
use nearpm_verification::coverage::report::Report;
use nearpm_verification::coverage::waivers::Waivers;

/// That each entry matches a point that is not covered is for a measurement to say: `nearpm-verification coverage`.
#[test]
fn the_file_of_waivers_is_well_formed() {
    let waivers = Waivers::read(&Waivers::path()).unwrap();
    assert!(waivers.waiver.len() + waivers.open.len() > 0);
}

fn counts() -> Counts {
    let point = |page: &str, name: &str, line: u32, count: u32| {
        format!("C '\x01f\x02top.v\x01l\x02{line}\x01page\x02{page}\x01o\x02{name}\x01h\x02top' {count}\n")
    };
    let text = [
        point("v_toggle/unit$fifo", "full:0->1", 3, 5),
        point("v_toggle/unit$fifo", "full:1->0", 3, 0),
        point("v_branch/unit$fifo", "else", 12, 0),
        point("v_line/unit$port", "block", 20, 9),
    ];
    let mut counts = Counts::new();
    add(&mut counts, &text.concat()).unwrap();
    counts
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
