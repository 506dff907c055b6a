//! Messages of the vfio-user protocol, version 0.1 (`docs/interop/vfio-user.rst` of QEMU). Numbers
//! are in the processor's order.

use std::ops::Range;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 16;
/// Bytes of data in one message: every server takes so many.
pub const MOST_DATA: usize = 4096;
/// Largest reply that is taken.
pub const MOST_REPLY: usize = 64 << 10;

const FLAG_REPLY: u32 = 1;
const FLAG_KIND: u32 = 0xf;
const FLAG_ERROR: u32 = 1 << 5;

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Command {
    Version = 1,
    DmaMap = 2,
    DmaUnmap = 3,
    DeviceInfo = 4,
    RegionInfo = 5,
    IrqInfo = 7,
    SetIrqs = 8,
    RegionRead = 9,
    RegionWrite = 10,
    Reset = 13,
}

/// The capability of a region that may be mapped in parts (linux/vfio.h).
const SPARSE_MMAP: u16 = 1;
/// Flags of a device: it can be reset, it is a PCI function.
pub const DEVICE_RESETS: u32 = 1;
/// See [`DEVICE_RESETS`].
pub const DEVICE_IS_PCI: u32 = 2;
/// A region may be mapped.
pub const REGION_MAPS: u32 = 4;
/// A region has capabilities.
const REGION_HAS_CAPABILITIES: u32 = 8;
/// The interrupts are signalled on event descriptors.
pub const SIGNAL_ON_EVENTS: u32 = 1 << 2 | 1 << 5;
/// Index of the MSI-X interrupts.
pub const MSIX: u32 = 2;
/// Region of the configuration space; those before it are the BARs.
pub const CONFIG_REGION: u32 = 7;
/// The card may read and write memory.
const READ_WRITE: u32 = 3;

/// A message, header and payload.
pub fn message(id: u16, command: Command, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    bytes.extend(id.to_ne_bytes());
    bytes.extend((command as u16).to_ne_bytes());
    bytes.extend(((HEADER_BYTES + payload.len()) as u32).to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(payload);
    bytes
}

/// Checks the header of the answer to a message; gives the bytes behind it, and the error number of
/// a refusal.
pub fn reply(header: &[u8; HEADER_BYTES], id: u16, command: Command) -> Result<(usize, Option<i32>), &'static str> {
    let word = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().expect("four bytes"));
    let (found, size, flags, error) = (word(0), word(4) as usize, word(8), word(12));
    if found != u32::from(id) | u32::from(command as u16) << 16 {
        return Err("the answer is to another message");
    }
    if flags & FLAG_KIND != FLAG_REPLY {
        return Err("a message came where an answer was due");
    }
    if !(HEADER_BYTES..=MOST_REPLY).contains(&size) {
        return Err("the answer has an impossible size");
    }
    Ok((size - HEADER_BYTES, (flags & FLAG_ERROR != 0).then_some(error as i32)))
}

/// The payload that offers this client's version and what it takes.
pub fn version() -> Vec<u8> {
    let mut payload = vec![0, 0, 1, 0];
    payload.extend(b"{\"capabilities\":{\"max_msg_fds\":8,\"max_data_xfer_size\":4096}}\0");
    payload
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Asks for the device; also the layout of the answer: argsz, flags, regions, interrupt kinds.
pub fn device_info() -> Vec<u8> {
    words(&[16, 0, 0, 0])
}

/// Asks for a region.
pub fn region_info(index: u32) -> Vec<u8> {
    let mut payload = words(&[MOST_DATA as u32, 0, index, 0]);
    payload.extend([0; 16]);
    payload
}

/// Asks for a kind of interrupt; the answer's last word is how many there are.
pub fn irq_info(index: u32) -> Vec<u8> {
    words(&[16, 0, index, 0])
}

/// Has the first `count` interrupts of a kind signalled on the descriptors that go with the
/// message.
pub fn set_irqs(index: u32, count: u32) -> Vec<u8> {
    words(&[20, SIGNAL_ON_EVENTS, index, 0, count])
}

/// An access to a region; what is written stands behind it.
pub fn access(region: u32, offset: u64, count: u32) -> Vec<u8> {
    let mut payload = offset.to_ne_bytes().to_vec();
    payload.extend(words(&[region, count]));
    payload
}

/// Bytes in front of the data in the answer to a read.
pub const ACCESS_BYTES: usize = 16;

/// Lets the card reach the file that goes with the message, from its start, at a bus address.
pub fn dma_map(address: u64, bytes: u64) -> Vec<u8> {
    let mut payload = words(&[32, READ_WRITE]);
    payload.extend([0, address, bytes].iter().flat_map(|value| value.to_ne_bytes()));
    payload
}

/// Takes memory away from the card.
pub fn dma_unmap(address: u64, bytes: u64) -> Vec<u8> {
    let mut payload = words(&[24, 0]);
    payload.extend([address, bytes].iter().flat_map(|value| value.to_ne_bytes()));
    payload
}

/// Reads a word of an answer.
pub fn word(payload: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(payload.get(at..at + 4)?.try_into().ok()?))
}

fn long(payload: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(payload.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// What a server says of a region.
#[derive(Debug, PartialEq, Eq)]
pub struct RegionInfo {
    pub bytes: u64,
    /// Where the region begins in the file that came with the answer.
    pub file_offset: u64,
    /// Parts that may be mapped.
    pub areas: Vec<Range<u64>>,
}

/// Reads the answer to [`region_info`]; `None` where it makes no sense.
pub fn parse_region(payload: &[u8]) -> Option<RegionInfo> {
    let (flags, first) = (word(payload, 4)?, word(payload, 12)? as usize);
    let (bytes, file_offset) = (long(payload, 16)?, long(payload, 24)?);
    let mut areas = Vec::new();
    if flags & REGION_MAPS != 0 && flags & REGION_HAS_CAPABILITIES != 0 {
        let mut at = first;
        while at != 0 {
            let head = word(payload, at)?;
            if head as u16 == SPARSE_MMAP {
                areas = parse_areas(payload, at, bytes)?;
            }
            let next = word(payload, at + 4)? as usize;
            // A list that does not advance has no end.
            if next != 0 && next <= at {
                return None;
            }
            at = next;
        }
    }
    Some(RegionInfo { bytes, file_offset, areas })
}

fn parse_areas(payload: &[u8], at: usize, bytes: u64) -> Option<Vec<Range<u64>>> {
    let count = word(payload, at + 8)? as usize;
    let area = |n: usize| {
        let at = at + 16 + 16 * n;
        let start = long(payload, at)?;
        let end = start.checked_add(long(payload, at + 8)?)?;
        (end <= bytes).then_some(start..end)
    };
    if count > payload.len() / 16 { None } else { (0..count).map(area).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(id: u16, command: Command, size: u32, flags: u32, error: u32) -> [u8; HEADER_BYTES] {
        let mut bytes: [u8; HEADER_BYTES] = message(id, command, &[]).try_into().unwrap();
        for (at, value) in [(4, size), (8, flags), (12, error)] {
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn an_answer_must_be_one_to_this_message_and_of_a_possible_size() {
        let of = |header| reply(&header, 7, Command::RegionRead);
        assert_eq!(of(header(7, Command::RegionRead, 36, 1, 0)), Ok((20, None)));
        assert_eq!(of(header(7, Command::RegionRead, 16, 0x21, 22)), Ok((0, Some(22))));
        for bad in [
            header(8, Command::RegionRead, 36, 1, 0),
            header(7, Command::RegionWrite, 36, 1, 0),
            header(7, Command::RegionRead, 36, 0, 0),
            header(7, Command::RegionRead, 15, 1, 0),
            header(7, Command::RegionRead, u32::MAX, 1, 0),
        ] {
            assert!(of(bad).is_err());
        }
    }

    fn region(flags: u32, first: u32, capabilities: &[u64]) -> Option<RegionInfo> {
        let mut payload = words(&[0, flags, 4, first]);
        payload.extend([0x10_0000u64, 0x8000].iter().chain(capabilities).flat_map(|value| value.to_ne_bytes()));
        parse_region(&payload)
    }

    #[test]
    fn mappable_parts_are_found_and_a_list_that_lies_is_refused() {
        let sparse = |next: u64| u64::from(SPARSE_MMAP) | next << 32;
        let found = region(0xf, 32, &[sparse(0), 2, 0, 0x1000, 0x8000, 0x2000]).unwrap();
        assert_eq!(found.areas, [0..0x1000, 0x8000..0xa000]);
        assert_eq!((found.bytes, found.file_offset), (0x10_0000, 0x8000));
        // Another capability first.
        let behind = region(0xf, 32, &[9 | 40 << 32, sparse(0), 2, 0, 0x1000, 0x1000, 0x1000]).unwrap();
        assert_eq!(behind.areas, [0..0x1000, 0x1000..0x2000]);
        assert_eq!(region(3, 0, &[]).unwrap().areas, []);
        assert_eq!(region(0xf, 32, &[sparse(32), 0]), None, "in a circle");
        assert_eq!(region(0xf, 32, &[sparse(0), 900, 0, 1]), None, "more areas than there is room");
        assert_eq!(region(0xf, 32, &[sparse(0), 1, 0x10_0000, 1]), None, "beyond the region");
        assert_eq!(region(0xf, 32, &[sparse(0), 1, u64::MAX, 2]), None, "it wraps");
        assert_eq!(region(0xf, 4000, &[]), None, "beyond the answer");
        assert_eq!(parse_region(&[0; 20]), None);
    }
}
