//! What cards tell each other over their peer ports.

use crate::layout::layout;

layout! {
    /// A message of a card to all others: how far it has come with a (pool, thread).
    ///
    /// It is cumulative (a later transaction covers an earlier one) and idempotent: it may be lost,
    /// doubled, delayed or sent again.
    PeerMessage, 16 {
        /// Pool identifier.
        0 pool: u32,
        /// Thread.
        4 thread: u16,
        /// Number of the device that speaks: its bit in a participants mask.
        6 device: u8,
        /// [`PEER_TELLS`] or [`PEER_ASKS`].
        7 status: u8,
        /// Tells: the transaction that the device has reached. Asks: the one that it waits for.
        8 txid: u64,
    }
}

/// Clock cycles between two questions of a command that waits.
pub const PATIENCE_CYCLES: u64 = 4096;
/// [`PeerMessage::status`]: everything of the thread up to the synchronisation of this transaction
/// is durable here.
pub const PEER_TELLS: u8 = 0;
/// [`PeerMessage::status`]: who has reached this transaction tells it again.
pub const PEER_ASKS: u8 = 1;
