//! One buffer: entries in order, three masks of warps, one counter (Fig. 5 of the paper).

use std::collections::VecDeque;

use super::rules::{BufferRule, BufferRules};

/// How large a buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sizes {
    /// Entries, at least 1; the paper has half as many as L1 has lines, 256.
    pub entries: usize,
    /// Most outstanding flushes that the counter holds, at least 1; the paper has 8 bits, 255.
    pub outstanding: u32,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A dirty line of PM, by its index in L1.
    Persist(usize),
    /// An `oFence`, or a CUDA fence of the block.
    OFence,
    /// A block acquire.
    AcquireBlock,
    /// A block release.
    ReleaseBlock,
    /// A device acquire.
    AcquireDevice,
    /// A device release, or a CUDA fence of the device.
    ReleaseDevice,
    /// A `dFence`.
    DFence,
    /// A line that was evicted. Its place is taken until it is at the head: lines of L1 know
    /// entries by their places.
    Evicted,
}

impl Kind {
    /// Whether it is an ordering operation.
    fn is_order(self) -> bool {
        !matches!(self, Kind::Persist(_) | Kind::Evicted)
    }
}

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// The warps that made it, one bit each.
    pub warps: u32,
}

/// What becomes of a request of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It has an entry, of its own or shared.
    Accepted,
    /// It has one, and the warp is held until it is done.
    Held,
    /// Not now: ask again.
    Refused,
}

/// What the head did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// A line goes to memory, which will acknowledge it.
    Line(usize),
    /// An ordering entry left, or that of an evicted line.
    Left,
    /// Nothing.
    Nothing,
}

/// The buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PersistBuffer {
    rules: BufferRules,
    sizes: Sizes,
    entries: VecDeque<Entry>,
    /// FSM: warps whose next persist waits for the outstanding flushes.
    flush_status: u32,
    /// ODM: warps held by an ordering entry that is not at the head.
    order_delay: u32,
    /// EDM: warps that go on when their order has left, or no flush is outstanding.
    eviction_delay: u32,
    /// ACTR: flushes that are not acknowledged.
    outstanding: u32,
}

impl PersistBuffer {
    /// An empty buffer.
    pub fn new(rules: BufferRules, sizes: Sizes) -> PersistBuffer {
        PersistBuffer {
            rules,
            sizes,
            entries: VecDeque::new(),
            flush_status: 0,
            order_delay: 0,
            eviction_delay: 0,
            outstanding: 0,
        }
    }

    /// Whether nothing is in it and nothing outstanding.
    pub fn is_drained(&self) -> bool {
        self.entries.is_empty() && self.outstanding == 0
    }

    /// Whether a warp is held.
    pub fn holds(&self, warp: usize) -> bool {
        (self.order_delay | self.eviction_delay) >> warp & 1 == 1
    }

    /// Flushes that are not acknowledged.
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// The entries, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The three masks: FSM, ODM, EDM.
    pub fn masks(&self) -> [u32; 3] {
        [self.flush_status, self.order_delay, self.eviction_delay]
    }

    fn place(&self, line: usize) -> Option<usize> {
        self.entries.iter().position(|entry| entry.kind == Kind::Persist(line))
    }

    /// A warp stores to a line of PM.
    pub fn persist(&mut self, warp: usize, line: usize) -> Answer {
        let bit = 1 << warp;
        let Some(place) = self.place(line) else { return self.push(Entry { kind: Kind::Persist(line), warps: bit }) };
        let is_order = |entry: &Entry| entry.kind.is_order() && entry.warps & bit != 0;
        if self.rules.keep(BufferRule::HitLooksForOrder) && self.entries.range(place..).any(is_order) {
            // Goes on when its order has left or nothing is outstanding, and then asks again.
            self.eviction_delay |= bit;
            return Answer::Refused;
        }
        self.entries[place].warps |= bit;
        Answer::Accepted
    }

    /// A warp executes an ordering operation.
    pub fn order(&mut self, warp: usize, kind: Kind) -> Answer {
        let bit = 1 << warp;
        if kind == Kind::OFence && self.merge(bit) {
            return Answer::Accepted;
        }
        let holds = match kind {
            Kind::ReleaseDevice => self.rules.keep(BufferRule::DeviceReleaseWaits),
            Kind::DFence => self.rules.keep(BufferRule::DFenceHolds),
            _ => false,
        };
        let answer = self.push(Entry { kind, warps: bit });
        if answer == Answer::Accepted && holds {
            self.order_delay |= bit;
            return Answer::Held;
        }
        answer
    }

    fn merge(&mut self, bit: u32) -> bool {
        let last = match self.rules.keep(BufferRule::MergeAdjacent) {
            true => self.entries.back_mut().filter(|entry| entry.kind == Kind::OFence),
            false => self.entries.iter_mut().rfind(|entry| entry.kind == Kind::OFence),
        };
        last.map(|entry| entry.warps |= bit).is_some()
    }

    fn push(&mut self, entry: Entry) -> Answer {
        if self.entries.len() == self.sizes.entries {
            return Answer::Refused;
        }
        self.entries.push_back(entry);
        Answer::Accepted
    }

    /// L1 needs the place of a dirty line. Whether it goes to memory; else the warp asks again.
    pub fn evict(&mut self, line: usize) -> bool {
        let Some(place) = self.place(line) else { return false };
        let is_order = |entry: &Entry| entry.kind.is_order();
        let behind = self.rules.keep(BufferRule::EvictionLooksForOrder) && self.entries.range(..place).any(is_order);
        let marked = self.rules.keep(BufferRule::EvictionLooksAtMarks)
            && self.entries[place].warps & self.flush_status != 0
            && self.outstanding != 0;
        if behind || marked || !self.can_count() {
            return false;
        }
        self.entries[place].kind = Kind::Evicted;
        self.count();
        true
    }

    fn can_count(&self) -> bool {
        self.outstanding < self.sizes.outstanding || !self.rules.keep(BufferRule::CounterHolds)
    }

    fn count(&mut self) {
        if self.rules.keep(BufferRule::FlushCounts) {
            // A counter that does not hold begins again at zero.
            self.outstanding = (self.outstanding + 1) % (self.sizes.outstanding + 1);
        }
    }

    /// The head does what it can.
    pub fn flush(&mut self) -> Flush {
        if self.outstanding == 0 || !self.rules.keep(BufferRule::MarksClearAtZero) {
            self.flush_status = 0;
        }
        let Some(Entry { kind, warps }) = self.entries.front().copied() else { return Flush::Nothing };
        let stays = !kind.is_order() || !self.rules.keep(BufferRule::OrderFrees);
        let freed = if stays { self.eviction_delay } else { self.eviction_delay & !warps };
        match kind {
            Kind::Persist(line) => {
                let marked = self.rules.keep(BufferRule::HeadWaits) && warps & self.flush_status != 0;
                if marked || !self.can_count() {
                    return Flush::Nothing;
                }
                self.entries.pop_front();
                self.count();
                return Flush::Line(line);
            }
            Kind::ReleaseDevice | Kind::DFence => {
                let until_zero = self.rules.keep(BufferRule::HeldUntilZero) && self.outstanding != 0;
                if until_zero && self.rules.keep(BufferRule::HoldsTheHead) {
                    return Flush::Nothing;
                }
                self.eviction_delay = freed | if until_zero { self.order_delay & warps } else { 0 };
                self.order_delay &= !warps;
            }
            _ => {
                self.eviction_delay = freed;
                self.flush_status |= if kind.is_order() && self.marks(kind) { warps } else { 0 };
            }
        }
        self.entries.pop_front();
        Flush::Left
    }

    fn marks(&self, kind: Kind) -> bool {
        self.rules.keep(match kind {
            Kind::AcquireBlock => BufferRule::AcquireMarks,
            Kind::AcquireDevice => BufferRule::DeviceAcquireMarks,
            Kind::ReleaseBlock => BufferRule::ReleaseMarks,
            _ => BufferRule::FenceMarks,
        })
    }

    /// Memory has made a flushed line durable.
    pub fn acknowledge(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if self.outstanding == 0 {
            self.eviction_delay = 0;
        }
    }
}
