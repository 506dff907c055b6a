//! L2 and what is behind it. Times are computed when a request is made: each resource on its way
//! keeps when it is free.

use crate::channel::Channel;
use crate::pcie::PmPath;
use crate::{Config, LINE, SECTOR};

const WAYS: usize = 16;
/// Bytes that a slice passes in a cycle.
const SLICE_BYTES: f64 = 32.0;
/// Bytes of a request or of an acknowledgement in the crossbar.
const HEADER: u64 = 8;

#[derive(Clone, Copy, Debug)]
struct Way {
    line: u64,
    /// Sectors that are valid, and of these the ones that memory has not.
    valid: u8,
    dirty: u8,
    used: u64,
}

#[derive(Clone, Debug)]
struct Slice {
    ways: Vec<Way>,
    port: Channel,
}

#[derive(Clone, Debug)]
pub(crate) struct L2 {
    slices: Vec<Slice>,
    sets: u64,
    gddr: Vec<Channel>,
    gddr_latency: u64,
    pub pm: PmPath,
    /// Each SM's port of the crossbar, to L2 and back.
    to: Vec<Channel>,
    back: Vec<Channel>,
    half_latency: u64,
    clock: u64,
}

impl L2 {
    pub fn new(config: &Config) -> Self {
        let slices = config.l2_slices as usize;
        let sets = (config.l2_bytes / (slices * WAYS) as u64 / LINE).max(1);
        let empty = Way { line: u64::MAX, valid: 0, dirty: 0, used: 0 };
        let slice = Slice { ways: vec![empty; sets as usize * WAYS], port: Channel::new(SLICE_BYTES) };
        let channels = slices / 2;
        Self {
            slices: vec![slice; slices],
            sets,
            gddr: vec![Channel::new(config.gddr_bytes / channels as f64); channels],
            gddr_latency: config.gddr_latency,
            pm: PmPath::new(config),
            to: vec![Channel::new(config.flit_bytes); config.sms as usize],
            back: vec![Channel::new(config.flit_bytes); config.sms as usize],
            half_latency: config.l2_latency / 2,
            clock: 0,
        }
    }

    /// The slice of a line: hashed, so that strides do not meet in one.
    fn slice_of(&self, line: u64) -> usize {
        let hash = (line / LINE).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        (hash % self.slices.len() as u64) as usize
    }

    /// The way that has a line or is given to it; writes back what was there.
    fn way(&mut self, at: u64, slice: usize, line: u64) -> &mut Way {
        self.clock += 1;
        let set = ((line / LINE) % self.sets) as usize * WAYS;
        let ways = &self.slices[slice].ways[set..set + WAYS];
        let found = ways.iter().position(|way| way.line == line);
        let place = found.unwrap_or_else(|| (0..WAYS).min_by_key(|&way| ways[way].used).unwrap_or(0));
        let way = &mut self.slices[slice].ways[set + place];
        if found.is_none() {
            let written = u64::from(way.dirty.count_ones()) * SECTOR;
            if written > 0 {
                let channel = slice / 2 % self.gddr.len();
                self.gddr[channel].pass(at, written);
            }
            *way = Way { line, valid: 0, dirty: 0, used: 0 };
        }
        way.used = self.clock;
        way
    }

    /// When the sectors of a line have come to an SM.
    pub fn read(&mut self, now: u64, sm: usize, line: u64, sectors: u8, persistent: bool) -> u64 {
        let sent = self.to[sm].pass(now, HEADER) + self.half_latency;
        let slice = self.slice_of(line);
        let bytes = u64::from(sectors.count_ones()) * SECTOR;
        let served = self.slices[slice].port.pass(sent, bytes);
        let way = self.way(served, slice, line);
        let missing = sectors & !way.valid;
        way.valid |= sectors;
        let fetched = u64::from(missing.count_ones()) * SECTOR;
        let there = match (fetched, persistent) {
            (0, _) => served,
            (_, true) => self.pm.read(served, slice / 2, fetched),
            (_, false) => {
                let channel = slice / 2 % self.gddr.len();
                self.gddr[channel].pass(served, fetched) + self.gddr_latency
            }
        };
        self.back[sm].pass(there, HEADER + bytes) + self.half_latency
    }

    /// When a volatile store has been acknowledged.
    pub fn write(&mut self, now: u64, sm: usize, line: u64, sectors: u8) -> u64 {
        let bytes = u64::from(sectors.count_ones()) * SECTOR;
        let sent = self.to[sm].pass(now, HEADER + bytes) + self.half_latency;
        let slice = self.slice_of(line);
        let served = self.slices[slice].port.pass(sent, bytes);
        let way = self.way(served, slice, line);
        way.valid |= sectors;
        way.dirty |= sectors;
        served + self.half_latency
    }

    /// When an atomic operation, of which `turns` go to one address, has its result.
    pub fn atomic(&mut self, now: u64, sm: usize, line: u64, sectors: u8, turns: u64) -> u64 {
        let back = self.read(now, sm, line, sectors, false);
        let slice = self.slice_of(line);
        self.slices[slice].port.pass(now + self.half_latency, turns * SECTOR);
        self.way(now, slice, line).dirty |= sectors;
        back + turns
    }

    /// When a persist has come to the persistence domain, and when its acknowledgement is back. It
    /// goes through L2.
    pub fn persist(&mut self, now: u64, sm: usize, line: u64, sectors: u8) -> (u64, u64) {
        let bytes = u64::from(sectors.count_ones()) * SECTOR;
        let sent = self.to[sm].pass(now, HEADER + bytes) + self.half_latency;
        let slice = self.slice_of(line);
        let served = self.slices[slice].port.pass(sent, bytes);
        self.way(served, slice, line).valid |= sectors;
        let durable = self.pm.write(served, slice / 2, line, sectors);
        (durable, durable + self.half_latency)
    }

    /// Bytes read from and written to volatile memory.
    pub fn gddr_bytes(&self) -> u64 {
        self.gddr.iter().map(|channel| channel.bytes).sum()
    }
}
