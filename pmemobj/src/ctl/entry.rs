//! Entries by name: what they take, and what they do.

use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, Ordering};

use nearpm_interface::media::CHUNK_BYTES;

use super::class::{AllocClass, Description};
use super::{GLOBALS, Query};
use crate::abi::{MAX_ALLOC, MIN_PART};
use crate::error::{Errno, fail};
use crate::registry::Pool;

/// How wide an argument is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Width {
    Four,
    Eight,
}

/// A value that is kept.
type Value = fn(&Pool) -> &AtomicI64;

/// An entry.
#[derive(Clone, Copy)]
pub enum Entry {
    /// A value of the process.
    Global(&'static AtomicI64, Width),
    /// A value of a pool, and what it may be.
    Kept(Value, Width, fn(i64) -> Result<(), Errno>),
    /// A figure.
    Figure(fn(&Pool) -> u64, Width),
    /// Does nothing, and says so to nobody (as with PMDK).
    Nothing,
    /// Number of the calling thread's arena.
    ThreadArena,
    /// Bytes of an arena.
    ArenaSize(u64),
    /// Whether an arena is used without being named.
    ArenaAutomatic(u64),
    /// Makes an arena.
    MakeArena,
    /// An allocation class; `None` for a new one.
    Class(Option<u64>),
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
    if count > 0 && count as u64 >= super::default_arenas() {
        return Ok(());
    }
    Err(fail(libc::EINVAL, format_args!("there are more arenas than {count}")))
}

/// Bytes of objects: of all, of those in runs, and of the runs that hold them.
fn usage(pool: &Pool) -> (u64, u64, u64) {
    let (mut all, mut in_runs, mut runs, mut last_run) = (0, 0, 0, None);
    let mut start = 0;
    while let Some(object) = pool.direct.next_object(start) {
        start = object;
        let bytes = pool.direct.usable_bytes(object).unwrap_or(0);
        all += bytes;
        if bytes < CHUNK_BYTES {
            in_runs += bytes;
            let run = Some((object - pool.heap.start) / CHUNK_BYTES);
            runs += u64::from(run != last_run) * CHUNK_BYTES;
            last_run = run;
        }
    }
    (all, in_runs, runs)
}

impl Entry {
    /// The entry of a name; without a pool, one of the process.
    pub fn find(with_pool: bool, name: &str) -> Option<Entry> {
        Entry::global(name).or_else(|| if with_pool { Entry::of_pool(name) } else { None })
    }

    /// The entry of the process with a name.
    pub fn global(name: &str) -> Option<Entry> {
        Some(match name {
            "prefault.at_create" => Entry::Global(&GLOBALS.prefault_at_create, Width::Four),
            "prefault.at_open" => Entry::Global(&GLOBALS.prefault_at_open, Width::Four),
            "sds.at_create" => Entry::Global(&GLOBALS.sds_at_create, Width::Four),
            "copy_on_write.at_open" => Entry::Global(&GLOBALS.copy_on_write, Width::Four),
            "heap.arenas_assignment_type" => Entry::Global(&GLOBALS.assignment_type, Width::Four),
            "heap.arenas_default_max" => Entry::Global(&GLOBALS.default_arenas, Width::Four),
            _ => return None,
        })
    }

    fn of_pool(name: &str) -> Option<Entry> {
        use Width::{Eight, Four};
        Some(match name {
            "tx.debug.skip_expensive_checks" => Entry::Kept(|p| &p.control.skip_expensive_checks, Four, any),
            "tx.debug.verify_user_buffers" => Entry::Kept(|p| &p.control.verify_user_buffers, Four, any),
            "tx.cache.size" => Entry::Kept(|p| &p.control.cache_size, Eight, cache_size),
            "tx.cache.threshold" | "tx.post_commit.queue_depth" | "tx.post_commit.worker" | "tx.post_commit.stop" => {
                Entry::Nothing
            }
            "heap.narenas.automatic" => Entry::Figure(|_| super::default_arenas(), Four),
            "heap.narenas.total" => Entry::Figure(|p| p.control.arenas(), Four),
            "heap.narenas.max" => Entry::Kept(|p| &p.control.max_arenas, Four, arenas),
            "heap.thread.arena_id" => Entry::ThreadArena,
            "heap.arena.create" => Entry::MakeArena,
            "heap.size.granularity" => Entry::Kept(|p| &p.control.granularity, Eight, granularity),
            "heap.size.extend" => Entry::Extend,
            "heap.alloc_class.new.desc" => Entry::Class(None),
            "stats.enabled" => Entry::Kept(|p| &p.control.statistics, Four, any),
            "stats.heap.curr_allocated" => Entry::Figure(|p| usage(p).0, Eight),
            "stats.heap.run_allocated" => Entry::Figure(|p| usage(p).1, Eight),
            "stats.heap.run_active" => Entry::Figure(|p| usage(p).2, Eight),
            "debug.heap.alloc_pattern" => Entry::Kept(|p| p.control.alloc_pattern_value(), Four, any),
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
        let number = number.parse().ok()?;
        match (of_arena, last) {
            (true, "size") => Some(Entry::ArenaSize(number)),
            (true, "automatic") => Some(Entry::ArenaAutomatic(number)),
            (false, "desc") => Some(Entry::Class(Some(number))),
            _ => None,
        }
    }

    /// Whether the entry has this query.
    pub fn takes(&self, query: Query) -> bool {
        match self {
            Entry::Global(..) | Entry::Kept(..) | Entry::ThreadArena | Entry::ArenaAutomatic(_) => {
                query != Query::Execute
            }
            Entry::Nothing => query != Query::Execute,
            Entry::Figure(..) | Entry::ArenaSize(_) => query == Query::Get,
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
                (Entry::Global(value, width), _) => put(argument, width, self.default_of(value)),
                (Entry::Kept(value, width, _), Some(pool)) => {
                    put(argument, width, value(pool).load(Ordering::Relaxed));
                }
                (Entry::Figure(figure, width), Some(pool)) => put(argument, width, figure(pool) as i64),
                (Entry::ThreadArena, _) => put(argument, Width::Four, 1),
                (Entry::ArenaSize(id), Some(pool)) => {
                    check_arena(pool, id)?;
                    put(argument, Width::Eight, 0);
                }
                (Entry::ArenaAutomatic(id), Some(pool)) => {
                    check_arena(pool, id)?;
                    put(argument, Width::Four, i64::from(id <= super::default_arenas()));
                }
                (Entry::Class(Some(id)), Some(pool)) => {
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
            super::default_arenas() as i64
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
                (Entry::Global(value, width), _) => value.store(take(argument, width), Ordering::Relaxed),
                (Entry::Kept(value, width, check), Some(pool)) => {
                    let new = take(argument, width);
                    check(new)?;
                    value(pool).store(new, Ordering::Relaxed);
                }
                (Entry::ThreadArena, Some(pool)) => check_arena(pool, take(argument, Width::Four) as u64)?,
                (Entry::ArenaAutomatic(id), Some(pool)) => check_arena(pool, id)?,
                (Entry::Class(id), Some(pool)) => {
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
            (Entry::Extend, _) => {
                Err(fail(libc::ENOTSUP, format_args!("extending the pool is not supported: create a larger one")))
            }
            _ => Ok(()),
        }
    }
}

fn check_arena(pool: &Pool, id: u64) -> Result<(), Errno> {
    if id == 0 || id > pool.control.arenas() {
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
