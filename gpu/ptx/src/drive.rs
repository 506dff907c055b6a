//! Runs a launch: picks who runs, starts and ends blocks, and finds out when nobody can.

use crate::exec::{End, LaneFault, Turn, complete_barriers};
use crate::lanes::WARP;
use crate::machine::{Last, Running, Unfinished, Wait, Warp};
use crate::memory::Memory;
use crate::pick::{Part, pick, start_next};
use crate::{Ended, Fault, FaultKind, Run, Schedule, Stop, ThreadId, spare};

/// Runs until the end, the stop, or a fault.
pub(crate) fn drive(running: &mut Running, memory: &mut Memory, run: &mut Run) -> Result<Ended, Box<Fault>> {
    let (stop_step, stop_event) = match run.stop_at {
        Stop::Never => (u64::MAX, u64::MAX),
        Stop::Step(step) => (step, u64::MAX),
        Stop::PersistEvent(event) => (u64::MAX, event),
    };
    loop {
        fill(running);
        if running.blocks.is_empty() {
            return Ok(Ended::Done);
        }
        let step = running.counts.warp_instructions;
        if step >= stop_step || running.counts.persist_events >= stop_event {
            return Ok(Ended::Stopped);
        }
        let Some((slot, warp, group)) = pick(running) else {
            return if running.picker.undecided().is_some() { Ok(Ended::Stopped) } else { Err(stuck(running)) };
        };
        if step >= run.budget {
            let kind = FaultKind::DoesNotEnd { budget: run.budget };
            let lane = running.blocks[slot].warps[warp].groups[group].mask.trailing_zeros() as usize;
            return Err(fault(running, slot, warp, group, LaneFault { lane, kind }));
        }
        let limits = Limits { steps: stop_step.min(run.budget) - step, stop_event };
        take_turn(running, memory, run, (slot, warp, group), limits)?;
        settle(running, slot);
    }
}

struct Limits {
    steps: u64,
    stop_event: u64,
}

/// Starts blocks while there is room. Round robin starts them when it comes to them, so that blocks
/// that end in their turn are run one after another in the same, cached, memory.
fn fill(running: &mut Running) {
    let round_robin = matches!(running.picker.schedule, Schedule::RoundRobin);
    while (!round_robin || running.blocks.is_empty()) && start_next(running) {}
}

/// Opens barriers, and puts the next block in the place of one that has ended.
fn settle(running: &mut Running, slot: usize) {
    let threads = running.shape.threads_a_block();
    let block = &mut running.blocks[slot];
    if block.live > 0 {
        complete_barriers(&running.shape.code, threads, block, running.tracker.as_mut());
    } else {
        let ended = running.blocks.swap_remove(slot);
        spare::keep(ended);
        // The next takes its place, and its memory.
        start_next(running);
    }
}

fn take_turn(
    running: &mut Running,
    memory: &mut Memory,
    run: &mut Run,
    (slot, number, group): Part,
    limits: Limits,
) -> Result<(), Box<Fault>> {
    let mut warp = std::mem::replace(&mut running.blocks[slot].warps[number], Warp::empty());
    let continued = running.unfinished.take();
    let begun = continued.is_some();
    let Unfinished { steps, until_visible, hold } = continued.unwrap_or_else(|| {
        let (steps, until_visible) = running.picker.turn();
        let round_robin = matches!(running.picker.schedule, Schedule::RoundRobin);
        Unfinished { steps, until_visible, hold: std::mem::take(&mut warp.rotate) || !round_robin }
    });
    let before = running.counts.warp_instructions;
    let lane = warp.groups[group].mask.trailing_zeros();
    let block = running.blocks[slot].number;
    let stop_event = limits.stop_event;
    let mut turn = Turn {
        shape: &running.shape,
        memory,
        block: &mut running.blocks[slot],
        warp: &mut warp,
        counts: &mut running.counts,
        translation: &mut running.translation,
        tracker: running.tracker.as_mut(),
        persistence: running.persistence,
        trace: run.trace.as_mut(),
        left: steps.min(limits.steps),
        stopped_in: group,
        stop_event,
        until_visible,
        single: false,
        begun,
        hold,
        scratch: &mut running.scratch,
    };
    let ended = turn.run(group);
    let stopped_in = turn.stopped_in;
    let gave_way = warp.rotate;
    running.picker.ran(block, running.counts.warp_instructions - before);
    running.last = Last { block, warp: number, lane, gave_way };
    running.blocks[slot].warps[number] = warp;
    match ended {
        Ok(End::Steps) => {
            let taken = running.counts.warp_instructions - before;
            if taken < steps {
                // It goes on with the group that it had come to.
                running.last.lane = running.blocks[slot].warps[number].groups[stopped_in].mask.trailing_zeros();
                running.unfinished = Some(Unfinished { steps: steps - taken, until_visible, hold });
            }
            Ok(())
        }
        Ok(End::Turn | End::Waits) => Ok(()),
        Err(lane_fault) => {
            let groups = &running.blocks[slot].warps[number].groups;
            let group = groups.iter().position(|group| group.mask >> lane_fault.lane & 1 == 1).unwrap_or(0);
            Err(fault(running, slot, number, group, *lane_fault))
        }
    }
}

fn fault(running: &Running, slot: usize, warp: usize, group: usize, found: LaneFault) -> Box<Fault> {
    let block = &running.blocks[slot];
    let code = &running.shape.code;
    let pc = block.warps[warp].groups.get(group).map_or(0, |group| group.pc) as usize;
    let thread = running.shape.thread(block.number, warp as u64 * WARP as u64 + found.lane as u64);
    let line = code.instructions.get(pc).map_or(0, |ins| ins.line);
    build(running, found.kind, line, thread)
}

fn build(running: &Running, kind: FaultKind, line: u32, thread: ThreadId) -> Box<Fault> {
    Box::new(Fault {
        kind,
        kernel: running.shape.code.name.clone(),
        line,
        thread,
        step: running.counts.warp_instructions,
        schedule: running.picker.schedule.to_string(),
    })
}

/// All threads wait: names what the first of them waits for.
fn stuck(running: &Running) -> Box<Fault> {
    let code = &running.shape.code;
    let line_of = |pc: u32| code.instructions.get(pc as usize).map_or(0, |ins| ins.line);
    let waits = running.blocks.iter().flat_map(|block| {
        block.warps.iter().flat_map(move |warp| warp.groups.iter().map(move |group| (block, warp, group)))
    });
    let waiting: Vec<_> = waits.collect();
    let Some(&(block, warp, group)) = waiting.first() else {
        // No block without a thread is kept, so somebody waits; say so rather than stop the caller.
        let kind = FaultKind::Barrier { barrier: "the launch".into(), waits: "no thread is left".into() };
        return build(running, kind, 0, ThreadId::default());
    };
    let (barrier, waits, line) = match group.wait {
        Wait::Block(id) => {
            let barrier = &block.barriers[id];
            let expected = barrier.expected.unwrap_or(block.live);
            let mut waits = format!("{} of {expected} threads came", barrier.count);
            let elsewhere =
                waiting.iter().find(|(other, _, group)| other.number == block.number && group.wait != Wait::Block(id));
            match elsewhere {
                Some((_, other, group)) => {
                    let pc = if matches!(group.wait, Wait::Block(_)) { group.pc.saturating_sub(1) } else { group.pc };
                    waits +=
                        &format!(", lanes {:#010x} of warp {} wait at line {}", group.mask, other.number, line_of(pc));
                }
                None => waits += &format!(", {} of the block have not ended", block.live),
            }
            (format!("barrier {id} of block {}", block.number), waits, barrier.line)
        }
        Wait::Lanes(members) | Wait::Warp(members) => (
            format!("the meeting of lanes {members:#010x} of warp {} of block {}", warp.number, block.number),
            format!("lanes {:#010x} came, {:#010x} have ended", group.mask, warp.exited),
            line_of(group.pc),
        ),
        Wait::Ready => {
            ("the launch".to_string(), "a thread is ready but was not picked".to_string(), line_of(group.pc))
        }
    };
    let lane = u64::from(group.mask.trailing_zeros());
    let thread = running.shape.thread(block.number, u64::from(warp.number) * WARP as u64 + lane);
    build(running, FaultKind::Barrier { barrier, waits }, line, thread)
}
