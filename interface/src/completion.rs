//! What the card writes for the host: completion records and page status lines.

use crate::layout::layout;

layout! {
    /// Completion record, written by the card into the ring of the command's page in host memory.
    ///
    /// Record `n` of a page lies at index `n mod ring size`; its `lap` is `n / ring size + 1`,
    /// so that the reader knows a new record from an old one without clearing the ring.
    Completion, 16 {
        /// Tag of the command.
        0 tag: u32,
        /// Code of [`crate::status::Status`].
        4 status: u8,
        /// Page that the command came from.
        5 page: u8,
        /// Lap of the ring, low 16 bits.
        6 lap: u16,
        /// Order number of the command, from 1.
        8 order: u64,
    }
}

layout! {
    /// Status line of a command page: what a read anywhere in the page answers.
    ///
    /// The answer is given only when everything that the link delivered before the read stands
    /// in the persistence domain, so that a rise of `accepted` makes a command durable.
    PageStatus, 64 {
        /// Commands of this page that were accepted, modulo 2^32.
        0 accepted: u32,
        /// Commands of this page that have retired with success, modulo 2^32.
        4 retired: u32,
        /// Commands of this page that were refused without effect.
        8 refused: u32,
        /// Commands of this page that began and failed.
        12 failed: u32,
        /// Slots that were filled with a wrong checksum: dropped, never executed.
        16 dropped: u32,
        /// Tag of the last refused or failed command.
        20 last_bad_tag: u32,
        /// Status code of the last refused or failed command.
        24 last_bad_status: u8,
        /// Reserved zero.
        25 reserved: u8,
        /// Mapping entries of the card whose (pool, thread) is latched, one bit each: where this is
        /// 0, no log has failed so far, and nothing that arrived before the read was held back or
        /// dropped.
        26 latched: u16,
        /// Mapping entries that have a command which waits, may have to wait or has waited for
        /// other devices or behind such a command, one bit each: where it is 0, every commit that
        /// arrived before the read has retired here.
        28 parked: u16,
        /// Reserved zeros.
        30 reserved_middle: [u8; 2],
        /// Order number of the last accepted item of the card.
        32 order: u64,
        /// [`crate::registers::STORES_LOST`]: where this is 0, memory has refused no store so far.
        40 stores_lost: u32,
        /// Reserved zeros.
        44 reserved_tail: [u8; 20],
    }
}
