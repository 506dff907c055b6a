//! Locks in pools.

/// A lock that lies in a pool, beside what it protects; it is used by
/// [`crate::direct::DirectPool::locked`].
///
/// It is a place and no more: who holds it is known in the process that has the pool open, so that
/// every lock is free when a pool is opened, whatever was held when the last process ended. Zeros
/// are a lock. Storing over one, also by an abort, does nothing to those who hold it.
#[derive(Clone, Copy, Debug, Default, crate::Persistent)]
#[repr(C)]
pub struct PLock {
    /// Zeros, and the room that makes each lock a place of its own.
    reserved: u64,
}
