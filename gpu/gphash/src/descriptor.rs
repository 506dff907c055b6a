//! A table as kernels see it: `gphash` of `nearpm_gphash.cuh`, in the device's memory.

/// The fields of `gphash`, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    pub slots: u64,
    pub cells: u64,
    pub tags: u64,
    pub spares: u64,
    pub taken: u64,
    pub counts: u64,
    pub owned: u64,
    pub seed: u64,
    pub buckets: u32,
    pub windows: u32,
    pub window_spares: u32,
    pub stash: u32,
    pub width: u32,
    pub hashes: u32,
    pub levels: u32,
    pub units: u32,
    pub ring: u32,
    pub slot_count: u32,
    pub cell_count: u32,
    pub holes: u32,
    pub base: u32,
    pub used: u32,
    pub key_units: u32,
    pub starts: [u32; 4],
    pub cache: u64,
}

impl Descriptor {
    /// Its bytes in the device's memory.
    pub const BYTES: u64 = 152;

    /// The structure as the device's compiler lays it out.
    pub fn to_bytes(self) -> Vec<u8> {
        let addresses =
            [self.slots, self.cells, self.tags, self.spares, self.taken, self.counts, self.owned, self.seed];
        let shape = [self.buckets, self.windows, self.window_spares, self.stash, self.width, self.hashes, self.levels];
        // The launch's epoch is the kernels'.
        let sizes = [self.units, self.ring, self.slot_count, self.cell_count, self.holes, 0];
        let growth = [self.base, self.used, self.key_units];
        let words = [&shape[..], &sizes, &growth, &self.starts].concat();
        let words = words.into_iter().flat_map(u32::to_le_bytes);
        addresses.into_iter().flat_map(u64::to_le_bytes).chain(words).chain(self.cache.to_le_bytes()).collect()
    }
}

/// The fields of `gph_cache`, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheDescriptor {
    /// Addresses: keys, wanted, map, of, scores, free, bins, copies.
    pub places: [u64; 8],
    pub entries: u32,
    pub mask: u32,
    pub policy: u32,
    pub sampled: u32,
}

impl CacheDescriptor {
    /// Its bytes in the device's memory.
    pub const BYTES: u64 = 80;

    /// The structure as the device's compiler lays it out.
    pub fn to_bytes(self) -> Vec<u8> {
        let words = [self.entries, self.mask, self.policy, self.sampled];
        let places = self.places.into_iter().flat_map(u64::to_le_bytes);
        places.chain(words.into_iter().flat_map(u32::to_le_bytes)).collect()
    }
}
