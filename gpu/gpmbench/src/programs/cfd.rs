//! CFD: the flow of a gas around a body.

use std::rc::Rc;

use anyhow::Result;
use nearpm_gpu::{Buffer, Device, Launch};

use super::mesh::{BODY, FACES, FAR, Mesh};
use super::{Stepper, bytes_of, floats_of};
use crate::kernels::cfd;

/// Threads of a block, as in the paper's program.
const THREADS: u32 = 192;
const GAMMA: f32 = 1.4;
/// Density, momentum of three axes, energy.
const VARIABLES: usize = 5;
/// Stages of a step.
const STAGES: u32 = 3;
/// Speed of the gas far away, in that of sound.
const MACH: f32 = 1.2;

/// The gas far away flows along the first axis, a little upward; its density is 1, its pressure 1 /
/// gamma, so that sound has speed 1.
fn far_away() -> [f32; VARIABLES] {
    let (x, z) = (MACH * 0.9986, MACH * 0.0523);
    let pressure = 1.0 / GAMMA;
    [1.0, x, 0.0, z, pressure / (GAMMA - 1.0) + 0.5 * (x * x + z * z)]
}

/// The program.
pub struct Cfd {
    device: Rc<dyn Device>,
    cells: u32,
    variables: Buffer,
    fluxes: Buffer,
    before: Buffer,
    steps: Buffer,
    neighbours: Buffer,
    normals: Buffer,
    surface: Buffer,
    far: Buffer,
}

fn start_of(cells: u32) -> Vec<f32> {
    far_away().into_iter().flat_map(|value| std::iter::repeat_n(value, cells as usize)).collect()
}

impl Cfd {
    /// The gas as it is far away, everywhere.
    ///
    /// # Errors
    /// No memory.
    pub fn new(device: &Rc<dyn Device>, mesh: &Mesh) -> Result<Cfd> {
        let of = |values: &[f32]| -> Result<Buffer> {
            let buffer = Buffer::new(device, 4 * values.len() as u64)?;
            buffer.upload(&bytes_of(values))?;
            Ok(buffer)
        };
        let rows = || Buffer::zeroed(device, 4 * VARIABLES as u64 * u64::from(mesh.cells));
        let neighbours: Vec<u32> = mesh.neighbours.iter().map(|&neighbour| neighbour as u32).collect();
        Ok(Cfd {
            device: device.clone(),
            cells: mesh.cells,
            variables: of(&start_of(mesh.cells))?,
            fluxes: rows()?,
            before: rows()?,
            steps: Buffer::new(device, 4 * u64::from(mesh.cells))?,
            neighbours: Buffer::of_words(device, &neighbours)?,
            normals: of(&mesh.normals)?,
            surface: of(&mesh.surface)?,
            far: of(&far_away())?,
        })
    }

    /// Density, momentum and energy of all cells.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn variables(&self) -> Result<Vec<f32>> {
        Ok(floats_of(&self.variables.download()?))
    }
}

impl Stepper for Cfd {
    fn step(&mut self, _: u32) -> Result<()> {
        let n = self.cells.into();
        let [variables, fluxes, before, steps] =
            [&self.variables, &self.fluxes, &self.before, &self.steps].map(|buffer| buffer.address());
        self.device.copy(before, variables, self.variables.bytes())?;
        let arguments = [variables.into(), self.surface.address().into(), steps.into(), n];
        self.device.launch(cfd().kernel("cfd_steps"), &Launch::over(self.cells.into(), THREADS, arguments))?;
        for stage in 0..STAGES {
            let mesh = [self.neighbours.address().into(), self.normals.address().into()];
            let arguments = [variables.into(), mesh[0], mesh[1], self.far.address().into(), fluxes.into(), n];
            self.device.launch(cfd().kernel("cfd_fluxes"), &Launch::over(self.cells.into(), THREADS, arguments))?;
            let parts = (STAGES - stage) as f32;
            let arguments = [before.into(), fluxes.into(), steps.into(), variables.into(), n, parts.into()];
            self.device.launch(cfd().kernel("cfd_advance"), &Launch::over(self.cells.into(), THREADS, arguments))?;
        }
        Ok(())
    }

    fn state(&self) -> Vec<(&'static str, &Buffer)> {
        // Each stage makes the fluxes anew. In both slots these are the paper's 8.9 MB.
        vec![("variables", &self.variables)]
    }
}

/// What `cfd.cu` makes of a cell's values.
struct State {
    value: [f32; VARIABLES],
    velocity: [f32; 3],
    pressure: f32,
    wave: f32,
}

impl State {
    fn of(value: [f32; VARIABLES]) -> State {
        let velocity = [0, 1, 2].map(|axis| value[1 + axis] / value[0]);
        let squared = velocity[0] * velocity[0] + velocity[1] * velocity[1] + velocity[2] * velocity[2];
        let pressure = (GAMMA - 1.0) * (value[4] - 0.5 * value[0] * squared);
        let wave = squared.sqrt() + (GAMMA * pressure / value[0]).sqrt();
        State { value, velocity, pressure, wave }
    }

    fn add_flow(&self, flux: &mut [f32; VARIABLES], normal: [f32; 3]) {
        for (a, axis) in normal.into_iter().enumerate() {
            let half = 0.5 * axis;
            flux[0] += half * self.value[1 + a];
            for b in 0..3 {
                let pressure = if a == b { self.pressure } else { 0.0 };
                flux[1 + b] += half * (self.velocity[b] * self.value[1 + a] + pressure);
            }
            flux[4] += half * (self.velocity[a] * (self.value[4] + self.pressure));
        }
    }
}

fn fluxes_of(mesh: &Mesh, at: impl Fn(usize) -> State, cell: usize) -> [f32; VARIABLES] {
    let (n, here) = (mesh.cells as usize, at(cell));
    let mut flux = [0.0; VARIABLES];
    for face in 0..FACES {
        let normal = [0, 1, 2].map(|axis| mesh.normals[(3 * face + axis) * n + cell]);
        let neighbour = mesh.neighbours[face * n + cell];
        if neighbour == BODY {
            (0..3).for_each(|axis| flux[1 + axis] += normal[axis] * here.pressure);
            continue;
        }
        let there = if neighbour == FAR { State::of(far_away()) } else { at(neighbour as usize) };
        if neighbour != FAR {
            let area = (normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]).sqrt();
            let damping = 0.5 * area * (here.wave + there.wave);
            (0..VARIABLES).for_each(|v| flux[v] += damping * 0.5 * (there.value[v] - here.value[v]));
        }
        here.add_flow(&mut flux, normal);
        there.add_flow(&mut flux, normal);
    }
    flux
}

/// Density, momentum and energy as a processor has them, bit by bit: the oracle.
pub fn flow_of(mesh: &Mesh, iterations: u32) -> Vec<f32> {
    let n = mesh.cells as usize;
    let mut values: Vec<[f32; VARIABLES]> = vec![far_away(); n];
    for _ in 0..iterations {
        let before = values.clone();
        let steps: Vec<f32> = (0..n).map(|i| 0.5 / (mesh.surface[i] * State::of(before[i]).wave)).collect();
        for stage in 0..STAGES {
            let fluxes: Vec<_> = (0..n).map(|cell| fluxes_of(mesh, |i| State::of(values[i]), cell)).collect();
            for (i, whole) in steps.iter().enumerate() {
                let step = whole / (STAGES - stage) as f32;
                (0..VARIABLES).for_each(|v| values[i][v] = before[i][v] + step * fluxes[i][v]);
            }
        }
    }
    (0..VARIABLES).flat_map(|v| values.iter().map(move |value| value[v])).collect()
}
