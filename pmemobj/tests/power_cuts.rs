//! Power cuts under a C program: at every fence of a short run, and at random events of longer ones. What survives a cut besides what was
//! fenced is drawn by a seed; lines are evicted at random. After each cut the program must find what it acknowledged, or one
//! operation more.
//!
//! The fast form makes some cuts; with `NEARPM_THOROUGH` set it makes 10 000.

mod support;

use std::path::{Path, PathBuf};

use nearpm::memory::CUT_STATUS;
use support::{Library, Program};
use tempfile::TempDir;

const MODES: [Library; 2] = [Library::WorkingCopy, Library::InPlace];

/// A program with a pool that is ready for work.
struct Rig {
    program: Program,
    library: Library,
    folder: TempDir,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Cut,
    /// After so many events.
    Whole(u64),
}

impl Rig {
    fn new(name: &str, library: Library) -> Option<Rig> {
        let program = Program::compile(name)?;
        let folder = program.folder_for_pools(library);
        let rig = Rig { program, library, folder };
        let output = rig.program.start(library, &rig.path("prepared"), &["prepare"], &[]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(rig)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Works on a copy of the prepared pool until the cut, and verifies what is left.
    fn cut(&self, seed: u64, operations: u64, cut: &str) -> End {
        let pool = self.path("pool");
        std::fs::copy(self.path("prepared"), &pool).expect("the pool can be copied");
        let (seed, operations) = (seed.to_string(), operations.to_string());
        let arguments = ["work", &seed, &operations];
        let output = self.program.start(self.library, &pool, &arguments, &[("NEARPM_POWER_CUT", cut)]);
        let text = String::from_utf8_lossy(&output.stderr);
        let end = match output.status.code() {
            Some(CUT_STATUS) => End::Cut,
            Some(0) => End::Whole(events(&text)),
            _ => panic!("{:?}, {seed}, {cut}: {} {text}", self.library, output.status),
        };
        self.verify(&pool, &seed, output.stdout.len(), cut);
        end
    }

    fn verify(&self, pool: &Path, seed: &str, acknowledged: usize, cut: &str) {
        let output = self.program.start(self.library, pool, &["verify", seed, &acknowledged.to_string()], &[]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?}, seed {seed}, cut {cut}: {text}", self.library);
    }
}

/// The number of events that a whole run reports when the pool is closed.
fn events(text: &str) -> u64 {
    let number = text.split("power was not cut in ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("no number of events in {text:?}"))
}

fn thorough() -> bool {
    std::env::var_os("NEARPM_THOROUGH").is_some()
}

/// Cuts at the first, second, third ... fence, until there is none left.
#[test]
fn at_every_fence() {
    let operations = if thorough() { 100 } else { 10 };
    for library in MODES {
        let Some(rig) = Rig::new("power_cut", library) else { return };
        let mut fence = 1;
        while rig.cut(1, operations, &format!("fence={fence},seed={fence},evict=8")) == End::Cut {
            fence += 1;
        }
        assert!(fence > operations, "each operation has a fence: {fence}");
    }
}

#[test]
fn at_random_events() {
    let (cuts, operations) = if thorough() { (4700, 200) } else { (30, 60) };
    for library in MODES {
        let Some(rig) = Rig::new("power_cut", library) else { return };
        let End::Whole(events) = rig.cut(2, operations, "fence=0") else { panic!("power was cut without being told") };
        let mut random = 0x9E37_79B9_7F4A_7C15_u64;
        for seed in 2..2 + cuts {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let event = 1 + (random >> 33) % events;
            // Another seed is another sequence with about as many events: some cuts come too late, which is no error.
            rig.cut(seed, operations, &format!("event={event},seed={seed},evict={}", 1 + seed % 20));
        }
    }
}

/// Large transactions and publications from a working copy, cut at each fence, and at events all along.
#[test]
fn large_changes() {
    let (operations, cuts) = if thorough() { (45, 200) } else { (10, 30) };
    let Some(rig) = Rig::new("defects_cut", Library::WorkingCopy) else { return };
    let mut fence = 1;
    while rig.cut(fence, operations, &format!("fence={fence},seed={fence},evict=50")) == End::Cut {
        fence += 1;
    }
    assert!(fence > operations, "each operation has a fence: {fence}");
    large_changes_at_events(&rig, operations, cuts);
}

/// As above in place, where the image looks for what the program has stored at each of many thousand events: a run takes
/// half a minute, so that only thorough runs have it.
#[test]
fn large_changes_in_place() {
    if !thorough() {
        eprintln!("SKIPPED: NEARPM_THOROUGH is not set");
        return;
    }
    let Some(rig) = Rig::new("defects_cut", Library::InPlace) else { return };
    large_changes_at_events(&rig, 5, 4);
}

fn large_changes_at_events(rig: &Rig, operations: u64, cuts: u64) {
    let End::Whole(events) = rig.cut(1, operations, "fence=0") else { panic!("power was cut without being told") };
    for seed in 1..=cuts {
        let event = seed * events / (cuts + 1);
        rig.cut(seed, operations, &format!("event={event},seed={seed},evict={}", 20 + seed));
    }
}
