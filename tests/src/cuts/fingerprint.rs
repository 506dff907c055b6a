//! Numbers that name what a memory holds.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};

use nearpm_interface::geometry::LINE;
use nearpm_sim::core::Medium;
use nearpm_sim::rtl::RtlCard;

/// Bytes that have a number of their own.
const PAGE: usize = 4096;

/// The numbers of a medium's pages; their sum names the medium. So what a few changed lines make of
/// it costs a few pages.
pub struct Fingerprint(Vec<u64>);

impl Fingerprint {
    /// Of a medium.
    pub fn of(medium: &Medium) -> Self {
        Fingerprint(medium.bytes.chunks(PAGE).enumerate().map(|(number, bytes)| number_of(number, bytes)).collect())
    }

    /// Names the medium.
    pub fn value(&self) -> u64 {
        self.0.iter().fold(0, |sum, number| sum.wrapping_add(*number))
    }

    /// Names the same `medium` with other lines.
    pub fn value_with(&self, medium: &Medium, lines: &BTreeMap<u64, [u8; LINE]>) -> u64 {
        let mut pages: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        for (address, line) in lines {
            let (page, at) = (*address as usize / PAGE, *address as usize % PAGE);
            let bytes = pages.entry(page).or_insert_with(|| medium.bytes[page * PAGE..][..PAGE].to_vec());
            bytes[at..at + LINE].copy_from_slice(line);
        }
        pages.iter().fold(self.value(), |sum, (page, bytes)| {
            sum.wrapping_sub(self.0[*page]).wrapping_add(number_of(*page, bytes))
        })
    }
}

fn number_of(page: usize, bytes: &[u8]) -> u64 {
    let mut hasher = foldhash::quality::FixedState::with_seed(page as u64).build_hasher();
    hasher.write(bytes);
    hasher.finish()
}

/// The memory behind a card that runs, as a power cut in each cycle would leave it.
pub struct Watched {
    durable: Fingerprint,
    bursts: u64,
}

impl Watched {
    /// Begins.
    pub fn new(card: &RtlCard) -> Self {
        Watched { durable: Fingerprint::of(&card.contents()), bursts: card.durable_bursts() }
    }

    /// Names the memory that a cut now leaves, without the energy for a save.
    pub fn left(&mut self, card: &RtlCard, seed: u64) -> u64 {
        if self.bursts != card.durable_bursts() {
            *self = Watched::new(card);
        }
        self.durable.value_with(&card.contents(), &card.lines_after_power_fail(seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_medium_with_other_lines_is_named_as_one_that_has_them() {
        let mut medium = Medium { bytes: (0..8 * PAGE).map(|at| (at / 7) as u8).collect() };
        let before = Fingerprint::of(&medium);
        let lines =
            BTreeMap::from([0, 64, 2 * PAGE as u64, 8 * PAGE as u64 - 64].map(|at| (at, [at as u8 ^ 0x5a; LINE])));
        let changed = before.value_with(&medium, &lines);
        lines.iter().for_each(|(address, line)| medium.write_line(*address, line, u64::MAX));
        assert_eq!(changed, Fingerprint::of(&medium).value());
        assert_ne!(changed, before.value());
        assert_eq!(before.value_with(&medium, &BTreeMap::new()), before.value());
        // Pages that change places are another medium.
        let swapped = Medium {
            bytes: [&medium.bytes[PAGE..2 * PAGE], &medium.bytes[..PAGE], &medium.bytes[2 * PAGE..]].concat(),
        };
        assert_ne!(Fingerprint::of(&swapped).value(), changed);
    }
}
