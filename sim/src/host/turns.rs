//! Where an access stops for other cores, and when its core goes on.

use super::cpu::Host;
use super::packet::FetchId;
use super::resume::{Blocked, Progress};

impl Host {
    /// Stops at a read around the cache that is not answered, where cores take turns.
    pub(super) fn stop_at(&self, read: FetchId) -> Result<(), Blocked> {
        if self.takes_turns && self.fabric.answer_ps(read).is_none() {
            return Err(Blocked::Read { read, line: None });
        }
        Ok(())
    }

    /// The same at a line of the cache that is not complete.
    pub(super) fn stop_at_line(&mut self, number: u64) -> Result<(), Blocked> {
        match self.cache.peek(number).and_then(|line| line.fill) {
            Some(read) => self.stop_at(read).map_err(|_| Blocked::Read { read, line: Some(number) }),
            None => Ok(()),
        }
    }

    /// Stops once before each line, after its time has been charged.
    pub(super) fn stop_for_others(&self, progress: &mut Progress) -> Result<(), Blocked> {
        if self.takes_turns && !std::mem::replace(&mut progress.has_turn, true) {
            return Err(Blocked::Turn);
        }
        Ok(())
    }

    /// When a core can go on that has stopped, if the card has answered it: at once where nobody
    /// will, or where another core has seen to it.
    pub fn answer_ps(&mut self, blocked: Blocked) -> Option<u64> {
        // A turn comes at the core's own time.
        let Blocked::Read { read, line } = blocked else { return Some(0) };
        match line.map(|number| self.cache.peek(number)) {
            Some(Some(line)) if line.fill != Some(read) => Some(line.filled_ps),
            Some(None) => Some(self.fabric.now_ps()),
            _ => self.fabric.answer_ps(read),
        }
    }

    /// Lets a core wait until a time.
    pub fn pass_to(&mut self, core: usize, ps: u64) {
        let core = &mut self.cores[core];
        core.now_ps = core.now_ps.max(ps);
    }
}
