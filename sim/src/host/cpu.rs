//! What a load, store, write-back or fence of a core does and what it costs.

use nearpm_driver::pci::{Caching, PciError};
use nearpm_interface::geometry::{COMMAND_PAGE_BYTES, LINE, LINE_U64};
use nearpm_interface::registers;

use super::cache::Cache;
use super::combine::{Combiner, Piece};
use super::config_space::{ConfigSpace, Effect};
use super::cut::Cut;
use super::fabric::Fabric;
use super::parameters::{Behaviour, Parameters};
use super::{Bar, Statistics};
use crate::core::{Access, CardCore};
use crate::rng::Rng;

/// Polls for the end of a function-level reset: more than the longest work that a card can have accepted takes.
const RESET_POLLS: u32 = 50_000;
/// Lines that a load asks for ahead of the one that it waits for: as many as the fill buffers bear.
const LOOK_AHEAD: u64 = 8;
/// Recently used lines that the adversary remembers.
const RECENT: usize = 16;

/// Part of a BAR as a core sees it.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub bar: Bar,
    pub caching: Caching,
}

/// How a line leaves the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flush {
    /// Written back and kept (clwb).
    Keep,
    /// Written back and dropped (clflushopt).
    Drop,
}

/// One core.
struct Core {
    now_ps: u64,
    /// Time from which a further miss may be complete.
    fill_ps: u64,
    /// When the last posted write left.
    departure_ps: u64,
    combiner: Combiner,
    /// Write-backs that have been asked for and not begun.
    pending: Vec<(u64, Flush)>,
    /// Writes of the card that had been seen at the last load from host memory.
    dma_seen: u64,
    /// The core has been told of the power cut.
    stopped: bool,
}

impl Core {
    fn new(now_ps: u64, parameters: &Parameters) -> Self {
        Core {
            now_ps,
            fill_ps: now_ps,
            departure_ps: now_ps,
            combiner: Combiner::new(parameters.combine_buffers),
            pending: Vec::new(),
            dma_seen: 0,
            stopped: false,
        }
    }
}

/// All cores with their caches, and what is behind them.
pub struct Host {
    pub fabric: Fabric,
    pub config: ConfigSpace,
    /// Rises with every power-up: mappings and buffers of before are dead.
    pub generation: u32,
    memory_bytes: u64,
    cores: Vec<Core>,
    cache: Cache,
    adversary: Option<(u64, Rng)>,
    recent: [u64; RECENT],
    /// Accesses since the cut was armed, and the one that it comes at.
    accesses: u64,
    cut_access: Option<u64>,
}

impl Host {
    /// A host with a card of `memory_bytes`.
    pub fn new(parameters: Parameters, memory_bytes: u64) -> Self {
        let adversary = match parameters.behaviour {
            Behaviour::Ordinary => None,
            Behaviour::Adversarial { one_in, seed } => Some((one_in, Rng::new(seed))),
        };
        Host {
            fabric: Fabric::new(parameters),
            config: ConfigSpace::new(memory_bytes),
            generation: 0,
            memory_bytes,
            cores: Vec::new(),
            cache: Cache::new(parameters.cache_lines, (memory_bytes / LINE_U64) as usize),
            adversary,
            recent: [0; RECENT],
            accesses: 0,
            cut_access: None,
        }
    }

    /// Plugs a card in: everything volatile is new.
    pub fn power_up(&mut self, card: Box<dyn CardCore>) {
        let parameters = self.fabric.parameters;
        let now_ps = self.cores.iter().map(|core| core.now_ps).max().unwrap_or(0);
        self.cores = vec![Core::new(now_ps, &parameters)];
        self.cache = Cache::new(parameters.cache_lines, (self.memory_bytes / LINE_U64) as usize);
        self.config = ConfigSpace::new(self.memory_bytes);
        self.generation += 1;
        self.accesses = 0;
        self.cut_access = None;
        self.fabric.power_up(card, now_ps);
    }

    /// Bytes of a BAR.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Counters.
    pub fn statistics(&mut self) -> &mut Statistics {
        &mut self.fabric.statistics
    }

    /// Arms a power cut, or none.
    pub fn arm(&mut self, cut: Option<Cut>, seed: u64) {
        self.accesses = 0;
        self.cut_access = match cut {
            Some(Cut::AtAccess(access)) => Some(access),
            _ => None,
        };
        self.fabric.arm(cut, seed);
    }

    /// Makes sure that a core of that number exists; a new one starts now.
    pub fn use_core(&mut self, core: usize) {
        while self.cores.len() <= core {
            let now_ps = self.cores[0].now_ps;
            self.cores.push(Core::new(now_ps, &self.fabric.parameters));
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
            self.fabric.cut();
        } else if self.fabric.must_look(now_ps) {
            self.fabric.run_to(now_ps);
        }
        if self.adversary.is_some() && self.fabric.is_powered() {
            self.mischief(core);
        }
        self.fabric.is_powered() && self.config.memory_enabled()
    }

    /// Brings the card to the core's time, as a poll does.
    pub fn catch_up(&mut self, core: usize) {
        self.fabric.run_to(self.cores[core].now_ps);
    }

    /// Loads; all ones without power.
    pub fn load(&mut self, core: usize, window: Window, offset: u64, data: &mut [u8]) {
        if !self.begin(core) {
            return data.fill(0xff);
        }
        self.statistics().loads += 1;
        match (window.bar, window.caching) {
            (Bar::Memory, Caching::WriteBack) => self.load_cached(core, offset, data),
            (bar, Caching::WriteCombining) => self.load_pieces(core, bar, offset, data, LINE_U64),
            (bar, _) => {
                self.drain_for_uncached(core);
                let word = if bar == Bar::Registers { 4 } else { 8 };
                self.load_pieces(core, bar, offset, data, word);
            }
        }
        if !self.fabric.is_powered() {
            data.fill(0xff);
        }
    }

    /// Stores; nothing without power.
    pub fn store(&mut self, core: usize, window: Window, offset: u64, data: &[u8]) {
        if !self.begin(core) {
            return;
        }
        self.statistics().stores += 1;
        let words = data.len().div_ceil(8) as u64;
        self.cores[core].now_ps += words * self.fabric.parameters.store_ps;
        match (window.bar, window.caching) {
            (Bar::Memory, Caching::WriteBack) => self.store_cached(core, offset, data),
            (bar, Caching::WriteCombining) => {
                for piece in pieces(bar, offset, data, LINE_U64) {
                    self.combine(core, piece);
                }
            }
            (bar, _) => {
                self.drain_for_uncached(core);
                let word = if bar == Bar::Registers { 4 } else { 8 };
                for piece in pieces(bar, offset, data, word) {
                    self.post_piece(core, piece);
                }
            }
        }
    }

    /// Stores a line in one piece, around the caches, weakly ordered (MOVDIR64B).
    pub fn store_line(&mut self, core: usize, window: Window, offset: u64, line: &[u8; LINE]) {
        assert!(offset.is_multiple_of(LINE_U64), "a line store at {offset:#x} is not aligned");
        if !self.begin(core) {
            return;
        }
        self.statistics().stores += 1;
        self.cores[core].now_ps += self.fabric.parameters.store_ps;
        if window.bar == Bar::Memory && self.cache.contains(offset / LINE_U64) {
            self.flush(core, offset / LINE_U64, Flush::Drop);
        }
        if let Some(buffer) = self.cores[core].combiner.holds(window.bar, offset) {
            self.drain(core, buffer);
        }
        self.free_buffer(core);
        let piece = Piece { bar: window.bar, line: offset, data: *line, strobes: u64::MAX };
        let buffer = self.cores[core].combiner.store_whole(piece);
        if self.adversary.is_none() {
            self.drain(core, buffer);
        }
    }

    /// Starts to write back the lines of a range, and to drop them where told.
    pub fn write_back(&mut self, core: usize, window: Window, offset: u64, bytes: u64, drop: bool) {
        if !self.begin(core) || bytes == 0 {
            return;
        }
        let flush = if drop { Flush::Drop } else { Flush::Keep };
        for line in offset / LINE_U64..=(offset + bytes - 1) / LINE_U64 {
            self.cores[core].now_ps += self.fabric.parameters.write_back_ps;
            if window.bar != Bar::Memory || window.caching != Caching::WriteBack {
                continue;
            }
            match self.adversary {
                None => self.flush(core, line, flush),
                Some(_) => self.cores[core].pending.push((line, flush)),
            }
        }
    }

    /// Waits until what the core stored and wrote back before has left it.
    pub fn fence(&mut self, core: usize) {
        if !self.begin(core) {
            return;
        }
        self.statistics().fences += 1;
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
        let core = &mut self.cores[core];
        core.now_ps = core.now_ps.max(core.departure_ps) + self.fabric.parameters.fence_ps;
    }

    /// Reads host memory that the card may write.
    pub fn load_host(&mut self, core: usize, bus: u64, offset: usize, data: &mut [u8]) {
        self.begin(core);
        self.catch_up(core);
        let written = self.fabric.statistics.dma_writes;
        let parameters = &self.fabric.parameters;
        let cost = if self.cores[core].dma_seen == written { parameters.poll_hit_ps } else { parameters.poll_miss_ps };
        self.cores[core].dma_seen = written;
        self.cores[core].now_ps += cost;
        self.fabric.memory.read(bus, offset, data);
    }

    /// Waits for an interrupt, at most `timeout_ps`.
    pub fn wait_interrupt(&mut self, core: usize, timeout_ps: u64) -> bool {
        self.begin(core);
        let end_ps = self.cores[core].now_ps + timeout_ps;
        let step_ps = self.fabric.parameters.one_way_ps().max(1);
        loop {
            self.catch_up(core);
            let core = &mut self.cores[core];
            if std::mem::take(&mut self.fabric.interrupt) {
                core.now_ps += self.fabric.parameters.interrupt_ps;
                return true;
            }
            if core.now_ps >= end_ps || !self.fabric.is_powered() {
                return false;
            }
            let next_ps = self.fabric.next_arrival().unwrap_or(core.now_ps + step_ps);
            core.now_ps = next_ps.max(core.now_ps + 1).min(end_ps);
        }
    }

    fn load_cached(&mut self, core: usize, offset: u64, data: &mut [u8]) {
        let last = (offset + data.len().max(1) as u64 - 1) / LINE_U64;
        let mut asked = offset / LINE_U64;
        let mut missed = false;
        for (line, range, part) in split(offset, data.len(), LINE_U64) {
            let number = line / LINE_U64;
            while asked <= last.min(number + LOOK_AHEAD) {
                if !self.cache.contains(asked) {
                    self.start_fill(core, asked);
                    self.statistics().load_misses += 1;
                    missed = true;
                }
                asked += 1;
            }
            self.remember(number);
            let mask = mask(range.start, range.len());
            // The adversary's choice of a victim may have hit a line that was asked for.
            if !self.cache.contains(number) {
                self.start_fill(core, number);
            }
            let known = self.cache.touch(number).expect("asked for above").known;
            if known & mask == mask {
                self.statistics().load_hits += 1;
                self.cores[core].now_ps += self.fabric.parameters.hit_ps;
            } else {
                self.resolve(core, number);
            }
            let held = &self.cache.peek(number).expect("touched above").data;
            data[part].copy_from_slice(&held[range]);
        }
        if missed {
            let core = &mut self.cores[core];
            core.now_ps = core.now_ps.max(core.fill_ps);
        }
    }

    fn store_cached(&mut self, core: usize, offset: u64, data: &[u8]) {
        for (line, range, part) in split(offset, data.len(), LINE_U64) {
            let number = line / LINE_U64;
            self.remember(number);
            let mask = mask(range.start, range.len());
            if !self.cache.contains(number) {
                if mask == u64::MAX {
                    // A whole line is owned without being read (fast string stores, 64-byte stores).
                    self.make_room(core);
                    self.cache.insert(number, None);
                } else {
                    self.start_fill(core, number);
                    self.statistics().store_misses += 1;
                }
            }
            let held = self.cache.touch(number).expect("inserted above");
            held.data[range].copy_from_slice(&data[part]);
            held.known |= mask;
            held.dirty = true;
        }
    }

    /// Loads around the caches, a packet for each aligned piece of `size`.
    fn load_pieces(&mut self, core: usize, bar: Bar, offset: u64, data: &mut [u8], size: u64) {
        for (start, range, part) in split(offset, data.len(), size) {
            let line = start / LINE_U64 * LINE_U64;
            if let Some(buffer) = self.cores[core].combiner.holds(bar, line) {
                self.drain(core, buffer);
            }
            let access = match bar {
                Bar::Registers => Access::RegisterRead { offset: start as u32 },
                Bar::Commands => Access::CommandRead { page: (start / COMMAND_PAGE_BYTES as u64) as usize },
                Bar::Memory => Access::PmRead { address: line },
            };
            let id = self.fabric.fetch(self.cores[core].now_ps, access, size);
            let Some((arrival_ps, answer)) = self.fabric.wait(id) else { return };
            self.cores[core].now_ps = self.cores[core].now_ps.max(arrival_ps);
            // A register comes in the first bytes; everything else in its place in the line.
            let shift = if bar == Bar::Registers { 0 } else { (start % LINE_U64) as usize };
            data[part].copy_from_slice(&answer[shift + range.start..shift + range.end]);
        }
    }

    /// Puts a line into the cache and starts to fetch it, no faster than misses overlap.
    fn start_fill(&mut self, core: usize, number: u64) {
        self.make_room(core);
        let parameters = &self.fabric.parameters;
        let core = &mut self.cores[core];
        core.fill_ps = core.fill_ps.max(core.now_ps) + parameters.load_spacing_ps();
        core.now_ps = core.now_ps.max(core.fill_ps.saturating_sub(parameters.load_miss_ps));
        let id = self.fabric.fetch(core.now_ps, Access::PmRead { address: number * LINE_U64 }, LINE_U64);
        self.cache.insert(number, Some(id));
    }

    /// Waits until a cached line is complete.
    fn resolve(&mut self, core: usize, number: u64) {
        let line = self.cache.peek(number).expect("only cached lines are resolved");
        let Some(id) = line.fill.take() else { return };
        let (arrival_ps, data) = self.fabric.wait(id).unwrap_or((0, [0xff; LINE]));
        for byte in (0..LINE).filter(|byte| line.known >> byte & 1 == 0) {
            line.data[byte] = data[byte];
        }
        line.known = u64::MAX;
        let core = &mut self.cores[core];
        core.now_ps = core.now_ps.max(arrival_ps);
    }

    /// Writes a line back if it is dirty, and drops it where told.
    fn flush(&mut self, core: usize, number: u64, flush: Flush) {
        if self.write_line(core, number) {
            self.statistics().write_backs += 1;
        }
        if flush == Flush::Drop && self.cache.contains(number) {
            self.cache.remove(number);
        }
    }

    fn evict(&mut self, core: usize, number: u64) {
        if self.write_line(core, number) {
            self.statistics().evictions += 1;
        }
        self.cache.remove(number);
    }

    /// Writes a cached line back if it is dirty; whether it was.
    fn write_line(&mut self, core: usize, number: u64) -> bool {
        if !self.cache.contains(number) {
            return false;
        }
        self.resolve(core, number);
        let line = self.cache.peek(number).expect("looked at above");
        let dirty = std::mem::replace(&mut line.dirty, false);
        if dirty {
            // The whole line goes, with what the core only read of it.
            let piece = Piece { bar: Bar::Memory, line: number * LINE_U64, data: line.data, strobes: u64::MAX };
            self.post_piece(core, piece);
        }
        dirty
    }

    fn make_room(&mut self, core: usize) {
        while self.cache.is_full() {
            let victim = match &mut self.adversary {
                Some((_, rng)) => self.cache.nth(rng.below(self.cache.len() as u64) as usize),
                None => self.cache.oldest().expect("a full cache is not empty"),
            };
            self.evict(core, victim);
        }
    }

    fn combine(&mut self, core: usize, piece: Piece) {
        let held = self.cores[core].combiner.holds(piece.bar, piece.line);
        if let Some(buffer) = held
            && !self.cores[core].combiner.can_merge(piece.bar, piece.line)
        {
            self.drain(core, buffer);
        }
        if !self.cores[core].combiner.can_merge(piece.bar, piece.line) {
            self.free_buffer(core);
        }
        let combiner = &mut self.cores[core].combiner;
        let buffer = combiner.store(piece);
        if self.adversary.is_none() && combiner.is_complete(buffer) {
            self.drain(core, buffer);
        }
    }

    fn free_buffer(&mut self, core: usize) {
        let combiner = &self.cores[core].combiner;
        if combiner.is_full() {
            let victim = match &mut self.adversary {
                Some((_, rng)) => rng.below(combiner.len() as u64) as usize,
                None => 0,
            };
            self.drain(core, victim);
        }
    }

    /// An ordinary processor empties its write-combining buffers before an uncached access; no program may count on it.
    fn drain_for_uncached(&mut self, core: usize) {
        while self.adversary.is_none() && !self.cores[core].combiner.is_empty() {
            self.drain(core, 0);
        }
    }

    fn drain(&mut self, core: usize, buffer: usize) {
        let rng = self.adversary.as_mut().map(|(_, rng)| rng);
        for piece in self.cores[core].combiner.drain(buffer, rng) {
            self.post_piece(core, piece);
        }
    }

    /// Sends part of a line as a posted write.
    fn post_piece(&mut self, core: usize, piece: Piece) {
        let Piece { bar, line, data, strobes } = piece;
        let access = match bar {
            Bar::Registers => register_write(line, &data, strobes),
            Bar::Commands => Access::CommandWrite { offset: line, data, strobes },
            Bar::Memory => Access::PmWrite { address: line, data, strobes },
        };
        let parameters = self.fabric.parameters;
        let core = &mut self.cores[core];
        let departure_ps = self.fabric.post(core.now_ps + parameters.leave_ps, access);
        core.departure_ps = core.departure_ps.max(departure_ps);
        let ahead_ps = parameters.leave_ps + parameters.core_posted * parameters.packet_ps(LINE_U64);
        core.now_ps = core.now_ps.max(departure_ps.saturating_sub(ahead_ps));
    }

    fn remember(&mut self, number: u64) {
        if let Some((_, rng)) = &mut self.adversary {
            self.recent[rng.below(RECENT as u64) as usize] = number;
        }
    }

    /// Now and then, something that nobody asked for.
    fn mischief(&mut self, core: usize) {
        let (one_in, rng) = self.adversary.as_mut().expect("called for an adversary only");
        if !rng.one_in(*one_in) {
            return;
        }
        let (action, random) = (rng.below(4), rng.bits());
        let pick = |n: usize| (random % n.max(1) as u64) as usize;
        let state = &mut self.cores[core];
        match action {
            0 if self.cache.len() > 0 => {
                let victim = self.cache.nth(pick(self.cache.len()));
                self.evict(core, victim);
            }
            1 => self.prefetch(core, self.recent[pick(RECENT)].wrapping_add(random >> 32 & 1)),
            2 if !state.combiner.is_empty() => {
                let buffer = pick(state.combiner.len());
                let piece = state.combiner.take_some(buffer, rng);
                self.post_piece(core, piece);
            }
            3 if !state.pending.is_empty() => {
                let (line, flush) = state.pending.swap_remove(pick(state.pending.len()));
                self.flush(core, line, flush);
            }
            _ => {}
        }
    }

    /// Fetches a line in the background.
    fn prefetch(&mut self, core: usize, number: u64) {
        if number < self.cache.window_lines() && !self.cache.contains(number) && !self.cache.is_full() {
            let access = Access::PmRead { address: number * LINE_U64 };
            let id = self.fabric.fetch(self.cores[core].now_ps, access, LINE_U64);
            self.cache.insert(number, Some(id));
            self.statistics().prefetches += 1;
        }
    }

    /// Writes configuration space.
    pub fn write_config(&mut self, core: usize, offset: u16, data: &[u8]) -> Result<(), PciError> {
        if !self.fabric.is_powered() {
            return Ok(());
        }
        if self.config.write(offset, data) == Effect::Reset {
            return self.reset(core);
        }
        self.fabric.bus_master = self.config.bus_master();
        Ok(())
    }

    /// Function-level reset: asks the card for it, and waits until it has drained and forgotten its mappings.
    pub fn reset(&mut self, core: usize) -> Result<(), PciError> {
        let window = Window { bar: Bar::Registers, caching: Caching::Uncached };
        self.config = ConfigSpace::enabled(self.memory_bytes);
        let reset = registers::control::FUNCTION_RESET.to_le_bytes();
        self.store(core, window, registers::CONTROL as u64, &reset);
        let done = (0..RESET_POLLS).any(|_| {
            let mut mapped = [0; 4];
            self.load(core, window, registers::MAPPED as u64, &mut mapped);
            mapped == [0; 4]
        });
        self.config = ConfigSpace::new(self.memory_bytes);
        self.fabric.bus_master = false;
        match done {
            _ if !self.fabric.is_powered() => Err(PciError::Gone),
            true => Ok(()),
            false => Err(PciError::System {
                what: "function-level reset: the card does not drain",
                source: std::io::ErrorKind::TimedOut.into(),
            }),
        }
    }
}

/// A register is written whole.
fn register_write(line: u64, data: &[u8; LINE], strobes: u64) -> Access {
    let lane = strobes.trailing_zeros() as usize;
    assert_eq!(strobes, 0xf << lane, "registers are written in aligned words of four bytes");
    let value = u32::from_le_bytes(data[lane..lane + 4].try_into().expect("four bytes"));
    Access::RegisterWrite { offset: line as u32 + lane as u32, value }
}

/// Bits `start` to `start + length`.
fn mask(start: usize, length: usize) -> u64 {
    (u64::MAX >> (64 - length)) << start
}

type Part = (u64, std::ops::Range<usize>, std::ops::Range<usize>);

/// Splits a range at multiples of `size`: start of the aligned piece, range in the piece, range in the data.
fn split(offset: u64, length: usize, size: u64) -> impl Iterator<Item = Part> {
    let end = offset + length as u64;
    let mut at = offset;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let start = at / size * size;
            let stop = end.min(start + size);
            let part = (at - offset) as usize..(stop - offset) as usize;
            let range = (at - start) as usize..(stop - start) as usize;
            at = stop;
            (start, range, part)
        })
    })
}

/// The parts of a store as pieces of lines.
fn pieces(bar: Bar, offset: u64, data: &[u8], size: u64) -> impl Iterator<Item = Piece> {
    split(offset, data.len(), size).map(move |(start, range, part)| {
        let line = start / LINE_U64 * LINE_U64;
        let lane = (start - line) as usize + range.start;
        let mut bytes = [0; LINE];
        bytes[lane..lane + part.len()].copy_from_slice(&data[part.clone()]);
        Piece { bar, line, data: bytes, strobes: mask(lane, part.len()) }
    })
}
