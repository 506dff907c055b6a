//! Crashes at every moment of small launches, on the interpreter: recovered, crashed again in the recovery, and compared with oracles.

use nearpm_gpmbench::crash::{Campaign, Checkpoints, LogForm, Scenario, Shared, Store, Sums, Transactions, run_whole};
use nearpm_gpmbench::prefix::Sizes;

fn holds(scenario: &dyn Scenario, campaign: &Campaign, least: u64) {
    run_whole(scenario).unwrap();
    let tally = campaign.run(scenario).unwrap_or_else(|error| panic!("{error:#}"));
    eprintln!("{tally:?}");
    assert!(tally.crashes >= least && tally.second_crashes >= least, "{tally:?}");
}

fn transactions(form: LogForm, by_processor: bool) -> Transactions {
    Transactions { form, blocks: 2, threads: 5, rounds: 2, by_processor, module: nearpm_gpmbench::txn().clone() }
}

#[test]
fn sealed_logs_undo() {
    holds(&transactions(LogForm::Sealed, false), &Campaign::thorough(6), 100);
    holds(&transactions(LogForm::Sealed, true), &Campaign::sampled(1), 50);
}

#[test]
fn tail_logs_undo() {
    holds(&transactions(LogForm::Tail, false), &Campaign::thorough(6), 100);
    holds(&transactions(LogForm::Tail, true), &Campaign::sampled(1), 50);
}

#[test]
fn conventional_logs_undo() {
    holds(&transactions(LogForm::Conventional, false), &Campaign::thorough(6), 100);
    holds(&transactions(LogForm::Conventional, true), &Campaign::sampled(1), 50);
}

#[test]
fn whole_warps_of_several_blocks_undo() {
    for form in [LogForm::Sealed, LogForm::Tail] {
        let module = nearpm_gpmbench::txn().clone();
        let scenario = Transactions { form, blocks: 2, threads: 64, rounds: 2, by_processor: false, module };
        holds(&scenario, &Campaign::sampled(1), 50);
    }
}

fn shared(by_stamp: bool) -> Shared {
    Shared { threads: 12, sharing: 3, by_stamp, module: nearpm_gpmbench::txn().clone() }
}

#[test]
fn threads_that_change_the_same_cells_are_undone_by_stamps() {
    holds(&shared(true), &Campaign::thorough(6), 100);
}

#[test]
fn by_thread_alone_their_undo_is_wrong() {
    assert!(Campaign::thorough(6).run(&shared(false)).is_err());
}

#[test]
fn checkpoints_restore() {
    holds(&Checkpoints { bytes: 1 << 10 }, &Campaign::sampled(1), 50);
}

#[test]
fn the_store_undoes_batches() {
    for (set_bits, batch, keys) in [(4, 60, 1 << 30), (2, 70, 40), (0, 40, 9)] {
        let module = nearpm_gpmbench::kvs().clone();
        holds(&Store { set_bits, batch, keys, module }, &Campaign::sampled(3), 20);
    }
}

#[test]
fn prefix_sums_go_on() {
    let sizes = Sizes { arrays: 2, blocks: 3, threads: 64 };
    holds(&Sums { sizes, module: nearpm_gpmbench::prefix().clone() }, &Campaign::thorough(2), 50);
}

#[test]
fn the_store_that_is_shown_is_crashed_and_recovered() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..8 {
        let path = folder.path().join(format!("{seed}.region"));
        let mut told = Vec::new();
        nearpm_gpmbench::show(&path, seed, &mut |line| told.push(line))
            .unwrap_or_else(|error| panic!("seed {seed}: {error:#}"));
        assert!(told.iter().filter(|line| line.contains("crashed as planned")).count() == 2, "{told:#?}");
        // What is there stays.
        assert!(nearpm_gpmbench::show(&path, seed, &mut |_| ()).is_err());
    }
}
