//! A log as kernels see it: `gpmlog` of `nearpm_gpm.cuh`, in the device's memory.

/// Do not persist each insert: the kernel does (`GPM_UNSTRICT`).
pub const UNSTRICT: u32 = 1;
/// Tails of a conventional log are read from the device's memory (`GPM_MIRROR`).
pub const MIRROR: u32 = 2;

/// The fields of `gpmlog`, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    pub kind: u32,
    pub flags: u32,
    pub blocks: u32,
    pub threads: u32,
    pub words: u32,
    pub depth: u32,
    pub generation: u32,
    pub data: u64,
    pub tails: u64,
    pub counts: u64,
    pub locks: u64,
    pub status: u64,
    pub stride: u64,
}

impl Descriptor {
    /// Its bytes in the device's memory.
    pub const BYTES: u64 = 80;

    /// The structure as the device's compiler lays it out.
    pub fn to_bytes(self) -> Vec<u8> {
        let words = [self.kind, self.flags, self.blocks, self.threads, self.words, self.depth, self.generation, 0];
        let pointers = [self.data, self.tails, self.counts, self.locks, self.status, self.stride];
        let words = words.into_iter().flat_map(u32::to_le_bytes);
        words.chain(pointers.into_iter().flat_map(u64::to_le_bytes)).collect()
    }
}
