//! What a load, store, write-back or fence of a core does and what it costs.

use std::ops::Range;

use nearpm_driver::pci::{Caching, Work};
use nearpm_interface::config_space::ConfigSpace;
use nearpm_interface::geometry::{LINE, LINE_U64};

use super::cache::Cache;
use super::combine::{Combiner, Piece, pieces};
use super::cut::Cut;
use super::fabric::Fabric;
use super::parameters::{Behaviour, Parameters};
use super::peers::Peers;
use super::resume::{Blocked, Progress};
use super::slot::Plug;
use super::windows::Windows;
use super::{Bar, Region, Statistics};
use crate::rng::Rng;

/// Lines used through the cache that the adversary remembers.
pub(super) const RECENT: usize = 16;

/// Part of a BAR as a core sees it.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub region: Region,
    pub caching: Caching,
}

/// How a line leaves the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flush {
    /// Written back and kept (clwb).
    Keep,
    /// Written back and dropped (clflushopt).
    Drop,
}

/// One core.
pub(super) struct Core {
    pub(super) now_ps: u64,
    /// Time from which a further miss may be complete.
    pub(super) fill_ps: u64,
    /// When the last posted write left.
    pub(super) departure_ps: u64,
    pub(super) combiner: Combiner,
    /// Write-backs that have been asked for and not begun.
    pub(super) pending: Vec<(u64, Flush)>,
    /// Writes of each card that had been seen at the last load from host memory.
    pub(super) dma_seen: Vec<u64>,
    /// The core has been told of the power cut.
    pub(super) stopped: bool,
}

impl Core {
    fn new(now_ps: u64, parameters: &Parameters, cards: usize) -> Self {
        Core {
            now_ps,
            fill_ps: now_ps,
            departure_ps: now_ps,
            combiner: Combiner::new(parameters.combine_buffers),
            pending: Vec::new(),
            dma_seen: vec![0; cards],
            stopped: false,
        }
    }
}

/// All cores with their caches, and what is behind them.
pub struct Host {
    pub fabric: Fabric,
    /// Configuration space of each card.
    pub config: Vec<ConfigSpace>,
    /// Rises with every power-up: mappings and buffers of before are dead.
    pub generation: u32,
    pub(super) windows: Windows,
    pub(super) cores: Vec<Core>,
    pub(super) cache: Cache,
    pub(super) adversary: Option<(u64, Rng)>,
    pub(super) recent: Vec<u64>,
    /// Cores go on while others wait: accesses stop at what they wait for.
    pub takes_turns: bool,
    /// Accesses since the power-up, and the one that an armed cut comes at.
    pub(super) accesses: u64,
    pub(super) cut_access: Option<u64>,
}

impl Host {
    /// A host with a slot for a card of each of these sizes, in bytes, without power.
    pub fn new(parameters: Parameters, peers: Peers, memory_bytes: Vec<u64>) -> Self {
        let adversary = match parameters.behaviour {
            Behaviour::Ordinary => None,
            Behaviour::Adversarial { one_in, seed } => Some((one_in, Rng::new(seed))),
        };
        let windows = Windows::new(memory_bytes);
        Host {
            fabric: Fabric::new(parameters, peers, windows.cards()),
            config: Vec::new(),
            generation: 0,
            cores: Vec::new(),
            cache: Cache::new(parameters.cache_lines, windows.lines()),
            windows,
            adversary,
            recent: Vec::new(),
            takes_turns: false,
            accesses: 0,
            cut_access: None,
        }
    }

    /// Switches the power on: everything volatile is new.
    pub fn power_up(&mut self, plugs: Vec<Plug>) {
        let parameters = self.fabric.parameters;
        let now_ps = self.cores.iter().map(|core| core.now_ps).max().unwrap_or(0);
        self.cores = vec![Core::new(now_ps, &parameters, self.windows.cards())];
        self.cache = Cache::new(parameters.cache_lines, self.windows.lines());
        self.config = (0..self.windows.cards()).map(|card| ConfigSpace::new(self.memory_bytes(card))).collect();
        self.recent.clear();
        self.generation += 1;
        self.accesses = 0;
        self.cut_access = None;
        self.fabric.power_up(plugs, now_ps);
    }

    /// Slots.
    pub fn cards(&self) -> usize {
        self.windows.cards()
    }

    /// Bytes of the PM window of a card.
    pub fn memory_bytes(&self, card: usize) -> u64 {
        self.windows.bytes(card)
    }

    /// Lines that were stored to and not written back.
    pub fn dirty_lines(&self) -> usize {
        self.cache.dirty()
    }

    /// Counters of a card.
    #[inline]
    pub fn statistics(&mut self, card: usize) -> &mut Statistics {
        &mut self.fabric.slots[card].statistics
    }

    /// Counters of all cards, and what belongs to none.
    pub fn all_statistics(&self) -> Statistics {
        let mut all = Statistics { fences: self.fabric.fences, cuts: self.fabric.cuts, ..Statistics::default() };
        self.fabric.slots.iter().for_each(|slot| all += slot.statistics);
        all
    }

    /// Arms a power cut, or none.
    pub fn arm(&mut self, cut: Option<Cut>, seed: u64) {
        self.cut_access = match cut {
            Some(Cut::AtAccess(access)) => Some(self.accesses + access),
            _ => None,
        };
        self.fabric.arm(cut, seed);
    }

    /// Makes sure that a core of that number exists; a new one starts now.
    pub fn use_core(&mut self, core: usize) {
        while self.cores.len() <= core {
            let now_ps = self.cores[0].now_ps;
            self.cores.push(Core::new(now_ps, &self.fabric.parameters, self.windows.cards()));
        }
    }

    /// Time of a core.
    pub fn now_ps(&self, core: usize) -> u64 {
        self.cores[core].now_ps
    }

    /// Lets time pass on a core.
    pub fn pass(&mut self, core: usize, ps: u64) {
        self.cores[core].now_ps += ps;
    }

    /// Lets the time pass that work beside the card's memory takes.
    pub fn charge(&mut self, core: usize, work: Work) {
        let parameters = &self.fabric.parameters;
        let ps = match work {
            Work::CachedLines(lines) => lines * parameters.hit_ps,
            Work::Checksum(bytes) => parameters.checksum_ps(bytes),
        };
        self.pass(core, ps);
    }

    /// Whether the core learns of a power cut now, for the first time.
    pub fn stops(&mut self, core: usize) -> bool {
        !self.fabric.is_powered() && !std::mem::replace(&mut self.cores[core].stopped, true)
    }

    /// Starts an access: a cut that is due comes first. Whether there is power.
    pub fn begin(&mut self, core: usize) -> bool {
        let now_ps = self.cores[core].now_ps;
        self.accesses += 1;
        if self.cut_access == Some(self.accesses) {
            self.fabric.run_to(now_ps);
            if self.fabric.is_powered() {
                self.fabric.cut();
                self.fabric.last_cut.as_mut().expect("it was just made").access = self.cut_access;
            }
        } else if self.fabric.must_look(now_ps) {
            self.fabric.run_to(now_ps);
        }
        if self.adversary.is_some() && self.fabric.is_powered() {
            self.mischief(core);
        }
        self.fabric.is_powered()
    }

    /// Starts an access to a card; whether it answers.
    fn begin_at(&mut self, core: usize, card: usize) -> bool {
        self.begin(core) && self.fabric.answers(card) && self.config[card].memory_enabled()
    }

    /// The same for an access in steps; whether there is power still, where it has begun.
    fn begin_once(&mut self, core: usize, card: usize, progress: &mut Progress) -> bool {
        if std::mem::replace(&mut progress.begun, true) { self.fabric.is_powered() } else { self.begin_at(core, card) }
    }

    /// Brings the card to the core's time, as a poll does.
    pub fn catch_up(&mut self, core: usize) {
        self.fabric.run_to(self.cores[core].now_ps);
    }

    /// Loads; all ones without power or a card.
    pub fn load(
        &mut self,
        core: usize,
        window: Window,
        offset: u64,
        data: &mut [u8],
        progress: &mut Progress,
    ) -> Result<(), Blocked> {
        let Window { region, caching } = window;
        if !std::mem::replace(&mut progress.begun, true) {
            if !self.begin_at(core, region.card) {
                data.fill(0xff);
                return Ok(());
            }
            self.statistics(region.card).loads += 1;
        }
        match (region.bar, caching) {
            (Bar::Memory, Caching::WriteBack) => self.load_cached(core, region.card, offset, data, progress)?,
            (_, Caching::WriteCombining) => self.load_pieces(core, region, offset, data, LINE_U64, progress)?,
            (bar, _) => {
                self.drain_for_uncached(core);
                let word = if bar == Bar::Registers { 4 } else { 8 };
                self.load_pieces(core, region, offset, data, word, progress)?;
            }
        }
        if !self.fabric.is_powered() {
            data.fill(0xff);
        }
        Ok(())
    }

    /// An access that lets no other core go on meanwhile.
    pub(super) fn at_once(&mut self, access: impl FnOnce(&mut Host, &mut Progress) -> Result<(), Blocked>) {
        let takes_turns = std::mem::replace(&mut self.takes_turns, false);
        access(self, &mut Progress::default()).expect("an access stops only where cores take turns");
        self.takes_turns = takes_turns;
    }

    /// Stores; nothing without power or a card.
    pub fn store(
        &mut self,
        core: usize,
        window: Window,
        offset: u64,
        data: &[u8],
        progress: &mut Progress,
    ) -> Result<(), Blocked> {
        let Window { region, caching } = window;
        if !std::mem::replace(&mut progress.begun, true) {
            if !self.begin_at(core, region.card) {
                return Ok(());
            }
            self.statistics(region.card).stores += 1;
            let words = data.len().div_ceil(8) as u64;
            self.cores[core].now_ps += words * self.fabric.parameters.store_ps;
        }
        if !self.fabric.is_powered() {
            return Ok(());
        }
        match (region.bar, caching) {
            (Bar::Memory, Caching::WriteBack) => self.store_cached(core, region.card, offset, data, progress)?,
            (_, Caching::WriteCombining) => {
                for piece in pieces(region, offset, data, LINE_U64) {
                    self.combine(core, piece);
                }
            }
            (bar, _) => {
                self.drain_for_uncached(core);
                let word = if bar == Bar::Registers { 4 } else { 8 };
                for piece in pieces(region, offset, data, word) {
                    self.post_piece(core, piece);
                }
            }
        }
        Ok(())
    }

    /// Stores a line in one piece, around the caches, weakly ordered (MOVDIR64B).
    pub fn store_line(&mut self, core: usize, window: Window, offset: u64, line: &[u8; LINE]) {
        assert!(offset.is_multiple_of(LINE_U64), "a line store at {offset:#x} is not aligned");
        let region = window.region;
        if !self.begin_at(core, region.card) {
            return;
        }
        self.statistics(region.card).stores += 1;
        self.cores[core].now_ps += self.fabric.parameters.store_ps;
        let number = self.windows.number(region.card, offset);
        if region.bar == Bar::Memory && self.cache.contains(number) {
            self.flush(core, number, Flush::Drop);
        }
        if let Some(buffer) = self.cores[core].combiner.holds(region, offset) {
            self.drain(core, buffer);
        }
        self.free_buffer(core);
        let piece = Piece { region, line: offset, data: *line, strobes: u64::MAX };
        let buffer = self.cores[core].combiner.store_whole(piece);
        if self.adversary.is_none() {
            self.drain(core, buffer);
        }
    }

    /// Starts to fetch the lines of a range that are not in the cache.
    pub fn fetch_ahead(
        &mut self,
        core: usize,
        window: Window,
        range: Range<u64>,
        progress: &mut Progress,
    ) -> Result<(), Blocked> {
        let Window { region, caching } = window;
        let cached = region.bar == Bar::Memory && caching == Caching::WriteBack;
        if !self.begin_once(core, region.card, progress)
            || range.is_empty()
            || !cached
            || !self.fabric.parameters.fetches_ahead
        {
            return Ok(());
        }
        for line in (range.start / LINE_U64..=(range.end - 1) / LINE_U64).skip(progress.done) {
            let number = self.windows.number(region.card, line * LINE_U64);
            if !self.cache.contains(number) {
                self.start_fill(core, number)?;
                self.statistics(region.card).prefetches += 1;
            }
            progress.done += 1;
        }
        Ok(())
    }

    /// Starts to write back the lines of a range, and to drop them where told.
    pub fn write_back(
        &mut self,
        core: usize,
        window: Window,
        range: Range<u64>,
        drop: bool,
        progress: &mut Progress,
    ) -> Result<(), Blocked> {
        let Window { region, caching } = window;
        if !self.begin_once(core, region.card, progress) || range.is_empty() {
            return Ok(());
        }
        let flush = if drop { Flush::Drop } else { Flush::Keep };
        let lines = range.start / LINE_U64..=(range.end - 1) / LINE_U64;
        for line in lines.skip(progress.done) {
            if !std::mem::replace(&mut progress.charged, true) {
                self.cores[core].now_ps += self.fabric.parameters.write_back_ps;
            }
            if region.bar == Bar::Memory && caching == Caching::WriteBack {
                let number = self.windows.number(region.card, line * LINE_U64);
                match self.adversary {
                    None => {
                        self.stop_for_others(progress)?;
                        self.stop_at_line(number)?;
                        self.flush(core, number, flush);
                    }
                    Some(_) => self.cores[core].pending.push((number, flush)),
                }
            }
            (progress.charged, progress.has_turn) = (false, false);
            progress.done += 1;
        }
        Ok(())
    }

    /// Waits until what the core stored and wrote back before has left it.
    pub fn fence(&mut self, core: usize) {
        if !self.begin(core) {
            return;
        }
        self.fabric.fences += 1;
        loop {
            let (flushes, buffers) = (self.cores[core].pending.len(), self.cores[core].combiner.len());
            if flushes + buffers == 0 {
                break;
            }
            let pick = match &mut self.adversary {
                Some((_, rng)) => rng.below((flushes + buffers) as u64) as usize,
                None => 0,
            };
            if pick < flushes {
                let (line, flush) = self.cores[core].pending.swap_remove(pick);
                self.flush(core, line, flush);
            } else {
                self.drain(core, pick - flushes);
            }
        }
        let Parameters { fence_ps, fence_drain_ps, .. } = self.fabric.parameters;
        let core = &mut self.cores[core];
        core.now_ps = core.now_ps.max(core.departure_ps + fence_drain_ps) + fence_ps;
    }
}
