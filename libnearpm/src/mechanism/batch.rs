//! What one commit of a direct pool changes: known at once, and brought home as a whole
//! ([`super::Protocol::bring`]).

use std::ops::Range;

use super::{Context, changed_word};
use crate::blocks::Blocks;
use crate::damage::Class;
use crate::error::Error;
use crate::heap::Form;
use crate::heap::index::Change;
use crate::memory::View;
use crate::pages::Pages;

/// Bytes that are on their way from the view at once.
const PIECE: u64 = 64 << 10;

/// Ranges of a commit whose memory is kept for the next one.
const KEPT: usize = 1 << 14;

/// The new bytes of a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bytes {
    /// Those of the view.
    OfView,
    /// A word of the heap's tables.
    Word(u64),
    /// One whose value is not known before it was read ([`Batch::read_words`]).
    Unread,
}

/// A range that changes.
pub(crate) struct Part {
    /// Offsets in the heap as programs see it.
    pub range: Range<u64>,
    /// The transaction has allocated it: what it held is of no account.
    pub fresh: bool,
    bytes: Bytes,
}

/// What becomes of a word of the heap's tables.
#[derive(Clone, Copy)]
enum Word {
    /// It is another one.
    New(u64),
    /// Some of its bits are set, and others cleared.
    Bits { set: u64, clear: u64, form: Form },
}

impl Word {
    /// With more bits set and cleared.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for bits that no word has.
    fn changed(former: Option<Word>, offset: u64, (set, clear, form): (u64, u64, Form)) -> Result<Word, Error> {
        Ok(match former {
            None => Word::Bits { set, clear, form },
            Some(Word::Bits { set: was_set, clear: was_cleared, .. }) => {
                Word::Bits { set: was_set & !clear | set, clear: was_cleared & !set | clear, form }
            }
            Some(Word::New(word)) => {
                Word::New(form.change(word, set, clear).ok_or_else(|| Class::BitmapWord.at(offset))?)
            }
        })
    }
}

/// What a commit changes.
#[derive(Default)]
pub(crate) struct Batch {
    parts: Vec<Part>,
    /// Ranges that the transaction has allocated.
    fresh: Vec<Range<u64>>,
    /// Parts before they were merged with the rest; kept for their memory.
    unmerged: Vec<Part>,
    /// Words of the heap's tables, by their offsets.
    words: Blocks<(u64, Word)>,
    /// Bytes of the longest part.
    longest: u64,
}

impl Batch {
    pub fn clear(&mut self) {
        for parts in [&mut self.parts, &mut self.unmerged] {
            parts.clear();
            parts.shrink_to(KEPT);
        }
        self.fresh.clear();
        self.fresh.shrink_to(KEPT);
        self.words.clear();
        self.longest = 0;
    }

    /// The transaction has allocated a range.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    #[inline]
    pub fn allocate(&mut self, range: Range<u64>) -> Result<(), Error> {
        self.fresh.try_reserve(1).map_err(no_memory)?;
        self.fresh.push(range);
        Ok(())
    }

    /// Bytes of the view are to go home.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    #[inline]
    pub fn add(&mut self, range: Range<u64>) -> Result<(), Error> {
        if !range.is_empty() {
            self.parts.try_reserve(1).map_err(no_memory)?;
            self.longest = self.longest.max(range.end - range.start);
            self.parts.push(Part { range, fresh: false, bytes: Bytes::OfView });
        }
        Ok(())
    }

    /// The heap's tables are to change.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a change that no word takes.
    pub fn change(&mut self, change: Change) -> Result<(), Error> {
        let offset = change.offset();
        let position = self.words.seek(|&(other, _)| other < offset);
        let former = self.words.get(position).filter(|(other, _)| *other == offset).map(|&(_, word)| word);
        let word = match change {
            Change::Word(_, word) => Word::New(word),
            Change::Set(_, mask, form) => Word::changed(former, offset, (mask, 0, form))?,
            Change::Clear(_, mask, form) => Word::changed(former, offset, (0, mask, form))?,
        };
        match former {
            Some(_) => self.words.set(position, (offset, word)),
            None => self.words.put(position, (offset, word)),
        }
        Ok(())
    }

    /// Reads the words of the heap's tables of which bits change, by `read`. Before, they have no
    /// new bytes.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a word that is damaged; those of `read`.
    pub fn read_words(
        &mut self,
        cx: &mut Context,
        mut read: impl FnMut(&mut Context, u64, &mut [u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let bits = |(_, word)| if let Word::Bits { set, clear, form } = word { Some((set, clear, form)) } else { None };
        let mut changes = self.words.from((0, 0)).filter_map(bits);
        for part in self.parts.iter_mut().filter(|part| part.bytes == Bytes::Unread) {
            let (set, clear, form) = changes.next().expect("each has a change");
            let mut word = [0; 8];
            read(cx, part.range.start, &mut word)?;
            let word = changed_word(cx, part.range.start, u64::from_le_bytes(word), (set, clear, form))?;
            part.bytes = Bytes::Word(word);
        }
        Ok(())
    }

    /// Nothing more is added: the parts become rising and disjoint, and each is fresh or not.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub fn finish(&mut self) -> Result<(), Error> {
        if !self.parts.is_sorted_by(|one, next| one.range.end <= next.range.start) {
            self.parts.sort_unstable_by_key(|part| part.range.start);
            // Programs may name bytes twice.
            let mut end = 0;
            self.parts.retain_mut(|part| {
                part.range.start = part.range.start.max(end);
                end = end.max(part.range.end);
                !part.range.is_empty()
            });
        }
        if self.words.is_empty() && self.fresh.is_empty() { Ok(()) } else { self.merge() }
    }

    /// Puts the words among the other parts, and cuts these where they begin or cease to be fresh.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    fn merge(&mut self) -> Result<(), Error> {
        self.fresh.sort_unstable_by_key(|range| range.start);
        self.fresh.dedup_by(|next, last| {
            let touches = next.start == last.end;
            last.end = if touches { next.end } else { last.end };
            touches
        });
        std::mem::swap(&mut self.parts, &mut self.unmerged);
        let Batch { parts, unmerged, .. } = self;
        parts.clear();
        parts.try_reserve(unmerged.len() + 2 * self.fresh.len() + self.words.len()).map_err(no_memory)?;
        let word = |(offset, word)| {
            let bytes = if let Word::New(word) = word { Bytes::Word(word) } else { Bytes::Unread };
            Part { range: offset..offset + 8, fresh: false, bytes }
        };
        let mut words = self.words.from((0, 0)).map(word).peekable();
        let mut fresh = self.fresh.iter().peekable();
        for part in unmerged {
            while let Some(word) = words.next_if(|word| word.range.start < part.range.start) {
                parts.push(word);
            }
            let mut at = part.range.start;
            while at < part.range.end {
                while fresh.next_if(|range| range.end <= at).is_some() {}
                let (end, is_fresh) = match fresh.peek() {
                    Some(range) if range.start <= at => (range.end, true),
                    Some(range) => (range.start, false),
                    None => (u64::MAX, false),
                };
                let end = end.min(part.range.end);
                parts.push(Part { range: at..end, fresh: is_fresh, bytes: Bytes::OfView });
                at = end;
            }
        }
        parts.extend(words);
        Ok(())
    }

    /// The ranges that change.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Gives a buffer the memory that [`Part::each_piece`] needs.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    #[inline]
    pub fn reserve(&self, buffer: &mut Vec<u8>) -> Result<(), Error> {
        buffer.clear();
        buffer.try_reserve(self.longest.clamp(8, PIECE) as usize).map_err(no_memory)
    }
}

impl Part {
    /// Where it lies: each place with the offsets of what is there.
    #[inline]
    pub fn places<'p>(&self, pages: &'p Pages) -> impl Iterator<Item = (u64, Range<u64>)> + use<'p> {
        let Range { start, end } = self.range;
        pages
            .pieces(start, end - start)
            .map(move |(place, part)| (place, start + part.start as u64..start + part.end as u64))
    }

    /// Whether it is a word of the heap's tables.
    pub fn is_word(&self) -> bool {
        self.bytes != Bytes::OfView
    }

    /// Appends the new bytes of a range inside of the part.
    ///
    /// # Panics
    /// If it is a word that was not read.
    #[inline]
    pub fn append(&self, view: &View, range: &Range<u64>, bytes: &mut Vec<u8>) {
        match self.bytes {
            Bytes::OfView => view.append(range.start, (range.end - range.start) as usize, bytes),
            Bytes::Word(word) => {
                let inside = |at: u64| (at - self.range.start) as usize;
                bytes.extend_from_slice(&word.to_le_bytes()[inside(range.start)..inside(range.end)]);
            }
            Bytes::Unread => panic!("a word is read before it is brought home"),
        }
    }

    /// Hands on the new bytes of a range inside of the part, so many at a time as fit into
    /// `buffer` ([`Batch::reserve`]), with their offsets.
    ///
    /// # Errors
    /// Those of `each`, with the first of which it ends.
    #[inline]
    pub fn each_piece<E>(
        &self,
        view: &View,
        range: Range<u64>,
        buffer: &mut Vec<u8>,
        mut each: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min(at + PIECE);
            buffer.clear();
            self.append(view, &(at..end), buffer);
            each(at, buffer)?;
            at = end;
        }
        Ok(())
    }
}

fn no_memory(error: std::collections::TryReserveError) -> Error {
    Error::no_memory("what a commit writes")(error)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    const BYTES: u64 = 400;
    /// Words of the tables lie among the ranges, and none in one.
    const TABLE: Range<u64> = 160..240;

    fn outside() -> impl Strategy<Value = Range<u64>> {
        prop_oneof![0..TABLE.start - 50, TABLE.end..BYTES - 50]
            .prop_flat_map(|start| (0u64..50).prop_map(move |bytes| start..start + bytes))
    }

    fn covered(ranges: &[Range<u64>], at: u64) -> bool {
        ranges.iter().any(|range| range.contains(&at))
    }

    proptest! {
        /// Whatever ranges and words are added in whatever order: every byte once, rising, and each
        /// fresh or not.
        #[test]
        fn parts_are_what_was_added(
            ranges in prop::collection::vec(outside(), 0..12),
            allocated in prop::collection::vec(0u64..8, 0..4),
            words in prop::collection::btree_set(0u64..10, 0..5),
        ) {
            let mut batch = Batch::default();
            // Objects lie side by side, and are allocated once.
            let fresh: std::collections::BTreeSet<u64> = allocated.iter().copied().collect();
            let fresh: Vec<Range<u64>> = fresh.into_iter().map(|n| TABLE.end + 20 * n..TABLE.end + 20 * n + 20).collect();
            fresh.iter().rev().for_each(|range| batch.allocate(range.clone()).unwrap());
            ranges.iter().for_each(|range| batch.add(range.clone()).unwrap());
            let words: Vec<u64> = words.into_iter().map(|n| TABLE.start + 8 * n).collect();
            words.iter().rev().for_each(|&offset| batch.change(Change::Word(offset, offset)).unwrap());
            batch.finish().unwrap();
            let end = Cell::new(0);
            for part in batch.parts() {
                prop_assert!(end.get() <= part.range.start && !part.range.is_empty());
                end.set(part.range.end);
            }
            for at in 0..BYTES {
                let part = batch.parts().iter().find(|part| part.range.contains(&at));
                let is_word = covered(&words.iter().map(|&word| word..word + 8).collect::<Vec<_>>(), at);
                prop_assert_eq!(part.is_some(), is_word || covered(&ranges, at), "at {}", at);
                if let Some(part) = part {
                    prop_assert_eq!(part.is_word(), is_word);
                    prop_assert_eq!(part.fresh, !is_word && covered(&fresh, at), "at {}", at);
                }
            }
        }

        /// Changes of one word come to the same as one after the other.
        #[test]
        fn changes_of_a_word_add_up(
            changes in prop::collection::vec((0u8..3, 0u64..16), 1..8), was in 0u64..16, sealed: bool,
        ) {
            let form = if sealed { Form::Sealed } else { Form::Plain };
            let mut batch = Batch::default();
            let mut model = form.encode(was);
            for (kind, bits) in changes {
                let change = match kind {
                    0 => Change::Word(8, form.encode(bits)),
                    1 => Change::Set(8, bits, form),
                    _ => Change::Clear(8, bits, form),
                };
                model = match change {
                    Change::Word(_, word) => word,
                    Change::Set(..) => form.change(model, bits, 0).unwrap(),
                    Change::Clear(..) => form.change(model, 0, bits).unwrap(),
                };
                batch.change(change).unwrap();
            }
            let words: Vec<(u64, Word)> = batch.words.from((0, 0)).collect();
            prop_assert_eq!(words.len(), 1);
            let word = match words[0].1 {
                Word::New(word) => word,
                Word::Bits { set, clear, form } => form.change(form.encode(was), set, clear).unwrap(),
            };
            prop_assert_eq!(word, model);
        }
    }
}
