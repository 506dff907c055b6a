//! One running model and its ports.

use crate::{Error, idle};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_ulonglong};
use std::path::Path;
use std::sync::Arc;

/// The C++ object; only the shim looks inside.
#[repr(C)]
struct Model {
    _opaque: [u8; 0],
}

/// What a model keeps to skip edges; only the shim looks inside.
#[repr(C)]
struct Idle {
    _opaque: [u8; 0],
}

/// The functions by which a model skips edges that change nothing.
#[derive(Clone, Copy)]
struct IdleApi {
    new: unsafe extern "C" fn() -> *mut Idle,
    delete: unsafe extern "C" fn(*mut Idle),
    edge: unsafe extern "C" fn(*mut Model, *mut Idle, *mut u64, *mut u8),
}

/// A row of the port table, laid out as in the shim.
#[repr(C)]
#[derive(Clone, Copy)]
struct RawPort {
    name: *const c_char,
    output: c_uint,
    bits: c_uint,
    data: *mut u8,
}

/// The functions of a loaded model.
pub(crate) struct Api {
    new: unsafe extern "C" fn() -> *mut Model,
    delete: unsafe extern "C" fn(*mut Model),
    eval: unsafe extern "C" fn(*mut Model),
    cycle: unsafe extern "C" fn(*mut Model, *mut u8),
    settle: unsafe extern "C" fn(*mut Model),
    edge: unsafe extern "C" fn(*mut Model, *mut u8),
    ports: unsafe extern "C" fn(*mut Model, *mut RawPort, c_uint) -> c_uint,
    open_trace: unsafe extern "C" fn(*mut Model, *const c_char) -> c_int,
    dump: unsafe extern "C" fn(*mut Model, c_ulonglong),
    /// Where the source asked for it, and the code that Verilator wrote allows it.
    idle: Option<IdleApi>,
    traced: bool,
    /// Keeps the code that the pointers above point to; dropped last.
    _library: libloading::Library,
}

impl Api {
    /// Loads a library. One that counts its coverage writes to a file whose path begins with
    /// `counts` when it goes, or the process.
    pub(crate) fn load(path: &Path, traced: bool, counts: Option<&Path>) -> Result<Self, Error> {
        let fail = |source| Error::Load { path: path.to_owned(), source };
        // SAFETY: the file was made by this crate's build; its initialisers are those of the C++
        // runtime, and its functions have the types that the shim's text gives them. The library
        // lives in the same struct as the function pointers taken from it.
        unsafe {
            let library = libloading::Library::new(path).map_err(fail)?;
            let mut delete = b"nearpm_delete\0".as_slice();
            if let Some(counts) = counts {
                let name = CString::new(counts.as_os_str().as_encoded_bytes());
                let name = name.map_err(|_| Error::TraceFile { path: counts.into() })?;
                let begin: unsafe extern "C" fn(*const c_char) = *library.get(b"nearpm_coverage\0").map_err(fail)?;
                begin(name.as_ptr());
                delete = b"nearpm_delete_counted\0";
            }
            let idle = match library.get(b"nearpm_idle_new\0") {
                Ok(new) => Some(IdleApi {
                    new: *new,
                    delete: *library.get(b"nearpm_idle_delete\0").map_err(fail)?,
                    edge: *library.get(b"nearpm_idle_edge\0").map_err(fail)?,
                }),
                Err(_) => None,
            };
            Ok(Self {
                idle,
                new: *library.get(b"nearpm_new\0").map_err(fail)?,
                delete: *library.get(delete).map_err(fail)?,
                eval: *library.get(b"nearpm_eval\0").map_err(fail)?,
                cycle: *library.get(b"nearpm_cycle\0").map_err(fail)?,
                settle: *library.get(b"nearpm_settle\0").map_err(fail)?,
                edge: *library.get(b"nearpm_edge\0").map_err(fail)?,
                ports: *library.get(b"nearpm_ports\0").map_err(fail)?,
                open_trace: *library.get(b"nearpm_open_trace\0").map_err(fail)?,
                dump: *library.get(b"nearpm_dump\0").map_err(fail)?,
                traced,
                _library: library,
            })
        }
    }
}

/// Which way a port of the top module points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Driven by the user of the model.
    Input,
    /// Driven by the model.
    Output,
}

/// A resolved port: an index that is valid for every instance of the same library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port(u32);

/// What is known of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortInfo {
    /// Name as in the Verilog text (`m$araddr`).
    pub name: String,
    /// Direction as the top module sees it.
    pub direction: Direction,
    /// Width, 1 bit or more.
    pub bits: u32,
}

/// Where a port's value lies in one instance.
#[derive(Clone, Copy)]
struct Slot {
    data: *mut u8,
    bits: u32,
}

/// One model in one state. Independent of all others; may move between threads.
pub struct Instance {
    model: *mut Model,
    slots: Vec<Slot>,
    infos: Vec<PortInfo>,
    names: HashMap<String, Port>,
    /// What the shim keeps to skip edges; null where it does not.
    idle: *mut Idle,
    /// Edges since the inputs changed; [`idle::SKIPS`] while edges are skipped.
    still: u64,
    /// Edges that were skipped.
    skipped: u64,
    /// Edges are simulated although they could be skipped.
    every_edge: bool,
    api: Arc<Api>,
}

// SAFETY: a model is one heap object that no other thread knows; Verilator's runtime keeps no state
// that is tied to the thread that made a model (each call sets the thread's context itself).
unsafe impl Send for Instance {}

impl Instance {
    pub(crate) fn new(api: Arc<Api>) -> Self {
        // SAFETY: the functions match their declarations (see `Api::load`); `room` is the length of
        // the array, and the names are string literals of the library, which `api` keeps loaded.
        let (model, raw) = unsafe {
            let model = (api.new)();
            let room = (api.ports)(model, std::ptr::null_mut(), 0);
            let empty = RawPort { name: c"".as_ptr(), output: 0, bits: 0, data: std::ptr::null_mut() };
            let mut raw = vec![empty; room as usize];
            (api.ports)(model, raw.as_mut_ptr(), room);
            (model, raw)
        };
        let info = |port: &RawPort| PortInfo {
            // SAFETY: as above: a string literal of the loaded library.
            name: unsafe { CStr::from_ptr(port.name) }.to_string_lossy().into_owned(),
            direction: if port.output == 0 { Direction::Input } else { Direction::Output },
            bits: port.bits,
        };
        let infos: Vec<_> = raw.iter().map(info).collect();
        let names = infos.iter().zip(0..).map(|(i, n)| (i.name.clone(), Port(n))).collect();
        let slots = raw.iter().map(|p| Slot { data: p.data, bits: p.bits }).collect();
        // SAFETY: the function matches its declaration.
        let idle = api.idle.map_or(std::ptr::null_mut(), |idle| unsafe { (idle.new)() });
        Self { model, slots, infos, names, idle, still: 0, skipped: 0, every_edge: false, api }
    }

    /// Resolves a port by its Verilog name.
    pub fn port(&self, name: &str) -> Result<Port, Error> {
        self.names.get(name).copied().ok_or_else(|| {
            let ports: Vec<_> = self.infos.iter().map(|i| i.name.as_str()).collect();
            Error::NoSuchPort { name: name.to_owned(), ports: ports.join(", ") }
        })
    }

    /// All ports, in the order of the Verilog text. The position of a row is not a [`Port`]; use
    /// [`Instance::port`] with its name.
    pub fn ports(&self) -> &[PortInfo] {
        &self.infos
    }

    /// What is known of one port.
    pub fn info(&self, port: Port) -> &PortInfo {
        &self.infos[port.0 as usize]
    }

    /// Lets the model settle after inputs changed.
    #[inline]
    pub fn eval(&mut self) {
        self.still = 0;
        // SAFETY: `model` is alive until `drop`.
        unsafe { (self.api.eval)(self.model) }
    }

    /// One full cycle of a clock that is low: rise, settle, fall, settle.
    ///
    /// Inputs that were set before take part in the edge, as if they had settled first. Afterwards
    /// the outputs show the state after the edge. To see outputs that depend on the new inputs
    /// *before* the edge, call [`Instance::eval`] first.
    #[inline]
    pub fn cycle(&mut self, clock: Port) {
        let slot = self.slots[clock.0 as usize];
        assert_eq!(slot.bits, 1, "a clock is one bit wide");
        self.still = 0;
        // SAFETY: `model` is alive; a one-bit port is stored in one byte.
        unsafe { (self.api.cycle)(self.model, slot.data) }
    }

    /// The first half of a fast cycle: the outputs follow the inputs, as with [`Instance::eval`].
    /// The clock is low.
    #[inline]
    pub fn settle(&mut self) {
        self.still = 0;
        // SAFETY: `model` is alive until `drop`.
        unsafe { (self.api.settle)(self.model) }
    }

    /// The second half of a fast cycle: the clock rises and falls.
    ///
    /// The inputs have settled since the last of them changed ([`Instance::settle`]). Afterwards
    /// outputs that are registers show the state after the edge, and all others only after the next
    /// [`Instance::settle`]. Half the time of [`Instance::cycle`].
    #[inline]
    pub fn edge(&mut self, clock: Port) {
        let slot = self.slots[clock.0 as usize];
        debug_assert_eq!(slot.bits, 1, "a clock is one bit wide");
        // SAFETY: `model` is alive; a one-bit port is stored in one byte; `idle` was made by the
        // function of the same table.
        unsafe {
            match self.api.idle {
                Some(idle) if !self.every_edge => {
                    self.skipped += u64::from(self.still == idle::SKIPS);
                    (idle.edge)(self.model, self.idle, &mut self.still, slot.data);
                }
                _ => (self.api.edge)(self.model, slot.data),
            }
        }
    }

    /// Simulates every edge from now on: what a model that skips some of them
    /// ([`Source::with_idle_skipped`](crate::Source::with_idle_skipped)) is compared with.
    pub fn simulate_every_edge(&mut self) {
        self.every_edge = true;
    }

    /// Edges that were not simulated.
    pub fn skipped_edges(&self) -> u64 {
        self.skipped
    }

    /// The low 64 bits of a port.
    #[inline]
    pub fn get_u64(&self, port: Port) -> u64 {
        let Slot { data, bits } = self.slots[port.0 as usize];
        // SAFETY: Verilator stores a port of 1..=8, ..=16, ..=32, ..=64 bits as an aligned unsigned
        // integer of that size and wider ones as an array of u32, lowest word first. The model that
        // holds them is alive, and `&self` keeps others from writing.
        unsafe {
            match bits {
                0..=8 => u64::from(*data),
                9..=16 => u64::from(*data.cast::<u16>()),
                17..=32 => u64::from(*data.cast::<u32>()),
                33..=64 => *data.cast::<u64>(),
                _ => {
                    let words = data.cast::<u32>();
                    u64::from(*words) | u64::from(*words.add(1)) << 32
                }
            }
        }
    }

    /// Sets a port. Bits above its width must be 0, and are cut off otherwise; the upper words of a
    /// port wider than 64 bits become 0.
    #[inline]
    pub fn set_u64(&mut self, port: Port, value: u64) {
        let Slot { data, bits } = self.slots[port.0 as usize];
        debug_assert!(bits >= 64 || value >> bits == 0, "{value:#x} does not fit {bits} bits");
        let value = if bits < 64 { value & ((1 << bits) - 1) } else { value };
        // SAFETY: as in `get_u64`, with `&mut self`; the casts keep all bits that the port has.
        unsafe {
            match bits {
                0..=8 => *data = value as u8,
                9..=16 => *data.cast::<u16>() = value as u16,
                17..=32 => *data.cast::<u32>() = value as u32,
                33..=64 => *data.cast::<u64>() = value,
                _ => self.set_words(port, &[value as u32, (value >> 32) as u32]),
            }
        }
    }

    /// Copies a port into `words`, lowest word first. Words that the port does not have become 0;
    /// words of the port beyond the slice are left out.
    pub fn get_words(&self, port: Port, words: &mut [u32]) {
        let Slot { data, bits } = self.slots[port.0 as usize];
        words.fill(0);
        if bits > 64 {
            let count = words.len().min(bits.div_ceil(32) as usize);
            // SAFETY: as in `get_u64`: a wide port is `bits.div_ceil(32)` words.
            let stored = unsafe { std::slice::from_raw_parts(data.cast::<u32>(), count) };
            words[..count].copy_from_slice(stored);
        } else {
            let value = self.get_u64(port);
            for (word, shift) in words.iter_mut().zip([0, 32]) {
                *word = (value >> shift) as u32;
            }
        }
    }

    /// Sets a port from `words`, lowest word first; missing words count as 0.
    ///
    /// # Panics
    /// When a bit beyond the width of the port is set.
    pub fn set_words(&mut self, port: Port, words: &[u32]) {
        let Slot { data, bits } = self.slots[port.0 as usize];
        let count = bits.div_ceil(32) as usize;
        let word = |i: usize| words.get(i).copied().unwrap_or(0);
        let spare = count as u32 * 32 - bits;
        let fits = words.iter().skip(count).all(|w| *w == 0) && (spare == 0 || word(count - 1) >> (32 - spare) == 0);
        assert!(fits, "the value does not fit port `{}` of {bits} bits", self.info(port).name);
        if bits > 64 {
            // SAFETY: as in `get_u64`, with `&mut self`: a wide port is `count` words.
            let stored = unsafe { std::slice::from_raw_parts_mut(data.cast::<u32>(), count) };
            for (i, slot) in stored.iter_mut().enumerate() {
                *slot = word(i);
            }
        } else {
            self.set_u64(port, u64::from(word(0)) | u64::from(word(1)) << 32);
        }
    }

    /// Starts a VCD trace of all nets into `path`, replacing one that is open.
    pub fn open_trace(&mut self, path: &Path) -> Result<(), Error> {
        if !self.api.traced {
            return Err(Error::NotTraced);
        }
        let fail = || Error::TraceFile { path: path.to_owned() };
        let name = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|_| fail())?;
        // SAFETY: `model` is alive and `name` ends in 0.
        let open = unsafe { (self.api.open_trace)(self.model, name.as_ptr()) };
        if open != 0 { Ok(()) } else { Err(fail()) }
    }

    /// Writes the present values into the open trace at `time` (any unit; it must grow from call to
    /// call). Does nothing while no trace is open.
    pub fn dump(&mut self, time: u64) {
        // SAFETY: `model` is alive.
        unsafe { (self.api.dump)(self.model, time) }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: made by `new`, deleted once; closes an open trace.
        unsafe {
            if let Some(idle) = self.api.idle {
                (idle.delete)(self.idle);
            }
            (self.api.delete)(self.model)
        }
    }
}
