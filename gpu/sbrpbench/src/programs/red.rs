//! Red: rounds of sums; partial sums in persistent memory (section 4).

use anyhow::{Result, ensure};
use nearpm_ptx::Arguments;

use super::{EMPTY, Program, Size, input, same};
use crate::device::{Device, Shape};

pub(super) struct Red {
    blocks: usize,
    threads: usize,
    rounds: usize,
    /// Elements of a round.
    length: usize,
}

impl Red {
    pub fn new(size: Size) -> Self {
        // Table 2: 4 Mi integers; the artifact: 16 iterations, 60 blocks of 512 threads.
        let (blocks, threads, rounds, length) = size.of((2, 64, 2, 512), (30, 256, 4, 65_536), (60, 512, 16, 262_144));
        Self { blocks, threads, rounds, length }
    }

    /// Words of partial sums, of blocks' sums, of totals.
    fn parts(&self) -> [usize; 3] {
        [self.rounds * self.blocks * self.threads, self.rounds * self.blocks, self.rounds]
    }

    /// What each thread of a block has when the tree has come to it.
    fn block(&self, input: &[u32], round: usize, block: usize) -> Vec<u32> {
        let stride = self.blocks * self.threads;
        let first = block * self.threads;
        let sum = |thread: usize| {
            (first + thread..self.length).step_by(stride).map(|i| input[round * self.length + i]).sum::<u32>()
        };
        let mut sums: Vec<u32> = (0..self.threads).map(sum).collect();
        let mut half = self.threads / 2;
        while half > 0 {
            (0..half).for_each(|thread| sums[thread] += sums[thread + half]);
            half /= 2;
        }
        sums
    }

    fn expected(&self) -> Vec<u32> {
        let input = input(self.rounds * self.length);
        let (mut partial, mut sums, mut totals) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..self.rounds {
            let mut total = 0;
            for block in 0..self.blocks {
                let mut threads = self.block(&input, round, block);
                sums.push(threads[0]);
                total += threads[0];
                threads[0] = EMPTY;
                partial.extend(threads);
            }
            totals.push(total);
        }
        [partial, sums, totals].concat()
    }
}

impl Program for Red {
    fn name(&self) -> &'static str {
        "Red"
    }

    fn image(&self) -> Vec<u32> {
        vec![EMPTY; self.parts().iter().sum()]
    }

    fn run(&self, device: &mut dyn Device) -> Result<()> {
        let [partial, sums, _] = self.parts();
        let pm = device.pm();
        let numbers = device.words(&input(self.rounds * self.length))?;
        let flags = device.words(&vec![0; partial])?;
        let shape = Shape { kernel: "sbrp_red", blocks: self.blocks as u32, threads: self.threads as u32 };
        let arguments = Arguments::new()
            .pointer(numbers)
            .u32(self.length as u32)
            .u32(self.rounds as u32)
            .pointer(pm)
            .pointer(pm + partial as u64 * 4)
            .pointer(pm + (partial + sums) as u64 * 4)
            .pointer(flags);
        device.launch(shape, arguments)
    }

    fn recover(&self, device: &mut dyn Device) -> Result<()> {
        self.run(device)
    }

    fn check_done(&self, image: &[u32]) -> Result<()> {
        let expected = self.expected();
        ensure!(image.len() >= expected.len(), "the image is too short");
        same("sums", &image[..expected.len()], &expected)
    }

    fn check_recovered(&self, image: &[u32]) -> Result<()> {
        self.check_done(image)
    }

    fn crash_late(&self, image: &mut [u32]) {
        let [partial, sums, totals] = self.parts();
        image[partial + sums..partial + sums + totals].fill(EMPTY);
    }
}
