//! What a power failure leaves of stores and copies that were on their way.

use nearpm_ptx::{Choice, PmRange};

use super::{State, memory};
use crate::error::Error;

impl State {
    /// The power fails: what of the pending stores, and of copies that go on, survives is chosen.
    /// Gives what replays it.
    pub(super) fn crash(&mut self, choice: Choice) -> Result<String, Error> {
        let copies = self.copies();
        self.aside.clear();
        let crash = self.gpu.crash(choice).map_err(|error| Error::Kernel(error.to_string()))?;
        for (range, offset, copied) in copies {
            let all = self.gpu.persistent_mut(&range).map_err(memory)?;
            tear_at(all, &copied, offset, choice);
        }
        Ok(crash.replay)
    }

    /// Copies to PM that go on: where to, and what.
    pub(super) fn copies(&self) -> Vec<(PmRange, u64, Vec<u8>)> {
        let copy = |&(_, to, from, bytes): &(u64, u64, u64, u64)| {
            let range = self.ranges.iter().find(|range| to >= range.address && to - range.address < range.len)?;
            let mut copied = vec![0; bytes as usize];
            // Memory that was freed is not copied.
            self.gpu.read(from, &mut copied).ok()?;
            Some((*range, to - range.address, copied))
        };
        self.aside.iter().filter_map(copy).collect()
    }
}

/// Stores some of the words at a place of all bytes, if it lies in them.
pub(super) fn tear_at(all: &mut [u8], from: &[u8], offset: u64, choice: Choice) {
    if let Some(place) = all.get_mut(offset as usize..).and_then(|rest| rest.get_mut(..from.len())) {
        tear(place, from, offset, choice);
    }
}

/// Stores some of the aligned words of 8 bytes.
pub(super) fn tear(to: &mut [u8], from: &[u8], offset: u64, choice: Choice) {
    for (at, (to, &from)) in to.iter_mut().zip(from).enumerate() {
        let word = (offset + at as u64) / 8;
        let persists = match choice {
            Choice::All => true,
            Choice::Seeded(seed) => (word ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1,
            _ => false,
        };
        if persists {
            *to = from;
        }
    }
}
