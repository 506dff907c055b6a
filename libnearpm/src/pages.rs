//! Where logical pages are.
//!
//! Invariant: every logical page has a page of its own, and the pages that none has are in `free`.

use std::ops::Range;

use nearpm_interface::geometry::MAX_DEVICES;
use nearpm_interface::media::{PAGE_BYTES, PoolHead};
use nearpm_interface::seal;

use crate::damage::Class;
use crate::error::Error;
use crate::memory::Medium;
use crate::part::Part;
use crate::stripes::Stripes;

/// Most pages that are on their way home at once.
pub(crate) const HOME_AT_A_TIME: usize = 256;

/// A logical page, and what is wrong with its word.
pub(crate) type Fault = (u64, Class);

/// The page table, as it is in memory. Pages are numbered in the whole pool; each stays on its
/// member.
pub(crate) struct Pages {
    head: PoolHead,
    stripes: Stripes,
    /// Page of each logical page, from the first page of the pool.
    table: Vec<u64>,
    /// Pages without a logical page, by member; the last one is taken first.
    free: Vec<Vec<u64>>,
    /// Logical pages that are not at home: where there is none, offsets need no translation.
    away: u64,
}

impl Pages {
    /// Reads the page table of an ordinary pool.
    pub fn load(medium: &Medium, head: PoolHead) -> Result<Pages, Error> {
        if Pages::are_at_home(medium, &head) {
            let stripes = Stripes::of(&head);
            return Ok(Pages { free: vec![Vec::new(); stripes.members()], head, stripes, table: Vec::new(), away: 0 });
        }
        let (table, faults) = Pages::read(medium, &head)?;
        if let Some(&(logical, class)) = faults.first() {
            return Err(class.at(head.table() + 8 * logical));
        }
        Ok(Pages::of(Stripes::of(&head), table))
    }

    /// Whether all pages are at home and cannot move, as in a file that no shadow paging uses: then
    /// there is no table in memory, which would be as large as that of the pool.
    pub fn are_at_home(medium: &Medium, head: &PoolHead) -> bool {
        let table = head.table()..head.table() + head.pages * 8;
        head.spare == 0 && medium.backing().is_file() && medium.words(table).next().is_none()
    }

    /// Reads the page tables of the members of a striped pool.
    pub fn load_striped(stripes: Stripes, parts: &[Part<'_>]) -> Result<Pages, Error> {
        let mut own = Vec::new();
        for part in parts {
            let pages = Pages::load(part.medium, *part.head).map_err(|error| part.named(error))?;
            own.push((0..part.head.pages).map(|logical| pages.page(logical)).collect::<Vec<_>>());
        }
        let (whole, member) = (*stripes.whole(), parts[0].head);
        let table = (0..whole.pages).map(|logical| {
            let home = stripes.locate(whole.heap() + logical * PAGE_BYTES, PAGE_BYTES);
            let page = own[home.member][((home.offset - member.heap()) / PAGE_BYTES) as usize];
            let place = stripes.whole_offset(home.member, member.heap() + page * PAGE_BYTES);
            (place - whole.heap()) / PAGE_BYTES
        });
        Ok(Pages::of(stripes, table.collect()))
    }

    fn of(stripes: Stripes, table: Vec<u64>) -> Pages {
        let head = *stripes.whole();
        let all = head.pages + head.spare;
        let mut used = vec![false; all as usize];
        table.iter().for_each(|&page| used[page as usize] = true);
        let mut free = vec![Vec::new(); stripes.members()];
        for page in (0..all).rev().filter(|&p| !used[p as usize]) {
            free[stripes.locate(head.heap() + page * PAGE_BYTES, PAGE_BYTES).member].push(page);
        }
        let away = (0..).zip(&table).filter(|&(logical, &page)| logical != page).count() as u64;
        Pages { head, stripes, table, free, away }
    }

    /// The page of each logical page, and what is wrong with which of them; such a one counts as at
    /// home.
    pub fn read(medium: &Medium, head: &PoolHead) -> Result<(Vec<u64>, Vec<Fault>), Error> {
        let all = head.pages + head.spare;
        let mut used = vec![false; all as usize];
        let (mut table, mut faults) = (Vec::with_capacity(head.pages as usize), Vec::new());
        // A command may have written here behind the cache of a process that is gone.
        medium.invalidate(head.table(), head.pages * 8);
        medium.fence()?;
        let words = medium.load_vec(head.table(), head.pages * 8);
        for (logical, word) in words.chunks_exact(8).enumerate() {
            let (logical, word) = (logical as u64, u64::from_le_bytes(word.try_into().expect("eight bytes")));
            let page = if word == 0 { Some(logical) } else { seal::open_word(word) };
            match page.filter(|&p| p < all) {
                Some(page) => {
                    if std::mem::replace(&mut used[page as usize], true) {
                        faults.push((logical, Class::TableTwice));
                    }
                    table.push(page);
                }
                None => {
                    faults.push((logical, Class::TableWord));
                    table.push(logical);
                }
            }
        }
        Ok((table, faults))
    }

    /// Takes the pages for the next moves that bring logical pages home, at most so many: each with
    /// the page that it takes. Where the own page of each is another one's, one of them goes to any
    /// page. Nothing is to be moved when all are at home.
    pub fn take_towards_home(&mut self, most: usize) -> Vec<(u64, u64)> {
        if self.is_identity() {
            return Vec::new();
        }
        let mut is_free = vec![false; (self.head.pages + self.head.spare) as usize];
        self.free.iter().flatten().for_each(|&page| is_free[page as usize] = true);
        // Not behind the last one that is away: few of a large pool are, mostly at its begin.
        let away = || {
            let all = (0..).zip(&self.table).filter(|&(logical, &page)| page != logical);
            all.map(|(logical, _)| logical).take(self.away as usize)
        };
        let own = away().filter(|&own| is_free[own as usize]).map(|own| (own, own));
        let mut moves: Vec<(u64, u64)> = own.take(most).collect();
        if moves.is_empty() {
            // They have changed places with each other, so that none of them is on a page without
            // one.
            let any = |logical| self.free[self.member(logical)].last().map(|&page| (logical, page));
            moves.extend(away().next().and_then(any));
        }
        moves.iter().for_each(|&(_, page)| is_free[page as usize] = false);
        self.free.iter_mut().for_each(|free| free.retain(|&page| is_free[page as usize]));
        moves
    }

    /// Whether every logical page is at home.
    #[inline]
    pub fn is_identity(&self) -> bool {
        self.away == 0
    }

    /// How the pool is striped.
    pub fn stripes(&self) -> Stripes {
        self.stripes
    }

    /// Offset of a page.
    #[inline]
    pub fn offset(&self, page: u64) -> u64 {
        self.head.heap() + page * PAGE_BYTES
    }

    /// Logical page that holds an offset of the heap.
    #[inline]
    pub fn logical(&self, offset: u64) -> u64 {
        (offset - self.head.heap()) / PAGE_BYTES
    }

    /// Page of a logical page.
    #[inline]
    pub fn page(&self, logical: u64) -> u64 {
        if self.is_identity() { logical } else { self.table[logical as usize] }
    }

    /// Where an offset of the heap really is, and how many of `length` bytes are there in one
    /// piece.
    #[inline]
    pub fn locate(&self, offset: u64, length: u64) -> (u64, u64) {
        if self.is_identity() {
            return (offset, length);
        }
        let inside = (offset - self.head.heap()) % PAGE_BYTES;
        let page = self.page(self.logical(offset));
        (self.offset(page) + inside, length.min(PAGE_BYTES - inside))
    }

    /// The pieces of a range of the heap: each with its place and its part of the range.
    #[inline]
    pub fn pieces(&self, offset: u64, length: u64) -> impl Iterator<Item = (u64, Range<usize>)> + '_ {
        let mut done = 0;
        std::iter::from_fn(move || {
            (done < length).then(|| {
                let (place, bytes) = self.locate(offset + done, length - done);
                let part = done as usize..(done + bytes) as usize;
                done += bytes;
                (place, part)
            })
        })
    }

    /// The member on which a page lies.
    fn member(&self, page: u64) -> usize {
        self.stripes.locate(self.offset(page), PAGE_BYTES).member
    }

    /// Refuses to move so many logical pages that a member has too few pages without one.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    pub fn check_room(&self, logical: &[u64]) -> Result<(), Error> {
        let mut needed = [0; MAX_DEVICES];
        logical.iter().for_each(|&logical| needed[self.member(logical)] += 1);
        for (free, needed) in self.free.iter().zip(needed) {
            if needed > free.len() {
                let (what, remedy) = ("the spare pages", "Options::spare_pages");
                let (needed, available) = (needed as u64 * PAGE_BYTES, free.len() as u64 * PAGE_BYTES);
                return Err(Error::TooLarge { what, needed, available, remedy });
            }
        }
        Ok(())
    }

    /// Whether some member has less than half of its spare pages left.
    pub fn half_taken(&self) -> bool {
        let spare = self.head.spare as usize / self.free.len();
        self.free.iter().any(|free| free.len() * 2 < spare)
    }

    /// Takes a free page to which a logical page may move.
    pub fn take(&mut self, logical: u64) -> Option<u64> {
        let member = self.member(logical);
        self.free[member].pop()
    }

    /// Gives a page back.
    pub fn give(&mut self, page: u64) {
        let member = self.member(page);
        self.free[member].push(page);
    }

    /// Moves a logical page, here in memory only, and returns its former page.
    pub fn set(&mut self, logical: u64, page: u64) -> u64 {
        let former = std::mem::replace(&mut self.table[logical as usize], page);
        self.away += u64::from(page != logical);
        self.away -= u64::from(former != logical);
        former
    }

    /// Offset in the pool of the table's word for a logical page, and the word: the number of the
    /// page on its member, or 0 for one that is at home, so that a table in which none is away is
    /// blank.
    pub fn word(&self, logical: u64) -> (u64, u64) {
        if self.page(logical) == logical {
            return (self.head.table() + 8 * logical, 0);
        }
        let place = self.stripes.locate(self.offset(self.page(logical)), PAGE_BYTES).offset;
        let page = (place - self.stripes.member().heap()) / PAGE_BYTES;
        (self.head.table() + 8 * logical, seal::seal_word(page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::pool::format;

    #[test]
    fn offsets_need_no_translation_where_all_pages_came_home() {
        let head = format::layout(&Options::new().lanes(1).spare_pages(4), 1 << 20).expect("a pool has so many bytes");
        let mut pages = Pages::of(Stripes::of(&head), (0..head.pages).collect());
        let range = (head.heap() + PAGE_BYTES, 3 * PAGE_BYTES);
        assert!(pages.is_identity() && pages.locate(range.0, range.1) == range);
        let page = pages.take(2).expect("there are spare pages");
        assert_eq!(pages.set(2, page), 2);
        pages.give(2);
        assert!(!pages.is_identity());
        assert_eq!(pages.locate(range.0 + PAGE_BYTES, PAGE_BYTES), (pages.offset(page), PAGE_BYTES));
        assert_eq!(pages.locate(range.0, range.1).1, PAGE_BYTES);
        assert_eq!(pages.take_towards_home(8), [(2, 2)]);
        assert_eq!(pages.set(2, 2), page);
        assert!(pages.is_identity() && pages.locate(range.0, range.1) == range);
        assert!(pages.take_towards_home(8).is_empty());
    }

    /// Pages that have changed places, and one whose own page is free.
    #[test]
    fn every_page_comes_home_and_takes_none_that_another_has() {
        let head = format::layout(&Options::new().lanes(1).spare_pages(4), 1 << 20).expect("a pool has so many bytes");
        let [one, other, last] = [1, 3, head.pages - 1];
        let mut table: Vec<u64> = (0..head.pages).collect();
        table.swap(one as usize, other as usize);
        table[last as usize] = head.pages;
        let mut pages = Pages::of(Stripes::of(&head), table);
        let spare = pages.free.concat();
        let moved = |pages: &mut Pages, moves: &[(u64, u64)]| {
            moves.iter().for_each(|&(logical, page)| {
                let former = pages.set(logical, page);
                pages.give(former);
            });
        };
        assert_eq!(pages.take_towards_home(8), [(last, last)]);
        assert_eq!(pages.free.concat(), spare.iter().copied().filter(|&page| page != last).collect::<Vec<_>>());
        moved(&mut pages, &[(last, last)]);
        // Neither of the two has its own: one of them makes room first.
        let [(logical, page)] = pages.take_towards_home(8)[..] else { panic!("one page goes") };
        assert!((logical, page >= head.pages) == (one, true) && !pages.free.concat().contains(&page));
        moved(&mut pages, &[(logical, page)]);
        assert_eq!(pages.take_towards_home(8), [(other, other)]);
        moved(&mut pages, &[(other, other)]);
        assert_eq!(pages.take_towards_home(8), [(one, one)]);
        moved(&mut pages, &[(one, one)]);
        assert!(pages.is_identity());
        assert_eq!(pages.free.concat().len(), spare.len());
    }
}
