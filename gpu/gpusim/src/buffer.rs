//! The persist buffer of an SM: entries in their order, and the masks and counters that hold them (section 6).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::journal::StoreId;
use crate::{Config, Policy, Rule};

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// It has left out of order.
    Gone,
    Persist,
    /// An order of a warp's own persists: oFence, a release of block scope.
    Fence,
    Release,
    /// An order after other warps' persists.
    Acquire,
    /// Its warps wait until all before it is durable.
    Device,
}

/// The stores of a persist.
#[derive(Clone, Debug)]
pub(crate) struct Dirty {
    pub line: u64,
    pub bytes: u128,
    /// What was stored, where crashes are asked for.
    pub data: Option<Box<[u8; 128]>>,
    pub stores: Vec<StoreId>,
    /// The place in L1 of an older version.
    pub pinned: Option<u32>,
}

impl Dirty {
    /// Later stores to the same line.
    pub fn merge(&mut self, later: Dirty) {
        self.bytes |= later.bytes;
        self.stores.extend(later.stores);
        if let (Some(data), Some(from)) = (&mut self.data, later.data) {
            for (index, (to, from)) in data.iter_mut().zip(from.iter()).enumerate() {
                if later.bytes >> index & 1 == 1 {
                    *to = *from;
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub kind: Kind,
    pub warps: u32,
    pub dirty: Option<Dirty>,
}

/// A persist that leaves.
pub(crate) struct Leaving {
    pub entry: u64,
    pub warps: u32,
    pub dirty: Dirty,
}

/// What the head of the buffer lets happen.
pub(crate) enum Head {
    /// Nothing now.
    Waits,
    /// An order has left.
    Ordered,
    Persist(Leaving),
}

#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    entries: VecDeque<Entry>,
    /// Number of the first entry.
    first: u64,
    live: u32,
    /// Warps whose persists wait until their group's (in `after_all`: all) flushed ones are acknowledged.
    fsm: u32,
    after_all: u32,
    /// Warps that wait for an order to come to the head, and then for acknowledgements.
    pub odm: u32,
    pub edm: u32,
    /// Persists not acknowledged, by group of warps, and all.
    counters: [u32; 8],
    total: u32,
    acks: BinaryHeap<Reverse<(u64, u8)>>,
    /// Each warp's last order in the buffer, and the warps that have persisted since.
    last_order: [u64; 32],
    persisted: u32,
    /// Each warp's last persist, and the last entries of some kinds: where orders may join.
    last_persist: [u64; 32],
    last_entry: u64,
    last_fence: u64,
    last_acquire: u64,
    pub window: u32,
    latency: Latency,
}

/// Acknowledge latencies seen by the adaptive window.
#[derive(Clone, Copy, Debug)]
struct Latency {
    least: u64,
    seen: u32,
}

impl Buffer {
    pub fn new(config: &Config) -> Self {
        Self {
            entries: VecDeque::new(),
            first: 1,
            live: 0,
            fsm: 0,
            after_all: 0,
            odm: 0,
            edm: 0,
            counters: [0; 8],
            total: 0,
            acks: BinaryHeap::new(),
            last_order: [0; 32],
            persisted: 0,
            last_persist: [0; 32],
            last_entry: 0,
            last_fence: 0,
            last_acquire: 0,
            window: config.window,
            latency: Latency { least: u64::MAX, seen: 0 },
        }
    }

    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    pub fn outstanding(&self) -> u32 {
        self.total
    }

    /// Entries that may still come.
    pub fn room(&self, config: &Config) -> u32 {
        config.buffer_entries.saturating_sub(self.live)
    }

    /// Whether a warp has ordered after an entry.
    pub fn ordered_since(&self, entry: u64, warp: usize) -> bool {
        self.last_order[warp] > entry
    }

    fn entry_mut(&mut self, entry: u64) -> Option<&mut Entry> {
        self.entries.get_mut(usize::try_from(entry.checked_sub(self.first)?).ok()?)
    }

    /// The stores of an entry, for one more.
    pub fn dirty_mut(&mut self, entry: u64, warp: usize) -> Option<&mut Dirty> {
        self.persisted |= 1 << warp;
        self.last_persist[warp] = self.last_persist[warp].max(entry);
        let entry = self.entry_mut(entry)?;
        entry.warps |= 1 << warp;
        entry.dirty.as_mut()
    }

    /// Which bytes an entry has.
    pub fn bytes(&self, entry: u64) -> u128 {
        let index = entry.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| self.entries.get(index)?.dirty.as_ref()).map_or(0, |dirty| dirty.bytes)
    }

    /// A new persist; its number.
    pub fn persist(&mut self, warp: usize, dirty: Dirty) -> u64 {
        self.persisted |= 1 << warp;
        let number = self.push(Entry { kind: Kind::Persist, warps: 1 << warp, dirty: Some(dirty) });
        self.last_persist[warp] = number;
        self.last_entry = number;
        number
    }

    fn push(&mut self, entry: Entry) -> u64 {
        self.entries.push_back(entry);
        self.live += 1;
        self.first + self.entries.len() as u64 - 1
    }

    /// An order by a warp. Where the warp has persisted nothing since its last one, that moves here: what comes after is
    /// the same. So loops that acquire again and again fill no buffer.
    pub fn order(&mut self, config: &Config, warp: usize, mut kind: Kind) {
        let bit = 1u32 << warp;
        let last = self.last_order[warp];
        if kind != Kind::Device
            && self.persisted & bit == 0
            && let Some(entry) = self.entry_mut(last)
            && entry.warps & bit != 0
            && entry.kind != Kind::Device
        {
            kind = kind.max(entry.kind);
            entry.warps &= !bit;
            if entry.warps == 0 {
                entry.kind = Kind::Gone;
                self.live -= 1;
            }
            self.trim();
        }
        self.persisted &= !bit;
        if self.live == 0 {
            self.ordered(config, kind, bit);
            return;
        }
        self.last_order[warp] = self.join(kind, warp).unwrap_or_else(|| {
            let number = self.push(Entry { kind, warps: bit, dirty: None });
            match kind {
                Kind::Fence | Kind::Release => self.last_fence = number,
                Kind::Acquire => self.last_acquire = number,
                _ => {}
            }
            number
        });
    }

    /// An order joins one that is there: a warp's own, where the warp has persisted nothing after it; an acquire, where
    /// nobody has. What other warps persist in between is of no matter to the former.
    fn join(&mut self, kind: Kind, warp: usize) -> Option<u64> {
        let (number, after) = match kind {
            Kind::Fence | Kind::Release => (self.last_fence, self.last_persist[warp]),
            Kind::Acquire => (self.last_acquire, self.last_entry),
            _ => return None,
        };
        let entry = self.entry_mut(number).filter(|entry| number > after && entry.kind > Kind::Persist)?;
        entry.warps |= 1 << warp;
        Some(number)
    }

    /// An order comes to the head: what its warps persist from now on waits.
    fn ordered(&mut self, config: &Config, kind: Kind, warps: u32) {
        let rule = match kind {
            Kind::Fence => Rule::Fence,
            Kind::Release => Rule::Release,
            Kind::Acquire => Rule::Acquire,
            _ => {
                self.odm &= !warps;
                self.edm |= warps;
                if config.lazy_durability && self.total > 0 {
                    self.fsm |= warps;
                }
                return;
            }
        };
        if self.total > 0 && config.has(rule) {
            if kind == Kind::Acquire && config.counters > 1 { self.after_all |= warps } else { self.fsm |= warps }
        }
    }

    fn trim(&mut self) {
        while self.entries.front().is_some_and(|entry| entry.kind == Kind::Gone) {
            self.entries.pop_front();
            self.first += 1;
        }
    }

    /// Whether a persist of these warps has to wait for acknowledgements.
    fn held(&self, warps: u32) -> bool {
        warps & (self.fsm | self.after_all) != 0
    }

    /// Whether the policy lets one more persist leave; `wanted` where something waits for it.
    fn may_leave(&self, config: &Config, wanted: bool) -> bool {
        match config.policy {
            Policy::Eager => true,
            Policy::Lazy => wanted || self.odm | self.edm != 0,
            Policy::Window | Policy::Adaptive => self.total < self.window,
        }
    }

    /// Takes the head, if it may leave now.
    pub fn head(&mut self, config: &Config, wanted: bool) -> Head {
        self.trim();
        if !config.has(Rule::Fifo)
            && self.may_leave(config, wanted)
            && let Some(newest) = self.entries.iter().rposition(|entry| entry.kind == Kind::Persist)
        {
            return self.take(self.first + newest as u64).map_or(Head::Waits, Head::Persist);
        }
        let Some(&Entry { kind, warps, .. }) = self.entries.front() else { return Head::Waits };
        if kind == Kind::Persist {
            let held = config.has(Rule::Flush) && self.held(warps);
            if held || !self.may_leave(config, wanted) {
                return Head::Waits;
            }
            return self.take(self.first).map_or(Head::Waits, Head::Persist);
        }
        self.entries.pop_front();
        self.first += 1;
        self.live -= 1;
        self.ordered(config, kind, warps);
        Head::Ordered
    }

    /// Takes a persist out, wherever it is.
    pub fn take(&mut self, number: u64) -> Option<Leaving> {
        let entry = self.entry_mut(number)?;
        let dirty = entry.dirty.take()?;
        entry.kind = Kind::Gone;
        let warps = entry.warps;
        self.live -= 1;
        self.trim();
        Some(Leaving { entry: number, warps, dirty })
    }

    /// Whether the rules let an entry leave before its turn, because its line is evicted.
    pub fn may_evict(&self, config: &Config, number: u64) -> bool {
        let Some(before) = number.checked_sub(self.first).map(|index| index as usize) else { return true };
        let Some(entry) = self.entries.get(before) else { return true };
        let orders = |other: &Entry| other.kind > Kind::Persist && other.warps & entry.warps != 0;
        let ordered = self.entries.range(..before).any(orders);
        !(ordered && config.has(Rule::Eviction) || self.held(entry.warps) && config.has(Rule::EvictionFlush))
    }

    /// Whether an older version of a line than an entry's is still here.
    pub fn has_older(&self, line: u64, number: u64) -> bool {
        let before = number.saturating_sub(self.first) as usize;
        let earlier = self.entries.range(..before.min(self.entries.len()));
        earlier.filter_map(|entry| entry.dirty.as_ref()).any(|dirty| dirty.line == line)
    }

    /// An entry's stores are an older version now, in a place of L1 of their own.
    pub fn pin(&mut self, number: u64, place: u32) {
        if let Some(dirty) = self.entry_mut(number).and_then(|entry| entry.dirty.as_mut()) {
            dirty.pinned = Some(place);
        }
    }

    /// The numbers of all persists.
    pub fn persists(&self) -> Vec<u64> {
        let numbered = self.entries.iter().zip(self.first..);
        numbered.filter(|(entry, _)| entry.kind == Kind::Persist).map(|(_, number)| number).collect()
    }

    /// The counters that a persist of these warps counts in.
    fn groups(config: &Config, warps: u32) -> u8 {
        (0..32).filter(|warp| warps >> warp & 1 == 1).fold(0, |groups, warp| groups | 1 << (warp % config.counters))
    }

    /// A persist is under way; its acknowledgement comes at `ack`.
    pub fn sent(&mut self, config: &Config, warps: u32, now: u64, ack: u64) {
        let groups = Self::groups(config, warps);
        (0..8).filter(|group| groups >> group & 1 == 1).for_each(|group| self.counters[group] += 1);
        self.total += 1;
        self.acks.push(Reverse((ack, groups)));
        if config.policy == Policy::Adaptive {
            self.adapt(ack - now);
        }
    }

    /// Narrows the window when acknowledgements take much longer than they can, widens it when they do not.
    fn adapt(&mut self, latency: u64) {
        self.latency.least = self.latency.least.min(latency);
        self.latency.seen += 1;
        if self.latency.seen < self.window {
            return;
        }
        self.latency.seen = 0;
        if latency > 4 * self.latency.least {
            self.window = (self.window - 1).max(2);
        } else if latency < 2 * self.latency.least {
            self.window = (self.window + 1).min(12);
        }
    }

    /// When the next acknowledgement comes.
    pub fn next_ack(&self) -> Option<u64> {
        self.acks.peek().map(|Reverse((at, _))| *at)
    }

    /// When the last one comes.
    pub fn last_ack(&self) -> Option<u64> {
        self.acks.iter().map(|Reverse((at, _))| *at).max()
    }

    /// Takes the acknowledgements that have come; whether there was one.
    pub fn acknowledge(&mut self, config: &Config, now: u64) -> bool {
        let mut any = false;
        while let Some(&Reverse((at, groups))) = self.acks.peek() {
            if at > now {
                break;
            }
            self.acks.pop();
            any = true;
            self.total -= 1;
            for group in (0..config.counters as usize).filter(|group| groups >> group & 1 == 1) {
                self.counters[group] -= 1;
            }
        }
        if any {
            for group in (0..config.counters).filter(|&group| self.counters[group as usize] == 0) {
                self.fsm &= !group_mask(config, group);
            }
            if self.total == 0 {
                self.after_all = 0;
            }
        }
        any
    }

    /// Whether all that a warp's durability needs is acknowledged.
    pub fn quiet(&self, config: &Config, warp: usize) -> bool {
        let group = warp as u32 % config.counters;
        match self.after_all >> warp & 1 {
            1 => self.total == 0,
            _ => self.counters[group as usize] == 0,
        }
    }
}

/// The warps of a group.
fn group_mask(config: &Config, group: u32) -> u32 {
    (0..32).filter(|warp| warp % config.counters == group).fold(0, |mask, warp| mask | 1 << warp)
}
