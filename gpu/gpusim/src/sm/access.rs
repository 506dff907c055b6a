//! Loads, stores and atomics of a warp.

use nearpm_ptx::{Access, Fault, Next, Scope, Unit, WarpAccess, Where};

use super::{Issue, Shared, Sm};
use crate::Model;
use crate::buffer::{Kind, Leaving};
use crate::coalesce::{Part, bank_turns, parts, whole_sectors};
use crate::stalls::Why;

/// What an access means for the order of persists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Plain,
    Acquire(Scope),
    Release(Scope),
}

impl Sm {
    pub(super) fn memory(
        &mut self,
        slot: usize,
        next: Next,
        unit: Unit,
        now: u64,
        shared: &mut Shared<'_>,
    ) -> Result<Issue, Box<Fault>> {
        let Unit::Memory(kind, scope) = unit else { return Ok(Issue::Done) };
        let warp = &self.warps[slot];
        let Some(block) = warp.block else { return Ok(Issue::Stalled) };
        let Some(access) = shared.stepped.access(shared.gpu, block, warp.number, next) else {
            self.execute(slot, now, now + 1, shared)?;
            return Ok(Issue::Done);
        };
        if access.place != Where::Global {
            let done =
                now + shared.config.l1_latency + if access.place == Where::Shared { bank_turns(&access) } else { 0 };
            self.execute(slot, now, done, shared)?;
            return Ok(Issue::Done);
        }
        if self.port_free > now {
            self.warps[slot].ready_at = self.port_free;
            return Ok(Issue::Stalled);
        }
        if self.waits_behind_a_store(slot) {
            return Ok(Issue::Stalled);
        }
        let mut list = std::mem::take(&mut self.parts);
        parts(&access, &mut list);
        let meaning = match (kind, scope) {
            (Access::Load, Some(scope @ (Scope::Block | Scope::Device))) => Meaning::Acquire(scope),
            (Access::Store, Some(scope @ (Scope::Block | Scope::Device))) => Meaning::Release(scope),
            _ => Meaning::Plain,
        };
        let meaning = match meaning {
            Meaning::Acquire(_) if shared.config.scopes_off => Meaning::Acquire(Scope::Device),
            Meaning::Release(_) if shared.config.scopes_off => Meaning::Release(Scope::Device),
            other => other,
        };
        let issued = match kind {
            Access::Load => self.load(slot, &access, &list, meaning, scope.is_some(), now, shared),
            Access::Store => self.store(slot, &access, &list, meaning, now, shared),
            Access::Atomic => self.atomic(slot, &access, &list, now, shared),
        };
        if matches!(issued, Ok(Issue::Done)) {
            self.port_free = now + list.len() as u64;
        }
        self.parts = list;
        issued
    }

    #[expect(clippy::too_many_arguments)]
    fn load(
        &mut self,
        slot: usize,
        access: &WarpAccess,
        list: &[Part],
        meaning: Meaning,
        strong: bool,
        now: u64,
        shared: &mut Shared<'_>,
    ) -> Result<Issue, Box<Fault>> {
        let epoch = shared.config.model == Model::Epoch;
        // Under epochs an acquire ends one: what it loads is to be seen with what other SMs have
        // flushed.
        if epoch && matches!(meaning, Meaning::Acquire(_)) && !self.end_epoch(slot, now, shared) {
            return Ok(Issue::Stalled);
        }
        let block_acquire = meaning == Meaning::Acquire(Scope::Block) && !epoch;
        // One of device scope may read what its own block has released to the block, which waits in
        // this buffer. Where all releases are of device scope they are durable before they are
        // read.
        let orders = matches!(meaning, Meaning::Acquire(_)) && !epoch && !shared.config.scopes_off;
        if orders && self.buffer.room(shared.config) == 0 {
            self.wait_for_room(slot, 1, shared);
            return Ok(Issue::Stalled);
        }
        let mut done = now + shared.config.l1_latency;
        // What has to be seen by, or from, other SMs is not looked for in L1.
        if (strong && !block_acquire) || (epoch && meaning != Meaning::Plain) {
            if meaning != Meaning::Plain {
                self.l1.invalidate(true);
            }
            for part in list {
                done = done.max(shared.l2.read(now, self.id, part.line, part.sectors(), part.persistent));
            }
        } else {
            for part in list {
                match self.load_part(slot, part, now, shared) {
                    Some(at) => done = done.max(at),
                    None => return Ok(Issue::Stalled),
                }
            }
        }
        if orders {
            self.buffer.order(shared.config, slot, Kind::Acquire);
        }
        if let Meaning::Acquire(scope) = meaning {
            self.order_acquire(slot, access, scope, shared);
        }
        self.execute(slot, now, done, shared)?;
        if meaning != Meaning::Plain {
            self.warps[slot].why = Why::Acquire;
        }
        Ok(Issue::Done)
    }

    /// When a part of a line is there, through L1; None where the warp has to wait for an eviction.
    fn load_part(&mut self, slot: usize, part: &Part, now: u64, shared: &mut Shared<'_>) -> Option<u64> {
        let hit_at = now + shared.config.l1_latency;
        let buffered = self.buffered(part.line);
        let wanted = part.sectors();
        if self.l1.find(part.line).is_none() {
            if !self.make_room(slot, now, shared) {
                return None;
            }
            self.l1.insert(part.line, part.persistent);
        }
        let line = self.l1.find(part.line)?;
        let missing = wanted & !line.valid & !whole_sectors(buffered);
        let hit = missing == 0 || part.bytes & !buffered == 0;
        if part.persistent {
            let counted = if hit { &mut shared.statistics.pm_read_hits } else { &mut shared.statistics.pm_read_misses };
            *counted += 1;
        }
        if hit {
            return Some(hit_at.max(if part.bytes & !buffered == 0 { 0 } else { line.ready_at }));
        }
        let at = shared.l2.read(now, self.id, part.line, missing, part.persistent);
        line.valid |= missing;
        line.ready_at = line.ready_at.max(at);
        Some(at)
    }

    fn store(
        &mut self,
        slot: usize,
        access: &WarpAccess,
        list: &[Part],
        meaning: Meaning,
        now: u64,
        shared: &mut Shared<'_>,
    ) -> Result<Issue, Box<Fault>> {
        let config = shared.config;
        let epoch = config.model == Model::Epoch;
        if access.persistent != access.lanes && self.wait_if_undurable(slot) {
            return Ok(Issue::Stalled);
        }
        match meaning {
            Meaning::Release(_) if epoch && !self.end_epoch(slot, now, shared) => return Ok(Issue::Stalled),
            Meaning::Release(Scope::Device) if !epoch && !self.release_device(slot, list, now, shared) => {
                return Ok(Issue::Stalled);
            }
            _ => {}
        }
        let through = matches!(meaning, Meaning::Release(scope) if epoch || scope == Scope::Device);
        let released = meaning == Meaning::Release(Scope::Block) && !epoch;
        if !through && !self.prepare(slot, list, released, now, shared) {
            if config.artifact_waits {
                self.blocking = Some(slot);
            }
            return Ok(Issue::Stalled);
        }
        self.no_longer_blocks(slot, now);
        if released {
            self.buffer.order(config, slot, Kind::Release);
        }
        let mark = match meaning {
            Meaning::Release(scope) => self.order_release(slot, access, scope, shared),
            _ => Vec::new(),
        };
        for part in list.iter().filter(|part| !part.persistent) {
            let at = shared.l2.write(now, self.id, part.line, part.sectors());
            let warp = &mut self.warps[slot];
            warp.stores_until = warp.stores_until.max(at);
        }
        let (block, number) = (self.warps[slot].block, self.warps[slot].number);
        self.execute(slot, now, now + 1, shared)?;
        let who = block.map(|block| (shared.stepped.block_number(block), shared.stepped.first_thread(block, number)));
        for part in list.iter().filter(|part| part.persistent) {
            let dirty = self.stored(who, access, part, shared);
            if !through {
                self.persist(slot, dirty, shared)
            } else if epoch {
                self.send(Leaving { entry: 0, warps: 1 << slot, dirty }, now, shared)
            } else {
                self.seen(slot, dirty, now, shared)
            }
        }
        self.order_released(who, access, mark, shared);
        Ok(Issue::Done)
    }

    fn atomic(
        &mut self,
        slot: usize,
        access: &WarpAccess,
        list: &[Part],
        now: u64,
        shared: &mut Shared<'_>,
    ) -> Result<Issue, Box<Fault>> {
        if access.persistent != 0 {
            return Err(self.refuse_atomic(slot, shared));
        }
        let turns = self.order_atomic(access, shared);
        let mut done = now + 1;
        for part in list {
            done = done.max(shared.l2.atomic(now, self.id, part.line, part.sectors(), turns));
        }
        self.warps[slot].stores_until = self.warps[slot].stores_until.max(done);
        self.execute(slot, now, done, shared)?;
        Ok(Issue::Done)
    }
}
