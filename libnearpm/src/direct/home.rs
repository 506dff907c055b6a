//! Writing what records hold to where it belongs.

use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::record::{Kind, Operation, RecordHead};

use crate::memory::Medium;

/// Lines whose write-back is put off, because records often name the same ones.
const WAITING: usize = 4096;

/// No line.
const NONE: u64 = u64::MAX;

/// Carries out operations. What was changed is written back by the end of [`Home::finish`], each line once if it can be remembered.
pub(crate) struct Home<'m> {
    medium: &'m Medium,
    /// Line numbers, each in the place that its low bits choose.
    waiting: Box<[u64]>,
}

impl<'m> Home<'m> {
    pub fn new(medium: &'m Medium) -> Home<'m> {
        Home { medium, waiting: vec![NONE; WAITING].into() }
    }

    /// Carries out a record of new bytes.
    ///
    /// # Panics
    /// If the record was not made by this library.
    pub fn apply_record(&mut self, record: &[u8]) {
        let head = RecordHead::from_bytes(record.first_chunk().expect("a record has a head"));
        assert_ne!(head.kind, Kind::Undo as u32, "old bytes go home in a recovery only");
        let mut body = &record[RecordHead::SIZE..head.bytes as usize];
        while let Some((operation, rest)) = Operation::decode(body) {
            self.apply(operation);
            body = rest;
        }
    }

    /// Carries out an operation.
    pub fn apply(&mut self, operation: Operation<'_>) {
        match operation {
            Operation::Store(offset, data) => self.store(offset, data),
            Operation::Set(offset, mask) => {
                self.store(offset, &(self.medium.load_word(offset) | mask).to_le_bytes());
            }
            Operation::Clear(offset, mask) => {
                self.store(offset, &(self.medium.load_word(offset) & !mask).to_le_bytes());
            }
        }
    }

    fn store(&mut self, offset: u64, data: &[u8]) {
        self.medium.store(offset, data);
        for line in offset / LINE_U64..(offset + data.len() as u64).div_ceil(LINE_U64) {
            let place = &mut self.waiting[line as usize % WAITING];
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
        for &line in self.waiting.iter().filter(|&&line| line != NONE) {
            self.medium.write_back(line * LINE_U64, LINE_U64);
        }
    }
}
