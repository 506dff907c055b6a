//! Records that say of bytes that they lie at home already: they count if the bytes match their
//! checksum.
//!
//! A record that is known to have been durable counts without that: later records may have changed
//! what lay there. Which ones these are is said by the pool's words and by the records themselves.

use nearpm_interface::media::PoolHead;
use nearpm_interface::record::{Operation, POOL_CONFIRMED};
use nearpm_interface::seal;

use super::Recovery;
use super::found::{Found, is_later};
use crate::damage::Class;
use crate::error::Error;
use crate::memory::Medium;
use crate::planted::{Fault, planted};

/// Bytes that are looked at together.
const PIECE: u64 = 64 << 10;

/// What decides whether records count.
pub(super) struct AtHome<'m> {
    medium: &'m Medium,
    head: &'m PoolHead,
    /// Records up to this number were durable.
    durable: u64,
    /// Bytes that may still be compared. Those of records that are not known to have been durable
    /// lie apart from each other: together they are not more than the pool has, and a hostile log
    /// takes no longer.
    left: u64,
}

impl<'m> AtHome<'m> {
    /// Of records that were durable up to a number by what the pool's words say, and as far as some
    /// of them say.
    pub fn new(medium: &'m Medium, head: &'m PoolHead, durable: u64, lists: &[Vec<Found>]) -> AtHome<'m> {
        let said = lists.iter().flatten().flat_map(Found::operations).filter_map(|operation| match operation {
            Operation::Through(number) => Some(number),
            _ => None,
        });
        let durable = if planted(Fault::IgnoresWhatIsKnown) { 0 } else { said.fold(durable, u64::max) };
        AtHome { medium, head, durable, left: medium.bytes() }
    }

    /// Takes away those that do not count, and what follows them in their segment, from the medium
    /// as well: what is replayed may change bytes that others speak of, which a recovery after a
    /// further cut must not compare again. `newest` is the highest number of all.
    pub fn sift(mut self, lists: &mut [Vec<Found>], newest: u64, report: &mut Recovery) -> Result<(), Error> {
        let (mut compared, mut blanked) = (false, false);
        for list in &mut *lists {
            let mut torn = None;
            let durable = self.durable;
            for (at, record) in list.iter().enumerate().filter(|(_, record)| record.head.sequence > durable) {
                compared |= record.operations().any(|operation| matches!(operation, Operation::Home(..)));
                if !self.is_whole(record)? {
                    torn = Some(at);
                    break;
                }
            }
            let Some(torn) = torn else { continue };
            let number = list[torn].head.sequence;
            if list[torn + 1..].iter().any(|later| is_later(&later.head, number)) {
                return Err(Class::RecordHome.at(list[torn].offset));
            }
            if !planted(Fault::LeavesTornRecords) {
                // A record without length, which ends the segment.
                self.medium.put_word(list[torn].offset, 0);
                blanked = true;
            }
            report.torn += (list.len() - torn) as u64;
            list.truncate(torn);
        }
        if !compared {
            return Ok(());
        }
        if blanked {
            self.medium.drain()?;
        }
        self.medium.put_word(POOL_CONFIRMED, seal::seal_word(newest));
        self.medium.drain()
    }

    /// Whether the bytes lie at home that a record speaks of.
    fn is_whole(&mut self, record: &Found) -> Result<bool, Error> {
        for operation in record.operations() {
            let Operation::Home(offset, bytes, sum) = operation else { continue };
            let out = || Class::RecordRange.at(record.offset);
            if offset < self.head.heap() || offset + u64::from(bytes) > self.head.last() {
                return Err(out());
            }
            self.left = self.left.checked_sub(bytes.into()).ok_or_else(out)?;
            if self.sum(offset, bytes.into()) != sum && !planted(Fault::SkipsHomeSums) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn sum(&self, offset: u64, bytes: u64) -> u32 {
        let (mut sum, mut piece) = (0, vec![0; PIECE.min(bytes) as usize]);
        for at in (offset..offset + bytes).step_by(PIECE as usize) {
            let piece = &mut piece[..PIECE.min(offset + bytes - at) as usize];
            self.medium.load(at, piece);
            sum = crc32c::crc32c_append(sum, piece);
        }
        sum
    }
}
