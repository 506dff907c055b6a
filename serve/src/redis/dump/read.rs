//! All forms of values. What contradicts itself is none.

use super::input::Input;
use super::packed::{decompress, integers, listpack, ziplist, zipmap};
use super::write::kind;
use crate::redis::value::Value;

/// Bytes of a string that was compressed, at most.
const MOST_BYTES: usize = 512 << 20;

impl Input<'_> {
    /// A length; `Err` has the number of a special form of a string.
    fn length_or_form(&mut self) -> Option<Result<usize, u8>> {
        let first = self.byte()?;
        Some(match first >> 6 {
            0 => Ok(usize::from(first & 0x3f)),
            1 => Ok(usize::from(first & 0x3f) << 8 | usize::from(self.byte()?)),
            2 if first == 0x80 => Ok(self.big(4)? as usize),
            2 if first == 0x81 => Ok(usize::try_from(self.big(8)?).ok()?),
            2 => return None,
            _ => Err(first & 0x3f),
        })
    }

    fn length(&mut self) -> Option<usize> {
        self.length_or_form()?.ok()
    }

    fn text(&mut self) -> Option<Vec<u8>> {
        let number = |number: i64| Some(number.to_string().into_bytes());
        match self.length_or_form()? {
            Ok(length) => self.take(length).map(<[u8]>::to_vec),
            Err(0) => number(i64::from(self.byte()? as i8)),
            Err(1) => number(i64::from(self.little(2)? as i16)),
            Err(2) => number(i64::from(self.little(4)? as i32)),
            Err(3) => {
                let (packed, length) = (self.length()?, self.length()?);
                decompress(self.take(packed)?, length).filter(|_| length <= MOST_BYTES)
            }
            Err(_) => None,
        }
    }

    fn double(&mut self) -> Option<f64> {
        Some(f64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// A score of the form before Redis 4: text, or a mark.
    fn old_double(&mut self) -> Option<f64> {
        match self.byte()? {
            255 => Some(f64::NEG_INFINITY),
            254 => Some(f64::INFINITY),
            253 => None,
            length => std::str::from_utf8(self.take(usize::from(length))?).ok()?.parse().ok(),
        }
    }

    /// So many of something; the room is taken as they come, since a length may say what is not
    /// there.
    fn rows<T>(&mut self, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.length()?;
        let mut rows = Vec::new();
        for _ in 0..count {
            rows.push(one(self)?);
        }
        Some(rows)
    }

    /// The pieces of a list, each a listpack or one element.
    fn quicklist(&mut self) -> Option<Vec<Vec<u8>>> {
        let pieces = self.rows(|input| Some((input.length()?, input.text()?)))?;
        let mut rows = Vec::new();
        for (container, piece) in pieces {
            match container {
                1 => rows.push(piece),
                2 => rows.extend(listpack(&piece)?),
                _ => return None,
            }
        }
        Some(rows)
    }
}

fn pairs(rows: Vec<Vec<u8>>) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let even = rows.len().is_multiple_of(2);
    let mut rows = rows.into_iter();
    let pairs = std::iter::from_fn(|| Some((rows.next()?, rows.next()?)));
    Some(pairs.collect()).filter(|_| even)
}

fn scored(rows: Vec<Vec<u8>>) -> Option<Vec<(Vec<u8>, f64)>> {
    let score = |text: &[u8]| crate::redis::words::float(text);
    pairs(rows)?.into_iter().map(|(member, text)| Some((member, score(&text)?))).collect()
}

/// A value, its kind in front; nothing may be left behind it.
pub fn value(bytes: &[u8]) -> Option<Value> {
    let mut input = Input(bytes);
    let value = match input.byte()? {
        kind::STRING => Value::String(input.text()?),
        kind::LIST => Value::List(input.rows(Input::text)?),
        kind::SET => Value::Set(input.rows(Input::text)?),
        3 => Value::ZSet(input.rows(|input| Some((input.text()?, input.old_double()?)))?),
        kind::HASH => Value::Hash(input.rows(|input| Some((input.text()?, input.text()?)))?),
        kind::ZSET_2 => Value::ZSet(input.rows(|input| Some((input.text()?, input.double()?)))?),
        9 => Value::Hash(pairs(zipmap(&input.text()?)?)?),
        10 => Value::List(ziplist(&input.text()?)?),
        11 => Value::Set(integers(&input.text()?)?),
        12 => Value::ZSet(scored(ziplist(&input.text()?)?)?),
        13 => Value::Hash(pairs(ziplist(&input.text()?)?)?),
        14 => {
            let pieces = input.rows(Input::text)?;
            let rows = pieces.iter().map(|piece| ziplist(piece)).collect::<Option<Vec<_>>>()?;
            Value::List(rows.concat())
        }
        16 => Value::Hash(pairs(listpack(&input.text()?)?)?),
        17 => Value::ZSet(scored(listpack(&input.text()?)?)?),
        18 => Value::List(input.quicklist()?),
        _ => return None,
    };
    let sound = match &value {
        Value::ZSet(rows) => rows.iter().all(|(_, score)| !score.is_nan()),
        _ => true,
    };
    Some(value).filter(|value| sound && value.len() > 0 && input.0.is_empty())
}
