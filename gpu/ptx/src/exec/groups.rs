//! Divergence: the parts of a warp that are at different instructions, and how they come together
//! again.

use super::{Flow, LaneFault, Turn, lane_fault, lanes};
use crate::FaultKind;
use crate::code::Source;
use crate::machine::{Group, Wait, Warp};

impl Turn<'_> {
    pub(super) fn branch(&mut self, index: usize, pc: u32, mask: u32, exec: u32, target: u32) -> Flow {
        if exec == mask {
            return Flow::Jump(target);
        }
        if exec == 0 {
            return Flow::Next;
        }
        self.warp.groups[index] = Group { pc: pc + 1, mask: mask & !exec, wait: Wait::Ready };
        self.warp.groups.push(Group { pc: target, mask: exec, wait: Wait::Ready });
        Flow::Regroup
    }

    pub(super) fn branch_table(
        &mut self,
        index: usize,
        pc: u32,
        mask: u32,
        exec: u32,
        by: Source,
        targets: &[u32],
    ) -> Result<Flow, Box<LaneFault>> {
        let values = *self.source(by);
        let rest = mask & !exec;
        let mut parts: Vec<Group> = Vec::new();
        if rest != 0 {
            parts.push(Group { pc: pc + 1, mask: rest, wait: Wait::Ready });
        }
        for lane in lanes(exec) {
            let Some(&target) = targets.get(values[lane] as u32 as usize) else {
                let (number, targets) = (values[lane] as u32, targets.len());
                return lane_fault(lane, FaultKind::Branch { number, targets });
            };
            match parts.iter_mut().find(|part| part.pc == target) {
                Some(part) => part.mask |= 1 << lane,
                None => parts.push(Group { pc: target, mask: 1 << lane, wait: Wait::Ready }),
            }
        }
        self.warp.groups[index] = parts[0];
        self.warp.groups.extend(&parts[1..]);
        Ok(Flow::Regroup)
    }

    pub(super) fn exit(&mut self, index: usize, pc: u32, mask: u32, exec: u32) -> Flow {
        if exec == 0 {
            return Flow::Next;
        }
        self.warp.exited |= exec;
        self.block.live -= exec.count_ones();
        if exec == mask {
            self.warp.groups.remove(index);
        } else {
            self.warp.groups[index] = Group { pc: pc + 1, mask: mask & !exec, wait: Wait::Ready };
        }
        let released = self.warp.release_waiting();
        self.observe_each_other(released);
        Flow::Wait
    }

    /// Splits off the lanes of a group that do not execute an instruction at which the others may
    /// wait. Whether it did: then the group is to be chosen anew.
    pub(super) fn split(&mut self, index: usize, pc: u32, mask: u32, exec: u32) -> bool {
        if exec == mask {
            return false;
        }
        self.warp.groups[index] = Group { pc, mask: exec, wait: Wait::Ready };
        self.warp.groups.push(Group { pc: pc + 1, mask: mask & !exec, wait: Wait::Ready });
        true
    }
}

impl Warp {
    /// Puts a group behind the others, whose turn it is then.
    pub fn give_way(&mut self, index: usize) {
        let group = self.groups.remove(index);
        self.groups.push(group);
        self.rotate = true;
    }

    /// The group to run: the one at the smallest instruction, so that those ahead wait for it;
    /// after one went backward, the first that is ready, so that none starves.
    pub fn pick(&self) -> Option<usize> {
        let ready = self.groups.iter().enumerate().filter(|(_, group)| group.wait.ready());
        let key = |(index, group): &(usize, &Group)| if self.rotate { *index as u32 } else { group.pc };
        ready.min_by_key(key).map(|(index, _)| index)
    }

    /// Joins the ready groups that are at the same instruction as group `index`; gives its new
    /// place.
    pub(crate) fn merge(&mut self, mut index: usize) -> usize {
        let pc = self.groups[index].pc;
        let mut other = 0;
        while other < self.groups.len() {
            if other != index && self.groups[other].pc == pc && self.groups[other].wait.ready() {
                self.groups[index].mask |= self.groups[other].mask;
                self.groups.remove(other);
                if other < index {
                    index -= 1;
                }
            } else {
                other += 1;
            }
        }
        index
    }

    /// The smallest instruction, from that of group `index` on, where it meets another that is
    /// ready or has left one behind. Groups that are behind already count only where the group does
    /// not hold its turn.
    pub(super) fn next_meeting(&self, index: usize, hold: bool) -> u32 {
        let pc = self.groups[index].pc;
        let others = self.groups.iter().enumerate().filter(|&(other, group)| other != index && group.wait.ready());
        others.map(|(_, group)| group.pc).filter(|&other| !hold || other >= pc).min().unwrap_or(u32::MAX)
    }

    /// Whether a ready group has fallen behind group `index`, which then waits for it.
    pub(super) fn overtaken(&self, index: usize) -> bool {
        let pc = self.groups[index].pc;
        self.groups.iter().any(|group| group.wait.ready() && group.pc < pc)
    }

    /// Groups whose partners have come, or ended, become ready; they try their instruction again.
    /// Gives the lanes that a warp barrier let go.
    pub(super) fn release_waiting(&mut self) -> u32 {
        while let Some((pc, members)) = self.complete_wait() {
            let waits =
                |group: &Group| group.pc == pc && group.mask & members != 0 && matches!(group.wait, Wait::Lanes(_));
            let mask = self.groups.iter().filter(|group| waits(group)).fold(0, |mask, group| mask | group.mask);
            self.groups.retain(|group| !waits(group));
            self.groups.push(Group { pc, mask, wait: Wait::Ready });
        }
        self.release_warp_barrier()
    }

    /// An instruction and its members, all of which wait there or have ended.
    fn complete_wait(&self) -> Option<(u32, u32)> {
        self.groups.iter().find_map(|group| {
            let Wait::Lanes(members) = group.wait else { return None };
            let same = self.groups.iter().filter(|other| other.pc == group.pc && matches!(other.wait, Wait::Lanes(_)));
            let here = same.fold(0, |mask, other| mask | other.mask);
            (members & !self.exited & !here == 0).then_some((group.pc, members))
        })
    }

    /// Lanes at `bar.warp.sync`, wherever that is, go on when all that one of them names have come
    /// or ended. Those released, as a mask.
    pub(super) fn release_warp_barrier(&mut self) -> u32 {
        let mut here = 0;
        let mut named = 0;
        for group in &self.groups {
            if let Wait::Warp(members) = group.wait {
                here |= group.mask;
                named |= members;
            }
        }
        if here == 0 || named & !self.exited & !here != 0 {
            return 0;
        }
        for group in &mut self.groups {
            if matches!(group.wait, Wait::Warp(_)) {
                *group = Group { pc: group.pc + 1, mask: group.mask, wait: Wait::Ready };
            }
        }
        here
    }
}
