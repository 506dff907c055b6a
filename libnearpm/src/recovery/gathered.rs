//! Stores that are gathered by pages before they go home, where each is a call: bytes that lie side
//! by side become one call, and bytes that change often go home once.
//!
//! What was stored is known byte by byte. Other threads may store to the bytes between, which are
//! left alone.

use std::collections::HashMap;

use nearpm_interface::media::PAGE_BYTES;

use crate::memory::Medium;

const PAGE: usize = PAGE_BYTES as usize;
/// Pages that are gathered before they go home.
const MOST_PAGES: usize = 2048;
/// Bytes of one store at most.
const MOST_BYTES: usize = 256 << 10;

/// A page, and which of its bytes are to be stored.
struct Page {
    number: u64,
    bytes: [u8; PAGE],
    /// A bit for each byte.
    stored: [u64; PAGE / 64],
}

impl Page {
    fn new(number: u64) -> Page {
        Page { number, bytes: [0; PAGE], stored: [0; PAGE / 64] }
    }

    /// Makes it a page of which nothing is stored. Its bytes stay, and mean nothing.
    fn become_blank(&mut self, number: u64) {
        (self.number, self.stored) = (number, [0; PAGE / 64]);
    }

    fn store(&mut self, start: usize, data: &[u8]) {
        let end = start + data.len();
        self.bytes[start..end].copy_from_slice(data);
        let mut at = start;
        while at < end {
            let (word, bit) = (at / 64, at % 64);
            let count = (64 - bit).min(end - at);
            self.stored[word] |= (u64::MAX >> (64 - count)) << bit;
            at += count;
        }
    }

    fn is_stored(&self, at: usize) -> bool {
        self.stored[at / 64] >> (at % 64) & 1 == 1
    }

    /// The first byte from one on that is stored, or is not; the end of the page if there is none.
    fn next(&self, from: usize, stored: bool) -> usize {
        let mut at = from;
        while at < PAGE {
            let word = if stored { self.stored[at / 64] } else { !self.stored[at / 64] };
            let rest = word >> (at % 64);
            if rest != 0 {
                return at + rest.trailing_zeros() as usize;
            }
            at = (at / 64 + 1) * 64;
        }
        PAGE
    }
}

/// Stores that have not gone home.
pub(super) struct Gathered {
    /// Pages, the first of them in use: `places` has as many. The others keep their memory.
    pages: Vec<Page>,
    /// Where the page of a number is.
    places: HashMap<u64, usize>,
    /// The place of the page that was stored to last.
    last: usize,
    /// Pages that are gathered before they go home.
    most: usize,
}

impl Default for Gathered {
    fn default() -> Gathered {
        Gathered::of_pages(MOST_PAGES)
    }
}

impl Gathered {
    fn of_pages(most: usize) -> Gathered {
        Gathered { pages: Vec::new(), places: HashMap::new(), last: 0, most }
    }

    /// The page of a number.
    fn page(&mut self, number: u64) -> &mut Page {
        let is_last = self.last < self.places.len() && self.pages[self.last].number == number;
        if !is_last {
            let next = self.places.len();
            self.last = *self.places.entry(number).or_insert(next);
            if self.last == self.pages.len() {
                self.pages.push(Page::new(number));
            } else if self.last == next {
                self.pages[next].become_blank(number);
            }
        }
        &mut self.pages[self.last]
    }

    /// Stores bytes.
    pub fn store(&mut self, medium: &Medium, offset: u64, mut data: &[u8]) {
        let mut at = offset;
        while !data.is_empty() {
            let start = (at % PAGE_BYTES) as usize;
            let (here, rest) = data.split_at(data.len().min(PAGE - start));
            if self.places.len() == self.most {
                self.go_home(medium);
            }
            self.page(at / PAGE_BYTES).store(start, here);
            (at, data) = (at + here.len() as u64, rest);
        }
    }

    /// The aligned word at an offset, as it will be at home.
    pub fn word(&self, medium: &Medium, offset: u64) -> u64 {
        let mut bytes = medium.load_word(offset).to_le_bytes();
        if let Some(&place) = self.places.get(&(offset / PAGE_BYTES)) {
            let (page, start) = (&self.pages[place], (offset % PAGE_BYTES) as usize);
            for (at, byte) in bytes.iter_mut().enumerate().filter(|(at, _)| page.is_stored(start + at)) {
                *byte = page.bytes[start + at];
            }
        }
        u64::from_le_bytes(bytes)
    }

    /// Stores everything to where it belongs, and starts its write-back.
    pub fn go_home(&mut self, medium: &Medium) {
        // Numbers and places: pages are too large to be moved about.
        let mut order: Vec<(u64, usize)> = self.places.drain().collect();
        order.sort_unstable();
        let (mut start, mut run) = (0, Vec::new());
        for page in order.into_iter().map(|(_, place)| &self.pages[place]) {
            let mut at = page.next(0, true);
            while at < PAGE {
                let end = page.next(at, false);
                let offset = page.number * PAGE_BYTES + at as u64;
                if offset != start + run.len() as u64 || run.len() + (end - at) > MOST_BYTES {
                    put(medium, start, &mut run);
                    start = offset;
                }
                run.extend_from_slice(&page.bytes[at..end]);
                at = page.next(end, true);
            }
        }
        put(medium, start, &mut run);
    }
}

fn put(medium: &Medium, start: u64, run: &mut Vec<u8>) {
    if !run.is_empty() {
        medium.put(start, run);
        run.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use proptest::prelude::*;

    use super::*;
    use crate::error::Error;
    use crate::memory::{Backing, Memory, VolatileMemory};

    const BYTES: usize = 4 * PAGE;

    /// A memory that counts stores.
    struct Counted(VolatileMemory, Arc<Mutex<usize>>);

    impl Memory for Counted {
        fn bytes(&self) -> u64 {
            self.0.bytes()
        }
        fn load(&self, offset: u64, data: &mut [u8]) {
            self.0.load(offset, data);
        }
        fn store(&self, offset: u64, data: &[u8]) {
            *self.1.lock().unwrap() += 1;
            self.0.store(offset, data);
        }
        fn write_back(&self, offset: u64, bytes: u64) {
            self.0.write_back(offset, bytes);
        }
        fn fence(&self) -> Result<(), Error> {
            self.0.fence()
        }
        fn invalidate(&self, offset: u64, bytes: u64) {
            self.0.invalidate(offset, bytes);
        }
    }

    fn counted() -> (Medium, Arc<Mutex<usize>>) {
        let stores = Arc::default();
        let memory = Counted(VolatileMemory::new(BYTES), Arc::clone(&stores));
        (Medium::new(Backing::Other(Box::new(memory))), stores)
    }

    #[test]
    fn bytes_side_by_side_are_one_store_and_the_newest_count() {
        let (medium, stores) = counted();
        let mut gathered = Gathered::default();
        for (offset, data) in [(4090, &[1; 10][..]), (4000, &[2; 90]), (4100, &[3; 8]), (4096, &[4; 2]), (8192, &[5])] {
            gathered.store(&medium, offset, data);
        }
        gathered.go_home(&medium);
        assert_eq!(*stores.lock().unwrap(), 2);
        let mut found = [0; 110];
        medium.load(4000, &mut found);
        let expected = [&[2; 90][..], &[1; 6], &[4; 2], &[1; 2], &[3; 8], &[0; 2]].concat();
        assert_eq!(found[..], expected);
    }

    proptest! {
        /// The same as storing each at once, and nothing else is stored.
        #[test]
        fn gathered_stores_are_stores(
            stores in prop::collection::vec((0..BYTES - 300, 1..300usize, 1..=255u8), 1..60),
            words in prop::collection::vec(0..BYTES / 8, 20),
            most in 1..6usize,
        ) {
            let (medium, _) = counted();
            let mut expected = vec![0; BYTES];
            let mut gathered = Gathered::of_pages(most);
            for (offset, length, value) in stores {
                gathered.store(&medium, offset as u64, &vec![value; length]);
                expected[offset..offset + length].fill(value);
            }
            for word in words {
                let bytes = expected[word * 8..word * 8 + 8].try_into().unwrap();
                prop_assert_eq!(gathered.word(&medium, word as u64 * 8), u64::from_le_bytes(bytes));
            }
            // What others store meanwhile to other bytes stays.
            let free: Vec<_> = (0..BYTES).filter(|at| expected[*at] == 0).collect();
            for at in &free {
                medium.put(*at as u64, &[77]);
                expected[*at] = 77;
            }
            gathered.go_home(&medium);
            let mut found = vec![0; BYTES];
            medium.load(0, &mut found);
            prop_assert!(found == expected);
        }
    }
}
