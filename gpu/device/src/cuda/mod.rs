//! A GPU through the CUDA driver, which is loaded when the first device is opened.

mod aside;
mod modules;
mod pinned;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::time::Duration;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use crate::device::{Aside, Attached, Counts, Device, Elapsed, Measured, check_range};
use crate::error::Error;
use crate::kernel::{Argument, Kernel, Launch};
use crate::medium::{Medium, Pinnable};

/// A GPU. It belongs to the thread that opened it, which may have opened others, too.
pub struct Cuda {
    device: sys::CUdevice,
    context: sys::CUcontext,
    stream: sys::CUstream,
    /// Of what is launched beside.
    beside: sys::CUstream,
    /// Copies that go on beside the work of the others, and the events that say when they have
    /// happened.
    copies: sys::CUstream,
    asides: RefCell<HashMap<u64, sys::CUevent>>,
    next_aside: Cell<u64>,
    events: [sys::CUevent; 2],
    /// By which the streams wait for each other.
    turn: sys::CUevent,
    name: String,
    modules: RefCell<HashMap<u64, sys::CUmodule>>,
    functions: RefCell<HashMap<(u64, &'static str), sys::CUfunction>>,
    attached: Cell<usize>,
}

fn refused(what: impl Into<String>) -> impl FnOnce(DriverError) -> Error {
    let what = what.into();
    move |error| {
        let why = match (error.error_name(), error.error_string()) {
            (Ok(name), Ok(text)) => format!("{}: {}", name.to_string_lossy(), text.to_string_lossy()),
            _ => format!("{error:?}"),
        };
        Error::Driver { what, why }
    }
}

impl Cuda {
    /// Opens a GPU, numbered from 0.
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::NoCard`], or what the driver refuses.
    pub fn open(ordinal: usize) -> Result<Cuda, Error> {
        // SAFETY: it loads the driver's library by name and looks whether that went well.
        if !unsafe { sys::is_culib_present() } {
            return Err(Error::NoDriver);
        }
        result::init().map_err(refused("start"))?;
        let count = result::device::get_count().map_err(refused("count its GPUs"))? as usize;
        if ordinal >= count {
            return Err(Error::NoCard { ordinal, count });
        }
        let device = result::device::get(ordinal as i32).map_err(refused("open the GPU"))?;
        // SAFETY: the driver was started and gave the device.
        let context = unsafe {
            let context = result::primary_ctx::retain(device).map_err(refused("make a context"))?;
            result::ctx::set_current(context).map_err(refused("use the context"))?;
            context
        };
        let stream =
            || result::stream::create(result::stream::StreamKind::NonBlocking).map_err(refused("make a stream"));
        let event = || result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(refused("make an event"));
        let name = result::device::get_name(device).map_err(refused("name the GPU"))?;
        Ok(Cuda {
            device,
            context,
            stream: stream()?,
            beside: stream()?,
            copies: stream()?,
            asides: RefCell::default(),
            next_aside: Cell::new(0),
            events: [event()?, event()?],
            turn: event()?,
            name,
            modules: RefCell::default(),
            functions: RefCell::default(),
            attached: Cell::new(0),
        })
    }

    /// The driver's calls go to the context that the thread used last: it may have opened several
    /// GPUs.
    fn current(&self) -> Result<(), Error> {
        // SAFETY: the context is retained until this device is dropped.
        unsafe { result::ctx::set_current(self.context) }.map_err(refused("use the context"))
    }

    /// Multiprocessors of the GPU.
    ///
    /// # Errors
    /// What the driver refuses.
    pub fn multiprocessors(&self) -> Result<u32, Error> {
        let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        // SAFETY: the device is open.
        let count = unsafe { result::device::get_attribute(self.device, attribute) };
        count.map(|count| count as u32).map_err(refused("count multiprocessors"))
    }

    /// What is given to `later` from now on waits for what was given to `earlier`.
    fn order(&self, earlier: sys::CUstream, later: sys::CUstream) -> Result<(), Error> {
        self.current()?;
        // SAFETY: event and streams were made by this device.
        unsafe {
            result::event::record(self.turn, earlier).map_err(refused("order its work"))?;
            sys::cuStreamWaitEvent(later, self.turn, 0).result().map_err(refused("order its work"))
        }
    }

    fn finish(&self, stream: sys::CUstream) -> Result<(), Error> {
        self.current()?;
        // SAFETY: the stream was made by this device.
        unsafe { result::stream::synchronize(stream) }.map_err(refused("finish what it was given"))
    }

    fn launch_in(&self, stream: sys::CUstream, kernel: Kernel<'_>, launch: &Launch) -> Result<(), Error> {
        self.current()?;
        let function = self.function(kernel)?;
        let mut values: Vec<u64> = launch
            .arguments
            .iter()
            .map(|argument| match *argument {
                Argument::U32(value) => value.into(),
                Argument::U64(value) => value,
                Argument::F32(value) => value.to_bits().into(),
            })
            .collect();
        // The driver takes as many bytes as the kernel's parameter has, from the little end.
        let mut pointers: Vec<*mut c_void> = values.iter_mut().map(|value| std::ptr::from_mut(value).cast()).collect();
        let (grid, block) = ((launch.blocks, 1, 1), (launch.threads, 1, 1));
        // SAFETY: the function belongs to a module that stays loaded. What the kernel does with its
        // arguments is its own: kernels of this library stay inside of the memory that they are
        // given.
        unsafe { result::launch_kernel(function, grid, block, 0, stream, &mut pointers) }
            .map_err(refused(format!("launch {}", kernel.entry)))
    }

    /// Waits for everything, copies that go on included.
    fn settle(&self) -> Result<(), Error> {
        self.synchronize()?;
        // SAFETY: the stream was made by this device.
        unsafe { result::stream::synchronize(self.copies) }.map_err(refused("finish copies"))
    }
}

impl Device for Cuda {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn allocate(&self, bytes: u64) -> Result<u64, Error> {
        self.current()?;
        // SAFETY: it takes a size and gives an address.
        unsafe { result::malloc_sync(bytes.max(1) as usize) }.map_err(|error| {
            let (free, total) = result::mem_get_info().unwrap_or_default();
            match error.0 {
                sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                    Error::OutOfMemory { device: self.name(), needed: bytes, free: free as u64, total: total as u64 }
                }
                _ => refused("allocate memory")(error),
            }
        })
    }

    fn free(&self, address: u64) -> Result<(), Error> {
        self.settle()?;
        // SAFETY: the driver refuses an address that it has not given, and no kernel runs.
        unsafe { result::free_sync(address) }.map_err(refused("free memory"))
    }

    fn upload(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.current()?;
        // In the stream of the kernels: the driver's own waiting copy of pageable bytes returns
        // when they are in a buffer of the driver's, and a kernel of another stream may run before
        // they have arrived.
        // SAFETY: the driver refuses addresses that it has not given; the bytes outlive the copy,
        // which is waited for.
        unsafe { result::memcpy_htod_async(address, bytes, self.stream) }.map_err(refused("copy to the GPU"))?;
        self.finish(self.stream)
    }

    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.current()?;
        // SAFETY: as for upload.
        unsafe { result::memcpy_dtoh_async(bytes, address, self.stream) }.map_err(refused("copy from the GPU"))?;
        self.finish(self.stream)
    }

    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        self.current()?;
        // SAFETY: the driver refuses addresses that it has not given or pinned.
        unsafe { sys::cuMemcpyAsync(to, from, bytes as usize, self.stream).result() }.map_err(refused("copy"))
    }

    fn copy_aside(&self, to: u64, from: u64, bytes: u64) -> Result<Aside, Error> {
        self.begin_aside(to, from, bytes)
    }

    fn wait_aside(&self, copy: Aside) -> Result<(), Error> {
        self.end_aside(copy)
    }

    fn fill(&self, address: u64, byte: u8, bytes: u64) -> Result<(), Error> {
        self.current()?;
        // SAFETY: the driver refuses addresses that it has not given or pinned.
        unsafe { result::memset_d8_async(address, byte, bytes as usize, self.stream) }.map_err(refused("fill memory"))
    }

    fn attach(&self, medium: &Medium) -> Result<Attached, Error> {
        if let (false, Pinnable::No(filesystem)) = (medium.is_for_reading(), medium.pinnable()) {
            return Err(Error::NotPinnable { path: medium.path().to_owned(), filesystem });
        }
        self.current()?;
        pinned::pin(medium.bytes(), medium.is_for_reading())?;
        let number = self.attached.replace(self.attached.get() + 1);
        Ok(Attached { address: medium.bytes().as_ptr() as u64, bytes: medium.bytes().len() as u64, number })
    }

    fn detach(&self, _: Attached, medium: &mut Medium) -> Result<(), Error> {
        self.settle()?;
        pinned::unpin(medium.bytes())
    }

    fn pm_read(&self, pm: &Attached, medium: &Medium, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        check_range(pm, offset, bytes.len())?;
        self.synchronize()?;
        bytes.copy_from_slice(&medium.bytes()[offset as usize..][..bytes.len()]);
        Ok(())
    }

    fn pm_write(&self, pm: &Attached, medium: &mut Medium, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        check_range(pm, offset, bytes.len())?;
        self.synchronize()?;
        let place = &mut medium.bytes_mut()[offset as usize..][..bytes.len()];
        match <[u8; 8]>::try_from(bytes) {
            Ok(word) if place.as_ptr().addr().is_multiple_of(8) => {
                // SAFETY: the place has eight bytes, is aligned to eight, and is borrowed
                // exclusively.
                let atomic = unsafe { std::sync::atomic::AtomicU64::from_ptr(place.as_mut_ptr().cast()) };
                atomic.store(u64::from_le_bytes(word), std::sync::atomic::Ordering::Release);
            }
            _ => place.copy_from_slice(bytes),
        }
        crate::flush::persist(place);
        Ok(())
    }

    fn launch(&self, kernel: Kernel<'_>, launch: &Launch) -> Result<(), Error> {
        self.launch_in(self.stream, kernel, launch)
    }

    fn launch_beside(&self, kernel: Kernel<'_>, launch: &Launch) -> Result<(), Error> {
        self.order(self.stream, self.beside)?;
        self.launch_in(self.beside, kernel, launch)
    }

    fn join(&self) -> Result<(), Error> {
        self.order(self.beside, self.stream)
    }

    fn synchronize(&self) -> Result<(), Error> {
        self.finish(self.beside)?;
        self.finish(self.stream)
    }

    fn time(&self, work: &mut dyn FnMut() -> Result<(), Error>) -> Result<Elapsed, Error> {
        self.synchronize()?;
        let [start, end] = self.events;
        // SAFETY: events and stream were made by this device.
        unsafe { result::event::record(start, self.stream) }.map_err(refused("take the time"))?;
        work()?;
        // SAFETY: as above; the end is waited for before the two are compared.
        let milliseconds = unsafe {
            result::event::record(end, self.stream).map_err(refused("take the time"))?;
            result::event::synchronize(end).map_err(refused("finish what it was given"))?;
            result::event::elapsed(start, end).map_err(refused("tell the time"))?
        };
        Ok(Elapsed { time: Duration::from_secs_f64(f64::from(milliseconds) / 1e3), source: Measured::Device })
    }

    fn counts(&self) -> Option<Counts> {
        None
    }

    fn free_memory(&self) -> Result<u64, Error> {
        self.current()?;
        result::mem_get_info().map(|(free, _)| free as u64).map_err(refused("tell its free memory"))
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // SAFETY: all of it was made by this device, and nothing of it is used again. Nobody is
        // there to be told of errors.
        unsafe {
            let _ = result::ctx::set_current(self.context);
            let _ = result::stream::synchronize(self.beside);
            let _ = result::stream::synchronize(self.stream);
            let _ = result::stream::synchronize(self.copies);
            self.asides.borrow().values().for_each(|&event| {
                let _ = result::event::destroy(event);
            });
            let _ = result::stream::destroy(self.copies);
            self.modules.borrow().values().for_each(|&module| {
                let _ = result::module::unload(module);
            });
            self.events.iter().for_each(|&event| {
                let _ = result::event::destroy(event);
            });
            let _ = result::event::destroy(self.turn);
            let _ = result::stream::destroy(self.beside);
            let _ = result::stream::destroy(self.stream);
            let _ = result::primary_ctx::release(self.device);
        }
    }
}
