//! Memory of the device, copies and launches: what a CUDA program has of the runtime.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};

use nearpm_gpu::{Argument, Buffer, Kernel, Launch, Module};

use crate::error::{Refusal, call, status};
use crate::library::{text, unknown, with};
use crate::primitives::{copy_in, copy_out};

/// Memory of the device, zeroed.
#[unsafe(no_mangle)]
pub extern "C" fn gpm_alloc(size: usize) -> *mut c_void {
    call(std::ptr::null_mut(), || {
        with(|library| {
            let buffer = Buffer::zeroed(&library.device, size as u64)?;
            let address = buffer.address();
            library.memory.insert(address, buffer);
            Ok(std::ptr::with_exposed_provenance_mut(address as usize))
        })
    })
}

/// Gives memory back.
#[unsafe(no_mangle)]
pub extern "C" fn gpm_free(address: *mut c_void) -> c_int {
    status(|| {
        let address = address as u64;
        with(|library| library.memory.remove(&address).map(drop).ok_or_else(|| unknown(address, "memory")))
    })
}

fn refuse_null(pointer: *const c_void, size: usize) -> Result<(), Refusal> {
    match pointer.is_null() && size > 0 {
        true => Err(Refusal("the processor's memory is a null pointer".to_owned())),
        false => Ok(()),
    }
}

/// Copies to the device or to persistent memory.
///
/// # Safety
/// `from` is null, or has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpm_write(to: *mut c_void, from: *const c_void, size: usize) -> c_int {
    status(|| {
        refuse_null(from, size)?;
        if size == 0 {
            return Ok(());
        }
        // SAFETY: it is not null, and has as many bytes as the caller says.
        let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), size) };
        with(|library| copy_in(library, to as u64, bytes))
    })
}

/// Copies from the device or from persistent memory.
///
/// # Safety
/// `to` is null, or has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpm_read(to: *mut c_void, from: *const c_void, size: usize) -> c_int {
    status(|| {
        refuse_null(to, size)?;
        if size == 0 {
            return Ok(());
        }
        let mut bytes = vec![0; size];
        with(|library| copy_out(library, from as u64, &mut bytes))?;
        // SAFETY: it is not null, and has room for as many bytes as the caller says; ours are new,
        // so that they do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast::<u8>(), size) };
        Ok(())
    })
}

/// `gpm_argument` of `nearpm_gpm.h`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GpmArgument {
    kind: c_int,
    /// A union of at most 8 bytes, the little end first.
    value: u64,
}

fn argument(given: &GpmArgument) -> Result<Argument, Refusal> {
    match given.kind {
        0 => Ok(Argument::U32(given.value as u32)),
        1 | 3 => Ok(Argument::U64(given.value)),
        2 => Ok(Argument::F32(f32::from_bits(given.value as u32))),
        kind => Err(Refusal(format!("{kind} is no kind of an argument"))),
    }
}

thread_local! {
    /// Names of kernels, which modules keep for ever: each is kept once.
    static NAMES: std::cell::RefCell<HashMap<String, &'static str>> = std::cell::RefCell::default();
}

fn kept(name: &str) -> &'static str {
    NAMES.with_borrow_mut(|names| match names.get(name) {
        Some(name) => name,
        None => {
            let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
            names.insert(name.to_owned(), kept);
            kept
        }
    })
}

/// Runs a kernel and waits for it.
///
/// # Safety
/// `ptx` and `kernel` are null or strings that end with a zero; `arguments` is null or has `count`
/// arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpm_launch(
    ptx: *const c_char,
    kernel: *const c_char,
    blocks: u32,
    threads: u32,
    arguments: *const GpmArgument,
    count: usize,
) -> c_int {
    status(|| {
        // SAFETY: as the caller says.
        let (ptx, kernel) = unsafe { (text(ptx, "the module")?, text(kernel, "the kernel's name")?) };
        refuse_null(arguments.cast(), count)?;
        let given = match count {
            0 => &[],
            // SAFETY: it is not null, and has as many as the caller says.
            _ => unsafe { std::slice::from_raw_parts(arguments, count) },
        };
        let arguments = given.iter().map(argument).collect::<Result<Vec<_>, _>>()?;
        let module = Module::new("a module of the program", ptx.to_owned());
        with(|library| {
            let kernel = Kernel { module: &module, entry: kept(kernel) };
            library.device.launch(kernel, &Launch { blocks, threads, arguments })?;
            Ok(library.device.synchronize()?)
        })
    })
}
