//! Kernels as the processor's C++ compiler understands them: a second oracle for what the
//! interpreter computes from PTX. Nothing can be crashed here.
//!
//! The source of a module is `NAME.cu` in a folder; g++ compiles it behind `shim.h`, in which each
//! thread of a block is a fiber.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::device::{Aside, Attached, Counts, Device, Elapsed, Measured, check_range};
use crate::error::Error;
use crate::kernel::{Argument, Kernel, Launch};
use crate::medium::Medium;

/// Integers and floats of a launch: `shim.h`.
const INTEGERS: usize = 14;
const FLOATS: usize = 4;
/// Alignment of memory: that of PM.
const ALIGNMENT: usize = 4096;

/// `shim_launch` of `shim.h`.
type Launcher = unsafe extern "C" fn(*mut c_void, u32, u32, *const u64, *const f32);

/// Zeroed memory of its own, which kernels follow pointers to.
struct Block {
    start: *mut u8,
    layout: Layout,
    bytes: u64,
}

impl Block {
    fn new(bytes: u64) -> Result<Block, Error> {
        let invalid = || Error::Invalid(format!("{bytes} bytes are too many"));
        let size = usize::try_from(bytes.max(1)).map_err(|_| invalid())?;
        let layout = Layout::from_size_align(size, ALIGNMENT).map_err(|_| invalid())?;
        // SAFETY: the size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() { Err(invalid()) } else { Ok(Block { start, layout, bytes }) }
    }

    /// The place of a range, if it lies inside.
    fn place(&self, address: u64, bytes: u64) -> Option<*mut u8> {
        let offset = address.checked_sub(self.start.expose_provenance() as u64)?;
        (offset.checked_add(bytes)? <= self.bytes).then(|| self.start.wrapping_add(offset as usize))
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and nobody uses it any more: kernels have
        // ended when a launch returns.
        unsafe { dealloc(self.start, self.layout) };
    }
}

/// A module that was compiled and loaded; it stays so.
#[derive(Clone, Copy)]
struct Loaded {
    library: *mut c_void,
    launch: Launcher,
}

/// The processor in the place of a GPU.
pub struct Compiled {
    sources: PathBuf,
    /// Where modules are compiled: a folder of this device's own.
    folder: PathBuf,
    /// What was compiled, by the module's name.
    loaded: RefCell<BTreeMap<String, Loaded>>,
    memory: RefCell<BTreeMap<u64, Block>>,
    attached: RefCell<Vec<Option<Block>>>,
}

fn refuse(module: &str, why: impl Into<String>) -> Error {
    Error::Module { module: module.to_owned(), why: why.into() }
}

/// What the loader says went wrong.
fn loader_error() -> String {
    // SAFETY: it gives null or a string that ends with a zero, which is copied before the next call
    // of the loader.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() { String::new() } else { std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned() }
    }
}

impl Compiled {
    /// A device for modules whose sources are in a folder.
    pub fn new(sources: &Path) -> Compiled {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Compiled {
            sources: sources.to_owned(),
            folder: std::env::temp_dir().join(format!("nearpm-compiled-{}-{number}", std::process::id())),
            loaded: RefCell::default(),
            memory: RefCell::default(),
            attached: RefCell::default(),
        }
    }

    /// Compiles a module: g++ has to be installed.
    fn build(&self, name: &str) -> Result<PathBuf, Error> {
        let source = self.sources.join(format!("{name}.cu"));
        let folder = &self.folder;
        let system = |error| Error::system("write to", folder, error);
        std::fs::create_dir_all(folder).map_err(system)?;
        let (shim, library) = (folder.join("shim.h"), folder.join(format!("{name}.so")));
        std::fs::write(&shim, include_str!("shim.h")).map_err(system)?;
        // As NVRTC is told not to join a product and a sum, so that floats are the same bits; CUDA
        // knows no strict aliasing.
        let options = [
            "-std=c++17",
            "-O1",
            "-ffp-contract=off",
            "-fno-strict-aliasing",
            "-fno-gnu-unique",
            "-w",
            "-fPIC",
            "-shared",
            "-xc++",
        ];
        let mut compiler = Command::new("g++");
        compiler.args(options).arg("-I").arg(&self.sources).arg("-include").arg(&shim);
        let output = compiler.arg(&source).arg("-o").arg(&library).output();
        let output = output.map_err(|error| refuse(name, format!("g++ does not run: {error}")))?;
        match output.status.success() {
            true => Ok(library),
            false => Err(refuse(name, String::from_utf8_lossy(&output.stderr).into_owned())),
        }
    }

    fn load(&self, name: &str) -> Result<Loaded, Error> {
        if let Some(&loaded) = self.loaded.borrow().get(name) {
            return Ok(loaded);
        }
        let path = self.build(name)?;
        let text = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|_| refuse(name, "a zero in its path"))?;
        // SAFETY: the path ends with a zero; what runs when it is loaded is the C++ library's own.
        let library = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err(refuse(name, loader_error()));
        }
        let found = symbol(library, "shim_launch").ok_or_else(|| refuse(name, "it has no launcher"))?;
        // SAFETY: the shim declares the function so.
        let launch = unsafe { std::mem::transmute::<*mut c_void, Launcher>(found) };
        let loaded = Loaded { library, launch };
        self.loaded.borrow_mut().insert(name.to_owned(), loaded);
        Ok(loaded)
    }

    /// The place of a range of memory or PM.
    fn place(&self, address: u64, bytes: u64) -> Result<*mut u8, Error> {
        let memory = self.memory.borrow();
        let in_memory = memory.range(..=address).next_back().and_then(|(_, block)| block.place(address, bytes));
        let attached = self.attached.borrow();
        let in_pm = || attached.iter().flatten().find_map(|block| block.place(address, bytes));
        in_memory
            .or_else(in_pm)
            .ok_or_else(|| Error::Invalid(format!("{bytes} bytes at {address:#x} are no memory of this device")))
    }

    fn in_pm(&self, pm: &Attached, offset: u64, bytes: usize) -> Result<*mut u8, Error> {
        check_range(pm, offset, bytes)?;
        self.place(pm.address + offset, bytes as u64)
    }
}

fn symbol(library: *mut c_void, name: &str) -> Option<*mut c_void> {
    let name = CString::new(name).ok()?;
    // SAFETY: the library is loaded and stays so; the name ends with a zero.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

impl Device for Compiled {
    fn name(&self) -> String {
        "kernels compiled for the processor (no GPU)".to_owned()
    }

    fn allocate(&self, bytes: u64) -> Result<u64, Error> {
        let block = Block::new(bytes)?;
        let address = block.start.expose_provenance() as u64;
        self.memory.borrow_mut().insert(address, block);
        Ok(address)
    }

    fn free(&self, address: u64) -> Result<(), Error> {
        let found = self.memory.borrow_mut().remove(&address);
        found.map(drop).ok_or_else(|| Error::Invalid(format!("{address:#x} was not allocated")))
    }

    fn upload(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        let place = self.place(address, bytes.len() as u64)?;
        // SAFETY: the place has that many bytes, which no reference of Rust is to.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        Ok(())
    }

    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let place = self.place(address, bytes.len() as u64)?;
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(place, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        let (to, from) = (self.place(to, bytes)?, self.place(from, bytes)?);
        // SAFETY: both have that many bytes; they may overlap.
        unsafe { std::ptr::copy(from, to, bytes as usize) };
        Ok(())
    }

    fn copy_aside(&self, to: u64, from: u64, bytes: u64) -> Result<Aside, Error> {
        self.copy(to, from, bytes).map(|()| Aside(0))
    }

    fn wait_aside(&self, _: Aside) -> Result<(), Error> {
        Ok(())
    }

    fn fill(&self, address: u64, byte: u8, bytes: u64) -> Result<(), Error> {
        let place = self.place(address, bytes)?;
        // SAFETY: the place has that many bytes.
        unsafe { std::ptr::write_bytes(place, byte, bytes as usize) };
        Ok(())
    }

    fn attach(&self, medium: &Medium) -> Result<Attached, Error> {
        let block = Block::new(medium.bytes().len() as u64)?;
        let (address, bytes) = (block.start.expose_provenance() as u64, block.bytes);
        // SAFETY: the block is as large as the medium, and new.
        unsafe { std::ptr::copy_nonoverlapping(medium.bytes().as_ptr(), block.start, medium.bytes().len()) };
        let mut attached = self.attached.borrow_mut();
        attached.push(Some(block));
        Ok(Attached { address, bytes, number: attached.len() - 1 })
    }

    fn detach(&self, attached: Attached, medium: &mut Medium) -> Result<(), Error> {
        let mut left = vec![0; attached.bytes as usize];
        self.download(attached.address, &mut left)?;
        medium.give_back(&left)?;
        self.attached.borrow_mut()[attached.number] = None;
        Ok(())
    }

    fn pm_read(&self, pm: &Attached, _: &Medium, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let place = self.in_pm(pm, offset, bytes.len())?;
        self.download(place.expose_provenance() as u64, bytes)
    }

    fn pm_write(&self, pm: &Attached, _: &mut Medium, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let place = self.in_pm(pm, offset, bytes.len())?;
        self.upload(place.expose_provenance() as u64, bytes)
    }

    fn launch(&self, kernel: Kernel<'_>, launch: &Launch) -> Result<(), Error> {
        let name = kernel.module.name();
        let loaded = self.load(name)?;
        let entry = symbol(loaded.library, kernel.entry).ok_or_else(|| refuse(name, format!("no {}", kernel.entry)))?;
        let (mut integers, mut floats) = (Vec::new(), Vec::new());
        for argument in &launch.arguments {
            match *argument {
                Argument::U32(value) => integers.push(value.into()),
                Argument::U64(value) => integers.push(value),
                Argument::F32(value) => floats.push(value),
            }
        }
        let shaped = launch.blocks > 0 && (1..=1024).contains(&launch.threads);
        if integers.len() > INTEGERS || floats.len() > FLOATS || !shaped {
            return Err(Error::Invalid(format!("{} cannot be launched so: {launch:?}", kernel.entry)));
        }
        integers.resize(INTEGERS, 0);
        floats.resize(FLOATS, 0.0);
        // SAFETY: the launcher reads as many integers and floats as there are. What the kernel does
        // with its arguments is its own: kernels of this library stay inside of the memory that
        // they are given.
        unsafe { (loaded.launch)(entry, launch.blocks, launch.threads, integers.as_ptr(), floats.as_ptr()) };
        Ok(())
    }

    fn synchronize(&self) -> Result<(), Error> {
        Ok(())
    }

    fn time(&self, work: &mut dyn FnMut() -> Result<(), Error>) -> Result<Elapsed, Error> {
        let started = Instant::now();
        work()?;
        // What a processor takes says nothing about a GPU.
        Ok(Elapsed { time: started.elapsed().max(Duration::from_nanos(1)), source: Measured::Device })
    }

    fn counts(&self) -> Option<Counts> {
        None
    }

    fn free_memory(&self) -> Result<u64, Error> {
        Ok(u64::MAX)
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        // It is there where something was compiled; what was loaded is mapped.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
