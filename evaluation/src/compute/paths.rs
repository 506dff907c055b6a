//! What each path executes: instructions, counted, and charged to the path alone.
//!
//! `cargo run --release -p nearpm-evaluation --example
//! instructions` counts them: each program runs on a card that is a mock, under Valgrind's
//! callgrind, which leaves out what is executed inside of accesses to the card - the simulated host
//! charges those - and inside of checksums, likewise. So a path on the processor is charged with
//! what it does to make entries, one with a card with what it does to make commands and to post
//! them. What an instruction takes is that of `compute.toml`: the times there, over the
//! instructions of what was timed.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::case::{Case, Configuration};

/// The stored count.
const STORED: &str = include_str!("../../paths.toml");

/// Instructions of paths.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paths {
    /// What was counted, by what, and which compiler made it.
    pub origin: String,
    /// What an instruction takes, in nanoseconds.
    pub ns_per_instruction: f64,
    /// Instructions a transaction, by program and path; without crash consistency, those of the
    /// program.
    pub programs: BTreeMap<String, BTreeMap<String, f64>>,
}

/// The name of the path of a case.
pub fn name(case: &Case) -> String {
    let mechanism = case.mechanism.name();
    match case.configuration {
        // What is waited for with each commit is another path.
        Configuration::WorkingCopy if case.mechanism.has_epochs() => "working-copy-epochs".to_owned(),
        Configuration::CopyCpu => format!("copy-{mechanism}-cpu"),
        Configuration::CopyCard => format!("copy-{mechanism}-card"),
        of if !of.has_mechanism() => of.name().to_owned(),
        of => format!("{mechanism}-{}", if of.uses_card() { "card" } else { "cpu" }),
    }
}

impl Paths {
    /// The count that is stored with this program.
    ///
    /// # Errors
    /// If the stored text is wrong.
    pub fn stored() -> Result<Paths> {
        Paths::of(STORED).context("the stored instructions of paths are wrong")
    }

    /// What a file says that such a count has printed.
    ///
    /// # Errors
    /// If it cannot be read, or is none.
    pub fn read(path: &Path) -> Result<Paths> {
        let said = || format!("{} has no instructions of paths", path.display());
        std::fs::read_to_string(path).context("it cannot be read").and_then(|text| Paths::of(&text)).with_context(said)
    }

    fn of(text: &str) -> Result<Paths> {
        Ok(toml::from_str(text)?)
    }

    /// What the library's instructions of a case take, in nanoseconds a transaction.
    ///
    /// # Errors
    /// If its path was not counted.
    pub fn library_ns(&self, case: &Case) -> Result<f64> {
        let of = |path: &str| {
            let counted = self.programs.get(case.program.name()).and_then(|paths| paths.get(path));
            counted.copied().with_context(|| format!("no instructions of {} in the path {path}", case.program.name()))
        };
        Ok((of(&name(case))? - of(Configuration::Bare.name())?).max(0.0) * self.ns_per_instruction)
    }
}
