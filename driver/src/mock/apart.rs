//! The card apart from its link, for who takes the place of the processor and of the link, and
//! decides what of a crash arrives.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use nearpm_interface::command::Command;
use nearpm_interface::geometry::LINE;

use super::{Access, MockCard, State};

impl MockCard {
    /// Another card in the same state, but for its memory, which is blank. Both write completion
    /// records to the same host memory.
    pub fn without_memory(&self) -> MockCard {
        let mut state = self.lock();
        let medium = std::mem::take(&mut state.medium);
        let copy = State { medium: vec![0; medium.len()], ..state.clone() };
        state.medium = medium;
        MockCard { state: Arc::new(Mutex::new(copy)) }
    }

    /// What a command reads and writes where it arrives on a page now; `None` for one that is
    /// refused.
    pub fn footprint(&self, page: usize, line: &[u8; LINE]) -> Option<Access> {
        self.lock().admit(page, &Command::decode(line)?).ok()
    }

    /// A command arrives whole on a page, and everything that was accepted is carried out.
    pub fn carry_out(&self, page: usize, line: &[u8; LINE]) {
        let mut state = self.lock();
        state.accept(page, line);
        while state.execute_one() {}
    }

    /// What memory holds at device addresses.
    pub fn memory(&self, range: Range<u64>) -> Vec<u8> {
        self.lock().medium[range.start as usize..range.end as usize].to_vec()
    }

    /// Changes what memory holds, and what the processor's cache knows of it. What is on the way
    /// arrives before.
    pub fn set_memory(&self, address: u64, bytes: &[u8]) {
        let mut state = self.lock();
        while state.travel_one() {}
        state.push();
        state.medium[address as usize..][..bytes.len()].copy_from_slice(bytes);
        state.set_cached(address, bytes);
    }
}
