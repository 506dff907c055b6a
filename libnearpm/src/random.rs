//! Numbers that nobody has drawn before.

use std::hash::{BuildHasher, RandomState};
use std::time::SystemTime;

/// An identifier from the operating system's randomness. That is drawn once for a thread and goes
/// to the children of `fork`, so that process and time tell those apart: nonces of log segments
/// must not come back.
pub(crate) fn random_id() -> u32 {
    (RandomState::new().hash_one((std::process::id(), SystemTime::now())) as u32).max(1)
}
