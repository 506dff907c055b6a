//! The lines that a warp's access touches.

use nearpm_ptx::WarpAccess;

use crate::{LINE, SECTOR};

/// What a warp's access touches of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Address of the line.
    pub line: u64,
    /// Bytes of it, a bit each.
    pub bytes: u128,
    pub persistent: bool,
}

impl Part {
    pub fn sectors(&self) -> u8 {
        sectors(self.bytes)
    }
}

/// The sectors that these bytes lie in.
pub(crate) fn sectors(bytes: u128) -> u8 {
    (0..LINE / SECTOR).fold(0, |mask, i| mask | u8::from((bytes >> (i * SECTOR)) as u32 != 0) << i)
}

/// The bytes of the granules that these bytes lie in; of granules of no bytes the line is one.
pub(crate) fn granules(bytes: u128, granule: u32) -> u128 {
    if granule == 0 {
        return if bytes == 0 { 0 } else { u128::MAX };
    }
    let one = (1u128 << granule) - 1;
    let masks = (0..LINE as u32 / granule).map(|i| one << (i * granule));
    masks.filter(|mask| mask & bytes != 0).fold(0, |all, mask| all | mask)
}

/// The sectors of which all bytes are there.
pub(crate) fn whole_sectors(bytes: u128) -> u8 {
    (0..LINE / SECTOR).fold(0, |mask, i| mask | u8::from((bytes >> (i * SECTOR)) as u32 == u32::MAX) << i)
}

/// Lists the lines, in the order of the lanes. An access of 1 to 32 bytes is aligned, so that it
/// lies in one line.
pub(crate) fn parts(access: &WarpAccess, into: &mut Vec<Part>) {
    into.clear();
    let mut lanes = access.lanes;
    let width = if access.bytes >= 128 { u128::MAX } else { (1u128 << access.bytes) - 1 };
    while lanes != 0 {
        let lane = lanes.trailing_zeros();
        lanes &= lanes - 1;
        let address = access.addresses[lane as usize];
        let line = address & !(LINE - 1);
        let bytes = width << (address & (LINE - 1));
        // The last line is the likeliest.
        match into.iter_mut().rev().find(|part| part.line == line) {
            Some(part) => part.bytes |= bytes,
            None => into.push(Part { line, bytes, persistent: access.persistent >> lane & 1 == 1 }),
        }
    }
}

/// Turns that shared memory's 32 banks of 4 bytes need for an access.
pub(crate) fn bank_turns(access: &WarpAccess) -> u64 {
    let mut words = [u64::MAX; 32];
    let mut turns = [0u8; 32];
    let mut lanes = access.lanes;
    while lanes != 0 {
        let lane = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        let word = access.addresses[lane] / 4;
        let bank = (word % 32) as usize;
        // Lanes that follow each other with one word share it; that is what programs do.
        if words[bank] != word {
            words[bank] = word;
            turns[bank] += 1;
        }
    }
    u64::from(turns.into_iter().max().unwrap_or(1).max(1))
}
