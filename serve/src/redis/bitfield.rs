//! BITFIELD: integers of any width at any bit of a string.

use nearpm::prelude::*;

use super::db::{Db, Outcome, SYNTAX, refuse, refuse_with};
use super::ranges::change_bytes;
use super::reply::Reply;
use super::strings::value;
use super::words::{integer, is};
use crate::store::Name;

/// What happens to a number that does not fit.
#[derive(Clone, Copy, PartialEq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

#[derive(Clone, Copy)]
enum Action {
    Get,
    Set(i64),
    Add(i64),
}

struct Step {
    signed: bool,
    bits: u32,
    offset: u64,
    action: Action,
    overflow: Overflow,
}

const TYPE: &str = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.";

fn field_type(word: &[u8]) -> Outcome<(bool, u32)> {
    let signed = match word.first() {
        Some(b'i' | b'I') => true,
        Some(b'u' | b'U') => false,
        _ => return refuse(TYPE),
    };
    let bits = super::resp::number(&word[1..]).and_then(|bits| u32::try_from(bits).ok());
    let most = if signed { 64 } else { 63 };
    bits.filter(|bits| (1..=most).contains(bits)).map_or_else(|| refuse(TYPE), |bits| Ok((signed, bits)))
}

fn offset_of(db: &Db<'_>, word: &[u8], bits: u32) -> Outcome<u64> {
    let (digits, unit) = word.strip_prefix(b"#").map_or((word, 1), |rest| (rest, u64::from(bits)));
    let offset = integer(digits).ok().and_then(|at| u64::try_from(at).ok()).and_then(|at| at.checked_mul(unit));
    let fits = |offset: &u64| offset.saturating_add(u64::from(bits)).div_ceil(8) <= db.max_value;
    offset.filter(fits).map_or_else(|| refuse("ERR bit offset is not an integer or out of range"), Ok)
}

fn steps(db: &Db<'_>, words: &[Vec<u8>], read_only: bool) -> Outcome<Vec<Step>> {
    let (mut steps, mut rest, mut overflow) = (Vec::new(), words, Overflow::Wrap);
    while let Some(what) = rest.first() {
        let taken = match rest {
            [_, kind, ..] if is(what, "overflow") => {
                overflow = match kind.to_ascii_lowercase().as_slice() {
                    b"wrap" => Overflow::Wrap,
                    b"sat" => Overflow::Saturate,
                    b"fail" => Overflow::Fail,
                    _ => return refuse("ERR Invalid OVERFLOW type specified"),
                };
                2
            }
            [_, kind, at, ..] if is(what, "get") => {
                let (signed, bits) = field_type(kind)?;
                steps.push(Step { signed, bits, offset: offset_of(db, at, bits)?, action: Action::Get, overflow });
                3
            }
            [_, kind, at, number, ..] if is(what, "set") || is(what, "incrby") => {
                let (signed, bits) = field_type(kind)?;
                let (offset, number) = (offset_of(db, at, bits)?, integer(number)?);
                let action = if is(what, "set") { Action::Set(number) } else { Action::Add(number) };
                steps.push(Step { signed, bits, offset, action, overflow });
                4
            }
            _ => return refuse(SYNTAX),
        };
        if read_only && !is(what, "get") {
            return refuse_with("ERR BITFIELD_RO only supports the GET subcommand".to_owned());
        }
        rest = &rest[taken..];
    }
    Ok(steps)
}

impl Step {
    fn read(&self, bytes: &[u8]) -> i128 {
        let bit = |at: u64| bytes.get((at / 8) as usize).map_or(0, |byte| byte >> (7 - at % 8) & 1);
        let raw = (0..u64::from(self.bits)).fold(0i128, |sum, at| sum << 1 | i128::from(bit(self.offset + at)));
        if self.signed && raw >> (self.bits - 1) & 1 == 1 { raw - (1 << self.bits) } else { raw }
    }

    fn write(&self, bytes: &mut [u8], number: i128) {
        for at in 0..u64::from(self.bits) {
            let (bit, place) = (number >> (u64::from(self.bits) - 1 - at) & 1, self.offset + at);
            let byte = &mut bytes[(place / 8) as usize];
            *byte = *byte & !(0x80 >> (place % 8)) | (bit as u8) << (7 - place % 8);
        }
    }

    /// The number as it is stored; `None` if it may not be.
    fn fit(&self, number: i128) -> Option<i128> {
        let (least, most) = if self.signed {
            (-(1i128 << (self.bits - 1)), (1i128 << (self.bits - 1)) - 1)
        } else {
            (0, (1i128 << self.bits) - 1)
        };
        if (least..=most).contains(&number) {
            return Some(number);
        }
        match self.overflow {
            Overflow::Fail => None,
            Overflow::Saturate => Some(number.clamp(least, most)),
            Overflow::Wrap => {
                let raw = number.rem_euclid(1 << self.bits);
                Some(if raw > most { raw - (1 << self.bits) } else { raw })
            }
        }
    }
}

/// Runs the steps on the bytes, which grow as need be; whether they changed.
fn run(steps: &[Step], bytes: &mut Vec<u8>, reply: &mut Reply<'_>) -> bool {
    let mut changed = false;
    reply.array(steps.len());
    for step in steps {
        let had = step.read(bytes);
        let (stored, told) = match step.action {
            Action::Get => (None, Some(had)),
            // As Redis: a number that is set is taken as one of 64 bits without a sign if the field
            // has none.
            Action::Set(number) => {
                let number = if step.signed { i128::from(number) } else { i128::from(number as u64) };
                let fit = step.fit(number);
                (fit, fit.map(|_| had))
            }
            Action::Add(by) => {
                let fit = step.fit(had + i128::from(by));
                (fit, fit)
            }
        };
        let end = (step.offset + u64::from(step.bits)).div_ceil(8) as usize;
        if let Some(number) = stored {
            changed |= bytes.len() < end || number != had;
            bytes.resize(bytes.len().max(end), 0);
            step.write(bytes, number);
        }
        match told {
            Some(number) => reply.integer(number as i64),
            None => reply.null(),
        }
    }
    changed
}

/// BITFIELD key [GET type offset] [[OVERFLOW WRAP|SAT|FAIL] SET type offset value] [INCRBY type
/// offset increment] ...
pub fn bitfield(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (steps, name) = (steps(db, &words[2..], false)?, Name::of(&words[1]));
    let found = db.string(tx, &name)?;
    let mut bytes = found.map_or(Ok(Vec::new()), |found| value(tx, found))?;
    if run(&steps, &mut bytes, reply) {
        change_bytes(db, tx, &name, found, bytes.len() as u64, |tx, at| tx.write(at, &bytes))?;
    }
    Ok(())
}

/// BITFIELD_RO key [GET type offset] ...
pub fn bitfield_ro(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let steps = steps(db, &words[2..], true)?;
    let found = db.string(from, &Name::of(&words[1]))?;
    run(&steps, &mut found.map_or(Ok(Vec::new()), |found| value(from, found))?, reply);
    Ok(())
}
