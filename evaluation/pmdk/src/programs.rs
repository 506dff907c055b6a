//! The C programs and the floor: their sources, and how they are built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

/// Every source, by its name. They are part of this crate, so that its users need not lie beside
/// it.
const SOURCES: &[(&str, &str)] = &[
    ("common.h", include_str!("../programs/common.h")),
    ("common.c", include_str!("../programs/common.c")),
    ("pool.h", include_str!("../programs/pool.h")),
    ("pool.c", include_str!("../programs/pool.c")),
    ("maps.h", include_str!("../programs/maps.h")),
    ("maps.c", include_str!("../programs/maps.c")),
    ("btree.c", include_str!("../programs/btree.c")),
    ("rbtree.c", include_str!("../programs/rbtree.c")),
    ("skiplist.c", include_str!("../programs/skiplist.c")),
    ("hashmap.c", include_str!("../programs/hashmap.c")),
    ("adds.c", include_str!("../programs/adds.c")),
    ("alloc.c", include_str!("../programs/alloc.c")),
    ("persists.c", include_str!("../programs/persists.c")),
    ("calls.c", include_str!("../programs/calls.c")),
    ("floor.c", include_str!("../floor/floor.c")),
    ("absent.c", include_str!("../floor/absent.c")),
    ("floor.map", include_str!("../floor/floor.map")),
];

/// Of all. Nothing that changes between setjmp and longjmp is used after it, which the compiler
/// cannot see where it has inlined a function into the one that calls setjmp.
const FLAGS: &[&str] = &["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-clobbered", "-pthread"];

/// A program of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Program {
    /// Insertions into maps.
    Maps,
    /// Transactions that add ranges.
    Adds,
    /// Pairs of allocation and release.
    Alloc,
    /// Bytes made durable outside of transactions.
    Persists,
    /// Single calls.
    Calls,
    /// Many kinds of single calls in one pool.
    Session,
}

impl Program {
    /// All of them.
    pub const ALL: [Program; 6] =
        [Program::Maps, Program::Adds, Program::Alloc, Program::Persists, Program::Calls, Program::Session];

    /// Whether the floor has what it calls.
    pub fn has_floor(self) -> bool {
        !matches!(self, Program::Calls | Program::Session)
    }

    /// The name of its file.
    pub fn name(self) -> &'static str {
        match self {
            Program::Maps => "maps",
            Program::Adds => "adds",
            Program::Alloc => "alloc",
            Program::Persists => "persists",
            Program::Calls | Program::Session => "calls",
        }
    }

    fn sources(self) -> &'static [&'static str] {
        match self {
            Program::Maps => &["maps.c", "btree.c", "rbtree.c", "skiplist.c", "hashmap.c", "common.c", "pool.c"],
            Program::Adds => &["adds.c", "common.c", "pool.c"],
            Program::Alloc => &["alloc.c", "common.c", "pool.c"],
            Program::Persists => &["persists.c", "common.c", "pool.c"],
            Program::Calls | Program::Session => &["calls.c", "common.c", "pool.c"],
        }
    }
}

/// The built programs and the floor.
pub struct Programs {
    folder: PathBuf,
    /// Takes the folder away with it, where nobody has named one.
    _temporary: Option<TempDir>,
}

impl Programs {
    /// Builds everything, in a folder that goes when this does, against the headers of libpmemobj,
    /// which are the only part of PMDK that this needs: the programs are linked with the floor, and
    /// the loader takes whichever library has its name.
    pub fn build() -> Result<Self> {
        let temporary = tempfile::tempdir().context("no temporary folder can be made")?;
        let programs = Programs::build_in(temporary.path())?;
        Ok(Programs { _temporary: Some(temporary), ..programs })
    }

    /// The same in this folder, which stays.
    pub fn build_in(folder: &Path) -> Result<Self> {
        let programs = Programs { folder: folder.to_path_buf(), _temporary: None };
        fs::create_dir_all(programs.floor()).with_context(|| format!("{} cannot be made", folder.display()))?;
        for (name, text) in SOURCES {
            fs::write(folder.join(name), text).with_context(|| format!("{name} cannot be written"))?;
        }
        let link = [
            "-shared",
            "-fPIC",
            "-Wl,-soname,libpmemobj.so.1",
            "-Wl,--version-script=floor.map",
            "floor.c",
            "absent.c",
        ];
        programs.compile("floor/libpmemobj.so.1", &link)?;
        for program in Program::ALL {
            let mut arguments = program.sources().to_vec();
            arguments.push("floor/libpmemobj.so.1");
            programs.compile(program.name(), &arguments)?;
        }
        Ok(programs)
    }

    /// Those that were built in a folder before: a machine that only measures needs no compiler.
    pub fn built_in(folder: &Path) -> Result<Self> {
        // Programs are run from elsewhere, by this path.
        let folder = folder.canonicalize().with_context(|| format!("there is no folder {}", folder.display()))?;
        let programs = Programs { folder, _temporary: None };
        // They lie beside the sources that they were made of.
        for (name, text) in SOURCES {
            let same = fs::read(programs.folder.join(name)).is_ok_and(|there| there == text.as_bytes());
            ensure!(same, "{} has programs of another {name}: build them again", programs.folder.display());
        }
        for program in Program::ALL {
            let file = programs.path(program);
            ensure!(file.is_file(), "there is no program {}: build them there first", file.display());
        }
        Ok(programs)
    }

    /// The file of a program.
    pub fn path(&self, program: Program) -> PathBuf {
        self.folder.join(program.name())
    }

    /// The folder that holds the floor's `libpmemobj.so.1`.
    pub fn floor(&self) -> PathBuf {
        self.folder.join("floor")
    }

    fn compile(&self, output: &str, arguments: &[&str]) -> Result<()> {
        compile(&self.folder, output, arguments)
    }
}

/// Whether the C compiler finds the headers of libpmemobj.
pub fn headers_present() -> bool {
    let header = Command::new("cc").args(["-include", "libpmemobj.h", "-E", "-x", "c", "/dev/null"]).output();
    header.is_ok_and(|output| output.status.success())
}

/// Compiles and links what the arguments say, in a folder.
pub fn compile(folder: &Path, output: &str, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("cc");
    command.current_dir(folder).args(FLAGS).args(["-o", output]).args(arguments);
    let result = command.output().context("there is no C compiler: install gcc")?;
    ensure!(result.status.success(), "{output} does not build:\n{}", String::from_utf8_lossy(&result.stderr));
    Ok(())
}
