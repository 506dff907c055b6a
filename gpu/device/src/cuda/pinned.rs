//! Memory of the processor that kernels store to.

use std::ffi::c_void;

use cudarc::driver::sys;

use super::refused;
use crate::error::Error;

/// Bytes that are pinned in one call: drivers of the 580 series refuse 512 GiB and more at once.
const PIECE: usize = 16 << 30;

/// Pins bytes, so that kernels see them at the addresses that the processor has.
///
/// `for_reading`: they may only load, so that pages of files on disks can be pinned, too.
///
/// # Errors
/// What the driver refuses: nothing is pinned then.
pub(super) fn pin(bytes: &[u8], for_reading: bool) -> Result<(), Error> {
    for (done, piece) in bytes.chunks(PIECE).enumerate() {
        if let Err(error) = pin_piece(piece, bytes.len(), for_reading) {
            unpin(&bytes[..done * PIECE])?;
            return Err(error);
        }
    }
    Ok(())
}

fn pin_piece(piece: &[u8], all: usize, for_reading: bool) -> Result<(), Error> {
    let reading = if for_reading { sys::CU_MEMHOSTREGISTER_READ_ONLY } else { 0 };
    let flags = sys::CU_MEMHOSTREGISTER_DEVICEMAP | sys::CU_MEMHOSTREGISTER_PORTABLE | reading;
    // SAFETY: the piece is mapped, and stays so until it is unpinned: detaching comes before the
    // medium is dropped.
    unsafe { sys::cuMemHostRegister_v2(piece.as_ptr() as *mut c_void, piece.len(), flags).result() }
        .map_err(refused(format!("pin {all} bytes of persistent memory")))?;
    let mut address = 0;
    // SAFETY: the piece was pinned above.
    let told = unsafe { sys::cuMemHostGetDevicePointer_v2(&mut address, piece.as_ptr() as *mut c_void, 0).result() };
    let error = match told {
        Ok(()) if address == piece.as_ptr() as u64 => return Ok(()),
        Ok(()) => Error::Invalid("this GPU maps host memory at other addresses than the processor".to_owned()),
        Err(error) => refused("tell where persistent memory is mapped")(error),
    };
    unpin(piece)?;
    Err(error)
}

/// Unpins what [`pin`] has pinned.
///
/// # Errors
/// What the driver refuses.
pub(super) fn unpin(bytes: &[u8]) -> Result<(), Error> {
    bytes.chunks(PIECE).try_for_each(|piece| {
        // SAFETY: the piece was pinned by `pin`, in the same parts.
        unsafe { sys::cuMemHostUnregister(piece.as_ptr() as *mut c_void).result() }
            .map_err(refused("unpin persistent memory"))
    })
}
