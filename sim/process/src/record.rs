//! Records of the journal.

use nearpm_interface::geometry::LINE;
use nearpm_sim::core::Access;

/// Bytes of a record in the file.
pub const RECORD_BYTES: usize = 96;

const CRC: std::ops::Range<usize> = 0..4;
const KIND: usize = 4;
const GENERATION: std::ops::Range<usize> = 8..16;
const ADDRESS: std::ops::Range<usize> = 16..24;
const VALUE: std::ops::Range<usize> = 24..32;
const DATA: std::ops::Range<usize> = 32..RECORD_BYTES;

/// What the journal holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// An access of the host that changes something: the card has it from now on.
    Access(Access),
    /// A line that a command has written, in mapped mode. It counts with the seal behind it.
    Line {
        /// Device address.
        address: u64,
        /// All of the line.
        data: [u8; LINE],
    },
    /// The lines before it are complete.
    Seal,
}

impl Record {
    /// The bytes of the record in a generation of the file. Reads are no records.
    ///
    /// # Panics
    /// On a read.
    pub fn encode(&self, generation: u64) -> [u8; RECORD_BYTES] {
        let none = [0; LINE];
        let (kind, address, value, data) = match self {
            Record::Access(Access::RegisterWrite { offset, value }) => {
                (1, u64::from(*offset), u64::from(*value), &none)
            }
            Record::Access(Access::CommandWrite { offset, data, strobes }) => (2, *offset, *strobes, data),
            Record::Access(Access::PmWrite { address, data, strobes }) => (3, *address, *strobes, data),
            Record::Line { address, data } => (4, *address, 0, data),
            Record::Seal => (5, 0, 0, &none),
            Record::Access(read) => panic!("{read:?} changes nothing"),
        };
        let mut bytes = [0; RECORD_BYTES];
        bytes[KIND] = kind;
        bytes[GENERATION].copy_from_slice(&generation.to_le_bytes());
        bytes[ADDRESS].copy_from_slice(&address.to_le_bytes());
        bytes[VALUE].copy_from_slice(&value.to_le_bytes());
        bytes[DATA].copy_from_slice(data);
        let crc = crc32c::crc32c(&bytes[CRC.end..]);
        bytes[CRC].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a record; `None` for what is torn or of another generation, as behind the end of the
    /// journal.
    pub fn decode(bytes: &[u8; RECORD_BYTES], generation: u64) -> Option<Record> {
        let word = |at: std::ops::Range<usize>| u64::from_le_bytes(bytes[at].try_into().expect("eight bytes"));
        if crc32c::crc32c(&bytes[CRC.end..]).to_le_bytes() != bytes[CRC] || word(GENERATION) != generation {
            return None;
        }
        let (address, value) = (word(ADDRESS), word(VALUE));
        let data: [u8; LINE] = bytes[DATA].try_into().expect("a line");
        Some(match bytes[KIND] {
            1 => Record::Access(Access::RegisterWrite { offset: address as u32, value: value as u32 }),
            2 => Record::Access(Access::CommandWrite { offset: address, data, strobes: value }),
            3 => Record::Access(Access::PmWrite { address, data, strobes: value }),
            4 => Record::Line { address, data },
            5 => Record::Seal,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_its_encoding_and_no_torn_or_foreign_one_counts() {
        let data = std::array::from_fn(|i| i as u8);
        let records = [
            Record::Access(Access::RegisterWrite { offset: 0x24, value: 4 }),
            Record::Access(Access::CommandWrite { offset: 0x1040, data, strobes: 0xff00 }),
            Record::Access(Access::PmWrite { address: 0x10_0040, data, strobes: u64::MAX }),
            Record::Line { address: 0x10_0000, data },
            Record::Seal,
        ];
        for record in records {
            let bytes = record.encode(7);
            assert_eq!(Record::decode(&bytes, 7), Some(record.clone()));
            assert_eq!(Record::decode(&bytes, 8), None, "{record:?}");
            for at in 0..RECORD_BYTES {
                let mut bad = bytes;
                bad[at] ^= 0x10;
                assert_eq!(Record::decode(&bad, 7), None, "{record:?}, byte {at}");
            }
        }
        assert_eq!(Record::decode(&[0; RECORD_BYTES], 0), None);
    }
}
