//! Conjugate gradients for the matrix of HPCG: a grid of points, each tied to its 26 neighbours
//! by -1, with 26 on the diagonal.
//!
//! The right-hand side is such that the solution is all ones. The preconditioner is the diagonal
//! (HPCG's is a symmetric Gauss-Seidel sweep). The vectors of the iteration are arrays, of which
//! each iteration makes a version; other ranks' points are read by `get`.

use crate::array::{Array, version_inc_all};
use crate::error::Result;
use crate::world::World;

const DIAGONAL: f64 = 26.0;

/// Virtual time of a row in an iteration: 27 entries of 12 bytes and the vectors, at 4 GB/s of one
/// core.
const ROW_NANOSECONDS: u64 = 100;

/// The vectors.
pub struct Vectors {
    /// The solution so far.
    pub x: Array<f64>,
    /// What is missing of the right-hand side.
    pub r: Array<f64>,
    /// Direction of the search.
    pub p: Array<f64>,
}

impl Vectors {
    /// Makes them by `make`, for a cube of `side` points an edge.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn new(side: u64, make: impl Fn(&str, &[u64]) -> Result<Array<f64>>) -> Result<Vectors> {
        let dims = [side * side * side];
        Ok(Vectors { x: make("x", &dims)?, r: make("r", &dims)?, p: make("p", &dims)? })
    }

    fn cut(&self, label: &str) -> Result<u64> {
        version_inc_all(&[self.x.face(), self.r.face(), self.p.face()], label)
    }
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solved {
    /// Iterations, with those of runs before.
    pub iterations: u64,
    /// The iteration that this run began with.
    pub from: u64,
    /// The largest distance of the solution from all ones.
    pub error: f64,
}

/// This rank's points.
struct Part<'a> {
    world: &'a World,
    vectors: &'a Vectors,
    side: u64,
    start: u64,
    count: usize,
}

impl Part<'_> {
    fn load(&self, array: &Array<f64>) -> Result<Vec<f64>> {
        if self.count == 0 { Ok(Vec::new()) } else { array.get_vec(self.start..self.start + self.count as u64) }
    }

    fn store(&self, array: &Array<f64>, data: &[f64]) -> Result<()> {
        if self.count == 0 { Ok(()) } else { array.put(self.start..self.start + self.count as u64, data) }
    }

    /// The sum over all ranks, added up in the same order on each.
    fn dot(&self, a: &[f64], b: &[f64]) -> Result<f64> {
        let mine: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
        Ok(self.world.rma().allgather(&[mine.to_bits()])?.into_iter().map(f64::from_bits).sum())
    }

    /// The matrix times a vector.
    fn multiply(&self, array: &Array<f64>) -> Result<Vec<f64>> {
        let side = self.side as i64;
        let reach = side * side + side + 1;
        let all = side * side * side;
        let first = (self.start as i64 - reach).max(0);
        let end = (self.start as i64 + self.count as i64 + reach).min(all);
        if self.count == 0 {
            return Ok(Vec::new());
        }
        let near = array.get_vec(first as u64..end as u64)?;
        let row = |point: i64| {
            let (z, y, x) = (point / (side * side), point / side % side, point % side);
            let mut sum = (DIAGONAL + 1.0) * near[(point - first) as usize];
            for z in (z - 1).max(0)..(z + 2).min(side) {
                for y in (y - 1).max(0)..(y + 2).min(side) {
                    let begin = (z * side + y) * side - first;
                    let neighbours = (x - 1).max(0)..(x + 2).min(side);
                    sum -= neighbours.map(|x| near[(begin + x) as usize]).sum::<f64>();
                }
            }
            sum
        };
        Ok((self.start as i64..self.start as i64 + self.count as i64).map(row).collect())
    }
}

/// Solves, from the newest version on if there is one. `every` is called in front of each
/// iteration.
///
/// # Errors
/// Those of the arrays, and of `every`.
pub fn solve(
    world: &World,
    vectors: &Vectors,
    side: u64,
    most: u64,
    mut every: impl FnMut(u64) -> Result<()>,
) -> Result<Solved> {
    let range = vectors.x.part(world.rank());
    let part = Part { world, vectors, side, start: range.start, count: (range.end - range.start) as usize };
    let from = vectors.x.version();
    if from == 0 {
        begin(&part)?;
    }
    let (mut x, mut r) = (part.load(&vectors.x)?, part.load(&vectors.r)?);
    let mut p = part.load(&vectors.p)?;
    let mut rho = part.dot(&r, &r)? / DIAGONAL;
    let mut iteration = from.max(1);
    while iteration < most && rho > 1e-20 {
        every(iteration)?;
        let q = part.multiply(&vectors.p)?;
        let alpha = rho / part.dot(&p, &q)?;
        x.iter_mut().zip(&p).for_each(|(x, p)| *x += alpha * p);
        r.iter_mut().zip(&q).for_each(|(r, q)| *r -= alpha * q);
        let next = part.dot(&r, &r)? / DIAGONAL;
        p.iter_mut().zip(&r).for_each(|(p, r)| *p = r / DIAGONAL + next / rho * *p);
        rho = next;
        world.compute(part.count as u64 * ROW_NANOSECONDS)?;
        part.store(&vectors.x, &x)?;
        part.store(&vectors.r, &r)?;
        part.store(&vectors.p, &p)?;
        iteration = vectors.cut(&format!("iteration {iteration}"))? + 1;
    }
    let worst = x.iter().map(|x| (x - 1.0).abs()).fold(0.0, f64::max);
    let worst = world.rma().allgather(&[worst.to_bits()])?.into_iter().map(f64::from_bits).fold(0.0, f64::max);
    Ok(Solved { iterations: iteration, from, error: worst })
}

/// The first version: x is zero, r the right-hand side, p the preconditioned one.
fn begin(part: &Part<'_>) -> Result<()> {
    part.store(&part.vectors.p, &vec![1.0; part.count])?;
    part.vectors.p.wait()?;
    part.world.barrier()?;
    let b = part.multiply(&part.vectors.p)?;
    part.world.barrier()?;
    part.store(&part.vectors.x, &vec![0.0; part.count])?;
    part.store(&part.vectors.r, &b)?;
    part.store(&part.vectors.p, &b.iter().map(|b| b / DIAGONAL).collect::<Vec<_>>())?;
    part.vectors.cut("begin").map(drop)
}
