//! Something that passes so many bytes a cycle: a port, a memory channel, a link.

/// Parts of a cycle that times are kept in.
const PARTS: f64 = 256.0;

/// A resource with a queue before it: what comes later waits for what came before.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    /// Parts of a cycle that a byte takes.
    parts_a_byte: f64,
    free_at: u64,
    /// Bytes passed.
    pub bytes: u64,
}

impl Channel {
    pub fn new(bytes_a_cycle: f64) -> Self {
        Self { parts_a_byte: PARTS / bytes_a_cycle, free_at: 0, bytes: 0 }
    }

    /// When `bytes` that come at cycle `at` have been taken by the queue before it, which holds
    /// `queue` bytes: at once while there is room.
    pub fn accept(&mut self, at: u64, bytes: u64, queue: u64) -> u64 {
        let passed = self.pass(at, bytes);
        let behind = (self.parts_a_byte * queue as f64 / PARTS) as u64;
        passed.saturating_sub(behind).max(at)
    }

    /// When what comes at cycle `at` begins to pass.
    pub fn begins(&self, at: u64) -> u64 {
        (self.free_at / PARTS as u64).max(at)
    }

    /// When `bytes` that come at cycle `at` have passed.
    pub fn pass(&mut self, at: u64, bytes: u64) -> u64 {
        let start = self.free_at.max(at * PARTS as u64);
        self.free_at = start + (self.parts_a_byte * bytes as f64) as u64;
        self.bytes += bytes;
        self.free_at.div_ceil(PARTS as u64)
    }
}
