//! What lies between the processor and the card: its cache, and the stores that are on their way.

use std::ops::Range;

use nearpm_interface::geometry::{LINE, LINE_U64};

use super::{Accepted, RECENT_LINES, State, Store, lines, overlap};

impl State {
    pub(super) fn evict(&mut self, line: u64) {
        if let Some((bytes, true)) = self.cache.remove(&line) {
            // Behind an earlier write-back of the same line.
            self.travelling.push(Store::Pm { address: line, bytes: bytes.to_vec() });
        }
    }

    /// Drops one of the lines that are to be dropped, writing it back where it is dirty.
    pub(super) fn drop_one(&mut self) -> bool {
        if self.dropping.is_empty() {
            return false;
        }
        let at = self.next() as usize % self.dropping.len();
        let line = self.dropping.swap_remove(at);
        self.evict(line);
        self.touch(line);
        true
    }

    /// Notes a line that speculation may come back to.
    pub(super) fn touch(&mut self, line: u64) {
        if self.recent.len() == RECENT_LINES {
            self.recent.remove(0);
        }
        self.recent.push(line);
    }

    /// Loads ahead of time what was touched or dropped lately, all of it.
    pub(super) fn fetch_recent(&mut self) {
        for line in self.recent.clone() {
            self.fetch(line);
        }
    }

    pub(super) fn fetch(&mut self, line: u64) -> &mut ([u8; LINE], bool) {
        if !self.cache.contains_key(&line) {
            let mut bytes = [0; LINE];
            self.pm_load(line, &mut bytes);
            self.cache.insert(line, (bytes, false));
        }
        self.cache.get_mut(&line).expect("it was just fetched")
    }

    /// Changes bytes of lines that the cache holds.
    pub(super) fn set_cached(&mut self, address: u64, bytes: &[u8]) {
        let end = address + bytes.len() as u64;
        for (line, (cached, _)) in self.cache.range_mut(lines(address..end)) {
            let (from, to) = (address.max(*line), end.min(line + LINE_U64));
            cached[(from - line) as usize..(to - line) as usize]
                .copy_from_slice(&bytes[(from - address) as usize..(to - address) as usize]);
        }
    }

    /// A host access reaches the ordering point.
    pub(super) fn order_host(&mut self, range: Range<u64>, writes: bool) {
        if !self.options.host_ordered {
            return;
        }
        let range = lines(range);
        let conflicts = |a: &Accepted| {
            a.writes.iter().any(|w| overlap(w, &range)) || (writes && a.reads.iter().any(|r| overlap(r, &range)))
        };
        while let Some(last) = self.pending.iter().rposition(conflicts) {
            let upto = self.pending[last].order;
            while self.pending.first().is_some_and(|a| a.order <= upto) {
                self.execute(0);
            }
        }
    }

    pub(super) fn pm_load(&mut self, address: u64, data: &mut [u8]) {
        for line in lines(address..address + data.len() as u64).step_by(LINE) {
            self.travel_line(line);
        }
        self.push();
        self.empty_slots();
        self.order_host(address..address + data.len() as u64, false);
        data.copy_from_slice(&self.medium[address as usize..][..data.len()]);
    }

    pub(super) fn arrive(&mut self, store: Store) {
        match store {
            Store::Pm { address, bytes } => {
                self.empty_slots();
                self.order_host(address..address + bytes.len() as u64, true);
                // A store lies in one line.
                if self.is_lost(address / LINE_U64 * LINE_U64) {
                    return;
                }
                self.medium[address as usize..][..bytes.len()].copy_from_slice(&bytes);
            }
            Store::Command { offset, bytes } => self.command_bytes(offset, &bytes),
        }
    }

    /// A read pushes the posted writes that are in the link. What the processor was only asked to
    /// write back may still be in its buffers: that is a fence's to order.
    pub(super) fn push(&mut self) {
        while self.deliver_one() {}
    }

    /// What was stored to a line leaves the processor in front of a load of that line.
    fn travel_line(&mut self, line: u64) {
        let is_there =
            |store: &Store| matches!(store, Store::Pm { address, .. } if address / LINE_U64 == line / LINE_U64);
        let (leaves, stays) = std::mem::take(&mut self.travelling).into_iter().partition(is_there);
        let leaves: Vec<Store> = leaves;
        self.travelling = stays;
        self.link.extend(leaves);
    }

    /// The oldest store in the link reaches the card.
    pub(super) fn deliver_one(&mut self) -> bool {
        let Some(store) = self.link.pop_front() else { return false };
        self.arrive(store);
        true
    }

    /// One of the stores in the processor's buffers leaves, in any order.
    pub(super) fn travel_one(&mut self) -> bool {
        if self.travelling.is_empty() {
            return false;
        }
        // Stores to the same place keep their order: the first of those is taken.
        let at = self.next() as usize % self.travelling.len();
        let place = |s: &Store| match s {
            Store::Pm { address, .. } => *address / LINE_U64,
            Store::Command { offset, .. } => u64::MAX - offset / LINE_U64,
        };
        let wanted = place(&self.travelling[at]);
        let first = self.travelling.iter().position(|s| place(s) == wanted).expect("the one that was picked is there");
        let store = self.travelling.remove(first);
        self.link.push_back(store);
        true
    }
}
