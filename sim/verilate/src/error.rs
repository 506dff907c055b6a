//! What can go wrong between Verilog text and a running model.

use std::path::PathBuf;

/// Why a model could not be built, loaded or addressed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No Verilator on this machine. Nothing was written.
    #[error("Verilator was not found (looked at: {looked}): run `./x setup`, or set VERILATOR to its binary")]
    VerilatorMissing {
        /// The places that were tried, in order.
        looked: String,
    },

    /// No C++ compiler on this machine. Nothing was written.
    #[error("no C++ compiler runs (looked at: {looked}): run `./x setup`, or set NEARPM_CXX to one")]
    CompilerMissing {
        /// The programs that were tried, in order.
        looked: String,
    },

    /// A program that a build needs could not be started or did not succeed.
    #[error("`{command}` failed while building module `{top}`: {log}")]
    Tool {
        /// The module that was being built.
        top: String,
        /// The command line.
        command: String,
        /// What it wrote to its error stream, or why it did not start.
        log: String,
    },

    /// Verilator reported warnings that [`Source::deny_warnings`](crate::Source::deny_warnings)
    /// makes errors.
    #[error(
        "module `{top}` has Verilator warnings that are denied; fix the design (or build with \
         `with_deny_warnings(false)` to look at it):\n{log}"
    )]
    DeniedWarnings {
        /// The module that was being built.
        top: String,
        /// The denied warnings only, as Verilator wrote them.
        log: String,
    },

    /// A file or folder of the cache could not be used.
    #[error("cannot {what} `{path}`: {source}; check the folder or set NEARPM_VERILATE_CACHE")]
    Io {
        /// The action, as a verb.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },

    /// The shared library was built but does not load.
    #[error("cannot load `{path}`: {source}; delete its folder to build it again")]
    Load {
        /// The shared library.
        path: PathBuf,
        /// The loader's reason.
        source: libloading::Error,
    },

    /// The top module has no port of that name.
    #[error("no port `{name}`; the ports are: {ports}")]
    NoSuchPort {
        /// The name that was asked for.
        name: String,
        /// All names there are.
        ports: String,
    },

    /// The source was built without tracing.
    #[error("this model was built without tracing: build it with `with_trace(true)`")]
    NotTraced,

    /// Verilator wrote what registers the points of coverage otherwise than this crate reads it.
    #[error("the points of coverage are not registered in `{path}` as expected: another version of Verilator?")]
    Coverage {
        /// The file.
        path: PathBuf,
    },

    /// The trace file could not be opened for writing.
    #[error("cannot open the trace file `{path}`: check that its folder exists and is writable")]
    TraceFile {
        /// The file.
        path: PathBuf,
    },
}

/// Adds the action and the path to a system error.
pub(crate) trait IoContext<T> {
    fn context(self, what: &'static str, path: &std::path::Path) -> Result<T, Error>;
}

impl<T> IoContext<T> for std::io::Result<T> {
    fn context(self, what: &'static str, path: &std::path::Path) -> Result<T, Error> {
        self.map_err(|source| Error::Io { what, path: path.to_owned(), source })
    }
}
