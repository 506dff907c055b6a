//! Something that a thread leaves to be done at its end.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// A key of threads, whose values a function ends when their threads do.
pub struct ThreadEnd {
    key: OnceLock<Result<libc::pthread_key_t, c_int>>,
    end: unsafe extern "C" fn(*mut c_void),
}

impl ThreadEnd {
    /// `end` gets what a thread has stored under the key, unless that is null.
    pub const fn new(end: unsafe extern "C" fn(*mut c_void)) -> ThreadEnd {
        ThreadEnd { key: OnceLock::new(), end }
    }

    /// The key, made when it is first asked for.
    ///
    /// # Errors
    /// The system's error where it has no more keys.
    pub fn key(&self) -> Result<libc::pthread_key_t, c_int> {
        *self.key.get_or_init(|| {
            let mut key = 0;
            // SAFETY: the destructor gets the pointers that the owner of this key stores.
            let made = unsafe { libc::pthread_key_create(&mut key, Some(self.end)) };
            if made == 0 { Ok(key) } else { Err(made) }
        })
    }
}
