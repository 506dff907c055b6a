//! The order in which a thread takes a pool's locks, to which builds for tests and for debugging
//! hold it: a thread that takes them in another one could wait for ever for one that does not.

use std::ops::{Deref, DerefMut};

use crate::memory::Medium;

/// Locks of a pool, the one that is taken first first; of one kind by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lock {
    /// A lane of a mechanism.
    Lane(usize),
    /// What commits of several lanes may change.
    Shared,
    /// The right to truncate.
    Truncation,
    /// A shard, by where it is.
    Shard(usize),
}

/// A lock that a thread has.
pub(crate) struct Held<G> {
    guard: G,
    #[cfg(any(test, debug_assertions))]
    _noted: noted::Noted,
}

impl<G> Held<G> {
    /// Takes a lock of the pool in a memory.
    ///
    /// # Panics
    /// In builds for tests and for debugging, if the thread has one that comes behind it.
    #[inline]
    #[cfg_attr(not(any(test, debug_assertions)), allow(unused_variables))]
    pub fn take<E>(medium: &Medium, lock: Lock, take: impl FnOnce() -> Result<G, E>) -> Result<Held<G>, E> {
        #[cfg(any(test, debug_assertions))]
        let _noted = noted::Noted::new(medium, lock);
        Ok(Held {
            guard: take()?,
            #[cfg(any(test, debug_assertions))]
            _noted,
        })
    }
}

impl<G: Deref> Deref for Held<G> {
    type Target = G::Target;
    #[inline]
    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for Held<G> {
    #[inline]
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

#[cfg(any(test, debug_assertions))]
mod noted {
    use std::cell::RefCell;

    use super::{Lock, Medium};

    thread_local! {
        /// What this thread has, and waits for: pools are told apart by their memory.
        static HAS: RefCell<Vec<(usize, Lock)>> = const { RefCell::new(Vec::new()) };
    }

    /// A lock that is noted as taken.
    pub(super) struct Noted(usize, Lock);

    impl Noted {
        /// Notes a lock before the thread waits for it.
        pub fn new(medium: &Medium, lock: Lock) -> Noted {
            let pool = std::ptr::from_ref(medium).addr();
            HAS.with_borrow_mut(|has| {
                let newest = has.iter().filter(|(of, _)| *of == pool).map(|(_, lock)| *lock).max();
                assert!(newest.is_none_or(|newest| newest < lock), "a thread that has {newest:?} takes {lock:?}");
                has.push((pool, lock));
            });
            Noted(pool, lock)
        }
    }

    impl Drop for Noted {
        fn drop(&mut self) {
            // Where the thread's own memory has gone it takes nothing any more.
            let _ = HAS.try_with(|has| {
                let mut has = has.borrow_mut();
                if let Some(at) = has.iter().rposition(|one| *one == (self.0, self.1)) {
                    has.swap_remove(at);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::{Mutex, MutexGuard};

    use super::*;
    use crate::memory::{Backing, VolatileMemory};

    fn medium() -> Medium {
        Medium::new(Backing::Other(Box::new(VolatileMemory::new(64))))
    }

    fn take<'m>(medium: &Medium, lock: Lock, mutex: &'m Mutex<()>) -> Held<MutexGuard<'m, ()>> {
        let Ok(held) = Held::take(medium, lock, || Ok::<_, Infallible>(mutex.lock().expect("nobody panics with it")));
        held
    }

    #[test]
    fn locks_are_taken_in_their_order() {
        let (medium, other) = (medium(), medium());
        let mutexes = [(); 4].map(Mutex::new);
        let lane = take(&medium, Lock::Lane(1), &mutexes[0]);
        let shard = take(&medium, Lock::Shard(7), &mutexes[1]);
        // Pools have nothing to do with each other.
        drop(take(&other, Lock::Lane(0), &mutexes[2]));
        drop(lane);
        let shared =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| take(&medium, Lock::Shared, &mutexes[3])));
        assert!(shared.is_err(), "what is shared comes ahead of shards");
        drop(shard);
        drop(take(&medium, Lock::Shared, &mutexes[3]));
    }
}
