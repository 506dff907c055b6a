/* Generated from the interface crate. Do not edit. */
#ifndef NEARPM_INTERFACE_H
#define NEARPM_INTERFACE_H
#include <stddef.h>
#include <stdint.h>

/* Sizes */
#define NEARPM_INTERFACE_VERSION 0x2u
#define NEARPM_LINE 0x40u
#define NEARPM_ADDRESS_BITS 0x28u
#define NEARPM_REQUEST_SLOTS 0x20u
#define NEARPM_HOST_QUEUE_LINES 0x40u
#define NEARPM_HELD_STORES 0x30u
#define NEARPM_UNITS 0x4u
#define NEARPM_CONTEXTS_PER_UNIT 0x2u
#define NEARPM_MAP_ENTRIES 0x10u
#define NEARPM_PARKED_COMMANDS 0x20u
#define NEARPM_MAX_DEVICES 0x8u
#define NEARPM_MAX_COMMAND_BYTES 0x40000u
#define NEARPM_COMMAND_PAGES 0x4u
#define NEARPM_COMMAND_PAGE_BYTES 0x1000u
#define NEARPM_SLOTS_PER_PAGE 0x10u
#define NEARPM_SAVE_BASE 0x10000u
#define NEARPM_SAVE_BYTES 0x10000u
#define NEARPM_FIRMWARE_BASE 0x20000u
#define NEARPM_FIRMWARE_SLOT_BYTES 0x1000u
#define NEARPM_POOLS_BASE 0x100000u
#define NEARPM_FLAG_COMPLETE 0x1u
#define NEARPM_PAGE_BYTES 0x1000u
#define NEARPM_RING_HEAD_BYTES 0x100u
#define NEARPM_POOL_VERSION 0x1u

/* Opcodes */
#define NEARPM_OP_FENCE 0x0u /* Nothing but order: retires when every earlier command of (pool, thread) has. */
#define NEARPM_OP_UNDO_LOG 0x1u /* Undo log: copies `length` bytes at `source` into the log slot at `destination` and heads it. */
#define NEARPM_OP_APPLY 0x2u /* Redo log: copies `length` bytes at `source`, in the log ring, to `destination`. */
#define NEARPM_OP_UNDO_REDO 0x3u /* Undo and redo: logs `destination` in the slot at `auxiliary`, then copies `source` to it. */
#define NEARPM_OP_COMMIT 0x4u /* Commit: writes the epoch word `auxiliary` at `destination` after every earlier command of (pool, thread). */
#define NEARPM_OP_CHECKPOINT 0x5u /* Checkpoint: copies the page at `source` into the log slot at `destination` and heads it. */
#define NEARPM_OP_SHADOW_COPY 0x6u /* Shadow copy: copies the page at `source` to the free page at `destination`. */
#define NEARPM_OP_SWITCH 0x7u /* Switch: writes the word `auxiliary` at `destination` after every earlier command of (pool, thread). */
#define NEARPM_OP_RECOVER 0x8u /* Recover: copies `length` bytes of the log entry's data at `source` back to `destination`, in order. */
#define NEARPM_OP_MIRROR_LOG 0x9u /* Mirrored undo log: as undo log, with a second copy of the entry in the slot at `auxiliary`. */
#define NEARPM_OP_MAP 0x10u /* Maps (pool, thread): `source` device address and `destination` bytes of the pool, `auxiliary` offset and `length` bytes of its log ring, `sequence` last committed transaction. */
#define NEARPM_OP_UNMAP 0x11u /* Removes the mapping of (pool, thread) after every earlier command of it. */

/* Status codes */
#define NEARPM_STATUS_OK 0x0u /* Done: everything that the command wrote is durable. */
#define NEARPM_STATUS_BAD_OPCODE 0x1u /* The firmware in force has no program for the opcode. */
#define NEARPM_STATUS_BAD_LENGTH 0x2u /* The length is zero or above the longest command. */
#define NEARPM_STATUS_OUT_OF_RANGE 0x3u /* A range wraps, or leaves its pool or its log ring. */
#define NEARPM_STATUS_UNMAPPED 0x4u /* No mapping for (pool, thread). */
#define NEARPM_STATUS_MISALIGNED 0x5u /* An address is not aligned as the operand needs, or source and destination differ in their offset in the line. */
#define NEARPM_STATUS_OVERLAP 0x6u /* Two ranges of the command overlap. */
#define NEARPM_STATUS_NOT_PRIVILEGED 0x7u /* The command needs the privileged page. */
#define NEARPM_STATUS_MAP_FULL 0x8u /* The address mapping table is full. */
#define NEARPM_STATUS_MAP_EXISTS 0x9u /* (pool, thread) is mapped already. */
#define NEARPM_STATUS_STALE_TRANSACTION 0xau /* The transaction id is not above the last committed one. */
#define NEARPM_STATUS_LATCHED 0xbu /* An earlier log of (pool, thread) failed, or the command would have to wait for a store that a failed log holds: everything of (pool, thread) is refused until it is unmapped. */
#define NEARPM_STATUS_BAD_PARTICIPANTS 0xcu /* The participants mask leaves this device out, or names a device that this card cannot reach. */
#define NEARPM_STATUS_PARKED_FULL 0xdu /* The command may have to wait for other devices, and as many as can do so already. */
#define NEARPM_STATUS_DISCARDED 0xeu /* The command waited for other devices, and the recovery took it away. */
#define NEARPM_STATUS_MEMORY_ERROR 0x80u /* Memory answered a read or a write with an error after the command had begun. */
#define NEARPM_STATUS_FIRMWARE_FAULT 0x81u /* A microprogram met an instruction that it must not execute. */

/* Registers */
#define NEARPM_REG_ID 0x0u /* Magic "NPM1": a card of this family. */
#define NEARPM_REG_VERSION 0x4u /* [`crate::INTERFACE_VERSION`]. */
#define NEARPM_REG_BUILD_HASH 0x8u /* First eight hexadecimal digits of the hash of the generated Verilog. */
#define NEARPM_REG_CAPABILITIES 0xcu /* Capability bits, see [`capability`]. */
#define NEARPM_REG_GEOMETRY 0x10u /* Units (7:0), request slots (15:8), host queue lines (23:16), mapping entries (31:24). */
#define NEARPM_REG_PM_BYTES_LO 0x14u /* Bytes of persistent memory, low half. */
#define NEARPM_REG_PM_BYTES_HI 0x18u /* Bytes of persistent memory, high half. */
#define NEARPM_REG_DEVICE_NUMBER 0x1cu /* Number of this device, which is its bit in a participants mask. Until it is written after a power-up or a function-level reset the device neither speaks to others nor hears them. */
#define NEARPM_REG_STATE 0x20u /* State of the card, see [`state`]. */
#define NEARPM_REG_CONTROL 0x24u /* Acts by bit, see [`control`]. */
#define NEARPM_REG_GENERATION 0x28u /* Generation of the persistence domain: rises with every power-up. */
#define NEARPM_REG_REPLAYED 0x2cu /* Items that the last power-up replayed. */
#define NEARPM_REG_LATCHED 0x30u /* Mapping entries whose (pool, thread) is latched after a failed log or a lost store, one bit each. */
#define NEARPM_REG_MAPPED 0x34u /* Mapping entries in use, one bit each. Not those that a function-level reset left to commands which wait for other devices. */
#define NEARPM_REG_SAVE_CYCLES 0x38u /* Clock cycles that the last power-fail save took. */
#define NEARPM_REG_FIRMWARE_LOAD 0x40u /* Write a slot number to load and verify its image and put it in force. */
#define NEARPM_REG_FIRMWARE_STATUS 0x44u /* Outcome of the last load (7:0, see [`firmware_status`]) and the slot in force (15:8). From [`FIRMWARE_LOAD`] on it shows `BUSY` until the outcome of that load is known and [`STATE`] shows it, or the power fails; `OK` is not shown while [`STATE`] says BOOTING or REPLAYING. */
#define NEARPM_REG_FIRMWARE_CRC 0x48u /* Checksum of the image in force. */
#define NEARPM_REG_PARKED 0x50u /* Commands that wait for other devices, or behind such a command of their thread: places of the table in use, one bit each. */
#define NEARPM_REG_PARKED_SELECT 0x54u /* The place that the next registers show. */
#define NEARPM_REG_PARKED_POOL 0x58u /* Pool of the command in the selected place. */
#define NEARPM_REG_PARKED_THREAD 0x5cu /* Its thread (15:0), opcode (23:16) and participants (31:24). */
#define NEARPM_REG_PARKED_TXID_LO 0x60u /* Its transaction, low half. */
#define NEARPM_REG_PARKED_TXID_HI 0x64u /* Its transaction, high half. */
#define NEARPM_REG_PARKED_REACHED 0x68u /* Participants that have come as far, this device included (7:0). */
#define NEARPM_REG_PARKED_ACT 0x6cu /* Acts on a place in use (7:0), see [`parked_action`] (15:8). */
#define NEARPM_REG_COMPLETION0_LO 0x80u /* Completion ring of page 0: bus address, low half (64-byte aligned). */
#define NEARPM_REG_COMPLETION0_HI 0x84u /* Completion ring of page 0: bus address, high half. */
#define NEARPM_REG_COMPLETION0_SIZE 0x88u /* Completion ring of page 0: log2 of its records (0 to 12); writing it restarts the ring and enables it. */
#define NEARPM_REG_COMPLETION1_LO 0x90u /* Completion ring of page 1: bus address, low half (64-byte aligned). */
#define NEARPM_REG_COMPLETION1_HI 0x94u /* Completion ring of page 1: bus address, high half. */
#define NEARPM_REG_COMPLETION1_SIZE 0x98u /* Completion ring of page 1: log2 of its records (0 to 12); writing it restarts the ring and enables it. */
#define NEARPM_REG_COMPLETION2_LO 0xa0u /* Completion ring of page 2: bus address, low half (64-byte aligned). */
#define NEARPM_REG_COMPLETION2_HI 0xa4u /* Completion ring of page 2: bus address, high half. */
#define NEARPM_REG_COMPLETION2_SIZE 0xa8u /* Completion ring of page 2: log2 of its records (0 to 12); writing it restarts the ring and enables it. */
#define NEARPM_REG_COMPLETION3_LO 0xb0u /* Completion ring of page 3: bus address, low half (64-byte aligned). */
#define NEARPM_REG_COMPLETION3_HI 0xb4u /* Completion ring of page 3: bus address, high half. */
#define NEARPM_REG_COMPLETION3_SIZE 0xb8u /* Completion ring of page 3: log2 of its records (0 to 12); writing it restarts the ring and enables it. */
#define NEARPM_REG_STORES_LOST 0xc0u /* Host stores that memory refused after the card had accepted them: they are lost. Stays until [`control::ACKNOWLEDGE_LOSS`], over power cuts too. */
#define NEARPM_REG_LOST_FIRST_LO 0xc4u /* Lowest device address among the lines of those stores, low half; 0 where there are none. */
#define NEARPM_REG_LOST_FIRST_HI 0xc8u /* Lowest device address among the lines of those stores, high half. */
#define NEARPM_REG_LOST_LAST_LO 0xccu /* Highest device address among the lines of those stores, low half. */
#define NEARPM_REG_LOST_LAST_HI 0xd0u /* Highest device address among the lines of those stores, high half. */
#define NEARPM_REG_CYCLES 0x100u /* Clock cycles since reset. */
#define NEARPM_REG_COMMANDS_ACCEPTED 0x104u /* Commands accepted since the card opened. What a replay does again was counted before the power went and counts in `REPLAYED` only. */
#define NEARPM_REG_COMMANDS_RETIRED 0x108u /* Commands retired with success. */
#define NEARPM_REG_COMMANDS_REFUSED 0x10cu /* Commands refused without effect. */
#define NEARPM_REG_COMMANDS_FAILED 0x110u /* Commands that began and failed. */
#define NEARPM_REG_COMMANDS_DROPPED 0x114u /* Slots dropped for a wrong checksum. */
#define NEARPM_REG_COMMANDS_HELD 0x118u /* Commands that had to wait for a conflicting earlier item. */
#define NEARPM_REG_HOST_READS 0x11cu /* Host reads accepted (lines). */
#define NEARPM_REG_HOST_WRITES 0x120u /* Host writes accepted (lines). */
#define NEARPM_REG_HOST_HELD 0x124u /* Host accesses that had to wait for a conflicting earlier item. */
#define NEARPM_REG_HOST_REFUSED 0x128u /* Host writes refused: to the save area, to the firmware in force, beyond memory, or while closed. */
#define NEARPM_REG_UNIT_READ_LINES 0x12cu /* Lines that units read from memory. */
#define NEARPM_REG_UNIT_WRITE_LINES 0x130u /* Lines that units wrote to memory. */
#define NEARPM_REG_DIRECTION_SWITCHES 0x134u /* Times that the memory port changed direction. */
#define NEARPM_REG_STALL_REQUEST_FULL 0x138u /* Cycles in which a complete command waited for a request slot. */
#define NEARPM_REG_STALL_HOST_FULL 0x13cu /* Cycles in which a host access waited for a queue line. */
#define NEARPM_REG_HOST_LATCHED 0x140u /* Host accesses to lines that a latched log holds back, or that a held store will write: loads answered with an error, and stores dropped because `HELD_STORES` others are held. */
#define NEARPM_REG_RECORDS_LOST 0x144u /* Completion records that host memory refused: nobody reads them. */
#define NEARPM_REG_TLPS_POISONED 0x148u /* Requests of the host whose data PCI Express calls poisoned (EP): the PCIe bridge has dropped and counted them since its reset. It answers this register in place of the card, which says 0. */

/* A command as it is written into a slot of a command page. */
struct nearpm_command {
    uint8_t opcode; /* 0: One of [`Opcode`], or a program of a loaded firmware (below 32). */
    uint8_t flags; /* 1: [`FLAG_COMPLETE`] and reserved zeros. */
    uint16_t thread; /* 2: Thread: with the pool it selects the mapping and so the log ring. */
    uint32_t pool; /* 4: Pool identifier. */
    uint64_t txid; /* 8: Transaction or epoch identifier, 48 bits. */
    uint64_t source; /* 16: Read operand: offset in the pool. */
    uint64_t destination; /* 24: Write operand: offset in the pool. */
    uint64_t auxiliary; /* 32: Second write operand (offset in the pool) or an immediate 8-byte value. */
    uint64_t sequence; /* 40: Sequence of the log entry, rising within (pool, thread). */
    uint32_t length; /* 48: Bytes of the operands. */
    uint32_t tag; /* 52: Returned with the completion. */
    uint32_t participants; /* 56: Mask of the devices that take part in the transaction; 0 stands for this one alone. */
    uint32_t crc; /* 60: CRC-32C of the bytes before it (see [`crate::seal`]). */
};
_Static_assert(sizeof(struct nearpm_command) == 64, "command");

/* Completion record, written by the card into the ring of the command's page in host memory. */
struct nearpm_completion {
    uint32_t tag; /* 0: Tag of the command. */
    uint8_t status; /* 4: Code of [`crate::status::Status`]. */
    uint8_t page; /* 5: Page that the command came from. */
    uint16_t lap; /* 6: Lap of the ring, low 16 bits. */
    uint64_t order; /* 8: Order number of the command, from 1. */
};
_Static_assert(sizeof(struct nearpm_completion) == 16, "completion");

/* Status line of a command page: what a read anywhere in the page answers. */
struct nearpm_page_status {
    uint32_t accepted; /* 0: Commands of this page that were accepted, modulo 2^32. */
    uint32_t retired; /* 4: Commands of this page that have retired with success, modulo 2^32. */
    uint32_t refused; /* 8: Commands of this page that were refused without effect. */
    uint32_t failed; /* 12: Commands of this page that began and failed. */
    uint32_t dropped; /* 16: Slots that were filled with a wrong checksum: dropped, never executed. */
    uint32_t last_bad_tag; /* 20: Tag of the last refused or failed command. */
    uint8_t last_bad_status; /* 24: Status code of the last refused or failed command. */
    uint8_t reserved[1]; /* 25: Reserved zero. */
    uint16_t latched; /* 26: Mapping entries of the card whose (pool, thread) is latched, one bit each: where this is */
    uint16_t parked; /* 28: Mapping entries that have a command which waits, may have to wait or has waited for */
    uint8_t reserved_middle[2]; /* 30: Reserved zeros. */
    uint64_t order; /* 32: Order number of the last accepted item of the card. */
    uint32_t stores_lost; /* 40: [`crate::registers::STORES_LOST`]: where this is 0, memory has refused no store so far. */
    uint8_t reserved_tail[20]; /* 44: Reserved zeros. */
};
_Static_assert(sizeof(struct nearpm_page_status) == 64, "page_status");

/* A message of a card to all others: how far it has come with a (pool, thread). */
struct nearpm_peer_message {
    uint32_t pool; /* 0: Pool identifier. */
    uint16_t thread; /* 4: Thread. */
    uint8_t device; /* 6: Number of the device that speaks: its bit in a participants mask. */
    uint8_t status; /* 7: [`PEER_TELLS`] or [`PEER_ASKS`]. */
    uint64_t txid; /* 8: Tells: the transaction that the device has reached. Asks: the one that it waits for. */
};
_Static_assert(sizeof(struct nearpm_peer_message) == 16, "peer_message");

/* Head line of a firmware image; descriptors (opcode 0 first) and program words follow. */
struct nearpm_image_head {
    uint32_t magic; /* 0: [`IMAGE_MAGIC`]. */
    uint16_t format; /* 4: [`IMAGE_FORMAT`]. */
    uint16_t isa; /* 6: [`ISA_VERSION`]. */
    uint32_t words; /* 8: Words of the program that are used; the rest are zero. */
    uint32_t revision; /* 12: Version of the programs, for people. */
    uint8_t name[32]; /* 16: Name, UTF-8, padded with zeros. */
    uint8_t reserved[12]; /* 48: Reserved zeros. */
    uint32_t crc; /* 60: Checksum of body and head. */
};
_Static_assert(sizeof(struct nearpm_image_head) == 64, "image_head");

/* Head of a save: sealed over the mapping and item lines, and written last. */
struct nearpm_save_head {
    uint32_t magic; /* 0: [`SAVE_MAGIC`]. */
    uint16_t version; /* 4: [`SAVE_VERSION`]. */
    uint16_t items; /* 6: Items that follow the mappings. */
    uint64_t generation; /* 8: Generation that was saved. */
    uint64_t order; /* 16: Order number of the last accepted item. */
    uint32_t firmware_crc; /* 24: Checksum of the firmware that accepted the items. */
    uint8_t device; /* 28: Number of the device, for the participants of what is replayed. */
    uint8_t reserved[3]; /* 29: Reserved zeros. */
    uint32_t stores_lost; /* 32: [`crate::registers::STORES_LOST`]: where it is not 0, the boot ends in */
    uint8_t reserved_middle[4]; /* 36: Reserved zeros. */
    uint64_t lost_first; /* 40: Lowest device address of a lost store. */
    uint64_t lost_last; /* 48: Highest device address of a lost store. */
    uint8_t reserved_tail[4]; /* 56: Reserved zeros. */
    uint32_t crc; /* 60: Checksum of body and head. */
};
_Static_assert(sizeof(struct nearpm_save_head) == 64, "save_head");

/* One entry of the address mapping table, as saved. */
struct nearpm_saved_mapping {
    uint8_t flags; /* 0: Bit 0 in use, bit 1 latched after a failed log, bit 2 an unmap was accepted, bit 3 a */
    uint8_t reserved[1]; /* 1: Reserved zero. */
    uint16_t thread; /* 2: Thread. */
    uint32_t pool; /* 4: Pool identifier. */
    uint64_t base; /* 8: Device address of the pool. */
    uint64_t bytes; /* 16: Bytes of the pool. */
    uint64_t ring; /* 24: Offset of the log ring in the pool. */
    uint64_t ring_bytes; /* 32: Bytes of the log ring. */
    uint64_t committed; /* 40: Last committed transaction. */
    uint64_t reached; /* 48: Last transaction of which other devices were told that it is reached. */
    uint8_t reserved_tail[8]; /* 56: Reserved zeros. */
};
_Static_assert(sizeof(struct nearpm_saved_mapping) == 64, "saved_mapping");

/* Second line of a saved item; the first holds the command, or the data of a host store. */
struct nearpm_saved_item {
    uint64_t order; /* 0: Place in the one order, from 1. Of a command that has waited for other devices the one */
    uint64_t address; /* 8: Host store: device address of the line. */
    uint64_t strobes; /* 16: Host store: one bit per byte to write. */
    uint8_t kind; /* 24: [`ITEM_COMMAND`], [`ITEM_STORE`] or [`ITEM_PARKED`]. */
    uint8_t page; /* 25: Command: page that it came from. */
    uint8_t resume; /* 26: Command: instruction at which a replay resumes; 0 starts it from its entry. */
    uint8_t released; /* 27: Command: 1 where every participant has reported, so that it waits for nobody any more. */
    uint8_t reserved[32]; /* 28: Reserved zeros. */
    uint8_t reserved_tail[4]; /* 60: Reserved zeros. */
};
_Static_assert(sizeof(struct nearpm_saved_item) == 64, "saved_item");

/* Head line of a log entry, sealed over its data lines. */
struct nearpm_entry_head {
    uint32_t magic; /* 0: [`ENTRY_MAGIC`]. */
    uint8_t kind; /* 4: Code of [`EntryKind`]. */
    uint8_t version; /* 5: [`ENTRY_VERSION`]. */
    uint16_t thread; /* 6: Thread of the ring. */
    uint64_t sequence; /* 8: Rises with every entry of the ring and names its slot ([`entry_sequence`]); rollback */
    uint64_t txid; /* 16: Transaction or epoch. */
    uint64_t offset; /* 24: Offset in the pool of the logged range. */
    uint32_t length; /* 32: Bytes of the logged range. */
    uint32_t pool; /* 36: Pool identifier. */
    uint32_t participants; /* 40: Devices that take part in the transaction. */
    uint8_t reserved[16]; /* 44: Reserved zeros. */
    uint32_t crc; /* 60: Checksum of data lines and head. */
};
_Static_assert(sizeof(struct nearpm_entry_head) == 64, "entry_head");

/* Head of a pool, sealed with no body; written last when a pool is created, and never changed */
struct nearpm_pool_head {
    uint64_t magic; /* 0: [`POOL_MAGIC`]. */
    uint32_t version; /* 8: [`POOL_VERSION`], [`SEALED_VERSION`], [`SPAN_VERSION`], or in a member of a striped pool */
    uint32_t pool; /* 12: Pool identifier, not 0; the same in all members of a striped pool. */
    uint64_t bytes; /* 16: Bytes of the pool when it was made. */
    uint32_t ring_bytes; /* 24: Bytes of each log ring, a multiple of 4096. */
    uint16_t lanes; /* 28: Lanes: log rings, numbered by thread. */
    uint8_t member; /* 30: Number of this member of a striped pool, from 0; else 0. */
    uint8_t members; /* 31: Members of the striped pool, 2 to 8; 0 for a pool that is not striped. */
    uint64_t pages; /* 32: Logical pages: the heap. In a member whole stripes. */
    uint64_t spare; /* 40: Pages beyond those. */
    uint32_t stripe; /* 48: Bytes of a stripe; 0 for a pool that is not striped. */
    uint64_t end; /* 52: In memory [`PoolHead::grown`]; in the line on the medium zeros: there it is */
    uint32_t crc; /* 60: Checksum. */
};
_Static_assert(sizeof(struct nearpm_pool_head) == 64, "pool_head");

/* Head of a copy of the card's table of pools, sealed over its entries, which follow it. */
struct nearpm_directory_head {
    uint32_t magic; /* 0: [`DIRECTORY_MAGIC`]. */
    uint16_t version; /* 4: [`DIRECTORY_VERSION`]. */
    uint16_t entries; /* 6: Entries that follow. */
    uint64_t generation; /* 8: Rises with every change. */
    uint8_t reserved[32]; /* 16: Reserved zeros. */
    uint8_t reserved_tail[12]; /* 48: Reserved zeros. */
    uint32_t crc; /* 60: Checksum of entries and head. */
};
_Static_assert(sizeof(struct nearpm_directory_head) == 64, "directory_head");

/* One pool in the card's table of pools. */
struct nearpm_directory_entry {
    uint8_t name[32]; /* 0: Name, UTF-8, padded with zeros. */
    uint64_t base; /* 32: Device address of the pool, a multiple of 4096. */
    uint64_t bytes; /* 40: Bytes of the pool. */
    uint32_t pool; /* 48: Pool identifier. */
    uint8_t reserved[12]; /* 52: Reserved zeros. */
};
_Static_assert(sizeof(struct nearpm_directory_entry) == 64, "directory_entry");

#endif
