//! Accesses of any size as accesses to lines and registers.

use nearpm_interface::geometry::LINE;

/// Lines that hold a range, with the part of each that is in it: address of the line, first byte,
/// bytes.
pub fn lines(address: u64, bytes: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = address + bytes as u64;
    let mut at = address;
    std::iter::from_fn(move || {
        let first = (at % LINE as u64) as usize;
        let part = (LINE - first).min((end - at) as usize);
        let line = at - first as u64;
        at += part as u64;
        (part > 0).then_some((line, first, part))
    })
}

/// Lines that a store changes: address, contents, and which bytes of it.
pub fn stores(offset: u64, data: &[u8]) -> impl Iterator<Item = (u64, [u8; LINE], u64)> {
    let mut done = 0;
    lines(offset, data.len()).map(move |(line, first, part)| {
        let mut bytes = [0; LINE];
        bytes[first..first + part].copy_from_slice(&data[done..done + part]);
        done += part;
        (line, bytes, (u64::MAX >> (LINE - part)) << first)
    })
}

/// Loads from a block of registers, whose values `read` gives.
pub fn load_registers(offset: u64, data: &mut [u8], mut read: impl FnMut(u32) -> u32) {
    let mut done = 0;
    while done < data.len() {
        let (register, first) = ((offset + done as u64) as u32 & !3, (offset as usize + done) % 4);
        let part = (4 - first).min(data.len() - done);
        data[done..done + part].copy_from_slice(&read(register).to_le_bytes()[first..first + part]);
        done += part;
    }
}

/// Registers that a store changes, with their values. They take aligned words; anything else has no
/// effect, as on the card's bus.
pub fn register_stores(offset: u64, data: &[u8]) -> impl Iterator<Item = (u32, u32)> {
    let (words, rest) = data.as_chunks::<4>();
    let words = if offset.is_multiple_of(4) && rest.is_empty() { words } else { &[] };
    (offset as u32..).step_by(4).zip(words).map(|(register, word)| (register, u32::from_le_bytes(*word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_cut_at_lines_and_selects_its_bytes() {
        let data: Vec<u8> = (1..=70).collect();
        let found: Vec<_> = stores(60, &data).collect();
        assert_eq!(found.iter().map(|f| (f.0, f.2)).collect::<Vec<_>>(), [(0, 0xf << 60), (64, u64::MAX), (128, 3)]);
        assert_eq!((found[0].1[60], found[1].1[0], found[2].1[..3].to_vec()), (1, 5, vec![69, 70, 0]));
        assert_eq!(stores(5, &[]).count(), 0);
    }

    #[test]
    fn registers_are_loaded_in_any_piece_and_stored_as_words() {
        let mut data = [0; 7];
        load_registers(6, &mut data, |register| register * 0x0101_0101);
        assert_eq!(data, [4, 4, 8, 8, 8, 8, 12]);
        assert_eq!(register_stores(8, &[1, 0, 0, 0, 2, 0, 0, 0]).collect::<Vec<_>>(), [(8, 1), (12, 2)]);
        assert_eq!(register_stores(6, &[1; 4]).count() + register_stores(8, &[1; 5]).count(), 0);
    }
}
