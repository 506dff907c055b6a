//! The contract C1 to C10, each rule twice: it holds, and a card with the protection planted away
//! is seen to break it.
//!
//! C9 is the library's: what the card adds to it (commands own whole lines, and nothing else is
//! touched) stands under C6.

use crate::support::scenario::*;
use crate::support::*;
use nearpm_interface::command::Command;
use nearpm_interface::geometry::{LINE_U64, POOLS_BASE};
use nearpm_interface::registers::{self, control, state};
use nearpm_interface::status::Status;
use nearpm_sim::core::{Access, CardCore};
use nearpm_sim::model::fault::Fault;

/// Runs a check on a sound card and on one with each fault, and wants it to notice.
fn notices(rule: &str, faults: &[Fault], check: impl Fn(Option<Fault>) -> Check) {
    check(None).unwrap_or_else(|e| panic!("{rule} does not hold: {e}"));
    for &fault in faults {
        // A card so broken that a bench assertion stops it has been noticed as well.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(Some(fault))));
        match outcome {
            Ok(Ok(())) => panic!("{rule}: nobody notices {fault:?}"),
            Ok(Err(how)) => println!("{rule}, {fault:?}: {how}"),
            Err(_) => println!("{rule}, {fault:?}: stopped by an assertion"),
        }
    }
}

#[test]
fn c1_one_order_for_loads_stores_and_commands() {
    let faults = [
        Fault::StorePassesWaitingCommand,
        Fault::CommandPassesHeldStore,
        Fault::LoadsAreNotOrdered,
        Fault::CommitIsNotOrdered,
    ];
    notices("C1", &faults, |fault| {
        mechanisms().iter().try_for_each(|s| run(s, fault))?;
        (0..20).try_for_each(|seed| run(&conflicts(seed, 120), fault))
    });
}

#[test]
fn c1_the_order_shows_in_memory_and_not_only_in_the_trace() {
    let faults = [Fault::StorePassesWaitingCommand, Fault::CommandPassesHeldStore, Fault::LoadsAreNotOrdered];
    notices("C1", &faults, |fault| {
        (0..40).try_for_each(|seed| match run(&conflicts(seed, 120), fault) {
            Err(e) if e.starts_with("order") => Ok(()),
            other => other,
        })
    });
}

#[test]
fn c2_ranges_are_released_when_the_memory_has_answered() {
    notices("C2", &[Fault::ReleaseBeforeAnswer], |fault| {
        mechanisms().iter().try_for_each(|s| run(s, fault))?;
        run(&conflicts(1, 100), fault)
    });
}

#[test]
fn c3_half_a_command_never_executes() {
    notices("C3", &[Fault::HalfCommandExecutes], |fault| {
        let (mut rig, mut oracle) = opened(fault);
        let command = undo(5, 0, 64, SLOTS).encode();
        let other = undo(6, 64, 64, SLOTS + 128).encode();
        // The commands differ from their ninth byte on.
        for split in 9..64 {
            let (low, high) = ((1u64 << split) - 1, !((1u64 << split) - 1));
            // The first half of one command and the second half of another.
            rig.post_raw(0, command, low);
            rig.card.submit(Access::CommandWrite {
                offset: nearpm_interface::command::slot_offset(0, rig.last_slot()),
                data: other,
                strobes: high,
            });
        }
        rig.settle();
        compare(&rig, &oracle, "halves")?;
        check(rig.status(0).accepted == 1, || "halves were accepted".into())?;
        // Both halves of one, in either order, with the first coming twice.
        for strobes in [0xffff_ffff_ffff, 0xffff_ffff_ffff, !0xffff_ffff_ffff] {
            rig.card.submit(Access::CommandWrite { offset: 0, data: command, strobes });
        }
        rig.settle();
        oracle.apply(&Access::CommandWrite { offset: 0, data: command, strobes: u64::MAX });
        compare(&rig, &oracle, "whole")
    });
}

#[test]
fn c4_a_read_back_counts_only_what_is_accepted() {
    notices("C4", &[Fault::AcceptedTooEarly], |fault| {
        for cycle in 0..60 {
            let (mut rig, _) = opened(fault);
            let start = rig.card.cycle();
            rig.post(undo(5, 0, 64, SLOTS));
            rig.post(commit(5));
            let read = rig.card.submit(Access::CommandRead { page: 0 });
            rig.card.advance_to(start + cycle);
            let answer = rig.card.take(read);
            let (after, _) = boot(rig.card.power_fail(ENERGY, cycle), fault);
            let Some(answer) = answer else { continue };
            let status = nearpm_interface::completion::PageStatus::from_bytes(&answer.data);
            check(status.accepted == 3, || "the read overtook the commands".into())?;
            let word = pool_bytes(after.card.medium(), RING, 8);
            check(word == 5u64.to_le_bytes() || word[0] == 5, || format!("acknowledged at {cycle}, and lost"))?;
        }
        Ok(())
    });
}

#[test]
fn c4_a_commit_waits_for_every_log_of_its_thread() {
    notices("C4", &[Fault::CommitIsNotOrdered], |fault| {
        let accesses = vec![post(0, 0, undo(5, 0, 4096, SLOTS)), post(0, 1, commit(5))];
        let (mut rig, _) = opened(fault);
        deliver(&mut rig, &Scenario { name: "commit", accesses, gap: 0 }, u64::MAX);
        rig.settle();
        let order: Vec<_> = rig.records.iter().map(|r| r.tag).collect();
        check(order == [0, 1], || format!("retired in the order {order:?}"))
    });
}

/// A card on which the log of the line at 0 fails, and what was sent behind it.
fn failed_log(fault: Option<Fault>) -> Rig {
    let (mut rig, _) = opened(fault);
    rig.card.plant_memory_error(POOLS_BASE);
    rig.post(undo(5, 0, 64, SLOTS));
    rig.store(SLOTS + 64, pattern(0, 9));
    rig.post(commit(5));
    rig.settle();
    rig
}

#[test]
fn c5_a_failed_log_holds_its_stores_and_refuses_the_commit() {
    notices("C5", &[Fault::FailedLogReleasesStores, Fault::CommitAfterFailedLog], |fault| {
        let mut rig = failed_log(fault);
        let statuses: Vec<_> = rig.records.iter().map(|r| r.status).collect();
        let expected = [Status::MemoryError.code(), Status::Latched.code()];
        check(statuses[statuses.len() - 2..] == expected, || format!("statuses {statuses:x?}"))?;
        check(rig.get(registers::LATCHED) == 1, || "not latched".into())?;
        let held = pool_bytes(rig.card.medium(), SLOTS + 64, 64) != pattern(0, 9);
        check(held, || "a covered store went on".into())?;
        check(pool_bytes(rig.card.medium(), RING, 8) != nearpm_interface::seal::seal_word(5).to_le_bytes(), || {
            "a commit counted".into()
        })?;
        // The unmap lets go, and the entry can be mapped again.
        check(rig.run(unmap()).status == 0, || "no unmap".into())?;
        rig.settle();
        check(pool_bytes(rig.card.medium(), SLOTS + 64, 64) == pattern(0, 9), || "still held".into())?;
        check(rig.run(map_command(POOLS_BASE)).status == 0, || "no map".into())
    });
}

#[test]
fn c5_malformed_commands_have_no_effect() {
    notices("C5", &[Fault::RangesAreNotChecked], |fault| {
        let (mut rig, oracle) = opened(fault);
        let record = rig.run(undo(5, POOL_BYTES - 32, 64, SLOTS));
        check(record.status == Status::OutOfRange.code(), || format!("status {:#x}", record.status))?;
        rig.settle();
        compare(&rig, &oracle, "out of range")
    });
}

#[test]
fn c6_recovery_restores_exactly_the_bytes_that_were_logged() {
    notices("C6", &[Fault::RollbackRoundsToLines], |fault| {
        let mut accesses = vec![post(0, 0, undo(5, 16, 8, SLOTS)), store(0, pattern(0, 7))];
        let recover = nearpm_interface::command::Opcode::Recover as u8;
        accesses.push(post(0, 1, Command { opcode: recover, ..apply(SLOTS + 64 + 16, 16, 8) }));
        run(&Scenario { name: "rollback", accesses, gap: 40 }, fault)
    });
}

#[test]
fn c7_a_torn_save_is_a_loss() {
    notices("C7", &[Fault::TornSaveIsReplayed], |fault| cut_in_save(&conflicts(3, 60), 120, 5, fault));
}

#[test]
fn c7_nothing_older_replaces_a_torn_save() {
    notices("C7", &[Fault::TornSaveFallsBack], |fault| {
        // A good save, its replay, then newer stores and a save without energy.
        let scenario = Scenario { name: "older", accesses: vec![store(0, pattern(0, 1)); 40], gap: 0 };
        let (medium, ..) = cut_at(&scenario, 30, ENERGY, None);
        let (mut rig, _) = boot(medium, fault);
        rig.store(0, pattern(0, 2));
        rig.settle();
        let (after, end) = boot(rig.card.power_fail(0, 1), fault);
        let value = pool_bytes(after.card.medium(), 0, 64);
        check(value == pattern(0, 2), || "an old write came back".into())?;
        check(end == Boot::Loss, || "the loss is not reported".into())
    });
}

#[test]
fn c7_a_replay_resumes_and_never_repeats() {
    notices("C7", &[Fault::ReplayStartsOver], |fault| {
        let scenario = &mechanisms()[0];
        cut_in_replay(scenario, 70, 3, fault)?;
        cut_in_replay(&mechanisms()[2], 60, 3, fault)
    });
}

#[test]
fn c7_the_window_stays_closed_until_the_replay_is_over() {
    notices("C7", &[Fault::WindowOpensEarly], |fault| {
        let scenario = Scenario { name: "window", accesses: vec![store(0, pattern(0, 1)); 40], gap: 0 };
        let (medium, ..) = cut_at(&scenario, 30, ENERGY, None);
        let mut rig = Rig::faulty(medium, fault);
        let mut seen = false;
        loop {
            let now = rig.get(registers::STATE);
            if now == state::OPEN {
                break;
            }
            let load = rig.card.submit(Access::PmRead { address: POOLS_BASE });
            let after = rig.get(registers::STATE);
            let error = rig.card.wait(load, LIMIT).error;
            seen |= now == state::REPLAYING;
            check(error || after == state::OPEN, || format!("a load was served in state {now}"))?;
        }
        check(seen, || "no replay was seen".into())
    });
}

#[test]
fn c8_a_function_level_reset_drains() {
    notices("C8", &[Fault::ResetDropsWork], |fault| {
        let scenario = conflicts(5, 40);
        let (mut rig, mut oracle) = opened(fault);
        deliver(&mut rig, &scenario, u64::MAX);
        rig.set(registers::CONTROL, control::FUNCTION_RESET);
        rig.settle();
        scenario.accesses.iter().for_each(|a| {
            oracle.apply(a);
        });
        compare(&rig, &oracle, "reset")?;
        let mapped = rig.get(registers::MAPPED);
        check(mapped == 0 && rig.get(registers::STATE) == state::OPEN, || format!("mapped {mapped:#x}"))?;
        // The rings are gone with the mappings.
        check(rig.post(unmap()) > 0, || unreachable!())?;
        rig.settle();
        check(rig.records.iter().all(|r| r.status != Status::Unmapped.code()), || "a ring is left".into())
    });
}

#[test]
fn c10_a_flood_delays_others_by_a_bounded_time() {
    // Every slot taken by a 4 KiB log in front: 32 x 4 KiB read and written at about 6 GB/s.
    const BOUND: u64 = 32 * 4096 * 300 / 6000 + 500;
    notices("C10", &[Fault::FloodStarves], |fault| {
        let (mut rig, _) = opened(fault);
        let flood = |n: u64| {
            // Forty slots of the ring, so that commands that are live together never meet.
            Command { flags: 0, ..undo(5, n % 16 * 4096, 4096, SLOTS + n % 40 * 4160) }
        };
        for n in 0..40 {
            rig.post_raw(1, flood(n).encode(), u64::MAX);
        }
        let victim = rig.post_to(
            2,
            Command { source: 100 * LINE_U64, destination: SLOTS + 200_000 / 64 * 64, ..undo(5, 0, 64, 0) },
        );
        // The time counts from acceptance: before that the link's own order holds the command.
        let start = loop {
            let now = rig.card.cycle();
            rig.card.advance_to(now + 10);
            if rig.card.take_trace().iter().any(|e| is_command(e, 2 + 40)) {
                break rig.card.cycle();
            }
            check(now < LIMIT, || "never accepted".into())?;
        };
        let mut n = 40;
        loop {
            rig.collect();
            if rig.records.iter().any(|r| r.tag == victim) {
                return Ok(());
            }
            check(rig.card.cycle() - start < BOUND, || "the victim starves".into())?;
            rig.post_raw(1, flood(n).encode(), u64::MAX);
            n += 1;
            let next = rig.card.cycle() + 60;
            rig.card.advance_to(next);
        }
    });
}

/// Whether an event is the acceptance of the `n`-th command since the trace began, by its order
/// number at least.
fn is_command(event: &nearpm_sim::model::trace::Event, n: u64) -> bool {
    use nearpm_sim::model::trace::What;
    matches!(event.what, What::Accepted { order, entry: Some(_), .. } if order >= n)
}
