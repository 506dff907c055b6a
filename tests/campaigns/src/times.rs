//! Where the time of a test run goes: steps of `./x test`, crates that are compiled, test programs.
//!
//! Nothing here measures. `./x test` leaves the seconds of its steps, cargo the page of
//! `--timings`, nextest its JUnit report, and each Verilated model the files that it was built
//! from; this reads them and prints the largest. Seconds of crates, models and test programs add up
//! over the processors, so that their sums are larger than the step's; a model is built inside the
//! test that needs it first.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

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
    /// Programs that were linked for them: test programs, and those that tests run. Their seconds
    /// are in the crates', too.
    pub links: Vec<Seconds>,
    /// Models of the hardware that were made since the run began: Verilator, and the C++ compiler
    /// behind it.
    pub models: Vec<Seconds>,
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
    /// What of the crate it is, in words; of a library it is empty.
    #[serde(default)]
    target: String,
}

impl Unit {
    /// Whether it is linked: a test program, a program or an example.
    fn is_program(&self) -> bool {
        ["(test)", "\"bin\"", "\"example\""].iter().any(|what| self.target.contains(what))
    }

    fn program(&self) -> Seconds {
        (format!("{}{}", self.name, self.target), self.duration)
    }
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
        let units = units(&part("cargo-timings/cargo-timing.html")).context("read cargo's timings")?;
        let began = fs::metadata(target.join("test-began")).and_then(|file| file.modified()).ok();
        Ok(Times {
            steps: steps(&part("test-steps.tsv")).context("read the steps")?,
            links: sums(units.iter().filter(|unit| unit.is_program()).map(Unit::program)),
            crates: sums(units.into_iter().map(|unit| (unit.name, unit.duration))),
            models: sums(began.into_iter().flat_map(|began| models(&target.join("verilated"), began))),
            programs,
            tests,
        })
    }

    /// The page that is printed: all steps, and the longest `most` of everything else.
    pub fn render(&self, most: usize) -> String {
        let mut text = String::new();
        let parts = [
            ("steps of ./x test, without those beside others (+)", &self.steps, usize::MAX),
            ("crates, compiled with their tests", &self.crates, most),
            ("programs in these, compiled and linked", &self.links, most),
            ("Verilated models, made by tests", &self.models, most),
            ("test programs", &self.programs, most),
            ("tests", &self.tests, most),
        ];
        for (title, rows, most) in parts {
            // Steps that went on while others did took no time of their own.
            let sum: f64 = rows.iter().filter(|(name, _)| !name.starts_with("+ ")).map(|(_, seconds)| seconds).sum();
            let _ = writeln!(text, "{sum:9.1} s  {title} ({})", rows.len());
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

/// The units in cargo's page.
fn units(page: &str) -> Result<Vec<Unit>> {
    let Some((_, rest)) = page.split_once("const UNIT_DATA = ") else { return Ok(Vec::new()) };
    let (data, _) = rest.split_once("];").context("the list does not end")?;
    serde_json::from_str(&format!("{data}]")).context("the list of units")
}

/// The models in a cache that were made since then: from the Verilog, which is written first, to
/// the library.
fn models(cache: &Path, since: SystemTime) -> Vec<Seconds> {
    let model = |folder: &Path| {
        let written = |file: &str| fs::metadata(folder.join(file)).and_then(|file| file.modified()).ok();
        let (verilog, library) = (written("top.v")?, written("model.so")?);
        let text = fs::read_to_string(folder.join("top.v")).ok()?;
        let name = text.lines().find_map(|line| line.strip_prefix("module "))?.split(['(', ' ', ';']).next()?;
        let seconds = library.duration_since(verilog).ok()?.as_secs_f64();
        (verilog >= since).then(|| (name.to_owned(), seconds))
    };
    let folders = fs::read_dir(cache).into_iter().flatten().flatten();
    folders.filter_map(|folder| model(&folder.path())).collect()
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
        write("test-steps.tsv", "lint\t12\n+ check tools\t7\ntest\t30\n");
        write(
            "cargo-timings/cargo-timing.html",
            r#"<script>const UNIT_DATA = [{"i":0,"name":"a","duration":1.5,"sections":null},
            {"i":1,"name":"b","duration":4.0},
            {"i":2,"name":"a","duration":0.5,"target":" all \"test\" (test)"}];</script>"#,
        );
        write("test-began", "");
        write("verilated/0123/top.v", "// a comment\nmodule top(clock);\nendmodule\n");
        write("verilated/0123/model.so", "");
        write("verilated/text-0123/top.v", "module generated(clock);\n");
        write(
            "nextest/default/junit.xml",
            r#"<testsuites><testsuite name="p"><testcase name="t" classname="p" time="0.25"/>
            <testcase name="u" classname="p" time="0.5"/></testsuite></testsuites>"#,
        );
        let times = Times::read(target.path()).expect("the run is read");
        assert_eq!(times.steps, [("lint".into(), 12.0), ("+ check tools".into(), 7.0), ("test".into(), 30.0)]);
        assert_eq!(times.crates, [("b".into(), 4.0), ("a".into(), 2.0)]);
        assert_eq!(times.links, [("a all \"test\" (test)".into(), 0.5)]);
        assert!(matches!(&times.models[..], [(top, seconds)] if top == "top" && *seconds < 1.0), "{:?}", times.models);
        assert_eq!(times.programs, [("p".into(), 0.75)]);
        assert_eq!(times.tests, [("p u".into(), 0.5), ("p t".into(), 0.25)]);
        let page = times.render(1);
        assert!(page.contains("42.0 s  steps") && page.contains("7.0      + check tools"), "{page}");
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
