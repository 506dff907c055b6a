//! What the lanes of a warp do together: shuffles, votes, matches, reductions. Lanes named as
//! members that are elsewhere are waited for.

use super::atomic::combine;
use super::{Flow, LaneFault, Turn, first, lane_fault, lanes};
use crate::FaultKind;
use crate::code::{Op, ShuffleMode, Source, VoteMode};
use crate::lanes::{Lanes, WARP};
use crate::machine::Wait;

impl Turn<'_> {
    /// The members that the executing lanes name, each of which has to name itself.
    pub(super) fn members(&self, source: Source, exec: u32) -> Result<u32, Box<LaneFault>> {
        let members = self.source(source);
        for lane in lanes(exec) {
            if members[lane] >> lane & 1 == 0 {
                let reason = format!("lane {lane} is not in the member mask {:#010x} that it names", members[lane]);
                return lane_fault(lane, FaultKind::BarrierUse { reason });
            }
        }
        Ok(lanes(exec).fold(0, |all, lane| all | members[lane] as u32))
    }

    pub(super) fn together(
        &mut self,
        op: &Op,
        index: usize,
        pc: u32,
        mask: u32,
        exec: u32,
    ) -> Result<Flow, Box<LaneFault>> {
        if exec == 0 {
            return Ok(Flow::Next);
        }
        let source = match op {
            Op::Shuffle { members, .. }
            | Op::Vote { members, .. }
            | Op::Match { members, .. }
            | Op::Reduce { members, .. } => *members,
            _ => return Ok(Flow::Next),
        };
        let members = self.members(source, exec)?;
        if members & !self.warp.exited & !exec != 0 {
            // Nothing is executed yet: it will be when all have come.
            self.uncount(exec);
            if self.split(index, pc, mask, exec) {
                return Ok(Flow::Regroup);
            }
            self.warp.groups[index].pc = pc;
            self.warp.groups[index].wait = Wait::Lanes(members);
            self.warp.release_waiting();
            return Ok(Flow::Wait);
        }
        match *op {
            Op::Shuffle { mode, to, valid, a, b, c, .. } => self.shuffle(exec, mode, to, valid, [a, b, c]),
            Op::Vote { mode, to, a, not, .. } => self.vote(exec, mode, to, a, not, source),
            Op::Match { all, to, same, a, .. } => self.matching(exec, all, to, same, a, source),
            Op::Reduce { op, signed, to, a, .. } => {
                let (values, members) = (*self.source(a), *self.source(source));
                for lane in lanes(exec) {
                    let mut chosen = lanes(exec & members[lane] as u32).map(|from| values[from]);
                    let start = chosen.next().unwrap_or(0);
                    self.scratch[lane] = chosen.fold(start, |x, y| combine(op, signed, 32, x, y)) & 0xffff_ffff;
                }
                self.put(to, exec);
            }
            _ => {}
        }
        Ok(Flow::Next)
    }

    /// Takes back the count of an instruction that was not executed.
    pub(super) fn uncount(&mut self, exec: u32) {
        self.left = self.left.saturating_add(1);
        self.counts.warp_instructions -= 1;
        self.counts.lane_instructions -= u64::from(exec.count_ones());
    }

    fn shuffle(&mut self, exec: u32, mode: ShuffleMode, to: u32, valid: Option<u32>, [a, b, c]: [Source; 3]) {
        let (values, by, bounds) = (*self.source(a), *self.source(b), *self.source(c));
        let mut inside = 0;
        for lane in lanes(exec) {
            let (by, clamp, segment) = (by[lane] as i32 & 31, bounds[lane] as i32 & 31, bounds[lane] as i32 >> 8 & 31);
            let own = lane as i32;
            let lowest = own & segment;
            let highest = lowest | clamp & !segment;
            let (from, ok) = match mode {
                ShuffleMode::Up => (own - by, own - by >= highest),
                ShuffleMode::Down => (own + by, own + by <= highest),
                ShuffleMode::Butterfly => (own ^ by, own ^ by <= highest),
                ShuffleMode::Index => (lowest | by & !segment, (lowest | by & !segment) <= highest),
            };
            // A lane that does not take part has no value to give: the lane keeps its own.
            let from = if ok && exec >> from & 1 == 1 { from as usize } else { lane };
            self.scratch[lane] = values[from];
            inside |= u32::from(ok) << lane;
        }
        self.put(to, exec);
        if let Some(valid) = valid {
            self.put_predicate(valid, inside, exec);
        }
    }

    fn vote(&mut self, exec: u32, mode: VoteMode, to: u32, a: u32, not: bool, members: Source) {
        let bits = self.warp.predicates[a as usize] ^ if not { u32::MAX } else { 0 };
        let members = *self.source(members);
        let mut result = 0;
        for lane in lanes(exec) {
            let voters = members[lane] as u32 & exec;
            let (yes, no) = (bits & voters, !bits & voters);
            let holds = match mode {
                VoteMode::All => no == 0,
                VoteMode::Any => yes != 0,
                VoteMode::Uniform => yes == 0 || no == 0,
                VoteMode::Ballot => {
                    self.scratch[lane] = u64::from(yes);
                    false
                }
            };
            result |= u32::from(holds) << lane;
        }
        match mode {
            VoteMode::Ballot => self.put(to, exec),
            _ => self.put_predicate(to, result, exec),
        }
    }

    fn matching(&mut self, exec: u32, all: bool, to: u32, same: Option<u32>, a: Source, members: Source) {
        let (values, members): (Lanes, Lanes) = (*self.source(a), *self.source(members));
        let mut agree = 0;
        for lane in lanes(exec) {
            let here = members[lane] as u32 & exec;
            let equal = lanes(here).filter(|&other| values[other] == values[lane]).fold(0, |mask, l| mask | 1u32 << l);
            let complete = equal == here;
            agree |= u32::from(complete) << lane;
            self.scratch[lane] = u64::from(if all && !complete { 0 } else { equal });
        }
        self.put(to, exec);
        if let Some(same) = same {
            self.put_predicate(same, agree, exec);
        }
    }

    /// The first of a group's lanes, for messages.
    pub(super) fn lowest(&self, mask: u32) -> usize {
        first(mask).unwrap_or(0).min(WARP - 1)
    }
}
