//! Memory for when the system gives no more.
//!
//! What grows with what a program does is asked for where an error can be returned. The rest is
//! small: a message, a node of a tree, what an abort or the end of a commit needs. Rust ends the
//! process where such memory is missing, so that it comes from here then: blocks that were taken
//! when the library was loaded. From the first such loan on calls that could need more are refused
//! with ENOMEM, until the system has memory again.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes of a block.
const BLOCK: usize = 64 << 10;
const BLOCKS: usize = 64;
/// Largest loan; what is larger is asked for where an error can be returned. Home addresses of a
/// truncation are the largest of the rest.
const LARGEST: usize = 40 << 10;
/// Blocks that must be blank for a call that may need some.
const ENOUGH: usize = 8;
/// What the system must be able to give before it is believed to have memory again.
const PROBE: usize = 1 << 20;

/// What blocks are aligned to.
const ALIGNED: usize = 4096;

#[repr(align(4096))]
struct Memory(UnsafeCell<[u8; BLOCK * BLOCKS]>);

// SAFETY: bytes are given to one owner at a time, by the counters below.
unsafe impl Sync for Memory {}

/// Part of the library's own image: pages that nobody uses take no memory.
static MEMORY: Memory = Memory(UnsafeCell::new([0; BLOCK * BLOCKS]));
/// Loans of each block, and the bytes that were given of it: the low half, and the high half.
static USE: [AtomicUsize; BLOCKS] = [const { AtomicUsize::new(0) }; BLOCKS];
/// Something was lent since the system last had memory.
static LENT: AtomicBool = AtomicBool::new(false);

const HALF: u32 = usize::BITS / 2;
const LOANS: usize = (1 << HALF) - 1;

/// Takes bytes from the first block that has room.
fn lend(layout: Layout) -> *mut u8 {
    LENT.store(true, Ordering::Relaxed);
    if layout.size() > LARGEST || layout.align() > ALIGNED {
        return std::ptr::null_mut();
    }
    for (at, used) in USE.iter().enumerate() {
        let taken = used.fetch_update(Ordering::Acquire, Ordering::Relaxed, |now| {
            let end = (now >> HALF).checked_next_multiple_of(layout.align())?.checked_add(layout.size())?;
            (end <= BLOCK).then_some(end << HALF | ((now & LOANS) + 1))
        });
        if let Ok(before) = taken {
            let start = at * BLOCK + (before >> HALF).next_multiple_of(layout.align());
            return MEMORY.0.get().cast::<u8>().wrapping_add(start);
        }
    }
    std::ptr::null_mut()
}

/// As [`lend`]: an earlier loan may have left its bytes there.
#[cold]
fn lend_zeroed(layout: Layout) -> *mut u8 {
    let memory = lend(layout);
    if !memory.is_null() {
        // SAFETY: as many bytes were lent.
        unsafe { memory.write_bytes(0, layout.size()) };
    }
    memory
}

/// The block that an address lies in, if it does in one.
fn block_of(address: *mut u8) -> Option<usize> {
    let offset = (address as usize).wrapping_sub(MEMORY.0.get() as usize);
    (offset < BLOCK * BLOCKS).then_some(offset / BLOCK)
}

/// A block without loans is blank again.
fn give_back(block: usize) {
    // The closure always has a value.
    let _ = USE[block].fetch_update(Ordering::AcqRel, Ordering::Relaxed, |now| {
        let loans = (now & LOANS) - 1;
        Some(if loans == 0 { 0 } else { now >> HALF << HALF | loans })
    });
}

/// Whether calls that may need memory are served: nothing was lent, or the system has memory again
/// and most blocks are blank.
#[inline]
pub fn is_full() -> bool {
    !LENT.load(Ordering::Relaxed) || is_full_again()
}

#[cold]
fn is_full_again() -> bool {
    let blank = USE.iter().filter(|used| used.load(Ordering::Relaxed) == 0).count();
    let layout = Layout::array::<u8>(PROBE).expect("a layout of a mebibyte");
    // SAFETY: the layout has a size; what it gives is given back.
    let has_memory = unsafe {
        let probe = System.alloc(layout);
        if !probe.is_null() {
            System.dealloc(probe, layout);
        }
        !probe.is_null()
    };
    let full = has_memory && blank >= ENOUGH;
    if full {
        LENT.store(false, Ordering::Relaxed);
    }
    full
}

/// The system's allocator, with the blocks behind it.
struct WithReserve;

#[global_allocator]
static ALLOCATOR: WithReserve = WithReserve;

// SAFETY: memory comes from the system's allocator, or is a part of a block that nobody else has
// until it is given back.
unsafe impl GlobalAlloc for WithReserve {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the caller.
        let memory = unsafe { System.alloc(layout) };
        if memory.is_null() { lend(layout) } else { memory }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the caller.
        let memory = unsafe { System.alloc_zeroed(layout) };
        if memory.is_null() { lend_zeroed(layout) } else { memory }
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        match block_of(memory) {
            Some(block) => give_back(block),
            // SAFETY: by the caller; it is not from a block.
            None => unsafe { System.dealloc(memory, layout) },
        }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if block_of(memory).is_none() {
            // SAFETY: by the caller; it is not from a block.
            let moved = unsafe { System.realloc(memory, layout, bytes) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller gives a size that makes a layout; both places have as many bytes, and
        // lie apart.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(memory, layout.size().min(bytes));
                self.dealloc(memory, layout);
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loans_lie_apart_and_blocks_without_loans_are_blank_again() {
        let layout = Layout::from_size_align(1000, 64).unwrap();
        let mut loans = Vec::new();
        loop {
            let loan = lend(layout);
            if loan.is_null() {
                break;
            }
            assert!(loan.addr().is_multiple_of(64) && block_of(loan) == block_of(loan.wrapping_add(999)));
            loans.push(loan);
        }
        assert!(loans.len() >= BLOCKS * (BLOCK / 1024) && !is_full());
        loans.sort_unstable();
        assert!(loans.windows(2).all(|two| two[1] as usize - two[0] as usize >= 1000));
        // SAFETY: each was lent with this layout, and is given back once.
        loans.into_iter().for_each(|loan| unsafe { ALLOCATOR.dealloc(loan, layout) });
        assert!(is_full() && USE.iter().all(|used| used.load(Ordering::Relaxed) == 0));
        assert!(lend(Layout::from_size_align(LARGEST + 1, 8).unwrap()).is_null() && is_full());
        assert!(lend(Layout::from_size_align(8, 2 * ALIGNED).unwrap()).is_null(), "blocks are aligned to less");
        let layout = Layout::from_size_align(1000, ALIGNED).unwrap();
        // SAFETY: what is lent has as many bytes, and is given back once.
        unsafe {
            for _ in 0..2 {
                let loan = lend_zeroed(layout);
                assert!(loan.addr().is_multiple_of(ALIGNED));
                assert_eq!(std::slice::from_raw_parts(loan, 1000), [0; 1000]);
                // The next one gets the same place.
                loan.write_bytes(7, 1000);
                ALLOCATOR.dealloc(loan, layout);
            }
        }
        assert!(is_full());
    }
}
