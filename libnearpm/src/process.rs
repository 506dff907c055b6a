//! Which process opened a pool: a child of `fork` has the pools of its parent before it, and must
//! not touch them.

#![allow(unsafe_code)]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::random::random_id;

/// The process that made this value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(u64);

impl Process {
    /// The calling process.
    pub fn current() -> Process {
        let word = word();
        let fresh = u64::from(random_id()) << 32 | u64::from(random_id());
        match word.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Process(fresh),
            Err(number) => Process(number),
        }
    }

    /// Whether the calling process is this one, and not a child of it. Costs two loads where the
    /// system can wipe memory at a fork.
    #[inline]
    pub fn is_current(self) -> bool {
        word().load(Ordering::Relaxed) == self.0
    }
}

/// For simulators that copy a whole machine by `fork`, pools and the memory that they lie in alike:
/// what it gives, called in the child, makes the child the process that it is a copy of. No pool on
/// a file or a card of this computer may be open.
pub fn copied_machine() -> impl FnOnce() {
    let here = Process::current();
    move || word().store(here.0, Ordering::Relaxed)
}

/// The number of the process, 0 where none was drawn yet: the system wipes its page in each child.
#[cfg(all(target_os = "linux", not(miri)))]
#[inline]
fn word() -> &'static AtomicU64 {
    static WORD: OnceLock<&AtomicU64> = OnceLock::new();
    WORD.get_or_init(|| wiped_word().unwrap_or_else(word_by_handler))
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn word() -> &'static AtomicU64 {
    static WORD: AtomicU64 = AtomicU64::new(0);
    &WORD
}

/// A word of a page that the system clears in children; `None` where it cannot (Linux before 4.14),
/// or has no page.
#[cfg(all(target_os = "linux", not(miri)))]
fn wiped_word() -> Option<&'static AtomicU64> {
    const PAGE: usize = 4096;
    // SAFETY: a new private mapping, which nothing else refers to; it stays for as long as the
    // process.
    unsafe {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let page = libc::mmap(std::ptr::null_mut(), PAGE, access, kind, -1, 0);
        if page == libc::MAP_FAILED {
            return None;
        }
        if libc::madvise(page, PAGE, libc::MADV_WIPEONFORK) != 0 {
            libc::munmap(page, PAGE);
            return None;
        }
        Some(AtomicU64::from_ptr(page.cast()))
    }
}

/// A word that a handler of `fork` clears in children.
#[cfg(all(target_os = "linux", not(miri)))]
fn word_by_handler() -> &'static AtomicU64 {
    static WORD: AtomicU64 = AtomicU64::new(0);
    unsafe extern "C" fn clear() {
        WORD.store(0, Ordering::Relaxed);
    }
    // SAFETY: the handler is a function of this library, and stores to a static word alone.
    unsafe { libc::pthread_atfork(None, None, Some(clear)) };
    &WORD
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    /// What a child of `fork` answers, as the code that it ends with.
    fn in_child(answer: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child calls what needs no lock of another thread, and ends without running
        // anything of the test.
        unsafe {
            match libc::fork() {
                0 => libc::_exit(i32::from(answer())),
                child => {
                    let mut status = 0;
                    assert_eq!(libc::waitpid(child, &mut status, 0), child);
                    assert!(libc::WIFEXITED(status));
                    libc::WEXITSTATUS(status) == 1
                }
            }
        }
    }

    #[test]
    fn a_child_is_another_process() {
        let here = Process::current();
        assert!(here.is_current() && Process::current() == here);
        assert!(in_child(|| !here.is_current()));
        assert!(in_child(|| Process::current() != here && !here.is_current()));
        assert!(here.is_current());
    }

    #[test]
    fn a_handler_sees_children_as_well() {
        let word = word_by_handler();
        word.store(7, Ordering::Relaxed);
        assert!(in_child(|| word.load(Ordering::Relaxed) == 0));
        assert_eq!(word.load(Ordering::Relaxed), 7);
    }
}
