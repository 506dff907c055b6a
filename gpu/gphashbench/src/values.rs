//! Keys and values that tests give to pairs, each with its number, and sizes of the tables that are
//! tested.

use nearpm_gphash::{Key, Keys};

/// Volatile memory of the interpreted devices.
pub(crate) const MEMORY: u64 = 8 << 20;
/// Bytes of a value: one unit, which a reader can tell from a part of it.
pub(crate) const VALUE: u32 = 16;

/// The key of operations that fill up a batch's warps.
pub(crate) const NOBODY: u64 = 0x7777;

/// Bytes of a wide key: one unit.
pub(crate) const WIDE: u32 = 16;

/// The bytes of a number's key, as a table of these keys stores them.
pub(crate) fn key_bytes(keys: Keys, number: u64) -> Vec<u8> {
    let wide = [number, !number];
    wide[..if keys == Keys::Words { 1 } else { 2 }].iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The number's key.
pub(crate) fn key_of(keys: Keys, number: u64) -> Key {
    match keys {
        Keys::Words => number.into(),
        _ => Key::Bytes(key_bytes(keys, number)),
    }
}

pub(crate) fn value_of(number: u32) -> Vec<u8> {
    [number, !number, number.wrapping_mul(0x9e37_79b1), 0x6870_676e].into_iter().flat_map(u32::to_le_bytes).collect()
}

pub(crate) fn number_of(value: &[u8]) -> u32 {
    let number = u32::from_le_bytes([value[0], value[1], value[2], value[3]]);
    if value_of(number) == value { number } else { u32::MAX }
}
