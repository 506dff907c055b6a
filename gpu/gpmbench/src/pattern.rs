//! What measurements store, so that it can be told whether they did.

/// A word for a place and a seed: `pattern` of `micro.cu`.
pub fn pattern(place: u32, seed: u32) -> u32 {
    let h = (place ^ seed).wrapping_mul(0x85eb_ca6b);
    (h ^ h >> 13).wrapping_mul(0xc2b2_ae35)
}
