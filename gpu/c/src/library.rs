//! What a thread has open, by the numbers that C has in the place of pointers: nobody follows them,
//! so that a stale or senseless one is refused.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nearpm_gphash::Table;
use nearpm_gpm::{Checkpoint, Log};
use nearpm_gpu::{Buffer, Device, Interpreted, PmRegion};

use crate::error::Refusal;

/// Memory of the interpreter: more than programs without a GPU use.
const INTERPRETED_MEMORY: u64 = 1 << 30;

/// Persistent memory that is mapped.
pub struct Map {
    pub region: PmRegion,
    pub path: PathBuf,
    /// Offset in the region of what C sees.
    pub offset: u64,
    pub bytes: u64,
}

/// A hash table that is open, in a region of its own.
pub struct Opened {
    pub table: Table,
    pub region: PmRegion,
}

/// What is open.
pub struct Library {
    pub device: Rc<dyn Device>,
    pub name: CString,
    pub maps: HashMap<u64, Map>,
    pub logs: HashMap<u64, Log>,
    pub checkpoints: HashMap<u64, Checkpoint>,
    pub tables: HashMap<u64, Opened>,
    pub memory: HashMap<u64, Buffer>,
    pub next_checkpoint: u64,
}

thread_local! {
    static OPEN: RefCell<Option<Library>> = const { RefCell::new(None) };
}

fn device() -> Result<Rc<dyn Device>, Refusal> {
    let named = std::env::var("NEARPM_GPM_DEVICE").ok();
    let cuda = cfg!(feature = "cuda");
    match named.as_deref() {
        Some("interpreter") => Ok(Rc::new(Interpreted::new(INTERPRETED_MEMORY))),
        None if !cuda => Ok(Rc::new(Interpreted::new(INTERPRETED_MEMORY))),
        None => gpu(0),
        Some("cuda") => gpu(0),
        Some(other) => match other.strip_prefix("cuda:").and_then(|number| number.parse().ok()) {
            Some(number) => gpu(number),
            None => Err(Refusal(format!(
                "NEARPM_GPM_DEVICE is {other:?}; it names \"interpreter\", \"cuda\", or \"cuda:N\""
            ))),
        },
    }
}

#[cfg(feature = "cuda")]
fn gpu(number: usize) -> Result<Rc<dyn Device>, Refusal> {
    Ok(Rc::new(nearpm_gpu::Cuda::open(number)?))
}

#[cfg(not(feature = "cuda"))]
fn gpu(_: usize) -> Result<Rc<dyn Device>, Refusal> {
    Err(Refusal("the library was built without the feature `cuda`: NEARPM_GPM_DEVICE=interpreter works".to_owned()))
}

/// Does something with what is open; opens the device first, where that is not done.
pub fn with<T>(act: impl FnOnce(&mut Library) -> Result<T, Refusal>) -> Result<T, Refusal> {
    let ending = |_| Refusal("the thread is ending".to_owned());
    OPEN.try_with(|open| {
        let mut open = open.try_borrow_mut().map_err(|_| Refusal("a call within a call".to_owned()))?;
        if open.is_none() {
            let device = device()?;
            let name = CString::new(device.name()).unwrap_or_default();
            *open = Some(Library {
                device,
                name,
                maps: HashMap::new(),
                logs: HashMap::new(),
                checkpoints: HashMap::new(),
                tables: HashMap::new(),
                memory: HashMap::new(),
                next_checkpoint: 1,
            });
        }
        act(open.as_mut().expect("it was just opened"))
    })
    .map_err(ending)?
}

/// What a handle stands for.
pub fn find<'l, T>(all: &'l HashMap<u64, T>, handle: u64, what: &str) -> Result<&'l T, Refusal> {
    all.get(&handle).ok_or_else(|| unknown(handle, what))
}

/// The refusal of a handle that stands for nothing.
pub fn unknown(handle: u64, what: &str) -> Refusal {
    Refusal(format!("{handle:#x} is no open {what} of this thread: it was closed, or belongs to another thread"))
}

/// A path of C.
///
/// # Safety
/// `path` is null, or points to a string that ends with a zero and outlives the result.
pub unsafe fn path<'a>(path: *const c_char) -> Result<&'a Path, Refusal> {
    if path.is_null() {
        return Err(Refusal("the path is a null pointer".to_owned()));
    }
    // SAFETY: it is not null, and the caller says that it is a string.
    Ok(Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes())))
}

/// A string of C.
///
/// # Safety
/// As for [`path`].
pub unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Refusal> {
    if text.is_null() {
        return Err(Refusal(format!("{what} is a null pointer")));
    }
    // SAFETY: it is not null, and the caller says that it is a string.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| Refusal(format!("{what} is not UTF-8")))
}

/// A number of C that must not be negative.
pub fn number(number: std::ffi::c_int, what: &str) -> Result<u32, Refusal> {
    u32::try_from(number).map_err(|_| Refusal(format!("{what} is {number}: it must not be negative")))
}
