//! Running a campaign.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::campaigns::Campaign;
use crate::workspace;

/// What a campaign counted.
pub type Counts = BTreeMap<String, u64>;

/// The count of what contradicts a claim.
pub(crate) const VIOLATIONS: &str = "violations";

/// What became of a campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its name.
    pub campaign: String,
    /// What ran.
    pub command: String,
    /// Whether the program ended with success.
    pub success: bool,
    /// What it counted.
    pub counts: Counts,
    /// How long it took, the build of the workspace not included.
    pub seconds: u64,
    /// Commit of the workspace, with a `+` where files differed from it.
    pub commit: String,
}

impl Outcome {
    /// Whether the claim stands: the program succeeded and met no violation.
    pub fn holds(&self) -> bool {
        self.success && self.counts.get(VIOLATIONS) == Some(&0)
    }

    /// Whether it counted at least so many of these.
    pub fn reaches(&self, name: &str, least: u64) -> bool {
        self.counts.get(name).is_some_and(|&count| count >= least)
    }

    /// What was found beside violations.
    pub fn found(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counts.iter().filter(|(name, _)| *name != VIOLATIONS).map(|(name, &count)| (name.as_str(), count))
    }

    /// Violations that were counted.
    pub fn violations(&self) -> Option<u64> {
        self.counts.get(VIOLATIONS).copied()
    }
}

/// The counts in a line of a campaign's output. What runs tests may have begun the line.
pub fn counts_of(line: &str) -> Option<Counts> {
    #[derive(Deserialize)]
    struct Line {
        counts: Counts,
    }
    let at = line.find("{\"counts\":")?;
    Some(serde_json::from_str::<Line>(line[at..].trim_end()).ok()?.counts)
}

fn add(total: &mut Counts, more: Counts) {
    more.into_iter().for_each(|(name, count)| *total.entry(name).or_default() += count);
}

/// The program of a command. Those of the workspace lie where this one does: in the folder of its optimised build, wherever that is.
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
    let words = ["cargo", "build", "--release", "--locked", "--workspace", "--bins", "--tests"].map(str::to_owned);
    let status = program(&words)?.current_dir(workspace()).status().context("start cargo")?;
    if !status.success() {
        bail!("the workspace does not build");
    }
    Ok(())
}

/// Runs a campaign, for so many minutes where it takes what it is given. What it prints goes to `NAME.log` in the folder.
///
/// # Errors
/// Where the program cannot be started, or the folder not be written. A campaign that fails is an outcome.
pub fn run(campaign: &Campaign, minutes: u64, folder: &Path) -> Result<Outcome> {
    fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    let words = campaign.words(minutes);
    let start = Instant::now();
    let log = folder.join(format!("{}.log", campaign.name));
    let mut log = File::create(&log).with_context(|| format!("make {}", log.display()))?;
    let mut command = program(&words)?;
    command.current_dir(workspace()).env_remove("NEARPM_THOROUGH");
    if campaign.long {
        command.env("NEARPM_THOROUGH", "1");
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.try_clone()?);
    let mut child = command.spawn().with_context(|| format!("start {}", words[0]))?;
    let output = BufReader::new(child.stdout.take().expect("the output is piped"));
    let mut counts = Counts::new();
    for line in output.lines() {
        let line = line?;
        writeln!(log, "{line}")?;
        if let Some(more) = counts_of(&line) {
            add(&mut counts, more);
        }
    }
    let success = child.wait()?.success();
    Ok(Outcome {
        campaign: campaign.name.into(),
        command: words.join(" "),
        success,
        counts,
        seconds: start.elapsed().as_secs(),
        commit: commit()?,
    })
}

/// The commit that is checked out.
fn commit() -> Result<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_wherever_the_line_begins() {
        let expected = Counts::from([("cuts".into(), 7), ("violations".into(), 0)]);
        let line = r#"{"counts":{"cuts":7,"violations":0}}"#;
        assert_eq!(counts_of(line), Some(expected.clone()));
        assert_eq!(counts_of(&format!("test something ... {line}\n")), Some(expected.clone()));
        assert_eq!(counts_of(r#"{"counts":{"cuts":-7}}"#), None);
        let mut total = expected.clone();
        add(&mut total, expected);
        assert_eq!(total["cuts"], 14);
    }

    #[test]
    fn a_claim_stands_only_where_violations_were_counted_and_none_found() {
        let of = |success, counts: &[(&str, u64)]| Outcome {
            campaign: "c".into(),
            command: String::new(),
            success,
            counts: counts.iter().map(|&(name, count)| (name.to_owned(), count)).collect(),
            seconds: 0,
            commit: String::new(),
        };
        assert!(of(true, &[("violations", 0)]).holds());
        assert!(!of(true, &[]).holds());
        assert!(!of(true, &[("violations", 1)]).holds());
        assert!(!of(false, &[("violations", 0)]).holds());
    }
}
