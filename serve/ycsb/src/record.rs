//! Records: how they are laid out, what they hold, and whether what was read is what somebody
//! wrote.
//!
//! A field holds a random number (8 bytes), and then bytes that follow from it, the record, the
//! field and the length. So a field of another record, a part of one, or a mixture of two is
//! noticed by whoever reads it.

use std::hash::Hasher;

use fnv::FnvHasher;
use nearpm_workloads::programs::ycsb::value;
use serde::Serialize;

use crate::requests::Requests;

/// Bytes of the random number.
const NONCE_BYTES: usize = 8;
/// Bytes of the smallest field: the number, and as much again to know it by.
pub const LEAST_FIELD_BYTES: usize = 2 * NONCE_BYTES;

/// How a record lies in the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// A Redis hash with a field for each field; an update writes one field (as YCSB's Redis
    /// binding, without its index for scans)
    Hash,
    /// As hash, and the keys in a sorted set, which scans go through (as that binding has it; its
    /// members are in the order of the keys)
    Ordered,
    /// One value under one key; an update writes all of it
    Value,
}

/// Fields by their number. A record that is one value has the field 0.
pub type Fields = Vec<(usize, Vec<u8>)>;

/// What records look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// How they lie in the server.
    pub layout: Layout,
    /// Fields of a record.
    pub fields: usize,
    /// Bytes of a field.
    pub field_bytes: usize,
    /// Bytes that a record of one value may have more, drawn for each.
    pub most_more: usize,
}

/// What was read is nothing that this client writes.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// Fields are missing, or there are others.
    #[error("record {number} has {found} of its {expected} fields, and {strange} others")]
    Fields {
        /// The record.
        number: u64,
        /// Fields that belong to it.
        found: usize,
        /// Fields that it must have.
        expected: usize,
        /// Fields that do not belong to it.
        strange: usize,
    },
    /// A field holds something else.
    #[error("field {field} of record {number} ({bytes} bytes) holds what was never written there")]
    Value {
        /// The record.
        number: u64,
        /// The field.
        field: usize,
        /// What was found there.
        bytes: usize,
    },
}

/// What the field `field` of record `number` holds by a random number.
fn contents(number: u64, field: usize, bytes: usize, nonce: [u8; NONCE_BYTES]) -> Vec<u8> {
    let mut hasher = FnvHasher::default();
    [number, field as u64, bytes as u64].iter().for_each(|word| hasher.write(&word.to_le_bytes()));
    hasher.write(&nonce);
    let mut contents = nonce.to_vec();
    contents.extend(value(hasher.finish(), bytes - NONCE_BYTES));
    contents
}

/// Whether that is what a field holds.
fn is_written(number: u64, field: usize, found: &[u8]) -> bool {
    let nonce = found.first_chunk().filter(|_| found.len() >= LEAST_FIELD_BYTES);
    nonce.is_some_and(|&nonce| contents(number, field, found.len(), nonce) == found)
}

impl Shape {
    /// Fields as the server knows them: one, where a record is one value.
    fn stored_fields(&self) -> usize {
        match self.layout {
            Layout::Hash | Layout::Ordered => self.fields,
            Layout::Value => 1,
        }
    }

    fn field(&self, number: u64, field: usize, requests: &mut Requests) -> (usize, Vec<u8>) {
        let bytes = match self.layout {
            Layout::Hash | Layout::Ordered => self.field_bytes,
            Layout::Value => self.fields * self.field_bytes + requests.below(self.most_more + 1),
        };
        (field, contents(number, field, bytes, requests.nonce().to_le_bytes()))
    }

    /// A whole record.
    pub fn record(&self, number: u64, requests: &mut Requests) -> Fields {
        (0..self.stored_fields()).map(|field| self.field(number, field, requests)).collect()
    }

    /// What an update writes: one field drawn at random.
    pub fn update(&self, number: u64, requests: &mut Requests) -> Fields {
        let field = requests.below(self.stored_fields());
        vec![self.field(number, field, requests)]
    }

    /// Checks a record that was read.
    ///
    /// # Errors
    /// It is nothing that was written.
    pub fn check(&self, number: u64, found: &Fields) -> Result<(), Wrong> {
        let expected = self.stored_fields();
        let own = (0..expected).filter(|field| found.iter().any(|(other, _)| other == field)).count();
        if own != expected || found.len() != expected {
            return Err(Wrong::Fields { number, found: own, expected, strange: found.len() - own });
        }
        match found.iter().find(|(field, bytes)| !is_written(number, *field, bytes)) {
            Some((field, bytes)) => Err(Wrong::Value { number, field: *field, bytes: bytes.len() }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::inserted::Inserted;
    use crate::workload::Workload;

    fn requests(seed: u64) -> Requests {
        Requests::new(Workload::A, 10, Arc::new(Inserted::after(10)), seed, 0)
    }

    const HASH: Shape = Shape { layout: Layout::Hash, fields: 10, field_bytes: 100, most_more: 0 };
    const VALUE: Shape = Shape { layout: Layout::Value, fields: 10, field_bytes: 100, most_more: 400 };

    #[test]
    fn records_have_their_sizes() {
        let hash = HASH.record(3, &mut requests(1));
        assert_eq!(
            hash.iter().map(|(field, bytes)| (*field, bytes.len())).collect::<Vec<_>>(),
            [(0, 100), (1, 100), (2, 100), (3, 100), (4, 100), (5, 100), (6, 100), (7, 100), (8, 100), (9, 100)]
        );
        let mut requests = requests(1);
        let sizes: Vec<_> = (0..2000).map(|_| VALUE.record(3, &mut requests)[0].1.len()).collect();
        assert_eq!((sizes.iter().min(), sizes.iter().max()), (Some(&1000), Some(&1400)));
    }

    #[test]
    fn updates_write_any_field_and_what_is_read_then_is_right() {
        let mut requests = requests(2);
        let mut record = HASH.record(5, &mut requests);
        let mut written = [false; 10];
        for _ in 0..200 {
            let update = HASH.update(5, &mut requests);
            let [(field, bytes)] = &update[..] else { panic!("one field: {update:?}") };
            written[*field] = true;
            record[*field].1.clone_from(bytes);
            assert_eq!(HASH.check(5, &record), Ok(()));
        }
        assert_eq!(written, [true; 10]);
    }

    #[test]
    fn what_lacks_a_field_or_has_another_is_wrong() {
        let record = HASH.record(5, &mut requests(3));
        let wrong = |found, strange| Err(Wrong::Fields { number: 5, found, expected: 10, strange });
        assert_eq!(HASH.check(5, &record[1..].to_vec()), wrong(9, 0));
        let mut more = record.clone();
        more.push((10, record[0].1.clone()));
        assert_eq!(HASH.check(5, &more), wrong(10, 1));
        let mut twice = record.clone();
        twice[4].0 = 5;
        assert_eq!(HASH.check(5, &twice), wrong(9, 1));
    }

    proptest! {
        #[test]
        fn what_was_written_is_right_and_nothing_else(seed: u64, number: u64, at: prop::sample::Index, flip in 1u8.., value: bool) {
            let shape = if value { VALUE } else { HASH };
            let record = shape.record(number, &mut requests(seed));
            prop_assert_eq!(shape.check(number, &record), Ok(()));
            // Of another record, shorter, with another field's contents, with one byte changed.
            prop_assert!(shape.check(number ^ 1, &record).is_err());
            let mut short = record.clone();
            short[0].1.pop();
            prop_assert!(shape.check(number, &short).is_err());
            let mut changed = record.clone();
            let bytes = &mut changed[0].1;
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            prop_assert!(shape.check(number, &changed).is_err());
            if !value {
                let mut swapped = record;
                swapped[0].1 = swapped[1].1.clone();
                prop_assert!(shape.check(number, &swapped).is_err());
            }
        }
    }
}
