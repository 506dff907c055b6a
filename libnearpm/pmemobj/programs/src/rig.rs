//! A program that is cut and verified.

use std::path::{Path, PathBuf};
use std::process::Output;

use nearpm::memory::{CUT_STATUS, not_cut_in};
use tempfile::TempDir;

use super::{CARD, Library, Program};

/// A program with a pool that is ready for work.
pub struct Rig {
    program: Program,
    library: Library,
    /// See `NEARPM_MECHANISM`.
    mechanism: &'static str,
    /// See `NEARPM_DURABILITY`.
    durability: &'static str,
    folder: TempDir,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Cut,
    /// After so many events or cycles.
    Whole(u64),
}

impl End {
    /// How a run whose power was to fail has ended; `None` if it has failed.
    pub fn of(output: &Output) -> Option<End> {
        match output.status.code() {
            Some(CUT_STATUS) => Some(End::Cut),
            Some(0) => not_cut_in(&String::from_utf8_lossy(&output.stderr)).map(End::Whole),
            _ => None,
        }
    }
}

impl Rig {
    /// Prepares a pool; `None`, and says so, where programs cannot be compiled.
    pub fn new(name: &str, library: Library) -> Option<Rig> {
        Rig::by(name, library, "record")
    }

    /// As [`Rig::new`], with commits that a mechanism brings home.
    pub fn by(name: &str, library: Library, mechanism: &'static str) -> Option<Rig> {
        Rig::waiting(name, library, mechanism, "durable")
    }

    /// As [`Rig::by`], with transactions that end when they are as durable as this says.
    pub fn waiting(name: &str, library: Library, mechanism: &'static str, durability: &'static str) -> Option<Rig> {
        let program = Program::compile(name)?;
        let folder = program.folder_for_pools(library);
        let rig = Rig { program, library, mechanism, durability, folder };
        let output = rig.start(&["prepare"], "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::copy(rig.memory(), rig.path("prepared")).expect("the memory can be copied");
        Some(rig)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The file that holds what survives a cut: the pool's, or the card's.
    fn memory(&self) -> PathBuf {
        self.path(if self.library == Library::SimulatedCard { CARD } else { "pool" })
    }

    fn start(&self, arguments: &[&str], cut: &str) -> Output {
        let name = if self.library == Library::SimulatedCard { "NEARPM_CARD_CUT" } else { "NEARPM_POWER_CUT" };
        let variables = [
            (name, cut),
            ("NEARPM_CARD_BYTES", "16777216"),
            ("NEARPM_MECHANISM", self.mechanism),
            ("NEARPM_DURABILITY", self.durability),
        ];
        self.program.start(self.library, &self.path("pool"), arguments, &variables)
    }

    /// Works on a copy of the prepared pool until the cut, and verifies what is left.
    pub fn cut(&self, seed: u64, operations: u64, cut: &str) -> End {
        self.cut_and_lost(seed, operations, cut).0
    }

    /// As [`Rig::cut`], and how many operations that had returned are not found: the program says
    /// so where it was allowed to lose some.
    pub fn cut_and_lost(&self, seed: u64, operations: u64, cut: &str) -> (End, u64) {
        std::fs::copy(self.path("prepared"), self.memory()).expect("the memory can be copied");
        let (seed, operations) = (seed.to_string(), operations.to_string());
        let output = self.start(&["work", &seed, &operations], cut);
        let text = String::from_utf8_lossy(&output.stderr);
        let end =
            End::of(&output).unwrap_or_else(|| panic!("{:?}, {seed}, {cut}: {} {text}", self.library, output.status));
        (end, self.verify(&seed, output.stdout.len(), cut))
    }

    fn verify(&self, seed: &str, acknowledged: usize, cut: &str) -> u64 {
        let output = self.start(&["verify", seed, &acknowledged.to_string()], "");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?}, seed {seed}, cut {cut}: {text}", self.library);
        let lost = String::from_utf8_lossy(&output.stdout).trim().strip_prefix("lost ").map(str::parse);
        lost.map_or(0, |lost| lost.expect("the program counts them"))
    }

    /// Where the pool is.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// A random number of a seed.
pub fn draw(seed: u64) -> u64 {
    let mixed = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(6_364_136_223_846_793_005) >> 33
}
