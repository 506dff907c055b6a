//! DUMP and RESTORE: values as Redis serialises them, so that they can be moved between this server
//! and Redis.
//!
//! | file | holds |
//! |---|---|
//! | `write.rs` | the plain forms, which every Redis since 5 reads |
//! | `read.rs` | all forms that Redis 2.6 to 7.0 write, of strings, lists, sets, hashes, and sorted sets |
//! | `input.rs` | bytes one after the other |
//! | `packed.rs` | rows that Redis keeps in one piece of memory: listpacks, ziplists, sets of integers; compressed strings |

mod input;
mod packed;
pub(crate) mod read;
pub(crate) mod write;

use nearpm::prelude::*;

use super::db::{Db, Outcome, SYNTAX, refuse};
use super::expiry::{Unit, moment};
use super::reply::Reply;
use super::value::Value;
use super::words::integer;
use crate::store::Name;

/// Redis's version of the format: that of 7.0.
const VERSION: u16 = 10;

/// Bytes behind a value: the version and a checksum.
const TAIL: usize = 10;

/// The checksum of Redis.
fn checksum(bytes: &[u8]) -> u64 {
    const CRC: crc::Crc<u64> = crc::Crc::<u64>::new(&crc::CRC_64_REDIS);
    CRC.checksum(bytes)
}

/// A value as it is dumped.
fn serialise(value: &Value) -> Vec<u8> {
    let mut bytes = write::value(value);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&checksum(&bytes).to_le_bytes());
    bytes
}

/// DUMP key
pub fn dump(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    match db.asked(from, &Name::of(&words[1]))? {
        Some(found) => reply.bulk(&serialise(&Value::read(from, found)?)),
        None => reply.null(),
    }
    Ok(())
}

/// A dumped value, if its checksum is right and its version not newer than this one.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (body, tail) = bytes.split_at(bytes.len().checked_sub(TAIL)?);
    let (version, sum) = tail.split_at(2);
    let sum = u64::from_le_bytes(sum.try_into().ok()?);
    // As Redis: a checksum of zeros is none.
    let right = sum == 0 || checksum(&bytes[..bytes.len() - 8]) == sum;
    Some(body).filter(|_| u16::from_le_bytes([version[0], version[1]]) <= VERSION && right)
}

/// RESTORE key milliseconds value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ n]
pub fn restore(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (mut replace, mut absolute, mut options) = (false, false, words[4..].iter());
    while let Some(option) = options.next() {
        match option.to_ascii_lowercase().as_slice() {
            b"replace" => replace = true,
            b"absttl" => absolute = true,
            b"idletime" => {
                if integer(options.next().map_or_else(|| refuse(SYNTAX), Ok)?)? < 0 {
                    return refuse("ERR Invalid IDLETIME value, must be >= 0");
                }
            }
            b"freq" => {
                if !(0..=255).contains(&integer(options.next().map_or_else(|| refuse(SYNTAX), Ok)?)?) {
                    return refuse("ERR Invalid FREQ value, must be >= 0 and <= 255");
                }
            }
            _ => return refuse(SYNTAX),
        }
    }
    let name = Name::of(&words[1]);
    if !replace && db.item(tx, &name)?.is_some() {
        return refuse("BUSYKEY Target key name already exists.");
    }
    let time = integer(&words[2])?;
    if time < 0 {
        return refuse("ERR Invalid TTL value, must be >= 0");
    }
    let Some(body) = checked(&words[3]) else { return refuse("ERR DUMP payload version or checksum are wrong") };
    let Some(value) = read::value(body) else { return refuse("ERR Bad data format") };
    let unit = if absolute { Unit::MillisecondsSince } else { Unit::Milliseconds };
    let expires = if time == 0 { Some(0) } else { moment(db.keys.now_ms, time, unit) };
    let Some(expires) = expires else { return refuse("ERR invalid expire time in 'restore' command") };
    db.remove(tx, &name)?;
    // One that has expired meanwhile is not there.
    if expires == 0 || expires > db.keys.now_ms {
        value.store(db, tx, &name, expires)?;
        db.grown(&name);
    }
    reply.simple("OK");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..80)
    }

    fn value() -> impl Strategy<Value = Value> {
        let number = prop_oneof![Just(0.0), Just(f64::INFINITY), -1e9..1e9f64];
        prop_oneof![
            bytes().prop_map(Value::String),
            any::<i32>().prop_map(|number| Value::String(number.to_string().into_bytes())),
            prop::collection::vec(bytes(), 1..80).prop_map(Value::List),
            prop::collection::vec(bytes(), 1..9).prop_map(Value::Set),
            prop::collection::vec((bytes(), bytes()), 1..9).prop_map(Value::Hash),
            prop::collection::vec((bytes(), number), 1..9).prop_map(Value::ZSet),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in value()) {
            let bytes = serialise(&value);
            prop_assert_eq!(checked(&bytes).and_then(read::value), Some(value));
        }

        /// No bytes make it panic, or take more memory than they are worth.
        #[test]
        fn any_bytes(kind in 0u8..24, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read::value(&[&[kind], &bytes[..]].concat());
        }

        #[test]
        fn one_wrong_bit_is_noticed(value in value(), bit in any::<prop::sample::Index>()) {
            let mut bytes = serialise(&value);
            let bit = bit.index(8 * bytes.len());
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(checked(&bytes).is_none() || bytes.ends_with(&[0; 8]));
        }
    }
}
