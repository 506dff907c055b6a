//! SRAD: an image's coefficients, then its pixels.

use anyhow::{Result, ensure};
use nearpm_ptx::Arguments;

use super::{Program, Size, mix, same};
use crate::device::{Device, Shape};

/// `SBRP_NO_PIXEL`
const NO_PIXEL: u32 = u32::MAX;
const THREADS: usize = 256;
const LAMBDA: f32 = 0.5;

pub(super) struct Srad {
    side: usize,
}

impl Srad {
    pub fn new(size: Size) -> Self {
        Self { side: size.of(32, 160, 512) }
    }

    fn pixels(&self) -> usize {
        self.side * self.side
    }

    fn picture(&self) -> Vec<f32> {
        (0..self.pixels() as u32).map(|i| ((mix(i) % 256) as f32 / 255.0).exp()).collect()
    }

    /// Squared coefficient of variation.
    fn scale(&self) -> f32 {
        let picture = self.picture();
        let count = picture.len() as f64;
        let mean = picture.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
        let square = picture.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>() / count;
        ((square - mean * mean) / (mean * mean)) as f32
    }

    /// Differences to the four neighbours: north, south, west, east.
    fn around(&self, picture: &[f32], i: usize) -> [f32; 4] {
        let (row, column, here) = (i / self.side, i % self.side, picture[i]);
        let at = |there: bool, index: usize| if there { picture[index] } else { here };
        [
            at(row > 0, i.wrapping_sub(self.side)) - here,
            at(row + 1 < self.side, i + self.side) - here,
            at(column > 0, i.wrapping_sub(1)) - here,
            at(column + 1 < self.side, i + 1) - here,
        ]
    }

    fn coefficients(&self, picture: &[f32]) -> Vec<f32> {
        let scale = self.scale();
        let of = |i: usize| {
            let here = picture[i];
            let [north, south, west, east] = self.around(picture, i);
            let gradient = (north * north + south * south + west * west + east * east) / (here * here);
            let laplace = (north + south + west + east) / here;
            let below = 1.0 + 0.25 * laplace;
            let q = (0.5 * gradient - 0.0625 * laplace * laplace) / (below * below);
            let c = 1.0 / (1.0 + (q - scale) / (scale * (1.0 + scale)));
            c.clamp(0.0, 1.0)
        };
        (0..self.pixels()).map(of).collect()
    }

    fn expected(&self) -> Vec<u32> {
        let picture = self.picture();
        let noise = self.coefficients(&picture);
        let next = |i: usize| {
            let [north, south, west, east] = self.around(&picture, i);
            let c = noise[i];
            let c_south = if i / self.side + 1 < self.side { noise[i + self.side] } else { c };
            let c_east = if i % self.side + 1 < self.side { noise[i + 1] } else { c };
            picture[i] + 0.25 * LAMBDA * (c * north + c_south * south + c * west + c_east * east)
        };
        let next: Vec<f32> = (0..self.pixels()).map(next).collect();
        noise.iter().chain(&picture).chain(&next).map(|x| x.to_bits()).collect()
    }
}

impl Program for Srad {
    fn name(&self) -> &'static str {
        "SRAD"
    }

    /// Coefficients, pixels of the first step, pixels of the second.
    fn image(&self) -> Vec<u32> {
        vec![NO_PIXEL; 3 * self.pixels()]
    }

    fn run(&self, device: &mut dyn Device) -> Result<()> {
        let picture: Vec<u32> = self.picture().iter().map(|x| x.to_bits()).collect();
        let picture = device.words(&picture)?;
        let (bytes, side) = (self.pixels() as u64 * 4, self.side as u32);
        let (noise, kept, next) = (device.pm(), device.pm() + bytes, device.pm() + 2 * bytes);
        let shape = |kernel| Shape { kernel, blocks: self.pixels().div_ceil(THREADS) as u32, threads: THREADS as u32 };
        let arguments = Arguments::new().pointer(picture).pointer(noise).pointer(kept).u32(side).u32(side);
        device.launch(shape("sbrp_srad_noise"), arguments.f32(self.scale()))?;
        let arguments = Arguments::new().pointer(kept).pointer(noise).pointer(next).u32(side).u32(side);
        device.launch(shape("sbrp_srad_update"), arguments.f32(LAMBDA))
    }

    fn recover(&self, device: &mut dyn Device) -> Result<()> {
        self.run(device)
    }

    fn check_done(&self, image: &[u32]) -> Result<()> {
        let expected = self.expected();
        ensure!(image.len() >= expected.len(), "the image is too short");
        same("picture", &image[..expected.len()], &expected)
    }

    fn check_recovered(&self, image: &[u32]) -> Result<()> {
        self.check_done(image)
    }

    fn crash_late(&self, image: &mut [u32]) {
        // The last row is not there.
        image[3 * self.pixels() - self.side..3 * self.pixels()].fill(NO_PIXEL);
    }
}
