//! The flush status mask (FSM): warps whose next persists wait for acknowledgements (6.1,
//! intra-thread PMO).

use crate::Config;
use crate::acknowledgements::Acknowledgements;

/// Marked warps. Without generations, and with one counter, they are all in `fsm`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    /// Until what their group has under way is acknowledged; with generations: what the earlier one
    /// has.
    fsm: u32,
    /// Until nothing at all is under way, where groups of warps have counters of their own.
    after_all: u32,
    /// Until the present generation is acknowledged, whose turn to be the earlier one comes next.
    next: u32,
}

impl Marks {
    /// Whether a persist of these warps has to wait.
    pub fn hold(&self, warps: u32) -> bool {
        warps & (self.fsm | self.after_all | self.next) != 0
    }

    /// Marks warps, if something is under way; those that acquired wait for persists of others,
    /// too.
    pub fn set(&mut self, config: &Config, acks: &mut Acknowledgements, warps: u32, acquired: bool) {
        if acks.outstanding() == 0 {
            return;
        }
        if config.generations {
            match acks.generations() {
                // None is under way since the last mark: the earlier one is all.
                (_, 0) => self.fsm |= warps,
                (0, _) => {
                    acks.next_generation();
                    self.fsm |= warps;
                }
                _ => self.next |= warps,
            }
        } else if acquired && config.counters > 1 {
            self.after_all |= warps
        } else {
            self.fsm |= warps
        }
    }

    /// Takes back the marks that acknowledgements have answered.
    pub fn acknowledged(&mut self, config: &Config, acks: &mut Acknowledgements) {
        if config.generations {
            if acks.generations().0 == 0 {
                self.fsm = 0;
                let next = std::mem::take(&mut self.next);
                if next != 0 {
                    self.set(config, acks, next, false);
                }
            }
            return;
        }
        self.fsm &= !acks.quiet_warps(config);
        if acks.outstanding() == 0 {
            self.after_all = 0;
        }
    }

    /// Whether all that a warp waits for before it is durable is acknowledged, once its order has
    /// left the buffer.
    pub fn waited(&self, config: &Config, acks: &Acknowledgements, warp: usize) -> bool {
        match config.generations {
            true => !self.hold(1 << warp),
            false => self.quiet(config, acks, warp),
        }
    }

    /// Whether nothing is under way that a warp's durability needs.
    pub fn quiet(&self, config: &Config, acks: &Acknowledgements, warp: usize) -> bool {
        match config.generations || self.after_all >> warp & 1 == 1 {
            true => acks.outstanding() == 0,
            false => acks.group_is_quiet(config, warp),
        }
    }
}
