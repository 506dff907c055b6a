//! What the workspace's build has left: its programs, and the commit that they are of.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace;

/// The program of a command. Those of the workspace lie where this one does: in the folder of its
/// optimised build, wherever that is.
pub(crate) fn program(words: &[String]) -> Result<Command> {
    let (name, arguments) = words.split_first().context("a campaign has a command")?;
    let path = match Path::new(name).file_name() {
        Some(file) if file != name.as_str() => {
            let own = std::env::current_exe().context("find this program")?;
            ensure!(
                own.parent().is_some_and(|folder| folder.ends_with("release")),
                "campaigns run optimised: ./x verify"
            );
            own.with_file_name(file)
        }
        _ => std::env::var_os("CARGO").unwrap_or_else(|| name.into()).into(),
    };
    let mut command = Command::new(path);
    command.args(arguments);
    Ok(command)
}

/// Builds what campaigns run, all in one.
///
/// # Errors
/// Where it does not build.
pub fn build() -> Result<()> {
    let words =
        ["cargo", "build", "--release", "--locked", "--workspace", "--exclude", "nearpm-stores", "--bins", "--tests"]
            .map(str::to_owned);
    let status = program(&words)?.current_dir(workspace()).status().context("start cargo")?;
    if !status.success() {
        bail!("the workspace does not build");
    }
    Ok(())
}

/// The commit that is checked out, with a `+` where files differ from it.
///
/// # Errors
/// If git does not say.
pub(crate) fn commit() -> Result<String> {
    let git = |arguments: &[&str]| -> Result<String> {
        let output = Command::new("git").args(arguments).current_dir(workspace()).output().context("run git")?;
        if !output.status.success() {
            bail!("git: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // The page is what a run writes.
    let changed = !git(&["status", "--porcelain", "--", ".", ":(exclude)docs/verification.md"])?.is_empty();
    Ok(git(&["rev-parse", "--short=10", "HEAD"])? + if changed { "+" } else { "" })
}
