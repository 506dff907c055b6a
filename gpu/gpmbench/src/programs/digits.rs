//! Pictures that look like hand-written digits: what DNN learns.

use super::unit;

/// Digits.
pub const CLASSES: u32 = 10;

/// Pictures and what they show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digits {
    /// Side of a picture, in pixels.
    pub side: u32,
    /// Pixels, one byte each, picture by picture.
    pub pixels: Vec<u8>,
    /// The digits.
    pub labels: Vec<u8>,
}

/// Strokes of each digit, as those of seven lines: top, upper left, upper right, middle, lower
/// left, lower right, bottom.
const STROKES: [[u8; 7]; CLASSES as usize] = [
    [1, 1, 1, 0, 1, 1, 1],
    [0, 0, 1, 0, 0, 1, 0],
    [1, 0, 1, 1, 1, 0, 1],
    [1, 0, 1, 1, 0, 1, 1],
    [0, 1, 1, 1, 0, 1, 0],
    [1, 1, 0, 1, 0, 1, 1],
    [1, 1, 0, 1, 1, 1, 1],
    [1, 0, 1, 0, 0, 1, 0],
    [1, 1, 1, 1, 1, 1, 1],
    [1, 1, 1, 1, 0, 1, 1],
];

/// Ends of the lines, in a field of 1 by 2.
const LINES: [[f32; 4]; 7] = [
    [0.0, 0.0, 1.0, 0.0],
    [0.0, 0.0, 0.0, 1.0],
    [1.0, 0.0, 1.0, 1.0],
    [0.0, 1.0, 1.0, 1.0],
    [0.0, 1.0, 0.0, 2.0],
    [1.0, 1.0, 1.0, 2.0],
    [0.0, 2.0, 1.0, 2.0],
];

fn distance(x: f32, y: f32, [ax, ay, bx, by]: [f32; 4]) -> f32 {
    let (dx, dy) = (bx - ax, by - ay);
    let along = (((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy)).clamp(0.0, 1.0);
    (x - ax - along * dx).hypot(y - ay - along * dy)
}

impl Digits {
    /// `count` pictures, each leaning, placed and noisy in its own way. They depend on nothing but
    /// the arguments.
    pub fn new(side: u32, count: u32) -> Digits {
        let mut digits =
            Digits { side, pixels: Vec::with_capacity((side * side * count) as usize), labels: Vec::new() };
        for number in 0..count {
            let chance = |seed: u32| unit(number as usize, 100 + seed) - 0.5;
            let label = crate::pattern::pattern(number, 99) % CLASSES;
            digits.labels.push(label as u8);
            let (scale, lean) = (side as f32 / 4.2 * (1.0 + 0.3 * chance(0)), 0.5 * chance(1));
            let (left, top) = (side as f32 * (0.35 + 0.15 * chance(2)), side as f32 * (0.22 + 0.1 * chance(3)));
            let width = 0.22 + 0.12 * chance(4);
            for pixel in 0..side * side {
                let y = ((pixel / side) as f32 - top) / scale;
                let x = ((pixel % side) as f32 - left) / scale + lean * (y - 1.0);
                let strokes = LINES.iter().zip(STROKES[label as usize]).filter(|&(_, there)| there == 1);
                let nearest = strokes.map(|(&line, _)| distance(x, y, line)).fold(f32::MAX, f32::min);
                let ink = (1.5 - nearest / width).clamp(0.0, 1.0);
                let noise = 0.1 * unit((number * side * side + pixel) as usize, 98);
                digits.pixels.push((255.0 * (0.9 * ink + noise)) as u8);
            }
        }
        digits
    }

    /// Pictures that there are.
    pub fn count(&self) -> u32 {
        self.labels.len() as u32
    }
}
