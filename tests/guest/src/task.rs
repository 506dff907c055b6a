//! What a guest is to do: told on its kernel's command line.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Error, Result};

/// Names begin with this. The kernel takes a name with a dot for a parameter of a module that is
/// not there, and lets it be.
const MARK: &str = "nearpm.";

/// What is known of the operations when a guest starts after a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Operations whose effects must be there.
    pub acknowledged: usize,
    /// Operations whose effects may be there.
    pub started: usize,
}

/// What a pool lies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The card at a PCI address.
    Card(String),
    /// Persistent memory on CXL, by a file system with DAX.
    Cxl,
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Memory::Card(address) => f.write_str(address),
            Memory::Cxl => f.write_str("cxl"),
        }
    }
}

/// A guest's task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// What the pool lies on.
    pub memory: Memory,
    /// Seed of the operations.
    pub seed: u64,
    /// Operations in all.
    pub operations: usize,
    /// What is known of the life before; nothing in the first one.
    pub known: Option<Known>,
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Task { memory, seed, operations, known } = self;
        write!(f, "{MARK}memory={memory} {MARK}seed={seed} {MARK}operations={operations}")?;
        match known {
            Some(known) => write!(f, " {MARK}acknowledged={} {MARK}started={}", known.acknowledged, known.started),
            None => Ok(()),
        }
    }
}

impl FromStr for Task {
    type Err = Error;

    fn from_str(text: &str) -> Result<Task> {
        let find = |name: &str| {
            let mut words = text.split_whitespace().filter_map(|word| word.strip_prefix(MARK)?.split_once('='));
            words.find(|(found, _)| *found == name).map(|(_, value)| value)
        };
        let number = |name: &str| -> Result<usize> {
            let value = find(name).with_context(|| format!("the kernel was not told {MARK}{name}"))?;
            value.parse().with_context(|| format!("{MARK}{name} is {value:?}"))
        };
        let known = match find("acknowledged") {
            Some(_) => Some(Known { acknowledged: number("acknowledged")?, started: number("started")? }),
            None => None,
        };
        let memory = match find("memory").with_context(|| format!("the kernel was not told {MARK}memory"))? {
            "cxl" => Memory::Cxl,
            address => Memory::Card(address.to_owned()),
        };
        Ok(Task { memory, seed: number("seed")? as u64, operations: number("operations")?, known })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_read_among_what_else_stands_on_the_command_line() {
        let first = Task { memory: Memory::Card("0000:01:00.0".into()), seed: 7, operations: 90, known: None };
        let second = Task { known: Some(Known { acknowledged: 40, started: 41 }), ..first.clone() };
        let on_cxl = Task { memory: Memory::Cxl, ..second.clone() };
        for task in [first, second, on_cxl] {
            let line = format!("console=ttyS0 intel_iommu=on {task} panic=-1\n");
            assert_eq!(line.parse::<Task>().unwrap(), task);
        }
        for text in ["", "nearpm.memory=a nearpm.seed=1", "nearpm.memory=a nearpm.seed=x nearpm.operations=1"] {
            assert!(text.parse::<Task>().is_err(), "{text}");
        }
    }
}
