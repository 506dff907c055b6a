//! The C++ compiler that models are made with.

use crate::Error;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// A C++ compiler, and what it is called with besides what every one is.
#[derive(Debug)]
pub(crate) struct Compiler {
    program: String,
    version: String,
}

impl Compiler {
    /// What `NEARPM_CXX` names; else `clang++`, where it is installed: a card takes it 33 s of
    /// processor time where `g++` 12 takes 54, and the model runs a tenth faster; else `g++`.
    ///
    /// # Errors
    /// None of them runs.
    pub(crate) fn find() -> Result<&'static Self, Error> {
        static FOUND: OnceLock<Option<Compiler>> = OnceLock::new();
        let named = std::env::var("NEARPM_CXX").ok().filter(|name| !name.is_empty());
        let looked = named.clone().map_or_else(|| vec!["clang++".to_owned(), "g++".to_owned()], |name| vec![name]);
        FOUND
            .get_or_init(|| looked.iter().find_map(|name| Self::open(name)))
            .as_ref()
            .ok_or_else(|| Error::CompilerMissing { looked: looked.join(", ") })
    }

    fn open(program: &str) -> Option<Self> {
        let out = Command::new(program).arg("--version").output().ok().filter(|out| out.status.success())?;
        let version = String::from_utf8_lossy(&out.stdout).lines().next()?.to_owned();
        Some(Self { program: program.to_owned(), version })
    }

    /// What tells it from others, for the name of a result.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// A call of it.
    pub(crate) fn command(&self) -> Command {
        Command::new(&self.program)
    }

    fn is_clang(&self) -> bool {
        self.version.contains("clang")
    }

    /// Keeps the runtimes of several loaded models apart; clang never unites them.
    pub(crate) fn flags(&self) -> &'static [&'static str] {
        if self.is_clang() { &[] } else { &["-fno-gnu-unique"] }
    }

    /// What makes a precompiled form of `header` in `folder`. Times of files are left out of it: a
    /// reinstalled header of the same version is the same.
    pub(crate) fn precompile(&self, header: &Path, folder: &Path) -> Vec<OsString> {
        let out = folder.join(if self.is_clang() { "verilated.pch" } else { "verilated.h.gch" });
        let timeless: &[&str] = if self.is_clang() { &["-Xclang", "-fno-pch-timestamp"] } else { &[] };
        let call = [OsStr::new("-x"), OsStr::new("c++-header"), header.as_os_str(), OsStr::new("-o"), out.as_os_str()];
        timeless.iter().map(OsString::from).chain(call.into_iter().map(OsString::from)).collect()
    }

    /// What a file is compiled with instead of that header.
    pub(crate) fn precompiled(&self, folder: &Path) -> Vec<OsString> {
        if self.is_clang() {
            vec!["-include-pch".into(), folder.join("verilated.pch").into()]
        } else {
            vec!["-include".into(), folder.join("verilated.h").into()]
        }
    }

    /// What a model is linked with: clang leaves questions about atomics to a library.
    pub(crate) fn libraries(&self) -> &'static [&'static str] {
        if self.is_clang() { &["-latomic"] } else { &[] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_compiler_is_called_as_it_is_one() {
        assert!(Compiler::open("no-such-compiler").is_none());
        let named = |version: &str| Compiler { program: "c++".to_owned(), version: version.to_owned() };
        let (clang, gcc) = (named("Debian clang version 14.0.6"), named("g++ (Debian 12.2.0-14) 12.2.0"));
        assert_eq!((clang.flags().len(), clang.libraries()), (0, &["-latomic"][..]));
        assert_eq!((gcc.flags(), gcc.libraries().len()), (&["-fno-gnu-unique"][..], 0));
        assert_ne!(clang.version(), gcc.version());
        // What is written is what is read, under the name that each compiler looks for.
        for (compiler, written) in [(&clang, "verilated.pch"), (&gcc, "verilated.h.gch")] {
            let out = compiler.precompile(Path::new("verilated.h"), Path::new("kept")).pop().expect("arguments");
            assert_eq!(Path::new(&out), Path::new("kept").join(written));
            let read = compiler.precompiled(Path::new("kept")).pop().expect("arguments");
            assert!(out.to_string_lossy().starts_with(&*read.to_string_lossy()), "{out:?} {read:?}");
        }
    }
}
