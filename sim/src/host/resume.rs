//! How far an access has come that takes time, where other cores go on meanwhile.
//!
//! A core alone waits inside its access: the cards run until the answer is there. Where cores take
//! turns that would run the cards ahead of the others, whose packets would come late. There an
//! access stops instead at what it waits for ([`Blocked`]), and is called again with the same
//! [`Progress`] when that is answered. It stops as well before it sends a packet later than it has
//! begun: packets leave in the order in which they are sent, so one of a later time would hold up
//! what other cores have to send before. What an access waits for beside its own lines (room in the
//! cache, credits of the link) it waits for at once: a line that is evicted was asked for long ago,
//! and credits are a matter of the link that all share.

use super::packet::FetchId;

/// What an access has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// A read that is not answered.
    Read {
        read: FetchId,
        /// The line of the cache that it completes, which another core may complete first.
        line: Option<u64>,
    },
    /// A later time, before which other cores may have something to do.
    Turn,
}

/// How far an access has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// It has been counted, and a cut that was due has come.
    pub(super) begun: bool,
    /// Bytes that were loaded, or lines that were written back.
    pub(super) done: usize,
    /// First line of a cached load that has not been looked for in the cache.
    pub(super) asked: Option<u64>,
    /// A line of it was not in the cache.
    pub(super) missed: bool,
    /// The next line's time has been charged.
    pub(super) charged: bool,
    /// The other cores have had their turn before the next line.
    pub(super) has_turn: bool,
    /// The read that it waits for, around the cache.
    pub(super) fetch: Option<FetchId>,
}
