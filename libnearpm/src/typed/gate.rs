//! Who may be in a pool at the same time.
//!
//! Threads enter in a [`Role`]. One alone may be in as a writer; any number of readers, or any
//! number of those who hold locks, may be in together. Whoever cannot enter waits in a queue, and
//! while somebody waits nobody passes by: nobody waits for ever. The one who leaves last admits the
//! first in the queue, and with it all who wait in the same role, unless it is that of the writer.

use std::collections::VecDeque;

use super::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Ordering, SPINS};

/// What a thread enters for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// To change whatever it likes: alone.
    Writer = 1,
    /// To read whatever it likes: with others who do.
    Reader = 2,
    /// To do what its locks allow: with others who hold theirs.
    Holder = 3,
}

/// Bits of the state that hold the role of those inside; 0 if nobody is.
const ROLE: u64 = 3;
/// Somebody waits.
const WAITING: u64 = 4;
/// One thread inside.
const ONE: u64 = 8;

/// A thread that waits.
struct Waiter {
    ticket: u64,
    role: Role,
}

#[derive(Default)]
struct Queue {
    waiters: VecDeque<Waiter>,
    next_ticket: u64,
}

/// The gate of a pool.
#[derive(Default)]
pub struct Gate {
    /// Role of those inside, whether somebody waits, and how many are inside. While somebody waits
    /// only the one who leaves last changes the role, and nobody adds to the number.
    state: AtomicU64,
    queue: Mutex<Queue>,
    admitted: Condvar,
}

/// The state after a thread has entered, if it may without waiting.
fn entered(state: u64, role: Role) -> Option<u64> {
    let shared = role != Role::Writer && state & (ROLE | WAITING) == role as u64;
    (state == 0 || shared).then(|| (state | role as u64) + ONE)
}

impl Gate {
    /// Enters, waiting if need be. What those did who were inside before, and could not be inside
    /// at the same time, is visible then.
    #[inline]
    pub fn enter(&self, role: Role) {
        let state = self.state.load(Ordering::Relaxed);
        let quick = entered(state, role).is_some_and(|next| self.exchange(state, next));
        if !quick && !self.spin(role) {
            self.wait(role);
        }
    }

    #[inline]
    fn exchange(&self, state: u64, next: u64) -> bool {
        self.state.compare_exchange(state, next, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn spin(&self, role: Role) -> bool {
        (0..SPINS).any(|_| {
            std::hint::spin_loop();
            let state = self.state.load(Ordering::Relaxed);
            entered(state, role).is_some_and(|next| self.exchange(state, next))
        })
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    #[cold]
    fn wait(&self, role: Role) {
        let mut queue = self.lock();
        loop {
            let state = self.state.load(Ordering::Relaxed);
            match entered(state, role) {
                Some(next) if self.exchange(state, next) => return,
                Some(_) => {}
                None if self.exchange(state, state | WAITING) => break,
                None => {}
            }
        }
        let ticket = queue.next_ticket;
        queue.next_ticket += 1;
        queue.waiters.push_back(Waiter { ticket, role });
        // Whoever admits this thread takes it out of the queue, and counts it.
        while queue.waiters.iter().any(|waiter| waiter.ticket == ticket) {
            queue = self.admitted.wait(queue).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Leaves.
    #[inline]
    pub fn leave(&self) {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let last = state < 2 * ONE;
            let next = match (last, state & WAITING) {
                (true, 0) => 0,
                (true, _) => return self.admit(),
                (false, _) => state - ONE,
            };
            match self.state.compare_exchange(state, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => state = now,
            }
        }
    }

    /// The last one inside lets those in who wait.
    #[cold]
    fn admit(&self) {
        let mut queue = self.lock();
        let Some(first) = queue.waiters.pop_front() else {
            unreachable!("somebody waits, or nobody would have said so");
        };
        let mut inside = 1;
        if first.role != Role::Writer {
            let before = queue.waiters.len();
            queue.waiters.retain(|waiter| waiter.role != first.role);
            inside += (before - queue.waiters.len()) as u64;
        }
        let waiting = if queue.waiters.is_empty() { 0 } else { WAITING };
        // What those did who have left before is visible to whoever reads this.
        self.state.load(Ordering::Acquire);
        self.state.store(first.role as u64 | waiting | (inside * ONE), Ordering::Release);
        drop(queue);
        self.admitted.notify_all();
    }
}
