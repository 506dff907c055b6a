//! Map programs for PMDK, unmodified binaries, on the simulated card in virtual time, each way
//! charged with the instructions that it executes: those of this project (`ours.rs`), and PMDK's
//! own, of a checkout that the environment names (`pmdk.rs`).
//!
//! ```console
//! $ NEARPM_THOROUGH=1 cargo nextest run --release -p nearpm-pmemobj-card --test virtual_time --no-capture    # the tables of docs/pmdk-card.md
//! ```

mod ours;
mod pmdk;
mod table;
mod taken;

use nearpm_pmemobj_programs::skip;

use taken::{Subject, Taken, Way, all_taken, ways};

/// Whether instructions can be counted here; says that they cannot.
fn can_count() -> bool {
    let can = std::process::Command::new("valgrind").arg("--version").output().is_ok();
    if !can {
        skip("valgrind is not installed (Debian: valgrind)");
    }
    can
}

/// What an insertion takes by each way, map by map, checked.
fn measure(
    subject: &dyn Subject,
    maps: &[&'static str],
    durability: &'static str,
) -> Vec<(&'static str, Vec<(Way, Taken)>)> {
    let all = ways(durability);
    let (maps, ways, operations) = match nearpm_tier::thorough() {
        true => (maps, all, 100),
        false => (&maps[..1], vec![all[0], all[1], all[2]], 40),
    };
    let wanted: Vec<(&'static str, Way)> =
        maps.iter().flat_map(|&map| ways.iter().map(move |&way| (map, way))).collect();
    let taken = all_taken(subject, &wanted, operations);
    for ((map, way), taken) in wanted.iter().zip(&taken) {
        // Asynchronous commits share an epoch, whose commands may come behind the last insertion.
        let least = if durability == "durable" { 1.0 } else { 0.01 };
        let is_right = if way.executor == "card" { taken.commands >= least } else { taken.commands == 0.0 };
        assert!(is_right, "{map} {way:?}: {taken:?}");
        // A durable commit waits for a read-back at least, and an insertion has thousands of
        // instructions.
        let waits = if durability == "durable" { 300.0 } else { 0.0 };
        assert!(taken.in_computer_ns > waits && taken.instructions > 1000.0, "{map} {way:?}: {taken:?}");
    }
    let of = |map: &str| {
        let all = wanted.iter().zip(&taken).filter(|((of, _), _)| *of == map);
        all.map(|((_, way), taken)| (*way, *taken)).collect::<Vec<(Way, Taken)>>()
    };
    maps.iter().map(|&map| (map, of(map))).collect()
}
