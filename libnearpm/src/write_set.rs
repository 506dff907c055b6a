//! New bytes of an open transaction that are not in memory yet.
//!
//! It is ordinary memory of the processor. Accesses are charged as accesses to cached lines.

use std::ops::Range;

use nearpm_interface::geometry::{LINE, LINE_U64};

use crate::blocks::Blocks;
use crate::memory::{Medium, Work};

/// New bytes, by line number in the pool.
#[derive(Default)]
pub(crate) struct WriteSet {
    /// Numbers of the lines, rising, and the slot of each.
    lines: Blocks<(u64, u32)>,
    /// What is in the slots, and one bit for each byte that was written. They keep their memory
    /// when they are cleared.
    bytes: Vec<[u8; LINE]>,
    written: Vec<u64>,
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
struct Runs(u64);

impl Iterator for Runs {
    type Item = Range<usize>;

    #[inline]
    fn next(&mut self) -> Option<Range<usize>> {
        (self.0 != 0).then(|| {
            let start = self.0.trailing_zeros() as usize;
            let run = start..start + (self.0 >> start).trailing_ones() as usize;
            self.0 &= !mask(&run);
            run
        })
    }
}

impl WriteSet {
    pub fn clear(&mut self) {
        self.lines.clear();
        self.bytes.clear();
        self.written.clear();
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
            let slot = self.slot(line);
            let added = mask(&inside) & wanted(self.written[slot]);
            for run in Runs(added) {
                let from = run.start - inside.start..run.end - inside.start;
                self.bytes[slot][run].copy_from_slice(&data[from]);
            }
            self.written[slot] |= added;
            medium.charge(Work::CachedLines(1));
        }
    }

    /// The slot of a line.
    fn slot(&mut self, line: u64) -> usize {
        let place = self.lines.seek(|&(other, _)| other < line);
        if let Some(&(_, slot)) = self.lines.get(place).filter(|&&(other, _)| other == line) {
            return slot as usize;
        }
        let slot = self.bytes.len();
        self.lines.put(place, (line, u32::try_from(slot).expect("a transaction writes less than 256 GiB")));
        self.bytes.push([0; LINE]);
        self.written.push(0);
        slot
    }

    /// The lines that a range has part of: where each begins, which bytes of that part were
    /// written, and all its bytes; rising.
    fn parts(&self, range: &Range<u64>) -> impl Iterator<Item = (u64, u64, &[u8; LINE])> {
        let Range { start: first, end } = *range;
        let lines = self.lines.from(self.lines.seek(|&(line, _)| line < first / LINE_U64));
        lines.take_while(move |&(line, _)| line * LINE_U64 < end).map(move |(line, slot)| {
            let start = line * LINE_U64;
            let inside = (first.max(start) - start) as usize..(end.min(start + LINE_U64) - start) as usize;
            (start, self.written[slot as usize] & mask(&inside), &self.bytes[slot as usize])
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
        for (start, bits, bytes) in self.parts(&(place..place + data.len() as u64)) {
            medium.charge(Work::CachedLines(1));
            for run in Runs(bits) {
                let at = (start + run.start as u64 - place) as usize;
                data[at..at + run.len()].copy_from_slice(&bytes[run]);
            }
        }
    }

    /// The written bytes of a range, and what lies between them: from the first to the last.
    pub fn hull(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let ends = |(start, bits, _): (u64, u64, &[u8; LINE])| {
            start + u64::from(bits.trailing_zeros())..start + 64 - u64::from(bits.leading_zeros())
        };
        let mut written = self.parts(range).filter(|&(_, bits, _)| bits != 0).map(ends);
        let first = written.next()?;
        let end = written.last().map_or(first.end, |last| last.end);
        Some(first.start..end)
    }

    /// The written bytes, exactly: a whole line would carry old bytes of a neighbour. Rising; lines
    /// that were written one after the other may be one run.
    pub fn runs(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut lines = self.lines.from((0, 0));
        let (mut line, mut slot, mut runs) = (0, 0, Runs(0));
        std::iter::from_fn(move || {
            let run = loop {
                if let Some(run) = runs.next() {
                    break run;
                }
                (line, slot) = lines.next()?;
                runs = Runs(self.written[slot as usize]);
            };
            let (place, from) = (line * LINE_U64 + run.start as u64, slot as usize * LINE + run.start);
            let mut until = slot as usize * LINE + run.end;
            while until == (slot as usize + 1) * LINE && lines.clone().next() == Some((line + 1, slot + 1)) {
                let written = self.written[slot as usize + 1];
                if written & 1 == 0 {
                    break;
                }
                lines.next();
                (line, slot, runs) = (line + 1, slot + 1, Runs(written));
                until += runs.next().map_or(0, |run| run.len());
            }
            Some((place, &self.bytes.as_flattened()[from..until]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Backing, VolatileMemory};
    use proptest::prelude::*;

    /// Lines that the writes below fall into: more than one block of the set's order holds.
    const LINES: u64 = 400;

    #[derive(Clone, Debug)]
    enum Change {
        Insert(u64, Vec<u8>),
        Complete(u64, Vec<u8>),
        Remove(Range<u64>),
    }

    fn changes() -> impl Strategy<Value = Change> {
        let place = 0..LINES * LINE_U64;
        let data = prop_oneof![
            6 => prop::collection::vec(any::<u8>(), 1..90),
            1 => prop::collection::vec(any::<u8>(), 5_000..12_000),
        ];
        let lines = (0..LINES, 0u64..150).prop_map(|(first, count)| first * LINE_U64..(first + count) * LINE_U64);
        prop_oneof![
            4 => (place.clone(), data.clone()).prop_map(|(place, data)| Change::Insert(place, data)),
            4 => (place, data).prop_map(|(place, data)| Change::Complete(place, data)),
            1 => lines.prop_map(Change::Remove),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 256 }, ..ProptestConfig::default() })]

        #[test]
        fn runs_and_patches_are_what_was_written_and_nothing_else(
            changes in prop::collection::vec(changes(), 0..40),
            probe in (0..LINES * LINE_U64, 1usize..2_000),
        ) {
            let medium = Medium::new(Backing::Other(Box::new(VolatileMemory::new(64))));
            let mut set = WriteSet::default();
            let mut model = vec![None; 2 * (LINES * LINE_U64) as usize];
            for change in &changes {
                match change {
                    Change::Insert(place, data) => {
                        set.insert(&medium, *place, data);
                        for (n, &byte) in data.iter().enumerate() {
                            model[*place as usize + n] = Some(byte);
                        }
                    }
                    Change::Complete(place, data) => {
                        set.complete(&medium, *place, data);
                        for (n, &byte) in data.iter().enumerate() {
                            model[*place as usize + n].get_or_insert(byte);
                        }
                    }
                    Change::Remove(lines) => {
                        set.remove(lines);
                        model[lines.start as usize..lines.end as usize].fill(None);
                    }
                }
            }
            let mut found = vec![None; model.len()];
            for (place, data) in set.runs() {
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
