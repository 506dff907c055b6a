//! What may have persisted after a crash, as exact sets: every image that is reached at any point
//! of any schedule is listed, and every image listed is reached.

mod common;

use std::collections::BTreeSet;

use common::Litmus;

fn set<const N: usize>(images: &[[u64; N]]) -> BTreeSet<Vec<u64>> {
    images.iter().map(|image| image.to_vec()).collect()
}

fn check<const N: usize>(litmus: Litmus, expected: &[[u64; N]]) {
    let (seen, explored) = litmus.images();
    assert!(explored.complete, "{}: {explored:?}", litmus.kernel);
    assert_eq!(seen, set(expected), "{}, {explored:?}", litmus.kernel);
}

/// Neither, the first, both: a store after a system fence never persists without one before it.
const ORDERED: &[[u64; 2]] = &[[0, 0], [1, 0], [1, 1]];
const ANY: &[[u64; 2]] = &[[0, 0], [0, 1], [1, 0], [1, 1]];

#[test]
fn a_system_fence_orders() {
    check(Litmus::one_thread("fenced", 2), ORDERED);
    check(Litmus::one_thread("sc_fenced", 2), ORDERED);
    check(Litmus::one_thread("released", 2), ORDERED);
}

#[test]
fn without_a_system_fence_any_subset_persists() {
    check(Litmus::one_thread("unfenced", 2), ANY);
    check(Litmus::one_thread("device_fenced", 2), ANY);
}

#[test]
fn a_store_of_16_bytes_tears_at_8() {
    check(Litmus::one_thread("torn", 2), &[[0, 0], [1, 0], [0, 2], [1, 2]]);
}

#[test]
fn stores_to_one_word_persist_in_their_order() {
    check(Litmus::one_thread("same_word", 1), &[[0], [1], [2], [3]]);
}

#[test]
fn stores_to_other_bytes_of_one_word_are_not_ordered() {
    check(Litmus::one_thread("halves", 1), &[[0], [1], [1 << 32], [1 << 32 | 1]]);
}

#[test]
fn a_narrow_store_brings_the_wide_one_below_it() {
    let wide = 0x1111_1111_2222_2222;
    check(Litmus::one_thread("overlap", 1), &[[0], [wide], [0x1111_1111_3333_3333]]);
}

#[test]
fn a_fence_persists_what_the_thread_has_observed() {
    check(Litmus::two_blocks("observed", true), ORDERED);
    check(Litmus::two_blocks("acquired", true), ORDERED);
    // What is stored is 1 where the other block's store was read, else nothing is stored there.
    check(Litmus::two_blocks("read_from", false), ORDERED);
}

#[test]
fn a_fence_does_not_persist_what_the_thread_has_not_observed() {
    for kernel in ["not_released", "narrow_release", "narrow_fence"] {
        check(Litmus::two_blocks(kernel, true), ANY);
    }
    check(Litmus::two_blocks("not_observed", false), ANY);
}

#[test]
fn the_last_to_count_persists_for_all() {
    let litmus = Litmus { kernel: "last_counted", blocks: 2, threads: 1, pm_words: 3, device: true, preemptions: 3 };
    check(litmus, &[[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 1, 1]]);
}

#[test]
fn after_a_barrier_one_thread_persists_for_its_block() {
    let litmus = |kernel| Litmus { kernel, blocks: 1, threads: 2, pm_words: 3, device: false, preemptions: 2 };
    let marked_last = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 1, 1]];
    check(litmus("barrier_last"), &marked_last);
    check(litmus("warp_last"), &marked_last);
    // Without the barrier only the marking thread's own store is sure to be there.
    let also = [[1, 0, 1]];
    let expected: Vec<[u64; 3]> = marked_last.into_iter().chain(also).collect();
    check(litmus("no_barrier_last"), &expected);
}

#[test]
fn a_barrier_across_warps_does_too() {
    let litmus = Litmus { kernel: "barrier_last", blocks: 1, threads: 33, pm_words: 34, device: false, preemptions: 1 };
    let module = common::module("litmus");
    let entry = module.entry(litmus.kernel).unwrap();
    // 2^33 images: the marked ones are looked at as random crashes.
    for seed in 0..200 {
        let (mut gpu, arguments) = common::small(litmus.pm_words, false);
        let launch = nearpm_ptx::Launch::linear(1, litmus.threads, arguments);
        let mut run = nearpm_ptx::Run {
            schedule: nearpm_ptx::Schedule::Seeded(seed),
            stop_at: nearpm_ptx::Stop::Step(seed % 40),
            persistence: nearpm_ptx::Persistence::Tracked,
            ..Default::default()
        };
        gpu.launch(entry, &launch, &mut run).unwrap();
        let image = common::words(&gpu.crash_image(nearpm_ptx::Choice::Seeded(seed)).unwrap()[0]);
        assert!(image[33] == 0 || image[..33].iter().all(|&word| word == 1), "seed {seed}: {image:?}");
    }
}

#[test]
fn atomics_persist_in_their_order() {
    check(Litmus::one_thread("atomics", 1), &[[0], [1], [3]]);
    let litmus = Litmus { kernel: "atomics", blocks: 2, threads: 1, pm_words: 1, device: false, preemptions: 3 };
    // 5 is no sum that is ever there: each thread adds 1 before it adds 2.
    check(litmus, &[[0], [1], [2], [3], [4], [6]]);
}

#[test]
fn blocks_wait_for_each_other_when_both_are_resident() {
    use nearpm_ptx::{FaultKind, Launch, LaunchError, Persistence, Run, Schedule};
    let module = common::module("litmus");
    // Block 1 raises the flag in the first kernel's place of block 0: here block 1 waits for block
    // 0, and the other way round when it is started first.
    for schedule in [Schedule::RoundRobin, Schedule::Seeded(1), Schedule::Seeded(2), Schedule::Seeded(3)] {
        for (kernel, resident, ends) in [("observed", 1, true), ("waits_first", 2, true), ("waits_first", 1, false)] {
            let mut gpu = nearpm_ptx::Gpu::new(nearpm_ptx::Config { resident_blocks: resident, ..Default::default() });
            let pm = gpu.map_persistent(vec![0; 16]);
            let flag = gpu.allocate(4).unwrap();
            let launch = Launch::linear(2, 1, nearpm_ptx::Arguments::new().pointer(pm.address).pointer(flag));
            let mut run =
                Run { schedule: schedule.clone(), persistence: Persistence::Tracked, budget: 20_000, ..Run::default() };
            match gpu.launch(module.entry(kernel).unwrap(), &launch, &mut run) {
                Ok(_) => assert!(ends, "{kernel} {resident} {schedule}"),
                Err(LaunchError::Fault(fault)) => {
                    assert!(!ends, "{fault}");
                    assert_eq!(fault.kind, FaultKind::DoesNotEnd { budget: 20_000 });
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[test]
fn who_only_arrives_at_a_barrier_observes_nothing_there() {
    // Thread 0 (of warp 0) arrives and goes on, thread 32 waits; each marks after a system fence.
    let litmus = |kernel| Litmus { kernel, blocks: 1, threads: 64, pm_words: 4, device: false, preemptions: 1 };
    let (seen, _) = litmus("arrives").images();
    let has = |image: &[u64; 4]| seen.contains(image.as_slice());
    // 0 and 1: data of the arriving and of the waiting one; 2 and 3: their marks.
    assert!(seen.iter().all(|image| image[3] == 0 || image[0] == 1), "the waiting one persists for both: {seen:?}");
    assert!(has(&[1, 0, 1, 0]) && has(&[1, 1, 1, 1]), "{seen:?}");
}
