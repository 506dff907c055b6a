//! Inserts into a hierarchical coalesced log, crashed at every point: with its fences an entry that
//! a tail covers is whole; without the first of them it is not, and that is found.

mod common;

use nearpm_ptx::{Arguments, Choice, Config, Ended, Gpu, Launch, Persistence, PmRange, Run, Schedule, Stop};

const WORDS: u64 = 4;
const ENTRIES: u64 = 2;

struct Log {
    gpu: Gpu,
    log: PmRange,
    tails: PmRange,
    launch: Launch,
    threads: u64,
}

impl Log {
    fn new(blocks: u32, block: u32) -> Self {
        let threads = u64::from(blocks * block);
        let mut gpu = Gpu::new(Config::default());
        let log = gpu.map_persistent(vec![0; (threads.next_multiple_of(32) * ENTRIES * WORDS * 4) as usize]);
        let tails = gpu.map_persistent(vec![0; threads as usize * 8]);
        let arguments = Arguments::new().pointer(log.address).pointer(tails.address).u32(ENTRIES as u32);
        Self { gpu, log, tails, launch: Launch::linear(blocks, block, arguments), threads }
    }

    /// Threads whose tail covers an entry that is not whole.
    fn torn(&self, log: &[u8], tails: &[u8]) -> Vec<u64> {
        let word = |index: u64| u32::from_le_bytes(log[index as usize * 4..][..4].try_into().unwrap());
        let whole = |thread: u64, entry: u64| {
            (0..WORDS).all(|i| {
                let at = ((thread / 32 * ENTRIES + entry) * WORDS + i) * 32 + thread % 32;
                word(at) == (thread * 1000 + entry * 10 + i + 1) as u32
            })
        };
        let tails = common::words(tails);
        (0..self.threads).filter(|&t| !(0..tails[t as usize]).all(|entry| whole(t, entry))).collect()
    }
}

/// Crash points with some torn entry, of all persist events of one schedule, each with several
/// choices.
fn bad_points(kernel: &str, schedule: Schedule) -> (u64, u64) {
    let module = common::module("hcl");
    let mut log = Log::new(2, 32);
    let mut run = Run { schedule, stop_at: Stop::PersistEvent(1), persistence: Persistence::Tracked, ..Run::default() };
    let (mut bad, mut points) = (0, 0);
    let launch = log.launch.clone();
    let mut outcome = log.gpu.launch(module.entry(kernel).unwrap(), &launch, &mut run).unwrap();
    while outcome.ended == Ended::Stopped {
        for seed in 0..8 {
            let images = log.gpu.crash_image(Choice::Seeded(outcome.counts.persist_events * 100 + seed)).unwrap();
            points += 1;
            bad += u64::from(!log.torn(&images[0], &images[1]).is_empty());
        }
        run.stop_at = Stop::PersistEvent(outcome.counts.persist_events + 1);
        outcome = log.gpu.resume(&mut run).unwrap();
    }
    assert!(log.torn(log.gpu.persistent(&log.log), log.gpu.persistent(&log.tails)).is_empty());
    assert_eq!(common::words(log.gpu.persistent(&log.tails)), vec![ENTRIES; 64]);
    (bad, points)
}

#[test]
fn with_its_fences_no_crash_tears_an_entry() {
    let mut points = 0;
    for schedule in [Schedule::RoundRobin].into_iter().chain((0..20).map(Schedule::Seeded)) {
        let (bad, of) = bad_points("hcl_insert", schedule.clone());
        assert_eq!(bad, 0, "{schedule}: {bad} of {of}");
        points += of;
    }
    assert!(points > 4000, "{points}");
}

#[test]
fn without_the_first_fence_crashes_tear_entries() {
    let (bad, points) = bad_points("hcl_insert_unfenced", Schedule::Seeded(1));
    assert!(bad >= points / 10, "{bad} of {points}");
}

#[test]
fn recovery_can_be_crashed_and_done_again() {
    let module = common::module("hcl");
    let (insert, undo) = (module.entry("hcl_insert").unwrap(), module.entry("hcl_undo").unwrap());
    for seed in 1..35 {
        let mut log = Log::new(1, 32);
        let tracked = |step| Run {
            schedule: Schedule::Seeded(seed),
            stop_at: Stop::Step(step),
            persistence: Persistence::Tracked,
            ..Run::default()
        };
        let launch = log.launch.clone();
        log.gpu.launch(insert, &launch, &mut tracked(seed * 2)).unwrap();
        let crash = log.gpu.crash(Choice::Seeded(seed)).unwrap();
        let before = common::words(log.gpu.persistent(&log.tails));
        assert!(
            crash.replay.contains("hcl_insert") && crash.replay.contains(&format!("step {}", seed * 2)),
            "{crash:?}"
        );
        for (again, step) in [(0, seed % 17), (1, seed % 23), (2, u64::MAX)] {
            let data = log.gpu.allocate(32 * 4).unwrap();
            let arguments = launch.arguments.clone().pointer(data);
            let mut run = tracked(step);
            let outcome = log.gpu.launch(undo, &Launch::linear(1, 32, arguments), &mut run).unwrap();
            assert!(log.torn(log.gpu.persistent(&log.log), log.gpu.persistent(&log.tails)).is_empty());
            assert!(again < 2 || outcome.ended == Ended::Done);
            log.gpu.crash(Choice::Seeded(seed * 7 + again)).unwrap();
            assert!(log.gpu.read(data, &mut [0; 4]).is_err(), "device memory is gone");
        }
        let after = common::words(log.gpu.persistent(&log.tails));
        assert!(before.iter().zip(&after).all(|(before, after)| after <= before && before - after <= 3));
    }
}

#[test]
fn a_launch_is_the_same_whether_it_is_stopped_on_the_way_or_not() {
    let module = common::module("hcl");
    let entry = module.entry("hcl_insert").unwrap();
    for schedule in [Schedule::RoundRobin, Schedule::Seeded(3), Schedule::Seeded(4)] {
        for target in [5, 33, 77, 140] {
            let mut straight = Log::new(2, 40);
            let mut stepped = Log::new(2, 40);
            let mut run = Run {
                schedule: schedule.clone(),
                stop_at: Stop::Step(target),
                persistence: Persistence::Tracked,
                ..Run::default()
            };
            let launch = straight.launch.clone();
            straight.gpu.launch(entry, &launch, &mut run).unwrap();
            run.stop_at = Stop::Step(1);
            stepped.gpu.launch(entry, &launch, &mut run).unwrap();
            for step in 2..=target {
                run.stop_at = if step % 3 == 0 { Stop::PersistEvent(0) } else { Stop::Step(step) };
                stepped.gpu.resume(&mut run).unwrap();
                run.stop_at = Stop::Step(step);
                stepped.gpu.resume(&mut run).unwrap();
            }
            assert_eq!(straight.gpu.pending().unwrap(), stepped.gpu.pending().unwrap(), "{schedule} {target}");
            let images = |gpu: &Gpu| gpu.crash_image(Choice::Seeded(9)).unwrap();
            assert_eq!(images(&straight.gpu), images(&stepped.gpu));
        }
    }
}
