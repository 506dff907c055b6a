//! Persists that are under way from an SM: their counters, and the window that bounds them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{Config, Policy};

#[derive(Clone, Debug)]
pub(crate) struct Acknowledgements {
    /// Persists not acknowledged, by group of warps or of two generations, and all.
    counters: [u32; 8],
    total: u32,
    /// The counter of the present generation, 0 or 1.
    present: usize,
    queue: BinaryHeap<Reverse<(u64, u8)>>,
    /// How many may be under way.
    pub window: u32,
    latency: Latency,
}

/// Acknowledge latencies seen by the adaptive window.
#[derive(Clone, Copy, Debug)]
struct Latency {
    least: u64,
    seen: u32,
}
impl Acknowledgements {
    pub fn new(config: &Config) -> Self {
        Self {
            counters: [0; 8],
            total: 0,
            present: 0,
            queue: BinaryHeap::new(),
            window: config.window,
            latency: Latency { least: u64::MAX, seen: 0 },
        }
    }

    pub fn outstanding(&self) -> u32 {
        self.total
    }

    /// Whether all persists of a warp's group are acknowledged.
    pub fn group_is_quiet(&self, config: &Config, warp: usize) -> bool {
        self.counters[warp % config.counters as usize] == 0
    }

    /// Persists under way of the generation before, and of the present one.
    pub fn generations(&self) -> (u32, u32) {
        (self.counters[1 - self.present], self.counters[self.present])
    }

    /// The present generation is the earlier one from now on; of the one before nothing is under
    /// way.
    pub fn next_generation(&mut self) {
        self.present = 1 - self.present;
    }

    /// The counters that a persist of these warps counts in.
    fn groups(&self, config: &Config, warps: u32) -> u8 {
        if config.generations {
            return 1 << self.present;
        }
        (0..32).filter(|warp| warps >> warp & 1 == 1).fold(0, |groups, warp| groups | 1 << (warp % config.counters))
    }

    /// A persist is under way; its acknowledgement comes at `ack`.
    pub fn sent(&mut self, config: &Config, warps: u32, now: u64, ack: u64) {
        let groups = self.groups(config, warps);
        (0..8).filter(|group| groups >> group & 1 == 1).for_each(|group| self.counters[group] += 1);
        self.total += 1;
        self.queue.push(Reverse((ack, groups)));
        if config.policy == Policy::Adaptive {
            self.adapt(ack - now);
        }
    }

    /// Narrows the window when acknowledgements take much longer than they can, widens it when they
    /// do not.
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
    pub fn next(&self) -> Option<u64> {
        self.queue.peek().map(|Reverse((at, _))| *at)
    }

    /// When the last one comes.
    pub fn last(&self) -> Option<u64> {
        self.queue.iter().map(|Reverse((at, _))| *at).max()
    }

    /// Takes the acknowledgements that have come; whether there was one.
    pub fn take(&mut self, now: u64) -> bool {
        let mut any = false;
        while let Some(&Reverse((at, groups))) = self.queue.peek() {
            if at > now {
                break;
            }
            self.queue.pop();
            any = true;
            self.total -= 1;
            for group in (0..8).filter(|group| groups >> group & 1 == 1) {
                self.counters[group] -= 1;
            }
        }
        any
    }

    /// The warps whose groups have nothing under way.
    pub fn quiet_warps(&self, config: &Config) -> u32 {
        let groups = (0..config.counters).filter(|&group| self.counters[group as usize] == 0);
        groups.fold(0, |warps, group| warps | group_mask(config, group))
    }
}

/// The warps of a group.
fn group_mask(config: &Config, group: u32) -> u32 {
    (0..32).filter(|warp| warp % config.counters == group).fold(0, |mask, warp| mask | 1 << warp)
}
