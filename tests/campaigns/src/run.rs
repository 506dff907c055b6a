//! Running a campaign.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::built::{commit, program};
use crate::campaigns::{ALL, Campaign};
use crate::packed::Packed;
use crate::workspace;

/// What a campaign counted.
pub type Counts = BTreeMap<String, u64>;

/// The count of what contradicts a claim.
pub(crate) const VIOLATIONS: &str = "violations";

/// What became of a campaign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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

/// How campaigns are run.
#[derive(Debug, Default)]
pub struct Way {
    /// Workers of what works in parallel, where it is said.
    pub jobs: Option<usize>,
    /// Where its programs are, where they were built elsewhere.
    pub packed: Option<Packed>,
}

/// Runs a campaign, for so many minutes where it takes what it is given. What it prints goes to
/// `NAME.log` in the folder.
///
/// # Errors
/// Where a program cannot be started, or the folder not be written. A campaign that fails is an
/// outcome.
pub fn run(campaign: &Campaign, minutes: u64, folder: &Path, way: &Way) -> Result<Outcome> {
    fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    let words = campaign.words(minutes);
    let start = Instant::now();
    let log = folder.join(format!("{}.log", campaign.name));
    let mut log = File::create(&log).with_context(|| format!("make {}", log.display()))?;
    let commands = match &way.packed {
        Some(packed) => packed.commands(campaign, &words)?,
        None => {
            let mut command = program(&words)?;
            command.current_dir(workspace());
            vec![command]
        }
    };
    let (mut success, mut counts) = (true, Counts::new());
    for mut command in commands {
        command.env_remove("NEARPM_THOROUGH");
        if campaign.long {
            command.env("NEARPM_THOROUGH", "1");
        }
        if let Some(jobs) = way.jobs {
            command.env("NEARPM_JOBS", jobs.to_string());
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.try_clone()?);
        let mut child = command.spawn().with_context(|| format!("start {}", command.get_program().display()))?;
        let output = BufReader::new(child.stdout.take().expect("the output is piped"));
        for line in output.lines() {
            let line = line?;
            writeln!(log, "{line}")?;
            if let Some(more) = counts_of(&line) {
                add(&mut counts, more);
            }
        }
        success &= child.wait()?.success();
    }
    Ok(Outcome {
        campaign: campaign.name.into(),
        command: words.join(" "),
        success,
        counts,
        seconds: start.elapsed().as_secs(),
        commit: way.packed.as_ref().map_or_else(commit, |packed| Ok(packed.commit.clone()))?,
    })
}

/// What became of a campaign, and where: kept beside its log, so that the page can be written
/// elsewhere and later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// What became of it.
    pub outcome: Outcome,
    /// Machine.
    pub machine: String,
    /// The table of coverage, where it measures it.
    pub coverage: Option<String>,
}

impl Kept {
    fn path(folder: &Path, campaign: &str) -> PathBuf {
        folder.join(format!("{campaign}.json"))
    }

    /// Writes it into a folder.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let path = Kept::path(folder, &self.outcome.campaign);
        let text = serde_json::to_string_pretty(self).context("write what was counted")?;
        fs::write(&path, text + "\n").with_context(|| format!("write {}", path.display()))
    }

    /// All of a folder, in the order of the list.
    ///
    /// # Errors
    /// If there is none, or one is of another command than the campaign has today.
    pub fn all(folder: &Path) -> Result<Vec<Kept>> {
        let mut all = Vec::new();
        for campaign in ALL {
            let path = Kept::path(folder, campaign.name);
            if !path.exists() {
                continue;
            }
            let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
            let kept: Kept = serde_json::from_str(&text).with_context(|| format!("read {}", path.display()))?;
            let command = &kept.outcome.command;
            ensure!(campaign.is_command(command), "{}: `{command}` is not what runs today", path.display());
            all.push(kept);
        }
        ensure!(!all.is_empty(), "no campaign has left what it counted in {}", folder.display());
        Ok(all)
    }
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
