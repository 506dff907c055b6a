//! Indices of arrays of several dimensions, and which rank holds which elements.
//!
//! Elements lie in row-major order: the last index runs fastest. They are dealt out in that order,
//! to each rank the same number, to the last ones fewer or none.

use crate::error::{Error, Result};

/// Most dimensions of an array.
pub const MOST_DIMENSIONS: usize = 8;

/// Sizes of an array, and how it is dealt out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    dims: Vec<u64>,
    /// Bytes of an element.
    element: u64,
    /// Elements of each rank but the last ones.
    part: u64,
}

/// Elements that follow each other on one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Who holds them.
    pub rank: usize,
    /// First byte in the rank's part.
    pub at: u64,
    /// First byte in the caller's buffer.
    pub buffer: usize,
    /// Bytes.
    pub bytes: usize,
}

impl Shape {
    /// An array of `dims` elements of `element` bytes on so many ranks.
    ///
    /// # Errors
    /// [`Error::BadOption`] for no dimensions, too many, one of no elements, or more bytes than
    /// there are addresses.
    pub fn new(dims: &[u64], element: u64, ranks: usize) -> Result<Shape> {
        let count =
            dims.iter().try_fold(1_u64, |product, dim| product.checked_mul(*dim)).filter(|count| *count < 1 << 48);
        match count {
            Some(count) if count > 0 && !dims.is_empty() && dims.len() <= MOST_DIMENSIONS => {
                Ok(Shape { dims: dims.to_vec(), element, part: count.div_ceil(ranks as u64) })
            }
            _ => Err(Error::option(format!(
                "{dims:?} are no sizes of an array: give 1 to {MOST_DIMENSIONS} dimensions of at least one element, fewer than 2^48 in all"
            ))),
        }
    }

    /// Elements by dimension.
    pub fn dims(&self) -> &[u64] {
        &self.dims
    }

    /// All elements.
    pub fn count(&self) -> u64 {
        self.dims.iter().product()
    }

    /// Bytes that one rank holds at most.
    pub fn part_bytes(&self) -> u64 {
        self.part * self.element
    }

    /// Elements that a rank holds, as a range in row-major order.
    pub fn part(&self, rank: usize) -> std::ops::Range<u64> {
        let start = (self.part * rank as u64).min(self.count());
        start..(start + self.part).min(self.count())
    }

    /// Elements of a box of indices, both ends included.
    ///
    /// # Errors
    /// [`Error::OutOfRange`].
    pub fn elements(&self, lo: &[u64], hi: &[u64]) -> Result<u64> {
        let fits = lo.len() == self.dims.len()
            && hi.len() == lo.len()
            && lo.iter().zip(hi).zip(&self.dims).all(|((lo, hi), dim)| lo <= hi && hi < dim);
        if fits {
            Ok(lo.iter().zip(hi).map(|(lo, hi)| hi - lo + 1).product())
        } else {
            Err(Error::OutOfRange { lo: lo.to_vec(), hi: hi.to_vec(), dims: self.dims.clone() })
        }
    }

    /// The runs of a box of indices, both ends included, whose elements lie in the caller's buffer
    /// one after the other.
    ///
    /// # Errors
    /// [`Error::OutOfRange`].
    pub fn runs(&self, lo: &[u64], hi: &[u64]) -> Result<Vec<Run>> {
        self.elements(lo, hi)?;
        // Trailing dimensions that are taken whole make longer rows.
        let mut row = self.dims.len() - 1;
        let mut length = hi[row] - lo[row] + 1;
        while row > 0 && length == self.dims[row..].iter().product::<u64>() {
            row -= 1;
            length *= hi[row] - lo[row] + 1;
        }
        let mut runs = Vec::new();
        let (mut index, mut buffer) = (lo.to_vec(), 0);
        loop {
            let first = index.iter().zip(&self.dims).fold(0, |at, (index, dim)| at * dim + index);
            self.split(first, length, &mut buffer, &mut runs);
            let Some(next) = (0..row).rev().find(|&dim| index[dim] < hi[dim]) else { return Ok(runs) };
            index[next] += 1;
            index[next + 1..row].copy_from_slice(&lo[next + 1..row]);
        }
    }

    /// Elements in row-major order, as runs.
    fn split(&self, mut first: u64, mut count: u64, buffer: &mut usize, runs: &mut Vec<Run>) {
        while count > 0 {
            let (rank, at) = ((first / self.part) as usize, first % self.part);
            let here = count.min(self.part - at);
            let bytes = (here * self.element) as usize;
            runs.push(Run { rank, at: at * self.element, buffer: *buffer, bytes });
            (*buffer, first, count) = (*buffer + bytes, first + here, count - here);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every element by its own index.
    fn slow(shape: &Shape, lo: &[u64], hi: &[u64]) -> Vec<(usize, u64)> {
        let mut found = Vec::new();
        for element in 0..shape.count() {
            let (mut rest, mut inside) = (element, true);
            for dim in (0..lo.len()).rev() {
                let index = rest % shape.dims[dim];
                rest /= shape.dims[dim];
                inside &= lo[dim] <= index && index <= hi[dim];
            }
            if inside {
                found.push(((element / shape.part) as usize, element % shape.part * shape.element));
            }
        }
        found
    }

    #[test]
    fn runs_hold_the_elements_of_the_box_in_order() {
        for dims in [vec![7], vec![3, 5], vec![2, 3, 4], vec![1, 4, 1, 3]] {
            for ranks in 1..5 {
                let shape = Shape::new(&dims, 4, ranks).unwrap();
                let last: Vec<u64> = dims.iter().map(|dim| dim - 1).collect();
                let middle: Vec<u64> = dims.iter().map(|dim| dim / 2).collect();
                let zero = vec![0; dims.len()];
                for (lo, hi) in [(&zero, &last), (&zero, &middle), (&middle, &last), (&middle, &middle)] {
                    let runs = shape.runs(lo, hi).unwrap();
                    let fast: Vec<(usize, u64)> = runs
                        .iter()
                        .flat_map(|run| (0..run.bytes as u64 / 4).map(|at| (run.rank, run.at + 4 * at)))
                        .collect();
                    assert_eq!(fast, slow(&shape, lo, hi), "{dims:?} {lo:?} {hi:?} on {ranks}");
                    assert!(runs.windows(2).all(|two| two[0].buffer + two[0].bytes == two[1].buffer));
                }
            }
        }
    }

    #[test]
    fn what_leaves_the_array_is_refused() {
        let shape = Shape::new(&[4, 5], 8, 2).unwrap();
        for (lo, hi) in [([0, 0], [4, 0]), ([0, 0], [0, 5]), ([2, 0], [1, 0]), ([0, u64::MAX], [0, u64::MAX])] {
            assert!(matches!(shape.runs(&lo, &hi), Err(Error::OutOfRange { .. })));
        }
        assert!(matches!(shape.runs(&[0], &[0]), Err(Error::OutOfRange { .. })));
        for dims in [&[][..], &[0], &[1 << 40, 1 << 40], &[1; 9]] {
            assert!(matches!(Shape::new(dims, 8, 2), Err(Error::BadOption { .. })));
        }
    }
}
