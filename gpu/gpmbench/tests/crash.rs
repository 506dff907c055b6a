//! Crashes at every moment of small launches, on the interpreter: recovered, crashed again in the
//! recovery, and compared with oracles.

use std::process::Command;
use std::rc::Rc;

use nearpm_gpmbench::crash::{
    Campaign, Checkpoints, Database, LogForm, Record, Scenario, Several, Shared, Store, Sums, Transactions, Way,
    crashed, run_whole, unit,
};
use nearpm_gpmbench::db;
use nearpm_gpmbench::prefix::Sizes;
use nearpm_gpu::{Choice, Device, Interpreted, Medium, Module, PmRegion, Schedule, Watch};

fn holds(scenario: &dyn Scenario, campaign: &Campaign, least: u64) {
    run_whole(scenario).unwrap();
    let tally = campaign.run(scenario).unwrap_or_else(|error| panic!("{error:#}"));
    eprintln!("{tally:?}");
    assert!(tally.crashes >= least && tally.second_crashes >= least, "{tally:?}");
}

fn transactions(form: LogForm, by_processor: bool) -> Transactions {
    Transactions { form, blocks: 2, threads: 5, rounds: 2, by_processor, module: nearpm_gpmbench::txn().clone() }
}

/// A run that is watched tells for each moment what a run that is crashed there leaves.
#[test]
fn what_is_watched_is_what_crashes_leave() {
    let scenario = transactions(LogForm::Conventional, true);
    let device: Rc<dyn Device> = Rc::new(Interpreted::new(1 << 20));
    let region = PmRegion::create_in(device, Medium::of_bytes(vec![0; scenario.region_bytes() as usize])).unwrap();
    scenario.prepare(&region).unwrap();
    let base: Rc<[u8]> = region.close().unwrap().bytes().into();
    let opened = || {
        let device = Rc::new(Interpreted::new(1 << 20));
        device.set_schedule(Schedule::Seeded(3));
        let region = PmRegion::open_in(device.clone(), Medium::of_bytes(base.to_vec())).unwrap();
        (device, region)
    };
    let (device, region) = opened();
    let choices = vec![Choice::None, Choice::All, Choice::Seeded(5), Choice::OnlyThread(1)];
    device.watch(Watch::Every { every: 3, skip: 1, choices, all_choices: true }, base.clone());
    scenario.work(&region).unwrap();
    let seen = device.watched();
    assert!(seen.crashes.len() >= 40 && seen.images.len() >= 10 && seen.moments >= 30, "{seen:?}");
    for (plan, image) in &seen.crashes {
        let (device, region) = opened();
        device.plan_crash(Some(*plan));
        assert!(crashed(&scenario.work(&region).unwrap_err()), "{plan:?}");
        device.plan_crash(None);
        assert!(region.close().unwrap().bytes() == seen.images[*image].on(&base), "{plan:?}");
    }
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
    for (way, part, every) in [(Way::Whole, 1 << 8, 1), (Way::Changed, 4096, 16), (Way::Concurrent, 1 << 8, 1)] {
        let scenario = Checkpoints { part, way };
        run_whole(&scenario).unwrap();
        let tally = Campaign::sampled(every).run(&scenario).unwrap_or_else(|error| panic!("{error:#}"));
        // A restore persists nothing: a crash in it leaves what was there.
        assert!(tally.crashes >= 50 && tally.images >= 20 && tally.second_crashes == 0, "{tally:?}");
    }
}

#[test]
fn the_store_undoes_batches() {
    for (set_bits, batch, keys) in [(4, 60, 1 << 30), (2, 70, 40), (0, 40, 9)] {
        let module = nearpm_gpmbench::kvs().clone();
        holds(&Store { set_bits, batch, keys, module }, &Campaign::sampled(3), 20);
    }
}

#[test]
fn the_table_undoes_transactions() {
    for (partitions, every) in [(0, 1), (3, 4)] {
        let sizes = db::Sizes { rows: 80, updated: 40, groups: 3, partitions };
        holds(&Database { sizes, rows: 40, module: nearpm_gpmbench::db().clone() }, &Campaign::sampled(every), 50);
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

#[test]
fn a_batch_over_several_gpus_is_one() {
    let choices = [Choice::None, Choice::All, Choice::Seeded(1)];
    for devices in [2, 3] {
        let several = Several { devices, module: nearpm_gpmbench::txn().clone() };
        let tally = several.run(&choices).unwrap_or_else(|error| panic!("{error:#}"));
        eprintln!("{devices} GPUs: {tally:?}");
        assert!(tally.crashes >= 50 && tally.second_crashes == tally.crashes, "{tally:?}");
    }
}

/// With a fence less the several GPUs' batch is found out, too.
#[test]
fn a_batch_over_several_gpus_needs_its_fences() {
    let text = nearpm_gpmbench::txn().ptx().replace("membar.sys;", "");
    let several = Several { devices: 2, module: Module::new("without fences", text) };
    assert!(several.run(&[Choice::Seeded(1), Choice::Seeded(2), Choice::Seeded(3)]).is_err());
}

#[test]
fn a_campaign_goes_on_where_it_was_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.json");
    let campaign = |crashes: u64, workers: u64| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nearpm-gpmbench"));
        command.arg("campaign").arg("--record").arg(&path);
        command.args([format!("--crashes={crashes}"), format!("--workers={workers}")]);
        (command.output().unwrap().status.success(), Record::load(&path))
    };
    let (ended, record) = campaign(1, 2);
    let record = record.unwrap();
    assert!(ended && record.next == 1 && record.total() > 0);
    let (ended, again) = campaign(record.total() + 1, 3);
    let again = again.unwrap();
    assert!(ended && again.next == 2 && again.crashes.len() == 2 && again.images.values().all(|&images| images > 0));
    let mut alone = record;
    alone.add(unit(1).unwrap());
    assert_eq!(again, alone, "a record is the same however it was made");
    std::fs::write(&path, "nothing").unwrap();
    let (ended, record) = campaign(1, 1);
    assert!(!ended && record.is_err());
}
