//! Rows that Redis keeps in one piece of memory, and compressed strings.

use super::input::Input;

/// A number with a sign, of so many low bits.
fn signed(raw: u64, bits: u32) -> Vec<u8> {
    let shift = 64 - bits;
    (((raw << shift) as i64) >> shift).to_string().into_bytes()
}

/// The rows of a listpack: bytes in all, number of rows, rows, each with its own length behind it,
/// and an end.
pub fn listpack(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut input = Input(bytes);
    let (total, count) = (input.little(4)?, input.little(2)?);
    let mut rows = Vec::new();
    loop {
        let before = input.0.len();
        let first = input.byte()?;
        let row = match first {
            0xff => break,
            0..0x80 => u64::from(first).to_string().into_bytes(),
            0x80..0xc0 => input.take(usize::from(first & 0x3f))?.to_vec(),
            0xc0..0xe0 => signed(u64::from(first & 0x1f) << 8 | u64::from(input.byte()?), 13),
            0xe0..0xf0 => {
                let length = usize::from(first & 0x0f) << 8 | usize::from(input.byte()?);
                input.take(length)?.to_vec()
            }
            0xf0 => {
                let length = input.little(4)? as usize;
                input.take(length)?.to_vec()
            }
            0xf1 => signed(input.little(2)?, 16),
            0xf2 => signed(input.little(3)?, 24),
            0xf3 => signed(input.little(4)?, 32),
            0xf4 => signed(input.little(8)?, 64),
            _ => return None,
        };
        // How many bytes the row has, in groups of seven bits, to be read backwards.
        let width = match before - input.0.len() {
            0..=127 => 1,
            128..=16_383 => 2,
            16_384..=2_097_151 => 3,
            2_097_152..=268_435_455 => 4,
            _ => 5,
        };
        input.take(width)?;
        rows.push(row);
    }
    let right = total == bytes.len() as u64 && (count == 0xffff || count == rows.len() as u64);
    Some(rows).filter(|_| right && input.0.is_empty())
}

/// The rows of a ziplist, which Redis 6 and older have: bytes, place of the last row, number of
/// rows, rows, each with the length of the one in front, and an end.
pub fn ziplist(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut input = Input(bytes);
    let (total, _, count) = (input.little(4)?, input.little(4)?, input.little(2)?);
    let mut rows = Vec::new();
    loop {
        match input.byte()? {
            0xff => break,
            0xfe => drop(input.take(4)?),
            _ => {}
        }
        let first = input.byte()?;
        let row = match first {
            0..0x40 => input.take(usize::from(first))?.to_vec(),
            0x40..0x80 => {
                let length = usize::from(first & 0x3f) << 8 | usize::from(input.byte()?);
                input.take(length)?.to_vec()
            }
            0x80 => {
                let length = input.take(4)?.iter().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte));
                input.take(length)?.to_vec()
            }
            0xc0 => signed(input.little(2)?, 16),
            0xd0 => signed(input.little(4)?, 32),
            0xe0 => signed(input.little(8)?, 64),
            0xf0 => signed(input.little(3)?, 24),
            0xfe => signed(input.little(1)?, 8),
            0xf1..=0xfd => u64::from(first - 0xf1).to_string().into_bytes(),
            _ => return None,
        };
        rows.push(row);
    }
    let right = total == bytes.len() as u64 && (count == 0xffff || count == rows.len() as u64);
    Some(rows).filter(|_| right && input.0.is_empty())
}

/// Fields and values of a zipmap, which Redis 2.4 and older have.
pub fn zipmap(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut input = Input(bytes);
    input.byte()?;
    let mut rows = Vec::new();
    loop {
        let length = match input.byte()? {
            255 => break,
            254 => input.little(4)? as usize,
            length => usize::from(length),
        };
        // Behind the length of a value stands how many bytes behind it are free.
        let free = if rows.len().is_multiple_of(2) { 0 } else { usize::from(input.byte()?) };
        rows.push(input.take(length)?.to_vec());
        input.take(free)?;
    }
    Some(rows).filter(|_| input.0.is_empty())
}

/// The members of a set of integers: bytes of each, their number, members.
pub fn integers(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut input = Input(bytes);
    let (width, count) = (input.little(4)?, input.little(4)?);
    if !matches!(width, 2 | 4 | 8) || input.0.len() as u64 != width * count {
        return None;
    }
    (0..count).map(|_| Some(signed(input.little(width as usize)?, 8 * width as u32))).collect()
}

/// A string compressed by LZF (Lehmann, LibLZF), which has so many bytes then.
pub fn decompress(bytes: &[u8], length: usize) -> Option<Vec<u8>> {
    let (mut input, mut out) = (Input(bytes), Vec::new());
    while !input.0.is_empty() {
        let control = usize::from(input.byte()?);
        if control < 32 {
            out.extend_from_slice(input.take(control + 1)?);
        } else {
            let mut run = control >> 5;
            if run == 7 {
                run += usize::from(input.byte()?);
            }
            let back = (control & 0x1f) << 8 | usize::from(input.byte()?);
            let start = out.len().checked_sub(back + 1)?;
            // The run may reach into itself.
            (0..run + 2).for_each(|at| out.push(out[start + at]));
        }
        if out.len() > length {
            return None;
        }
    }
    Some(out).filter(|out| out.len() == length)
}
