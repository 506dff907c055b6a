//! A warp on an SM.

use nearpm_ptx::Next;

use crate::stalls::Why;

/// How far a warp's order of device scope, or its epoch's end, is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ordering {
    #[default]
    None,
    Waits,
    Done,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Warp {
    /// Handle of its block, and its number there; none where nobody is.
    pub block: Option<usize>,
    pub number: usize,
    pub next: Option<Next>,
    /// When its next instruction can be issued.
    pub ready_at: u64,
    /// When each register's value is there.
    pub registers: Vec<u64>,
    /// When its volatile stores are acknowledged.
    pub stores_until: u64,
    pub ordering: Ordering,
    /// Whether the store of its release has been sent to persistent memory, and is to be seen when
    /// that is acknowledged.
    pub flag_sent: bool,
    /// Entries of the buffer that it needs, where it waits for them.
    pub needs: u32,
    /// The buffer's entry that has to be durable first.
    pub waits_for: Option<u64>,
    /// Why it waits.
    pub why: Why,
    /// Order of its start.
    pub age: u64,
}
