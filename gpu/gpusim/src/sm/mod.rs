//! A streaming multiprocessor: its warps and schedulers. What a warp's instruction does to memory
//! is in `access`, what leaves the persist buffer in `persist`.

mod access;
mod issue;
mod lines;
mod observe;
mod persist;
mod warp;

use std::sync::Arc;

use nearpm_ptx::{Fault, Gpu, Instruction, Stepped, Unit};

use self::warp::{Ordering, Warp};
use crate::buffer::Buffer;
use crate::coalesce::Part;
use crate::journal::Journal;
use crate::l1::L1;
use crate::l2::L2;
use crate::order::Order;
use crate::stalls::{HeadState, Stalls, Why};
use crate::{Config, Statistics};

/// Nothing but memory behind L1 takes so many cycles.
const MEMORY: u64 = 40;

/// A time that does not come.
pub(crate) const NEVER: u64 = u64::MAX;

/// What all SMs share.
pub(crate) struct Shared<'s> {
    pub config: &'s Config,
    pub gpu: &'s mut Gpu,
    pub stepped: &'s mut Stepped,
    pub instructions: Arc<[Instruction]>,
    pub l2: &'s mut L2,
    pub statistics: &'s mut Statistics,
    pub stalls: Option<&'s mut Stalls>,
    pub journal: Option<&'s mut Journal>,
    pub order: Option<&'s mut Order>,
}

/// Whether an instruction was issued. If not, its warp says when to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Issue {
    Done,
    Stalled,
}

pub(crate) struct Sm {
    id: usize,
    warps: Vec<Warp>,
    l1: L1,
    buffer: Buffer,
    /// When the next access can begin.
    port_free: u64,
    /// The warp that each scheduler issued last.
    last: Vec<usize>,
    /// The scheduler that comes first: each in its turn, or the warps of one, as they wait in
    /// loops, keep the port from another's for ever.
    first: usize,
    /// Warps that try again when an acknowledgement comes or an entry leaves.
    retry: u32,
    /// Those among them that wait for an eviction.
    evicting: u32,
    /// Warps whose dFence is not done, where they may go on (`lazy_durability`).
    undurable: u32,
    /// With `artifact_waits`: the warp whose store keeps others from L1, those that it keeps, and
    /// those that wait until nothing is under way.
    blocking: Option<usize>,
    behind: u32,
    until_quiet: u32,
    /// No block comes any more: all is flushed.
    draining: bool,
    parts: Vec<Part>,
    started: u64,
    shared_used: u64,
    /// When stalls were counted last, and in which state the buffer was then.
    counted_until: u64,
    head: HeadState,
    /// When there is something to do next.
    pub wake: u64,
}

impl Sm {
    pub fn new(id: usize, config: &Config) -> Self {
        Self {
            id,
            warps: vec![Warp { ready_at: NEVER, ..Warp::default() }; config.warps as usize],
            l1: L1::new(config.l1_lines),
            buffer: Buffer::new(config),
            port_free: 0,
            last: vec![0; config.schedulers as usize],
            first: 0,
            retry: 0,
            evicting: 0,
            undurable: 0,
            blocking: None,
            behind: 0,
            until_quiet: 0,
            draining: false,
            parts: Vec::with_capacity(32),
            started: 0,
            shared_used: 0,
            counted_until: NEVER,
            head: HeadState::Empty,
            wake: NEVER,
        }
    }

    /// Starts a block if there is room for it; whether there was a block to start and room.
    pub fn start_block(&mut self, now: u64, stepped: &mut Stepped, config: &Config) -> bool {
        let warps = stepped.threads_a_block().div_ceil(32) as usize;
        let free = self.warps.iter().filter(|warp| warp.block.is_none()).count();
        if free < warps || self.shared_used + stepped.shared_bytes() > config.shared_bytes {
            return false;
        }
        let Some(block) = stepped.start_block() else { return false };
        self.shared_used += stepped.shared_bytes();
        let registers = stepped.registers();
        for number in 0..warps {
            let Some(slot) = self.warps.iter().position(|warp| warp.block.is_none()) else { return false };
            self.started += 1;
            let warp = &mut self.warps[slot];
            *warp = Warp {
                block: Some(block),
                number,
                next: stepped.next(block, number),
                ready_at: now,
                registers: std::mem::take(&mut warp.registers),
                age: self.started,
                ..Warp::default()
            };
            warp.registers.clear();
            warp.registers.resize(registers, 0);
        }
        self.wake = self.wake.min(now);
        true
    }

    /// Flushes all: there are no more blocks.
    pub fn drain(&mut self, now: u64) {
        self.draining = true;
        self.wake = self.wake.min(now);
    }

    /// Whether nothing is left to run, to flush or to be acknowledged.
    pub fn idle(&self) -> bool {
        !self.busy() && self.buffer.is_empty() && self.buffer.acks.outstanding() == 0
    }

    /// When what is under way is acknowledged.
    pub fn last_acknowledgement(&self) -> Option<u64> {
        self.buffer.acks.last()
    }

    /// Whether there are threads.
    pub fn busy(&self) -> bool {
        self.warps.iter().any(|warp| warp.block.is_some())
    }

    /// Does what is to be done at a cycle.
    pub fn cycle(&mut self, now: u64, shared: &mut Shared<'_>) -> Result<(), Box<Fault>> {
        if let Some(stalls) = &mut shared.stalls {
            self.count_stalls(now, stalls);
        }
        if self.buffer.acknowledge(shared.config, now) {
            self.progress(now, shared.config);
        }
        let schedulers = self.last.len();
        let first = (self.first + 1) % schedulers;
        self.first = first;
        for scheduler in (first..schedulers).chain(0..first) {
            while let Some(warp) = self.pick(scheduler, now) {
                if self.issue(warp, now, shared)? == Issue::Done {
                    self.last[scheduler] = warp;
                    break;
                }
            }
        }
        self.flush(now, shared);
        if shared.stalls.is_some() {
            self.head = self.buffer.head_state(shared.config);
        }
        let ready = self.warps.iter().map(|warp| warp.ready_at).min().unwrap_or(NEVER);
        self.wake = ready.max(now + 1).min(self.buffer.acks.next().unwrap_or(NEVER));
        Ok(())
    }

    /// What was waited for since the last cycle at which something was done.
    fn count_stalls(&mut self, now: u64, stalls: &mut Stalls) {
        let cycles = now.saturating_sub(self.counted_until);
        self.counted_until = now;
        stalls.head(self.head, cycles);
        for warp in self.warps.iter().filter(|warp| warp.block.is_some()) {
            match warp.next {
                None => stalls.barrier += cycles,
                Some(_) => stalls.warp(warp.why, cycles),
            }
        }
    }

    /// Greedy, then oldest: the warp that was issued last while it can go on, else the one that
    /// started first.
    fn pick(&self, scheduler: usize, now: u64) -> Option<usize> {
        let last = self.last[scheduler];
        if self.warps[last].ready_at <= now && last % self.last.len() == scheduler {
            return Some(last);
        }
        let mine = (scheduler..self.warps.len()).step_by(self.last.len());
        mine.filter(|&warp| self.warps[warp].ready_at <= now).min_by_key(|&warp| self.warps[warp].age)
    }

    /// Something was acknowledged or has left: those who wait look again.
    fn progress(&mut self, now: u64, config: &Config) {
        if self.until_quiet != 0 && self.buffer.acks.outstanding() == 0 {
            bits(std::mem::take(&mut self.until_quiet)).for_each(|slot| self.warps[slot].ready_at = now);
        }
        let room = self.buffer.room(config);
        for slot in bits(self.retry) {
            let warp = &mut self.warps[slot];
            if warp.needs <= room {
                warp.needs = 0;
                warp.ready_at = now;
                self.retry &= !(1 << slot);
                self.evicting &= !(1 << slot);
            }
        }
        for slot in bits(self.buffer.edm) {
            if self.buffer.waited(config, slot) {
                self.buffer.edm &= !(1 << slot);
                self.undurable &= !(1 << slot);
                let warp = &mut self.warps[slot];
                if warp.ordering == Ordering::Waits {
                    warp.ordering = Ordering::Done;
                    warp.ready_at = now;
                }
            }
        }
    }

    /// Executes a warp's instruction; its results are there at `done`.
    fn execute(&mut self, slot: usize, now: u64, done: u64, shared: &mut Shared<'_>) -> Result<(), Box<Fault>> {
        let warp = &mut self.warps[slot];
        let (Some(block), Some(next)) = (warp.block, warp.next) else { return Ok(()) };
        let instruction = &shared.instructions[next.instruction as usize];
        for &register in &instruction.writes {
            warp.registers[register as usize] = done;
        }
        let ordinary = !matches!(instruction.unit, Unit::Memory(..) | Unit::Fence(_) | Unit::LightFence(_));
        if !(ordinary && warp.why == Why::Acquire) {
            warp.why = Why::Nothing;
        }
        let number = warp.number;
        let gathers = matches!(instruction.unit, Unit::Barrier | Unit::Exit);
        let ended = shared.stepped.step(shared.gpu, block, number)?;
        if ended {
            self.end_block(block, now, shared);
            return Ok(());
        }
        self.refresh(slot, now, shared);
        if gathers {
            for other in 0..self.warps.len() {
                if other != slot && self.warps[other].block == Some(block) && self.warps[other].next.is_none() {
                    self.refresh(other, now, shared);
                }
            }
        }
        Ok(())
    }

    /// What the warp does next, and when.
    fn refresh(&mut self, slot: usize, now: u64, shared: &mut Shared<'_>) {
        let warp = &mut self.warps[slot];
        let Some(block) = warp.block else { return };
        warp.next = shared.stepped.next(block, warp.number);
        warp.ready_at = match warp.next {
            None => NEVER,
            Some(next) => {
                let Instruction { reads, writes, .. } = &shared.instructions[next.instruction as usize];
                let needed = reads.iter().chain(writes);
                needed.fold(now + 1, |at, &register| at.max(warp.registers[register as usize]))
            }
        };
        if warp.why == Why::Nothing && warp.ready_at != NEVER && warp.ready_at > now + MEMORY {
            warp.why = Why::Memory;
        }
    }

    fn end_block(&mut self, block: usize, now: u64, shared: &mut Shared<'_>) {
        for warp in self.warps.iter_mut().filter(|warp| warp.block == Some(block)) {
            warp.block = None;
            warp.next = None;
            warp.ready_at = NEVER;
        }
        self.shared_used -= shared.stepped.shared_bytes();
        self.start_block(now + 1, shared.stepped, shared.config);
    }
}

/// The bits that are set.
pub(crate) fn bits(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(bit)
    })
}
