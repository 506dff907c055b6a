//! DNN as a processor computes it, bit by bit: the oracle.

use std::f32::consts::{LN_2, LOG2_E};

use super::digits::{CLASSES, Digits};
use super::dnn::{Net, RATE, WINDOW};

const TAPS: usize = (WINDOW * WINDOW) as usize;

/// A stack of planes: side, planes of all images, numbers.
struct Planes {
    side: usize,
    values: Vec<f32>,
}

impl Planes {
    fn at(&self, plane: usize, y: usize, x: usize) -> f32 {
        self.values[(plane * self.side + y) * self.side + x]
    }
}

/// A layer of weights and biases.
struct Layer {
    weights: Vec<f32>,
    biases: Vec<f32>,
}

/// Numbers of a stack of `planes` planes, each by plane, row and column.
fn planes_of(planes: usize, side: usize, value: impl Fn(usize, usize, usize) -> f32) -> Planes {
    let all = 0..planes * side * side;
    Planes { side, values: all.map(|i| value(i / side / side, i / side % side, i % side)).collect() }
}

fn convolved(input: &Planes, layer: &Layer, channels: usize, batch: usize) -> Planes {
    let (maps, window) = (layer.biases.len(), WINDOW as usize);
    planes_of(batch * maps, input.side - window + 1, |plane, y, x| {
        let (image, map) = (plane / maps, plane % maps);
        let taps = (0..channels * TAPS).map(|tap| (tap, tap / TAPS, tap % TAPS / window, tap % window));
        taps.fold(layer.biases[map], |sum, (tap, channel, v, u)| {
            sum + layer.weights[map * channels * TAPS + tap] * input.at(image * channels + channel, y + v, x + u)
        })
    })
}

/// The four numbers that a pool takes, in the order in which they are looked at.
fn pooled_from(input: &Planes, plane: usize, y: usize, x: usize) -> [f32; 4] {
    [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(v, u)| input.at(plane, 2 * y + v, 2 * x + u))
}

fn pooled(input: &Planes) -> Planes {
    let planes = input.values.len() / input.side.pow(2);
    let max = |a: f32, b: f32| if a > b { a } else { b };
    planes_of(planes, input.side / 2, |plane, y, x| {
        let [a, b, c, d] = pooled_from(input, plane, y, x);
        max(max(a, b), max(c, d))
    })
}

fn pooled_back(slopes: &Planes, input: &Planes) -> Planes {
    let planes = input.values.len() / input.side.pow(2);
    planes_of(planes, input.side, |plane, y, x| {
        let from = pooled_from(input, plane, y / 2, x / 2);
        let best = (1..4).fold(0, |best, at| if from[at] > from[best] { at } else { best });
        if best == y % 2 * 2 + x % 2 { slopes.at(plane, y / 2, x / 2) } else { 0.0 }
    })
}

fn convolved_back(slopes: &Planes, layer: &Layer, channels: usize, side: usize, batch: usize) -> Planes {
    let (maps, window, small) = (layer.biases.len(), WINDOW as usize, slopes.side);
    planes_of(batch * channels, side, |plane, y, x| {
        let (image, channel) = (plane / channels, plane % channels);
        let mut sum = 0.0;
        for (map, v, u) in (0..maps * TAPS).map(|i| (i / TAPS, i % TAPS / window, i % window)) {
            if y >= v && y - v < small && x >= u && x - u < small {
                sum += layer.weights[(map * channels + channel) * TAPS + v * window + u]
                    * slopes.at(image * maps + map, y - v, x - u);
            }
        }
        sum
    })
}

fn convolution_learns(layer: &mut Layer, slopes: &Planes, input: &Planes, channels: usize, batch: usize) {
    let (maps, window, small) = (layer.biases.len(), WINDOW as usize, slopes.side);
    let places = || (0..batch * small * small).map(|i| (i / small / small, i / small % small, i % small));
    for map in 0..maps {
        for tap in 0..channels * TAPS {
            let (channel, v, u) = (tap / TAPS, tap % TAPS / window, tap % window);
            let sum = places().fold(0.0, |sum, (image, y, x)| {
                sum + slopes.at(image * maps + map, y, x) * input.at(image * channels + channel, y + v, x + u)
            });
            layer.weights[map * channels * TAPS + tap] -= RATE * sum;
        }
        let sum = places().fold(0.0, |sum, (image, y, x)| sum + slopes.at(image * maps + map, y, x));
        layer.biases[map] -= RATE * sum;
    }
}

fn dense(input: &[f32], layer: &Layer, batch: usize, rectified: bool) -> Vec<f32> {
    let (outputs, inputs) = (layer.biases.len(), input.len() / batch);
    let output = |i: usize| {
        let (image, output) = (i / outputs, i % outputs);
        let terms = (0..inputs).map(|k| layer.weights[output * inputs + k] * input[image * inputs + k]);
        let sum = terms.fold(layer.biases[output], |sum, term| sum + term);
        if rectified && sum < 0.0 { 0.0 } else { sum }
    };
    (0..batch * outputs).map(output).collect()
}

fn dense_back(slopes: &[f32], layer: &Layer, input: &[f32], batch: usize, rectified: bool) -> Vec<f32> {
    let (outputs, inputs) = (layer.biases.len(), input.len() / batch);
    let back = |i: usize| {
        let (image, from) = (i / inputs, i % inputs);
        let terms = (0..outputs).map(|k| layer.weights[k * inputs + from] * slopes[image * outputs + k]);
        let sum = terms.fold(0.0, |sum, term| sum + term);
        if rectified && input[i] <= 0.0 { 0.0 } else { sum }
    };
    (0..batch * inputs).map(back).collect()
}

fn dense_learns(layer: &mut Layer, slopes: &[f32], input: &[f32], batch: usize) {
    let (outputs, inputs) = (layer.biases.len(), input.len() / batch);
    for output in 0..outputs {
        let slope = |image: usize| slopes[image * outputs + output];
        for from in 0..inputs {
            let sum = (0..batch).fold(0.0, |sum, image| sum + slope(image) * input[image * inputs + from]);
            layer.weights[output * inputs + from] -= RATE * sum;
        }
        layer.biases[output] -= RATE * (0..batch).fold(0.0, |sum, image| sum + slope(image));
    }
}

/// `power_of_e` of `same_bits.cuh`.
fn power_of_e(x: f32) -> f32 {
    if x < -80.0 {
        return 0.0;
    }
    let halvings = (-x * LOG2_E + 0.5).floor();
    let rest = x + halvings * LN_2;
    let sum =
        1.0 + rest * (1.0 + rest * (0.5 + rest * (0.166_666_67 + rest * (0.041_666_668 + rest * 0.008_333_334_f32))));
    sum * f32::from_bits((127 - halvings as u32) << 23)
}

fn loss_slopes(scores: &[f32], labels: &[u8]) -> Vec<f32> {
    let classes = CLASSES as usize;
    let of = |(mine, &label): (&[f32], &u8)| -> Vec<f32> {
        let highest = mine[1..].iter().fold(mine[0], |highest, &score| if score > highest { score } else { highest });
        let sum = mine.iter().fold(0.0, |sum, score| sum + power_of_e(score - highest));
        let wanted = |class: usize| if class == usize::from(label) { 1.0 } else { 0.0 };
        let slope =
            |(class, score): (usize, &f32)| (power_of_e(score - highest) / sum - wanted(class)) / labels.len() as f32;
        mine.iter().enumerate().map(slope).collect()
    };
    scores.chunks(classes).zip(labels).flat_map(of).collect()
}

/// What each stage of a pass gives.
struct Values {
    images: Planes,
    first: Planes,
    first_pool: Planes,
    second: Planes,
    second_pool: Planes,
    hidden: Vec<f32>,
    scores: Vec<f32>,
}

struct Lenet {
    net: Net,
    layers: [Layer; 4],
}

impl Lenet {
    fn new(net: Net) -> Lenet {
        let layer = |number: usize| {
            let (outputs, _) = net.layers()[number];
            Layer { weights: net.start_of(number), biases: vec![0.0; outputs as usize] }
        };
        Lenet { net, layers: [layer(0), layer(1), layer(2), layer(3)] }
    }

    fn forward(&self, images: Planes, batch: usize) -> Values {
        let [one, two, three, four] = &self.layers;
        let first = convolved(&images, one, 1, batch);
        let first_pool = pooled(&first);
        let second = convolved(&first_pool, two, one.biases.len(), batch);
        let second_pool = pooled(&second);
        let hidden = dense(&second_pool.values, three, batch, true);
        let scores = dense(&hidden, four, batch, false);
        Values { images, first, first_pool, second, second_pool, hidden, scores }
    }

    fn backward(&mut self, values: &Values, labels: &[u8]) {
        let batch = labels.len();
        let [one, two, three, four] = &mut self.layers;
        let scores = loss_slopes(&values.scores, labels);
        let hidden = dense_back(&scores, four, &values.hidden, batch, true);
        dense_learns(four, &scores, &values.hidden, batch);
        let flat = dense_back(&hidden, three, &values.second_pool.values, batch, false);
        dense_learns(three, &hidden, &values.second_pool.values, batch);
        let second = pooled_back(&Planes { side: values.second_pool.side, values: flat }, &values.second);
        let channels = one.biases.len();
        let first_pool = convolved_back(&second, two, channels, values.first_pool.side, batch);
        convolution_learns(two, &second, &values.first_pool, channels, batch);
        let first = pooled_back(&first_pool, &values.first);
        convolution_learns(one, &first, &values.images, 1, batch);
    }

    fn images(&self, digits: &Digits, numbers: &[usize]) -> Planes {
        let pixels = self.net.side.pow(2) as usize;
        let of = |&number: &usize| digits.pixels[number * pixels..][..pixels].iter().map(|&p| f32::from(p) / 255.0);
        Planes { side: self.net.side as usize, values: numbers.iter().flat_map(of).collect() }
    }
}

/// Weights and biases after so many passes.
pub fn learnt_by(net: Net, digits: &Digits, passes: u32) -> Vec<f32> {
    let mut lenet = Lenet::new(net);
    for pass in 0..passes as usize {
        let batch = net.batch as usize;
        let numbers: Vec<usize> = (pass * batch..(pass + 1) * batch).map(|n| n % digits.labels.len()).collect();
        let values = lenet.forward(lenet.images(digits, &numbers), batch);
        let labels: Vec<u8> = numbers.iter().map(|&number| digits.labels[number]).collect();
        lenet.backward(&values, &labels);
    }
    lenet.layers.iter().flat_map(|layer| layer.weights.iter().chain(&layer.biases).copied()).collect()
}

/// The share of pictures that a net with these weights and biases tells rightly.
pub fn share_told(net: Net, learnt: &[f32], digits: &Digits) -> f64 {
    let mut lenet = Lenet::new(net);
    let mut rest = learnt;
    for layer in &mut lenet.layers {
        for part in [&mut layer.weights, &mut layer.biases] {
            let (mine, others) = rest.split_at(part.len());
            part.copy_from_slice(mine);
            rest = others;
        }
    }
    let numbers: Vec<usize> = (0..digits.labels.len()).collect();
    let values = lenet.forward(lenet.images(digits, &numbers), numbers.len());
    let told = |(scores, &label): (&[f32], &u8)| scores.iter().all(|&score| score <= scores[usize::from(label)]);
    let right = values.scores.chunks(CLASSES as usize).zip(&digits.labels).filter(|&pair| told(pair)).count();
    right as f64 / numbers.len() as f64
}
