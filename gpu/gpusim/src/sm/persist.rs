//! What leaves the persist buffer, and evictions from L1.

use super::{NEVER, Shared, Sm, bits};
use crate::buffer::{Demand, Dirty, Head, Leaving};
use crate::coalesce::{Part, sectors};
use crate::journal::Persisted;
use crate::stalls::Why;
use crate::{Config, Model, Rule};

impl Sm {
    /// Lets leave what may leave (6.1, 6.2).
    pub(super) fn flush(&mut self, now: u64, shared: &mut Shared<'_>) {
        if shared.config.model == Model::Epoch {
            if self.draining {
                self.flush_epoch(now, shared);
            }
            return;
        }
        let mut left = false;
        loop {
            let demand = self.demand(shared.config);
            match self.buffer.head(shared.config, demand) {
                Head::Waits => break,
                Head::Ordered => {}
                Head::Persist(leaving) => self.send(leaving, now, shared),
            }
            left = true;
        }
        if left || self.buffer.edm != 0 {
            self.progress(now + 1, shared.config);
        }
    }

    /// What warps wait for.
    fn demand(&self, config: &Config) -> Demand {
        let waits = self.warps.iter().any(|warp| warp.waits_for.is_some());
        let room = self.buffer.room(config);
        Demand {
            any: self.draining || self.retry != 0 || waits,
            room: bits(self.retry).any(|slot| self.warps[slot].needs > room),
            eviction: self.evicting != 0,
        }
    }

    /// Flushes all persists, in any order; when the last of all that are under way is acknowledged.
    pub(super) fn flush_epoch(&mut self, now: u64, shared: &mut Shared<'_>) -> u64 {
        for number in self.buffer.persists() {
            if let Some(leaving) = self.buffer.take(number) {
                self.send(leaving, now, shared);
            }
        }
        self.buffer.acks.last().unwrap_or(0)
    }

    /// A persist goes to the persistence domain; its line stays in L1.
    pub(super) fn send(&mut self, leaving: Leaving, now: u64, shared: &mut Shared<'_>) {
        let Leaving { entry, warps, dirty } = leaving;
        shared.statistics.persists += 1;
        let (durable, ack) = shared.l2.persist(now, self.id, dirty.line, sectors(dirty.bytes));
        self.buffer.acks.sent(shared.config, warps, now, ack);
        match dirty.pinned {
            Some(place) => self.l1.unpin(place),
            None => self.l1.written(dirty.line, entry, dirty.bytes),
        }
        for slot in bits(u32::MAX >> (32 - self.warps.len())) {
            let warp = &mut self.warps[slot];
            if warp.waits_for == Some(entry) {
                warp.waits_for = None;
                if shared.config.artifact_waits {
                    self.until_quiet |= 1 << slot;
                } else {
                    warp.ready_at = ack;
                }
            }
        }
        if let (Some(journal), Some(data)) = (&mut shared.journal, dirty.data) {
            journal.push(Persisted { at: durable, line: dirty.line, bytes: dirty.bytes, data, stores: dirty.stores });
        }
    }

    /// Makes room in L1 for one more line; false where the order forbids it now, and the warp
    /// waits.
    pub(super) fn make_room(&mut self, slot: usize, now: u64, shared: &mut Shared<'_>) -> bool {
        let Some(victim) = self.l1.victim() else { return true };
        let entries = if victim.older == 0 { Vec::from_iter(victim.entry) } else { self.buffer.of_line(victim.tag) };
        let evicted = |&entry: &u64| self.buffer.may_evict(shared.config, entry);
        if shared.config.model == Model::Sbrp && !entries.iter().all(evicted) {
            shared.statistics.waits_for_eviction += 1;
            self.evicting |= 1 << slot;
            self.retry_later(slot, Why::Eviction);
            return false;
        }
        for entry in entries {
            if let Some(leaving) = self.buffer.take(entry) {
                self.send(leaving, now, shared);
            }
        }
        true
    }

    /// The warp waits until an entry is durable.
    pub(super) fn wait_for_entry(&mut self, slot: usize, entry: u64, shared: &mut Shared<'_>) {
        shared.statistics.waits_for_line += 1;
        self.warps[slot].waits_for = Some(entry);
        self.warps[slot].why = Why::Line;
        self.warps[slot].ready_at = NEVER;
    }

    /// A release of device scope: what its warp has persisted is durable, then its own store, if
    /// that is to persistent memory; other SMs see it after that. Whether it can be made now.
    pub(super) fn release_device(&mut self, slot: usize, list: &[Part], now: u64, shared: &mut Shared<'_>) -> bool {
        if std::mem::take(&mut self.warps[slot].flag_sent) {
            return true;
        }
        if !self.order_device(slot, Rule::DeviceRelease, now, shared) {
            return false;
        }
        let mut until = now;
        for part in list.iter().filter(|part| part.persistent) {
            let (_, ack) = shared.l2.persist(now, self.id, part.line, part.sectors());
            self.buffer.acks.sent(shared.config, 1 << slot, now, ack);
            shared.statistics.persists += 1;
            until = until.max(ack);
        }
        if until > now {
            self.warps[slot].flag_sent = true;
            self.warps[slot].why = Why::Durability;
            self.warps[slot].ready_at = until;
        }
        until == now
    }

    /// Other SMs see what was stored past the buffer, which is durable.
    pub(super) fn seen(&mut self, slot: usize, dirty: Dirty, now: u64, shared: &mut Shared<'_>) {
        if let Some(entry) = self.l1.peek(dirty.line).and_then(|line| line.entry)
            && let Some(there) = self.buffer.dirty_mut(entry, slot)
        {
            // What the buffer has of these bytes is older, and must not come later.
            there.bytes &= !dirty.bytes;
        }
        if self.l1.peek(dirty.line).is_some_and(|line| line.older & dirty.bytes != 0) {
            let entries = self.buffer.of_line(dirty.line);
            entries.into_iter().for_each(|entry| self.buffer.forget(entry, dirty.bytes));
        }
        if let (Some(journal), Some(data)) = (&mut shared.journal, dirty.data) {
            journal.push(Persisted { at: now, line: dirty.line, bytes: dirty.bytes, data, stores: dirty.stores });
        }
    }
}
