//! Barriers of a block and of a warp.

use super::{Flow, LaneFault, Turn, lane_fault, lanes};
use crate::FaultKind;
use crate::code::{BarrierMode, Code, Ins, Op, Source};
use crate::lanes::WARP;
use crate::machine::{Block, Wait, Warp};
use crate::persist::Tracker;

impl Turn<'_> {
    pub(super) fn barriers(
        &mut self,
        ins: &Ins,
        index: usize,
        pc: u32,
        mask: u32,
        exec: u32,
    ) -> Result<Flow, Box<LaneFault>> {
        if exec == 0 {
            return Ok(Flow::Next);
        }
        if self.split(index, pc, mask, exec) {
            self.uncount(exec);
            return Ok(Flow::Regroup);
        }
        match ins.op {
            Op::WarpBarrier { members } => self.warp_barrier(index, pc, exec, members),
            Op::Barrier { mode, id, count, a, not, .. } => {
                let (id, count) = self.barrier_operands(exec, id, count)?;
                self.arrive(id, count, mode, exec, ins.line)?;
                if !matches!(mode, BarrierMode::Sync | BarrierMode::Arrive) {
                    let bits = self.warp.predicates[a as usize] ^ if not { u32::MAX } else { 0 };
                    self.block.barriers[id].ones += (bits & exec).count_ones();
                }
                let group = &mut self.warp.groups[index];
                group.pc = pc + 1;
                if mode != BarrierMode::Arrive {
                    group.wait = Wait::Block(id);
                }
                Ok(Flow::Wait)
            }
            _ => Ok(Flow::Next),
        }
    }

    fn warp_barrier(&mut self, index: usize, pc: u32, exec: u32, members: Source) -> Result<Flow, Box<LaneFault>> {
        let members = self.members(members, exec)?;
        let group = &mut self.warp.groups[index];
        group.pc = pc;
        group.wait = Wait::Warp(members);
        let released = self.warp.release_warp_barrier();
        if released == 0 {
            return Ok(Flow::Wait);
        }
        self.observe_each_other(released);
        Ok(Flow::Regroup)
    }

    /// A warp barrier orders memory among the lanes that met there.
    pub(super) fn observe_each_other(&mut self, released: u32) {
        let first = self.first_thread();
        if let Some(tracker) = &mut self.tracker
            && released != 0
        {
            let threads: Vec<u64> = lanes(released).map(|lane| first + lane as u64).collect();
            tracker.barrier(&threads, &threads);
        }
    }

    fn barrier_operands(
        &self,
        exec: u32,
        id: Source,
        count: Option<Source>,
    ) -> Result<(usize, Option<u32>), Box<LaneFault>> {
        let lane = self.lowest(exec);
        let id = self.source(id)[lane];
        let count = count.map(|count| self.source(count)[lane] as u32);
        if id > 15 {
            return lane_fault(lane, FaultKind::BarrierUse { reason: format!("barrier {id}: a block has 0 to 15") });
        }
        if let Some(count) = count.filter(|&count| count == 0 || !count.is_multiple_of(WARP as u32)) {
            let reason = format!("barrier {id} of {count} threads: not a multiple of 32");
            return lane_fault(lane, FaultKind::BarrierUse { reason });
        }
        Ok((id as usize, count))
    }

    fn arrive(
        &mut self,
        id: usize,
        count: Option<u32>,
        mode: BarrierMode,
        exec: u32,
        line: u32,
    ) -> Result<(), Box<LaneFault>> {
        self.counts.barriers += u64::from(exec.count_ones());
        let lane = self.lowest(exec);
        let barrier = &mut self.block.barriers[id];
        if barrier.count == 0 {
            barrier.expected = count;
            barrier.line = line;
        }
        if barrier.expected != count {
            let say = |count: Option<u32>| count.map_or("all threads".to_string(), |count| format!("{count} threads"));
            let reason = format!("barrier {id} is used for {} and for {}", say(barrier.expected), say(count));
            return lane_fault(lane, FaultKind::BarrierUse { reason });
        }
        let reduces = |mode: BarrierMode| !matches!(mode, BarrierMode::Sync | BarrierMode::Arrive);
        if barrier.mode.is_some_and(|other| other != mode && (reduces(other) || reduces(mode))) {
            let reason = format!("barrier {id} is used by `bar.red` and by another kind of `bar`");
            return lane_fault(lane, FaultKind::BarrierUse { reason });
        }
        barrier.mode = Some(mode);
        let list = if mode == BarrierMode::Arrive { &mut barrier.passed } else { &mut barrier.arrived };
        list.push((self.warp.number, exec));
        barrier.count += exec.count_ones();
        if count.is_some() && exec & 1 == 1 {
            // Where threads are counted, a warp with fewer counts as a whole one.
            let threads = self.shape.threads_a_block() as u32 - self.warp.number * WARP as u32;
            barrier.count += (WARP as u32).saturating_sub(threads);
        }
        if count.is_some_and(|count| barrier.count > count) {
            let reason = format!("{} threads came to barrier {id}, which is for {}", barrier.count, count.unwrap_or(0));
            return lane_fault(lane, FaultKind::BarrierUse { reason });
        }
        Ok(())
    }
}

/// Opens the barriers of a block that all have come to.
pub(crate) fn complete_barriers(
    code: &Code,
    threads_a_block: u64,
    block: &mut Block,
    mut tracker: Option<&mut Tracker>,
) {
    for id in 0..block.barriers.len() {
        let barrier = &block.barriers[id];
        if barrier.count == 0 || barrier.count < barrier.expected.unwrap_or(block.live) {
            continue;
        }
        let barrier = std::mem::take(&mut block.barriers[id]);
        if let Some(tracker) = &mut tracker {
            let first = block.number * threads_a_block;
            let of = |&(warp, mask): &(u32, u32)| {
                lanes(mask).map(move |lane| first + u64::from(warp) * WARP as u64 + lane as u64)
            };
            let waiting: Vec<u64> = barrier.arrived.iter().flat_map(of).collect();
            let passing = barrier.passed.iter().flat_map(of);
            let arrived: Vec<u64> = waiting.iter().copied().chain(passing).collect();
            tracker.barrier(&arrived, &waiting);
        }
        let all: u32 = barrier.arrived.iter().map(|(_, mask)| mask.count_ones()).sum();
        for warp in &mut block.warps {
            open(code, warp, id, barrier.ones, all);
        }
    }
}

fn open(code: &Code, warp: &mut Warp, id: usize, ones: u32, all: u32) {
    for index in 0..warp.groups.len() {
        let group = warp.groups[index];
        if group.wait != Wait::Block(id) {
            continue;
        }
        warp.groups[index].wait = Wait::Ready;
        // The group stands after its instruction, which says where the result goes.
        let Op::Barrier { mode, to, .. } = code.instructions[group.pc as usize - 1].op else { continue };
        let holds = match mode {
            BarrierMode::Sync | BarrierMode::Arrive => continue,
            BarrierMode::Popc => {
                lanes(group.mask).for_each(|lane| warp.registers[to as usize][lane] = u64::from(ones));
                continue;
            }
            BarrierMode::And => ones == all,
            BarrierMode::Or => ones > 0,
        };
        let predicate = &mut warp.predicates[to as usize];
        *predicate = if holds { *predicate | group.mask } else { *predicate & !group.mask };
    }
}
