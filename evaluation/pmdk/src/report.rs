//! A report as tables for people.

use nearpm_statistics::Figure;

use crate::case::Case;
use crate::count::Counts;
use crate::library::Timing;
use crate::measure::Measured;
use crate::pmdk::{Clock, Counted, Report};
use crate::programs::Program;

/// What a library costs above the floor with a map, against PMDK.
const MOST_OF_A_MAP: f64 = 0.4;
/// What a transaction with one add of 8 bytes takes, against PMDK.
const MOST_OF_AN_ADD: f64 = 0.7;
/// Most of PMDK's time that a persist is to take: a working copy stores every byte twice.
const MOST_OF_A_PERSIST: f64 = 1.2;
/// How much more two threads do than one.
const LEAST_SPEED_UP: f64 = 1.8;
/// With less of a processor a run was disturbed.
const LEAST_SHARE: f64 = 0.95;
/// A cell with nothing in it.
const NOTHING: &str = "-";

/// A table with its title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// What it shows, and in which units.
    pub title: String,
    /// One for each column.
    pub headings: Vec<&'static str>,
    /// Rows, each with a cell for each heading.
    pub rows: Vec<Vec<String>>,
}

/// Where the figures come from, line by line.
pub fn origin(report: &Report) -> String {
    let Report { machine, pmdk, pools, pairs, .. } = report;
    let ours = report.ours.as_deref().unwrap_or("none (name its folder with --lib)");
    [
        format!("Measured here: {}, {} processors, {}.", machine.cpu, machine.processors, machine.kernel),
        format!(
            "Load of the machine when it began: {}.",
            machine.load.map_or("unknown".into(), |load| load.to_string())
        ),
        format!("PMDK: {pmdk}."),
        format!("Ours: {ours}."),
        format!("Pools on {pools}, write-backs and fences on, prefaulted (a session: not); {pairs} rounds, libraries in turn."),
        busy(report),
        String::new(),
    ]
    .join("\n")
}

/// How much of the time the programs had processors, and what a reader is to make of it.
fn busy(report: &Report) -> String {
    let share = |case: &Case, timing: &Timing| timing.processor / (timing.wall * f64::from(case.threads));
    let of = |measured: &Measured| -> Vec<f64> {
        let replaced = measured.ours.iter().flatten();
        measured.pmdk.iter().chain(replaced).map(|timing| share(&measured.case, timing)).collect()
    };
    let shares: Vec<f64> = report.measured.iter().flat_map(of).collect();
    let Some(Figure { median, min, .. }) = Figure::of(&shares) else { return "Nothing was timed.".into() };
    let judgement = match report.clock {
        Clock::Wall if median < LEAST_SHARE => {
            " Other work DISTURBED, and long runs more than short: use --clock processor."
        }
        Clock::Wall => "",
        Clock::Processor => " Times of one thread are processor time.",
    };
    let percent = |share: f64| (share * 100.0).round();
    format!("The programs had processors {} % of the time (least {} %).{judgement}", percent(median), percent(min))
}

/// Samples of each library, by a clock.
struct Samples {
    pmdk: Vec<f64>,
    ours: Option<Vec<f64>>,
    floor: Option<Vec<f64>>,
    in_place: Option<Vec<f64>>,
}

impl Samples {
    fn of(measured: &Measured, clock: Clock) -> Self {
        let by_clock = |timing: &Timing| match clock {
            Clock::Wall => timing.wall,
            Clock::Processor => timing.processor,
        };
        let samples = |timings: &Vec<Timing>| timings.iter().map(by_clock).collect();
        Samples {
            pmdk: samples(&measured.pmdk),
            ours: measured.ours.as_ref().map(samples),
            floor: measured.floor.as_ref().map(samples),
            in_place: measured.in_place.as_ref().map(samples),
        }
    }

    /// Ours against PMDK.
    fn ratio(&self) -> Option<Figure> {
        Figure::of_ratios(self.ours.as_deref()?, &self.pmdk)
    }

    /// Ours in place against PMDK.
    fn ratio_in_place(&self) -> Option<Figure> {
        Figure::of_ratios(self.in_place.as_deref()?, &self.pmdk)
    }

    fn above_floor(&self) -> Option<Figure> {
        Figure::of_ratios_above(self.floor.as_deref()?, self.ours.as_deref()?, &self.pmdk)
    }
}

/// All tables that have rows.
pub fn sections(report: &Report) -> Vec<Section> {
    let mut sections = vec![times(report), scaling(report), counts(report)];
    sections.extend(report.files.as_ref().map(|files| disk(&files.file_system, &files.measured)));
    sections.retain(|section| !section.rows.is_empty());
    sections
}

fn times(report: &Report) -> Section {
    let alone = report.measured.iter().filter(|measured| measured.case.threads == 1);
    let in_place = report.measured.iter().any(|measured| measured.in_place.is_some());
    let mut headings = vec!["operation", "PMDK", "ours", "floor", "ours / PMDK", "above the floor", "aim"];
    if in_place {
        headings.extend(["ours in place", "in place / PMDK"]);
    }
    Section {
        title: "Time, ns an operation: median (least..most). \"Above the floor\" is (ours - floor) / (PMDK - floor)."
            .into(),
        headings,
        rows: alone.map(|measured| time_row(measured, report.clock, in_place)).collect(),
    }
}

fn time_row(measured: &Measured, clock: Clock, in_place: bool) -> Vec<String> {
    let samples = Samples::of(measured, clock);
    let (ratio, above) = (samples.ratio(), samples.above_floor());
    let aim = match aim(&measured.case) {
        None => NOTHING.into(),
        Some(Aim::AboveFloor(most)) => verdict("above the floor at most", most, above.map(|f| f.median <= most)),
        Some(Aim::Ratio(most)) => verdict("at most", most, ratio.map(|f| f.median <= most)),
    };
    let mut row = vec![
        measured.case.title(),
        nanoseconds(Some(&samples.pmdk)),
        nanoseconds(samples.ours.as_deref()),
        nanoseconds(samples.floor.as_deref()),
        fraction(ratio),
        fraction(above),
        aim,
    ];
    if in_place {
        row.extend([nanoseconds(samples.in_place.as_deref()), fraction(samples.ratio_in_place())]);
    }
    row
}

/// What a case is to reach.
enum Aim {
    Ratio(f64),
    AboveFloor(f64),
}

fn aim(case: &Case) -> Option<Aim> {
    match (case.program, case.adds, case.bytes) {
        (Program::Maps, ..) => Some(Aim::AboveFloor(MOST_OF_A_MAP)),
        (Program::Adds, 1, 8) => Some(Aim::Ratio(MOST_OF_AN_ADD)),
        (Program::Persists, ..) => Some(Aim::Ratio(MOST_OF_A_PERSIST)),
        _ => None,
    }
}

fn verdict(what: &str, bound: f64, met: Option<bool>) -> String {
    let verdict = match met {
        None => String::new(),
        Some(true) => ": met".into(),
        Some(false) => ": MISSED".into(),
    };
    format!("{what} {bound}{verdict}")
}

fn scaling(report: &Report) -> Section {
    let rows = report.measured.iter().filter(|measured| measured.case.threads == 2).filter_map(|two| {
        let one = report.measured.iter().find(|measured| two.case == measured.case.clone().on_threads(2))?;
        let (one_case, one, two) = (&one.case, Samples::of(one, Clock::Wall), Samples::of(two, Clock::Wall));
        let speed_up = |one: Option<&Vec<f64>>, two: Option<&Vec<f64>>| Figure::of_ratios(one?, two?);
        let ours = speed_up(one.ours.as_ref(), two.ours.as_ref());
        Some(vec![
            one_case.title(),
            fraction(speed_up(Some(&one.pmdk), Some(&two.pmdk))),
            fraction(ours),
            fraction(speed_up(one.floor.as_ref(), two.floor.as_ref())),
            verdict("at least", LEAST_SPEED_UP, ours.map(|figure| figure.median >= LEAST_SPEED_UP)),
        ])
    });
    Section {
        title: "Two threads against one: operations a second, times more. Each thread has a map of its own in the one pool.".into(),
        headings: vec!["operation", "PMDK", "ours", "floor", "aim"],
        rows: rows.collect(),
    }
}

fn counts(report: &Report) -> Section {
    let title = "Executed in an operation, counted from outside: fences (SFENCE, MFENCE), lines written back or streamed, locked \
                 instructions that order write-backs.";
    Section {
        title: title.into(),
        headings: vec!["operation", "fences PMDK", "ours", "lines PMDK", "ours", "locked PMDK", "ours"],
        rows: report.counted.iter().flatten().map(count_row).collect(),
    }
}

fn count_row(counted: &Counted) -> Vec<String> {
    let per_op = |counts: Option<Counts>, of: fn(&Counts) -> u64| {
        counts.map_or(NOTHING.into(), |counts| format!("{:.2}", of(&counts) as f64 / counted.case.ops as f64))
    };
    let mut row = vec![counted.case.title()];
    for of in [|c: &Counts| c.fences, Counts::lines, |c: &Counts| c.locked] {
        row.extend([per_op(Some(counted.pmdk), of), per_op(counted.ours, of)]);
    }
    row
}

fn disk(file_system: &str, measured: &[Measured]) -> Section {
    let per_second = |samples: Option<&Vec<f64>>| {
        let samples: Option<Vec<f64>> = samples.map(|samples| samples.iter().map(|ns| 1e9 / ns).collect());
        samples.as_deref().map_or(NOTHING.into(), whole)
    };
    let row = |measured: &Measured| {
        let samples = Samples::of(measured, Clock::Wall);
        let faster = samples.ours.as_deref().and_then(|ours| Figure::of_ratios(&samples.pmdk, ours));
        vec![
            measured.case.title(),
            per_second(Some(&samples.pmdk)),
            per_second(samples.ours.as_ref()),
            fraction(faster),
        ]
    };
    Section {
        title: format!("Pools in files on {file_system}, durable by msync: insertions a second, median (least..most)."),
        headings: vec!["operation", "PMDK", "ours", "times faster"],
        rows: measured.iter().map(row).collect(),
    }
}

fn nanoseconds(samples: Option<&[f64]>) -> String {
    samples.map_or(NOTHING.into(), whole)
}

fn whole(samples: &[f64]) -> String {
    Figure::of(samples).map_or(NOTHING.into(), |f| format!("{:.0} ({:.0}..{:.0})", f.median, f.min, f.max))
}

fn fraction(figure: Option<Figure>) -> String {
    figure.map_or(NOTHING.into(), |f| format!("{:.2} ({:.2}..{:.2})", f.median, f.min, f.max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::pmdk::Files;

    /// Nine tenths of the time by the wall's clock is processor time.
    fn measured(case: Case, pmdk: [f64; 2], ours: Option<[f64; 2]>, floor: Option<[f64; 2]>) -> Measured {
        let threads = f64::from(case.threads);
        let timings = |samples: [f64; 2]| samples.map(|wall| Timing { wall, processor: 0.9 * wall * threads }).to_vec();
        Measured { case, pmdk: timings(pmdk), ours: ours.map(timings), floor: floor.map(timings), in_place: None }
    }

    fn report(ours: bool) -> Report {
        let case = Case::map("btree", 1000);
        let some = |samples: [f64; 2]| ours.then_some(samples);
        let counts = |fences| Counts { fences, locked: 1000, written_back: 2000, streamed: 500 };
        Report {
            machine: Machine { cpu: "a CPU".into(), processors: 2, kernel: "Linux 6".into(), load: Some(0.5) },
            pmdk: "/lib/libpmemobj.so.1, libpmemobj1 1.12.1".into(),
            ours: ours.then(|| "/ours/libpmemobj.so.1".into()),
            pools: "tmpfs".into(),
            pairs: 2,
            clock: Clock::Wall,
            measured: vec![
                measured(case.clone(), [1000.0, 1020.0], some([500.0, 510.0]), Some([200.0, 200.0])),
                measured(case.clone().on_threads(2), [1000.0, 1020.0], some([250.0, 300.0]), Some([100.0, 100.0])),
                measured(Case::adds(1, 8, 1000), [100.0, 100.0], some([80.0, 80.0]), Some([10.0, 10.0])),
            ],
            counted: Some(vec![Counted { case: case.clone(), pmdk: counts(7500), ours: ours.then(|| counts(3000)) }]),
            files: Some(Files {
                file_system: "ext4".into(),
                measured: vec![measured(case, [1e6, 2e6], some([1e5, 1e5]), None)],
            }),
        }
    }

    #[test]
    fn the_tables_say_what_the_samples_say() {
        let sections = sections(&report(true));
        let cells = |section: &Section| section.rows.iter().map(|row| row.join(" | ")).collect::<Vec<_>>();
        let rows: Vec<_> = sections.iter().map(cells).collect();
        let wanted: [Vec<&str>; 4] = [
            vec![
                "btree, 1000 inserts | 1010 (1000..1020) | 505 (500..510) | 200 (200..200) | 0.50 (0.50..0.50) | \
                 0.38 (0.38..0.38) | above the floor at most 0.4: met",
                "1 add of 8 B | 100 (100..100) | 80 (80..80) | 10 (10..10) | 0.80 (0.80..0.80) | 0.78 (0.78..0.78) | \
                 at most 0.7: MISSED",
            ],
            vec!["btree, 1000 inserts | 1.00 (1.00..1.00) | 1.85 (1.70..2.00) | 2.00 (2.00..2.00) | at least 1.8: met"],
            vec!["btree, 1000 inserts | 7.50 | 3.00 | 2.50 | 2.50 | 1.00 | 1.00"],
            vec!["btree, 1000 inserts | 750 (500..1000) | 10000 (10000..10000) | 15.00 (10.00..20.00)"],
        ];
        assert_eq!(rows, wanted);
        for section in sections {
            assert!(section.rows.iter().all(|row| row.len() == section.headings.len()), "{}", section.title);
        }
    }

    #[test]
    fn without_a_library_of_ours_its_cells_are_empty_and_no_verdict_is_given() {
        let sections = sections(&report(false));
        assert_eq!(
            sections[0].rows[0][1..],
            ["1010 (1000..1020)", "-", "200 (200..200)", "-", "-", "above the floor at most 0.4"]
        );
        assert_eq!(sections[1].rows[0][2..], ["-", "2.00 (2.00..2.00)", "at least 1.8"]);
        let origin = origin(&report(false));
        assert!(origin.contains("Ours: none"), "{origin}");
        assert!(origin.contains("90 % of the time (least 90 %). Other work DISTURBED"), "{origin}");
    }

    #[test]
    fn in_place_has_columns_where_it_was_measured() {
        let mut report = report(true);
        report.measured[2].in_place = Some(vec![Timing { wall: 150.0, processor: 135.0 }; 2]);
        let times = &sections(&report)[0];
        assert_eq!(times.headings[7..], ["ours in place", "in place / PMDK"]);
        assert_eq!(times.rows[0][7..], ["-", "-"]);
        assert_eq!(times.rows[1][7..], ["150 (150..150)", "1.50 (1.50..1.50)"]);
    }

    #[test]
    fn processor_time_is_shown_of_one_thread_only() {
        let report = Report { clock: Clock::Processor, ..report(true) };
        let shown = sections(&report);
        assert_eq!(shown[0].rows[0][1..4], ["909 (900..918)", "454 (450..459)", "180 (180..180)"]);
        assert_eq!(shown[1], sections(&Report { clock: Clock::Wall, ..report.clone() })[1]);
        assert!(origin(&report).contains("processor time"));
    }

    #[test]
    fn a_report_survives_json() {
        for report in [report(true), Report { counted: None, files: None, ..report(false) }] {
            let text = serde_json::to_string(&report).expect("it serialises");
            assert_eq!(serde_json::from_str::<Report>(&text).expect("it parses"), report);
        }
    }
}
