//! What became durable, and when: from it the image of persistent memory at any cycle.

use crate::LINE;

/// A store to persistent memory, in the order in which stores were executed.
pub type StoreId = u32;

/// Part of a line that came to the persistence domain whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persisted {
    /// Core cycle.
    pub at: u64,
    /// Address of the line.
    pub line: u64,
    /// Its bytes that were written, a bit each.
    pub bytes: u128,
    /// What it holds there.
    pub data: Box<[u8; LINE as usize]>,
    /// The stores that are durable with it.
    pub stores: Vec<StoreId>,
}

impl Persisted {
    /// Writes it into an image of the range that begins at `base`.
    pub fn apply(&self, base: u64, image: &mut [u8]) {
        let Some(start) = self.line.checked_sub(base).and_then(|start| usize::try_from(start).ok()) else { return };
        let Some(to) = image.get_mut(start..start.saturating_add(LINE as usize)) else { return };
        for (index, (to, from)) in to.iter_mut().zip(self.data.iter()).enumerate() {
            if self.bytes >> index & 1 == 1 {
                *to = *from;
            }
        }
    }
}

/// All that became durable, in order.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    events: Vec<Persisted>,
    sorted: bool,
}

impl Journal {
    pub(crate) fn push(&mut self, event: Persisted) {
        self.sorted = false;
        self.events.push(event);
    }

    pub(crate) fn sort(&mut self) {
        if !self.sorted {
            self.events.sort_by_key(|event| event.at);
            self.sorted = true;
        }
    }

    /// What became durable, oldest first.
    pub fn events(&self) -> &[Persisted] {
        &self.events
    }
}
