//! Scan: prefix sums of many arrays, stage by stage in persistent memory.

use anyhow::{Result, ensure};
use nearpm_ptx::Arguments;

use super::{EMPTY, Program, Size, input, same};
use crate::device::{Device, Shape};

pub(super) struct Scan {
    blocks: usize,
    threads: usize,
    length: usize,
}

impl Scan {
    pub fn new(size: Size) -> Self {
        // The artifact: 122 880 integers in arrays of 512, 240 blocks of 128 threads.
        let (blocks, threads, length) = size.of((2, 32, 64), (60, 128, 512), (240, 128, 512));
        Self { blocks, threads, length }
    }

    fn stages(&self) -> usize {
        self.length.trailing_zeros() as usize
    }

    fn expected(&self) -> Vec<u32> {
        let input = input(self.blocks * self.length);
        let mut all = Vec::new();
        for array in input.chunks(self.length) {
            let mut stage = array.to_vec();
            all.extend(&stage);
            for s in 0..self.stages() {
                let offset = 1 << s;
                stage = (0..self.length).map(|e| stage[e] + if e >= offset { stage[e - offset] } else { 0 }).collect();
                all.extend(&stage);
            }
            debug_assert_eq!(stage.last(), Some(&array.iter().sum()));
        }
        all
    }
}

impl Program for Scan {
    fn name(&self) -> &'static str {
        "Scan"
    }

    fn image(&self) -> Vec<u32> {
        vec![EMPTY; self.blocks * (self.stages() + 1) * self.length]
    }

    fn run(&self, device: &mut dyn Device) -> Result<()> {
        let numbers = device.words(&input(self.blocks * self.length))?;
        let flags = device.words(&vec![0; self.blocks * (self.stages() + 1) * self.threads])?;
        let shape = Shape { kernel: "sbrp_scan", blocks: self.blocks as u32, threads: self.threads as u32 };
        let arguments = Arguments::new()
            .pointer(numbers)
            .pointer(device.pm())
            .pointer(flags)
            .u32(self.length as u32)
            .u32(self.stages() as u32);
        device.launch(shape, arguments)
    }

    fn recover(&self, device: &mut dyn Device) -> Result<()> {
        self.run(device)
    }

    fn check_done(&self, image: &[u32]) -> Result<()> {
        let expected = self.expected();
        ensure!(image.len() >= expected.len(), "the image is too short");
        same("stages", &image[..expected.len()], &expected)
    }

    fn check_recovered(&self, image: &[u32]) -> Result<()> {
        self.check_done(image)
    }

    fn crash_late(&self, image: &mut [u32]) {
        // The last stage of each array is not there.
        for array in image.chunks_exact_mut((self.stages() + 1) * self.length) {
            array[self.stages() * self.length..].fill(EMPTY);
        }
    }
}
