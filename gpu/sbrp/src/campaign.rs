//! The comparison of the two forms on many random programs, in a record that a later run continues.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::outcome::Outcome;
use crate::random::{Trial, trial};
use crate::{axiomatic, operational};

/// Seeds between two writings of the record.
const PART: u64 = 5_000;

/// What was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Seeds 0 to this one, exclusive.
    pub programs: u64,
    /// Outcomes that both forms allow.
    pub outcomes: u64,
    /// States of the machine.
    pub states: u64,
}

impl Record {
    /// Reads a record; an empty one where there is no file.
    ///
    /// # Errors
    /// The file is no record.
    pub fn read(path: &Path) -> Result<Record> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Record::default()),
            text => text.with_context(|| path.display().to_string())?,
        };
        let mut record = Record::default();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let place = format!("{}, line {}", path.display(), index + 1);
            let (key, value) =
                line.split_once(" = ").with_context(|| format!("{place}: `{line}` is no `key = number`"))?;
            let value = value.parse().with_context(|| format!("{place}: `{value}` is no number"))?;
            match key {
                "programs" => record.programs = value,
                "outcomes" => record.outcomes = value,
                "states" => record.states = value,
                _ => bail!("{place}: `{key}` is unknown"),
            }
        }
        Ok(record)
    }

    fn write(&self, path: &Path) -> Result<()> {
        let Record { programs, outcomes, states } = self;
        let head = "# Random programs on which the axiomatic and the operational form agree: nearpm-sbrp campaign";
        let text = format!("{head}\nprograms = {programs}\noutcomes = {outcomes}\nstates = {states}\n");
        // A killed run leaves the old record or the new one.
        let beside = path.with_extension("new");
        std::fs::write(&beside, text)
            .and_then(|()| std::fs::rename(&beside, path))
            .with_context(|| path.display().to_string())
    }
}

/// Compares the forms on one trial: outcomes and states of the machine.
///
/// # Errors
/// They differ; the message is the program and the outcomes of each form alone.
pub fn compare(seed: u64, trial: &Trial) -> Result<(u64, u64)> {
    let axioms = axiomatic::outcomes(&trial.test, trial.semantics);
    let found = operational::explore(&trial.test, trial.semantics, crate::verdict::BOUND)?;
    let machine: BTreeSet<Outcome> = found.witnesses.into_keys().collect();
    if axioms != machine {
        let only = |a: &BTreeSet<Outcome>, b: &BTreeSet<Outcome>| format!("{:?}", a.difference(b).collect::<Vec<_>>());
        bail!(
            "seed {seed}, {} without {:?}\n{}\nthe axioms alone allow {}\nthe machine alone reaches {}",
            trial.semantics.model,
            trial.dropped.map(|rule| rule.name()),
            trial.text,
            only(&axioms, &machine),
            only(&machine, &axioms),
        );
    }
    Ok((axioms.len() as u64, found.states as u64))
}

/// Goes on with a record up to `programs` programs.
///
/// # Errors
/// The forms differ on a program, or the record cannot be read or written.
pub fn run(path: &Path, programs: u64, mut progress: impl FnMut(Record)) -> Result<Record> {
    let mut record = Record::read(path)?;
    while record.programs < programs {
        for seed in record.programs..programs.min(record.programs + PART) {
            let (outcomes, states) = compare(seed, &trial(seed))?;
            record =
                Record { programs: seed + 1, outcomes: record.outcomes + outcomes, states: record.states + states };
        }
        record.write(path)?;
        progress(record);
    }
    Ok(record)
}
