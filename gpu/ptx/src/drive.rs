//! Runs a launch: picks who runs, starts and ends blocks, and finds out when nobody can.

use crate::exec::{End, LaneFault, Turn, complete_barriers};
use crate::lanes::WARP;
use crate::machine::{Block, Last, Running, Unfinished, Wait, Warp};
use crate::memory::Memory;
use crate::{Ended, Fault, FaultKind, Run, Schedule, Stop, ThreadId, spare};

/// Part of a warp that can run: block slot, warp, group.
type Part = (usize, usize, usize);

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
        let Some((slot, warp, group)) = pick(running) else { return Err(stuck(running)) };
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

/// Starts blocks while there is room. Round robin starts them when it comes to them, so that blocks that end in their
/// turn are run one after another in the same, cached, memory.
fn fill(running: &mut Running) {
    let round_robin = matches!(running.picker.schedule, Schedule::RoundRobin);
    while (!round_robin || running.blocks.is_empty()) && start_next(running) {}
}

/// Starts the next block if there is one and room for it.
fn start_next(running: &mut Running) -> bool {
    let starts = running.blocks.len() < running.shape.resident as usize && running.next_block < running.shape.blocks();
    if starts {
        running.blocks.push(running.shape.start_block(running.next_block));
        running.next_block += 1;
    }
    starts
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

fn pick(running: &mut Running) -> Option<Part> {
    if running.unfinished.is_some()
        && let Some(part) = running.blocks.iter().enumerate().find_map(|(slot, block)| last_part(running, slot, block))
    {
        return Some(part);
    }
    running.unfinished = None;
    match running.picker.schedule {
        Schedule::RoundRobin => {
            let mut cursor = running.cursor;
            let found = scan(running, &mut cursor);
            running.cursor = cursor;
            found
        }
        Schedule::Seeded(_) => pick_random(running),
        Schedule::Replay(_) => pick_replayed(running),
        Schedule::Held { block, .. } => pick_held(running, block),
    }
}

/// A part of the block that is held up, when it is to run; else of another one, each in turn; whoever can, where the other cannot.
fn pick_held(running: &mut Running, held: u64) -> Option<Part> {
    let turn = running.picker.next_turn();
    let runs = running.picker.held_runs();
    let mut parts = Vec::new();
    for (slot, block) in running.blocks.iter().enumerate() {
        for (number, warp) in block.warps.iter().enumerate() {
            for (index, _) in warp.groups.iter().enumerate().filter(|(_, group)| group.wait.ready()) {
                parts.push(((block.number == held) != runs, (slot, number, index)));
            }
        }
    }
    // When the others' time is over, all of them take turns.
    let first = parts.iter().any(|&(last, _)| !last) && !(runs && running.picker.is_released());
    let wanted: Vec<Part> = parts.iter().filter(|&&(last, _)| !first || !last).map(|&(_, part)| part).collect();
    (!wanted.is_empty()).then(|| wanted[turn % wanted.len()])
}

/// The part that ran last, if it is of this block and ready.
fn last_part(running: &Running, slot: usize, block: &Block) -> Option<Part> {
    let Last { block: number, warp, lane, .. } = running.last;
    let groups = &block.warps.get(warp).filter(|_| block.number == number)?.groups;
    let index =
        groups.iter().position(|group| group.wait.ready() && group.mask.checked_shr(lane).unwrap_or(0) & 1 == 1)?;
    Some((slot, warp, index))
}

/// The next warp after the cursor that can run. Past the last block, one more is started if there is room.
fn scan(running: &mut Running, cursor: &mut (usize, usize)) -> Option<Part> {
    let warps = running.blocks[0].warps.len();
    let (mut slot, mut warp) = *cursor;
    let mut looked = 0;
    while looked <= running.blocks.len() * warps {
        warp = warp.wrapping_add(1);
        if warp >= warps {
            warp = 0;
            slot += 1;
        }
        if slot >= running.blocks.len() && !(slot == running.blocks.len() && start_next(running)) {
            slot = 0;
        }
        if let Some(group) = running.blocks[slot].warps[warp].pick() {
            *cursor = (slot, warp);
            return Some((slot, warp, group));
        }
        looked += 1;
    }
    None
}

fn pick_random(running: &mut Running) -> Option<Part> {
    let warps = running.blocks[0].warps.len();
    let blocks = running.blocks.len();
    // A few guesses find one when many can run; else all are looked at, from a random place on.
    let mut cursor = (0, 0);
    for _ in 0..8 {
        cursor = (running.picker.below(blocks), running.picker.below(warps));
        if running.blocks[cursor.0].warps[cursor.1].pick().is_some() {
            break;
        }
    }
    let found = match running.blocks[cursor.0].warps[cursor.1].pick() {
        Some(group) => (cursor.0, cursor.1, group),
        None => scan(running, &mut cursor)?,
    };
    let groups = &running.blocks[found.0].warps[found.1].groups;
    let ready: Vec<usize> = (0..groups.len()).filter(|&index| groups[index].wait.ready()).collect();
    let group = ready[running.picker.below(ready.len())];
    Some((found.0, found.1, group))
}

fn pick_replayed(running: &mut Running) -> Option<Part> {
    let last = running.last;
    let mut options: Vec<(u64, usize, u32, Part)> = Vec::new();
    for (slot, block) in running.blocks.iter().enumerate() {
        for (number, warp) in block.warps.iter().enumerate() {
            for (index, group) in warp.groups.iter().enumerate().filter(|(_, group)| group.wait.ready()) {
                options.push((block.number, number, group.mask.trailing_zeros(), (slot, number, index)));
            }
        }
    }
    options.sort_unstable();
    let of_last = |&(block, warp, _, part): &(u64, usize, u32, Part)| {
        let groups = &running.blocks[part.0].warps[part.1].groups;
        block == last.block && warp == last.warp && last.lane < 32 && groups[part.2].mask >> last.lane & 1 == 1
    };
    let current = options.iter().position(of_last);
    if options.is_empty() {
        return None;
    }
    let next = match current {
        Some(index) if last.gave_way => (index + 1) % options.len(),
        Some(index) => index,
        None => {
            let after =
                |option: &(u64, usize, u32, Part)| (option.0, option.1, option.2) > (last.block, last.warp, last.lane);
            options.iter().position(after).filter(|_| last.lane < 32).unwrap_or(0)
        }
    };
    let chosen = running.picker.choose(options.len(), next, current.is_none());
    Some(options[chosen].3)
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
