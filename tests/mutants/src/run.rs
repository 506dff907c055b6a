//! Building the tests of the copy, and running them with one fault at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use wait_timeout::ChildExt;

use crate::{Mutant, Tests, tree};

/// A test that takes so many times as long as without a fault, and so much more, hangs.
const PATIENCE: (u32, Duration) = (10, Duration::from_secs(60));

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It failed: the fault was noticed.
    Failed,
    /// It did not end: noticed as well.
    Hung,
    /// It passed: the fault survived.
    Passed,
}

/// The run of a fault.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// How its tests ended.
    pub verdict: Verdict,
    /// How long they took.
    pub took: Duration,
}

/// A test program.
struct Program {
    executable: PathBuf,
    /// Folder of the package, where its tests expect to be.
    folder: PathBuf,
}

/// The copy of the workspace with its tests, built.
pub struct Workshop {
    programs: BTreeMap<(&'static str, &'static str), Program>,
    /// How long tests take without a fault.
    baseline: BTreeMap<Tests, Duration>,
    log: PathBuf,
}

impl Workshop {
    /// Copies the workspace, plants the faults and builds the tests that are to notice those with
    /// the numbers in `chosen`. `progress` hears of each step.
    ///
    /// # Errors
    /// A fault that does not fit, a copy that does not build, or a test that fails without any
    /// fault.
    pub fn open(
        folder: &Path,
        mutants: &[Mutant],
        chosen: &BTreeSet<usize>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Workshop> {
        let root = tree::workspace();
        let changed = tree::plant(&root, mutants)?;
        let copy = folder.join("tree");
        std::fs::create_dir_all(&copy).with_context(|| format!("make {}", copy.display()))?;
        progress("copy the workspace, with all faults");
        tree::copy(&root, &copy, &changed)?;
        let mut workshop =
            Workshop { programs: BTreeMap::new(), baseline: BTreeMap::new(), log: folder.join("tests.log") };
        let numbered = (1..).zip(mutants).filter(|(number, _)| chosen.contains(number));
        let tests: BTreeSet<_> = numbered.map(|(_, mutant)| mutant.tests).collect();
        let programs: BTreeSet<_> = tests.iter().map(|tests| (tests.package, tests.target)).collect();
        for (package, target) in programs {
            progress(&format!("build the tests of {package}, {target}"));
            let program = build(&copy, &folder.join("build"), package, target)?;
            workshop.programs.insert((package, target), program);
        }
        for tests in tests {
            progress(&format!("without a fault: {} {} {}", tests.package, tests.target, tests.filter));
            let outcome = workshop.test(tests, None)?;
            ensure!(
                outcome.verdict == Verdict::Passed,
                "{tests:?} fails without a fault: see {}",
                workshop.log.display()
            );
            workshop.baseline.insert(tests, outcome.took);
        }
        Ok(workshop)
    }

    /// Runs the tests of the fault with this number, from 1.
    pub fn run(&self, number: usize, mutant: &Mutant) -> Result<Outcome> {
        self.test(mutant.tests, Some(number))
    }

    fn test(&self, tests: Tests, fault: Option<usize>) -> Result<Outcome> {
        let program = self.programs.get(&(tests.package, tests.target)).expect("the program was built");
        let mut command = Command::new(&program.executable);
        // Steps that are left out are found by their lines, which the faults change.
        command
            .args([tests.filter, "--skip", "sites::"])
            .current_dir(&program.folder)
            .env_remove("NEARPM_THOROUGH")
            .stdin(Stdio::null());
        match fault {
            Some(number) => command.env("NEARPM_MUTANT", number.to_string()),
            None => command.env_remove("NEARPM_MUTANT"),
        };
        let log = File::create(&self.log).with_context(|| format!("make {}", self.log.display()))?;
        let start = Instant::now();
        let mut child = command.stderr(log.try_clone()?).stdout(log).spawn().context("start a test")?;
        let (times, more) = PATIENCE;
        let patience = self.baseline.get(&tests).map_or(Duration::from_secs(600), |&took| took * times + more);
        let verdict = match child.wait_timeout(patience)? {
            Some(status) if status.success() => Verdict::Passed,
            Some(_) => Verdict::Failed,
            None => {
                child.kill()?;
                child.wait()?;
                Verdict::Hung
            }
        };
        let took = start.elapsed();
        if verdict == Verdict::Passed {
            let said = std::fs::read_to_string(&self.log)?;
            ensure!(
                !said.contains("running 0 tests"),
                "no test of {} {} is named {}",
                tests.package,
                tests.target,
                tests.filter
            );
        }
        Ok(Outcome { verdict, took })
    }
}

/// Builds a test program.
fn build(copy: &Path, target_folder: &Path, package: &str, target: &str) -> Result<Program> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["test", "--release", "--locked", "--no-run", "--message-format=json", "-p", package]);
    match target {
        "lib" => command.arg("--lib"),
        name => command.args(["--test", name]),
    };
    let output = command
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", target_folder)
        .stderr(Stdio::piped())
        .output()
        .context("run cargo")?;
    if !output.status.success() {
        bail!("the tests of {package} ({target}) with the faults do not build:\n{}", messages(&output.stdout));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let artefacts = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let program = |message: serde_json::Value| {
        let executable = PathBuf::from(message["executable"].as_str()?);
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        Some(Program { executable, folder })
    };
    artefacts
        .filter(|message| message["reason"] == "compiler-artifact" && message["profile"]["test"] == true)
        .find_map(program)
        .with_context(|| format!("cargo names no test program of {package} ({target})"))
}

/// What the compiler said.
fn messages(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let parsed = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let errors = parsed.filter(|message| message["message"]["level"] == "error");
    errors.filter_map(|message| message["message"]["rendered"].as_str().map(str::to_owned)).collect()
}
