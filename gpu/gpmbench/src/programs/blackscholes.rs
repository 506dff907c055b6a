//! BLK: prices of options.

use std::rc::Rc;

use anyhow::Result;
use nearpm_gpu::{Buffer, Device, Launch};

use super::{Stepper, THREADS, bytes_of, floats_of, unit};
use crate::kernels::blackscholes;

const RISKLESS: f32 = 0.02;

/// The program: `options` options, whose prices of all iterations are added up.
pub struct BlackScholes {
    device: Rc<dyn Device>,
    options: u32,
    input: [Buffer; 3],
    calls: Buffer,
    puts: Buffer,
}

/// Price of the stock, price to strike at, years until then.
fn option_of(option: usize) -> [f32; 3] {
    let from = |low: f32, high: f32, seed: u32| low + (high - low) * unit(option, seed);
    [from(5.0, 30.0, 1), from(1.0, 100.0, 2), from(0.25, 10.0, 3)]
}

fn volatility_of(iteration: u32) -> f32 {
    0.1 + 0.001 * (iteration % 400) as f32
}

impl BlackScholes {
    /// The options before the first iteration.
    ///
    /// # Errors
    /// No memory.
    pub fn new(device: &Rc<dyn Device>, options: u32) -> Result<BlackScholes> {
        let zeros = || Buffer::zeroed(device, 4 * u64::from(options));
        let column = |values: &Vec<f32>| -> Result<Buffer> {
            let buffer = Buffer::new(device, 4 * u64::from(options))?;
            buffer.upload(&bytes_of(values))?;
            Ok(buffer)
        };
        let column_of = |of: usize| column(&(0..options as usize).map(|option| option_of(option)[of]).collect());
        let input = [column_of(0)?, column_of(1)?, column_of(2)?];
        Ok(BlackScholes { device: device.clone(), options, input, calls: zeros()?, puts: zeros()? })
    }

    /// Sums of the prices of calls and puts.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn prices(&self) -> Result<(Vec<f32>, Vec<f32>)> {
        Ok((floats_of(&self.calls.download()?), floats_of(&self.puts.download()?)))
    }
}

impl Stepper for BlackScholes {
    fn step(&mut self, number: u32) -> Result<()> {
        let [stock, strike, years] = [0, 1, 2].map(|column| self.input[column].address().into());
        let (calls, puts) = (self.calls.address().into(), self.puts.address().into());
        let arguments =
            [calls, puts, stock, strike, years, self.options.into(), RISKLESS.into(), volatility_of(number).into()];
        let launch = Launch::over(self.options.into(), THREADS, arguments);
        Ok(self.device.launch(blackscholes().kernel("blackscholes_step"), &launch)?)
    }

    fn state(&self) -> Vec<(&'static str, &Buffer)> {
        vec![("calls", &self.calls), ("puts", &self.puts)]
    }
}

/// The sums of an option's call and put as a processor has them, in double precision and by another
/// formula of the normal distribution's integral: the oracle, which [`is_price`] compares with.
pub fn prices_of(option: usize, iterations: u32) -> [f64; 2] {
    let [s, x, t] = option_of(option).map(f64::from);
    let riskless = f64::from(RISKLESS);
    let mut prices = [0.0; 2];
    for iteration in 0..iterations {
        let volatility = f64::from(volatility_of(iteration));
        let d1 = ((s / x).ln() + (riskless + volatility * volatility / 2.0) * t) / (volatility * t.sqrt());
        let d2 = d1 - volatility * t.sqrt();
        let discounted = x * (-riskless * t).exp();
        let call = s * normal(d1) - discounted * normal(d2);
        prices[0] += call;
        prices[1] += call + discounted - s;
    }
    prices
}

/// Whether a sum of prices is the oracle's, to 0.1 % and a hundredth.
pub fn is_price(found: f32, expected: f64) -> bool {
    (f64::from(found) - expected).abs() <= 0.001 * expected.abs() + 0.01
}

/// Cumulative normal distribution: Simpson's rule from -8.
fn normal(x: f64) -> f64 {
    let (low, high) = (-8.0f64, x.clamp(-8.0, 8.0));
    let steps = 400;
    let width = (high - low) / f64::from(steps);
    let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let weight = |i: i32| {
        if i == 0 || i == steps {
            1.0
        } else if i % 2 == 1 {
            4.0
        } else {
            2.0
        }
    };
    (0..=steps).map(|i| weight(i) * density(low + f64::from(i) * width)).sum::<f64>() * width / 3.0
}
