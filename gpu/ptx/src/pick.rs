//! Who runs next, by the schedule of a launch.

use crate::Schedule;
use crate::machine::{Block, Last, Running};

/// Part of a warp that can run: block slot, warp, group.
pub(crate) type Part = (usize, usize, usize);

/// Who runs next by the schedule, if anybody can and nobody is to be asked for it.
pub(crate) fn pick(running: &mut Running) -> Option<Part> {
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

/// A part of the block that is held up, when it is to run; else of another one, each in turn;
/// whoever can, where the other cannot.
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

/// The next warp after the cursor that can run. Past the last block, one more is started if there
/// is room.
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
    let chosen = running.picker.choose(options.len(), next, current.is_none())?;
    Some(options[chosen].3)
}

/// Starts the next block if there is one and room for it.
pub(crate) fn start_next(running: &mut Running) -> bool {
    let starts = running.blocks.len() < running.shape.resident as usize && running.next_block < running.shape.blocks();
    if starts {
        running.blocks.push(running.shape.start_block(running.next_block));
        running.next_block += 1;
    }
    starts
}
