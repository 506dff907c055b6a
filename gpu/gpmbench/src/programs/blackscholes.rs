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

fn input_of(options: u32) -> [Vec<f32>; 3] {
    let column =
        |low: f32, high: f32, seed: u32| (0..options as usize).map(|i| low + (high - low) * unit(i, seed)).collect();
    [column(5.0, 30.0, 1), column(1.0, 100.0, 2), column(0.25, 10.0, 3)]
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
        let [stock, strike, years] = input_of(options);
        let input = [column(&stock)?, column(&strike)?, column(&years)?];
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

/// The sums as a processor has them, in double precision and by another formula of the normal distribution's integral: the oracle, to 0.1 %.
pub fn prices_of(options: u32, iterations: u32) -> (Vec<f64>, Vec<f64>) {
    let [stock, strike, years] = input_of(options);
    let mut prices = (vec![0.0; options as usize], vec![0.0; options as usize]);
    for iteration in 0..iterations {
        let volatility = f64::from(volatility_of(iteration));
        for i in 0..options as usize {
            let (s, x, t) = (f64::from(stock[i]), f64::from(strike[i]), f64::from(years[i]));
            let riskless = f64::from(RISKLESS);
            let d1 = ((s / x).ln() + (riskless + volatility * volatility / 2.0) * t) / (volatility * t.sqrt());
            let d2 = d1 - volatility * t.sqrt();
            let discounted = x * (-riskless * t).exp();
            let call = s * normal(d1) - discounted * normal(d2);
            prices.0[i] += call;
            prices.1[i] += call + discounted - s;
        }
    }
    prices
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
