//! Sizes that every part of the system shares.

/// Bytes of a line: the unit of persistence, of conflict checks against host accesses, and of
/// the 512-bit data path.
pub const LINE: usize = 64;
/// [`LINE`] as the type of device addresses.
pub const LINE_U64: u64 = LINE as u64;
/// Bits of a device address.
pub const ADDRESS_BITS: u32 = 40;

/// Entries of the request FIFO; an entry is held until its command retires (paper, table 3).
pub const REQUEST_SLOTS: usize = 32;
/// Lines of the host read/write queue (paper, section 5.3.3: 4 kB).
pub const HOST_QUEUE_LINES: usize = 64;
/// Lines of the host queue in which stores that a failed log covers are held. The other lines are
/// as many as loads and stores can be outstanding at the memory, so that what is held does not slow
/// others down.
pub const HELD_STORES: usize = 48;
/// Execution units of a device (paper, table 3).
pub const UNITS: usize = 4;
/// Commands that one unit overlaps.
pub const CONTEXTS_PER_UNIT: usize = 2;
/// (pool, thread) entries of the address mapping table.
pub const MAP_ENTRIES: usize = 16;
/// Longest `length` of a command, in bytes; the library splits what is longer.
pub const MAX_COMMAND_BYTES: u32 = 256 * 1024;
/// Commands of a device that can wait for other devices, or behind such a command of their thread,
/// at a time. One that finds no place is refused, so a (pool, thread) that never has more than this
/// divided by [`MAP_ENTRIES`] under way never is.
pub const PARKED_COMMANDS: usize = 32;
/// Devices that a participants mask can name.
pub const MAX_DEVICES: usize = 8;

/// Command pages, one a requester. Page 0 is privileged: it alone maps and unmaps pools.
pub const COMMAND_PAGES: usize = 4;
/// Bytes of a command page.
pub const COMMAND_PAGE_BYTES: usize = 4096;
/// Command slots at the start of a page; the rest of the page takes no commands.
pub const SLOTS_PER_PAGE: usize = 16;

/// BAR of the register block.
pub const REGISTER_BAR: usize = 0;
/// Bytes of the register block.
pub const REGISTER_BAR_BYTES: usize = 4096;
/// BAR of the MSI-X table.
pub const MSIX_BAR: usize = 1;
/// Bytes of the MSI-X BAR.
pub const MSIX_BAR_BYTES: usize = 4096;
/// Offset of the pending bits in the MSI-X BAR; the table is at 0.
pub const MSIX_PENDING_OFFSET: usize = 2048;
/// BAR of the command pages (prefetchable).
pub const COMMAND_BAR: usize = 2;
/// Bytes of the command BAR.
pub const COMMAND_BAR_BYTES: usize = COMMAND_PAGES * COMMAND_PAGE_BYTES;
/// BAR of the PM window (prefetchable). Its offsets are device addresses.
pub const PM_BAR: usize = 4;

/// PCI vendor of the card: Xilinx, whose PCIe block the VCU118 carries.
pub const PCI_VENDOR: u16 = 0x10ee;
/// PCI device of the card.
pub const PCI_DEVICE: u16 = 0x9e38;

/// Device address of the directory of pools, kept by the host.
pub const DIRECTORY_BASE: u64 = 0x0000;
/// Bytes reserved for the directory.
pub const DIRECTORY_BYTES: u64 = 0x1_0000;
/// Device address of the power-fail save area. The card refuses host writes to it.
pub const SAVE_BASE: u64 = 0x1_0000;
/// Bytes reserved for the save area.
pub const SAVE_BYTES: u64 = 0x1_0000;
/// Device address of firmware slot 0; slot 1 follows. Host writes to the slot in force are
/// refused.
pub const FIRMWARE_BASE: u64 = 0x2_0000;
/// Bytes of a firmware slot.
pub const FIRMWARE_SLOT_BYTES: u64 = 0x1000;
/// Firmware slots: one in force, one to load the next image into.
pub const FIRMWARE_SLOTS: usize = 2;
/// First device address that pools may use.
pub const POOLS_BASE: u64 = 0x10_0000;
