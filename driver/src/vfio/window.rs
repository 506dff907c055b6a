//! A part of a BAR in this process's address space.
//!
//! Every access is volatile, naturally aligned and as wide as its place allows, so that a register is one 4-byte and
//! a command word one 8-byte access. Each goes to its own cell (`volatile_register::RW`), which may be shared with
//! whoever else writes it; no reference ever claims the block as a whole.

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

/// Whether the processor has MOVDIR64B (Intel SDM volume 2, CPUID leaf 7: ECX bit 28). Miri has not.
static WHOLE_LINES: LazyLock<bool> = LazyLock::new(|| !cfg!(miri) && __cpuid_count(7, 0).ecx >> 28 & 1 == 1);

/// A window on mapped memory.
///
/// How the memory is mapped is one thing, what its user asked for another: the kernel maps the BARs of a VFIO device uncached on x86, which is stronger
/// than each [`Caching`] asks for. Where it is mapped weaker than what was asked for, each access is followed by what makes it as strong.
pub(crate) struct Window<Keep> {
    base: *mut u8,
    bytes: u64,
    /// How it is mapped.
    mapped: Caching,
    /// Each access has to go to the link as it is, in program order, and it does not by itself.
    in_order: bool,
    /// What keeps the memory mapped.
    _keep: Keep,
}

// SAFETY: the memory belongs to no thread, and all access is volatile and by value.
unsafe impl<Keep: Send> Send for Window<Keep> {}
// SAFETY: as above; `Keep` is never handed out.
unsafe impl<Keep: Sync> Sync for Window<Keep> {}

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
    /// The range is mapped for reading and writing for as long as `keep` lives, and no reference of Rust's to the range is used meanwhile.
    pub(crate) unsafe fn new(base: *mut u8, bytes: u64, keep: Keep) -> Window<Keep> {
        Window { base, bytes, mapped: Caching::Uncached, in_order: false, _keep: keep }
    }

    /// The same on memory that is mapped as `mapped`, for a user that has asked for `asked`.
    fn cached(self, mapped: Caching, asked: Caching) -> Window<Keep> {
        let in_order = asked == Caching::Uncached && mapped != Caching::Uncached;
        Window { mapped, in_order, ..self }
    }

    /// Does something with each line of a range.
    fn each_line(&self, offset: u64, bytes: u64, act: unsafe fn(*mut u8)) {
        let start = self.place(offset, bytes as usize);
        let first = start as usize % LINE;
        for at in (0..bytes as usize + first).step_by(LINE).take_while(|_| bytes > 0) {
            // SAFETY: the line has a byte in the window, which is mapped, and mappings are whole pages.
            unsafe { act(start.wrapping_sub(first).add(at)) };
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

impl<Keep: Send + Sync> Window<Keep> {
    /// Before a load that has to see what the card holds.
    fn before_load(&self, offset: u64, bytes: usize) {
        if self.in_order {
            self.invalidate(offset, bytes as u64);
            cache::full_fence();
        }
    }

    /// Behind a store that has to go to the link before anything else does.
    fn after_store(&self, offset: u64, bytes: usize) {
        if self.in_order {
            self.write_back(offset, bytes as u64);
            cache::full_fence();
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

/// Maps `bytes` bytes from `start` of a file that is device memory or stands for it. The file maps it as `mapped`; `asked` is what the user wants.
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
    Ok(Box::new(window.cached(mapped, asked)))
}

impl<Keep: Send + Sync> Mapping for Window<Keep> {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn load(&self, offset: u64, data: &mut [u8]) {
        let place = self.place(offset, data.len());
        self.before_load(offset, data.len());
        for (at, size) in pieces(place as u64, data.len()) {
            let to = &mut data[at..at + size];
            // SAFETY: `place` checked the whole range and `pieces` aligns each access. The cells are
            // shared, never unique, and only for this access.
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
        if !*WHOLE_LINES {
            // The card takes a command in pieces as well (C3). The instruction goes around the cache: what stands for it must not stay there.
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
        if self.mapped.persist().write_back && cache::SUPPORTED {
            self.each_line(offset, bytes, cache::write_back);
        }
    }

    fn invalidate(&self, offset: u64, bytes: u64) {
        self.place(offset, bytes as usize);
        if self.mapped.loads_stale() {
            self.each_line(offset, bytes, cache::drop_line);
        }
    }

    /// MOVDIR64B is weakly ordered, also to uncached memory.
    fn fence(&self) {
        // A load behind the fence may have been made ahead of a store fence, and of the drop of its line; a write-combining mapping lets the processor load ahead, too.
        if self.mapped == Caching::Uncached { cache::fence() } else { cache::full_fence() }
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn each_mode_says_what_a_persist_needs_and_every_access_works_in_each() {
        let persist = |caching: Caching| (caching.persist().write_back, caching.persist().fence, caching.loads_stale());
        assert_eq!(persist(Caching::Uncached), (false, false, false));
        assert_eq!(persist(Caching::WriteCombining), (false, true, false));
        assert_eq!(persist(Caching::WriteBack), (true, true, true));
        let modes = [Caching::Uncached, Caching::WriteCombining, Caching::WriteBack];
        for (mapped, asked) in modes.iter().flat_map(|&mapped| modes.map(|asked| (mapped, asked))) {
            let window = window().cached(mapped, asked);
            assert_eq!(window.in_order, asked == Caching::Uncached && mapped != Caching::Uncached);
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
            window.write_back(4096, 0);
            window.invalidate(0, 0);
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
