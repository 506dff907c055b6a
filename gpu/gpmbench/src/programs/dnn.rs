//! DNN: training of a LeNet.

use std::rc::Rc;

use anyhow::{Result, ensure};
use nearpm_gpu::{Argument, Buffer, Device, Launch};

use super::digits::{CLASSES, Digits};
use super::{Stepper, THREADS, bytes_of, floats_of, unit};
use crate::kernels::dnn;

/// Side of a convolution's window.
pub(super) const WINDOW: u32 = 5;
/// How far each pass goes down the slope.
pub(super) const RATE: f32 = 0.1;

/// Sizes of a net: images, convolution of `maps[0]` maps, pool, convolution of `maps[1]` maps,
/// pool, dense layer of `hidden` numbers, dense layer of a number a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Net {
    /// Side of the images, a multiple of four, so that both pools come out even.
    pub side: u32,
    /// Maps of the convolutions.
    pub maps: [u32; 2],
    /// Numbers of the dense layer between.
    pub hidden: u32,
    /// Images of a pass.
    pub batch: u32,
}

/// Sides of the planes: images, first convolution, its pool, second convolution, its pool.
pub(super) struct Sides {
    pub image: u32,
    pub first: u32,
    pub pooled: u32,
    pub second: u32,
    pub last: u32,
}

impl Net {
    /// The paper's: LeNet for images of 28 x 28, in batches of 64. Its 431 080 weights and biases,
    /// in the two copies of a checkpoint, are the paper's 3.2 MB.
    pub const PAPER: Net = Net { side: 28, maps: [20, 50], hidden: 500, batch: 64 };

    pub(super) fn sides(&self) -> Sides {
        let first = self.side - (WINDOW - 1);
        let second = first / 2 - (WINDOW - 1);
        Sides { image: self.side, first, pooled: first / 2, second, last: second / 2 }
    }

    /// Numbers that the first dense layer takes.
    pub(super) fn flat(&self) -> u32 {
        self.maps[1] * self.sides().last.pow(2)
    }

    /// Weights and inputs a weight's output has, of the four layers.
    pub(super) fn layers(&self) -> [(u32, u32); 4] {
        let window = WINDOW * WINDOW;
        [
            (self.maps[0], window),
            (self.maps[1], self.maps[0] * window),
            (self.hidden, self.flat()),
            (CLASSES, self.hidden),
        ]
    }

    /// First weights of a layer.
    pub(super) fn start_of(&self, layer: usize) -> Vec<f32> {
        let (outputs, inputs) = self.layers()[layer];
        // So that what comes out is about as large as what goes in.
        let scale = (3.0 / inputs as f32).sqrt();
        (0..(outputs * inputs) as usize).map(|i| scale * (2.0 * unit(i, 50 + layer as u32) - 1.0)).collect()
    }

    fn check(&self) -> Result<()> {
        let sides = self.side >= 16 && self.side.is_multiple_of(4);
        let counts = [self.maps[0], self.maps[1], self.hidden, self.batch];
        ensure!(
            sides && counts.iter().all(|&count| count > 0),
            "{self:?} is no net: images have sides of 16 or more, a multiple of 4, and every layer something in it"
        );
        Ok(())
    }
}

/// The program.
pub struct Dnn {
    device: Rc<dyn Device>,
    net: Net,
    images: u32,
    pixels: Buffer,
    labels: Buffer,
    weights: [Buffer; 4],
    biases: [Buffer; 4],
    /// What each stage gives, from the images to the scores: images, convolution, pool,
    /// convolution, pool, dense, scores.
    values: [Buffer; 7],
    /// Their slopes; those of the images are not used.
    slopes: [Buffer; 7],
}

const NAMES: [(&str, &str); 4] =
    [("weights 1", "biases 1"), ("weights 2", "biases 2"), ("weights 3", "biases 3"), ("weights 4", "biases 4")];

impl Dnn {
    /// A net that has learnt nothing.
    ///
    /// # Errors
    /// Sizes that no net has, or other images; no memory.
    pub fn new(device: &Rc<dyn Device>, net: Net, digits: &Digits) -> Result<Dnn> {
        net.check()?;
        ensure!(digits.side == net.side && digits.count() > 0, "the net has images of side {}", net.side);
        let bytes = |bytes: &[u8]| -> Result<Buffer> {
            let buffer = Buffer::new(device, bytes.len() as u64)?;
            buffer.upload(bytes)?;
            Ok(buffer)
        };
        let weights = |layer: usize| bytes(&bytes_of(&net.start_of(layer)));
        let biases = |layer: usize| Buffer::zeroed(device, 4 * u64::from(net.layers()[layer].0));
        let sides = net.sides();
        let counts = [
            sides.image.pow(2),
            net.maps[0] * sides.first.pow(2),
            net.maps[0] * sides.pooled.pow(2),
            net.maps[1] * sides.second.pow(2),
            net.flat(),
            net.hidden,
            CLASSES,
        ];
        let rooms = || -> Result<[Buffer; 7]> {
            let room = |count: u32| Buffer::zeroed(device, 4 * u64::from(net.batch * count));
            let rooms: Vec<Buffer> = counts.iter().map(|&count| room(count)).collect::<Result<_, _>>()?;
            Ok(rooms.try_into().ok().expect("there is room for each stage"))
        };
        Ok(Dnn {
            device: device.clone(),
            net,
            images: digits.count(),
            pixels: bytes(&digits.pixels)?,
            labels: bytes(&digits.labels)?,
            weights: [weights(0)?, weights(1)?, weights(2)?, weights(3)?],
            biases: [biases(0)?, biases(1)?, biases(2)?, biases(3)?],
            values: rooms()?,
            slopes: rooms()?,
        })
    }

    /// Weights and biases, layer by layer.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn learnt(&self) -> Result<Vec<f32>> {
        let mut all = Vec::new();
        for (weights, biases) in self.weights.iter().zip(&self.biases) {
            all.extend(floats_of(&weights.download()?));
            all.extend(floats_of(&biases.download()?));
        }
        Ok(all)
    }

    fn run(&self, kernel: &'static str, items: u32, arguments: &[Argument]) -> Result<()> {
        let launch = Launch { arguments: arguments.to_vec(), ..Launch::over(items.into(), THREADS, []) };
        Ok(self.device.launch(dnn().kernel(kernel), &launch)?)
    }

    fn value(&self, stage: usize) -> Argument {
        self.values[stage].address().into()
    }

    fn slope(&self, stage: usize) -> Argument {
        self.slopes[stage].address().into()
    }

    fn layer(&self, layer: usize) -> [Argument; 2] {
        [self.weights[layer].address().into(), self.biases[layer].address().into()]
    }

    /// Number of the first image of a pass.
    fn first(&self, number: u32) -> u32 {
        (u64::from(number) * u64::from(self.net.batch) % u64::from(self.images)) as u32
    }

    fn forward(&self, first: u32) -> Result<()> {
        let (net, sides, batch) = (&self.net, self.net.sides(), self.net.batch);
        let pixels = sides.image.pow(2);
        let images = [self.pixels.address().into(), first.into(), self.images.into(), pixels.into()];
        self.run("dnn_images", batch * pixels, &[&images[..], &[batch.into(), self.value(0)]].concat())?;
        for (layer, channels, side) in [(0, 1, sides.image), (1, net.maps[0], sides.pooled)] {
            let (maps, small, stage) = (net.maps[layer], side - (WINDOW - 1), 2 * layer);
            let [weights, bias] = self.layer(layer);
            let shape = [batch.into(), channels.into(), side.into(), maps.into()];
            let convolve = [&[self.value(stage), weights, bias, self.value(stage + 1)], &shape[..]].concat();
            self.run("dnn_convolve", batch * maps * small.pow(2), &convolve)?;
            let planes = batch * maps;
            let pool = [self.value(stage + 1), self.value(stage + 2), planes.into(), small.into()];
            self.run("dnn_pool", planes * (small / 2).pow(2), &pool)?;
        }
        for (layer, stage, rectified) in [(2, 4, 1u32), (3, 5, 0)] {
            let (outputs, inputs) = net.layers()[layer];
            let [weights, bias] = self.layer(layer);
            let shape = [batch.into(), inputs.into(), outputs.into(), rectified.into()];
            let dense = [&[self.value(stage), weights, bias, self.value(stage + 1)], &shape[..]].concat();
            self.run("dnn_dense", batch * outputs, &dense)?;
        }
        Ok(())
    }

    /// Slopes from the loss to the first layer, each layer going down its own when those before it
    /// are known.
    fn backward(&self, first: u32) -> Result<()> {
        let (net, sides, batch) = (&self.net, self.net.sides(), self.net.batch);
        let labels = [self.labels.address().into(), first.into(), self.images.into()];
        let loss = [&[self.value(6)], &labels[..], &[batch.into(), CLASSES.into(), self.slope(6)]].concat();
        self.run("dnn_loss", batch, &loss)?;
        for (layer, stage, rectified) in [(3, 5, 1u32), (2, 4, 0)] {
            let (outputs, inputs) = net.layers()[layer];
            let [weights, bias] = self.layer(layer);
            let shape = [batch.into(), inputs.into(), outputs.into()];
            let tensors = [self.slope(stage + 1), weights, self.value(stage), self.slope(stage)];
            self.run("dnn_dense_back", batch * inputs, &[&tensors, &shape[..], &[rectified.into()]].concat())?;
            let learn = [&[self.slope(stage + 1), self.value(stage), weights, bias], &shape[..], &[RATE.into()]];
            self.run("dnn_dense_learn", (inputs + 1) * outputs, &learn.concat())?;
        }
        for (layer, channels, side) in [(1, net.maps[0], sides.pooled), (0, 1, sides.image)] {
            let (maps, small, stage) = (net.maps[layer], side - (WINDOW - 1), 2 * layer);
            let [weights, bias] = self.layer(layer);
            let planes = batch * maps;
            let pool =
                [self.slope(stage + 2), self.value(stage + 1), self.slope(stage + 1), planes.into(), small.into()];
            self.run("dnn_pool_back", planes * (small / 2).pow(2), &pool)?;
            let shape = [batch.into(), channels.into(), side.into(), maps.into()];
            if layer > 0 {
                let back = [&[self.slope(stage + 1), weights, self.slope(stage)], &shape[..]].concat();
                self.run("dnn_convolve_back", batch * channels * side.pow(2), &back)?;
            }
            let learn = [&[self.slope(stage + 1), self.value(stage), weights, bias], &shape[..], &[RATE.into()]];
            self.run("dnn_convolve_learn", maps * (channels * WINDOW * WINDOW + 1), &learn.concat())?;
        }
        Ok(())
    }
}

impl Stepper for Dnn {
    fn step(&mut self, number: u32) -> Result<()> {
        let first = self.first(number);
        self.forward(first)?;
        self.backward(first)
    }

    fn state(&self) -> Vec<(&'static str, &Buffer)> {
        let layers = NAMES.iter().zip(self.weights.iter().zip(&self.biases));
        layers.flat_map(|((weight, bias), (weights, biases))| [(*weight, weights), (*bias, biases)]).collect()
    }
}
