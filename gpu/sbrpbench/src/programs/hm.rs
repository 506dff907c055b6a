//! HM: a hash map of cuckoo buckets built in parallel, with an undo log.

use std::collections::HashMap;

use anyhow::{Result, ensure};
use nearpm_ptx::Arguments;

use super::{Program, Size, mix};
use crate::device::{Device, Shape};

/// `SBRP_BUCKET`
const BUCKET: usize = 576;
const ITERATIONS: usize = 64;
const BATCH: u32 = 3;

pub(super) struct Hm {
    keys: usize,
    buckets: usize,
    threads: usize,
}

impl Hm {
    pub fn new(size: Size) -> Self {
        // The artifact: 25 000 keys, buckets of 576 slots for 409 keys on average; 60, so that all
        // run at once.
        let (keys, buckets, threads) = size.of((600, 2, 384), (6000, 15, 512), (24_600, 60, 512));
        Self { keys, buckets, threads }
    }

    /// Words of the table, of the log, of the words that say what was undone.
    fn parts(&self) -> [usize; 3] {
        [self.buckets * BUCKET * 2, self.buckets * ITERATIONS * self.threads * 4, self.buckets]
    }

    /// The pairs of each bucket.
    fn pairs(&self) -> Vec<Vec<(u32, u32)>> {
        let mut buckets = vec![Vec::new(); self.buckets];
        for i in 0..self.keys as u32 {
            let (key, value) = (i * 3 + 1, mix(i ^ 0x4a5));
            buckets[mix(key ^ 0xb0c5) as usize % self.buckets].push((key, value));
        }
        buckets
    }

    fn table_has(&self, image: &[u32], all: bool) -> Result<()> {
        for (bucket, pairs) in self.pairs().into_iter().enumerate() {
            let table = &image[bucket * BUCKET * 2..(bucket + 1) * BUCKET * 2];
            let there: HashMap<u32, u32> = table
                .as_chunks::<2>()
                .0
                .iter()
                .filter(|[key, _]| *key != 0)
                .map(|[key, value]| (*key, *value))
                .collect();
            let expected: HashMap<u32, u32> = if all { pairs.into_iter().collect() } else { HashMap::new() };
            let count = table.as_chunks::<2>().0.iter().filter(|[key, _]| *key != 0).count();
            ensure!(count == there.len(), "bucket {bucket} has a key twice");
            ensure!(there == expected, "bucket {bucket} has {} pairs, should have {}", there.len(), expected.len());
        }
        Ok(())
    }
}

impl Program for Hm {
    fn name(&self) -> &'static str {
        "HM"
    }

    fn image(&self) -> Vec<u32> {
        vec![0; self.parts().iter().sum()]
    }

    fn run(&self, device: &mut dyn Device) -> Result<()> {
        let [table, _, _] = self.parts();
        let buckets = self.pairs();
        let largest = buckets.iter().map(Vec::len).max().unwrap_or(0);
        ensure!(largest <= self.threads, "a bucket has {largest} keys for {} threads", self.threads);
        let mut offsets = vec![0u32];
        for bucket in &buckets {
            offsets.push(offsets[offsets.len() - 1] + bucket.len() as u32);
        }
        let pairs: Vec<u32> = buckets.iter().flatten().flat_map(|&pair| <[u32; 2]>::from(pair)).collect();
        let (pairs, offsets, left) = (device.words(&pairs)?, device.words(&offsets)?, device.words(&[0])?);
        let pm = device.pm();
        let arguments = Arguments::new()
            .pointer(pairs)
            .pointer(offsets)
            .pointer(pm)
            .pointer(pm + table as u64 * 4)
            .u32(ITERATIONS as u32)
            .u32(BATCH)
            .pointer(left);
        let shape = Shape { kernel: "sbrp_hm_put", blocks: self.buckets as u32, threads: self.threads as u32 };
        device.launch(shape, arguments)?;
        let left = device.read(left, 1)?;
        ensure!(left == [0], "{} keys found no place", left[0]);
        Ok(())
    }

    fn recover(&self, device: &mut dyn Device) -> Result<()> {
        let [table, log, _] = self.parts();
        let pm = device.pm();
        let arguments = Arguments::new()
            .pointer(pm)
            .pointer(pm + table as u64 * 4)
            .u32(ITERATIONS as u32)
            .u32(BATCH)
            .pointer(pm + (table + log) as u64 * 4);
        device.launch(
            Shape { kernel: "sbrp_hm_recover", blocks: self.buckets as u32, threads: self.threads as u32 },
            arguments,
        )
    }

    fn check_done(&self, image: &[u32]) -> Result<()> {
        self.table_has(image, true)
    }

    /// The batch counts when its kernel has ended; before, recovery takes it back whole.
    fn check_recovered(&self, image: &[u32]) -> Result<()> {
        self.table_has(image, false)
    }

    fn crash_late(&self, _: &mut [u32]) {}
}
