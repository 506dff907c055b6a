//! Links the library once, compiles C programs, and runs them.

pub mod callgrind;
mod check;
pub mod examples;
mod follow;
pub mod rig;
mod run;

pub use check::Checker;
pub use follow::Followed;
pub use run::Run;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use nearpm::Statistics;
use tempfile::TempDir;

/// What a program runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// PMDK, where it is installed.
    Pmdk,
    /// This library on a working copy; files pass for persistent memory.
    WorkingCopy,
    /// This library in place; files pass for persistent memory.
    InPlace,
    /// This library on an ordinary file, which each fence synchronises.
    OrdinaryFile,
    /// This library with new pools on a simulated card, if it has one.
    SimulatedCard,
}

/// Values of `NEARPM_MECHANISM` beside `record`, which is the default.
pub const MECHANISMS: [&str; 4] = ["undo", "redo", "checkpoint", "shadow"];

/// Name of the card's memory in the folder of the pools.
pub const CARD: &str = "card";

/// The folder of this test's own files: `target/.../deps`, where the static library is as well.
fn dependencies() -> PathBuf {
    let own = std::env::current_exe().expect("a test has a file");
    own.parent().expect("it lies in a folder").to_owned()
}

/// The package of the library that is tested: the one whose test this is, or the one with a card
/// for tests of others.
fn package() -> &'static str {
    let own = std::env::var("CARGO_PKG_NAME").expect("cargo and nextest name the package whose test they run");
    if own == "nearpm-pmemobj" { "nearpm-pmemobj" } else { "nearpm-pmemobj-card" }
}

/// The number of commands that were posted for a program, of what it prints with
/// `NEARPM_STATISTICS=1`.
///
/// # Panics
/// If it prints none.
pub fn commands(printed: &str) -> u64 {
    let statistics = Statistics::printed_in(printed);
    statistics.unwrap_or_else(|| panic!("no statistics in {printed}")).commands
}

/// The newest static library: cargo has built it with this test.
fn static_library() -> PathBuf {
    let start = format!("lib{}", package().replace('-', "_"));
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let rest = name.strip_prefix(&start).and_then(|rest| rest.strip_suffix(".a"));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let written = |path: &PathBuf| path.metadata().and_then(|m| m.modified()).expect("a file has a time");
    let found = std::fs::read_dir(dependencies()).expect("the folder can be read");
    let found = found.map(|entry| entry.expect("an entry can be read").path()).filter(is_ours);
    found.max_by_key(written).expect("cargo has built the static library")
}

/// Where the sources of `nearpm-pmemobj` are.
fn folder_of_pmemobj() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Path of the shared library, which is linked by the first call.
pub fn library() -> PathBuf {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder for the library");
        let mut link = Command::new(folder_of_pmemobj().join("link"));
        link.arg(static_library()).arg(folder.path());
        if package() == "nearpm-pmemobj-card" {
            link.arg("nearpm_pmemobj_card");
        }
        let output = link.output().expect("the linker runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        folder
    });
    folder.path().join("libpmemobj.so.1")
}

/// Says that a test is not tried because something is not installed.
///
/// # Panics
/// Where everything is, by the word of whoever runs the tests (`NEARPM_TOOLS_INSTALLED`, set by
/// `./x test`).
pub fn skip(what: &str) {
    assert!(std::env::var_os("NEARPM_TOOLS_INSTALLED").is_none(), "{what}, and was to be installed");
    eprintln!("SKIPPED: {what}");
}

/// Whether the compiler finds PMDK's headers.
pub fn headers_present() -> bool {
    let header = Command::new("cc").args(["-include", "libpmemobj.h", "-E", "-x", "c", "/dev/null"]).output();
    header.is_ok_and(|output| output.status.success())
}

/// PMDK's library; says that it is not there.
pub fn pmdk() -> Option<PathBuf> {
    let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib64", "/usr/local/lib"];
    let found = folders.iter().map(|folder| Path::new(folder).join("libpmemobj.so.1")).find(|path| path.exists());
    if found.is_none() {
        skip("PMDK is not installed (Debian: libpmemobj1)");
    }
    found
}

/// A compiled program of `tests/c`.
pub struct Program {
    name: String,
    binary: PathBuf,
    folder: TempDir,
}

impl Program {
    /// Compiles a program; `None`, and says so, without PMDK's headers.
    pub fn compile(name: &str) -> Option<Program> {
        Program::compile_with(name, &[])
    }

    /// As [`Program::compile`], together with sources of the comparison with PMDK
    /// (`evaluation/pmdk/programs`).
    pub fn compile_with(name: &str, others: &[&str]) -> Option<Program> {
        Program::build(name, &folder_of_pmemobj().join("tests/c").join(name).with_extension("c"), others)
    }

    /// The program of the comparison with PMDK that inserts into maps.
    pub fn maps() -> Option<Program> {
        let others = ["btree.c", "rbtree.c", "skiplist.c", "hashmap.c", "common.c", "pool.c"];
        Program::build("maps", &folder_of_pmemobj().join("../../evaluation/pmdk/programs/maps.c"), &others)
    }

    /// The program of the comparison with PMDK that allocates and releases.
    pub fn pairs() -> Option<Program> {
        let source = folder_of_pmemobj().join("../../evaluation/pmdk/programs/alloc.c");
        Program::build("alloc", &source, &["common.c", "pool.c"])
    }

    fn build(name: &str, source: &Path, others: &[&str]) -> Option<Program> {
        if !headers_present() {
            skip("libpmemobj.h is not installed (Debian: libpmemobj-dev)");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder for the program");
        let comparison = folder_of_pmemobj().join("../../evaluation/pmdk/programs");
        let binary = folder.path().join(name);
        let output = Command::new("gcc")
            .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"])
            // The maps' arguments do not change after setjmp, which the compiler does not see.
            .args(if others.is_empty() { &[][..] } else { &["-Wno-clobbered"] })
            .arg("-I")
            .arg(&comparison)
            .args([Path::new("-o"), &binary, source, &library()])
            .args(others.iter().map(|other| comparison.join(other)))
            .output()
            .expect("gcc runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(Program { name: name.to_owned(), binary, folder })
    }

    /// Where the compiled program lies, while this lives.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Runs the program on a library with a new pool, with more variables of the environment.
    pub fn output(&self, library: Library, variables: &[(&str, &str)]) -> Output {
        let pools = self.folder_for_pools(library);
        self.start(library, &pools.path().join("pool"), &[], variables)
    }

    /// A folder for pools, in memory unless ordinary files are asked for.
    pub fn folder_for_pools(&self, library: Library) -> TempDir {
        let shared = Path::new("/dev/shm");
        let folder = match library {
            Library::OrdinaryFile => TempDir::new_in(self.folder.path()),
            _ if shared.exists() => TempDir::new_in(shared),
            _ => TempDir::new(),
        };
        folder.expect("a folder for the pool")
    }

    /// Runs the program from a working copy under a tool of valgrind, whose reports make it fail.
    pub fn under_valgrind(&self, tool: &str, variables: &[(&str, &str)]) -> Output {
        let pools = self.folder_for_pools(Library::WorkingCopy);
        let suppressions = folder_of_pmemobj().join("valgrind.supp");
        let mut command = Command::new("valgrind");
        command.arg(format!("--tool={tool}")).arg(format!("--suppressions={}", suppressions.display()));
        command.arg("--error-exitcode=9").arg(&self.binary).arg(pools.path().join("pool")).arg("nearpm");
        command.env("LD_LIBRARY_PATH", library().parent().expect("the library lies in a folder"));
        command.env("PMEM_IS_PMEM_FORCE", "1").envs(variables.iter().copied());
        command.output().expect("valgrind runs")
    }

    /// Instructions that the program executes with these arguments and a pool of its own, as
    /// callgrind counts them. It must succeed.
    pub fn instructions(&self, arguments: &[&str]) -> u64 {
        let pools = self.folder_for_pools(Library::WorkingCopy);
        let counts = pools.path().join("counts");
        let mut command = Command::new("valgrind");
        command.arg("--tool=callgrind").arg(format!("--callgrind-out-file={}", counts.display())).arg(&self.binary);
        command.arg(format!("--pool={}", pools.path().join("pool").display())).args(arguments);
        command.env("LD_LIBRARY_PATH", library().parent().expect("the library lies in a folder"));
        command.env("PMEM_IS_PMEM_FORCE", "1").env_remove("PMEMOBJ_CONF").env_remove("PMEMOBJ_CONF_FILE");
        let output = command.output().expect("valgrind runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} {arguments:?}: {}\n{text}", self.name, output.status);
        let counts = std::fs::read_to_string(counts).expect("callgrind writes what it counted");
        callgrind::instructions(&counts)
    }

    /// Runs the program, which must succeed.
    pub fn run(&self, library: Library, variables: &[(&str, &str)]) {
        if library == Library::Pmdk && pmdk().is_none() {
            return;
        }
        let output = self.output(library, variables);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} on {library:?}: {}\n{text}", self.name, output.status);
    }
}
