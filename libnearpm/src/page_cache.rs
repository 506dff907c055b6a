//! Volatile copies of pages that commands write behind the processor's cache.
//!
//! The link is not coherent (C9), so that a line which a command wrote is not loaded from the
//! processor's cache. Where commands write the heap, programs read from these copies instead, and
//! what they store is sent around the cache.
//!
//! Why a copy is right, with nobody waiting for a command:
//! - a line comes here by a load from the card: first a barrier, after which every earlier command
//!   and store is in the link; then the processor's copy is dropped. The card lets the load wait
//!   for each command that writes the line (C1);
//! - from then on the copy follows what the program does: whoever posts a command or store that
//!   changes the line changes the copy;
//! - so a copy may be dropped at any time, unless it holds what has not been sent yet: such pages
//!   are *pinned*.
//!
//! Memory: [`PAGES`] pages, and as many more as are pinned (at most the pages of an epoch). It is
//! ordinary memory of the processor; each access is charged like one to a cached line.

use std::collections::BTreeMap;
use std::ops::Range;

use nearpm_interface::geometry::LINE;
use nearpm_interface::media::PAGE_BYTES;

use crate::error::Error;
use crate::executor::Executor;
use crate::memory::{Medium, Work};

/// Pages that are kept: 1 MiB.
pub(crate) const PAGES: usize = 256;

struct Page {
    bytes: Box<[u8; PAGE_BYTES as usize]>,
    /// Lines that are here, one bit each.
    valid: u64,
    /// Where the other lines are: the page itself, or the one that is being copied to it.
    source: u64,
    pinned: bool,
    used: u64,
}

/// Copies, by the offset of their page in the pool.
#[derive(Default)]
pub(crate) struct PageCache {
    pages: BTreeMap<u64, Page>,
    clock: u64,
}

fn page_of(place: u64) -> u64 {
    place / PAGE_BYTES * PAGE_BYTES
}

/// The parts of a range by page: the page, where it starts in it, the part of the range.
fn by_page(place: u64, bytes: usize) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        (done < bytes).then(|| {
            let at = place + done as u64;
            let inside = (at - page_of(at)) as usize;
            let part = done..bytes.min(done + PAGE_BYTES as usize - inside);
            done = part.end;
            (page_of(at), inside, part)
        })
    })
}

fn lines(inside: usize, bytes: usize) -> Range<usize> {
    inside / LINE..(inside + bytes).div_ceil(LINE)
}

impl Page {
    /// Makes lines be here.
    fn fill(&mut self, medium: &Medium, executor: &mut dyn Executor, wanted: Range<usize>) -> Result<(), Error> {
        let mut at = wanted.start;
        while at < wanted.end {
            let missing = !self.valid >> at;
            let start = at + missing.trailing_zeros() as usize;
            if start >= wanted.end {
                break;
            }
            let end = wanted.end.min(start + (missing >> (start - at)).trailing_ones() as usize);
            let bytes = &mut self.bytes[start * LINE..end * LINE];
            let source = self.source + (start * LINE) as u64;
            // In this order: a line that was dropped before the commands are in the link may come
            // back before them.
            executor.barrier(medium)?;
            medium.invalidate(source, bytes.len() as u64);
            medium.fence()?;
            medium.load_checked(source, bytes)?;
            self.valid |= (u64::MAX >> (u64::BITS as usize - (end - start))) << start;
            at = end;
        }
        Ok(())
    }

    /// Puts new bytes into whole lines, and parts of lines that are here.
    fn update(&mut self, medium: &Medium, inside: usize, data: &[u8]) {
        for line in lines(inside, data.len()) {
            let start = inside.max(line * LINE);
            let end = (inside + data.len()).min((line + 1) * LINE);
            if end - start == LINE || self.valid >> line & 1 == 1 {
                self.valid |= 1 << line;
                self.bytes[start..end].copy_from_slice(&data[start - inside..end - inside]);
                medium.charge(Work::CachedLines(1));
            }
        }
    }
}

impl PageCache {
    /// The copy of a page, made if need be in the place of the least recently used one.
    fn page(&mut self, page: u64) -> &mut Page {
        self.clock += 1;
        if self.pages.len() >= PAGES && !self.pages.contains_key(&page) {
            let oldest = self.pages.iter().filter(|(_, p)| !p.pinned).min_by_key(|(_, p)| p.used);
            if let Some((&oldest, _)) = oldest {
                self.pages.remove(&oldest);
            }
        }
        let used = self.clock;
        let copy = self.pages.entry(page).or_insert_with(|| Page {
            bytes: Box::new([0; PAGE_BYTES as usize]),
            valid: 0,
            source: page,
            pinned: false,
            used,
        });
        copy.used = used;
        copy
    }

    /// The bytes of a pinned page, of which lines are to be sent that were stored to: one bit each.
    pub fn pinned(&self, page: u64, lines: u64) -> &[u8; PAGE_BYTES as usize] {
        let copy = &self.pages[&page];
        assert!(copy.pinned && copy.valid & lines == lines, "what was stored is here");
        &copy.bytes
    }

    /// A page is about to be copied to another one, which takes its place for the program. It is
    /// pinned.
    pub fn moves(&mut self, from: u64, to: u64) {
        let copy = self.pages.remove(&from).filter(|copy| copy.source == from);
        self.pages.remove(&to);
        if let Some(copy) = copy {
            self.pages.insert(to, copy);
        }
        let copy = self.page(to);
        copy.source = from;
        copy.pinned = true;
    }

    /// Lines of a pinned page are again what they are where the page is copied from.
    pub fn forget(&mut self, page: u64, lines: u64) {
        let copy = self.page(page);
        assert!(copy.pinned, "only what was not sent can be forgotten");
        copy.valid &= !lines;
    }

    /// Everything was sent: pages are loaded from where they are.
    pub fn unpin(&mut self) {
        for (&page, copy) in &mut self.pages {
            copy.source = page;
            copy.pinned = false;
        }
    }

    /// Puts new bytes into the copies: whole lines, and parts of lines that are here. Other lines
    /// will be loaded.
    pub fn update(&mut self, medium: &Medium, place: u64, data: &[u8]) {
        for (page, inside, part) in by_page(place, data.len()) {
            self.page(page).update(medium, inside, &data[part]);
        }
    }

    /// The same for pages that are here, where nobody is to read the others soon.
    pub fn refresh(&mut self, medium: &Medium, place: u64, data: &[u8]) {
        for (page, inside, part) in by_page(place, data.len()) {
            if let Some(copy) = self.pages.get_mut(&page) {
                copy.update(medium, inside, &data[part]);
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        assert!(self.pages.values().all(|p| !p.pinned), "nothing is forgotten that was not sent");
        self.pages.clear();
    }
}

/// Copies with what is behind them.
pub(crate) struct Cached<'a> {
    pub cache: &'a mut PageCache,
    pub medium: &'a Medium,
    pub executor: &'a mut dyn Executor,
}

impl Cached<'_> {
    /// Loads.
    pub fn load(&mut self, place: u64, data: &mut [u8]) -> Result<(), Error> {
        for (page, inside, part) in by_page(place, data.len()) {
            let wanted = lines(inside, part.len());
            self.medium.charge(Work::CachedLines(wanted.len() as u64));
            let copy = self.cache.page(page);
            copy.fill(self.medium, self.executor, wanted)?;
            let bytes = part.len();
            data[part].copy_from_slice(&copy.bytes[inside..inside + bytes]);
        }
        Ok(())
    }

    /// Stores in the copies alone, whole lines of which are here afterwards.
    pub fn store(&mut self, place: u64, data: &[u8]) -> Result<(), Error> {
        for (page, inside, part) in by_page(place, data.len()) {
            let copy = self.cache.page(page);
            // A line that is only written in part needs its other bytes.
            let end = inside + part.len();
            if !inside.is_multiple_of(LINE) {
                copy.fill(self.medium, self.executor, lines(inside, 1))?;
            }
            if !end.is_multiple_of(LINE) {
                copy.fill(self.medium, self.executor, lines(end - 1, 1))?;
            }
            copy.update(self.medium, inside, &data[part]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use nearpm_interface::geometry::LINE_U64;

    use super::*;
    use crate::executor::CpuExecutor;
    use crate::memory::{Backing, Memory, VolatileMemory};
    use proptest::prelude::*;

    const BYTES: u64 = 4 * PAGE_BYTES;

    /// A processor that keeps a copy of all memory, drops it at a fence and not before, and loads
    /// it again at once. A command makes every byte 2, as soon as a fence has sent it and no
    /// sooner.
    #[derive(Default)]
    struct Speculative(Arc<Mutex<State>>);

    #[derive(Default)]
    struct State {
        dropping: bool,
        copy: u8,
        card: u8,
        dropped: Vec<u64>,
    }

    impl Memory for Speculative {
        fn bytes(&self) -> u64 {
            BYTES
        }
        fn load(&self, _: u64, data: &mut [u8]) {
            data.fill(self.0.lock().unwrap().copy);
        }
        fn store(&self, _: u64, _: &[u8]) {}
        fn write_back(&self, _: u64, _: u64) {}
        fn fence(&self) -> Result<(), Error> {
            let mut state = self.0.lock().unwrap();
            if std::mem::take(&mut state.dropping) {
                state.copy = state.card;
            }
            state.card = 2;
            Ok(())
        }
        fn invalidate(&self, offset: u64, bytes: u64) {
            let mut state = self.0.lock().unwrap();
            state.dropping = true;
            state.dropped.extend((offset..offset + bytes).step_by(LINE));
        }
    }

    /// Barrier, drop, fence, load: in any other order what speculation brings back is loaded.
    #[test]
    fn a_line_is_loaded_behind_the_commands_however_the_processor_speculates() {
        let speculative = Speculative::default();
        *speculative.0.lock().unwrap() = State { copy: 1, card: 1, ..State::default() };
        let state = speculative.0.clone();
        let medium = Medium::new(Backing::Other(Box::new(speculative)));
        let mut cache = PageCache::default();
        let mut cached = Cached { cache: &mut cache, medium: &medium, executor: &mut CpuExecutor::default() };
        let mut byte = [0];
        cached.load(PAGE_BYTES + 200, &mut byte).unwrap();
        assert_eq!(byte, [2]);
        assert_eq!(state.lock().unwrap().dropped, [PAGE_BYTES + 192], "one line was asked for");
    }

    /// Nothing in front of the card but memory: the copies are memory, whatever is forgotten on the
    /// way.
    #[derive(Clone, Debug)]
    enum Step {
        Load { place: u64, bytes: usize },
        Store { place: u64, data: Vec<u8> },
        Cut,
    }

    fn step() -> impl Strategy<Value = Step> {
        let place = PAGE_BYTES - 200..PAGE_BYTES + 200;
        prop_oneof![
            3 => (place.clone(), 1usize..150).prop_map(|(place, bytes)| Step::Load { place, bytes }),
            3 => (place, prop::collection::vec(any::<u8>(), 1..150)).prop_map(|(place, data)| Step::Store { place, data }),
            1 => Just(Step::Cut),
        ]
    }

    proptest! {
        #[test]
        fn copies_of_moved_pages_are_what_was_there_and_what_was_stored(steps in prop::collection::vec(step(), 1..40)) {
            let medium = Medium::new(Backing::Other(Box::new(VolatileMemory::new(BYTES as usize))));
            let mut model: Vec<u8> = (0..2 * PAGE_BYTES).map(|n| n as u8).collect();
            medium.store(0, &model);
            let mut cache = PageCache::default();
            let mut executor = CpuExecutor::default();
            // Pages 0 and 1 move to 2 and 3 and back.
            let mut home = 0;
            let begin = |cache: &mut PageCache, home: &mut u64| {
                let from = *home;
                *home = 2 * PAGE_BYTES - from;
                for page in [0, PAGE_BYTES] {
                    cache.moves(from + page, *home + page);
                }
            };
            begin(&mut cache, &mut home);
            let mut dirty = std::collections::BTreeSet::new();
            for step in steps {
                let mut cached = Cached { cache: &mut cache, medium: &medium, executor: &mut executor };
                match step {
                    Step::Load { place, bytes } => {
                        let mut data = vec![0; bytes];
                        cached.load(home + place, &mut data).unwrap();
                        prop_assert_eq!(&data[..], &model[place as usize..][..bytes]);
                    }
                    Step::Store { place, data } => {
                        cached.store(home + place, &data).unwrap();
                        model[place as usize..][..data.len()].copy_from_slice(&data);
                        dirty.extend(place / LINE_U64..(place + data.len() as u64).div_ceil(LINE_U64));
                    }
                    Step::Cut => {
                        // The card has copied the pages; then the lines are stored over that.
                        let old = medium.load_vec(2 * PAGE_BYTES - home, 2 * PAGE_BYTES);
                        medium.store(home, &old);
                        for page in 0..2 {
                            let lines = |n: &u64| (n / 64 == page).then_some(1u64 << (n % 64));
                            let mask = dirty.iter().filter_map(lines).fold(0, |a, b| a | b);
                            let (place, bytes) = (home + page * PAGE_BYTES, cache.pinned(home + page * PAGE_BYTES, mask));
                            for line in (0..LINE_U64).filter(|line| mask >> line & 1 == 1) {
                                let at = line * LINE_U64;
                                medium.stream(place + at, &bytes[at as usize..][..LINE]);
                            }
                        }
                        cache.unpin();
                        dirty.clear();
                        prop_assert_eq!(&medium.load_vec(home, 2 * PAGE_BYTES), &model);
                        begin(&mut cache, &mut home);
                    }
                }
            }
        }
    }

    #[test]
    fn the_cache_stays_small_and_keeps_what_is_pinned() {
        let medium = Medium::new(Backing::Other(Box::new(VolatileMemory::new(64))));
        let mut cache = PageCache::default();
        cache.moves(0, PAGE_BYTES);
        for page in 2..3 * PAGES as u64 {
            cache.update(&medium, page * PAGE_BYTES, &[1; LINE]);
        }
        assert_eq!(cache.pages.len(), PAGES);
        assert!(cache.pages.contains_key(&PAGE_BYTES));
    }
}
