//! What a command answers. RTL, Rust and C share these codes.

macro_rules! statuses {
    ($( $(#[doc = $doc:literal])* $name:ident = $code:literal ),* $(,)?) => {
        /// Outcome of a command.
        ///
        /// Codes below 0x80 other than [`Status::Ok`] are refusals: the card did nothing. Codes
        /// from 0x80 say that the command had begun, so memory in its write ranges is undefined.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Status { $( $(#[doc = $doc])* $name = $code ),* }

        impl Status {
            /// Every status with its one-line meaning.
            pub const ALL: &'static [(Status, &'static str)] =
                &[ $( (Status::$name, concat!($($doc),*)) ),* ];
            /// The status of a code, or `None` for a code that no card sends.
            pub fn from_code(code: u8) -> Option<Status> {
                match code { $( $code => Some(Status::$name), )* _ => None }
            }
        }
    };
}

statuses! {
    /// Done: everything that the command wrote is durable.
    Ok = 0x00,
    /// The firmware in force has no program for the opcode.
    BadOpcode = 0x01,
    /// The length is zero or above the longest command.
    BadLength = 0x02,
    /// A range wraps, or leaves its pool or its log ring.
    OutOfRange = 0x03,
    /// No mapping for (pool, thread).
    Unmapped = 0x04,
    /// An address is not aligned as the operand needs, or source and destination differ in their
    /// offset in the line.
    Misaligned = 0x05,
    /// Two ranges of the command overlap.
    Overlap = 0x06,
    /// The command needs the privileged page.
    NotPrivileged = 0x07,
    /// The address mapping table is full.
    MapFull = 0x08,
    /// (pool, thread) is mapped already.
    MapExists = 0x09,
    /// The transaction id is not above the last committed one.
    StaleTransaction = 0x0a,
    /// An earlier log of (pool, thread) failed, or the command would have to wait for a store that
    /// a failed log holds: everything of (pool, thread) is refused until it is unmapped.
    Latched = 0x0b,
    /// The participants mask leaves this device out, or names a device that this card cannot reach.
    BadParticipants = 0x0c,
    /// The command may have to wait for other devices, and as many as can do so already.
    ParkedFull = 0x0d,
    /// The command waited for other devices, and the recovery took it away.
    Discarded = 0x0e,
    /// Memory answered a read or a write with an error after the command had begun.
    MemoryError = 0x80,
    /// A microprogram met an instruction that it must not execute.
    FirmwareFault = 0x81,
}

impl Status {
    /// The code that the card sends.
    pub fn code(self) -> u8 {
        self as u8
    }
    /// Whether the command may have written something.
    pub fn had_side_effects(self) -> bool {
        self == Status::Ok || self.code() >= 0x80
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_names_one_status() {
        for &(status, meaning) in Status::ALL {
            assert_eq!(Status::from_code(status.code()), Some(status));
            assert!(!meaning.is_empty());
        }
        assert_eq!(Status::from_code(0xff), None);
    }
}
