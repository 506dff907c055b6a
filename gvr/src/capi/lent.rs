//! Elements that are read and changed in one call, and buffers that are lent.

use std::ffi::{c_int, c_void};
use std::rc::Rc;

use super::access::{area, rows};
use super::present;
use super::state::{Gds, array};
use super::status::{answer, refuse};
use crate::array::{Change, Core};
use crate::error::Result;
use crate::rma::Op;

/// `GDS_ACCESS_BUFFER_DIRECT`
const DIRECT: c_int = 1;

/// A box of elements, as a program has it in its hands.
pub struct Lent {
    core: Rc<Core>,
    lo: Vec<u64>,
    hi: Vec<u64>,
    /// It is of an old version.
    old: bool,
    before: Vec<u64>,
    /// What the program was given: words, so that elements of each type are aligned.
    now: Vec<u64>,
}

impl Lent {
    fn take(gds: &Gds, lo: Vec<u64>, hi: Vec<u64>) -> Result<Lent> {
        let core = &gds.member.core;
        let bytes = core.shape.elements(&lo, &hi)? as usize * core.kind.bytes();
        let mut now = vec![0_u64; bytes.div_ceil(8)];
        let data = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut now)[..bytes];
        let at = gds.at();
        match &at {
            None => core.read(&lo, &hi, data)?,
            Some((_, old)) => core.read_old(old, &lo, &hi, data)?,
        }
        Ok(Lent { core: Rc::clone(core), lo, hi, old: at.is_some(), before: now.clone(), now })
    }

    /// Stores what the program has changed, and nothing beside it, which others may have changed.
    fn give_back(&self) -> Result<()> {
        if self.before == self.now {
            return Ok(());
        }
        if self.old {
            return Err(refuse("the buffer was of an old version, which is read-only: nothing was stored"));
        }
        let size = self.core.kind.bytes();
        let (now, before) = (bytemuck::cast_slice::<u64, u8>(&self.now), bytemuck::cast_slice::<u64, u8>(&self.before));
        let area = super::access::Area::packed(&self.lo, &self.hi);
        let last = self.lo.len() - 1;
        rows(&area, |first, _, at, count| {
            let differs = |element: usize| {
                let bytes = (at + element) * size..(at + element + 1) * size;
                now[bytes.clone()] != before[bytes]
            };
            let mut element = 0;
            while let Some(start) = (element..count).find(|element| differs(*element)) {
                let end = (start..count).find(|element| !differs(*element)).unwrap_or(count);
                let (mut lo, mut hi) = (first.to_vec(), first.to_vec());
                (lo[last], hi[last]) = (first[last] + start as u64, first[last] + end as u64 - 1);
                self.core.change(&lo, &hi, &now[(at + start) * size..(at + end) * size], Change::Put)?;
                element = end;
            }
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_access(
    gds: *mut Gds,
    lo: *mut usize,
    hi: *mut usize,
    buffer_type: c_int,
    buffer: *mut *mut c_void,
    handle: *mut *mut Lent,
) -> c_int {
    answer(|| {
        present(buffer, "the place of the buffer")?;
        present(handle, "the place of the handle")?;
        if buffer_type == DIRECT {
            return Err(refuse(
                "blocks of a log lie where they were written last: take GDS_ACCESS_BUFFER_ANY or _COPY",
            ));
        }
        // SAFETY: by the header.
        unsafe {
            let gds = array(gds)?;
            let area = area(&gds.member.core, std::ptr::null(), lo, hi)?;
            let mut lent = Box::new(Lent::take(gds, area.lo, area.hi)?);
            *buffer = lent.now.as_mut_ptr().cast();
            *handle = Box::into_raw(lent);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_release(handle: *mut *mut Lent) -> c_int {
    answer(|| {
        present(handle, "the place of the handle")?;
        // SAFETY: by the header, it points to a handle of `GDS_access`, or to null once that was
        // given back.
        let lent = unsafe { std::mem::replace(&mut *handle, std::ptr::null_mut()) };
        present(lent, "the handle")?;
        // SAFETY: it comes from `GDS_access`, and was not given back before.
        unsafe { Box::from_raw(lent) }.give_back()
    })
}

/// Combines an element with one that is there, and gives what was.
fn swap_in(core: &Core, index: &[u64], op: Op, new: u64) -> Result<u64> {
    let mut bytes = [0; 8];
    core.read(index, index, &mut bytes)?;
    let mut old = u64::from_le_bytes(bytes);
    loop {
        let seen = core.compare_and_swap(index, old, core.kind.combine(op, old, new))?;
        if seen == old {
            return Ok(old);
        }
        old = seen;
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_get_acc(
    buf: *mut c_void,
    buf_ld: *mut usize,
    result: *mut c_void,
    result_ld: *mut usize,
    lo: *mut usize,
    hi: *mut usize,
    op: c_int,
    gds: *mut Gds,
) -> c_int {
    answer(|| {
        present(buf, "the buffer")?;
        present(result, "the buffer of the result")?;
        let op = super::access::operation(op)?;
        // SAFETY: by the header.
        let gds = unsafe { array(gds)? };
        let core = &gds.member.core;
        if gds.at().is_some() || core.kind.bytes() != 8 {
            return Err(refuse("GDS_get_acc is for the current version, and elements of 8 bytes: nothing was changed"));
        }
        // SAFETY: by the header.
        let (from, to) = unsafe { (area(core, buf_ld, lo, hi)?, area(core, result_ld, lo, hi)?) };
        let mut places = Vec::new();
        rows(&to, |_, _, place, _| {
            places.push(place);
            Ok(())
        })?;
        let mut places = places.into_iter();
        rows(&from, |first, _, at, count| {
            let place = places.next().unwrap_or(0);
            let mut index = first.to_vec();
            for element in 0..count {
                // SAFETY: by the header the buffers hold all rows of the box.
                unsafe {
                    let new = buf.cast::<u64>().add(at + element).read_unaligned();
                    let old = swap_in(core, &index, op, new)?;
                    result.cast::<u64>().add(place + element).write_unaligned(old);
                }
                index[first.len() - 1] += 1;
            }
            Ok(())
        })
    })
}
