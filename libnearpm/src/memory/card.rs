//! Persistent memory of a card, through its PM window.

use std::sync::Arc;

use nearpm_driver::Card;
use nearpm_driver::pci::{Caching, Mapping, Work};
use nearpm_interface::geometry::LINE;

use super::{Memory, check_range};
use crate::error::Error;

/// A range of a card's persistent memory.
pub struct CardMemory {
    card: Arc<Card>,
    /// Pool that lies there.
    pool: Option<u32>,
    window: Box<dyn Mapping>,
    /// Device address of its first byte.
    base: u64,
    bytes: u64,
    /// No executor posts commands for the pool: all goes through the processor's cache, and drains
    /// look for failed logs.
    without_commands: bool,
}

impl CardMemory {
    /// Maps `bytes` bytes at device address `base`, where the pool with the identifier `pool` lies.
    pub fn map(
        card: Arc<Card>,
        pool: Option<u32>,
        base: u64,
        bytes: u64,
        caching: Caching,
    ) -> Result<CardMemory, Error> {
        let end = base.saturating_add(bytes);
        let window = card.window(base..end, caching)?;
        Ok(CardMemory { card, pool, window, base, bytes, without_commands: false })
    }

    /// For a pool that nobody posts commands for. Then nothing goes around the processor's cache: a
    /// processor may load a line ahead of time while a store around the cache is on its way, and
    /// keeps what was there before, so that who loads such a line must drop it first; where all
    /// goes through the cache, it is right about every line that it has. And no executor asks for
    /// failed logs of before: drains do.
    pub(crate) fn without_commands(self) -> CardMemory {
        CardMemory { without_commands: true, ..self }
    }
}

impl Memory for CardMemory {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn load(&self, offset: u64, data: &mut [u8]) {
        check_range(self.bytes, offset, data.len() as u64);
        self.window.load(offset, data);
    }
    fn store(&self, offset: u64, data: &[u8]) {
        check_range(self.bytes, offset, data.len() as u64);
        self.window.store(offset, data);
    }
    fn write_back(&self, offset: u64, bytes: u64) {
        check_range(self.bytes, offset, bytes);
        self.window.write_back(offset, bytes);
    }
    fn fence(&self) -> Result<(), Error> {
        self.window.fence();
        Ok(())
    }
    fn stream(&self, offset: u64, lines: &[u8]) {
        check_range(self.bytes, offset, lines.len() as u64);
        let (lines, rest) = lines.as_chunks::<LINE>();
        assert!(rest.is_empty(), "only whole lines are stored around the cache");
        if self.without_commands {
            self.window.store(offset, lines.as_flattened());
            return self.window.write_back(offset, lines.as_flattened().len() as u64);
        }
        // The buffer was written and is read again.
        self.window.charge(Work::CachedLines(2 * lines.len() as u64));
        for (n, line) in lines.iter().enumerate() {
            self.window.store_line(offset + (n * LINE) as u64, line);
        }
    }
    fn is_behind_a_link(&self) -> bool {
        true
    }
    fn prefetch(&self, offset: u64, bytes: u64) {
        check_range(self.bytes, offset, bytes);
        self.window.prefetch(offset, bytes);
    }
    fn charge(&self, work: Work) {
        self.window.charge(work);
    }
    fn is_read_back(&self) -> bool {
        true
    }
    fn contended(&self) -> bool {
        self.card.function().contended()
    }
    /// A fence alone orders posted writes on the link; a read of the card's status behind them
    /// answers only when they are in its persistence domain. Threads that drain at the same time
    /// share the read: it begins behind the fence of each. Stores that a failed log holds back may
    /// be dropped there.
    fn drain(&self) -> Result<(), Error> {
        self.window.fence();
        // No executor looks at what these have.
        if self.without_commands || self.pool.is_none() {
            return self.alive();
        }
        self.card.push(0)?;
        Ok(())
    }
    fn alive(&self) -> Result<(), Error> {
        // The status line tells all: that the card is there, whether a log has failed, and whether
        // a store was lost. A load of what a log holds back is answered with an error, which reads
        // as all ones too.
        let latched = self.card.push(0)?;
        let place = self.base..self.base + self.bytes;
        let stores = self.card.verify_stores(&place, latched);
        let verified = stores.and_then(|()| self.pool.map_or(Ok(()), |pool| self.card.verify_logs(pool, latched)));
        verified.map_err(|error| Error::failed(error, &place))
    }
    fn invalidate(&self, offset: u64, bytes: u64) {
        check_range(self.bytes, offset, bytes);
        self.window.invalidate(offset, bytes);
    }
}
