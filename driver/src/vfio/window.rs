//! A part of a BAR in this process's address space.
//!
//! Every access is volatile, naturally aligned and as wide as its place allows, so that a register
//! is one 4-byte and a command word one 8-byte access. Each goes to its own cell
//! (`volatile_register::RW`), which may be shared with whoever else writes it; no reference ever
//! claims the block as a whole.

#![allow(unsafe_code)]

use std::arch::asm;
use std::arch::x86_64::__cpuid_count;
use std::fs::File;
use std::ops::Range;
use std::sync::LazyLock;

use memmap2::MmapOptions;
use pci_driver::regions::{MappedOwningPciRegion, OwningPciRegion, Permissions};
use volatile_register::RW;

use super::MAP_ALIGNMENT;
use crate::cache;
use crate::pci::{Caching, Mapping};

/// What mappings begin at multiples of.
const PAGE: u64 = 4096;
/// Bytes of a line.
const LINE: usize = 64;

/// Whether the processor has MOVDIR64B (Intel SDM volume 2, CPUID leaf 7: ECX bit 28). Miri has
/// not.
static WHOLE_LINES: LazyLock<bool> = LazyLock::new(|| !cfg!(miri) && __cpuid_count(7, 0).ecx >> 28 & 1 == 1);

/// What a window tells the processor's caches: these instructions, or what stands for them in
/// tests.
pub(crate) trait Caches: Send + Sync {
    /// Whether a line can be stored as a whole, around the cache.
    fn whole_lines(&self) -> bool;

    /// Starts the write-back of a line, where that is possible.
    ///
    /// # Safety
    /// `line` points into mapped memory.
    unsafe fn write_back(&self, line: *mut u8);

    /// See [`cache::drop_line`].
    ///
    /// # Safety
    /// `line` points into mapped memory.
    unsafe fn drop_line(&self, line: *mut u8);

    /// See [`cache::fence`].
    fn fence(&self);

    /// See [`cache::full_fence`].
    fn full_fence(&self);
}

/// The caches of the processor that this runs on.
pub(crate) struct Processor;

impl Caches for Processor {
    fn whole_lines(&self) -> bool {
        *WHOLE_LINES
    }

    unsafe fn write_back(&self, line: *mut u8) {
        if cache::SUPPORTED {
            // SAFETY: the caller's duty.
            unsafe { cache::write_back(line) }
        }
    }

    unsafe fn drop_line(&self, line: *mut u8) {
        // SAFETY: the caller's duty.
        unsafe { cache::drop_line(line) }
    }

    fn fence(&self) {
        cache::fence();
    }

    fn full_fence(&self) {
        cache::full_fence();
    }
}

/// A window on mapped memory.
///
/// How the memory is mapped is one thing, what its user asked for another: the kernel maps the BARs
/// of a VFIO device uncached on x86, which is stronger than each [`Caching`] asks for. Where it is
/// mapped weaker than what was asked for, each access is followed by what makes it as strong.
pub(crate) struct Window<Keep, C = Processor> {
    base: *mut u8,
    bytes: u64,
    /// How it is mapped.
    mapped: Caching,
    /// Each access has to go to the link as it is, in program order, and it does not by itself.
    in_order: bool,
    caches: C,
    /// What keeps the memory mapped.
    _keep: Keep,
}

// SAFETY: the memory belongs to no thread, and all access is volatile and by value.
unsafe impl<Keep: Send, C: Send> Send for Window<Keep, C> {}
// SAFETY: as above; `Keep` is never handed out.
unsafe impl<Keep: Sync, C: Sync> Sync for Window<Keep, C> {}

/// Splits a range into naturally aligned accesses of at most 8 bytes: (offset in the range, bytes).
fn pieces(start: u64, bytes: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = start + done as u64;
        let size = [8, 4, 2, 1].into_iter().find(|&size| at.is_multiple_of(size as u64) && size <= bytes - done)?;
        done += size;
        Some((done - size, size))
    })
}

impl<Keep> Window<Keep> {
    /// A window on `bytes` bytes from `base`.
    ///
    /// # Safety
    /// The range is mapped for reading and writing for as long as `keep` lives, and no reference of
    /// Rust's to the range is used meanwhile.
    pub(crate) unsafe fn new(base: *mut u8, bytes: u64, keep: Keep) -> Window<Keep> {
        Window { base, bytes, mapped: Caching::Uncached, in_order: false, caches: Processor, _keep: keep }
    }

    /// The same on memory that is mapped as `mapped`, for a user that has asked for `asked`.
    fn cached<C: Caches>(self, mapped: Caching, asked: Caching, caches: C) -> Window<Keep, C> {
        let in_order = asked == Caching::Uncached && mapped != Caching::Uncached;
        let Window { base, bytes, _keep, .. } = self;
        Window { base, bytes, mapped, in_order, caches, _keep }
    }
}

impl<Keep, C: Caches> Window<Keep, C> {
    /// Does something with each line of a range.
    fn each_line(&self, offset: u64, bytes: u64, act: unsafe fn(&C, *mut u8)) {
        let start = self.place(offset, bytes as usize);
        let first = start as usize % LINE;
        for at in (0..bytes as usize + first).step_by(LINE).take_while(|_| bytes > 0) {
            // SAFETY: the line has a byte in the window, which is mapped, and mappings are whole
            // pages.
            unsafe { act(&self.caches, start.wrapping_sub(first).add(at)) };
        }
    }

    /// Address of a range, all of which lies in the window.
    fn place(&self, offset: u64, bytes: usize) -> *mut u8 {
        let inside = offset.checked_add(bytes as u64).is_some_and(|end| end <= self.bytes);
        assert!(inside, "an access of {bytes} bytes at {offset:#x} leaves its window of {:#x} bytes", self.bytes);
        // SAFETY: the offset was just found to be inside the mapped range.
        unsafe { self.base.add(offset as usize) }
    }
}

impl<Keep: Send + Sync, C: Caches> Window<Keep, C> {
    /// Before a load that has to see what the card holds.
    fn before_load(&self, offset: u64, bytes: usize) {
        if self.in_order {
            self.invalidate(offset, bytes as u64);
            self.caches.full_fence();
        }
    }

    /// Behind a store that has to go to the link before anything else does.
    fn after_store(&self, offset: u64, bytes: usize) {
        if self.in_order {
            self.write_back(offset, bytes as u64);
            self.caches.full_fence();
        }
    }
}

/// Maps a range of a BAR, which must lie in it.
pub(super) fn map(bar: &OwningPciRegion, range: Range<u64>) -> std::io::Result<Box<dyn Mapping>> {
    let start = range.start / MAP_ALIGNMENT * MAP_ALIGNMENT;
    let mapped: MappedOwningPciRegion = bar.map(start..range.end, Permissions::ReadWrite)?;
    let inside = range.start - start;
    // SAFETY: `mapped` holds all of `start..range.end` mapped until it is dropped with the window.
    Ok(Box::new(unsafe { Window::new(mapped.as_mut_ptr().add(inside as usize), range.end - range.start, mapped) }))
}

/// Maps `bytes` bytes from `start` of a file that is device memory or stands for it. The file maps
/// it as `mapped`; `asked` is what the user wants.
pub(crate) fn map_file(
    file: &File,
    start: u64,
    bytes: u64,
    mapped: Caching,
    asked: Caching,
) -> std::io::Result<Box<dyn Mapping>> {
    let (page, inside) = (start / PAGE * PAGE, start % PAGE);
    let map = MmapOptions::new().offset(page).len((inside + bytes) as usize).map_raw(file)?;
    // SAFETY: `map` holds all of the range mapped until it is dropped with the window.
    let window = unsafe { Window::new(map.as_mut_ptr().add(inside as usize), bytes, map) };
    Ok(Box::new(window.cached(mapped, asked, Processor)))
}

impl<Keep: Send + Sync, C: Caches> Mapping for Window<Keep, C> {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn load(&self, offset: u64, data: &mut [u8]) {
        let place = self.place(offset, data.len());
        self.before_load(offset, data.len());
        for (at, size) in pieces(place as u64, data.len()) {
            let to = &mut data[at..at + size];
            // SAFETY: `place` checked the whole range and `pieces` aligns each access. The cells
            // are shared, never unique, and only for this access.
            unsafe {
                let from = place.add(at);
                match size {
                    8 => to.copy_from_slice(&(*from.cast::<RW<u64>>()).read().to_ne_bytes()),
                    4 => to.copy_from_slice(&(*from.cast::<RW<u32>>()).read().to_ne_bytes()),
                    2 => to.copy_from_slice(&(*from.cast::<RW<u16>>()).read().to_ne_bytes()),
                    _ => to[0] = (*from.cast::<RW<u8>>()).read(),
                }
            }
        }
    }

    fn store(&self, offset: u64, data: &[u8]) {
        let place = self.place(offset, data.len());
        for (at, size) in pieces(place as u64, data.len()) {
            let from = &data[at..at + size];
            // SAFETY: as for `load`. What a store means to the device is the driver's concern.
            unsafe {
                let to = place.add(at);
                match *from {
                    [a, b, c, d, e, f, g, h] => {
                        (*to.cast::<RW<u64>>()).write(u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
                    }
                    [a, b, c, d] => (*to.cast::<RW<u32>>()).write(u32::from_ne_bytes([a, b, c, d])),
                    [a, b] => (*to.cast::<RW<u16>>()).write(u16::from_ne_bytes([a, b])),
                    _ => (*to.cast::<RW<u8>>()).write(from[0]),
                }
            }
            self.after_store(offset + at as u64, size);
        }
    }

    fn store_line(&self, offset: u64, line: &[u8; 64]) {
        let place = self.place(offset, line.len());
        assert!((place as usize).is_multiple_of(64), "a line begins at a multiple of 64");
        if !self.caches.whole_lines() {
            // The card takes a command in pieces as well (C3). The instruction goes around the
            // cache: what stands for it must not stay there.
            self.store(offset, line);
            return self.write_back(offset, line.len() as u64);
        }
        // SAFETY: the processor has the instruction; source and destination are valid for 64
        // bytes, and the destination is aligned.
        unsafe {
            asm!("movdir64b {0}, [{1}]", in(reg) place, in(reg) line.as_ptr(), options(nostack, preserves_flags));
        }
        self.after_store(offset, line.len());
    }

    fn write_back(&self, offset: u64, bytes: u64) {
        self.place(offset, bytes as usize);
        if self.mapped.persist().write_back {
            self.each_line(offset, bytes, C::write_back);
        }
    }

    fn invalidate(&self, offset: u64, bytes: u64) {
        self.place(offset, bytes as usize);
        if self.mapped.loads_stale() {
            self.each_line(offset, bytes, C::drop_line);
        }
    }

    /// MOVDIR64B is weakly ordered, also to uncached memory.
    fn fence(&self) {
        // A load behind the fence may have been made ahead of a store fence, and of the drop of its
        // line; a write-combining mapping lets the processor load ahead, too.
        if self.mapped == Caching::Uncached { self.caches.fence() } else { self.caches.full_fence() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
    use std::sync::{Mutex, MutexGuard};

    use super::*;

    /// A window on ordinary memory: what holds for it holds for uncached memory, but for time.
    fn window() -> Window<memmap2::MmapRaw> {
        let memory = memmap2::MmapRaw::from(memmap2::MmapMut::map_anon(4096).unwrap());
        // SAFETY: the mapping moves into the window, is page aligned and is used through it alone.
        unsafe { Window::new(memory.as_mut_ptr(), 4096, memory) }
    }

    #[test]
    fn accesses_are_aligned_and_as_wide_as_their_place_allows() {
        let split = |start, bytes| pieces(start, bytes).collect::<Vec<_>>();
        assert_eq!(split(0x10, 4), [(0, 4)], "a register is one access");
        assert_eq!(split(0x18, 8), [(0, 8)]);
        assert_eq!(split(0x14, 8), [(0, 4), (4, 4)]);
        assert_eq!(split(0x11, 10), [(0, 1), (1, 2), (3, 4), (7, 2), (9, 1)]);
        assert_eq!(split(0x40, 64).len(), 8);
        assert_eq!(split(0x40, 0), []);
    }

    #[test]
    fn what_was_stored_is_loaded_at_every_alignment_and_nothing_beside_it_changes() {
        let window = window();
        for start in 0..9 {
            for bytes in 0..20 {
                window.store(0, &[0xee; 40]);
                let data: Vec<u8> = (1..=bytes).collect();
                window.store(start, &data);
                let mut all = [0; 40];
                window.load(0, &mut all);
                let mut expected = [0xee; 40];
                expected[start as usize..][..data.len()].copy_from_slice(&data);
                assert_eq!(all, expected, "{bytes} bytes at {start}");
                let mut part = vec![0; data.len()];
                window.load(start, &mut part);
                assert_eq!(part, data);
            }
        }
        let line: [u8; 64] = std::array::from_fn(|i| i as u8);
        window.store_line(128, &line);
        window.fence();
        let mut read = [0; 64];
        window.load(128, &mut read);
        assert_eq!(read, line);
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Step {
        /// Of the line with this number.
        WriteBack(usize),
        /// Of the line with this number.
        Drop(usize),
        Fence,
        FullFence,
    }

    /// A card behind a processor that is not coherent with it. What the window has mapped is what
    /// the processor sees.
    struct Incoherent {
        mapped: Caching,
        /// Where the window begins.
        seen: AtomicPtr<u8>,
        whole_lines: bool,
        state: Mutex<State>,
    }

    struct State {
        /// What the card holds.
        card: Vec<u8>,
        steps: Vec<Step>,
        /// Lines with what they held, whose write-back has begun.
        written: Vec<(usize, [u8; LINE])>,
        /// Lines whose drop has begun.
        dropped: Vec<usize>,
    }

    const BYTES: usize = 4096;

    impl Incoherent {
        fn line(&self, number: usize) -> [u8; LINE] {
            let mut line = [0; LINE];
            // SAFETY: the line lies in the window, and nothing else uses the memory meanwhile.
            unsafe { self.seen.load(Relaxed).add(number * LINE).copy_to(line.as_mut_ptr(), LINE) };
            line
        }

        fn number(&self, line: *mut u8) -> usize {
            (line as usize - self.seen.load(Relaxed) as usize) / LINE
        }

        /// The processor sees a line of the card.
        fn see(&self, number: usize, card: &[u8]) {
            // SAFETY: as for `line`.
            unsafe { self.seen.load(Relaxed).add(number * LINE).copy_from(card[number * LINE..].as_ptr(), LINE) };
        }

        /// Write-backs that have begun are done; so are stores that were gathered.
        fn complete(&self, state: &mut State) {
            let gathered = (0..BYTES / LINE).filter(|_| self.mapped == Caching::WriteCombining);
            let gathered: Vec<_> = gathered.map(|number| (number, self.line(number))).collect();
            for (number, line) in state.written.drain(..).chain(gathered) {
                state.card[number * LINE..][..LINE].copy_from_slice(&line);
            }
        }

        /// What the card holds.
        fn card(&self) -> Vec<u8> {
            match self.mapped {
                Caching::Uncached => (0..BYTES / LINE).flat_map(|number| self.line(number)).collect(),
                _ => self.state.lock().unwrap().card.clone(),
            }
        }

        /// The card writes. Where loads are not cached the processor sees it.
        fn card_writes(&self, at: usize, data: &[u8]) {
            let mut card = self.card();
            card[at..][..data.len()].copy_from_slice(data);
            if self.mapped != Caching::WriteBack {
                (0..BYTES / LINE).for_each(|number| self.see(number, &card));
            }
            self.state.lock().unwrap().card = card;
        }

        fn step(&self, step: Step) -> MutexGuard<'_, State> {
            let mut state = self.state.lock().unwrap();
            state.steps.push(step);
            state
        }
    }

    impl Caches for Incoherent {
        fn whole_lines(&self) -> bool {
            self.whole_lines
        }

        unsafe fn write_back(&self, line: *mut u8) {
            let number = self.number(line);
            self.step(Step::WriteBack(number)).written.push((number, self.line(number)));
        }

        unsafe fn drop_line(&self, line: *mut u8) {
            let number = self.number(line);
            self.step(Step::Drop(number)).dropped.push(number);
        }

        fn fence(&self) {
            self.complete(&mut self.step(Step::Fence));
        }

        fn full_fence(&self) {
            let mut state = self.step(Step::FullFence);
            self.complete(&mut state);
            for number in std::mem::take(&mut state.dropped) {
                self.see(number, &state.card);
            }
        }
    }

    type Modelled = Window<memmap2::MmapRaw, Incoherent>;

    fn incoherent(mapped: Caching, asked: Caching, whole_lines: bool) -> Modelled {
        let window = window();
        let card = vec![0; BYTES];
        let state = State { card, steps: Vec::new(), written: Vec::new(), dropped: Vec::new() };
        let seen = AtomicPtr::new(window.base);
        window.cached(mapped, asked, Incoherent { mapped, seen, whole_lines, state: Mutex::new(state) })
    }

    /// What a window tells the caches while something is done with it.
    fn steps(window: &Modelled, act: impl FnOnce(&Modelled)) -> Vec<Step> {
        window.caches.state.lock().unwrap().steps.clear();
        act(window);
        window.caches.state.lock().unwrap().steps.clone()
    }

    const MODES: [Caching; 3] = [Caching::Uncached, Caching::WriteCombining, Caching::WriteBack];

    /// Each way to map memory for each that was asked for.
    fn modes() -> impl Iterator<Item = (Caching, Caching)> {
        MODES.into_iter().flat_map(|mapped| MODES.map(|asked| (mapped, asked)))
    }

    #[test]
    fn in_each_mode_the_card_holds_what_was_persisted_and_the_processor_loads_what_the_card_has_written() {
        for (mapped, asked) in modes() {
            let window = incoherent(mapped, asked, false);
            let mut expected = vec![0; BYTES];
            for (start, first) in [0, 3, 61, 64, BYTES - 200].into_iter().zip(1u8..) {
                let named = format!("{mapped} for {asked} at {start}");
                let data: Vec<u8> = (first..).take(200).collect();
                window.store(start as u64, &data);
                // Who has asked for uncached memory does nothing more, who has not does what the
                // mode says.
                let needs = mapped.persist();
                if asked != Caching::Uncached && needs.write_back {
                    window.write_back(start as u64, 200);
                }
                if asked != Caching::Uncached && needs.fence {
                    window.fence();
                }
                expected[start..][..200].copy_from_slice(&data);
                assert!(window.caches.card() == expected, "{named}");
                let data = [first ^ 0xa5; 70];
                window.caches.card_writes(start + 1, &data);
                expected[start + 1..][..70].copy_from_slice(&data);
                if asked != Caching::Uncached && mapped.loads_stale() {
                    window.invalidate(start as u64 + 1, 70);
                    window.fence();
                }
                let mut found = [0; 70];
                window.load(start as u64 + 1, &mut found);
                assert_eq!(found, data, "{named}");
            }
        }
    }

    #[test]
    fn in_each_mode_the_card_holds_a_line_that_was_stored_as_a_whole() {
        for (mapped, asked) in modes() {
            let window = incoherent(mapped, asked, false);
            let line = std::array::from_fn(|i| i as u8 + 1);
            window.store_line(128, &line);
            window.fence();
            assert_eq!(window.caches.card()[128..192], line, "{mapped} for {asked}");
        }
    }

    #[test]
    fn each_mode_takes_the_write_backs_drops_and_fences_that_it_needs_and_no_more() {
        use Step::{Drop, Fence, FullFence, WriteBack};
        for (mapped, asked) in modes() {
            let window = incoherent(mapped, asked, false);
            // Of 15 bytes over the end of a line, in pieces of 1, 2, 4 and 8; and how each other
            // thing is done.
            let mut pieces = vec![];
            let (mut before_load, mut written, mut dropped) = (vec![], vec![], vec![]);
            let mut fence = vec![FullFence];
            match (mapped, asked) {
                (Caching::Uncached, _) => fence = vec![Fence],
                (Caching::WriteCombining, Caching::Uncached) => {
                    pieces = vec![FullFence; 4];
                    before_load = vec![FullFence];
                }
                (Caching::WriteCombining, _) => {}
                (Caching::WriteBack, _) => {
                    written = (0..3).map(WriteBack).collect();
                    dropped = (0..3).map(Drop).collect();
                    if asked == Caching::Uncached {
                        pieces = [0, 0, 0, 1].iter().flat_map(|&line| [WriteBack(line), FullFence]).collect();
                        before_load = vec![Drop(0), Drop(1), FullFence];
                    }
                }
            }
            let named = format!("{mapped} for {asked}");
            assert_eq!(steps(&window, |window| window.store(57, &[1; 15])), pieces, "{named}");
            assert_eq!(steps(&window, |window| window.load(57, &mut [0; 15])), before_load, "{named}");
            assert_eq!(steps(&window, |window| window.write_back(60, 130)), written, "{named}");
            assert_eq!(steps(&window, |window| window.invalidate(60, 130)), dropped, "{named}");
            assert_eq!(steps(&window, Mapping::fence), fence, "{named}");
            assert_eq!(steps(&window, |window| window.write_back(4096, 0)), [], "{named}");
            assert_eq!(steps(&window, |window| window.invalidate(0, 0)), [], "{named}");
            // In pieces the line is in the cache afterwards; where the processor stores it as a
            // whole it is not.
            let line = |window: &Modelled| window.store_line(128, &[7; 64]);
            let (mut ordered, mut left) = (vec![], vec![]);
            if mapped == Caching::WriteBack {
                left.push(WriteBack(2));
            }
            if asked == Caching::Uncached && mapped != Caching::Uncached {
                ordered = left.iter().copied().chain([FullFence]).collect();
            }
            assert_eq!(steps(&window, line), [ordered.repeat(8), left].concat(), "{named}");
            if *WHOLE_LINES {
                assert_eq!(steps(&incoherent(mapped, asked, true), line), ordered, "{named}");
            }
        }
    }

    #[test]
    fn every_access_works_on_this_processor_in_each_mode() {
        for (mapped, asked) in modes() {
            let window = window().cached(mapped, asked, Processor);
            let data: Vec<u8> = (0..200).collect();
            for start in [0, 3, 61, 64, 4096 - 200] {
                window.store(start, &data);
                window.write_back(start, 200);
                window.fence();
                window.invalidate(start, 200);
                window.fence();
                let mut found = vec![0; 200];
                window.load(start, &mut found);
                assert_eq!(found, data, "{mapped} for {asked} at {start}");
            }
            window.store_line(128, &[7; 64]);
            let mut line = [0; 64];
            window.load(128, &mut line);
            assert_eq!(line, [7; 64]);
        }
    }

    #[test]
    #[should_panic(expected = "leaves its window")]
    fn an_access_beyond_the_end_is_refused() {
        window().store(4092, &[0; 8]);
    }

    #[test]
    #[should_panic(expected = "leaves its window")]
    fn an_access_that_wraps_is_refused() {
        window().load(u64::MAX - 3, &mut [0; 8]);
    }
}
