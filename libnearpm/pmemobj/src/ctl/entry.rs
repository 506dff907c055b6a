//! Entries by name: what they take, and what they do.

use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, Ordering};

use nearpm_interface::media::CHUNK_BYTES;

use super::Query;
use crate::abi::{MAX_ALLOC, MIN_PART};
use crate::control::{AllocClass, Description, GLOBALS, MAX_ARENAS, default_arenas};
use crate::error::{Errno, fail, fail_below};
use crate::registry::Pool;
use crate::thread::thread;

/// How wide an argument is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Width {
    Four,
    Eight,
}

/// How the environment writes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// `y`, `1`, `n` or `0`, and whatever follows.
    Boolean,
    /// A number.
    Integer,
    /// A name of `enum pobj_stats_enabled`, or a boolean.
    Statistics,
    /// A name of `enum pobj_arenas_assignment_type`.
    Assignment,
    /// `unit size,alignment,units per block,header`.
    Class,
}

/// A value that is kept.
type Value = fn(&Pool) -> &AtomicI64;

/// An entry.
#[derive(Clone, Copy)]
pub enum Entry {
    /// A value of the process.
    Global(&'static AtomicI64, Text),
    /// A value of a pool, and what it may be.
    Kept(Value, Width, Text, fn(i64) -> Result<(), Errno>),
    /// A figure.
    Figure(fn(&Pool) -> u64, Width),
    /// Does nothing, and says so to nobody (as with PMDK).
    Nothing,
    /// The same, and it cannot be set.
    NothingToRead,
    /// Number of the calling thread's arena.
    ThreadArena,
    /// Bytes of an arena.
    ArenaSize(i64),
    /// Whether an arena is used without being named.
    ArenaAutomatic(i64),
    /// Makes an arena.
    MakeArena,
    /// An allocation class; `None` for a new one.
    Class(Option<i64>),
    /// Makes the pool larger.
    Extend,
}

fn any(_: i64) -> Result<(), Errno> {
    Ok(())
}

fn cache_size(bytes: i64) -> Result<(), Errno> {
    if (0..=MAX_ALLOC as i64).contains(&bytes) {
        return Ok(());
    }
    Err(fail(libc::EINVAL, format_args!("invalid cache size, must be between 0 and max alloc size")))
}

fn granularity(bytes: i64) -> Result<(), Errno> {
    if bytes == 0 || bytes as u64 >= MIN_PART {
        return Ok(());
    }
    Err(fail(libc::EINVAL, format_args!("incorrect grow size, must be 0 or larger than {MIN_PART}")))
}

fn arenas(count: i64) -> Result<(), Errno> {
    if count >= MAX_ARENAS {
        return Ok(());
    }
    Err(fail(libc::EINVAL, format_args!("there may be more arenas than {count} already")))
}

/// Bytes of the objects in runs, and of the runs that hold them.
fn runs(pool: &Pool) -> (u64, u64) {
    let (mut in_runs, mut runs, mut last_run) = (0, 0, None);
    let mut start = 0;
    while let Some(object) = pool.direct.next_object(start) {
        start = object;
        let bytes = pool.direct.usable_bytes(object).unwrap_or(0);
        if bytes < CHUNK_BYTES {
            in_runs += bytes;
            let run = Some((object - pool.heap().start) / CHUNK_BYTES);
            runs += u64::from(run != last_run) * CHUNK_BYTES;
            last_run = run;
        }
    }
    (in_runs, runs)
}

impl Entry {
    /// The entry of a name; without a pool, one of the process.
    pub fn find(with_pool: bool, name: &str) -> Option<Entry> {
        Entry::global(name).or_else(|| if with_pool { Entry::of_pool(name) } else { None })
    }

    /// The entry of the process with a name.
    pub fn global(name: &str) -> Option<Entry> {
        Some(match name {
            "prefault.at_create" => Entry::Global(&GLOBALS.prefault_at_create, Text::Boolean),
            "prefault.at_open" => Entry::Global(&GLOBALS.prefault_at_open, Text::Boolean),
            "fallocate.at_create" => Entry::Global(&GLOBALS.fallocate_at_create, Text::Boolean),
            "sds.at_create" => Entry::Global(&GLOBALS.sds_at_create, Text::Boolean),
            "copy_on_write.at_open" => Entry::Global(&GLOBALS.copy_on_write, Text::Boolean),
            "heap.arenas_assignment_type" => Entry::Global(&GLOBALS.assignment_type, Text::Assignment),
            "heap.arenas_default_max" => Entry::Global(&GLOBALS.default_arenas, Text::Integer),
            _ => return None,
        })
    }

    fn of_pool(name: &str) -> Option<Entry> {
        use Width::{Eight, Four};
        Some(match name {
            "tx.debug.skip_expensive_checks" => {
                Entry::Kept(|p| &p.control.skip_expensive_checks, Four, Text::Boolean, any)
            }
            "tx.debug.verify_user_buffers" => Entry::Kept(|p| &p.control.verify_user_buffers, Four, Text::Boolean, any),
            "tx.cache.size" => Entry::Kept(|p| &p.control.cache_size, Eight, Text::Integer, cache_size),
            "tx.cache.threshold" | "tx.post_commit.queue_depth" => Entry::Nothing,
            "tx.post_commit.worker" | "tx.post_commit.stop" => Entry::NothingToRead,
            "heap.narenas.automatic" => Entry::Figure(|p| p.control.automatic_arenas(), Four),
            "heap.narenas.total" => Entry::Figure(|p| p.control.arenas(), Four),
            "heap.narenas.max" => Entry::Kept(|p| &p.control.max_arenas, Four, Text::Integer, arenas),
            "heap.thread.arena_id" => Entry::ThreadArena,
            "heap.arena.create" => Entry::MakeArena,
            "heap.size.granularity" => Entry::Kept(|p| &p.control.granularity, Eight, Text::Integer, granularity),
            "heap.size.extend" => Entry::Extend,
            "heap.alloc_class.new.desc" => Entry::Class(None),
            "stats.enabled" => Entry::Kept(|p| &p.control.statistics, Four, Text::Statistics, any),
            "stats.heap.curr_allocated" => Entry::Figure(|p| p.control.allocated() as u64, Eight),
            "stats.heap.run_allocated" => Entry::Figure(|p| runs(p).0, Eight),
            "stats.heap.run_active" => Entry::Figure(|p| runs(p).1, Eight),
            "debug.heap.alloc_pattern" => Entry::Kept(|p| p.control.alloc_pattern_value(), Four, Text::Integer, any),
            _ => return Entry::numbered(name),
        })
    }

    /// Entries with a number in their name.
    fn numbered(name: &str) -> Option<Entry> {
        let (middle, of_arena) = match name.strip_prefix("heap.arena.") {
            Some(rest) => (rest, true),
            None => (name.strip_prefix("heap.alloc_class.")?, false),
        };
        let (number, last) = middle.split_once('.')?;
        let number = integer(number)?;
        match (of_arena, last) {
            (true, "size") => Some(Entry::ArenaSize(number)),
            (true, "automatic") => Some(Entry::ArenaAutomatic(number)),
            (false, "desc") => Some(Entry::Class(Some(number))),
            _ => None,
        }
    }

    /// How the environment writes its value.
    pub fn text(&self) -> Text {
        match self {
            Entry::Global(_, text) | Entry::Kept(_, _, text, _) => *text,
            Entry::ArenaAutomatic(_) => Text::Boolean,
            Entry::Class(_) => Text::Class,
            _ => Text::Integer,
        }
    }

    /// Whether the entry has this query.
    pub fn takes(&self, query: Query) -> bool {
        match self {
            Entry::Global(..) | Entry::Kept(..) | Entry::ThreadArena | Entry::ArenaAutomatic(_) => {
                query != Query::Execute
            }
            Entry::Nothing => query != Query::Execute,
            Entry::NothingToRead | Entry::Figure(..) | Entry::ArenaSize(_) => query == Query::Get,
            Entry::MakeArena | Entry::Extend => query == Query::Execute,
            Entry::Class(None) => query == Query::Set,
            Entry::Class(Some(_)) => query != Query::Execute,
        }
    }

    /// # Safety
    /// `argument` is what the entry gives.
    pub unsafe fn get(&self, pool: Option<&Pool>, argument: *mut c_void) -> Result<(), Errno> {
        // SAFETY: by the caller.
        unsafe {
            match (*self, pool) {
                (Entry::Global(value, _), _) => put(argument, Width::Four, self.default_of(value)),
                (Entry::Kept(value, width, ..), Some(pool)) => {
                    put(argument, width, value(pool).load(Ordering::Relaxed));
                }
                (Entry::Figure(figure, width), Some(pool)) => put(argument, width, figure(pool) as i64),
                (Entry::ThreadArena, Some(pool)) => {
                    let (run, set) = thread().arena.get();
                    put(argument, Width::Four, if run == pool.run_id { set } else { 1 });
                }
                (Entry::ArenaSize(id), Some(pool)) => {
                    check_arena(pool, id)?;
                    put(argument, Width::Eight, 0);
                }
                (Entry::ArenaAutomatic(id), Some(pool)) => {
                    check_arena(pool, id)?;
                    put(argument, Width::Four, i64::from(pool.control.is_automatic(id)));
                }
                (Entry::Class(Some(id)), Some(pool)) => {
                    check_class(id)?;
                    let missing = || fail(libc::ENOENT, format_args!("class with the given id does not exist"));
                    let class = pool.control.class(id).ok_or_else(missing)?;
                    argument.cast::<Description>().write(class.describe(id));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn default_of(&self, value: &AtomicI64) -> i64 {
        if std::ptr::eq(value, &GLOBALS.default_arenas) {
            default_arenas() as i64
        } else {
            value.load(Ordering::Relaxed)
        }
    }

    /// # Safety
    /// `argument` is what the entry takes.
    pub unsafe fn set(&self, pool: Option<&Pool>, argument: *mut c_void) -> Result<(), Errno> {
        // SAFETY: by the caller.
        unsafe {
            match (*self, pool) {
                (Entry::Global(value, _), _) => value.store(take(argument, Width::Four), Ordering::Relaxed),
                (Entry::Kept(value, width, _, check), Some(pool)) => {
                    let new = take(argument, width);
                    check(new)?;
                    value(pool).store(new, Ordering::Relaxed);
                }
                (Entry::ThreadArena, Some(pool)) => {
                    let id = take(argument, Width::Four);
                    check_arena(pool, id)?;
                    thread().arena.set((pool.run_id, id));
                }
                (Entry::ArenaAutomatic(id), Some(pool)) => {
                    check_arena(pool, id)?;
                    pool.control.set_automatic(id, take(argument, Width::Four))?;
                }
                (Entry::Class(id), Some(pool)) => {
                    id.map_or(Ok(()), check_class)?;
                    let description = &mut *argument.cast::<Description>();
                    let id = pool.control.register(id, AllocClass::new(description)?)?;
                    description.class_id = id as u32;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// # Safety
    /// `argument` is what the entry takes.
    pub unsafe fn execute(&self, pool: Option<&Pool>, argument: *mut c_void) -> Result<(), Errno> {
        match (*self, pool) {
            (Entry::MakeArena, Some(pool)) => {
                let id = pool.control.make_arena()?;
                // SAFETY: by the caller.
                unsafe { put(argument, Width::Four, id as i64) };
                Ok(())
            }
            (Entry::Extend, Some(pool)) if pool.direct.growth().is_some() => {
                // SAFETY: by the caller.
                let more = unsafe { take(argument, Width::Eight) } as u64;
                let bytes = pool.direct.bytes().saturating_add(more);
                pool.direct.grow(bytes).map(drop).map_err(|error| fail_below(&error))
            }
            (Entry::Extend, _) => Err(fail(
                libc::ENOTSUP,
                format_args!(
                    "the pool was not opened to grow (NEARPM_GROWTH): set it, use `nearpm pool resize`, or create a larger one"
                ),
            )),
            _ => Ok(()),
        }
    }
}

fn check_class(id: i64) -> Result<(), Errno> {
    if (0..=AllocClass::LAST).contains(&id) {
        return Ok(());
    }
    Err(fail(libc::ERANGE, format_args!("class id outside of the allowed range")))
}

fn check_arena(pool: &Pool, id: i64) -> Result<(), Errno> {
    if !(1..=pool.control.arenas() as i64).contains(&id) {
        return Err(fail(libc::ERANGE, format_args!("arena id outside of the allowed range: {id}")));
    }
    Ok(())
}

/// # Safety
/// The argument is as wide.
unsafe fn put(argument: *mut c_void, width: Width, value: i64) {
    // SAFETY: by the caller.
    unsafe {
        match width {
            Width::Four => argument.cast::<i32>().write(value as i32),
            Width::Eight => argument.cast::<i64>().write(value),
        }
    }
}

/// # Safety
/// The argument is as wide.
unsafe fn take(argument: *mut c_void, width: Width) -> i64 {
    // SAFETY: by the caller.
    unsafe {
        match width {
            Width::Four => argument.cast::<i32>().read().into(),
            Width::Eight => argument.cast::<i64>().read(),
        }
    }
}

/// A number, decimal, octal behind `0` or hexadecimal behind `0x`, as `strtoll` reads it.
pub fn integer(value: &str) -> Option<i64> {
    let (negative, digits) = match value.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, value.strip_prefix('+').unwrap_or(value)),
    };
    let (radix, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (16, digits),
        None if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        None => (10, digits),
    };
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return None;
    }
    let magnitude = i128::from(u64::from_str_radix(digits, radix).ok()?);
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}
