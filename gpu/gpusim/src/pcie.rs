//! The way to persistent memory: on the board through its channels, or over PCIe, one link for all.

use crate::channel::Channel;
use crate::l1::LineMap;
use crate::{Config, LINE, Place, SECTOR};

#[derive(Clone, Debug)]
pub(crate) struct PmPath {
    read_latency: u64,
    write_latency: u64,
    /// Bytes that the queue of a channel holds whose contents count as durable.
    queue: u64,
    /// One a memory channel, or one link.
    reads: Vec<Channel>,
    writes: Vec<Channel>,
    /// By line, for each sector: until when its last write is in the queue, and from when on
    /// (`queue_merges`).
    queued: Option<LineMap<[(u64, u64); SECTORS]>>,
}

const SECTORS: usize = (LINE / SECTOR) as usize;

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
            queued: config.queue_merges.then(LineMap::default),
        }
    }

    /// When what is read has come to L2.
    pub fn read(&mut self, at: u64, channel: usize, bytes: u64) -> u64 {
        let count = self.reads.len();
        self.reads[channel % count].pass(at, bytes) + self.read_latency
    }

    /// When what is written has come to the persistence domain: to the write queue of a memory
    /// controller, which the power supply saves (ADR), where there is one on this side of the
    /// narrowest place.
    pub fn write(&mut self, at: u64, channel: usize, line: u64, sectors: u8) -> u64 {
        let count = self.writes.len();
        let channel = &mut self.writes[channel % count];
        let bytes = |sectors: u8| u64::from(sectors.count_ones()) * SECTOR;
        let Some(queued) = &mut self.queued else {
            return channel.accept(at, bytes(sectors), self.queue) + self.write_latency;
        };
        let queued = queued.entry(line).or_default();
        let is = |sector: &usize| sectors >> sector & 1 == 1;
        // Those that are in the queue are taken there; they are durable when the earlier write of
        // the sector is.
        let (mut new, mut durable) = (0, at);
        for sector in (0..SECTORS).filter(is) {
            match queued[sector] {
                (until, from) if until > at => durable = durable.max(from),
                _ => new |= 1 << sector,
            }
        }
        if new != 0 {
            let until = channel.begins(at);
            let from = channel.accept(at, bytes(new), self.queue);
            (0..SECTORS).filter(|sector| new >> sector & 1 == 1).for_each(|sector| queued[sector] = (until, from));
            durable = durable.max(from);
        }
        durable + self.write_latency
    }

    /// Bytes read and written.
    pub fn bytes(&self) -> (u64, u64) {
        let sum = |channels: &[Channel]| channels.iter().map(|channel| channel.bytes).sum();
        (sum(&self.reads), sum(&self.writes))
    }
}
