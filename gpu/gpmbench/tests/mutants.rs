//! Fences that are missing, weaker, or before the stores that they are behind: each is found by a
//! crash campaign, or is known to be one that nothing depends on.

use nearpm_gpmbench::crash::{Campaign, Database, LogForm, Resumed, Run, Scenario, Shared, Store, Sums, Transactions};
use nearpm_gpmbench::db;
use nearpm_gpmbench::prefix::Sizes;
use nearpm_gpmbench::programs::{Bfs, Graph, levels_of};
use nearpm_gpu::{Choice, Module, Schedule};

/// A fence of a kernel: the kernel's name, and the fence's number in it.
type Fence = (String, usize);

/// The system fences of some kernels, with the text's line of each.
fn fences(text: &str, kernels: &[&str]) -> Vec<(Fence, usize)> {
    let (mut kernel, mut number) = (String::new(), 0);
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if let Some((_, rest)) = line.split_once(".entry ") {
            (kernel, number) = (rest.trim_end_matches('(').to_owned(), 0);
        }
        if line.trim() == "membar.sys;" {
            if kernels.contains(&kernel.as_str()) {
                found.push(((kernel.clone(), number), at));
            }
            number += 1;
        }
    }
    found
}

/// The text with another line.
fn with_line(text: &str, at: usize, line: &str) -> String {
    text.lines().enumerate().map(|(number, old)| if number == at { line } else { old }.to_owned() + "\n").collect()
}

/// The text with a fence before the stores that lie between it and the branch, label or fence
/// before it; None where there are none.
fn with_fence_before_stores(text: &str, at: usize) -> Option<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let ends =
        |line: &str| line.contains("bra") || line.contains(':') || line.contains("membar") || line.contains("bar.");
    let first = (0..at)
        .rev()
        .take_while(|&number| !ends(lines[number]))
        .filter(|&number| lines[number].trim().starts_with("st."))
        .last()?;
    let fence = lines.remove(at);
    lines.insert(first, fence);
    Some(lines.join("\n"))
}

/// A campaign for mutants: fences of a recovery are needed for a crash in it, so that there are
/// several moments of it for each crash before.
fn campaign(second: u64) -> Campaign {
    Campaign { schedules: vec![Schedule::RoundRobin], second, ..Campaign::sampled(1) }
}

/// Every mutant is killed but those of `idle`, of which nothing depends on the fence.
fn killed(
    original: &Module,
    kernels: &[&str],
    idle: &[(&str, usize)],
    campaign: &Campaign,
    scenarios: &dyn Fn(Module) -> Vec<Box<dyn Scenario>>,
) {
    let all = fences(original.ptx(), kernels);
    assert!(!all.is_empty());
    for ((kernel, number), at) in all {
        let expected = !idle.contains(&(kernel.as_str(), number));
        // A fence that may go may be weaker, or elsewhere, too.
        let mut changes = vec![("gone", with_line(original.ptx(), at, ""))];
        if expected {
            changes.push(("weaker", with_line(original.ptx(), at, "membar.gl;")));
            changes.extend(with_fence_before_stores(original.ptx(), at).map(|text| ("before its stores", text)));
        }
        for (change, text) in changes {
            let mutant = Module::new("mutant", text);
            let found = scenarios(mutant).iter().any(|scenario| campaign.run(scenario.as_ref()).is_err());
            assert_eq!(found, expected, "fence {number} of {kernel}, {change}");
        }
    }
}

/// Crashes in a recovery for each crash before it.
const SECOND: u64 = 16;

/// The kernel's last fence orders nothing: when a kernel has ended, all that it stored has
/// persisted. It is there for who reads the data before that. What a kernel has removed from a log
/// twice does not matter: it restores the same value again.
const OF_TRANSACTIONS: [(&str, usize); 7] = [
    ("update_sealed", 1),
    ("update_tail", 2),
    ("update_conv", 2),
    ("update_shared", 1),
    ("undo_sealed", 1),
    ("undo_tail", 1),
    // The removal: the compiler has turned the loop around.
    ("undo_conv", 0),
];

#[test]
fn fences_of_logs_are_all_needed() {
    let forms = [
        (LogForm::Sealed, ["update_sealed", "undo_sealed"]),
        (LogForm::Tail, ["update_tail", "undo_tail"]),
        (LogForm::Conventional, ["update_conv", "undo_conv"]),
    ];
    for (form, kernels) in forms {
        killed(nearpm_gpmbench::txn(), &kernels, &OF_TRANSACTIONS, &campaign(SECOND), &|module| {
            vec![Box::new(Transactions { form, blocks: 1, threads: 4, rounds: 2, by_processor: false, module })]
        });
    }
}

#[test]
fn fences_of_shared_cells_are_all_needed() {
    killed(nearpm_gpmbench::txn(), &["update_shared"], &OF_TRANSACTIONS, &campaign(SECOND), &|module| {
        vec![Box::new(Shared { threads: 6, sharing: 2, by_stamp: true, module })]
    });
}

#[test]
fn fences_of_the_store_are_all_needed() {
    let idle = [("kvs_set", 1), ("kvs_undo", 0)];
    killed(nearpm_gpmbench::kvs(), &["kvs_set", "kvs_undo"], &idle, &campaign(SECOND), &|module| {
        vec![Box::new(Store { set_bits: 2, batch: 8, keys: 1 << 30, module })]
    });
}

#[test]
fn fences_of_the_table_are_all_needed() {
    // Fences at a kernel's end; behind the logged number of rows, and before the number itself,
    // lies the end of a kernel, too.
    let idle = [
        ("db_log_count", 1),
        ("db_insert", 0),
        ("db_set_count", 0),
        ("db_update", 1),
        ("db_undo", 0),
        ("db_undo_count", 0),
    ];
    // Its recovery is long: with 3 crashes in each all fences are found that 16 find, in a fifth of
    // the time.
    killed(nearpm_gpmbench::db(), &idle.map(|(kernel, _)| kernel), &idle, &campaign(3), &|module| {
        let sizes = db::Sizes { rows: 16, updated: 8, groups: 2, partitions: 0 };
        vec![Box::new(Database { sizes, rows: 8, module })]
    });
}

#[test]
fn fences_of_the_table_with_a_conventional_log_are_all_needed() {
    // The end of the kernel; the removal of what a second removal would restore to the same value.
    let idle = [("db_update_conv", 2), ("db_undo_conv", 1)];
    // Of an entry only the old balance differs from that of the update before: few of the subsets
    // lose it and keep the tail.
    let campaign = Campaign { choices: (0..12).map(Choice::Seeded).collect(), ..campaign(8) };
    killed(nearpm_gpmbench::db(), &idle.map(|(kernel, _)| kernel), &idle, &campaign, &|module| {
        let sizes = db::Sizes { rows: 16, updated: 8, groups: 2, partitions: 2 };
        vec![Box::new(Database { sizes, rows: 8, module })]
    });
}

#[test]
fn fences_of_prefix_sums_are_all_needed() {
    let idle = [("whole_sums", 1)];
    killed(nearpm_gpmbench::prefix(), &["whole_sums"], &idle, &campaign(SECOND), &|module| {
        vec![Box::new(Sums { sizes: Sizes { arrays: 1, blocks: 2, threads: 64 }, module })]
    });
}

/// All levels are searched by one launch, so that no end of a kernel stands in for the fence.
#[test]
fn the_fence_of_the_search_is_needed() {
    killed(nearpm_gpmbench::bfs(), &["bfs_search"], &[], &campaign(1), &|module| {
        let graph = Graph::roads(5, 4, 1);
        let bytes_of = |levels: Vec<u32>| levels.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
        let (bytes, expected) = (Bfs::region_bytes(&graph), bytes_of(levels_of(&graph)));
        let run: Run<'_> = Box::new(move |region| {
            let mut program = Bfs::open_with(region, &graph, &module)?.with_blocks(2);
            program.run()?;
            Ok(bytes_of(program.levels()?))
        });
        vec![Box::new(Resumed { bytes, run, expected })]
    });
}
