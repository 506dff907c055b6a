//! Caches in the GPU's memory: of buckets for design P (BktCache of GPHash, 3.3), of values for
//! design N. What they are chosen by, and where their parts are.

use std::cell::Cell;
use std::rc::Rc;

use nearpm_gpu::{Buffer, Device};

use crate::descriptor::CacheDescriptor;
use crate::error::Result;
use crate::layout::{Design, Layout};

/// By what design P chooses the buckets that it caches: `GPH_LFU` and its like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Policy {
    /// Those that were used most.
    #[default]
    Lfu = 0,
    /// Those that were used last.
    Lru = 1,
    /// Any.
    Random = 2,
}

/// A cache to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// Buckets (design P) or values (design N).
    pub entries: u32,
    /// How design P chooses them. Design N takes in what a sketch calls more popular than what it
    /// has.
    pub policy: Policy,
    /// Of 2^sampled uses one is counted; of design N, of uses of what is in the cache.
    pub sampled: u32,
}

impl CacheOptions {
    /// A cache for a share of what a table has in slots: of its buckets, or of the values that it
    /// has room for.
    pub fn share(layout: &Layout, share: f64) -> CacheOptions {
        let all = match layout.design {
            Design::Levels => layout.slots() / u64::from(layout.width),
            Design::Tags => layout.slots(),
        };
        CacheOptions { entries: ((all as f64 * share) as u32).max(4), policy: Policy::Lfu, sampled: 3 }
    }
}

/// Values of a set of design N: `CACHE_WAYS`.
pub(crate) const WAYS: u32 = 4;
/// Words of the bins of design P.
const BINS: u64 = 260;

pub(crate) struct Cache {
    pub descriptor: CacheDescriptor,
    pub buckets: u32,
    pub described: Buffer,
    /// Operations of a batch that it had no answer of, in the device's memory.
    pub left: Buffer,
    /// The same of the last batch.
    pub missed: Cell<u32>,
    pub turns: Cell<u32>,
    pub bins: Buffer,
    /// What the descriptor points to.
    pub held: [Buffer; 7],
}

impl Cache {
    /// An empty one for a table of a layout.
    pub fn new(device: &Rc<dyn Device>, layout: &Layout, options: CacheOptions) -> Result<Cache> {
        let buckets = (layout.all_slots() / u64::from(layout.width)) as u32;
        let entries = options.entries.next_multiple_of(WAYS).max(WAYS);
        // Words of the sketch: a few for each value, so that rare pairs seldom look popular.
        let mask = (4 * entries).next_power_of_two().max(1024) - 1;
        let zeroed = |bytes: u64| Buffer::zeroed(device, bytes.max(8));
        let filled = |bytes: u64| zeroed(bytes).and_then(|buffer| buffer.fill(0xff).map(|()| buffer));
        let many = u64::from(entries);
        let bins = zeroed(4 * BINS)?;
        let held = match layout.design {
            Design::Tags => [
                zeroed(16 * many)?,
                zeroed(8 * many)?,
                zeroed(4 * many)?,
                zeroed(4 * many)?,
                zeroed(4 * u64::from(mask) + 4)?,
                zeroed(0)?,
                zeroed(many * u64::from(layout.value_bytes))?,
            ],
            Design::Levels => [
                zeroed(0)?,
                zeroed(0)?,
                filled(4 * u64::from(buckets))?,
                filled(4 * many)?,
                zeroed(4 * u64::from(buckets))?,
                zeroed(4 * many)?,
                zeroed(many * u64::from(layout.width) * 16)?,
            ],
        };
        let [keys, wanted, map, of, scores, free, copies] = held.each_ref().map(Buffer::address);
        let places = [keys, wanted, map, of, scores, free, bins.address(), copies];
        let descriptor =
            CacheDescriptor { places, entries, mask, policy: options.policy as u32, sampled: options.sampled.min(16) };
        let described = Buffer::new(device, CacheDescriptor::BYTES)?;
        described.upload(&descriptor.to_bytes())?;
        let (missed, turns) = (Cell::new(0), Cell::new(0));
        Ok(Cache { descriptor, buckets, described, left: zeroed(4)?, missed, turns, bins, held })
    }
}
