//! A file that is mapped into the process.

/// What a pool on an ordinary file survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Survives {
    /// A crash of the process: the page cache holds what was stored, so that nothing is flushed. A power
    /// cut or a crash of the operating system may corrupt the pool.
    ProcessCrash,
    /// A power cut: each fence is an `msync`.
    #[default]
    PowerCut,
}

/// A mapped file.
pub struct MappedMemory {}
