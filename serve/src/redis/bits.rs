//! Strings as rows of bits, the first bit of a byte being the highest.

use nearpm::prelude::*;

use super::db::{Db, Outcome, SYNTAX, refuse};
use super::ranges::change_bytes;
use super::reply::Reply;
use super::strings::{put, value};
use super::words::{integer, is, part};
use crate::store::{Name, item};

const OFFSET: &str = "ERR bit offset is not an integer or out of range";

/// The number of a bit, which lies in the longest string.
pub fn bit_offset(db: &Db<'_>, word: &[u8]) -> Outcome<u64> {
    let offset = integer(word).ok().and_then(|offset| u64::try_from(offset).ok());
    offset.filter(|offset| offset / 8 < db.max_value).map_or_else(|| refuse(OFFSET), Ok)
}

/// SETBIT key offset 0|1
pub fn setbit(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let offset = bit_offset(db, &words[2])?;
    let bit = match words[3].as_slice() {
        b"0" => 0u8,
        b"1" => 1,
        _ => return refuse("ERR bit is not an integer or out of range"),
    };
    let name = Name::of(&words[1]);
    let found = db.string(tx, &name)?;
    let (byte, shift, mut old) = (offset / 8, 7 - offset % 8, 0);
    if let Some((place, head)) = found
        && byte < u64::from(head.length)
    {
        let mut had = [0];
        tx.read(item::data(place) + byte, &mut had)?;
        if had[0] >> shift & 1 == bit {
            // Nothing changes.
            reply.integer(i64::from(bit));
            return Ok(());
        }
    }
    change_bytes(db, tx, &name, found, byte + 1, |tx, at| {
        let mut had = [0];
        tx.read(at + byte, &mut had)?;
        old = had[0] >> shift & 1;
        tx.write(at + byte, &[had[0] & !(1 << shift) | bit << shift])
    })?;
    reply.integer(i64::from(old));
    Ok(())
}

/// GETBIT key offset
pub fn getbit(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let offset = bit_offset(db, &words[2])?;
    let mut byte = [0];
    if let Some((place, head)) = db.string(from, &Name::of(&words[1]))?
        && offset / 8 < u64::from(head.length)
    {
        from.read(item::data(place) + offset / 8, &mut byte)?;
    }
    reply.integer(i64::from(byte[0] >> (7 - offset % 8) & 1));
    Ok(())
}

/// The bits that `start end [BYTE|BIT]` name, as a range of bits.
fn bit_range(words: &[Vec<u8>], length: u64) -> Outcome<std::ops::Range<u64>> {
    let by_bits = match words.get(2) {
        None => false,
        Some(unit) if is(unit, "bit") => true,
        Some(unit) if is(unit, "byte") => false,
        Some(_) => return refuse(SYNTAX),
    };
    let start = integer(&words[0])?;
    let stop = words.get(1).map_or(Ok(-1), |word| integer(word))?;
    if start < 0 && stop < 0 && start > stop {
        return Ok(0..0);
    }
    let clamp = |at: i64, length: i64| if at < 0 { at.saturating_add(length).max(0) } else { at };
    let whole = if by_bits { 8 * length } else { length };
    let range = part(clamp(start, whole as i64), clamp(stop, whole as i64), whole);
    Ok(if by_bits { range } else { 8 * range.start..8 * range.end })
}

/// A byte of which only the bits of a range count, the others being `fill`.
fn masked(bytes: &[u8], at: u64, range: &std::ops::Range<u64>, fill: bool) -> u8 {
    let mut byte = bytes[at as usize];
    let head = range.start.saturating_sub(8 * at).min(8);
    let tail = (8 * at + 8).saturating_sub(range.end).min(8);
    let outside = !(((0xffu16 >> head) as u8) & ((0xffu16 << tail) as u8));
    byte = if fill { byte | outside } else { byte & !outside };
    byte
}

/// BITCOUNT key [start end [BYTE|BIT]]
pub fn bitcount(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let found = db.string(from, &Name::of(&words[1]))?;
    if found.is_none() {
        reply.integer(0);
        return Ok(());
    }
    if !matches!(words.len(), 2 | 4 | 5) {
        return refuse(SYNTAX);
    }
    let bytes = found.map_or(Ok(Vec::new()), |found| value(from, found))?;
    let length = bytes.len() as u64;
    let range = if words.len() == 2 { 0..8 * length } else { bit_range(&words[2..], length)? };
    let touched = if range.is_empty() { 0..0 } else { range.start / 8..range.end.div_ceil(8) };
    let ones: u32 = touched.map(|at| masked(&bytes, at, &range, false).count_ones()).sum();
    reply.integer(i64::from(ones));
    Ok(())
}

/// BITPOS key bit [start [end [BYTE|BIT]]]
pub fn bitpos(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let one = match integer(&words[2])? {
        0 => false,
        1 => true,
        _ => return refuse("ERR The bit argument must be 1 or 0."),
    };
    let found = db.string(from, &Name::of(&words[1]))?;
    // As Redis: of a key that is not there, nothing is asked of the other words.
    let Some(found) = found else {
        reply.integer(if one { -1 } else { 0 });
        return Ok(());
    };
    if words.len() > 6 {
        return refuse(SYNTAX);
    }
    let bytes = value(from, found)?;
    let range = if words.len() == 3 { 0..8 * bytes.len() as u64 } else { bit_range(&words[3..], bytes.len() as u64)? };
    let touched = if range.is_empty() { 0..0 } else { range.start / 8..range.end.div_ceil(8) };
    let place = touched.into_iter().find_map(|at| {
        let byte = masked(&bytes, at, &range, !one);
        let zeros = if one { byte.leading_zeros() } else { byte.leading_ones() };
        (zeros < 8).then(|| (8 * at + u64::from(zeros)) as i64)
    });
    // Behind a string without an end there are zeros.
    let none = if one || words.len() > 4 || range.is_empty() { -1 } else { range.end as i64 };
    reply.integer(place.unwrap_or(none));
    Ok(())
}

/// BITOP AND|OR|XOR|NOT destination key ...
pub fn bitop(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let not = is(&words[1], "not");
    let operation: fn(u8, u8) -> u8 = match words[1].to_ascii_lowercase().as_slice() {
        b"and" => |a, b| a & b,
        b"or" => |a, b| a | b,
        b"xor" => |a, b| a ^ b,
        b"not" if words.len() > 4 => return refuse("ERR BITOP NOT must be called with a single source key."),
        b"not" => |a, _| a,
        _ => return refuse(SYNTAX),
    };
    let mut rows = Vec::new();
    for word in &words[3..] {
        rows.push(db.string(tx, &Name::of(word))?.map_or(Ok(Vec::new()), |found| value(tx, found))?);
    }
    let length = rows.iter().map(Vec::len).max().unwrap_or(0);
    let at = |row: &Vec<u8>, index: usize| row.get(index).copied().unwrap_or(0);
    let result: Vec<u8> = (0..length)
        .map(|index| {
            let joined = rows[1..].iter().fold(at(&rows[0], index), |sum, row| operation(sum, at(row, index)));
            if not { !joined } else { joined }
        })
        .collect();
    let name = Name::of(&words[2]);
    if result.is_empty() {
        db.remove(tx, &name)?;
    } else {
        put(db, tx, &name, &result, 0)?;
    }
    reply.integer(length as i64);
    Ok(())
}
