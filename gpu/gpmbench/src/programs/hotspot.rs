//! HS: temperatures of a chip.

use std::rc::Rc;

use anyhow::Result;
use nearpm_gpu::{Buffer, Device, Launch};

use super::{Stepper, THREADS, bytes_of, floats_of, unit};
use crate::kernels::hotspot;

/// The program: `rows` x `columns` cells.
pub struct Hotspot {
    device: Rc<dyn Device>,
    rows: u32,
    columns: u32,
    power: Buffer,
    temperatures: [Buffer; 2],
    now: usize,
}

fn start_of(rows: u32, columns: u32) -> (Vec<f32>, Vec<f32>) {
    let cells = rows as usize * columns as usize;
    let temperatures = (0..cells).map(|cell| 60.0 + 20.0 * unit(cell, 1)).collect();
    // Blocks of the chip that are hot, and others that are not.
    let power = (0..cells).map(|cell| if unit(cell / 64, 2) > 0.7 { 0.9 * unit(cell, 3) } else { 0.0 }).collect();
    (temperatures, power)
}

impl Hotspot {
    /// The chip before the first iteration.
    ///
    /// # Errors
    /// No memory.
    pub fn new(device: &Rc<dyn Device>, rows: u32, columns: u32) -> Result<Hotspot> {
        let bytes = 4 * u64::from(rows) * u64::from(columns);
        let buffer = || Buffer::new(device, bytes);
        let (power, temperatures) = (buffer()?, [buffer()?, buffer()?]);
        let (start, heat) = start_of(rows, columns);
        temperatures[0].upload(&bytes_of(&start))?;
        power.upload(&bytes_of(&heat))?;
        Ok(Hotspot { device: device.clone(), rows, columns, power, temperatures, now: 0 })
    }

    /// The temperatures.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn temperatures(&self) -> Result<Vec<f32>> {
        Ok(floats_of(&self.temperatures[self.now].download()?))
    }
}

impl Stepper for Hotspot {
    fn step(&mut self, _: u32) -> Result<()> {
        let [from, to] = [self.now, 1 - self.now].map(|at| self.temperatures[at].address());
        let arguments = [from.into(), self.power.address().into(), to.into(), self.rows.into(), self.columns.into()];
        let cells = u64::from(self.rows) * u64::from(self.columns);
        self.device.launch(hotspot().kernel("hotspot_step"), &Launch::over(cells, THREADS, arguments))?;
        self.now = 1 - self.now;
        Ok(())
    }

    fn state(&self) -> Vec<(&'static str, &Buffer)> {
        vec![("temperatures", &self.temperatures[self.now])]
    }
}

/// The temperatures as a processor has them, bit by bit: the oracle.
pub fn temperatures_of(rows: u32, columns: u32, iterations: u32) -> Vec<f32> {
    let (mut now, power) = start_of(rows, columns);
    let (rows, columns) = (rows as usize, columns as usize);
    for _ in 0..iterations {
        let at = |row: usize, column: usize| now[row * columns + column];
        let cell = |i: usize| {
            let (row, column) = (i / columns, i % columns);
            let here = now[i];
            let north = if row > 0 { at(row - 1, column) } else { here };
            let south = if row + 1 < rows { at(row + 1, column) } else { here };
            let west = if column > 0 { at(row, column - 1) } else { here };
            let east = if column + 1 < columns { at(row, column + 1) } else { here };
            let flow = (north + south - 2.0 * here) * 0.1 + (east + west - 2.0 * here) * 0.1;
            here + 0.5 * (power[i] + flow + (80.0 - here) * 0.0005)
        };
        now = (0..rows * columns).map(cell).collect();
    }
    now
}
