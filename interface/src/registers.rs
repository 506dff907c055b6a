//! The AXI4-Lite register block: 32-bit registers, little-endian.

/// How a register may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Constant or status: writes are ignored.
    ReadOnly,
    /// Keeps what was written.
    ReadWrite,
    /// A write acts; reads give zero.
    WriteOnly,
}

/// One register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// Name, in upper snake case.
    pub name: &'static str,
    /// Byte offset in the block.
    pub offset: u32,
    /// How it may be used.
    pub access: Access,
    /// What it holds.
    pub doc: &'static str,
}

macro_rules! registers {
    ($( $(#[doc = $doc:literal])* $offset:literal $name:ident $access:ident ),* $(,)?) => {
        $( $(#[doc = $doc])* pub const $name: u32 = $offset; )*
        /// Every register by rising offset.
        pub const ALL: &[Register] = &[ $( Register {
            name: stringify!($name), offset: $offset, access: Access::$access, doc: concat!($($doc),*),
        } ),* ];
    };
}

registers! {
    /// Magic "NPM1": a card of this family.
    0x000 ID ReadOnly,
    /// [`crate::INTERFACE_VERSION`].
    0x004 VERSION ReadOnly,
    /// First eight hexadecimal digits of the hash of the generated Verilog.
    0x008 BUILD_HASH ReadOnly,
    /// Capability bits, see [`capability`].
    0x00c CAPABILITIES ReadOnly,
    /// Units (7:0), request slots (15:8), host queue lines (23:16), mapping entries (31:24).
    0x010 GEOMETRY ReadOnly,
    /// Bytes of persistent memory, low half.
    0x014 PM_BYTES_LO ReadOnly,
    /// Bytes of persistent memory, high half.
    0x018 PM_BYTES_HI ReadOnly,
    /// Number of this device, which is its bit in a participants mask. Until it is written after a
    /// power-up or a function-level reset the device neither speaks to others nor hears them.
    0x01c DEVICE_NUMBER ReadWrite,
    /// State of the card, see [`state`].
    0x020 STATE ReadOnly,
    /// Acts by bit, see [`control`].
    0x024 CONTROL WriteOnly,
    /// Generation of the persistence domain: rises with every power-up.
    0x028 GENERATION ReadOnly,
    /// Items that the last power-up replayed.
    0x02c REPLAYED ReadOnly,
    /// Mapping entries whose (pool, thread) is latched after a failed log or a lost store, one bit
    /// each.
    0x030 LATCHED ReadOnly,
    /// Mapping entries in use, one bit each. Not those that a function-level reset left to commands
    /// which wait for other devices.
    0x034 MAPPED ReadOnly,
    /// Clock cycles that the last power-fail save took.
    0x038 SAVE_CYCLES ReadOnly,
    /// Write a slot number to load and verify its image and put it in force.
    0x040 FIRMWARE_LOAD WriteOnly,
    /// Outcome of the last load (7:0, see [`firmware_status`]) and the slot in force (15:8). From
    /// [`FIRMWARE_LOAD`] on it shows `BUSY` until the outcome of that load is known and [`STATE`]
    /// shows it, or the power fails; `OK` is not shown while [`STATE`] says BOOTING or REPLAYING.
    0x044 FIRMWARE_STATUS ReadOnly,
    /// Checksum of the image in force.
    0x048 FIRMWARE_CRC ReadOnly,
    /// Commands that wait for other devices, or behind such a command of their thread: places of
    /// the table in use, one bit each.
    0x050 PARKED ReadOnly,
    /// The place that the next registers show.
    0x054 PARKED_SELECT ReadWrite,
    /// Pool of the command in the selected place.
    0x058 PARKED_POOL ReadOnly,
    /// Its thread (15:0), opcode (23:16) and participants (31:24).
    0x05c PARKED_THREAD ReadOnly,
    /// Its transaction, low half.
    0x060 PARKED_TXID_LO ReadOnly,
    /// Its transaction, high half.
    0x064 PARKED_TXID_HI ReadOnly,
    /// Participants that have come as far, this device included (7:0).
    0x068 PARKED_REACHED ReadOnly,
    /// Acts on a place in use (7:0), see [`parked_action`] (15:8).
    0x06c PARKED_ACT WriteOnly,
    /// Completion ring of page 0: bus address, low half (64-byte aligned).
    0x080 COMPLETION0_LO ReadWrite,
    /// Completion ring of page 0: bus address, high half.
    0x084 COMPLETION0_HI ReadWrite,
    /// Completion ring of page 0: log2 of its records (0 to 12); writing it restarts the ring and
    /// enables it.
    0x088 COMPLETION0_SIZE ReadWrite,
    /// Completion ring of page 1: bus address, low half (64-byte aligned).
    0x090 COMPLETION1_LO ReadWrite,
    /// Completion ring of page 1: bus address, high half.
    0x094 COMPLETION1_HI ReadWrite,
    /// Completion ring of page 1: log2 of its records (0 to 12); writing it restarts the ring and
    /// enables it.
    0x098 COMPLETION1_SIZE ReadWrite,
    /// Completion ring of page 2: bus address, low half (64-byte aligned).
    0x0a0 COMPLETION2_LO ReadWrite,
    /// Completion ring of page 2: bus address, high half.
    0x0a4 COMPLETION2_HI ReadWrite,
    /// Completion ring of page 2: log2 of its records (0 to 12); writing it restarts the ring and
    /// enables it.
    0x0a8 COMPLETION2_SIZE ReadWrite,
    /// Completion ring of page 3: bus address, low half (64-byte aligned).
    0x0b0 COMPLETION3_LO ReadWrite,
    /// Completion ring of page 3: bus address, high half.
    0x0b4 COMPLETION3_HI ReadWrite,
    /// Completion ring of page 3: log2 of its records (0 to 12); writing it restarts the ring and
    /// enables it.
    0x0b8 COMPLETION3_SIZE ReadWrite,
    /// Host stores that memory refused after the card had accepted them: they are lost. Stays until
    /// [`control::ACKNOWLEDGE_LOSS`], over power cuts too.
    0x0c0 STORES_LOST ReadOnly,
    /// Lowest device address among the lines of those stores, low half; 0 where there are none.
    0x0c4 LOST_FIRST_LO ReadOnly,
    /// Lowest device address among the lines of those stores, high half.
    0x0c8 LOST_FIRST_HI ReadOnly,
    /// Highest device address among the lines of those stores, low half.
    0x0cc LOST_LAST_LO ReadOnly,
    /// Highest device address among the lines of those stores, high half.
    0x0d0 LOST_LAST_HI ReadOnly,
    /// Clock cycles since reset.
    0x100 CYCLES ReadOnly,
    /// Commands accepted since the card opened. What a replay does again was counted before the
    /// power went and counts in `REPLAYED` only.
    0x104 COMMANDS_ACCEPTED ReadOnly,
    /// Commands retired with success.
    0x108 COMMANDS_RETIRED ReadOnly,
    /// Commands refused without effect.
    0x10c COMMANDS_REFUSED ReadOnly,
    /// Commands that began and failed.
    0x110 COMMANDS_FAILED ReadOnly,
    /// Slots dropped for a wrong checksum.
    0x114 COMMANDS_DROPPED ReadOnly,
    /// Commands that had to wait for a conflicting earlier item.
    0x118 COMMANDS_HELD ReadOnly,
    /// Host reads accepted (lines).
    0x11c HOST_READS ReadOnly,
    /// Host writes accepted (lines).
    0x120 HOST_WRITES ReadOnly,
    /// Host accesses that had to wait for a conflicting earlier item.
    0x124 HOST_HELD ReadOnly,
    /// Host writes refused: to the save area, to the firmware in force, beyond memory, or while
    /// closed.
    0x128 HOST_REFUSED ReadOnly,
    /// Lines that units read from memory.
    0x12c UNIT_READ_LINES ReadOnly,
    /// Lines that units wrote to memory.
    0x130 UNIT_WRITE_LINES ReadOnly,
    /// Times that the memory port changed direction.
    0x134 DIRECTION_SWITCHES ReadOnly,
    /// Cycles in which a complete command waited for a request slot.
    0x138 STALL_REQUEST_FULL ReadOnly,
    /// Cycles in which a host access waited for a queue line.
    0x13c STALL_HOST_FULL ReadOnly,
    /// Host accesses to lines that a latched log holds back, or that a held store will write: loads
    /// answered with an error, and stores dropped because `HELD_STORES` others are held.
    0x140 HOST_LATCHED ReadOnly,
    /// Completion records that host memory refused: nobody reads them.
    0x144 RECORDS_LOST ReadOnly,
    /// Requests of the host whose data PCI Express calls poisoned (EP): the PCIe bridge has dropped
    /// and counted them since its reset. It answers this register in place of the card, which
    /// says 0.
    0x148 TLPS_POISONED ReadOnly,
}

/// Value of [`ID`]: "NPM1" in little-endian ASCII.
pub const ID_VALUE: u32 = u32::from_le_bytes(*b"NPM1");

/// Bits of [`CAPABILITIES`].
pub mod capability {
    /// Host accesses pass the ordering point. Where this is clear the library waits for each
    /// command before it stores to what the command covers.
    pub const HOST_ORDERED: u32 = 1 << 0;
    /// The card writes completion records by DMA.
    pub const COMPLETION_RECORDS: u32 = 1 << 1;
    /// What the card acknowledged survives a power cut (battery, capacitor or non-volatile
    /// memory). Clear on a VCU118, whose DRAM is volatile.
    pub const POWER_FAIL_SAFE: u32 = 1 << 2;
    /// The card has a peer port: commands synchronise with other devices.
    pub const PEERS: u32 = 1 << 3;
    /// Several processes share the card through a broker, which has the registers of
    /// [`crate::sharing`]. Clear on every card.
    pub const SHARED: u32 = 1 << 4;
}

/// What [`PARKED_ACT`] does (15:8).
pub mod parked_action {
    /// The command goes on as if every participant had come as far: its transaction is committed.
    pub const RELEASE: u32 = 1;
    /// The command retires as [`crate::status::Status::Discarded`], without effect: its transaction
    /// is undone. Only while the device is silent, that is before `DEVICE_NUMBER` is written: else
    /// it would report what comes behind in the thread, and with that this transaction.
    pub const DISCARD: u32 = 2;
}

/// Values of [`STATE`].
pub mod state {
    /// Reading the save area after reset; or a function-level reset has been asked for and is not
    /// done.
    pub const BOOTING: u32 = 0;
    /// Replaying a saved image; the PM window is closed.
    pub const REPLAYING: u32 = 1;
    /// Open: commands and host accesses are taken.
    pub const OPEN: u32 = 2;
    /// Accepted work is lost: the power-fail save did not complete, memory has refused an item of
    /// the replay, or it had refused a store before the power went. The window is closed until
    /// [`super::control::ACKNOWLEDGE_LOSS`].
    pub const LOSS: u32 = 3;
    /// No valid firmware in force; host accesses are taken, commands refused as bad opcodes.
    pub const NO_FIRMWARE: u32 = 4;
    /// A saved image waits for firmware that is not there; the window is closed.
    pub const FIRMWARE_MISSING: u32 = 5;
    /// Power-fail save under way.
    pub const SAVING: u32 = 6;
    /// Drained and saved: waiting for power to go or for reset.
    pub const SAVED: u32 = 7;
}

/// Bits of [`CONTROL`].
pub mod control {
    /// Finish everything accepted, mark the domain clean and stop taking work.
    pub const SHUT_DOWN: u32 = 1 << 0;
    /// Accept what was lost: a card in [`super::state::LOSS`] or [`super::state::FIRMWARE_MISSING`]
    /// opens, and [`super::STORES_LOST`] begins anew.
    pub const ACKNOWLEDGE_LOSS: u32 = 1 << 1;
    /// Function-level reset: drain accepted work, then forget mappings and completion rings.
    /// [`super::STATE`] says [`super::state::BOOTING`] until that is done.
    pub const FUNCTION_RESET: u32 = 1 << 2;
}

/// Values of [`FIRMWARE_STATUS`] (7:0).
pub mod firmware_status {
    /// Nothing loaded since power-up.
    pub const NONE: u32 = 0;
    /// Loaded, verified, in force.
    pub const OK: u32 = 1;
    /// Loading.
    pub const BUSY: u32 = 2;
    /// The magic is wrong.
    pub const BAD_MAGIC: u32 = 3;
    /// The format or instruction version is not this card's.
    pub const BAD_VERSION: u32 = 4;
    /// The checksum does not hold.
    pub const BAD_CRC: u32 = 5;
    /// Commands are in flight, or a replay has not finished; nothing was changed.
    pub const NOT_IDLE: u32 = 6;
    /// Memory answered with an error.
    pub const MEMORY_ERROR: u32 = 7;
}

/// First register of a page's completion ring; `_LO`, `_HI` and `_SIZE` follow each other.
pub fn completion_ring(page: usize) -> u32 {
    COMPLETION0_LO + 16 * page as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_rise_and_do_not_overlap() {
        assert!(ALL.windows(2).all(|w| w[0].offset + 4 <= w[1].offset));
        assert!(ALL.iter().all(|r| r.offset % 4 == 0 && r.offset < 4096));
        assert_eq!(completion_ring(3), COMPLETION3_LO);
    }
}
