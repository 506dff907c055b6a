//! When the card has worked on commands.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A meter that a caller shares with cards: spans of cycles in which units had commands, from the
/// issue of the first to the retirement of the last.
#[derive(Debug, Default)]
pub struct Busy(Mutex<Spans>);

#[derive(Debug, Default)]
struct Spans {
    running: u32,
    since: u64,
    spans: Vec<(u64, u64)>,
}

impl Busy {
    fn lock(&self) -> MutexGuard<'_, Spans> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A command was issued.
    pub(super) fn issued(&self, cycle: u64) {
        let mut all = self.lock();
        all.running += 1;
        if all.running == 1 {
            all.since = cycle;
        }
    }

    /// A command was retired. One that was never issued (refused by a latch) makes no difference.
    pub(super) fn retired(&self, cycle: u64) {
        let mut all = self.lock();
        let ends = all.running == 1;
        all.running = all.running.saturating_sub(1);
        if ends && cycle > all.since {
            let since = all.since;
            all.spans.push((since, cycle));
        }
    }

    /// Spans since the last call, in cycles since power-up.
    pub fn take(&self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.lock().spans)
    }
}
