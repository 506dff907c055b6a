//! Issuing one instruction of a warp.

use nearpm_ptx::{Access, Fault, Scope, Unit};

use super::{Issue, NEVER, Ordering, Shared, Sm};
use crate::buffer::Kind;
use crate::stalls::Why;
use crate::{Model, Rule};

/// Cycles until a result can be used.
const INTEGER: u64 = 4;
const DOUBLE: u64 = 8;
const SPECIAL: u64 = 21;

impl Sm {
    pub(super) fn issue(&mut self, slot: usize, now: u64, shared: &mut Shared<'_>) -> Result<Issue, Box<Fault>> {
        let Some(next) = self.warps[slot].next else {
            self.warps[slot].ready_at = NEVER;
            return Ok(Issue::Stalled);
        };
        let unit = shared.instructions[next.instruction as usize].unit;
        if next.lanes != 0 && self.waits_for_durability(slot, unit) {
            return Ok(Issue::Stalled);
        }
        let done = match unit {
            Unit::Memory(..) => return self.memory(slot, next, unit, now, shared),
            Unit::Fence(_) | Unit::LightFence(_) if next.lanes != 0 => return self.fence(slot, unit, now, shared),
            Unit::Integer | Unit::Float | Unit::Warp => now + INTEGER,
            Unit::Double => now + DOUBLE,
            Unit::Special => now + SPECIAL,
            _ => now + 1,
        };
        self.execute(slot, now, done, shared)?;
        Ok(Issue::Done)
    }

    /// A warp that went on after a dFence waits where what it does can be noticed outside.
    fn waits_for_durability(&mut self, slot: usize, unit: Unit) -> bool {
        let noticed = match unit {
            Unit::Memory(Access::Load, _) => false,
            // A store to persistent memory is ordered by the buffer; others are looked at where
            // they are executed.
            Unit::Memory(Access::Store, None) => false,
            Unit::Memory(..) | Unit::Barrier | Unit::Fence(_) => true,
            _ => false,
        };
        noticed && self.wait_if_undurable(slot)
    }

    /// Makes a warp wait whose dFence is not done.
    pub(super) fn wait_if_undurable(&mut self, slot: usize) -> bool {
        let waits = self.undurable >> slot & 1 == 1;
        if waits {
            self.retry_later(slot, Why::Durability);
        }
        waits
    }

    /// The warp looks again when something has left or was acknowledged.
    pub(super) fn retry_later(&mut self, slot: usize, why: Why) {
        self.warps[slot].ready_at = NEVER;
        self.warps[slot].why = why;
        self.retry |= 1 << slot;
    }

    /// The warp waits until the buffer has room for its entries.
    pub(super) fn wait_for_room(&mut self, slot: usize, entries: u32, shared: &mut Shared<'_>) {
        shared.statistics.waits_for_room += 1;
        self.warps[slot].needs = entries;
        self.retry_later(slot, Why::Room);
    }

    fn fence(&mut self, slot: usize, unit: Unit, now: u64, shared: &mut Shared<'_>) -> Result<Issue, Box<Fault>> {
        let (scope, light) = match unit {
            Unit::LightFence(scope) => (scope, true),
            Unit::Fence(scope) => (scope, false),
            _ => (Scope::Block, true),
        };
        if !self.persist_fence(slot, scope, light, now, shared) {
            return Ok(Issue::Stalled);
        }
        let mut done = now + 1;
        if !light && scope > Scope::Block {
            done = done.max(self.warps[slot].stores_until);
            self.l1.invalidate(false);
        }
        if scope > Scope::Block {
            self.order_fence(slot, scope == Scope::System, shared);
        }
        self.execute(slot, now, done, shared)?;
        let warp = &mut self.warps[slot];
        warp.ready_at = if warp.next.is_some() { warp.ready_at.max(done) } else { NEVER };
        Ok(Issue::Done)
    }

    /// The part of a fence that orders persists; false while the warp waits. A fence for volatile
    /// memory orders persists, too, so that their order is in that of volatile memory (5.2): with a
    /// store or load beside it, it is a release or an acquire. Under epochs only one of system
    /// scope orders (GPM).
    fn persist_fence(&mut self, slot: usize, scope: Scope, light: bool, now: u64, shared: &mut Shared<'_>) -> bool {
        match (shared.config.model, scope) {
            (Model::Epoch, Scope::Block) => true,
            (Model::Epoch, Scope::Device) if !light => true,
            (Model::Epoch, _) => self.end_epoch(slot, now, shared),
            (Model::Sbrp, Scope::Block) => self.order(slot, Kind::Acquire, shared),
            (Model::Sbrp, Scope::Device) if light => self.order(slot, Kind::Fence, shared),
            // What is stored after it may tell other SMs.
            (Model::Sbrp, Scope::Device) => self.order_device(slot, Rule::DeviceRelease, now, shared),
            (Model::Sbrp, Scope::System) if shared.config.lazy_durability => self.lazy_durability(slot, shared),
            (Model::Sbrp, Scope::System) => {
                let done = self.order_device(slot, Rule::Durability, now, shared);
                if done {
                    self.l1.invalidate(true);
                }
                done
            }
        }
    }

    /// An entry that orders; false where there is no room.
    pub(super) fn order(&mut self, slot: usize, kind: Kind, shared: &mut Shared<'_>) -> bool {
        if self.buffer.room(shared.config) == 0 {
            self.wait_for_room(slot, 1, shared);
            return false;
        }
        self.buffer.order(shared.config, slot, kind);
        true
    }

    /// An order whose warp waits until what it has persisted is durable; whether it is.
    pub(super) fn order_device(&mut self, slot: usize, rule: Rule, now: u64, shared: &mut Shared<'_>) -> bool {
        match self.warps[slot].ordering {
            Ordering::Done => {
                self.warps[slot].ordering = Ordering::None;
                return true;
            }
            Ordering::Waits => {
                self.warps[slot].ready_at = NEVER;
                return false;
            }
            Ordering::None => {}
        }
        let quiet = self.buffer.quiet(shared.config, slot);
        if quiet || !shared.config.has(rule) {
            return true;
        }
        if !self.order(slot, Kind::Device, shared) {
            return false;
        }
        // Where the buffer was empty the order is at its head already.
        if self.buffer.edm >> slot & 1 == 0 {
            self.buffer.odm |= 1 << slot;
        }
        shared.statistics.waits_for_durability += 1;
        self.warps[slot].ordering = Ordering::Waits;
        self.warps[slot].ready_at = NEVER;
        self.warps[slot].why = Why::Durability;
        self.flush(now, shared);
        false
    }

    /// A dFence that its warp does not wait for yet.
    fn lazy_durability(&mut self, slot: usize, shared: &mut Shared<'_>) -> bool {
        if self.wait_if_undurable(slot) {
            return false;
        }
        let quiet = self.buffer.quiet(shared.config, slot);
        if quiet || !shared.config.has(Rule::Durability) {
            return true;
        }
        if !self.order(slot, Kind::Device, shared) {
            return false;
        }
        if self.buffer.edm >> slot & 1 == 0 {
            self.buffer.odm |= 1 << slot;
        }
        self.undurable |= 1 << slot;
        true
    }

    /// The end of an epoch: all persists of the SM are flushed, the warp waits for them, and
    /// persistent data in L1 are invalid. Whether it is over.
    pub(super) fn end_epoch(&mut self, slot: usize, now: u64, shared: &mut Shared<'_>) -> bool {
        if self.warps[slot].ordering == Ordering::Waits {
            self.warps[slot].ordering = Ordering::None;
            return true;
        }
        let until = self.flush_epoch(now, shared);
        self.l1.invalidate(true);
        if until <= now {
            return true;
        }
        shared.statistics.waits_for_durability += 1;
        self.warps[slot].ordering = Ordering::Waits;
        self.warps[slot].ready_at = until;
        self.warps[slot].why = Why::Durability;
        false
    }
}
