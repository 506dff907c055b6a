//! The library with the card, programs that are compiled against `nearpm.h`, and how they are cut
//! and killed.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use nearpm::memory::{CUT_STATUS, not_cut_in};
use tempfile::TempDir;

/// Values of a program's way that make copies.
pub const MECHANISMS: [&str; 4] = ["undo", "redo", "checkpoint", "shadow"];

/// Bytes of the cards: a process reads all of them when it starts one.
const CARD_BYTES: &str = "33554432";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A library that cargo has built for this test.
pub fn built(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a test has a file");
    own.parent().expect("it lies in a folder").join(name)
}

/// A folder in which `libnearpm.so.0` is one of the libraries.
fn folder_of(library: &str, folder: &TempDir) {
    let major = env!("CARGO_PKG_VERSION_MAJOR");
    for name in ["libnearpm.so".to_owned(), format!("libnearpm.so.{major}")] {
        std::os::unix::fs::symlink(built(library), folder.path().join(name)).expect("a link can be made");
    }
}

/// What a program runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// What everybody has.
    Ordinary,
    WithCard,
}

impl Library {
    fn folder(self) -> &'static Path {
        static FOLDERS: [OnceLock<TempDir>; 2] = [OnceLock::new(), OnceLock::new()];
        let (place, name) = match self {
            Library::Ordinary => (&FOLDERS[0], "libnearpm_c.so"),
            Library::WithCard => (&FOLDERS[1], "libnearpm_c_card.so"),
        };
        let folder = place.get_or_init(|| {
            let folder = tempfile::tempdir().expect("a folder for the library");
            folder_of(name, &folder);
            folder
        });
        folder.path()
    }
}

/// A program that was linked with the ordinary library, and a folder for its pool and its card.
pub struct Program {
    binary: PathBuf,
    _built: TempDir,
    pub folder: TempDir,
}

impl Program {
    /// Compiles a file of the repository.
    pub fn compile(source: &str) -> Program {
        let built = tempfile::tempdir().expect("a folder for the program");
        let binary = built.path().join("program");
        let library = root().join("libnearpm/c");
        let output = Command::new("cc")
            .args(["-std=c11", "-D_DEFAULT_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"])
            .arg(library.join("include"))
            .arg("-I")
            .arg(library.join("tests/c"))
            .arg(root().join(source))
            .arg("-L")
            .arg(Library::Ordinary.folder())
            .args(["-lnearpm", "-o"])
            .arg(&binary)
            .output()
            .expect("the compiler runs");
        assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
        let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a folder for the pool");
        Program { binary, _built: built, folder }
    }

    /// Where the program's pool has its file.
    pub fn pool(&self) -> PathBuf {
        self.folder.path().join("pool")
    }

    /// Where the card's memory is.
    pub fn card(&self) -> PathBuf {
        self.folder.path().join("card")
    }

    /// The program on a library, with its pool and more arguments, and no card.
    pub fn plain(&self, library: Library, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg(self.pool()).args(arguments).env("LD_LIBRARY_PATH", library.folder());
        for name in ["NEARPM_CARD", "NEARPM_CARD_BYTES", "NEARPM_CARD_CUT", "NEARPM_CARD_CLOCK"] {
            command.env_remove(name);
        }
        command
    }

    /// The program on the card.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.plain(Library::WithCard, arguments);
        command.env("NEARPM_CARD", self.card()).env("NEARPM_CARD_BYTES", CARD_BYTES);
        command
    }

    /// Runs it on the card; it must succeed. Gives what it printed, and what it printed to standard
    /// error.
    pub fn run(&self, arguments: &[&str]) -> (String, String) {
        succeed(&mut self.command(arguments))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command, which must succeed.
pub fn succeed(command: &mut Command) -> (String, String) {
    let output = command.output().expect("the program runs");
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

/// Runs a command, which must fail in order, and gives what it printed to standard error.
pub fn fail(command: &mut Command) -> String {
    let output = command.output().expect("the program runs");
    assert_eq!(output.status.code(), Some(1), "{command:?}: {}", text(&output.stderr));
    text(&output.stderr)
}

/// The number of commands that a program says.
pub fn commands(printed: &str) -> u64 {
    let line = printed.lines().find_map(|line| line.strip_suffix(" commands"));
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no number of commands in {printed:?}"))
}

/// A number of a seed.
pub fn draw(seed: u64) -> u64 {
    let mixed = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(6_364_136_223_846_793_005) >> 33
}

/// A program of `tests/c` with a pool that is ready for work.
pub struct Rig {
    program: Program,
    way: &'static str,
}

impl Rig {
    pub fn new(name: &str, way: &'static str) -> Rig {
        let program = Program::compile(&format!("sim/c-card/tests/c/{name}.c"));
        program.run(&[way, "prepare"]);
        std::fs::copy(program.card(), program.folder.path().join("prepared")).expect("the memory can be copied");
        Rig { program, way }
    }

    fn reset(&self) {
        let prepared = self.program.folder.path().join("prepared");
        std::fs::copy(prepared, self.program.card()).expect("the memory can be copied");
    }

    fn work(&self, seed: u64, operations: u64) -> Command {
        self.program.command(&[self.way, "work", &seed.to_string(), &operations.to_string()])
    }

    fn verify(&self, seed: u64, acknowledged: usize, what: &str) {
        let arguments = [self.way, "verify", &seed.to_string(), &acknowledged.to_string()];
        let output = self.program.command(&arguments).output().expect("the program runs");
        assert!(output.status.success(), "{}, seed {seed}, {what}: {}", self.way, text(&output.stderr));
    }

    /// Works to the end. Gives how many cycles that took, and how many commands were posted.
    pub fn whole(&self, seed: u64, operations: u64) -> (u64, u64) {
        self.reset();
        let mut command = self.work(seed, operations);
        let (dots, said) = succeed(command.env("NEARPM_CARD_CUT", format!("cycle={}", u64::MAX)));
        assert_eq!(dots.len() as u64, operations);
        self.verify(seed, dots.len(), "whole");
        (not_cut_in(&said).unwrap_or_else(|| panic!("no number of cycles in {said:?}")), commands(&said))
    }

    /// Works until the power is cut, and looks at what is left. Whether it was cut.
    pub fn cut(&self, seed: u64, operations: u64, cut: &str) -> bool {
        self.reset();
        let Output { status, stdout, stderr } =
            self.work(seed, operations).env("NEARPM_CARD_CUT", cut).output().expect("the program runs");
        let is_cut = status.code() == Some(CUT_STATUS);
        assert!(is_cut || status.success(), "{}, {seed}, {cut}: {status} {}", self.way, text(&stderr));
        self.verify(seed, stdout.len(), cut);
        is_cut
    }

    /// Works until it is killed behind so many operations, and looks at what is left.
    pub fn kill(&self, seed: u64, operations: usize) {
        self.reset();
        let mut child =
            self.work(seed, u64::MAX).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
        let mut stdout = child.stdout.take().expect("it is piped");
        let mut dots = vec![0; operations];
        stdout.read_exact(&mut dots).expect("it works");
        child.kill().expect("it runs");
        // What it said before it died.
        stdout.read_to_end(&mut dots).expect("the pipe can be read");
        assert!(!child.wait().expect("it has ended").success());
        self.verify(seed, dots.len(), "killed");
    }
}
