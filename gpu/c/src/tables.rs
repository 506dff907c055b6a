//! Hash tables. A handle is the address of the table's description in the device's memory, so that
//! it is the kernels' argument, too.

use std::ffi::{c_char, c_int, c_void};

use nearpm_gphash::{Answer, CacheOptions, Key, Keys, Layout, Op, Outcome, Request, Table};
use nearpm_gpu::{Access, PmRegion};

use crate::error::{Refusal, call, status};
use crate::library::{Opened, find, path, unknown, with};

/// Name of the table in its region.
const NAME: &str = "table";
/// Bytes of a region beside it: head, directory, rounding.
const ROOM: u64 = 1 << 16;

/// `gph_layout` of `nearpm_gphash.h`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct GphLayout {
    design: u32,
    value_bytes: u32,
    slots: u64,
    key_bytes: u32,
    variable_keys: u32,
    growths: u32,
    seed: u32,
}

/// `gph_request` of `nearpm_gphash.h`.
#[repr(C)]
pub struct GphRequest {
    op: u32,
    key_bytes: u32,
    key: *const u8,
    value: *const u8,
    found: *mut u8,
    outcome: u32,
}

/// `gph_stats` of `nearpm_gphash.h`.
#[repr(C)]
pub struct GphStats {
    pairs: u64,
    slots: u64,
    media_bytes: u64,
    device_bytes: u64,
    value_bytes: u32,
    faults: u32,
}

fn refused(why: impl Into<String>) -> Refusal {
    Refusal(why.into())
}

fn layout_of(given: &GphLayout) -> Result<Layout, Refusal> {
    if given.slots == 0 || given.slots > 1 << 32 {
        return Err(refused(format!("a table of {} slots: it has 1 to 2^32", given.slots)));
    }
    let layout = match given.design {
        0 => Layout::levels(given.slots, given.value_bytes),
        1 => Layout::tags(given.slots, given.value_bytes),
        other => return Err(refused(format!("the design {other}: there are 0, in levels, and 1, in windows"))),
    };
    let keys = match (given.key_bytes, given.variable_keys) {
        (0, 0) => Keys::Words,
        (bytes, 0) => Keys::Fixed(bytes),
        (0, most) => Keys::Variable(most),
        _ => return Err(refused("keys have one length, or lengths up to one, not both")),
    };
    Ok(layout.with_keys(keys).growing(given.growths))
}

fn keep(table: Table, region: PmRegion) -> Result<*mut c_void, Refusal> {
    with(|library| {
        let address = table.address();
        library.tables.insert(address, Opened { table, region });
        Ok(std::ptr::with_exposed_provenance_mut(address as usize))
    })
}

/// Makes a table in a new file.
///
/// # Safety
/// `name` is null or a string that ends with a zero; `layout` is null or points to one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gph_create(name: *const c_char, layout: *const GphLayout) -> *mut c_void {
    call(std::ptr::null_mut(), || {
        // SAFETY: as the caller says.
        let (path, given) = unsafe { (path(name)?, layout.as_ref()) };
        let given = given.ok_or_else(|| refused("the layout is a null pointer"))?;
        let layout = layout_of(given)?;
        layout.check()?;
        let device = with(|library| Ok(library.device.clone()))?;
        let bytes = (layout.bytes() + ROOM).next_multiple_of(4096);
        let region = PmRegion::map(device, path, bytes, Access::Create)?;
        let made = Table::create(&region, NAME, &layout, given.seed);
        if made.is_err() {
            // A file without a table is of no use. What is wrong is told already.
            let _ = std::fs::remove_file(path);
        }
        keep(made?, region)
    })
}

/// Opens the table of a file.
///
/// # Safety
/// `name` is null or a string that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gph_open(name: *const c_char, cached: u32) -> *mut c_void {
    call(std::ptr::null_mut(), || {
        // SAFETY: as the caller says.
        let path = unsafe { path(name) }?;
        let device = with(|library| Ok(library.device.clone()))?;
        let region = PmRegion::map(device, path, 0, Access::Open)?;
        let table = match cached {
            0 => Table::open(&region, NAME)?,
            entries => {
                let layout = Table::layout_of(&region, NAME)?;
                Table::open_cached(&region, NAME, CacheOptions { entries, ..CacheOptions::share(&layout, 0.0) })?
            }
        };
        keep(table, region)
    })
}

/// Closes a table. What is in it stays.
#[unsafe(no_mangle)]
pub extern "C" fn gph_close(table: *mut c_void) -> c_int {
    status(|| {
        with(|library| match library.tables.remove(&(table as u64)) {
            Some(Opened { table, region }) => {
                drop(table);
                region.close()?;
                Ok(())
            }
            None => Err(unknown(table as u64, "table")),
        })
    })
}

fn on<T>(table: *mut c_void, act: impl FnOnce(&Table) -> Result<T, Refusal>) -> Result<T, Refusal> {
    with(|library| act(&find(&library.tables, table as u64, "table")?.table))
}

const OPS: [Op; 6] = [Op::Get, Op::Insert, Op::Update, Op::Put, Op::Delete, Op::Rmw];

/// A request of C.
///
/// # Safety
/// Key and value are null, or have the bytes that the header says.
unsafe fn request_of(given: &GphRequest, layout: &Layout) -> Result<Request, Refusal> {
    let op = *OPS.get(given.op as usize).ok_or_else(|| refused(format!("{} is no operation", given.op)))?;
    let read = |from: *const u8, bytes: u32, what: &str| match from.is_null() {
        true => Err(refused(format!("a request's {what} is a null pointer"))),
        // SAFETY: it is not null, and has as many bytes as the caller says.
        false => Ok(unsafe { std::slice::from_raw_parts(from, bytes as usize) }.to_vec()),
    };
    let key = match layout.keys {
        Keys::Words => {
            let bytes = read(given.key, 8, "key")?;
            Key::Word(u64::from_le_bytes(std::array::from_fn(|at| bytes[at])))
        }
        // An empty key has nowhere to be.
        _ if given.key_bytes == 0 => Key::Bytes(Vec::new()),
        Keys::Fixed(most) | Keys::Variable(most) if given.key_bytes > most => {
            return Err(refused(format!("a key of {} bytes: this table's have {most} at most", given.key_bytes)));
        }
        _ => Key::Bytes(read(given.key, given.key_bytes, "key")?),
    };
    let value = if op.puts() { read(given.value, layout.value_bytes, "value")? } else { Vec::new() };
    Ok(Request { op, key, value })
}

/// Runs operations.
///
/// # Safety
/// `requests` is null, or has `count` of them, whose pointers are null or have the bytes that the
/// header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gph_batch(table: *mut c_void, requests: *mut GphRequest, count: usize) -> i64 {
    call(-1, || {
        if count == 0 {
            return on(table, |_| Ok(0));
        }
        if requests.is_null() {
            return Err(refused("the requests are a null pointer"));
        }
        if u32::try_from(count).is_err() {
            return Err(refused(format!("{count} requests: a batch has at most 2^32 - 1")));
        }
        // SAFETY: it is not null, and the caller says that there are so many; nobody else has them
        // during the call.
        let given = unsafe { std::slice::from_raw_parts_mut(requests, count) };
        let answers: Vec<Answer> = on(table, |table| {
            let layout = *table.layout();
            // SAFETY: as the caller says.
            let all = given.iter().map(|one| unsafe { request_of(one, &layout) }).collect::<Result<Vec<_>, _>>()?;
            Ok(table.batch_with_outcomes(&all)?)
        })?;
        let mut undone = 0;
        for (one, answer) in given.iter_mut().zip(answers) {
            one.outcome = answer.outcome as u32;
            undone += i64::from(matches!(answer.outcome, Outcome::Full | Outcome::NoCell | Outcome::Collides));
            if let Some(value) = answer.value.filter(|_| !one.found.is_null()) {
                // SAFETY: it is not null, and has room for a value, as the caller says; ours is
                // new, so that they do not overlap.
                unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), one.found, value.len()) };
            }
        }
        Ok(undone)
    })
}

/// Lets a table grow.
#[unsafe(no_mangle)]
pub extern "C" fn gph_grow(table: *mut c_void, windows: u32) -> c_int {
    status(|| on(table, |table| Ok(table.grow(windows)?)))
}

/// A turn of the cache.
#[unsafe(no_mangle)]
pub extern "C" fn gph_turn(table: *mut c_void) -> c_int {
    status(|| on(table, |table| Ok(table.turn_cache()?)))
}

/// Begins an epoch for a program's kernels.
///
/// # Safety
/// `epoch` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gph_begin_epoch(table: *mut c_void, cells: u64, epoch: *mut u32) -> c_int {
    status(|| {
        // SAFETY: as the caller says.
        let place = unsafe { epoch.as_mut() }.ok_or_else(|| refused("the epoch's place is a null pointer"))?;
        *place = on(table, |table| Ok(table.begin_epoch(cells)?))?;
        Ok(())
    })
}

/// What is known of a table.
///
/// # Safety
/// `stats` is null or points to room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gph_stat(table: *mut c_void, stats: *mut GphStats) -> c_int {
    status(|| {
        // SAFETY: as the caller says.
        let place = unsafe { stats.as_mut() }.ok_or_else(|| refused("the statistics' place is a null pointer"))?;
        *place = on(table, |table| {
            let (layout, found) = (table.layout(), table.check()?);
            Ok(GphStats {
                pairs: found.live.into(),
                slots: table.slots_in_use(),
                media_bytes: layout.bytes(),
                device_bytes: layout.device_bytes(),
                value_bytes: layout.value_bytes,
                faults: found.broken + found.shared + found.stray + found.twice + found.unlike,
            })
        })?;
        Ok(())
    })
}
