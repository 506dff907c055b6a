//! Stable radix sort of (key, value) pairs in the device's memory: partition before persist.

use std::rc::Rc;

use nearpm_gpu::{Buffer, Device, Error, Launch};

use crate::kernels::sort;

/// Threads of a block, and pairs that it sorts: as in `sort.cu`.
const THREADS: u32 = 256;
const TILE: u32 = 16 * THREADS;
const DIGITS: u32 = 256;
/// Bits of the key that a pass sorts by.
const BITS: u32 = 8;

/// Room to sort in.
pub struct Sorter {
    device: Rc<dyn Device>,
    capacity: u32,
    keys: [Buffer; 2],
    values: [Buffer; 2],
    counts: Buffer,
    totals: Buffer,
}

impl Sorter {
    /// Room for `capacity` pairs.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn new(device: &Rc<dyn Device>, capacity: u32) -> Result<Sorter, Error> {
        let words = |count: u64| Buffer::new(device, 4 * count);
        let pairs = || words(capacity.into());
        Ok(Sorter {
            device: device.clone(),
            capacity,
            keys: [pairs()?, pairs()?],
            values: [pairs()?, pairs()?],
            counts: words(u64::from(DIGITS) * u64::from(capacity.div_ceil(TILE)))?,
            totals: words(DIGITS.into())?,
        })
    }

    /// Most pairs.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Where keys and values are put that are to be sorted.
    pub fn input(&self) -> (u64, u64) {
        (self.keys[0].address(), self.values[0].address())
    }

    /// Sorts the first `n` pairs of the input by some bits of the key, from `from` up to `to`;
    /// pairs that agree in them keep their order. Gives where they are. It does not wait.
    ///
    /// # Errors
    /// More pairs than there is room for; what the device refuses.
    pub fn sort(&self, n: u32, from: u32, to: u32) -> Result<(u64, u64), Error> {
        if n > self.capacity {
            return Err(Error::Invalid(format!("{n} pairs do not fit in a sorter of {}", self.capacity)));
        }
        let tiles = n.div_ceil(TILE).max(1);
        let (counts, totals) = (self.counts.address(), self.totals.address());
        let mut source = 0;
        for shift in (from..to).step_by(BITS as usize) {
            let [keys, values] = [self.keys[source].address(), self.values[source].address()];
            let [to_keys, to_values] = [self.keys[1 - source].address(), self.values[1 - source].address()];
            let count = [keys.into(), n.into(), shift.into(), counts.into()];
            self.device.launch(sort().kernel("radix_count"), &Launch::new(tiles, THREADS, count))?;
            let scan = [counts.into(), tiles.into(), totals.into()];
            self.device.launch(sort().kernel("radix_scan"), &Launch::new(DIGITS, THREADS, scan))?;
            let (shape, pairs) =
                ([keys.into(), values.into(), n.into(), shift.into()], [to_keys.into(), to_values.into()]);
            let places = [counts.into(), totals.into()];
            let scatter = Launch { blocks: tiles, threads: THREADS, arguments: [&shape[..], &places, &pairs].concat() };
            self.device.launch(sort().kernel("radix_scatter"), &scatter)?;
            source = 1 - source;
        }
        Ok((self.keys[source].address(), self.values[source].address()))
    }

    /// Values become the numbers of their pairs.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn number(&self, n: u32) -> Result<(), Error> {
        let arguments = [self.values[0].address().into(), n.into()];
        self.device.launch(sort().kernel("radix_number"), &Launch::over(n.into(), THREADS, arguments))
    }
}
