//! Whether a pool is in order, by the library's own word.

use std::path::Path;

use super::{Library, Program};

/// A process of its own that looks at a pool which nobody has open.
pub struct Checker(Program);

impl Checker {
    /// Compiles it; `None`, and says so, without PMDK's headers.
    pub fn compile() -> Option<Checker> {
        Program::compile("checked").map(Checker)
    }

    /// Looks at a pool of this layout.
    ///
    /// # Panics
    /// If it is not in order.
    pub fn check(&self, library: Library, pool: &Path, layout: &str) {
        let output = self.0.start(library, pool, &[layout], &[]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {text}", pool.display());
    }
}
