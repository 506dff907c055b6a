//! Power cuts under programs whose pool is an ordinary file.
//!
//! **Fault model.** The system keeps what was stored in its page cache, to which a store is a call
//! that copies word after word. A sector reaches the medium in three ways only: the library
//! synchronises its page (`msync`, which is [`Memory::fence`] of what was written back); the system
//! writes it at a moment of its own choosing, each as it is then; or the power fails, and then each
//! sector holds what the medium had or what the cache had. A sector is written whole, as media
//! promise, but any of these may come in the middle of a store.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::durable_image::{PowerCut, end_process, not_cut};
use super::test::Random;
use super::{Event, MappedMemory, Memory, View, check_range};
use crate::error::Error;

/// Bytes that a medium writes at once.
const SECTOR: usize = 512;
/// Bytes of a page of the system.
const PAGE: u64 = 4096;

/// A file, its pages in the system's cache, and what of them is on the medium.
pub(crate) struct TornFile {
    cache: View,
    file: MappedMemory,
    cut: PowerCut,
    medium: Mutex<Medium>,
}

struct Medium {
    bytes: Vec<u8>,
    /// From the first to the last byte that was written back since the last fence.
    pending: Option<(u64, u64)>,
    events: u64,
    fences: u64,
    random: Random,
}

impl TornFile {
    /// Loads the file, and arms the cut.
    pub fn load(file: MappedMemory, cut: PowerCut) -> Result<TornFile, Error> {
        let mut bytes = vec![0; file.bytes() as usize];
        file.load(0, &mut bytes);
        let cache = View::anonymous(file.bytes())?;
        cache.store(0, &bytes);
        let medium = Medium { bytes, pending: None, events: 0, fences: 0, random: Random(cut.seed) };
        Ok(TornFile { cache, file, cut, medium: Mutex::new(medium) })
    }

    fn lock(&self) -> MutexGuard<'_, Medium> {
        self.medium.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The system writes a sector.
    fn write_sector(&self, medium: &mut Medium, sector: usize) {
        let start = sector * SECTOR;
        let end = medium.bytes.len().min(start + SECTOR);
        self.cache.load(start as u64, &mut medium.bytes[start..end]);
    }

    /// Something is about to take effect: the power may fail before it does, and the system may
    /// write a sector.
    fn happens(&self, medium: &mut Medium, event: Event) {
        medium.events += 1;
        medium.fences += u64::from(event == Event::Fence);
        let sectors = medium.bytes.len().div_ceil(SECTOR) as u64;
        if medium.events == self.cut.event || event == Event::Fence && medium.fences == self.cut.fence {
            // Some cuts leave much of the cache, some little.
            let mut random = Random(self.cut.seed);
            let share = random.next() % 9;
            for sector in 0..sectors as usize {
                if random.next() % 8 < share {
                    self.write_sector(medium, sector);
                }
            }
            self.file.store(0, &medium.bytes);
            end_process();
        }
        if self.cut.evict_one_in > 0 && medium.random.next().is_multiple_of(self.cut.evict_one_in) {
            let sector = medium.random.next() % sectors;
            self.write_sector(medium, sector as usize);
        }
    }
}

impl Drop for TornFile {
    /// The machine is switched off in order: what was synchronised is in the file.
    fn drop(&mut self) {
        let medium = self.lock();
        self.file.store(0, &medium.bytes);
        eprintln!("{}", not_cut(medium.events, "events"));
    }
}

impl Memory for TornFile {
    fn bytes(&self) -> u64 {
        self.file.bytes()
    }
    fn load(&self, offset: u64, data: &mut [u8]) {
        self.cache.load(offset, data);
    }
    fn store(&self, offset: u64, data: &[u8]) {
        let end = offset + data.len() as u64;
        // An aligned word is not torn.
        let middle = (offset + data.len() as u64 / 2).next_multiple_of(8).min(end);
        let (front, behind) = data.split_at((middle - offset) as usize);
        for (offset, part) in [(offset, front), (middle, behind)].into_iter().filter(|(_, part)| !part.is_empty()) {
            self.happens(&mut self.lock(), Event::Store);
            self.cache.store(offset, part);
        }
    }
    /// Whole blocks are written: sectors behind the bytes become zeros, or not, each by itself.
    fn append(&self, offset: u64, lines: &[u8]) {
        let end = offset + lines.len() as u64;
        let behind = end.next_multiple_of(PAGE).min(self.bytes()) - end;
        self.store(offset, lines);
        if behind > 0 {
            self.store(end, &vec![0; behind as usize]);
        }
        self.write_back(offset, lines.len() as u64 + behind);
    }
    fn write_back(&self, offset: u64, bytes: u64) {
        check_range(self.bytes(), offset, bytes);
        if bytes == 0 {
            return;
        }
        let mut medium = self.lock();
        self.happens(&mut medium, Event::WriteBack);
        let (start, end) = medium.pending.unwrap_or((u64::MAX, 0));
        medium.pending = Some((start.min(offset), end.max(offset + bytes)));
    }
    fn fence(&self) -> Result<(), Error> {
        let mut medium = self.lock();
        self.happens(&mut medium, Event::Fence);
        if let Some((start, end)) = medium.pending.take() {
            let (start, end) = (start / PAGE * PAGE, end.next_multiple_of(PAGE).min(self.bytes()));
            self.cache.load(start, &mut medium.bytes[start as usize..end as usize]);
        }
        Ok(())
    }
    fn drains_for_all(&self) -> bool {
        true
    }
    fn invalidate(&self, offset: u64, bytes: u64) {
        check_range(self.bytes(), offset, bytes);
    }
    fn keeps_order(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::Survives;
    use super::*;

    fn torn(bytes: u64, cut: PowerCut) -> (tempfile::NamedTempFile, TornFile) {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(bytes).unwrap();
        let memory = MappedMemory::map(file.reopen().unwrap(), file.path(), Survives::ProcessCrash).unwrap();
        (file, TornFile::load(memory, cut).unwrap())
    }

    #[test]
    fn only_what_was_synchronised_is_on_the_medium() {
        let (file, memory) = torn(4 * PAGE, PowerCut::default());
        for page in 0..4 {
            memory.store(page * PAGE + 8, &[1]);
        }
        memory.write_back(8, 1);
        memory.write_back(PAGE + 8, 1);
        memory.fence().unwrap();
        memory.write_back(2 * PAGE + 8, 1);
        let mut byte = [0];
        memory.load(3 * PAGE + 8, &mut byte);
        assert_eq!(byte, [1], "the cache has it");
        drop(memory);
        let left = std::fs::read(file.path()).unwrap();
        assert_eq!([0, 1, 2, 3].map(|page| left[page * PAGE as usize + 8]), [1, 1, 0, 0]);
    }

    #[test]
    fn the_system_writes_sectors_when_it_likes() {
        let (file, memory) = torn(64 * PAGE, PowerCut { evict_one_in: 2, seed: 1, ..PowerCut::default() });
        for sector in 0..512 {
            memory.store(sector * SECTOR as u64, &[1; SECTOR]);
        }
        drop(memory);
        let left = std::fs::read(file.path()).unwrap();
        let written = left.chunks(SECTOR).filter(|sector| sector[0] == 1).count();
        assert!((20..400).contains(&written), "{written} of 512");
    }

    #[test]
    fn a_sector_may_be_written_in_the_middle_of_a_store_and_a_word_is_whole() {
        let mut torn_sectors = 0;
        for seed in 1..40 {
            let (file, memory) = torn(PAGE, PowerCut { evict_one_in: 2, seed, ..PowerCut::default() });
            for sector in 0..8 {
                memory.store(sector * SECTOR as u64, &[1; SECTOR]);
            }
            drop(memory);
            let left = std::fs::read(file.path()).unwrap();
            assert!(left.chunks(8).all(|word| word.iter().all(|byte| *byte == word[0])), "a word is whole");
            torn_sectors += left.chunks(SECTOR).filter(|sector| sector[0] != sector[SECTOR - 1]).count();
        }
        assert!(torn_sectors > 0, "no store was under way when a sector was written");
    }
}
