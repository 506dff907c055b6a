//! Registers of a card that several processes share through a broker, which says so by
//! [`crate::registers::capability::SHARED`]. A card has none of them.
//!
//! A process claims the pools that it has open, so that no other one opens them, and takes the lock
//! while it changes the table of pools. What a process has claimed and locked is given back when it
//! ends.

/// Number of the process among those that share the card, from 1 (7:0), and how many there can be
/// (15:8). Read-only.
pub const SEAT: u32 = 0x800;
/// Pool of the next action: its identifier.
pub const CLAIM_POOL: u32 = 0x810;
/// Its device address, low half.
pub const CLAIM_BASE: u32 = 0x814;
/// Its device address, high half.
pub const CLAIM_BASE_HI: u32 = 0x818;
/// Its bytes, low half.
pub const CLAIM_BYTES: u32 = 0x81c;
/// Its bytes, high half.
pub const CLAIM_BYTES_HI: u32 = 0x820;
/// Acts, see [`action`]. Write-only.
pub const CLAIM_ACT: u32 = 0x824;
/// What became of the last action, see [`outcome`]. Read-only.
pub const CLAIM_OUTCOME: u32 = 0x828;

/// Values of [`CLAIM_ACT`].
pub mod action {
    /// Claims the pool.
    pub const CLAIM: u32 = 1;
    /// Gives the pool back.
    pub const GIVE_BACK: u32 = 2;
    /// Takes the lock of the table of pools.
    pub const LOCK: u32 = 3;
    /// Gives the lock back.
    pub const UNLOCK: u32 = 4;
}

/// Values of [`CLAIM_OUTCOME`].
pub mod outcome {
    /// It was done.
    pub const DONE: u32 = 1;
    /// Another process has the pool, a part of its range, or the lock.
    pub const TAKEN: u32 = 2;
    /// It makes no sense: no such action, a range outside the card.
    pub const REFUSED: u32 = 3;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::REGISTER_BAR_BYTES;

    #[test]
    fn no_register_of_the_card_lies_there() {
        let last = crate::registers::ALL.last().expect("there are registers");
        assert!(last.offset < SEAT && (CLAIM_OUTCOME as usize) < REGISTER_BAR_BYTES);
    }
}
