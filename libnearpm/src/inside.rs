//! Pools that the calling thread is inside of: it must not wait there for itself.

use std::cell::RefCell;

use crate::error::Error;

thread_local!(static INSIDE: RefCell<Vec<*const ()>> = const { RefCell::new(Vec::new()) });

fn of<T>(pool: &T) -> *const () {
    std::ptr::from_ref(pool).cast()
}

/// The calling thread is inside of a pool until this is dropped, by the same thread.
pub(crate) struct Inside(*const ());

impl Inside {
    /// Enters a pool, or what stands for one: it does not move while somebody is inside.
    ///
    /// # Errors
    /// [`Error::Nested`] for a thread that is inside already.
    #[inline]
    pub fn enter<T>(pool: &T) -> Result<Inside, Error> {
        if Inside::is(pool) {
            return Err(Error::Nested);
        }
        INSIDE.with_borrow_mut(|inside| inside.push(of(pool)));
        Ok(Inside(of(pool)))
    }

    /// Whether the calling thread is inside.
    #[inline]
    pub fn is<T>(pool: &T) -> bool {
        INSIDE.with_borrow(|inside| inside.contains(&of(pool)))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with_borrow_mut(|inside| inside.retain(|&pool| pool != self.0));
    }
}
