//! Pages of mapped files that their files cannot give.
//!
//! A load or store of such a page is a SIGBUS: the file was cut short by somebody who does not know
//! of the pool's lock, the medium has no room for a hole of it, or cannot be read. No check before
//! an access can exclude that. So there is a handler, for the pages of pools alone: it puts a page
//! of zeros of this process there, and remembers the loss. Whoever acknowledges something asks for
//! it first ([`Guard::check`]). A hole that is private needs more than that page of zeros in no
//! case, and is no loss.
//!
//! Every other SIGBUS goes to the handler that was there before. A program that installs one of its
//! own later takes this one's place.
//!
//! Threads may come upon one page at the same time, and the second must not take away what the
//! first has stored to it since. So one page is mended at a time, and one that can be read by then
//! is left as it is (Linux 5.14 tells).
//!
//! The handler calls `fstat`, `lseek`, `madvise`, `mmap`, `getpid`, `gettid`, `sched_yield` and
//! `sigaction` alone, and reads atomic words: [`Slot`]s, of which none is ever freed.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{Error as IoError, ErrorKind};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use libc::{c_int, c_void, siginfo_t};
use rustix::fs::{SeekFrom, seek};

use crate::error::{Error, Problem};

/// What a mapping has lost.
mod loss {
    pub const NOTHING: u8 = 0;
    /// The file has become shorter.
    pub const CUT: u8 = 1;
    /// The medium has no room for a hole.
    pub const FULL: u8 = 2;
    /// The medium cannot be read.
    pub const UNREADABLE: u8 = 3;
}

/// A mapping that the handler knows. Its start is set last and cleared first.
struct Slot {
    /// Address of the first byte; 0 for a slot that is free.
    start: AtomicUsize,
    bytes: AtomicUsize,
    file: AtomicI32,
    /// Stores to the mapping do not go to the file.
    private: AtomicBool,
    /// One of [`loss`].
    lost: AtomicU8,
    next: AtomicPtr<Slot>,
}

static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(null_mut());
/// Locked by whoever takes or gives a slot.
static TAKING: Mutex<()> = Mutex::new(());
/// Who handled the signal before, and bytes of a page.
static FORMER: OnceLock<(libc::sigaction, usize)> = OnceLock::new();

fn slots() -> impl Iterator<Item = &'static Slot> {
    let mut next = SLOTS.load(Ordering::Acquire);
    std::iter::from_fn(move || {
        // SAFETY: a slot is never freed, and was written before it was made reachable.
        let slot = unsafe { next.as_ref() }?;
        next = slot.next.load(Ordering::Acquire);
        Some(slot)
    })
}

/// Watches over a mapping of a file as long as it lives.
pub(crate) struct Guard {
    slot: &'static Slot,
    /// A descriptor of its own, which the handler may use until the end.
    file: File,
    path: PathBuf,
    bytes: AtomicU64,
}

impl Guard {
    /// Watches over a mapping of the first `bytes` bytes of a file, at an address.
    pub fn new(file: &File, path: &Path, address: *mut u8, bytes: u64, private: bool) -> Result<Guard, Error> {
        let system = |error| Error::system(format!("watch over the mapping of {}", path.display()), error);
        install().map_err(system)?;
        let file = file.try_clone().map_err(system)?;
        let _turn = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let free = slots().find(|slot| slot.start.load(Ordering::Relaxed) == 0);
        let slot = free.unwrap_or_else(|| {
            let slot = Box::leak(Box::new(Slot {
                start: AtomicUsize::new(0),
                bytes: AtomicUsize::new(0),
                file: AtomicI32::new(-1),
                private: AtomicBool::new(false),
                lost: AtomicU8::new(loss::NOTHING),
                next: AtomicPtr::new(SLOTS.load(Ordering::Acquire)),
            }));
            SLOTS.store(slot, Ordering::Release);
            slot
        });
        slot.bytes.store(bytes as usize, Ordering::Relaxed);
        slot.file.store(file.as_raw_fd(), Ordering::Relaxed);
        slot.private.store(private, Ordering::Relaxed);
        slot.lost.store(loss::NOTHING, Ordering::Relaxed);
        slot.start.store(address.addr(), Ordering::Release);
        Ok(Guard { slot, file, path: path.to_owned(), bytes: AtomicU64::new(bytes) })
    }

    /// The file has grown, and more of the mapping is in use.
    pub fn grow(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.slot.bytes.store(bytes as usize, Ordering::Release);
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether nothing was lost.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.slot.lost.load(Ordering::Acquire) == loss::NOTHING
    }

    /// Whether everything that was loaded and stored was there.
    ///
    /// # Errors
    /// [`Problem::Truncated`], [`Problem::NoSpace`], [`Error::System`]. From then on always.
    #[inline]
    pub fn check(&self) -> Result<(), Error> {
        if self.is_whole() { Ok(()) } else { Err(self.error(self.slot.lost.load(Ordering::Acquire))) }
    }

    /// The same, and whether the file has its size still, although nobody has come upon the place
    /// where it was cut.
    ///
    /// # Errors
    /// As [`Guard::check`].
    pub fn check_size(&self) -> Result<(), Error> {
        if self.size()? < self.bytes() {
            self.lose(loss::CUT);
        }
        self.check()
    }

    /// The medium has no room for something that was to be stored, which is lost.
    pub fn lose_for_room(&self) {
        self.lose(loss::FULL);
    }

    /// The file could not be read.
    pub fn lose_unread(&self) {
        self.lose(loss::UNREADABLE);
    }

    fn lose(&self, lost: u8) {
        self.slot.lost.store(lost, Ordering::Release);
    }

    /// By a seek, and not by all that the system tells about a file: of one whose times were asked
    /// for, the next write has to make a new one (Linux 6.13), with a change of the file system's
    /// tables. The offset of the descriptor means nothing to anybody.
    fn size(&self) -> Result<u64, Error> {
        let end = seek(&self.file, SeekFrom::End(0));
        end.map_err(|e| Error::system(format!("read the size of {}", self.path.display()), e.into()))
    }

    #[cold]
    fn error(&self, lost: u8) -> Error {
        match lost {
            loss::CUT => match self.size() {
                Ok(found) => Problem::Truncated { header: self.bytes(), found }.at(self.path.display()),
                Err(error) => error,
            },
            loss::FULL => Problem::NoSpace { needed: self.bytes() }.at(self.path.display()),
            _ => Error::system(format!("read {}", self.path.display()), IoError::from_raw_os_error(libc::EIO)),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _turn = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
        self.slot.start.store(0, Ordering::Release);
    }
}

/// Installs the handler, once in a process.
fn install() -> std::io::Result<()> {
    let _turn = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if FORMER.get().is_some() {
        return Ok(());
    }
    let done = |code: c_int| if code == 0 { Ok(()) } else { Err(IoError::last_os_error()) };
    // SAFETY: zeros are a value of the structure; the calls get structures of this function, and
    // the handler keeps to what a handler may do. The former one is known before the new one can
    // run.
    unsafe {
        let page = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).map_err(|_| ErrorKind::Unsupported)?;
        let mut former: libc::sigaction = std::mem::zeroed();
        done(libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut former))?;
        FORMER.get_or_init(|| (former, page));
        let mut action = former;
        action.sa_sigaction = on_bus_error as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | (former.sa_flags & libc::SA_RESTART);
        done(libc::sigaction(libc::SIGBUS, &action, null_mut()))
    }
}

extern "C" fn on_bus_error(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let Some((former, page)) = FORMER.get() else { return };
    // SAFETY: the system gives the information of the signal, and the thread's own error number may
    // be read and written.
    let mended = unsafe {
        let errno = *libc::__errno_location();
        // Only of an address that is mapped: a damaged page of memory is somebody else's.
        let mended = (*info).si_code == libc::BUS_ADRERR && mend((*info).si_addr().addr(), *page);
        *libc::__errno_location() = errno;
        mended
    };
    if !mended {
        // SAFETY: the former handler is called as the system would have called it; where there is
        // none, the instruction is repeated with the system's own reaction, which ends the process.
        unsafe {
            match former.sa_sigaction {
                libc::SIG_DFL | libc::SIG_IGN => {
                    let mut system: libc::sigaction = std::mem::zeroed();
                    system.sa_sigaction = libc::SIG_DFL;
                    libc::sigaction(signal, &system, null_mut());
                }
                handler if former.sa_flags & libc::SA_SIGINFO != 0 => {
                    let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = std::mem::transmute(handler);
                    handler(signal, info, context);
                }
                handler => {
                    let handler: extern "C" fn(c_int) = std::mem::transmute(handler);
                    handler(signal);
                }
            }
        }
    }
}

/// The thread that mends a page: its process and its own number, 0 for none.
static MENDING: AtomicU64 = AtomicU64::new(0);

/// The turn of the thread that mends a page; `false` where it has it from what this handler has
/// interrupted.
struct Mending(bool);

impl Mending {
    /// Waits for it. A turn that another process has is that of a thread of the parent, which a
    /// `fork` has not copied.
    fn take() -> Mending {
        // SAFETY: the calls take and change nothing.
        let (process, thread) = unsafe { (libc::getpid(), libc::syscall(libc::SYS_gettid)) };
        let own = (process as u64) << 32 | thread as u64;
        let mut holder = 0;
        while let Err(now) = MENDING.compare_exchange_weak(holder, own, Ordering::Acquire, Ordering::Relaxed) {
            if now == own {
                return Mending(false);
            }
            holder = if now >> 32 == own >> 32 { 0 } else { now };
            // SAFETY: as above.
            unsafe { libc::sched_yield() };
        }
        Mending(true)
    }
}

impl Drop for Mending {
    fn drop(&mut self) {
        if self.0 {
            MENDING.store(0, Ordering::Release);
        }
    }
}

/// Whether a page of a mapping can be read, which the answer maps.
#[cfg(target_os = "linux")]
fn is_readable(at: usize, page: usize) -> bool {
    // SAFETY: the page belongs to a mapping of a pool; the call changes no byte of it.
    unsafe { libc::madvise(at as *mut c_void, page, libc::MADV_POPULATE_READ) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn is_readable(_: usize, _: usize) -> bool {
    false
}

/// Puts zeros at an address that a mapping could not give, and remembers the loss. Says whether it
/// could.
fn mend(address: usize, page: usize) -> bool {
    let at = address & !(page - 1);
    let _turn = Mending::take();
    for slot in slots() {
        let start = slot.start.load(Ordering::Acquire);
        let (bytes, file) = (slot.bytes.load(Ordering::Relaxed), slot.file.load(Ordering::Relaxed));
        let private = slot.private.load(Ordering::Relaxed);
        // Another thread may be giving the slot to another mapping: then it is none of the address.
        if start == 0 || !(start..start + bytes).contains(&address) || slot.start.load(Ordering::Acquire) != start {
            continue;
        }
        if private && is_readable(at, page) {
            return true;
        }
        let offset = (at - start) as u64;
        let (end, lost) = match beneath(file, offset, page as u64) {
            // What lies behind is cut off as well.
            Beneath::Nothing => ((start + bytes).next_multiple_of(page), loss::CUT),
            Beneath::Hole if private => (at + page, loss::NOTHING),
            Beneath::Hole => (at + page, loss::FULL),
            Beneath::Data => (at + page, loss::UNREADABLE),
        };
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: the pages belong to the mapping of the slot, which lives, as somebody uses it;
        // the library refers to them by raw copies alone.
        let map = unsafe { libc::mmap(at as *mut c_void, end - at, protection, flags, -1, 0) };
        if map == libc::MAP_FAILED {
            return false;
        }
        slot.lost.fetch_max(lost, Ordering::Release);
        return true;
    }
    false
}

/// What a file has at an offset.
enum Beneath {
    Nothing,
    Hole,
    Data,
}

fn beneath(file: c_int, offset: u64, page: u64) -> Beneath {
    // SAFETY: zeros are a value of the structure, which is this function's; the offset of the
    // descriptor means nothing to anybody.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        if libc::fstat(file, &mut status) == 0 && offset >= status.st_size as u64 {
            return Beneath::Nothing;
        }
        let data = libc::lseek(file, offset as libc::off_t, libc::SEEK_DATA);
        let none = data < 0 && *libc::__errno_location() == libc::ENXIO;
        if none || data >= 0 && data as u64 >= offset + page { Beneath::Hole } else { Beneath::Data }
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use memmap2::MmapOptions;

    use super::*;

    /// A thread that was late: while it came to its turn another one has mended the page, and has
    /// stored to it.
    #[test]
    fn a_page_that_another_thread_has_mended_keeps_what_is_in_it() {
        const BYTES: usize = 1 << 16;
        let file = tempfile::tempfile().unwrap();
        file.set_len(BYTES as u64).unwrap();
        // SAFETY: nobody else knows the file.
        let mut map = unsafe { MmapOptions::new().len(BYTES).map_copy(&file) }.unwrap();
        let guard = Guard::new(&file, Path::new("hole"), map.as_mut_ptr(), BYTES as u64, true).unwrap();
        let page = FORMER.get().unwrap().1;
        map[5000] = 7;
        if !is_readable(map.as_ptr().addr(), page) {
            eprintln!("SKIPPED: this system does not tell whether a page can be read");
            return;
        }
        assert!(mend(map.as_ptr().addr() + 5000, page));
        assert_eq!(map[5000], 7);
        assert!(guard.is_whole());
    }

    /// A file whose times were asked for since its last write gets a finer one at the next, at
    /// once; any other keeps its time until the system's clock ticks.
    #[test]
    fn to_ask_for_the_size_makes_no_later_write_change_the_time_of_the_file() {
        use std::os::unix::fs::{FileExt, MetadataExt};
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 16).unwrap();
        // SAFETY: nobody else knows the file.
        let mut map = unsafe { MmapOptions::new().map_copy(&file) }.unwrap();
        let guard = Guard::new(&file, Path::new("times"), map.as_mut_ptr(), 1 << 16, true).unwrap();
        let changed = |ask: &dyn Fn()| {
            let rounds = (0..200).filter(|_| {
                file.metadata().unwrap();
                file.write_all_at(&[1], 0).unwrap();
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
                ask();
                file.write_all_at(&[2], 0).unwrap();
                let of = file.metadata().unwrap();
                (of.ctime() as u64, of.ctime_nsec() as u32) > (now.as_secs(), now.subsec_nanos())
            });
            rounds.count()
        };
        let (by_guard, by_metadata) = (changed(&|| guard.check_size().unwrap()), changed(&|| drop(file.metadata())));
        if by_metadata < 100 {
            eprintln!("SKIPPED: this system's times are as coarse for a file that was asked for them");
            return;
        }
        assert!(by_guard < 50, "{by_guard} of 200 writes changed the time, {by_metadata} where it was asked for");
    }

    #[test]
    fn the_size_of_a_file_that_has_become_shorter_is_a_loss() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 16).unwrap();
        // SAFETY: nobody else knows the file.
        let mut map = unsafe { MmapOptions::new().map_copy(&file) }.unwrap();
        let guard = Guard::new(&file, Path::new("cut"), map.as_mut_ptr(), 1 << 16, true).unwrap();
        guard.check_size().unwrap();
        file.set_len(1 << 15).unwrap();
        assert!(guard.check_size().is_err() && !guard.is_whole());
    }

    #[test]
    fn a_turn_of_a_process_that_is_not_this_one_is_taken_over() {
        // No process has this number.
        MENDING.store(u64::from(u32::MAX) << 32 | 1, Ordering::Release);
        let turn = Mending::take();
        // A handler that interrupts the one that has the turn does not wait for itself, nor gives
        // it away.
        drop(Mending::take());
        assert_ne!(MENDING.load(Ordering::Acquire), 0);
        drop(turn);
        assert_eq!(MENDING.load(Ordering::Acquire), 0);
    }
}
