//! What the oracle and the journal are told.

use nearpm_ptx::{Fault, FaultKind, Scope, ThreadId, WarpAccess};

use super::{Shared, Sm, bits};
use crate::LINE;
use crate::buffer::Dirty;
use crate::coalesce::Part;
use crate::order::{ReleaseMark, Who};

impl Sm {
    /// Each lane of a mask as the oracle knows it.
    fn lanes(&self, slot: usize, lanes: u32, shared: &Shared<'_>) -> impl Iterator<Item = (usize, Who)> + use<> {
        let warp = &self.warps[slot];
        let handle = warp.block.unwrap_or(0);
        let (block, first) = (shared.stepped.block_number(handle), shared.stepped.first_thread(handle, warp.number));
        bits(lanes).map(move |lane| (lane, Who { thread: first as u32 + lane as u32, block }))
    }

    /// Fences that order persists, by the lanes that are about to execute one; `waits` if their
    /// persists are durable now.
    pub(super) fn order_fence(&self, slot: usize, waits: bool, shared: &mut Shared<'_>) {
        if shared.order.is_none() {
            return;
        }
        let lanes = self.warps[slot].next.map_or(0, |next| next.lanes);
        let lanes: Vec<_> = self.lanes(slot, lanes, shared).collect();
        if let Some(order) = &mut shared.order {
            lanes.iter().for_each(|(_, who)| order.fence(*who));
            if waits && !shared.config.lazy_durability {
                lanes.iter().for_each(|(_, who)| order.waited(*who));
            }
        }
    }

    pub(super) fn order_acquire(&self, slot: usize, access: &WarpAccess, scope: Scope, shared: &mut Shared<'_>) {
        if shared.order.is_none() {
            return;
        }
        let lanes: Vec<_> = self.lanes(slot, access.lanes, shared).collect();
        if let Some(order) = &mut shared.order {
            lanes.into_iter().for_each(|(lane, who)| order.acquire(who, access.addresses[lane], scope));
        }
    }

    pub(super) fn order_release(
        &self,
        slot: usize,
        access: &WarpAccess,
        scope: Scope,
        shared: &mut Shared<'_>,
    ) -> Vec<ReleaseMark> {
        if shared.order.is_none() {
            return Vec::new();
        }
        let lanes: Vec<_> = self.lanes(slot, access.lanes, shared).collect();
        let Some(order) = &mut shared.order else { return Vec::new() };
        lanes.into_iter().map(|(_, who)| order.release(who, scope)).collect()
    }

    /// The releases' own stores have been made.
    pub(super) fn order_released(
        &self,
        who: Option<(u64, u64)>,
        access: &WarpAccess,
        marks: Vec<ReleaseMark>,
        shared: &mut Shared<'_>,
    ) {
        let (Some(order), Some((block, first))) = (&mut shared.order, who) else { return };
        if marks.is_empty() {
            bits(access.lanes & !access.persistent).for_each(|lane| order.overwrite(access.addresses[lane]));
        }
        for (lane, mark) in bits(access.lanes).zip(marks) {
            order.released(Who { thread: first as u32 + lane as u32, block }, access.addresses[lane], mark);
        }
    }

    /// Atomics read no releases. Gives how many go to one address at most.
    pub(super) fn order_atomic(&self, access: &WarpAccess, shared: &mut Shared<'_>) -> u64 {
        if let Some(order) = &mut shared.order {
            bits(access.lanes).for_each(|lane| order.overwrite(access.addresses[lane]));
        }
        let mut addresses = access.addresses;
        let count =
            bits(access.lanes).enumerate().map(|(index, lane)| addresses[index] = access.addresses[lane]).count();
        addresses[..count].sort_unstable();
        let runs = addresses[..count].chunk_by(|a, b| a == b);
        runs.map(|run| run.len() as u64).max().unwrap_or(0)
    }

    /// What an executed store has left in a line of persistent memory.
    pub(super) fn stored(
        &self,
        who: Option<(u64, u64)>,
        access: &WarpAccess,
        part: &Part,
        shared: &mut Shared<'_>,
    ) -> Dirty {
        let mut dirty = Dirty { line: part.line, bytes: part.bytes, data: None, stores: Vec::new(), pinned: None };
        if shared.journal.is_some() {
            let mut data = Box::new([0; LINE as usize]);
            // Persistent ranges are whole lines, and the store was in bounds.
            if shared.gpu.read(part.line, &mut data[..]).is_ok() {
                dirty.data = Some(data);
            }
        }
        if let (Some(order), Some((block, first))) = (&mut shared.order, who) {
            for lane in bits(access.lanes).filter(|&lane| access.addresses[lane] & !(LINE - 1) == part.line) {
                let who = Who { thread: first as u32 + lane as u32, block };
                let at = (access.addresses[lane] - part.line) as usize;
                let bytes = dirty.data.as_deref().and_then(|line| line.get(at..at + access.bytes as usize));
                // What is stored across lines is refused before.
                dirty.stores.push(order.store(who, access.addresses[lane], bytes.unwrap_or_default()));
            }
        }
        dirty
    }

    /// Atomics on persistent memory are not simulated.
    pub(super) fn refuse_atomic(&self, slot: usize, shared: &Shared<'_>) -> Box<Fault> {
        let line = self.warps[slot].next.map_or(0, |next| shared.instructions[next.instruction as usize].line);
        let reason = "an atomic on persistent memory is not simulated".to_string();
        Box::new(Fault {
            kind: FaultKind::BarrierUse { reason },
            kernel: String::new(),
            line,
            thread: ThreadId::default(),
            step: shared.stepped.executed().0,
            schedule: "simulated".into(),
        })
    }
}
