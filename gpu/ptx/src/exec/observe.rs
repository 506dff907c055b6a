//! What accesses mean for persistency and synchronisation, when those are tracked.

use super::{Turn, lanes};
use crate::code::{Order, SHARED_WINDOW, Space};
use crate::lanes::Lanes;
use crate::persist;

impl Turn<'_> {
    /// Lanes have read these bytes: they observe the stores that wrote them, and acquire where the
    /// access is strong.
    pub(super) fn observe(
        &mut self,
        space: Space,
        order: Order,
        exec: u32,
        persistent: u32,
        addresses: &Lanes,
        bytes: u64,
    ) {
        let (thread, block) = (self.first_thread(), self.block.number);
        let Some(tracker) = &mut self.tracker else { return };
        for lane in lanes(if tracker.words.is_empty() { 0 } else { persistent }) {
            for (word, mask) in words(addresses[lane], bytes) {
                tracker.load(word, mask, thread + lane as u64);
            }
        }
        if order.strong && tracker.hands_on() {
            for lane in lanes(exec) {
                tracker.acquire(thread + lane as u64, meeting(space, block, addresses[lane]), order);
            }
        }
    }

    /// One lane stores to persistent memory: it pends.
    pub(super) fn pend(&mut self, lane: usize, address: u64, width: u8, value: u64, line: u32) {
        let thread = self.first_thread() + lane as u64;
        let step = self.counts.warp_instructions;
        let word = address >> 3;
        let before = visible_word(self.memory, word);
        let shift = (address & 7) as u32;
        let bytes = (((1u32 << width) - 1) << shift) as u8;
        if let Some(tracker) = &mut self.tracker {
            let store = crate::word::Store { sequence: 0, thread, step, line, bytes, value: value << (8 * shift) };
            tracker.store(word, before, store);
        }
    }

    /// One lane's store takes part in synchronisation.
    pub(super) fn release(&mut self, space: Space, order: Order, lane: usize, address: u64, atomic: bool) {
        let (thread, block) = (self.first_thread() + lane as u64, self.block.number);
        if let Some(tracker) = &mut self.tracker
            && space != Space::Local
            && (order.strong || tracker.hands_on())
        {
            tracker.release(thread, meeting(space, block, address), order, atomic);
        }
    }
}

/// Where threads meet at an address: in global memory, or in one block's shared memory.
fn meeting(space: Space, block: u64, address: u64) -> persist::Place {
    match space {
        Space::Shared => (block + 1, address),
        Space::Generic if address & !(SHARED_WINDOW - 1) == SHARED_WINDOW => (block + 1, address - SHARED_WINDOW),
        _ => (0, address),
    }
}

/// The aligned words of 8 bytes that an access touches, each with its bytes.
pub(super) fn words(address: u64, bytes: u64) -> impl Iterator<Item = (u64, u8)> {
    let first = address >> 3;
    let count = bytes.div_ceil(8);
    (0..count).map(move |i| {
        let mask = if bytes >= 8 { 0xff } else { (((1u32 << bytes) - 1) << (address & 7)) as u8 };
        (first + i, mask)
    })
}

/// A word of a persistent range, with zeros past its end.
fn visible_word(memory: &crate::memory::Memory, word: u64) -> u64 {
    let address = word << 3;
    match memory.slice(address, 8) {
        Some(bytes) => u64::from_le_bytes(bytes.try_into().expect("eight bytes")),
        None => (0..8).fold(0, |value, i| {
            let byte = memory.slice(address + i, 1).map_or(0, |byte| byte[0]);
            value | u64::from(byte) << (8 * i)
        }),
    }
}
