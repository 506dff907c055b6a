//! HS: temperatures of a chip.

use std::ops::Range;
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

/// Temperature and heat of a cell at the start.
fn cell_of(cell: usize) -> (f32, f32) {
    // Blocks of the chip that are hot, and others that are not.
    let heat = if unit(cell / 64, 2) > 0.7 { 0.9 * unit(cell, 3) } else { 0.0 };
    (60.0 + 20.0 * unit(cell, 1), heat)
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
        let cells = rows as usize * columns as usize;
        let (start, heat): (Vec<f32>, Vec<f32>) = (0..cells).map(cell_of).unzip();
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
    part_of(rows, columns, [0..rows as usize, 0..columns as usize], iterations)
}

/// Those of some rows and columns, of which it needs no more than the cells that reach them in that
/// many iterations.
pub fn part_of(rows: u32, columns: u32, part: [Range<usize>; 2], iterations: u32) -> Vec<f32> {
    let (rows, columns, reach) = (rows as usize, columns as usize, iterations as usize);
    let around = |part: &Range<usize>, all: usize| part.start.saturating_sub(reach)..(part.end + reach).min(all);
    let (down, across) = (around(&part[0], rows), around(&part[1], columns));
    let (height, width) = (down.len(), across.len());
    let place = |i: usize| (down.start + i / width) * columns + across.start + i % width;
    let (mut now, heat): (Vec<f32>, Vec<f32>) = (0..height * width).map(|i| cell_of(place(i))).unzip();
    for _ in 0..iterations {
        // Where the part is cut out of the chip, what is wrong goes on by a cell an iteration, and
        // does not come to what was asked for.
        let cell = |i: usize| {
            let (row, column) = (i / width, i % width);
            let here = now[i];
            let north = if row > 0 { now[i - width] } else { here };
            let south = if row + 1 < height { now[i + width] } else { here };
            let west = if column > 0 { now[i - 1] } else { here };
            let east = if column + 1 < width { now[i + 1] } else { here };
            let flow = (north + south - 2.0 * here) * 0.1 + (east + west - 2.0 * here) * 0.1;
            here + 0.5 * (heat[i] + flow + (80.0 - here) * 0.0005)
        };
        now = (0..height * width).map(cell).collect();
    }
    let wanted = |row: usize| {
        let start = (row - down.start) * width + part[1].start - across.start;
        now[start..start + part[1].len()].iter().copied()
    };
    part[0].clone().flat_map(wanted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_that_of_the_whole() {
        let (rows, columns, iterations) = (20, 33, 4);
        let whole = temperatures_of(rows, columns, iterations);
        for part in [[0..3, 30..33], [7..12, 9..20], [17..20, 0..1]] {
            let expected: Vec<f32> = part[0]
                .clone()
                .flat_map(|row| part[1].clone().map(move |column| (row, column)))
                .map(|(row, column)| whole[row * columns as usize + column])
                .collect();
            assert_eq!(part_of(rows, columns, part, iterations), expected);
        }
    }
}
