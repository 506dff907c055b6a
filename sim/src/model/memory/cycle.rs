//! The shared DDR4 channel, run cycle by cycle while bursts are outstanding.

use std::collections::VecDeque;

use nearpm_interface::geometry::LINE;

use super::{Burst, Finished, Harvest, WriteBeat};
use crate::core::Medium;
use crate::ddr4::{self, Ddr4};

/// The DDR4 channel with what the card has outstanding at it.
pub struct CycleMemory {
    ddr4: Ddr4,
    /// Bursts in the order of their requests, in which the channel answers them.
    reads: VecDeque<Burst>,
    writes: VecDeque<Burst>,
    /// Lines of the first burst of `reads` that have come, and whether one of them failed.
    lines: Vec<[u8; LINE]>,
    error: bool,
}

impl CycleMemory {
    pub fn new(config: ddr4::Config, card_mhz: u64, medium: Medium) -> Self {
        let ddr4 = Ddr4::new(config, card_mhz, medium);
        CycleMemory { ddr4, reads: VecDeque::new(), writes: VecDeque::new(), lines: Vec::new(), error: false }
    }

    pub fn medium(&self) -> &Medium {
        self.ddr4.medium()
    }

    pub fn has_room(&self, write: bool) -> bool {
        if write { self.ddr4.can_write() } else { self.ddr4.can_read() }
    }

    pub fn read(&mut self, burst: Burst) {
        self.ddr4.push_read(burst.token.requester, burst.address, burst.beats as usize);
        self.reads.push_back(burst);
    }

    pub fn write(&mut self, burst: Burst, beats: &[WriteBeat]) {
        self.ddr4.push_write(burst.token.requester, burst.address, beats);
        self.writes.push_back(burst);
    }

    pub fn next(&self) -> Option<u64> {
        (!self.is_quiet()).then(|| self.ddr4.cycle() + 1)
    }

    pub fn is_quiet(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty()
    }

    pub fn run(&mut self, cycle: u64, harvest: &mut Harvest) {
        while self.ddr4.cycle() < cycle {
            if self.ddr4.is_idle() {
                self.ddr4.skip(cycle - self.ddr4.cycle());
                return;
            }
            self.ddr4.tick();
            self.collect(harvest);
        }
    }

    fn collect(&mut self, harvest: &mut Harvest) {
        if let Some(beat) = self.ddr4.take_read_beat() {
            self.lines.push(beat.data);
            self.error |= beat.error;
            if beat.last {
                let burst = self.reads.pop_front().expect("the channel answers what was asked");
                let first = harvest.lines.len();
                harvest.lines.append(&mut self.lines);
                let error = std::mem::take(&mut self.error);
                harvest.bursts.push(Finished { burst, read: true, first, error });
            }
        }
        if let Some(answer) = self.ddr4.take_write_answer() {
            let burst = self.writes.pop_front().expect("the channel answers what was asked");
            harvest.bursts.push(Finished { burst, read: false, first: 0, error: answer.error });
        }
    }

    pub fn power_fail(self, seed: u64) -> Medium {
        self.ddr4.power_fail(seed)
    }
}
