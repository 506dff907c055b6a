//! The persist buffer of an SM: entries in their order, and the masks and counters that hold them
//! (section 6).

mod lines;

use std::collections::VecDeque;

use crate::acknowledgements::Acknowledgements;
pub(crate) use crate::entry::{Demand, Dirty, Entry, Head, Kind, Leaving};
use crate::marks::Marks;
use crate::stalls::HeadState;
use crate::{Config, Policy, Rule};

/// What the counter of eight bits holds.
const MOST_UNDER_WAY: u32 = 255;

#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    entries: VecDeque<Entry>,
    /// Number of the first entry.
    first: u64,
    live: u32,
    /// Warps whose persists wait until flushed ones are acknowledged.
    marks: Marks,
    /// Warps that wait for an order to come to the head, and then for acknowledgements.
    pub odm: u32,
    pub edm: u32,
    pub acks: Acknowledgements,
    /// Each warp's last order in the buffer, and the warps that have persisted since.
    last_order: [u64; 32],
    persisted: u32,
    /// Each warp's last persist, and the last entries of some kinds: where orders may join.
    last_persist: [u64; 32],
    last_entry: u64,
    last_fence: u64,
    last_acquire: u64,
}

impl Buffer {
    pub fn new(config: &Config) -> Self {
        Self {
            entries: VecDeque::new(),
            first: 1,
            live: 0,
            marks: Marks::default(),
            odm: 0,
            edm: 0,
            acks: Acknowledgements::new(config),
            last_order: [0; 32],
            persisted: 0,
            last_persist: [0; 32],
            last_entry: 0,
            last_fence: 0,
            last_acquire: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.live == 0
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

    /// An order by a warp. Where the warp has persisted nothing since its last one, that moves
    /// here: what comes after is the same. So loops that acquire again and again fill no buffer.
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

    /// An order joins one that is there: a warp's own, where the warp has persisted nothing after
    /// it; an acquire, where nobody has. What other warps persist in between is of no matter to the
    /// former.
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
                if config.lazy_durability || config.generations {
                    self.marks.set(config, &mut self.acks, warps, false);
                }
                return;
            }
        };
        if config.has(rule) {
            self.marks.set(config, &mut self.acks, warps, kind == Kind::Acquire);
        }
    }

    fn trim(&mut self) {
        while self.entries.front().is_some_and(|entry| entry.kind == Kind::Gone) {
            self.entries.pop_front();
            self.first += 1;
        }
    }

    /// Whether the policy lets one more persist leave.
    fn may_leave(&self, config: &Config, demand: Demand) -> bool {
        match config.policy {
            Policy::Eager => true,
            Policy::Lazy => demand.any || self.odm | self.edm != 0,
            Policy::Window | Policy::Adaptive => {
                let under_way = self.acks.outstanding();
                under_way < self.acks.window || (under_way < MOST_UNDER_WAY && self.drains(config, demand))
            }
        }
    }

    /// Whether entries leave beyond the window. While warps wait for acknowledgements room comes
    /// without that.
    fn drains(&self, config: &Config, demand: Demand) -> bool {
        config.drains_when_full && (demand.eviction || demand.room && !self.marks.hold(u32::MAX))
    }

    /// Takes the head, if it may leave now.
    pub fn head(&mut self, config: &Config, demand: Demand) -> Head {
        self.trim();
        if !config.has(Rule::Fifo)
            && self.may_leave(config, demand)
            && let Some(newest) = self.entries.iter().rposition(|entry| entry.kind == Kind::Persist)
        {
            return self.take(self.first + newest as u64).map_or(Head::Waits, Head::Persist);
        }
        let Some(&Entry { kind, warps, .. }) = self.entries.front() else { return Head::Waits };
        if kind == Kind::Persist {
            if !self.may_leave(config, demand) {
                return Head::Waits;
            }
            let held = config.has(Rule::Flush) && self.marks.hold(warps);
            let leaves = if held { self.not_held(config.bypass) } else { Some(self.first) };
            return leaves.and_then(|number| self.take(number)).map_or(Head::Waits, Head::Persist);
        }
        self.entries.pop_front();
        self.first += 1;
        self.live -= 1;
        self.ordered(config, kind, warps);
        Head::Ordered
    }

    /// Why the first entry does not leave, where nothing leaves now.
    pub fn head_state(&self, config: &Config) -> HeadState {
        match self.entries.front() {
            None => HeadState::Empty,
            Some(entry) if config.has(Rule::Flush) && self.marks.hold(entry.warps) => HeadState::Marked,
            Some(_) => HeadState::Window,
        }
    }

    /// The first persist, of so many entries, that may leave though the head may not: no mark and
    /// no order before it is of a warp of it. That is what is asked of a line that is evicted.
    fn not_held(&self, entries: u32) -> Option<u64> {
        let mut ordered = 0;
        for (entry, number) in self.entries.iter().zip(self.first..).take(entries as usize) {
            match entry.kind {
                Kind::Gone => {}
                Kind::Persist if entry.warps & ordered == 0 && !self.marks.hold(entry.warps) => return Some(number),
                Kind::Persist => {}
                _ => ordered |= entry.warps,
            }
        }
        None
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
        !(ordered && config.has(Rule::Eviction) || self.marks.hold(entry.warps) && config.has(Rule::EvictionFlush))
    }

    /// The numbers of all persists.
    pub fn persists(&self) -> Vec<u64> {
        let numbered = self.entries.iter().zip(self.first..);
        numbered.filter(|(entry, _)| entry.kind == Kind::Persist).map(|(_, number)| number).collect()
    }

    /// Takes the acknowledgements that have come, and frees those who waited for them; whether
    /// there was one.
    pub fn acknowledge(&mut self, config: &Config, now: u64) -> bool {
        let any = self.acks.take(now);
        if any {
            self.marks.acknowledged(config, &mut self.acks);
        }
        any
    }

    /// Whether all that a warp waits for, whose order has left, is acknowledged.
    pub fn waited(&self, config: &Config, warp: usize) -> bool {
        self.marks.waited(config, &self.acks, warp)
    }

    /// Whether nothing is left that a warp's durability needs.
    pub fn quiet(&self, config: &Config, warp: usize) -> bool {
        self.is_empty() && self.marks.quiet(config, &self.acks, warp)
    }
}
