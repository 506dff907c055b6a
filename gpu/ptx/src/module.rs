//! A parsed and decoded PTX module.

use std::sync::Arc;

use crate::code::{Code, Variables};

/// PTX text that was parsed and decoded, ready to launch. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Module {
    entries: Arc<[Entry]>,
}

/// A kernel (`.visible .entry`). Cheap to clone.
#[derive(Clone, Debug)]
pub struct Entry {
    pub(crate) code: Arc<Code>,
}

/// One parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in the PTX text.
    pub name: String,
    /// Bytes that it takes.
    pub bytes: usize,
    /// Its offset in parameter space, aligned as declared.
    pub offset: usize,
}

/// Text that is not PTX, or PTX that the interpreter does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ParseError {
    /// From 1.
    pub line: u32,
    /// From 1.
    pub column: u32,
    /// What was expected, or is not supported.
    pub message: String,
}

/// A kernel that the module has not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no kernel {name}; the module has {}", .known.join(", "))]
pub struct NoSuchEntry {
    /// The name asked for.
    pub name: String,
    /// The module's kernels.
    pub known: Vec<String>,
}

impl Module {
    /// Parses and decodes PTX text.
    ///
    /// # Errors
    /// The first place that is not PTX or that uses what the interpreter does not know.
    pub fn parse(text: &str) -> Result<Module, ParseError> {
        let codes = crate::decode::decode(text)?;
        Ok(Module { entries: codes.into_iter().map(|code| Entry { code: Arc::new(code) }).collect() })
    }

    /// The kernel of that name.
    ///
    /// # Errors
    /// There is none; the error names those there are.
    pub fn entry(&self, name: &str) -> Result<&Entry, NoSuchEntry> {
        self.entries.iter().find(|entry| entry.name() == name).ok_or_else(|| NoSuchEntry {
            name: name.to_string(),
            known: self.entries.iter().map(|entry| entry.name().to_string()).collect(),
        })
    }

    /// All kernels, in the order of the text.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }
}

impl Module {
    /// The module's variables; None without any kernel.
    pub(crate) fn variables(&self) -> Option<&Arc<Variables>> {
        self.entries.first().map(|entry| &entry.code.variables)
    }
}

impl Entry {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.code.name
    }

    /// Its parameters, in order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.code.parameters
    }
}
