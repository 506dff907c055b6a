//! Caches in the GPU's memory: of buckets for design P (BktCache of GPHash, 3.3), of values for design N.
//!
//! What is cached does not change but at turns, which are between batches; a batch that changes a pair takes it out first. What a turn chooses is
//! put in beside the batches behind it, and counts from the next turn on.

use nearpm_gpu::{Buffer, Launch, PmRegion};

use crate::descriptor::{CacheDescriptor, Descriptor};
use crate::error::{Error, Result};
use crate::kernels::kernels_of;
use crate::layout::{Design, Keys, Layout};
use crate::table::{THREADS, Table};

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
    /// How design P chooses them. Design N takes in what a sketch calls more popular than what it has.
    pub policy: Policy,
    /// Of 2^sampled uses one is counted.
    pub sampled: u32,
}

impl CacheOptions {
    /// A cache for a share of what a table has in slots: of its buckets, or of the values that it has room for.
    pub fn share(layout: &Layout, share: f64) -> CacheOptions {
        let all = match layout.design {
            Design::Levels => layout.slots() / u64::from(layout.width),
            Design::Tags => layout.slots(),
        };
        CacheOptions { entries: ((all as f64 * share) as u32).max(4), policy: Policy::Lfu, sampled: 3 }
    }
}

/// Blocks that go through a cache.
const BLOCKS: u64 = 4096;
/// Values of a set of design N: `CACHE_WAYS`.
const WAYS: u32 = 4;
/// Words of the bins of design P.
const BINS: u64 = 260;

pub(crate) struct Cache {
    descriptor: CacheDescriptor,
    buckets: u32,
    described: Buffer,
    bins: Buffer,
    _held: [Buffer; 7],
}

impl Table {
    /// Opens a table with a cache, which is empty.
    ///
    /// # Errors
    /// As for [`Table::open`]; wide keys, or no room in the device's memory.
    pub fn open_cached(region: &PmRegion, name: &str, options: CacheOptions) -> Result<Table> {
        let kernels = kernels_of(&Table::layout_of(region, name)?, true);
        let mut table = Table::open_with(region, name, kernels)?;
        table.add_cache(options)?;
        table.sound(name)
    }

    /// Gives it a cache, which its kernels must be made for.
    ///
    /// # Errors
    /// Wide keys, or no room in the device's memory.
    pub fn add_cache(&mut self, options: CacheOptions) -> Result<()> {
        if self.layout().keys != Keys::Words {
            let what = "a cache for wide keys".to_owned();
            return Err(Error::Layout { what, why: "it has keys of 8 bytes".to_owned() });
        }
        let cache = Cache::new(self, options)?;
        self.describe(Descriptor { cache: cache.described.address(), ..self.descriptor() })?;
        self.cache = Some(cache);
        Ok(())
    }

    /// A turn of the cache: what was put in counts, and what has become popular is put in beside the batches behind this. A table without a cache does
    /// nothing.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn turn_cache(&self) -> Result<()> {
        let Some(cache) = &self.cache else { return Ok(()) };
        let device = self.device();
        device.join()?;
        match self.layout().design {
            Design::Tags => self.over(cache.descriptor.entries, "gph_cache_turn", &[])?,
            Design::Levels => {
                let epoch = self.epoch.get();
                cache.bins.fill(0)?;
                self.over(cache.buckets, "gph_cache_rank", &[epoch.into(), cache.buckets.into()])?;
                self.launch("gph_cache_choose", 1, &[])?;
                self.over(cache.descriptor.entries, "gph_cache_turn", &[epoch.into()])?;
                self.over(cache.buckets, "gph_cache_pick", &[epoch.into(), cache.buckets.into()])?;
            }
        }
        let launch = self.shape(cache.descriptor.entries, &[]);
        Ok(device.launch_beside(self.kernel("gph_cache_fill"), &launch)?)
    }

    /// Values or buckets that are in the cache and count.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn cached(&self) -> Result<u32> {
        let Some(cache) = &self.cache else { return Ok(0) };
        let count = match self.layout().design {
            Design::Tags => {
                let words = cache._held[0].download()?;
                let sets = words.as_chunks::<8>().0.chunks(2 * WAYS as usize);
                sets.flat_map(|set| &set[..WAYS as usize]).filter(|&&key| key != [0; 8]).count()
            }
            Design::Levels => cache._held[2].download_words()?.iter().filter(|&&entry| entry >> 31 == 0).count(),
        };
        Ok(count as u32)
    }

    fn shape(&self, items: u32, arguments: &[nearpm_gpu::Argument]) -> Launch {
        let arguments = [&[self.address().into()], arguments].concat();
        let items = u64::from(items).min(BLOCKS * u64::from(THREADS));
        Launch { arguments, ..Launch::over(items, THREADS, []) }
    }

    fn over(&self, items: u32, entry: &'static str, arguments: &[nearpm_gpu::Argument]) -> Result<()> {
        Ok(self.device().launch(self.kernel(entry), &self.shape(items, arguments))?)
    }
}

impl Cache {
    fn new(table: &Table, options: CacheOptions) -> Result<Cache> {
        let (device, layout) = (table.device(), table.layout());
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
        Ok(Cache { descriptor, buckets, described, bins, _held: held })
    }
}
