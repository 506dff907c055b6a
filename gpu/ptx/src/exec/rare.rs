//! Instructions that are less frequent than loads, stores, and arithmetic.

use super::{Flow, LaneFault, Turn, first, lane_fault};
use crate::FaultKind;
use crate::code::{Ins, Logic, Op, SHARED_WINDOW, Source, Space};
use crate::lanes::WARP;

impl Turn<'_> {
    /// Instructions that are less frequent, kept out of the loop's own code.
    #[inline(never)]
    pub(super) fn rare(
        &mut self,
        ins: &Ins,
        index: usize,
        pc: u32,
        mask: u32,
        exec: u32,
    ) -> Result<Flow, Box<LaneFault>> {
        match &ins.op {
            Op::PredicateLogic { logic, to, a, b, not_b } => {
                let b = self.warp.predicates[*b as usize] ^ if *not_b { u32::MAX } else { 0 };
                let bits = combine(*logic, self.warp.predicates[*a as usize], b);
                self.put_predicate(*to, bits, exec);
            }
            Op::PredicateNot { to, a } => self.put_predicate(*to, !self.warp.predicates[*a as usize], exec),
            Op::PredicateMove { to, a } => self.put_predicate(*to, self.warp.predicates[*a as usize], exec),
            Op::PredicateSet { to, value } => self.put_predicate(*to, if *value { u32::MAX } else { 0 }, exec),
            Op::IsSpace { to, a, space } => {
                let window = |address: u64| match address / SHARED_WINDOW {
                    1 => Space::Shared,
                    2 => Space::Local,
                    3 => Space::Param,
                    _ => Space::Global,
                };
                let addresses = self.source(*a);
                let bits = (0..WARP).fold(0, |bits, i| bits | u32::from(window(addresses[i]) == *space) << i);
                self.put_predicate(*to, bits, exec);
            }
            Op::Atomic(atomic) => self.atomic(atomic, exec, ins.line)?,
            Op::BranchTable { index: by, targets } => return self.branch_table(index, pc, mask, exec, *by, targets),
            Op::Trap => return first(exec).map_or(Ok(Flow::Next), |lane| lane_fault(lane, FaultKind::Trap)),
            Op::Barrier { .. } | Op::WarpBarrier { .. } => return self.barriers(ins, index, pc, mask, exec),
            Op::Shuffle { .. } | Op::Vote { .. } | Op::Match { .. } | Op::Reduce { .. } => {
                return self.together(&ins.op, index, pc, mask, exec);
            }
            Op::ActiveMask { to } => {
                **self.scratch = [u64::from(exec); WARP];
                self.put(*to, exec);
            }
            Op::Clock { to, bits } => {
                let now = self.counts.warp_instructions;
                **self.scratch = [if *bits == 32 { now & 0xffff_ffff } else { now }; WARP];
                self.put(*to, exec);
            }
            Op::Assert { message, file, line, function } => {
                if let Some(lane) = first(exec) {
                    return self.assertion(lane, [*message, *file, *line, *function]);
                }
            }
            Op::Yield => return Ok(Flow::GiveWay),
            _ => {}
        }
        Ok(Flow::Next)
    }

    fn assertion(&mut self, lane: usize, [message, file, line, function]: [Source; 4]) -> Result<Flow, Box<LaneFault>> {
        let text = |source: Source| {
            let start = self.source(source)[lane];
            let bytes = (0..256).map_while(|i| self.memory.slice(start.wrapping_add(i), 1).map(|byte| byte[0]));
            let bytes: Vec<u8> = bytes.take_while(|&byte| byte != 0).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let kind = FaultKind::Assertion {
            message: text(message),
            file: text(file),
            line: self.source(line)[lane] as u32,
            function: text(function),
        };
        lane_fault(lane, kind)
    }
}

pub(super) fn combine(logic: Logic, a: u32, b: u32) -> u32 {
    match logic {
        Logic::And => a & b,
        Logic::Or => a | b,
        Logic::Xor => a ^ b,
    }
}
