//! Stores that memory refuses when they were accepted: their pool is latched, and software hears of
//! them.

use nearpm_interface::save::SaveHead;

use super::ModelCard;
use super::phase::Phase;

/// What is known of lost stores, until software has acknowledged it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// How many.
    pub count: u32,
    /// Lowest device address of their lines; 0 where there are none.
    pub first: u64,
    /// Highest device address of their lines.
    pub last: u64,
}

impl Lost {
    fn with(self, address: u64) -> Lost {
        match self.count {
            0 => Lost { count: 1, first: address, last: address },
            n => Lost { count: n.saturating_add(1), first: self.first.min(address), last: self.last.max(address) },
        }
    }

    /// What the head of an image says.
    pub fn of(head: &SaveHead) -> Lost {
        Lost { count: head.stores_lost, first: head.lost_first, last: head.lost_last }
    }
}

impl ModelCard {
    /// Memory refused a store.
    pub(in crate::model) fn store_lost(&mut self, address: u64) {
        self.lost = self.lost.with(address);
        self.map.strike(address);
        if self.persistence.phase == Phase::Replay {
            self.enter_phase(Phase::Loss);
        }
    }
}
