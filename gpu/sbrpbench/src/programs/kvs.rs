//! gpKVS: a batch of pairs put into a key-value store, with an undo log.

use std::collections::HashMap;

use anyhow::{Result, ensure};
use nearpm_ptx::Arguments;

use super::{Program, Size, mix, seal};
use crate::device::{Device, Shape};

const WAYS: usize = 4;
const BATCH: u32 = 7;
const THREADS: usize = 128;

pub(super) struct Kvs {
    threads: usize,
    /// Pairs a thread.
    each: usize,
    sets: usize,
}

impl Kvs {
    pub fn new(size: Size) -> Self {
        // The artifact: 65 536 pairs, 16 384 threads, 2^27 bytes of sets of four slots of 8 bytes.
        let (threads, each, sets) = size.of((256, 4, 1 << 11), (2048, 4, 1 << 18), (16_384, 4, 1 << 22));
        Self { threads, each, sets }
    }

    /// Words of the table, of the log, of the commit words.
    fn parts(&self) -> [usize; 3] {
        [self.sets * WAYS * 2, self.threads * self.each * 4, self.threads]
    }

    /// Key and value of pair `i`. Keys are different, and none is 0.
    fn pair(i: usize) -> (u32, u32) {
        (i as u32 * 2 + 1, mix(i as u32))
    }

    fn pairs(&self) -> usize {
        self.threads * self.each
    }

    /// What the table has before: each second slot of each fourth set.
    fn before(slot: usize) -> (u32, u32) {
        if slot.is_multiple_of(2 * WAYS) { (slot as u32 * 2 + 2, mix(slot as u32 ^ 0xbef0)) } else { (0, 0) }
    }

    /// The slots of a thread's pairs as the table has them, and whether the rest is as before.
    /// Pairs that were dropped have none.
    fn check(&self, image: &[u32], done: bool) -> Result<()> {
        let [table, log, commits] = self.parts();
        let by_key: HashMap<u32, usize> = (0..self.pairs()).map(|i| (Self::pair(i).0, i)).collect();
        let mut found = vec![0u32; self.threads];
        for slot in 0..self.sets * WAYS {
            let (key, value) = (image[2 * slot], image[2 * slot + 1]);
            if (key, value) == Self::before(slot) {
                continue;
            }
            let pair = by_key.get(&key).copied();
            let Some(pair) = pair else { anyhow::bail!("slot {slot} holds {key:#x}, which nobody put there") };
            ensure!(value == Self::pair(pair).1, "slot {slot} holds another value than was put");
            ensure!(mix(key) as usize & (self.sets - 1) == slot / WAYS, "slot {slot} is not of its key's set");
            found[pair % self.threads] += 1;
        }
        for (thread, &count) in found.iter().enumerate() {
            let committed = image[table + log + thread] == BATCH;
            ensure!(committed || !done, "thread {thread} has not committed");
            ensure!(committed || count == 0, "thread {thread} has not committed, and {count} of its pairs are there");
            ensure!(
                !committed || self.logged_pairs_are_there(image, thread),
                "thread {thread} has committed, and a pair of it is missing"
            );
        }
        // A set that is full of this batch's pairs takes no more of them, which is rare.
        let missing = self.pairs() - found.iter().sum::<u32>() as usize;
        ensure!(!done || missing * 50 <= self.pairs(), "{missing} pairs are not there");
        ensure!(image.len() >= table + log + commits, "the image is too short");
        Ok(())
    }
}

impl Kvs {
    /// Whether a thread's pairs are where its log says that they were put.
    fn logged_pairs_are_there(&self, image: &[u32], thread: usize) -> bool {
        let log = self.parts()[0];
        let entry = |i: usize| &image[log + (i * self.threads + thread) * 4..][..4];
        (0..self.each).all(|i| {
            let &[slot, key, value, found] = entry(i) else { return false };
            let (put, at) = (Self::pair(i * self.threads + thread), 2 * slot as usize);
            found != seal(BATCH, [slot, key, value]) || image[at..at + 2] == [put.0, put.1]
        })
    }
}

impl Program for Kvs {
    fn name(&self) -> &'static str {
        "gpKVS"
    }

    fn image(&self) -> Vec<u32> {
        let [_, log, commits] = self.parts();
        let mut image: Vec<u32> = (0..self.sets * WAYS).flat_map(|slot| <[u32; 2]>::from(Self::before(slot))).collect();
        image.resize(image.len() + log + commits, 0);
        image
    }

    fn run(&self, device: &mut dyn Device) -> Result<()> {
        let [table, log, _] = self.parts();
        let pairs: Vec<u32> = (0..self.pairs()).flat_map(|i| <[u32; 2]>::from(Self::pair(i))).collect();
        let pairs = device.words(&pairs)?;
        let claimed = device.words(&vec![0; (self.sets * WAYS).div_ceil(32)])?;
        let dropped = device.words(&[0])?;
        let pm = device.pm();
        let arguments = Arguments::new()
            .pointer(pairs)
            .u32(self.each as u32)
            .pointer(pm)
            .u32(self.sets as u32)
            .pointer(pm + table as u64 * 4)
            .pointer(pm + (table + log) as u64 * 4)
            .u32(BATCH)
            .pointer(claimed)
            .pointer(dropped);
        let blocks = (self.threads / THREADS) as u32;
        device.launch(Shape { kernel: "sbrp_kvs_put", blocks, threads: THREADS as u32 }, arguments)
    }

    fn recover(&self, device: &mut dyn Device) -> Result<()> {
        let [table, log, _] = self.parts();
        let pm = device.pm();
        let arguments = Arguments::new()
            .u32(self.each as u32)
            .pointer(pm)
            .u32((self.sets * WAYS) as u32)
            .pointer(pm + table as u64 * 4)
            .pointer(pm + (table + log) as u64 * 4)
            .u32(BATCH);
        let blocks = (self.threads / THREADS) as u32;
        device.launch(Shape { kernel: "sbrp_kvs_recover", blocks, threads: THREADS as u32 }, arguments)
    }

    fn check_done(&self, image: &[u32]) -> Result<()> {
        self.check(image, true)?;
        // The log is whole, so that a crash before the commit would have found all of it.
        let [table, log, _] = self.parts();
        let entries = image[table..table + log].as_chunks::<4>().0;
        let sealed = entries.iter().filter(|[a, b, c, d]| *d == seal(BATCH, [*a, *b, *c])).count();
        ensure!(sealed * 50 >= 49 * self.pairs(), "{sealed} entries of {} are sealed", self.pairs());
        Ok(())
    }

    fn check_recovered(&self, image: &[u32]) -> Result<()> {
        self.check(image, false)
    }

    fn crash_late(&self, image: &mut [u32]) {
        let [table, log, commits] = self.parts();
        image[table + log..table + log + commits].fill(0);
    }
}
