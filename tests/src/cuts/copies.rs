//! Copies of this process, each of which carries one saved state on.
//!
//! A state of the simulator is saved by fork(2): model, memory, link and whatever program drives
//! them, in whatever they are in the middle of, and the system copies only the pages that are
//! written to afterwards. The copy does one piece of work, sends the result through a pipe and
//! ends. A copy has one thread and the memory of its parent; what it must not do is to wait for
//! another thread of the parent. So the program that makes copies keeps to one thread; its
//! parallelism is that of the copies.

use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{PipeReader, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};
use serde::Serialize;
use serde::de::DeserializeOwned;

thread_local! {
    /// What the last panic of this thread said, and where.
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on a panic is kept for [`words_of`] and not printed.
pub fn keep_panics() {
    std::panic::set_hook(Box::new(|info| LAST_PANIC.set(Some(info.to_string()))));
}

/// What a panic said.
fn words_of(payload: &(dyn Any + Send)) -> String {
    let text = || payload.downcast_ref::<String>().cloned().or(payload.downcast_ref::<&str>().map(|s| (*s).into()));
    LAST_PANIC.take().or_else(text).unwrap_or_else(|| "a panic without words".into())
}

/// What `work` gives, or what the panic said that ended it.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| words_of(payload.as_ref()))
}

struct Copy {
    process: Pid,
    answer: PipeReader,
}

/// Copies that run, up to a number of them at a time.
pub struct Copies<T> {
    limit: usize,
    running: VecDeque<Copy>,
    answers: std::marker::PhantomData<T>,
}

impl<T: Serialize + DeserializeOwned> Copies<T> {
    /// At most `limit` at a time.
    pub fn new(limit: usize) -> Self {
        assert!(limit > 0, "one at least");
        Copies { limit, running: VecDeque::new(), answers: std::marker::PhantomData }
    }

    /// Does `work` in a copy. Where as many run as may, waits for the oldest first and gives what
    /// it found.
    ///
    /// # Panics
    /// If the system has no further process or pipe.
    pub fn start(&mut self, work: impl FnOnce() -> T) -> Option<Result<T, String>> {
        let ended = if self.running.len() == self.limit { self.oldest() } else { None };
        let (answer, mut sender) = std::io::pipe().expect("a pipe");
        let go_on = nearpm::process::copied_machine();
        // SAFETY: the copy has only this thread. Nothing that it does waits for another one: the
        // callers have one thread (see the head of this file), and the C library makes its
        // allocator usable behind a fork. It ends without running destructors of what the parent
        // owns too.
        match unsafe { fork() }.expect("a further process") {
            ForkResult::Parent { child: process } => self.running.push_back(Copy { process, answer }),
            ForkResult::Child => {
                drop(answer);
                go_on();
                let found = caught(work);
                let sent = serde_json::to_vec(&found).is_ok_and(|bytes| sender.write_all(&bytes).is_ok());
                // SAFETY: ends the process and returns to nobody; nothing of the parent's is
                // flushed or freed twice.
                unsafe { nix::libc::_exit(i32::from(!sent)) }
            }
        }
        ended
    }

    /// Waits for the oldest copy and gives what it found, or what ended it. `None` when none runs.
    pub fn oldest(&mut self) -> Option<Result<T, String>> {
        let Copy { process, mut answer } = self.running.pop_front()?;
        let mut bytes = Vec::new();
        let read = answer.read_to_end(&mut bytes);
        let ended = waitpid(process, None);
        Some(match serde_json::from_slice(&bytes) {
            Ok(found) => found,
            Err(_) => Err(format!("a copy of the process ended with {ended:?} and without an answer ({read:?})")),
        })
    }
}

impl<T> Drop for Copies<T> {
    fn drop(&mut self) {
        for Copy { process, answer } in self.running.drain(..) {
            drop(answer);
            // A process that is gone already is as good.
            let _ = waitpid(process, None);
        }
    }
}
