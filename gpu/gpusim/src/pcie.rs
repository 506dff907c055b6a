//! The way to persistent memory: on the board through its channels, or over PCIe, one link for all.

use crate::channel::Channel;
use crate::{Config, Place};

#[derive(Clone, Debug)]
pub(crate) struct PmPath {
    read_latency: u64,
    write_latency: u64,
    /// Bytes that the queue of a channel holds whose contents count as durable.
    queue: u64,
    /// One a memory channel, or one link.
    reads: Vec<Channel>,
    writes: Vec<Channel>,
}

impl PmPath {
    pub fn new(config: &Config) -> Self {
        let count = match config.place {
            Place::Near => (config.l2_slices / 2).max(1) as usize,
            Place::Far => 1,
        };
        let channels = |bytes: f64| vec![Channel::new(bytes / count as f64); count];
        Self {
            read_latency: config.pm_latency,
            write_latency: config.persist_latency,
            queue: config.pm_queue_bytes / count as u64,
            reads: channels(config.pm_read_bytes),
            writes: channels(config.pm_write_bytes),
        }
    }

    /// When what is read has come to L2.
    pub fn read(&mut self, at: u64, channel: usize, bytes: u64) -> u64 {
        let count = self.reads.len();
        self.reads[channel % count].pass(at, bytes) + self.read_latency
    }

    /// When what is written has come to the persistence domain: to the write queue of a memory controller, which the
    /// power supply saves (ADR), where there is one on this side of the narrowest place.
    pub fn write(&mut self, at: u64, channel: usize, bytes: u64) -> u64 {
        let count = self.writes.len();
        self.writes[channel % count].accept(at, bytes, self.queue) + self.write_latency
    }

    /// Bytes read and written.
    pub fn bytes(&self) -> (u64, u64) {
        let sum = |channels: &[Channel]| channels.iter().map(|channel| channel.bytes).sum();
        (sum(&self.reads), sum(&self.writes))
    }
}
