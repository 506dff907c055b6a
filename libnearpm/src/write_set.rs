//! New bytes of an open transaction that are not in memory yet.
//!
//! It is ordinary memory of the processor. Accesses are charged as accesses to cached lines.

use std::collections::BTreeMap;
use std::ops::Range;

use nearpm_interface::geometry::{LINE, LINE_U64};

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
    lines: BTreeMap<u64, NewLine>,
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

impl WriteSet {
    pub fn clear(&mut self) {
        self.lines.clear();
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
            let new = self.lines.entry(line).or_insert(NewLine { bytes: [0; LINE], written: 0 });
            let added = mask(&inside) & wanted(new.written);
            for (at, &byte) in inside.zip(&data[part]) {
                if added >> at & 1 == 1 {
                    new.bytes[at] = byte;
                }
            }
            new.written |= added;
            medium.charge(Work::CachedLines(1));
        }
    }

    /// Forgets the new bytes of whole lines.
    pub fn remove(&mut self, lines: &Range<u64>) {
        for line in lines.start / LINE_U64..lines.end / LINE_U64 {
            self.lines.remove(&line);
        }
    }

    /// Puts the new bytes over what was loaded from a place.
    pub fn patch(&self, medium: &Medium, place: u64, data: &mut [u8]) {
        if self.lines.is_empty() {
            return;
        }
        let end = place + data.len() as u64;
        for (&line, new) in self.lines.range(place / LINE_U64..end.div_ceil(LINE_U64)) {
            medium.charge(Work::CachedLines(1));
            let start = line * LINE_U64;
            for at in start.max(place)..(start + LINE_U64).min(end) {
                let inside = (at - start) as usize;
                if new.written >> inside & 1 == 1 {
                    data[(at - place) as usize] = new.bytes[inside];
                }
            }
        }
    }

    /// The written bytes of a range, and what lies between them: from the first to the last.
    pub fn hull(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let written = |(&line, new): (&u64, &NewLine)| {
            let start = line * LINE_U64;
            let inside = range.start.max(start) - start..range.end.min(start + LINE_U64) - start;
            let bits = new.written & mask(&(inside.start as usize..inside.end as usize));
            (bits != 0).then(|| start + u64::from(bits.trailing_zeros())..start + 64 - u64::from(bits.leading_zeros()))
        };
        let lines = || self.lines.range(range.start / LINE_U64..range.end.div_ceil(LINE_U64));
        let first = lines().find_map(written)?;
        let last = lines().rev().find_map(written)?;
        Some(first.start..last.end)
    }

    /// The written bytes, exactly: a whole line would carry old bytes of a neighbour. Rising; runs end with their line.
    pub fn runs(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.lines.iter().flat_map(|(&line, new)| {
            let mut at = 0;
            std::iter::from_fn(move || {
                let rest = new.written.checked_shr(at as u32).unwrap_or(0);
                if rest == 0 {
                    return None;
                }
                let start = at + rest.trailing_zeros() as usize;
                let run = (new.written >> start).trailing_ones() as usize;
                at = start + run;
                Some((line * LINE_U64 + start as u64, &new.bytes[start..at]))
            })
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
