//! The library, installed into a folder of the test, and programs that are compiled against it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;

use super::{interface, library};

/// An installation.
pub struct Installed {
    /// The prefix.
    pub folder: PathBuf,
    _kept: TempDir,
}

/// The installation of this process.
pub fn get() -> &'static Installed {
    static INSTALLED: OnceLock<Installed> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let kept = tempfile::tempdir().expect("a folder for the library");
        // A prefix with a blank would need quotes in pkg-config's answers.
        let folder = kept.path().join("prefix");
        install(&folder, None);
        Installed { folder, _kept: kept }
    })
}

/// Runs the step that `./x install` runs, with what cargo has built for this test.
pub fn install(prefix: &Path, destination: Option<&Path>) {
    let manual = tempfile::tempdir().expect("a folder for the manual");
    for (name, text) in interface().manual() {
        let folder = manual.path().join(format!("man{}", name.rsplit('.').next().expect("a section")));
        std::fs::create_dir_all(&folder).expect("a folder for pages");
        std::fs::write(folder.join(name), text).expect("a page is written");
    }
    let own = std::env::current_exe().expect("a test has a file");
    let mut command = Command::new(library().join("install"));
    command.arg(own.parent().expect("it lies in a folder")).arg(manual.path()).arg(prefix);
    succeed(command.args(destination));
}

/// Runs a command, which must succeed, and gives what it printed.
pub fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints UTF-8")
}

/// The language that a program is compiled as.
#[derive(Clone, Copy)]
pub enum As {
    C,
    Cpp,
}

impl Installed {
    /// The flags that pkg-config gives to programs.
    pub fn flags(&self) -> Vec<String> {
        let mut command = Command::new("pkg-config");
        command.args(["--cflags", "--libs", "nearpm"]).env("PKG_CONFIG_PATH", self.folder.join("lib/pkgconfig"));
        succeed(&mut command).split_whitespace().map(str::to_owned).collect()
    }

    /// Compiles a program as its comment says, with every warning an error.
    pub fn compile(&self, source: &Path, language: As) -> Program {
        let folder = tempfile::tempdir().expect("a folder for the program");
        let binary = folder.path().join("program");
        let mut command = Command::new(if matches!(language, As::C) { "cc" } else { "c++" });
        command.args(match language {
            As::C => ["-std=c11", "-D_DEFAULT_SOURCE", "-pedantic"],
            As::Cpp => ["-xc++", "-std=c++17", "-D_DEFAULT_SOURCE"],
        });
        command.args(["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]).arg(&binary).arg(source);
        succeed(command.args(self.flags()));
        Program { binary, libraries: self.folder.join("lib"), folder }
    }
}

/// A compiled program with a folder for its pools.
pub struct Program {
    binary: PathBuf,
    libraries: PathBuf,
    folder: TempDir,
}

impl Program {
    /// Path of the program's pool.
    pub fn pool(&self) -> PathBuf {
        self.folder.path().join("pool")
    }

    /// The program with its pool and more arguments.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg(self.pool()).args(arguments).env("LD_LIBRARY_PATH", &self.libraries);
        command
    }

    /// Runs the program, which must succeed, and gives what it printed.
    pub fn run(&self, arguments: &[&str]) -> String {
        succeed(&mut self.command(arguments))
    }

    /// Runs the program.
    pub fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program runs")
    }
}
