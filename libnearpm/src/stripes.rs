//! Where the bytes of a striped pool lie: from offsets in the whole to offsets in its members, and
//! back.
//!
//! The whole has the shape of an ordinary pool with the pages of all members. Its heap is cut into
//! stripes, which the members take in turn, and so is its page table, the words of a stripe lying
//! with the stripe; the spare pages of a member follow those of the one before. What else a pool
//! has, head and rings, each member has for itself, at the same offsets in each.

use std::ops::Range;

use nearpm_interface::geometry::{LINE_U64, MAX_DEVICES};
use nearpm_interface::media::{PAGE_BYTES, PoolHead};

/// Members of a pool, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mask(u8);

const _: () = assert!(MAX_DEVICES <= u8::BITS as usize);

impl Mask {
    pub fn insert(&mut self, member: usize) {
        self.0 |= 1 << member;
    }
    pub fn has(self, member: usize) -> bool {
        self.0 >> member & 1 == 1
    }
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }
    pub fn bits(self) -> u32 {
        self.0.into()
    }
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Those that are in one of both.
    pub fn union(self, other: Mask) -> Mask {
        Mask(self.0 | other.0)
    }
    /// Those that the other one has not.
    pub fn without(self, other: Mask) -> Mask {
        Mask(self.0 & !other.0)
    }
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..MAX_DEVICES).filter(move |&member| self.has(member))
    }
}

impl FromIterator<usize> for Mask {
    fn from_iter<I: IntoIterator<Item = usize>>(members: I) -> Mask {
        let mut mask = Mask::default();
        members.into_iter().for_each(|member| mask.insert(member));
        mask
    }
}

/// A part of a range that lies on one member in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub member: usize,
    /// Offset in the member.
    pub offset: u64,
    pub bytes: u64,
}

/// The division of a pool; an ordinary one has one member, in which everything is where it is in
/// the whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stripes {
    members: u64,
    /// Bytes of a stripe of the heap, and of the words of its pages.
    stripe: u64,
    words: u64,
    /// Shape of the whole, and of each member.
    whole: PoolHead,
    member: PoolHead,
}

impl Stripes {
    /// The division of which `head` is the first member, or the only one.
    pub fn of(head: &PoolHead) -> Stripes {
        let members = u64::from(head.members.max(1));
        let stripe = u64::from(head.stripe);
        let (bytes, pages, spare) = (members * head.bytes, members * head.pages, members * head.spare);
        Stripes {
            members,
            stripe,
            words: stripe / PAGE_BYTES * 8,
            whole: PoolHead { bytes, pages, spare, ..*head },
            member: *head,
        }
    }

    /// Shape of the whole.
    pub fn whole(&self) -> &PoolHead {
        &self.whole
    }

    /// Shape of each member.
    pub fn member(&self) -> &PoolHead {
        &self.member
    }

    /// Number of members.
    pub fn members(&self) -> usize {
        self.members as usize
    }

    /// Where a range of the whole begins, and how much of it lies there in one piece.
    ///
    /// # Panics
    /// If it is in the head or the rings of a striped pool, which the whole has not.
    #[inline]
    pub fn locate(&self, offset: u64, bytes: u64) -> Piece {
        if self.members == 1 {
            return Piece { member: 0, offset, bytes };
        }
        let (whole, member) = (&self.whole, &self.member);
        let (number, inside, width, start) = if offset >= whole.heap_end() {
            let width = member.spare * PAGE_BYTES;
            let at = offset - whole.heap_end();
            (at / width, at % width, width, member.heap_end())
        } else {
            let (at, width, start) = if offset >= whole.heap() {
                (offset - whole.heap(), self.stripe, member.heap())
            } else {
                assert!(offset >= whole.table(), "a striped pool as a whole has neither head nor rings");
                (offset - whole.table(), self.words, member.table())
            };
            let stripe = at / width;
            (stripe % self.members, at % width, width, start + stripe / self.members * width)
        };
        Piece { member: number as usize, offset: start + inside, bytes: bytes.min(width - inside) }
    }

    /// The pieces of a range of the whole, each with its part of the range.
    #[inline]
    pub fn pieces(&self, offset: u64, bytes: u64) -> impl Iterator<Item = (Piece, Range<usize>)> + '_ {
        let mut done = 0;
        std::iter::from_fn(move || {
            (done < bytes).then(|| {
                let piece = self.locate(offset + done, bytes - done);
                let part = done as usize..(done + piece.bytes) as usize;
                done += piece.bytes;
                (piece, part)
            })
        })
    }

    /// The offset in the whole of an offset in a member; as it is where the whole has not got it.
    pub fn whole_offset(&self, member: usize, offset: u64) -> u64 {
        if self.members == 1 || offset < self.member.table() {
            return offset;
        }
        let number = member as u64;
        if offset >= self.member.heap_end() {
            return self.whole.heap_end() + number * self.member.spare * PAGE_BYTES + offset - self.member.heap_end();
        }
        let (at, width, start) = if offset >= self.member.heap() {
            (offset - self.member.heap(), self.stripe, self.whole.heap())
        } else {
            (offset - self.member.table(), self.words, self.whole.table())
        };
        start + (at / width * self.members + number) * width + at % width
    }
}

/// Bytes of a page's word table that a stripe has: whole lines, so that no line belongs to two
/// members.
const _: () = assert!((nearpm_interface::media::MIN_STRIPE_BYTES as u64 / PAGE_BYTES * 8).is_multiple_of(LINE_U64));

#[cfg(test)]
mod tests {
    use nearpm_interface::media::MIN_STRIPE_BYTES;
    use proptest::prelude::*;

    use super::*;

    fn head(members: u8, rounds: u64) -> PoolHead {
        let pages = rounds * u64::from(MIN_STRIPE_BYTES) / PAGE_BYTES;
        PoolHead {
            ring_bytes: 16384,
            lanes: 3,
            pages,
            spare: 7,
            members,
            stripe: MIN_STRIPE_BYTES,
            ..PoolHead::default()
        }
    }

    #[test]
    fn an_ordinary_pool_is_where_it_is() {
        let stripes = Stripes::of(&PoolHead { ring_bytes: 16384, lanes: 1, pages: 100, ..PoolHead::default() });
        assert_eq!(stripes.locate(77, 1 << 30), Piece { member: 0, offset: 77, bytes: 1 << 30 });
        assert_eq!(stripes.whole_offset(0, 77), 77);
    }

    #[test]
    fn a_page_has_its_word_where_it_lies_itself() {
        let head = head(4, 3);
        let stripes = Stripes::of(&head);
        for page in 0..stripes.whole().pages {
            let word = stripes.locate(stripes.whole().table() + 8 * page, 8);
            let place = stripes.locate(stripes.whole().heap() + PAGE_BYTES * page, PAGE_BYTES);
            assert_eq!((word.member, word.bytes, place.bytes), (place.member, 8, PAGE_BYTES));
            assert_eq!((word.offset - head.table()) / 8, (place.offset - head.heap()) / PAGE_BYTES);
        }
    }

    proptest! {
        #[test]
        fn every_byte_has_one_place_and_comes_back(
            members in 2u8..=8, rounds in 1u64..4, at in any::<u64>(), bytes in 1u64..9_000_000,
        ) {
            let head = head(members, rounds);
            let stripes = Stripes::of(&head);
            let (start, end) = (stripes.whole().heap(), stripes.whole().end());
            let offset = start + at % (end - start);
            let bytes = bytes.min(end - offset);
            let mut next = 0;
            for (piece, part) in stripes.pieces(offset, bytes) {
                prop_assert_eq!(part.start, next);
                next = part.end;
                prop_assert!(piece.member < members.into());
                prop_assert!(piece.offset >= head.heap() && piece.offset + piece.bytes <= head.end());
                for probe in [0, piece.bytes - 1] {
                    let back = stripes.whole_offset(piece.member, piece.offset + probe);
                    prop_assert_eq!(back, offset + part.start as u64 + probe);
                }
            }
            prop_assert_eq!(next as u64, bytes);
        }
    }
}
