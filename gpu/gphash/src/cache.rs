//! Caches in the GPU's memory: of buckets for design P (BktCache of GPHash, 3.3), of values for design N.
//!
//! What is cached does not change but at turns, which are between batches; a batch that changes a pair takes it out first. What a turn chooses is
//! put in beside the batches behind it, and counts from the next turn on.

use std::cell::Cell;

use nearpm_gpu::{Buffer, Launch, PmRegion};

use crate::descriptor::{CacheDescriptor, Descriptor};
use crate::error::{Error, Result};
use crate::kernels::kernels_of;
use crate::layout::{Design, Keys, Layout};
use crate::operation::{Op, Operations};
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
    /// Of 2^sampled uses one is counted; of design N, of uses of what is in the cache.
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

/// Blocks that go through a cache between batches.
const BLOCKS: u64 = 4096;
/// Blocks that fill it beside them: a few for each multiprocessor, so that batches have the others.
const FILLING: u64 = 264;
/// Turns of design N's cache behind which what was counted counts half.
const AGING: u32 = 8;
/// Values of a set of design N: `CACHE_WAYS`.
const WAYS: u32 = 4;
/// Words of the bins of design P.
const BINS: u64 = 260;

pub(crate) struct Cache {
    descriptor: CacheDescriptor,
    buckets: u32,
    described: Buffer,
    /// Operations of a batch that it had no answer of, in the device's memory.
    left: Buffer,
    /// The same of the last batch.
    missed: Cell<u32>,
    turns: Cell<u32>,
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
            let why = "caches are of pairs with keys of 8 bytes: open it without one, or give it `Keys::Words`";
            return Err(Error::Layout {
                what: format!("a cache and {:?} keys", self.layout().keys),
                why: why.to_owned(),
            });
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
            Design::Tags => {
                cache.turns.set(cache.turns.get().wrapping_add(1));
                let ages = cache.turns.get().is_multiple_of(AGING);
                self.over(cache.descriptor.entries, "gph_cache_turn", &[u32::from(ages).into()])?;
            }
            Design::Levels => {
                let epoch = self.epoch.get();
                cache.bins.fill(0)?;
                self.over(cache.buckets, "gph_cache_rank", &[epoch.into(), cache.buckets.into()])?;
                self.launch("gph_cache_choose", 1, &[])?;
                self.over(cache.descriptor.entries, "gph_cache_turn", &[epoch.into()])?;
                self.over(cache.buckets, "gph_cache_pick", &[epoch.into(), cache.buckets.into()])?;
            }
        }
        let launch = self.shape(cache.descriptor.entries, FILLING, &[]);
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

    /// Lets design N's cache answer the look-ups of a batch that it has the answer of. What is left: where the numbers of those operations are, in the
    /// order in which they are to be run, and how many there are. `None`: nothing was looked at. It waits for the device.
    pub(crate) fn serve(&self, batch: &Operations, epoch: u32) -> Result<Option<(u64, u32)>> {
        let (Some(cache), Some(sorter), Design::Tags) = (&self.cache, &self.sorter, self.layout().design) else {
            return Ok(None);
        };
        if batch.count > sorter.capacity() || batch.ops.is_none() && batch.op != Op::Get {
            return Ok(None);
        }
        let address = |buffer: &Option<Buffer>| buffer.as_ref().map_or(0, Buffer::address).into();
        let (windows, numbers) = sorter.input();
        let (more, bits) = self.sorted_by();
        cache.left.fill(0)?;
        let how = [epoch.into(), batch.count.into(), (batch.op as u32).into(), address(&batch.ops)];
        let data = [batch.keys.address().into(), address(&batch.found), batch.outcomes.address().into()];
        let left = [more.into(), windows.into(), numbers.into(), cache.left.address().into()];
        self.launch("gph_serve", batch.count.into(), &[&how[..], &data, &left].concat())?;
        let left = cache.left.download_words()?[0];
        cache.missed.set(left);
        let order = if self.is_sorted(left) { sorter.sort(left, 0, bits)?.1 } else { numbers };
        Ok(Some((order, left)))
    }

    /// Operations of the last batch that the cache had no answer of, of a design N's table that has one and sorts its batches.
    pub fn missed(&self) -> Option<u32> {
        self.cache.as_ref().map(|cache| cache.missed.get())
    }

    fn shape(&self, items: u32, blocks: u64, arguments: &[nearpm_gpu::Argument]) -> Launch {
        let arguments = [&[self.address().into()], arguments].concat();
        let items = u64::from(items).min(blocks * u64::from(THREADS));
        Launch { arguments, ..Launch::over(items, THREADS, []) }
    }

    fn over(&self, items: u32, entry: &'static str, arguments: &[nearpm_gpu::Argument]) -> Result<()> {
        Ok(self.device().launch(self.kernel(entry), &self.shape(items, BLOCKS, arguments))?)
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
        let (missed, turns) = (Cell::new(0), Cell::new(0));
        Ok(Cache { descriptor, buckets, described, left: zeroed(4)?, missed, turns, bins, _held: held })
    }
}
