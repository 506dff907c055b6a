//! Decoder: from a command to an item, or a status without effect.

use nearpm_interface::command::Command;
use nearpm_interface::firmware::{Descriptor, Operand, Use, descriptor};
use nearpm_interface::geometry::{ADDRESS_BITS, LINE_U64, MAX_COMMAND_BYTES, MAX_DEVICES, POOLS_BASE};
use nearpm_interface::media::entry_bytes;
use nearpm_interface::status::Status;

use super::fault::Fault;
use super::item::{Ranges, Span};
use super::mapping::{AddressMap, Mapping};

/// What the decoder knows besides the command.
pub struct Context<'a> {
    /// Descriptor of the opcode in the firmware in force.
    pub descriptor: Descriptor,
    /// The address map.
    pub map: &'a AddressMap,
    /// Page that the command came from.
    pub page: u8,
    /// Number of this device.
    pub device: u32,
    /// The device speaks to others, or the command was accepted when it did.
    pub reaches_others: bool,
    /// The command has waited for other devices: it was accepted before what may have happened to
    /// its mapping since.
    pub released: bool,
    /// Bytes of persistent memory.
    pub pm_bytes: u64,
    /// Disabled protection.
    pub fault: Option<Fault>,
}

/// A command that may be numbered.
#[derive(Clone, Copy, Debug)]
pub struct Decoded {
    /// Mapping entry; for a map command the one that it will fill.
    pub entry: u8,
    /// What it reads and writes.
    pub ranges: Ranges,
    /// The mapping that a map command makes.
    pub maps: Option<Mapping>,
}

const OPERANDS: [Operand; 3] = [Operand::Source, Operand::Destination, Operand::Auxiliary];

/// Runs the checks in the order that `docs/hardware.md` gives; the first that fails is the answer.
pub fn decode(command: &Command, context: &Context) -> Result<Decoded, Status> {
    let d = context.descriptor;
    if !d.flag(descriptor::VALID) {
        return Err(Status::BadOpcode);
    }
    if d.flag(descriptor::PRIVILEGED) && context.page != 0 {
        return Err(Status::NotPrivileged);
    }
    let own = 1u32.checked_shl(context.device).unwrap_or(0);
    let (participants, all) = (command.participants, (1u32 << MAX_DEVICES) - 1);
    let others = participants & !own;
    if participants != 0 && (participants & own == 0 || others & !all != 0 || others != 0 && !context.reaches_others) {
        return Err(Status::BadParticipants);
    }
    if d.flag(descriptor::MAPS) {
        return decode_map(command, context);
    }
    let found = context.map.find(command.pool, command.thread);
    let entry = found.ok_or(Status::Unmapped)?;
    let mapping = context.map.get(entry).expect("found above");
    if mapping.closing && !context.released {
        return Err(Status::Unmapped);
    }
    let ignored = context.fault == Some(Fault::CommitAfterFailedLog) && d.flag(descriptor::COMMITS);
    if mapping.latched && !d.flag(descriptor::UNMAPS) && !ignored && !context.released {
        return Err(Status::Latched);
    }
    check_length(command, d)?;
    check_alignment(command, d)?;
    let ranges = check_ranges(command, d, mapping, context)?;
    check_overlap(&ranges)?;
    if d.flag(descriptor::LOGS) && command.txid <= mapping.committed {
        return Err(Status::StaleTransaction);
    }
    Ok(Decoded { entry, ranges, maps: None })
}

fn decode_map(command: &Command, context: &Context) -> Result<Decoded, Status> {
    if context.map.find(command.pool, command.thread).is_some() {
        return Err(Status::MapExists);
    }
    let entry = context.map.free().ok_or(Status::MapFull)?;
    let (base, bytes) = (command.source, command.destination);
    let (ring, ring_bytes) = (command.auxiliary, command.length as u64);
    if !base.is_multiple_of(LINE_U64) || !ring.is_multiple_of(LINE_U64) {
        return Err(Status::Misaligned);
    }
    let end = base.checked_add(bytes).ok_or(Status::OutOfRange)?;
    let ring_end = ring.checked_add(ring_bytes).ok_or(Status::OutOfRange)?;
    if base < POOLS_BASE || end > context.pm_bytes.min(1 << ADDRESS_BITS) || ring_end > bytes {
        return Err(Status::OutOfRange);
    }
    let (pool, thread, committed) = (command.pool, command.thread, command.sequence);
    let mapping = Mapping {
        pool,
        thread,
        base,
        bytes,
        ring,
        ring_bytes,
        committed,
        latched: false,
        closing: false,
        orphan: false,
        reached: committed,
        heard: [0; MAX_DEVICES],
    };
    Ok(Decoded { entry, ranges: Ranges::NONE, maps: Some(mapping) })
}

fn check_length(command: &Command, d: Descriptor) -> Result<(), Status> {
    let uses = OPERANDS.iter().any(|&o| matches!(d.operand_use(o), Use::Bytes | Use::Entry));
    match uses && !(1..=MAX_COMMAND_BYTES).contains(&command.length) {
        true => Err(Status::BadLength),
        false => Ok(()),
    }
}

fn check_alignment(command: &Command, d: Descriptor) -> Result<(), Status> {
    let aligned = OPERANDS.iter().all(|&o| match d.operand_use(o) {
        Use::Entry => command.operand(o).is_multiple_of(LINE_U64),
        Use::Word => command.operand(o).is_multiple_of(8),
        Use::None | Use::Bytes => true,
    });
    let congruent = !d.flag(descriptor::CONGRUENT) || command.source % LINE_U64 == command.destination % LINE_U64;
    if aligned && congruent { Ok(()) } else { Err(Status::Misaligned) }
}

/// Bytes of an operand's range.
fn operand_bytes(command: &Command, d: Descriptor, operand: Operand) -> u64 {
    match d.operand_use(operand) {
        Use::None => 0,
        Use::Bytes => command.length as u64,
        Use::Entry => entry_bytes(command.operand(d.logged()) % LINE_U64, command.length),
        Use::Word => 8,
    }
}

fn check_ranges(command: &Command, d: Descriptor, mapping: &Mapping, context: &Context) -> Result<Ranges, Status> {
    let mut spans = [Span::NONE; 3];
    for operand in OPERANDS {
        let bytes = operand_bytes(command, d, operand);
        if bytes == 0 {
            continue;
        }
        let start = command.operand(operand);
        let end = start.checked_add(bytes).ok_or(Status::OutOfRange)?;
        let ring_end = mapping.ring + mapping.ring_bytes;
        let in_ring = !d.in_ring(operand) || (start >= mapping.ring && end <= ring_end);
        let limit = match context.fault {
            Some(Fault::RangesAreNotChecked) => context.pm_bytes - mapping.base,
            _ => mapping.bytes,
        };
        if end > limit || !in_ring {
            return Err(Status::OutOfRange);
        }
        spans[operand as usize] = Span::of(mapping.base + start, bytes);
    }
    Ok(Ranges { read: spans[0], write: [spans[1], spans[2]] })
}

fn check_overlap(ranges: &Ranges) -> Result<(), Status> {
    let [a, b] = ranges.write;
    match a.meets(b) || ranges.read.meets(a) || ranges.read.meets(b) {
        true => Err(Status::Overlap),
        false => Ok(()),
    }
}
