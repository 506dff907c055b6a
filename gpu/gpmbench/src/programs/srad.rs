//! SRAD: an image without its speckle.

use anyhow::{Result, ensure};
use nearpm_gpu::{Buffer, Launch, Object, ObjectKind, PmRegion};

use super::{THREADS, bytes_of, floats_of, unit};
use crate::kernels::srad;

const LAMBDA: f32 = 0.5;
/// Blocks of the sums, whose order must not change; small images have fewer.
const BLOCKS: u32 = 64;

/// The program: an image of `rows` x `columns` pixels, of which PM has those of the last two
/// iterations.
pub struct Srad {
    region: PmRegion,
    rows: u32,
    columns: u32,
    /// Two images.
    persistent: Object,
    /// Sealed number of iterations done.
    done: Object,
    images: [Buffer; 2],
    coefficients: Buffer,
    partial: Buffer,
}

/// The image before the first iteration.
pub fn start_of_image(rows: u32, columns: u32) -> Vec<f32> {
    (0..rows as usize * columns as usize).map(|pixel| 0.2 + unit(pixel / 97, 1) + 0.3 * unit(pixel, 2)).collect()
}

impl Srad {
    /// Bytes of a region for it.
    pub fn region_bytes(rows: u32, columns: u32) -> u64 {
        (8 * u64::from(rows) * u64::from(columns) + (64 << 10)).next_multiple_of(4096)
    }

    /// Makes it in a region, or goes on with the one that is there.
    ///
    /// # Errors
    /// No room or memory; one of another size is there.
    pub fn open(region: &PmRegion, rows: u32, columns: u32) -> Result<Srad> {
        let pixels = u64::from(rows) * u64::from(columns);
        if region.objects().iter().all(|object| object.name != "done") {
            let start = bytes_of(&start_of_image(rows, columns));
            // The word comes last: without it there is none yet.
            if region.objects().is_empty() {
                region.add("images", ObjectKind::Data, 8 * pixels, |object| region.write(object.offset, &start))?;
            }
            region.add("done", ObjectKind::Data, 8, |object| region.write_sealed_word(object.offset, 0))?;
        }
        let persistent = region.find("images", ObjectKind::Data)?;
        ensure!(
            persistent.bytes == 8 * pixels,
            "the region has images of {} bytes, not {}",
            persistent.bytes / 2,
            4 * pixels
        );
        let device = region.device();
        let buffer = || Buffer::new(device, 4 * pixels);
        let srad = Srad {
            region: region.clone(),
            rows,
            columns,
            persistent,
            done: region.find("done", ObjectKind::Data)?,
            images: [buffer()?, buffer()?],
            coefficients: buffer()?,
            partial: Buffer::new(device, 8 * u64::from(BLOCKS))?,
        };
        let now = srad.done()? % 2;
        device.copy(srad.images[now as usize].address(), srad.place(now), 4 * pixels)?;
        Ok(srad)
    }

    /// Address of an image in PM.
    fn place(&self, which: u64) -> u64 {
        self.region.address(self.persistent.offset + which * self.persistent.bytes / 2)
    }

    /// Iterations done.
    ///
    /// # Errors
    /// The word is damaged.
    pub fn done(&self) -> Result<u64> {
        Ok(self.region.read_sealed_word(self.done.offset)?)
    }

    /// Goes on until so many iterations are done.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn run_until(&self, iterations: u64) -> Result<()> {
        for number in self.done()?..iterations {
            self.step(number % 2)?;
            self.region.device().synchronize()?;
            self.region.write_sealed_word(self.done.offset, number + 1)?;
        }
        Ok(())
    }

    fn step(&self, now: u64) -> Result<()> {
        let device = self.region.device();
        let pixels = self.rows * self.columns;
        let [image, next] = [now, 1 - now].map(|which| self.images[which as usize].address());
        let arguments = [image.into(), pixels.into(), self.partial.address().into()];
        let blocks = BLOCKS.min(pixels.div_ceil(THREADS));
        device.launch(srad().kernel("srad_sums"), &Launch::new(blocks, THREADS, arguments))?;
        let sums = floats_of(&self.partial.download()?[..8 * blocks as usize]);
        let (sum, squares) = sums.chunks(2).fold((0.0, 0.0), |(sum, squares), pair| (sum + pair[0], squares + pair[1]));
        let mean = sum / pixels as f32;
        let scale = (squares / pixels as f32 - mean * mean) / (mean * mean);
        let coefficients = self.coefficients.address();
        let shape = [self.rows.into(), self.columns.into()];
        let arguments = [image.into(), coefficients.into(), shape[0], shape[1], scale.into()];
        device.launch(srad().kernel("srad_coefficients"), &Launch::over(pixels.into(), THREADS, arguments))?;
        let place = self.place(1 - now);
        let arguments =
            [image.into(), coefficients.into(), next.into(), place.into(), shape[0], shape[1], LAMBDA.into()];
        Ok(device.launch(srad().kernel("srad_update"), &Launch::over(pixels.into(), THREADS, arguments))?)
    }

    /// The image, as PM has it.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn image(&self) -> Result<Vec<f32>> {
        let offset = self.persistent.offset + self.done()? % 2 * self.persistent.bytes / 2;
        Ok(floats_of(&self.region.read_vec(offset, self.persistent.bytes as usize / 2)?))
    }
}

/// The image as a processor has it, in double precision: the oracle, to 0.1 %.
pub fn image_of(rows: u32, columns: u32, iterations: u64) -> Vec<f64> {
    let mut image: Vec<f64> = start_of_image(rows, columns).into_iter().map(f64::from).collect();
    let (rows, columns) = (rows as usize, columns as usize);
    for _ in 0..iterations {
        let count = image.len() as f64;
        let mean = image.iter().sum::<f64>() / count;
        let scale = (image.iter().map(|value| value * value).sum::<f64>() / count - mean * mean) / (mean * mean);
        // Differences to the four neighbours: north, south, west, east.
        let differences = |i: usize| {
            let (row, column, here) = (i / columns, i % columns, image[i]);
            let to = |inside: bool, at: usize| if inside { image[at] - here } else { 0.0 };
            let (up, left) = (i.wrapping_sub(columns), i.wrapping_sub(1));
            [to(row > 0, up), to(row + 1 < rows, i + columns), to(column > 0, left), to(column + 1 < columns, i + 1)]
        };
        let coefficient = |i: usize| {
            let (all, here) = (differences(i), image[i]);
            let gradient = all.iter().map(|difference| difference * difference).sum::<f64>() / (here * here);
            let laplace = all.iter().sum::<f64>() / here;
            let below = 1.0 + 0.25 * laplace;
            let q = (0.5 * gradient - 0.0625 * laplace * laplace) / (below * below);
            (1.0 / (1.0 + (q - scale) / (scale * (1.0 + scale)))).clamp(0.0, 1.0)
        };
        let coefficients: Vec<f64> = (0..image.len()).map(coefficient).collect();
        let next = |i: usize| {
            let [north, south, west, east] = differences(i);
            let c = coefficients[i];
            let c_south = if i / columns + 1 < rows { coefficients[i + columns] } else { c };
            let c_east = if i % columns + 1 < columns { coefficients[i + 1] } else { c };
            image[i] + 0.25 * f64::from(LAMBDA) * (c * north + c_south * south + c * west + c_east * east)
        };
        image = (0..image.len()).map(next).collect();
    }
    image
}
