//! New bytes of an open transaction that are not in memory yet.
//!
//! It is ordinary memory of the processor. Accesses are charged as accesses to cached lines.

use std::ops::Range;

use nearpm_interface::geometry::{LINE, LINE_U64};

use crate::blocks::Blocks;
use crate::memory::{Medium, Work};

/// New bytes of a line.
struct NewLine {
    bytes: [u8; LINE],
    /// One bit per byte that was written.
    written: u64,
}

/// New bytes, by line number in the pool.
#[derive(Default)]
pub(crate) struct WriteSet {
    /// Numbers of the lines, rising, and where the bytes of each are in `bytes`, which keeps its memory when it is cleared.
    lines: Blocks<(u64, u32)>,
    bytes: Vec<NewLine>,
}

/// The lines of a range: line number, part of the line, part of the range.
pub(crate) fn split(place: u64, length: u64) -> impl Iterator<Item = (u64, Range<usize>, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        (done < length).then(|| {
            let at = place + done;
            let inside = at % LINE_U64;
            let bytes = (LINE_U64 - inside).min(length - done);
            let part =
                (at / LINE_U64, inside as usize..(inside + bytes) as usize, done as usize..(done + bytes) as usize);
            done += bytes;
            part
        })
    })
}

fn mask(range: &Range<usize>) -> u64 {
    (u64::MAX >> (LINE - range.len())) << range.start
}

/// The runs of set bits, rising.
fn runs_of(mut bits: u64) -> impl Iterator<Item = Range<usize>> {
    std::iter::from_fn(move || {
        (bits != 0).then(|| {
            let start = bits.trailing_zeros() as usize;
            let run = start..start + (bits >> start).trailing_ones() as usize;
            bits &= !mask(&run);
            run
        })
    })
}

impl WriteSet {
    pub fn clear(&mut self) {
        self.lines.clear();
        self.bytes.clear();
    }

    /// Adds bytes, in the place of earlier ones.
    pub fn insert(&mut self, medium: &Medium, place: u64, data: &[u8]) {
        self.add(medium, place, data, |_| u64::MAX);
    }

    /// Adds bytes where none were written.
    pub fn complete(&mut self, medium: &Medium, place: u64, data: &[u8]) {
        self.add(medium, place, data, |written| !written);
    }

    /// Adds bytes, of each line those that `wanted` picks, given what was written.
    fn add(&mut self, medium: &Medium, place: u64, data: &[u8], wanted: impl Fn(u64) -> u64) {
        for (line, inside, part) in split(place, data.len() as u64) {
            let data = &data[part];
            let new = self.line(line);
            let added = mask(&inside) & wanted(new.written);
            for run in runs_of(added) {
                let from = run.start - inside.start..run.end - inside.start;
                new.bytes[run].copy_from_slice(&data[from]);
            }
            new.written |= added;
            medium.charge(Work::CachedLines(1));
        }
    }

    /// The new bytes of a line.
    fn line(&mut self, line: u64) -> &mut NewLine {
        let place = self.lines.seek(|&(other, _)| other < line);
        let known = self.lines.get(place).filter(|&&(other, _)| other == line).map(|&(_, slot)| slot as usize);
        let slot = known.unwrap_or_else(|| {
            let slot = u32::try_from(self.bytes.len()).expect("a transaction writes less than 256 GiB");
            self.bytes.push(NewLine { bytes: [0; LINE], written: 0 });
            self.lines.put(place, (line, slot));
            slot as usize
        });
        &mut self.bytes[slot]
    }

    /// The lines that a range has part of, with the bits of that part that were written, rising.
    fn written(&self, range: &Range<u64>) -> impl Iterator<Item = (u64, u64, &NewLine)> {
        let Range { start: first, end } = *range;
        let lines = self.lines.from(self.lines.seek(|&(line, _)| line < first / LINE_U64));
        lines.take_while(move |&(line, _)| line * LINE_U64 < end).map(move |(line, slot)| {
            let start = line * LINE_U64;
            let inside = (first.max(start) - start) as usize..(end.min(start + LINE_U64) - start) as usize;
            let new = &self.bytes[slot as usize];
            (start, new.written & mask(&inside), new)
        })
    }

    /// Forgets the new bytes of whole lines.
    pub fn remove(&mut self, lines: &Range<u64>) {
        let (first, end) = (lines.start / LINE_U64, lines.end / LINE_U64);
        let place = self.lines.seek(|&(line, _)| line < first);
        let inside = self.lines.from(place).take_while(|&(line, _)| line < end).count();
        // The bytes stay until the set is cleared; nothing refers to them.
        for _ in 0..inside {
            self.lines.take(self.lines.seek(|&(line, _)| line < first));
        }
    }

    /// Puts the new bytes over what was loaded from a place.
    pub fn patch(&self, medium: &Medium, place: u64, data: &mut [u8]) {
        if self.lines.is_empty() || data.is_empty() {
            return;
        }
        for (start, bits, new) in self.written(&(place..place + data.len() as u64)) {
            medium.charge(Work::CachedLines(1));
            for run in runs_of(bits) {
                let at = (start + run.start as u64 - place) as usize;
                data[at..at + run.len()].copy_from_slice(&new.bytes[run]);
            }
        }
    }

    /// The written bytes of a range, and what lies between them: from the first to the last.
    pub fn hull(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let ends = |(start, bits, _): (u64, u64, &NewLine)| {
            start + u64::from(bits.trailing_zeros())..start + 64 - u64::from(bits.leading_zeros())
        };
        let mut written = self.written(range).filter(|&(_, bits, _)| bits != 0).map(ends);
        let first = written.next()?;
        let end = written.last().map_or(first.end, |last| last.end);
        Some(first.start..end)
    }

    /// The written bytes, exactly: a whole line would carry old bytes of a neighbour. Rising; runs end with their line.
    pub fn runs(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.lines.from((0, 0)).flat_map(|(line, slot)| {
            let new = &self.bytes[slot as usize];
            runs_of(new.written).map(move |run| (line * LINE_U64 + run.start as u64, &new.bytes[run]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Backing, VolatileMemory};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_and_patches_are_what_was_written_and_nothing_else(
            writes in prop::collection::vec((0u64..300, prop::collection::vec(any::<u8>(), 1..90), any::<bool>()), 0..12),
            probe in (0u64..300, 1usize..90),
        ) {
            let medium = Medium::new(Backing::Other(Box::new(VolatileMemory::new(64))));
            let mut set = WriteSet::default();
            let mut model = vec![None; 400];
            for (place, data, over) in &writes {
                if *over { set.insert(&medium, *place, data) } else { set.complete(&medium, *place, data) }
                for (n, &byte) in data.iter().enumerate() {
                    let known = &mut model[*place as usize + n];
                    *known = if *over { Some(byte) } else { known.or(Some(byte)) };
                }
            }
            let mut found = vec![None; 400];
            for (place, data) in set.runs() {
                prop_assert_eq!(place / 64, (place + data.len() as u64 - 1) / 64);
                for (n, &byte) in data.iter().enumerate() {
                    prop_assert!(found[place as usize + n].replace(byte).is_none());
                }
            }
            prop_assert_eq!(&found, &model);
            let (place, length) = probe;
            let mut data = vec![0xa5; length];
            set.patch(&medium, place, &mut data);
            let range = place..place + length as u64;
            let mut written = range.clone().filter(|&at| model[at as usize].is_some());
            let hull = written.next().map(|first| first..written.next_back().unwrap_or(first) + 1);
            prop_assert_eq!(set.hull(&range), hull);
            for (n, byte) in data.into_iter().enumerate() {
                prop_assert_eq!(byte, model[place as usize + n].unwrap_or(0xa5));
            }
        }
    }
}
