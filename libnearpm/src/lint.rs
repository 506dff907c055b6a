//! Whether a pool looks for faults of the program that stores to it, what it tells of them, and to
//! whom.

use std::sync::Arc;

/// What a program does wrong, or in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// A store outside of transactions that was not made durable before the pool was closed: a
    /// flush is missing.
    Unpersisted,
    /// A transaction changed bytes that it had not added, or that it added later: an abort or a
    /// crash does not restore them.
    Unlogged,
    /// A persist of bytes that are durable: a flush too many.
    RedundantPersist,
    /// A range that a transaction added and did not change.
    UnusedAdd,
}

impl Fault {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Fault::Unpersisted => "stored outside of transactions and never made durable",
            Fault::Unlogged => "changed by a transaction that had not added it",
            Fault::RedundantPersist => "made durable although it was",
            Fault::UnusedAdd => "added to a transaction that did not change it",
        }
    }
}

/// A fault that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LintReport {
    /// What it is.
    pub fault: Fault,
    /// First byte, as an offset in the pool.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
    /// Offset of the object that it is in.
    pub object: u64,
    /// Bytes of that object.
    pub object_bytes: u64,
}

impl std::fmt::Display for LintReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let LintReport { fault, offset, bytes, object, object_bytes } = self;
        let inside = offset - object;
        write!(
            f,
            "{bytes} B at {offset:#x} (byte {inside} of the object of {object_bytes} B at {object:#x}): {}",
            fault.text()
        )
    }
}

/// Whether a pool looks for faults of the program, and whom it tells.
#[derive(Clone, Default)]
pub enum Lint {
    /// It does not look.
    #[default]
    Off,
    /// Standard error.
    Print,
    /// A function, which must not use the pool.
    Call(Arc<dyn Fn(&LintReport) + Send + Sync>),
}

impl std::fmt::Debug for Lint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Lint::Off => "Off",
            Lint::Print => "Print",
            Lint::Call(_) => "Call",
        })
    }
}

impl Lint {
    pub(crate) fn report(&self, report: &LintReport) {
        match self {
            Lint::Off => {}
            Lint::Print => eprintln!("nearpm lint: {report}"),
            Lint::Call(call) => call(report),
        }
    }
}
