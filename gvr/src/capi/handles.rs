//! Handles: more than one of an array, and what they tell of it.

use std::ffi::{c_int, c_void};
use std::rc::Rc;

use super::state::{Gds, Member, array, with_world};
use super::status::{answer, refuse};
use super::{hand_out, kind, present, sizes};
use crate::array::{Change, Core, Options};
use crate::error::Result;

/// `GDS_TYPE`, `GDS_NUMBER_DIMENSIONS`, `GDS_COUNT`, `GDS_CHUNK_SIZE`: what the library says.
const TYPE: c_int = 0;
const DIMENSIONS: c_int = 1;
const COUNT: c_int = 2;
const CHUNK: c_int = 3;
/// `GVR_ATTR_APP`: from here on attributes are the program's.
const OWN: c_int = 100;

/// `GDS_local_to_global_func_t`
type Places = Option<unsafe extern "C" fn(usize, *mut usize)>;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_descriptor_clone(gds: *mut Gds, clone: *mut *mut Gds) -> c_int {
    // SAFETY: by the header.
    answer(|| unsafe {
        let gds = array(gds)?;
        hand_out(clone, || gds.another())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_get_comm(gds: *mut Gds, comm: *mut c_int) -> c_int {
    answer(|| {
        present(comm, "the communicator")?;
        // SAFETY: by the header.
        unsafe {
            array(gds)?;
            *comm = 0;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_set_attr(gds: *mut Gds, key: c_int, value: *mut c_void) -> c_int {
    answer(|| {
        // SAFETY: by the header.
        let gds = unsafe { array(gds)? };
        if key < OWN {
            return Err(refuse(format!("attribute {key} is the library's: a program's are from GVR_ATTR_APP on")));
        }
        gds.attributes.borrow_mut().insert(key, value as usize);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_get_attr(gds: *mut Gds, key: c_int, value: *mut c_void, flag: *mut c_int) -> c_int {
    answer(|| {
        present(value, "the value")?;
        present(flag, "the flag")?;
        // SAFETY: by the header.
        let gds = unsafe { array(gds)? };
        let core = &gds.member.core;
        let numbers: Vec<usize> = match key {
            TYPE => vec![core.kind as usize],
            DIMENSIONS => vec![core.shape.dims().len()],
            COUNT => core.shape.dims().iter().map(|count| *count as usize).collect(),
            CHUNK => vec![core.geometry.block as usize],
            own => gds.attributes.borrow().get(&own).copied().into_iter().collect(),
        };
        // SAFETY: by the header there is room for a number, of counts for one of each dimension.
        unsafe {
            *flag = c_int::from(!numbers.is_empty());
            for (at, number) in numbers.into_iter().enumerate() {
                value.cast::<usize>().add(at).write_unaligned(number);
            }
        }
        Ok(())
    })
}

/// Puts a program's elements where it says that they belong.
///
/// # Safety
/// `buffer` holds `count` elements, and `place` fills as many indices as there are dimensions.
unsafe fn place_all(core: &Core, place: Places, buffer: *const c_void, count: usize) -> Result<()> {
    let (size, dims) = (core.kind.bytes(), core.shape.dims().len());
    let place = place.ok_or_else(|| refuse("the function that says where local elements belong is null"))?;
    for element in 0..count {
        let mut index = vec![0_usize; dims];
        // SAFETY: by the caller.
        let data = unsafe {
            place(element, index.as_mut_ptr());
            std::slice::from_raw_parts(buffer.cast::<u8>().add(element * size), size)
        };
        let index: Vec<u64> = index.into_iter().map(|index| index as u64).collect();
        core.change(&index, &index, data, Change::Put)?;
    }
    core.wait()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_create(
    ndims: usize,
    counts: *const usize,
    datatype: c_int,
    _global_to_local: *const c_void,
    local_to_global: Places,
    buffer: *mut c_void,
    count: usize,
    _priority: c_int,
    _comm: c_int,
    _info: c_int,
    gds: *mut *mut Gds,
) -> c_int {
    answer(|| {
        // SAFETY: by the header.
        unsafe {
            let (dims, kind) = (sizes(ndims, counts)?, kind(datatype)?);
            hand_out(gds, || {
                let core = with_world(|world| Core::new(Rc::clone(&world.world.rma), &dims, kind, Options::default()))?;
                let placed = if count == 0 {
                    Ok(())
                } else {
                    present(buffer, "the buffer").and_then(|()| place_all(&core, local_to_global, buffer, count))
                };
                // The others come here, whatever this rank's elements were.
                core.rma.barrier()?;
                if placed.is_err() {
                    core.acknowledge();
                }
                placed?;
                Ok(Gds::new(Member { core: Rc::new(core), job: None }))
            })
        }
    })
}
