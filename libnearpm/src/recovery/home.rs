//! Writing what records hold to where it belongs.

use std::ops::Range;

use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::media::PAGE_BYTES;
use nearpm_interface::record::{Kind, Operation, RecordHead};
use nearpm_interface::seal;

use super::gathered::Gathered;
use crate::damage::Class;
use crate::error::Error;
use crate::memory::{Backing, Medium, Memory};

/// Lines whose write-back is put off, because records often name the same ones.
const WAITING: usize = 4096;

/// No line.
const NONE: u64 = u64::MAX;

/// Carries out operations. What was changed is written back by the end of [`Home::finish`], each
/// line once if it can be remembered.
pub(crate) struct Home<'m> {
    medium: &'m Medium,
    way: Way,
}

/// How bytes get home.
enum Way {
    /// Each at once. Line numbers, each in the place that its low bits choose.
    Stores(Box<[u64; WAITING]>),
    /// Those that a call may take together.
    Calls(Gathered),
}

/// The operations of a record that change something, each on one page, with what they change.
fn operations_on_pages(record: &[u8]) -> impl Iterator<Item = (Operation<'_>, Range<u64>)> {
    let head = RecordHead::from_bytes(record.first_chunk().expect("a record has a head"));
    assert_ne!(head.kind, Kind::Undo as u32, "old bytes go home in a recovery only");
    let mut body = &record[RecordHead::SIZE..head.bytes as usize];
    let mut rest_of_store: Option<(u64, &[u8])> = None;
    std::iter::from_fn(move || {
        loop {
            if let Some((offset, data)) = rest_of_store.take() {
                let here = (PAGE_BYTES - offset % PAGE_BYTES).min(data.len() as u64);
                let (piece, rest) = data.split_at(here as usize);
                rest_of_store = (!rest.is_empty()).then_some((offset + here, rest));
                return Some((Operation::Store(offset, piece), offset..offset + here));
            }
            let (operation, rest) = Operation::decode(body)?;
            body = rest;
            match operation {
                Operation::Store(offset, data) => rest_of_store = Some((offset, data)),
                Operation::SetSealed(offset, _)
                | Operation::ClearSealed(offset, _)
                | Operation::Set(offset, _)
                | Operation::Clear(offset, _) => return Some((operation, offset..offset + 8)),
                Operation::Home(..) | Operation::Through(_) => {}
            }
        }
    })
}

impl<'m> Home<'m> {
    pub fn new(medium: &'m Medium) -> Home<'m> {
        let calls = medium.backing().drains_for_all();
        let way = if calls { Way::Calls(Gathered::default()) } else { Way::Stores(Box::new([NONE; WAITING])) };
        Home { medium, way }
    }

    /// Carries out a record of new bytes.
    ///
    /// # Errors
    /// As [`Home::apply`].
    ///
    /// # Panics
    /// If the record was not made by this library.
    pub fn apply_record(&mut self, record: &[u8]) -> Result<(), Error> {
        let head = RecordHead::from_bytes(record.first_chunk().expect("a record has a head"));
        assert_ne!(head.kind, Kind::Undo as u32, "old bytes go home in a recovery only");
        let mut body = &record[RecordHead::SIZE..head.bytes as usize];
        while let Some((operation, rest)) = Operation::decode(body) {
            self.apply(operation)?;
            body = rest;
        }
        Ok(())
    }

    /// Carries out what a record has for some pages of the pool, which are known by their numbers.
    ///
    /// # Errors
    /// As [`Home::apply`].
    ///
    /// # Panics
    /// As [`Home::apply_record`].
    pub fn apply_part(&mut self, record: &[u8], has_page: impl Fn(u64) -> bool) -> Result<(), Error> {
        operations_on_pages(record).try_for_each(|(operation, range)| {
            if has_page(range.start / PAGE_BYTES) { self.apply(operation) } else { Ok(()) }
        })
    }

    /// Whether it is worth saying what will be done soon.
    pub fn fetches(&self) -> bool {
        self.medium.is_behind_a_link()
    }

    /// Says that this will be done soon: memory behind a link begins to fetch what it changes.
    pub fn fetch_for(&self, record: &[u8], has_page: impl Fn(u64) -> bool) {
        let ranges = operations_on_pages(record).map(|(_, range)| range);
        ranges.filter(|range| has_page(range.start / PAGE_BYTES)).for_each(|range| self.medium.prefetch_parts(&range));
    }

    /// Carries out an operation.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a sealed word that is damaged: what is in it must not be sealed anew.
    #[inline(always)]
    pub fn apply(&mut self, operation: Operation<'_>) -> Result<(), Error> {
        match operation {
            Operation::Store(offset, data) => self.store(offset, data),
            Operation::SetSealed(offset, mask) => self.change_sealed(offset, mask, 0)?,
            Operation::ClearSealed(offset, mask) => self.change_sealed(offset, 0, mask)?,
            Operation::Set(offset, mask) => {
                self.store(offset, &(self.load_word(offset) | mask).to_le_bytes());
            }
            Operation::Clear(offset, mask) => {
                self.store(offset, &(self.load_word(offset) & !mask).to_le_bytes());
            }
            Operation::Home(..) | Operation::Through(_) => {}
        }
        Ok(())
    }

    #[inline(never)]
    fn change_sealed(&mut self, offset: u64, set: u64, clear: u64) -> Result<(), Error> {
        let word = self.load_word(offset);
        match seal::change_bits(word, |bits| (bits | set) & !clear) {
            Some(changed) => self.store(offset, &changed.to_le_bytes()),
            None if seal::open_bits(word).is_none() => {
                // A card that has gone reads as ones.
                self.medium.backing().alive()?;
                return Err(Class::BitmapWord.at(offset));
            }
            // The mask of a hostile record has more bits than there are.
            None => return Err(Class::RecordRange.at(offset)),
        }
        Ok(())
    }

    #[inline(always)]
    fn load_word(&self, offset: u64) -> u64 {
        match &self.way {
            Way::Stores(_) => self.medium.load_word(offset),
            Way::Calls(gathered) => gathered.word(self.medium, offset),
        }
    }

    #[inline(never)]
    fn store(&mut self, offset: u64, data: &[u8]) {
        let waiting = match &mut self.way {
            Way::Stores(waiting) => waiting,
            Way::Calls(gathered) => return gathered.store(self.medium, offset, data),
        };
        match self.medium.backing() {
            Backing::Mapped(memory) => memory.store(offset, data),
            other => other.store(offset, data),
        }
        for line in offset / LINE_U64..(offset + data.len() as u64).div_ceil(LINE_U64) {
            let place = &mut waiting[line as usize % WAITING];
            if *place != line {
                let former = std::mem::replace(place, line);
                if former != NONE {
                    self.medium.write_back(former * LINE_U64, LINE_U64);
                }
            }
        }
    }

    /// Starts the write-back of everything that still waits for it.
    pub fn finish(self) {
        match self.way {
            Way::Stores(waiting) => {
                for &line in waiting.iter().filter(|&&line| line != NONE) {
                    self.medium.write_back(line * LINE_U64, LINE_U64);
                }
            }
            Way::Calls(mut gathered) => gathered.go_home(self.medium),
        }
    }
}
