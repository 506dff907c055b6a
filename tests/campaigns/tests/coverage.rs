//! The file of waivers, and how a measurement is judged by it.

use nearpm_verification::coverage::constants::Constants;
use nearpm_verification::coverage::points::{Counts, Point, counted};
use nearpm_verification::coverage::report::Report;
use nearpm_verification::coverage::waivers::Waivers;

/// That each entry matches a point that is not covered is for a measurement to say:
/// `nearpm-verification coverage`.
#[test]
fn the_file_of_waivers_is_well_formed() {
    let waivers = Waivers::read(&Waivers::path()).unwrap();
    assert!(waivers.waiver.len() + waivers.open.len() > 0);
}

fn counts() -> Counts {
    let points = "0\t3\tv_toggle/unit$fifo\tfull:0->1\n1\t3\tv_toggle/unit$fifo\tfull:1->0\n\
        2\t2\tv_branch/unit$fifo\telse\n3\t1\tv_line/unit$port\tblock\n";
    counted(points, &[5, 0, 0, 9], "module\nelse if (enable) q <= d;\n").unwrap()
}

const WAIVERS: &str = r#"
[[waiver]]
signals = ["unit$fifo$full"]
bits = "0-3,7"
direction = "1->0"
reason = "it is never read in this design"
"#;

#[test]
fn what_is_not_covered_is_waived_open_or_a_violation() {
    let report = Report::new(&counts(), &Constants::default(), &Waivers::parse(WAIVERS).unwrap());
    assert_eq!((report.violations(), report.stale.len()), (1, 0), "{}", report.complaints());
    assert!(
        report.complaints().contains("unit$fifo: 1 not covered: line 2 else: else if (enable) q <= d;"),
        "{}",
        report.complaints()
    );
    assert!(report.table().contains("| toggle | 2 | 1 | 0 | 1 | 0 | 0 | 100.0 % |"), "{}", report.table());
    let open = format!(
        "{WAIVERS}\n[[open]]\nlines = [\"unit$* else: else if (enable)*\"]\nreason = \"a scenario with two ports is missing\"\n"
    );
    let report = Report::new(&counts(), &Constants::default(), &Waivers::parse(&open).unwrap());
    assert_eq!(report.violations(), 0, "{}", report.complaints());
    assert!(report.table().contains("| line | 2 | 1 | 0 | 0 | 1 | 0 | 50.0 % |"), "{}", report.table());
    let report =
        Report::new(&counts(), &Constants::default(), &Waivers::parse(&format!("most_open.line = 0\n{open}")).unwrap());
    assert_eq!(report.violations(), 1, "{}", report.complaints());
    assert!(report.complaints().contains("1 points of the kind line are open, where 0 may be"));
}

#[test]
fn a_constant_bit_needs_no_waiver_and_one_that_changes_is_not_constant() {
    let mut counts = counts();
    counts.retain(|point, _| point.bit().is_some());
    let counts: Counts =
        counts.into_iter().map(|(p, n)| (Point { module: "nearpm_core$fifo".into(), ..p }, n)).collect();
    let judged = |value: &str| {
        let text =
            format!(r#"{{"modules": {{"nearpm_card": {{"netnames": {{"core.fifo.full": {{"bits": [{value}]}}}}}}}}}}"#);
        Report::new(&counts, &Constants::parse(&text).unwrap(), &Waivers::default())
    };
    assert_eq!((judged("7").violations(), judged("\"1\"").violations(), judged("\"0\"").violations()), (1, 0, 1));
    assert_eq!(judged("\"0\"").wrong.len(), 1, "{}", judged("\"0\"").complaints());
    assert!(judged("\"1\"").table().contains("| toggle | 2 | 1 | 1 | 0 | 0 | 0 | 100.0 % |"));
}

#[test]
fn a_pattern_that_explains_nothing_is_a_violation() {
    let judged = |waivers: &str| Report::new(&counts(), &Constants::default(), &Waivers::parse(waivers).unwrap());
    for (from, to) in [("1->0", "0->1"), ("$full\"", "$gone\""), ("0-3,7", "1-3")] {
        assert_eq!(judged(&WAIVERS.replace(from, to)).stale.len(), 1, "{to}");
    }
    // Beside one that is needed, and behind one that speaks of the same points before.
    for more in ["unit$fifo$gone", "unit$fifo$f*"] {
        let report = judged(&WAIVERS.replace("$full\"", &format!("$full\", \"{more}\"")));
        let stale: Vec<_> = report.stale.iter().map(|(pattern, _)| pattern.as_str()).collect();
        assert_eq!((stale, report.violations()), (vec![more], 2), "{}", report.complaints());
        assert!(report.complaints().contains(&format!("explains no uncovered point: {more:?}")));
    }
    let open =
        "[[open]]\nlines = [\"unit$* else: *\", \"unit$* if: *\"]\nreason = \"a scenario with two ports is missing\"\n";
    assert_eq!(judged(&format!("{WAIVERS}\n{open}")).stale.len(), 1);
}

#[test]
fn a_waiver_of_what_is_covered_is_a_violation() {
    let judged = |waivers: &str| Report::new(&counts(), &Constants::default(), &Waivers::parse(waivers).unwrap());
    // The bit rises, so that only its falling may be waived.
    let both = WAIVERS.replace("direction = \"1->0\"", "");
    let report = judged(&both);
    assert_eq!((report.refuted.len(), report.stale.len(), report.violations()), (1, 0, 2), "{}", report.complaints());
    assert!(report.complaints().contains("\"unit$fifo$full\" waives 1 covered points: unit$fifo full:0->1"));
    // What is open may be covered in part.
    assert!(judged(&both.replace("waiver", "open")).refuted.is_empty());
    assert!(judged(WAIVERS).refuted.is_empty());
}

#[test]
fn a_waiver_of_a_number_of_points_speaks_of_no_other_number() {
    let judged = |waivers: &str| Report::new(&counts(), &Constants::default(), &Waivers::parse(waivers).unwrap());
    // One direction of the bit is covered, the other is not, and the line beside it is not.
    let of = |count: u64| {
        let both = WAIVERS.replace("direction = \"1->0\"", &format!("lines = [\"unit$fifo else:*\"]\ncount = {count}"));
        judged(&both)
    };
    assert_eq!(of(2).violations(), 0, "{}", of(2).complaints());
    for count in [1, 3] {
        assert_eq!(of(count).violations(), 1);
        assert!(of(count).complaints().contains(&format!("2 points are not covered, where {count} are waived")));
    }
}

#[test]
fn a_waiver_without_a_reason_or_of_nothing_is_refused() {
    assert!(Waivers::parse(&WAIVERS.replace("it is never read in this design", "because")).is_err());
    assert!(Waivers::parse(&WAIVERS.replace("1->0", "down")).is_err());
    assert!(Waivers::parse(&WAIVERS.replace("signals = [\"unit$fifo$full\"]", "")).is_err());
    assert!(Waivers::parse(&WAIVERS.replace("0-3,7", "3-0")).is_err());
    assert!(Waivers::parse(&WAIVERS.replace("signals", "signal")).is_err());
}
