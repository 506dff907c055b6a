//! Words that a change gives values, when it is durable.

use std::ops::Range;

/// Words (offset, value) that a change stores, and their ranges.
#[derive(Default)]
pub struct Words {
    /// Offset and value.
    pub values: Vec<(u64, u64)>,
    /// Where they lie; words side by side are one range.
    pub ranges: Vec<Range<u64>>,
    /// Words of ordinary memory.
    pub volatile: Vec<VolatileWord>,
}

/// A word of ordinary memory that gets a value when the change around it is durable.
#[derive(Clone, Copy)]
pub struct VolatileWord {
    /// Its address.
    pub address: usize,
    /// What it gets.
    pub value: u64,
}

/// Gives words their values.
pub fn store_volatile(words: impl Iterator<Item = VolatileWord>) {
    for VolatileWord { address, value } in words {
        // SAFETY: the program named a word of its own for this.
        unsafe { std::ptr::with_exposed_provenance_mut::<u64>(address).write_unaligned(value) };
    }
}
