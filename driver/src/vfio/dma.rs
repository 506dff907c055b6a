//! Host memory that the card writes, through the IOMMU.
//!
//! Small buffers lie together in one page of 2 MiB where the machine has one to spare: one entry of
//! the IOMMU's instead of many. Where it has none, each has ordinary pages of its own. Memory of
//! this kind is never used for anything else: a card that still writes where it was told to writes
//! into a buffer.

#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memmap2::{Advice, MmapMut, MmapOptions, MmapRaw};
use pci_driver::backends::vfio::VfioPciDevice;
use pci_driver::device::PciDevice;
use pci_driver::regions::Permissions;
use volatile_register::{RO, RW};

use super::iova::BusSpace;
use crate::pci::{DmaBuffer, DmaPages};

/// Log2 of the bytes of a large page.
const HUGE_LOG2: u8 = 21;
/// Bytes of a large page.
const HUGE_BYTES: usize = 1 << HUGE_LOG2;
/// What buffers in a large page begin at multiples of.
const LINE: u64 = 64;

/// How memory is made that a card reaches, and taken away from it.
pub(crate) trait Reach: Send + Sync {
    /// Whether it can be made of large pages.
    const LARGE_PAGES: bool;
    /// Makes memory of zeros, page aligned, and lets the card, and only the card, write it at a bus
    /// address.
    fn allocate(&self, address: u64, bytes: usize, pages: DmaPages) -> std::io::Result<MmapRaw>;
    /// Takes the memory away from the card; false where the card may still write it.
    fn release(&self, address: u64, bytes: usize) -> bool;
}

impl Reach for VfioPciDevice {
    const LARGE_PAGES: bool = true;

    fn allocate(&self, address: u64, bytes: usize, pages: DmaPages) -> std::io::Result<MmapRaw> {
        let memory = anonymous(bytes, pages)?;
        // SAFETY: the memory is this process's own, is touched only through volatile cells, and is
        // freed only after the mapping is gone (see `Chunk::drop`).
        unsafe { self.iommu().map(address, bytes, memory.as_ptr(), Permissions::ReadWrite) }.map(|()| memory)
    }

    fn release(&self, address: u64, bytes: usize) -> bool {
        self.iommu().unmap(address, bytes).is_ok()
    }
}

fn anonymous(bytes: usize, pages: DmaPages) -> std::io::Result<MmapRaw> {
    let map = match pages {
        DmaPages::Ordinary => MmapMut::map_anon(bytes)?,
        // The kernel reserves the page here, or says that it has none.
        DmaPages::Large => MmapOptions::new().len(bytes).huge(Some(HUGE_LOG2)).map_anon()?,
    };
    // A fork would leave the card writing to pages that only the child sees.
    // Miri knows neither the call nor a fork.
    if !cfg!(miri) {
        map.advise(Advice::DontFork)?;
    }
    Ok(MmapRaw::from(map))
}

/// Memory, page aligned, that somebody else may write at any moment.
struct HostMemory {
    map: MmapRaw,
}

impl HostMemory {
    /// The memory in words that this side only reads.
    fn words(&self) -> &[RO<u64>] {
        // SAFETY: the mapping is page aligned, valid for its length and lives as long as `self`. A
        // cell makes no claim that its content stays the same, so the card may write it meanwhile.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.map.len() / 8) }
    }

    /// Makes a range of whole words zero.
    fn clear(&self, offset: usize, bytes: usize) {
        assert!(offset.is_multiple_of(8) && offset + bytes <= self.map.len());
        for at in (offset..offset + bytes).step_by(8) {
            // SAFETY: inside the mapping and aligned. The cell is shared, and only for this access.
            unsafe { (*self.map.as_mut_ptr().add(at).cast::<RW<u64>>()).write(0) };
        }
    }

    fn load(&self, offset: usize, data: &mut [u8]) {
        let words = self.words();
        let mut done = 0;
        while done < data.len() {
            let (word, inside) = ((offset + done) / 8, (offset + done) % 8);
            let bytes = (8 - inside).min(data.len() - done);
            let value = words[word].read().to_ne_bytes();
            data[done..done + bytes].copy_from_slice(&value[inside..inside + bytes]);
            done += bytes;
        }
    }
}

/// Memory that the card reaches, with buffers in it.
struct Chunk<R: Reach> {
    reach: Arc<R>,
    space: Arc<Mutex<BusSpace>>,
    memory: ManuallyDrop<HostMemory>,
    address: u64,
    /// Which of its addresses buffers have.
    inside: Mutex<BusSpace>,
}

impl<R: Reach> Chunk<R> {
    fn new(reach: &Arc<R>, space: &Arc<Mutex<BusSpace>>, bytes: usize, pages: DmaPages) -> std::io::Result<Chunk<R>> {
        let (mapped, address) = {
            let mut space = lock(space);
            let alignment = if pages == DmaPages::Large { HUGE_BYTES } else { 1 };
            let mapped = space.rounded(bytes as u64).ok_or_else(full)?;
            (mapped, space.take(mapped, alignment as u64).ok_or_else(full)?)
        };
        match reach.allocate(address, mapped as usize, pages) {
            Ok(map) => {
                let valid = address..address + mapped;
                let inside = Mutex::new(BusSpace::new(std::slice::from_ref(&valid), LINE));
                let memory = ManuallyDrop::new(HostMemory { map });
                Ok(Chunk { reach: reach.clone(), space: space.clone(), memory, address, inside })
            }
            Err(error) => {
                lock(space).give_back(address);
                Err(error)
            }
        }
    }

    /// A buffer of zeros in it, if there is room.
    fn buffer(self: &Arc<Self>, bytes: usize) -> Option<Buffer<R>> {
        let mut inside = lock(&self.inside);
        let rounded = inside.rounded(bytes as u64)?;
        let address = inside.take(rounded, LINE)?;
        self.memory.clear((address - self.address) as usize, rounded as usize);
        Some(Buffer { chunk: self.clone(), address, bytes })
    }
}

impl<R: Reach> Drop for Chunk<R> {
    fn drop(&mut self) {
        // Memory that the card can still reach must never be used for something else: where the
        // mapping cannot be taken away, memory and address are left as they are.
        if self.reach.release(self.address, self.memory.map.len()) {
            lock(&self.space).give_back(self.address);
            // SAFETY: the field is not used again.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

fn full() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::OutOfMemory, "no bus addresses are left")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives the card memory to write.
pub(crate) struct Arena<R: Reach> {
    reach: Arc<R>,
    space: Arc<Mutex<BusSpace>>,
    /// The large page, once it was asked for; `Some(None)` where there is none.
    large: Mutex<Option<Option<Arc<Chunk<R>>>>>,
}

impl<R: Reach> Arena<R> {
    pub(crate) fn new(reach: Arc<R>, space: BusSpace) -> Arena<R> {
        Arena { reach, space: Arc::new(Mutex::new(space)), large: Mutex::default() }
    }

    fn chunk(&self, bytes: usize, pages: DmaPages) -> std::io::Result<Arc<Chunk<R>>> {
        Chunk::new(&self.reach, &self.space, bytes, pages).map(Arc::new)
    }

    /// Allocates memory of zeros that the card, and only the card, can write.
    pub(crate) fn allocate(&self, bytes: usize) -> std::io::Result<Buffer<R>> {
        let large = lock(&self.large)
            .get_or_insert_with(|| {
                let wanted = R::LARGE_PAGES.then(|| self.chunk(HUGE_BYTES, DmaPages::Large));
                wanted.and_then(Result::ok)
            })
            .clone();
        match large.and_then(|large| large.buffer(bytes)) {
            Some(buffer) => Ok(buffer),
            None => self.chunk(bytes, DmaPages::Ordinary)?.buffer(bytes).ok_or_else(full),
        }
    }

    /// What the memory is made of, once there is some.
    pub(crate) fn pages(&self) -> Option<DmaPages> {
        let large = lock(&self.large);
        large.as_ref().map(|large| if large.is_some() { DmaPages::Large } else { DmaPages::Ordinary })
    }
}

/// A buffer that the card reaches.
pub(crate) struct Buffer<R: Reach> {
    chunk: Arc<Chunk<R>>,
    address: u64,
    bytes: usize,
}

impl<R: Reach> DmaBuffer for Buffer<R> {
    fn bus_address(&self) -> u64 {
        self.address
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn load(&self, offset: usize, data: &mut [u8]) {
        let inside = offset.checked_add(data.len()).is_some_and(|end| end <= self.bytes);
        assert!(inside, "a load of {} bytes at {offset:#x} leaves a buffer of {:#x} bytes", data.len(), self.bytes);
        self.chunk.memory.load((self.address - self.chunk.address) as usize + offset, data);
    }
}

impl<R: Reach> Drop for Buffer<R> {
    fn drop(&mut self) {
        lock(&self.chunk.inside).give_back(self.address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_writes_to_the_memory_is_loaded_at_every_alignment() {
        let memory = HostMemory { map: anonymous(4096, DmaPages::Ordinary).unwrap() };
        let mut zeroed = [1; 4096];
        memory.load(0, &mut zeroed);
        assert_eq!(zeroed, [0; 4096]);
        let written: Vec<u8> = (0..64).collect();
        // SAFETY: inside the mapping, and nobody else uses it.
        unsafe { std::ptr::copy_nonoverlapping(written.as_ptr(), memory.map.as_mut_ptr(), written.len()) };
        for start in 0..16 {
            for bytes in 0..40 {
                let mut read = vec![0; bytes];
                memory.load(start, &mut read);
                assert_eq!(read, written[start..start + bytes]);
            }
        }
    }

    /// A machine with or without large pages, and what the card can reach on it.
    struct Fake {
        has_large: bool,
        reached: Mutex<Vec<(u64, usize, DmaPages)>>,
    }

    impl Reach for Fake {
        const LARGE_PAGES: bool = true;

        fn allocate(&self, address: u64, bytes: usize, pages: DmaPages) -> std::io::Result<MmapRaw> {
            if pages == DmaPages::Large && !self.has_large {
                return Err(std::io::ErrorKind::OutOfMemory.into());
            }
            lock(&self.reached).push((address, bytes, pages));
            anonymous(bytes, DmaPages::Ordinary)
        }

        fn release(&self, address: u64, _: usize) -> bool {
            lock(&self.reached).retain(|reached| reached.0 != address);
            true
        }
    }

    fn arena(has_large: bool) -> (Arena<Fake>, Arc<Fake>) {
        let reach = Arc::new(Fake { has_large, reached: Mutex::default() });
        let valid = 0x1000..0x1_0000_0000;
        (Arena::new(reach.clone(), BusSpace::new(std::slice::from_ref(&valid), 4096)), reach)
    }

    #[test]
    fn small_buffers_share_a_large_page_that_the_card_reaches_at_once() {
        let (arena, reach) = arena(true);
        assert_eq!(arena.pages(), None, "nobody has asked");
        let buffers: Vec<_> = (0..4).map(|_| arena.allocate(32 << 10).unwrap()).collect();
        assert_eq!(*lock(&reach.reached), [(0x20_0000, HUGE_BYTES, DmaPages::Large)]);
        let addresses: Vec<_> = buffers.iter().map(DmaBuffer::bus_address).collect();
        assert_eq!(addresses, [0x20_0000, 0x20_8000, 0x21_0000, 0x21_8000]);
        assert_eq!(arena.pages(), Some(DmaPages::Large));
        let big = arena.allocate(HUGE_BYTES).unwrap();
        assert_eq!(lock(&reach.reached)[1], (0x40_0000, HUGE_BYTES, DmaPages::Ordinary), "behind the large page");
        drop((buffers, big));
        assert_eq!(lock(&reach.reached).len(), 1, "the large page stays for who comes next");
        drop(arena);
        assert_eq!(lock(&reach.reached).len(), 0);
    }

    #[test]
    fn without_large_pages_each_buffer_has_ordinary_ones() {
        let (arena, reach) = arena(false);
        let first = arena.allocate(100).unwrap();
        assert_eq!(*lock(&reach.reached), [(0x1000, 4096, DmaPages::Ordinary)]);
        assert_eq!((first.bus_address(), first.bytes()), (0x1000, 100));
        assert_eq!(arena.pages(), Some(DmaPages::Ordinary));
        drop(first);
        assert_eq!(lock(&reach.reached).len(), 0);
        // The machine that this runs on may have large pages or not: asking is never fatal.
        let _ = anonymous(HUGE_BYTES, DmaPages::Large);
    }

    #[test]
    fn memory_that_is_used_again_is_zero() {
        let (arena, _) = arena(true);
        let buffer = arena.allocate(4096).unwrap();
        // SAFETY: inside the mapping, and nobody else uses it.
        unsafe { buffer.chunk.memory.map.as_mut_ptr().write_bytes(0xee, 4096) };
        let mut found = [0; 4096];
        buffer.load(0, &mut found);
        assert_eq!(found, [0xee; 4096]);
        drop(buffer);
        let buffer = arena.allocate(4096).unwrap();
        buffer.load(0, &mut found);
        assert_eq!((buffer.bus_address(), found), (0x20_0000, [0; 4096]));
    }
}
