//! Where the time of a test run goes: steps of `./x test`, crates that are compiled, test programs.
//!
//! Nothing here measures. `./x test` leaves the seconds of its steps, cargo the page of `--timings`, nextest its
//! JUnit report; this reads all three and prints the largest. Seconds of crates and of test programs add up over
//! the processors, so that their sums are larger than the step's.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// Seconds of something named.
pub type Seconds = (String, f64);

/// What one run took. A part whose file is missing is empty.
#[derive(Debug, Default, PartialEq)]
pub struct Times {
    /// Steps of `./x test`, in order.
    pub steps: Vec<Seconds>,
    /// Crates that were compiled, with all their test programs, the longest first.
    pub crates: Vec<Seconds>,
    /// Test programs, the longest first.
    pub programs: Vec<Seconds>,
    /// Tests, the longest first.
    pub tests: Vec<Seconds>,
}

/// A unit of cargo's timings.
#[derive(Deserialize)]
struct Unit {
    name: String,
    duration: f64,
}

impl Times {
    /// Reads what the last run left in a target folder.
    ///
    /// # Errors
    /// A file that is there and is not what its writer writes.
    pub fn read(target: &Path) -> Result<Times> {
        let part = |name: &str| fs::read_to_string(target.join(name)).unwrap_or_default();
        let junit = part("nextest/default/junit.xml");
        let (programs, tests) = tests(&junit).context("read nextest's report")?;
        Ok(Times {
            steps: steps(&part("test-steps.tsv")).context("read the steps")?,
            crates: crates(&part("cargo-timings/cargo-timing.html")).context("read cargo's timings")?,
            programs,
            tests,
        })
    }

    /// The page that is printed: all steps, and the longest `most` of everything else.
    pub fn render(&self, most: usize) -> String {
        let mut text = String::new();
        let parts = [
            ("steps of ./x test", &self.steps, usize::MAX),
            ("crates, compiled with their tests", &self.crates, most),
            ("test programs", &self.programs, most),
            ("tests", &self.tests, most),
        ];
        for (title, rows, most) in parts {
            let sum: f64 = rows.iter().map(|(_, seconds)| seconds).sum();
            let _ = writeln!(text, "{sum:9.1} s  {title}");
            for (name, seconds) in rows.iter().take(most) {
                let _ = writeln!(text, "{seconds:9.1}      {name}");
            }
        }
        text
    }
}

/// Lines of a name, a tab, and seconds.
fn steps(text: &str) -> Result<Vec<Seconds>> {
    let row = |line: &str| {
        let (name, seconds) = line.split_once('\t').with_context(|| format!("no tab in {line:?}"))?;
        Ok((name.to_owned(), seconds.parse().with_context(|| format!("{seconds:?} is no number"))?))
    };
    text.lines().map(row).collect()
}

/// The units in cargo's page, summed by crate.
fn crates(page: &str) -> Result<Vec<Seconds>> {
    let Some((_, rest)) = page.split_once("const UNIT_DATA = ") else { return Ok(Vec::new()) };
    let (data, _) = rest.split_once("];").context("the list does not end")?;
    let units: Vec<Unit> = serde_json::from_str(&format!("{data}]")).context("the list of units")?;
    Ok(sums(units.into_iter().map(|unit| (unit.name, unit.duration))))
}

/// Test programs and tests of a JUnit report.
fn tests(report: &str) -> Result<(Vec<Seconds>, Vec<Seconds>)> {
    if report.is_empty() {
        return Ok(Default::default());
    }
    let report = roxmltree::Document::parse(report)?;
    let mut cases = Vec::new();
    for case in report.descendants().filter(|node| node.has_tag_name("testcase")) {
        let attribute = |name| case.attribute(name).with_context(|| format!("a test has no {name}"));
        let seconds: f64 = attribute("time")?.parse()?;
        cases.push((attribute("classname")?.to_owned(), attribute("name")?.to_owned(), seconds));
    }
    let programs = sums(cases.iter().map(|(program, _, seconds)| (program.clone(), *seconds)));
    let tests = sums(cases.into_iter().map(|(program, test, seconds)| (format!("{program} {test}"), seconds)));
    Ok((programs, tests))
}

/// Sums by name, the largest first.
fn sums(rows: impl Iterator<Item = Seconds>) -> Vec<Seconds> {
    let mut sums = BTreeMap::<String, f64>::new();
    for (name, seconds) in rows {
        *sums.entry(name).or_default() += seconds;
    }
    let mut rows: Vec<Seconds> = sums.into_iter().collect();
    rows.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read_and_the_longest_come_first() {
        let target = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = target.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("written");
        };
        write("test-steps.tsv", "lint\t12\ntest\t30\n");
        write(
            "cargo-timings/cargo-timing.html",
            r#"<script>const UNIT_DATA = [{"i":0,"name":"a","duration":1.5,"sections":null},
            {"i":1,"name":"b","duration":4.0},{"i":2,"name":"a","duration":0.5}];</script>"#,
        );
        write(
            "nextest/default/junit.xml",
            r#"<testsuites><testsuite name="p"><testcase name="t" classname="p" time="0.25"/>
            <testcase name="u" classname="p" time="0.5"/></testsuite></testsuites>"#,
        );
        let times = Times::read(target.path()).expect("the run is read");
        assert_eq!(times.steps, [("lint".into(), 12.0), ("test".into(), 30.0)]);
        assert_eq!(times.crates, [("b".into(), 4.0), ("a".into(), 2.0)]);
        assert_eq!(times.programs, [("p".into(), 0.75)]);
        assert_eq!(times.tests, [("p u".into(), 0.5), ("p t".into(), 0.25)]);
        let page = times.render(1);
        assert!(page.contains("42.0 s  steps") && page.contains("12.0      lint"), "{page}");
        assert!(page.contains("p u") && !page.contains("p t"), "{page}");
    }

    #[test]
    fn nothing_to_read_is_an_empty_page_and_a_foreign_file_an_error() {
        let target = tempfile::tempdir().expect("a folder");
        assert_eq!(Times::read(target.path()).expect("nothing"), Times::default());
        fs::write(target.path().join("test-steps.tsv"), "no tab\n").expect("written");
        assert!(Times::read(target.path()).is_err());
    }
}
