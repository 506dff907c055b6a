//! What the card does to the host: writes of completion records and interrupts.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use nearpm_interface::completion::Completion;
use nearpm_interface::geometry::COMMAND_PAGES;
use nix::poll::{PollFd, PollFlags, PollTimeout};

/// MSI-X vectors: one a command page, which fires when a record of the page was written.
pub const VECTORS: usize = COMMAND_PAGES;

/// A write of the card to host memory: bytes of a line.
#[derive(Clone, Copy, Debug)]
pub struct HostWrite {
    /// Bus address of the line.
    pub address: u64,
    /// The line.
    pub data: [u8; 64],
    /// Bytes of it that are written, one bit each.
    pub strobes: u64,
}

/// Most parts of host memory that a client may give: each costs a descriptor of this process.
const MOST_MAPS: usize = 256;

/// Host memory that the host lets the card write.
struct Map {
    address: u64,
    bytes: u64,
    file: File,
    offset: u64,
}

/// The host as the card sees it.
#[derive(Default)]
pub struct Bus {
    maps: Vec<Map>,
    vectors: [Option<File>; VECTORS],
    /// The function may write host memory.
    pub master: bool,
    /// Interrupts that are lost from now on, as a test wants it.
    pub lose_interrupts: u64,
    /// Records that were written.
    pub records: u64,
    /// Records that had no memory to go to.
    pub faults: u64,
    /// Interrupts that were signalled.
    pub interrupts: u64,
}

impl Bus {
    /// Lets the card write a part of a file as the memory at a bus address.
    pub fn map(&mut self, address: u64, bytes: u64, file: File, offset: u64) -> std::io::Result<()> {
        let end = address.checked_add(bytes).filter(|_| offset.checked_add(bytes).is_some());
        let clash = |end| self.maps.iter().any(|map| map.address < end && address < map.address + map.bytes);
        match end {
            Some(end) if bytes > 0 && !clash(end) && self.maps.len() < MOST_MAPS => {
                self.maps.push(Map { address, bytes, file, offset });
                Ok(())
            }
            _ => Err(std::io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Takes the memory at a bus address away.
    pub fn unmap(&mut self, address: u64, bytes: u64) {
        self.maps.retain(|map| map.address < address || map.address + map.bytes > address.saturating_add(bytes));
    }

    /// Takes all memory away.
    pub fn revoke(&mut self) {
        self.maps.clear();
    }

    /// Says where a vector is signalled.
    pub fn set_vector(&mut self, vector: usize, event: Option<File>) {
        if let Some(place) = self.vectors.get_mut(vector) {
            *place = event;
        }
    }

    /// Forgets a host that has gone.
    pub fn forget_host(&mut self) {
        let Bus { records, faults, interrupts, .. } = *self;
        *self = Bus { records, faults, interrupts, ..Bus::default() };
    }

    /// Carries a write of the card out, and signals what waits for it.
    pub fn deliver(&mut self, write: &HostWrite) {
        let end = write.address.checked_add(write.data.len() as u64);
        let holds = |map: &&Map| map.address <= write.address && end.is_some_and(|end| end <= map.address + map.bytes);
        let found = self.maps.iter().find(holds);
        let written = found.is_some_and(|map| self.master && put(map, write.address, write).is_ok());
        if !written {
            self.faults += 1;
            return;
        }
        self.records += 1;
        for page in pages(write) {
            self.signal(page);
        }
    }

    fn signal(&mut self, vector: usize) {
        let Some(Some(event)) = self.vectors.get_mut(vector) else { return };
        if self.lose_interrupts > 0 {
            self.lose_interrupts -= 1;
            return;
        }
        // A counter that is full has been signalled. Whoever made it may have it block then, and
        // others would wait.
        let mut poll = [PollFd::new(event.as_fd(), PollFlags::POLLOUT)];
        let has_room = nix::poll::poll(&mut poll, PollTimeout::ZERO).is_ok_and(|ready| ready > 0);
        if has_room && event.write_all(&1u64.to_ne_bytes()).is_ok() {
            self.interrupts += 1;
        }
    }
}

/// Writes the selected words from the last to the first, so that the word with a record's lap comes
/// behind the rest of the record.
fn put(map: &Map, address: u64, write: &HostWrite) -> std::io::Result<()> {
    let at = map.offset + (address - map.address);
    for (number, word) in write.data.chunks_exact(8).enumerate().rev() {
        let chosen = (write.strobes >> (8 * number)) as u8;
        let start = at + 8 * number as u64;
        match chosen {
            0xff => map.file.write_all_at(word, start)?,
            chosen => {
                for byte in (0..8).filter(|byte| chosen >> byte & 1 == 1) {
                    map.file.write_all_at(&word[byte..=byte], start + byte as u64)?;
                }
            }
        }
    }
    Ok(())
}

/// Pages whose records a write holds.
fn pages(write: &HostWrite) -> impl Iterator<Item = usize> {
    let whole = (1u64 << Completion::SIZE) - 1;
    write.data.chunks_exact(Completion::SIZE).enumerate().filter_map(move |(number, bytes)| {
        let chosen = write.strobes >> (Completion::SIZE * number) & whole == whole;
        let record: &[u8; Completion::SIZE] = bytes.try_into().expect("a record");
        chosen.then(|| Completion::from_bytes(record).page as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(address: u64, page: u8) -> HostWrite {
        let mut data = [0; 64];
        let record = Completion { tag: 5, page, lap: 1, order: 3, ..Completion::default() };
        data[16..32].copy_from_slice(&record.to_bytes());
        HostWrite { address, data, strobes: 0xffff_0000 }
    }

    #[test]
    fn records_go_to_mapped_memory_of_a_bus_master_and_nowhere_else() {
        let file = tempfile::tempfile().unwrap();
        let mut bus = Bus::default();
        bus.map(0x1000, 128, file.try_clone().unwrap(), 4096).unwrap();
        assert!(bus.map(0x1040, 64, file.try_clone().unwrap(), 0).is_err(), "in use");
        assert!(bus.map(u64::MAX, 64, file.try_clone().unwrap(), 0).is_err());
        bus.deliver(&record(0x1040, 2));
        assert_eq!((bus.records, bus.faults), (0, 1), "no bus master");
        bus.master = true;
        bus.deliver(&record(0x1040, 2));
        bus.deliver(&record(0x1080, 2));
        assert_eq!((bus.records, bus.faults), (1, 2));
        let mut bytes = [0; Completion::SIZE];
        file.read_exact_at(&mut bytes, 4096 + 64 + 16).unwrap();
        assert_eq!(Completion::from_bytes(&bytes).tag, 5);
        bus.unmap(0x1000, 128);
        bus.deliver(&record(0x1040, 2));
        assert_eq!(bus.faults, 3);
    }

    #[test]
    fn what_a_client_gives_holds_nobody_up_and_is_bounded() {
        let file = tempfile::tempfile().unwrap();
        let mut bus = Bus { master: true, ..Bus::default() };
        (0..MOST_MAPS as u64).for_each(|n| bus.map(n * 64, 64, file.try_clone().unwrap(), 0).unwrap());
        assert!(bus.map(MOST_MAPS as u64 * 64, 64, file, 0).is_err(), "too many");
        // A pipe that blocks stands for a counter that does.
        let (_reader, mut full) = std::io::pipe().unwrap();
        full.write_all(&[0; 1 << 16]).unwrap();
        bus.set_vector(2, Some(File::from(std::os::fd::OwnedFd::from(full))));
        bus.deliver(&record(0x40, 2));
        assert_eq!((bus.records, bus.interrupts), (1, 0));
        bus.deliver(&record(u64::MAX - 63, 2));
        assert_eq!(bus.faults, 1, "beyond all addresses");
    }
}
