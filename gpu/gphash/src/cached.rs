//! Tables with a cache.
//!
//! What is cached does not change but at turns, which are between batches; a batch that changes a
//! pair takes it out first. What a turn chooses is put in beside the batches behind it, and counts
//! from the next turn on.

use nearpm_gpu::{Buffer, Launch, PmRegion};

use crate::cache::{Cache, CacheOptions, WAYS};
use crate::descriptor::Descriptor;
use crate::error::{Error, Result};
use crate::kernels::kernels_of;
use crate::layout::{Design, Keys};
use crate::operation::{Op, Operations};
use crate::table::{THREADS, Table};

/// Blocks that go through a cache between batches.
const BLOCKS: u64 = 4096;
/// Blocks that fill it beside them: a few for each multiprocessor, so that batches have the others.
const FILLING: u64 = 264;
/// Turns of design N's cache behind which what was counted counts half.
const AGING: u32 = 8;

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
        let cache = Cache::new(self.device(), self.layout(), options)?;
        self.describe(Descriptor { cache: cache.described.address(), ..self.descriptor() })?;
        self.cache = Some(cache);
        Ok(())
    }

    /// A turn of the cache: what was put in counts, and what has become popular is put in beside
    /// the batches behind this. A table without a cache does nothing.
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
                let words = cache.held[0].download()?;
                let sets = words.as_chunks::<8>().0.chunks(2 * WAYS as usize);
                sets.flat_map(|set| &set[..WAYS as usize]).filter(|&&key| key != [0; 8]).count()
            }
            Design::Levels => cache.held[2].download_words()?.iter().filter(|&&entry| entry >> 31 == 0).count(),
        };
        Ok(count as u32)
    }

    /// Lets design N's cache answer the look-ups of a batch that it has the answer of. What is
    /// left: where the numbers of those operations are, in the order in which they are to be run,
    /// and how many there are. `None`: nothing was looked at. It waits for the device.
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

    /// Operations of the last batch that the cache had no answer of, of a design N's table that has
    /// one and sorts its batches.
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
