//! Puts, gets and accumulates of C programs.

use std::ffi::{c_int, c_void};

use super::handlers::detected;
use super::state::{Gds, array};
use super::status::{answer, refuse};
use super::{present, word};
use crate::array::{Change, Core};
use crate::error::Result;
use crate::rma::Op;

/// A box of indices, and where its rows lie in a buffer.
pub(super) struct Area {
    pub lo: Vec<u64>,
    pub hi: Vec<u64>,
    /// Elements between neighbours of each dimension, in the buffer.
    steps: Vec<usize>,
}

impl Area {
    /// A box whose rows follow each other.
    pub fn packed(lo: &[u64], hi: &[u64]) -> Area {
        let mut steps = vec![1; lo.len()];
        for dim in (1..lo.len()).rev() {
            steps[dim - 1] = steps[dim] * (hi[dim] - lo[dim] + 1) as usize;
        }
        Area { lo: lo.to_vec(), hi: hi.to_vec(), steps }
    }
}

/// # Safety
/// `lo` and `hi` point to as many numbers as the array has dimensions, `ld` is null or points to
/// one fewer.
pub(super) unsafe fn area(core: &Core, ld: *const usize, lo: *const usize, hi: *const usize) -> Result<Area> {
    present(lo, "lo")?;
    present(hi, "hi")?;
    let dims = core.shape.dims().len();
    // SAFETY: by the caller.
    let numbers = |at: *const usize, count| unsafe { std::slice::from_raw_parts(at, count) };
    let wide = |at: *const usize| numbers(at, dims).iter().map(|index| *index as u64).collect::<Vec<_>>();
    let (lo, hi) = (wide(lo), wide(hi));
    core.shape.elements(&lo, &hi)?;
    let mut steps = vec![1; dims];
    for dim in (1..dims).rev() {
        let extent = (hi[dim] - lo[dim] + 1) as usize;
        let length = if ld.is_null() { extent } else { numbers(ld, dims - 1)[dim - 1] };
        if length < extent {
            return Err(refuse(format!("ld[{}] is {length}, and the range has {extent} elements there", dim - 1)));
        }
        steps[dim - 1] = steps[dim] * length;
    }
    Ok(Area { lo, hi, steps })
}

/// The first index of a range, 0 if there is none.
///
/// # Safety
/// `lo` is null or points to a number at least.
unsafe fn first(lo: *const usize) -> u64 {
    // SAFETY: by the caller.
    unsafe { lo.as_ref() }.map_or(0, |index| *index as u64)
}

/// Calls `each` for every row of the last dimension: first and last index, where it lies in the
/// buffer in elements, and how many it has.
pub(super) fn rows(area: &Area, mut each: impl FnMut(&[u64], &[u64], usize, usize) -> Result<()>) -> Result<()> {
    let last = area.lo.len() - 1;
    let count = (area.hi[last] - area.lo[last] + 1) as usize;
    let mut index = area.lo.clone();
    loop {
        let mut end = index.clone();
        end[last] = area.hi[last];
        let at =
            index.iter().zip(&area.lo).zip(&area.steps).map(|((index, lo), step)| (index - lo) as usize * step).sum();
        each(&index, &end, at, count)?;
        let Some(next) = (0..last).rev().find(|&dim| index[dim] < area.hi[dim]) else { return Ok(()) };
        index[next] += 1;
        index[next + 1..last].copy_from_slice(&area.lo[next + 1..last]);
    }
}

/// # Safety
/// As the header says of the arguments.
unsafe fn change(
    buf: *const c_void,
    ld: *const usize,
    lo: *const usize,
    hi: *const usize,
    gds: *const Gds,
    op: Option<Op>,
) -> Result<()> {
    present(buf, "the buffer")?;
    // SAFETY: by the caller.
    let gds = unsafe { array(gds)? };
    let core = &gds.member.core;
    if gds.at().is_some() {
        return Err(refuse("the handle is at an old version, which is read-only: call GDS_move_to_newest"));
    }
    // SAFETY: by the caller.
    let area = unsafe { area(core, ld, lo, hi) };
    // SAFETY: as above.
    let area = detected(gds, unsafe { first(lo) }, 0, area)?;
    let size = core.kind.bytes();
    let change = op.map_or(Change::Put, |op| Change::Combine(core.kind, op));
    rows(&area, |first, last, at, count| {
        // SAFETY: by the caller the buffer holds all rows of the box.
        let row = unsafe { std::slice::from_raw_parts(buf.cast::<u8>().add(at * size), count * size) };
        detected(gds, first[0], count as u64, core.change(first, last, row, change))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_put(
    buf: *mut c_void,
    ld: *mut usize,
    lo: *mut usize,
    hi: *mut usize,
    gds: *mut Gds,
) -> c_int {
    // SAFETY: by the header.
    answer(|| unsafe { change(buf, ld, lo, hi, gds, None) })
}

/// What a number of the header stands for.
pub(super) fn operation(op: c_int) -> Result<Op> {
    let ops = [Op::Sum, Op::Min, Op::Max, Op::Replace];
    let op = usize::try_from(op).ok().and_then(|op| ops.get(op).copied());
    op.ok_or_else(|| refuse("the operation is no GDS_op_t"))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_acc(
    buf: *mut c_void,
    ld: *mut usize,
    lo: *mut usize,
    hi: *mut usize,
    op: c_int,
    gds: *mut Gds,
) -> c_int {
    answer(|| {
        let op = operation(op)?;
        // SAFETY: by the header.
        unsafe { change(buf, ld, lo, hi, gds, Some(op)) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_get(
    buf: *mut c_void,
    ld: *mut usize,
    lo: *mut usize,
    hi: *mut usize,
    gds: *mut Gds,
) -> c_int {
    answer(|| {
        present(buf, "the buffer")?;
        // SAFETY: by the header.
        let (gds, area) = unsafe {
            let gds = array(gds)?;
            (gds, detected(gds, first(lo), 0, area(&gds.member.core, ld, lo, hi))?)
        };
        let (core, at) = (&gds.member.core, gds.at());
        let size = core.kind.bytes();
        rows(&area, |first, last, place, count| {
            // SAFETY: by the header the buffer holds all rows of the box.
            let row = unsafe { std::slice::from_raw_parts_mut(buf.cast::<u8>().add(place * size), count * size) };
            let done = match &at {
                None => core.read(first, last, row),
                Some((_, old)) => core.read_old(old, first, last, row),
            };
            detected(gds, first[0], count as u64, done)
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_compare_and_swap(
    expected: *mut c_void,
    replacement: *mut c_void,
    result: *mut c_void,
    index: *mut usize,
    gds: *mut Gds,
) -> c_int {
    answer(|| {
        for pointer in [expected, replacement, result] {
            present(pointer, "an element")?;
        }
        present(index, "the index")?;
        // SAFETY: by the header.
        unsafe {
            let gds = array(gds)?;
            let core = &gds.member.core;
            if core.kind.bytes() != 8 {
                return Err(refuse("GDS_compare_and_swap is for elements of 8 bytes: nothing was changed"));
            }
            let index: Vec<u64> =
                std::slice::from_raw_parts(index, core.shape.dims().len()).iter().map(|index| *index as u64).collect();
            let before = core.compare_and_swap(&index, word(expected), word(replacement))?;
            result.cast::<u64>().write_unaligned(before);
        }
        Ok(())
    })
}
