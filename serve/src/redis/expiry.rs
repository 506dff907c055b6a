//! When keys expire: always kept as a moment, so that it means the same after a restart.

use nearpm::prelude::*;

use super::db::{Db, Outcome, refuse};
use super::reply::Reply;
use super::words::{integer, is};
use crate::store::Name;

/// What a time in a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// From now on.
    Seconds,
    /// From now on.
    Milliseconds,
    /// Since 1970.
    SecondsSince,
    /// Since 1970.
    MillisecondsSince,
}

impl Unit {
    /// Of an option of SET.
    pub fn of_option(word: &[u8]) -> Option<Unit> {
        let options = [
            ("ex", Unit::Seconds),
            ("px", Unit::Milliseconds),
            ("exat", Unit::SecondsSince),
            ("pxat", Unit::MillisecondsSince),
        ];
        options.into_iter().find(|(name, _)| is(word, name)).map(|(_, unit)| unit)
    }
}

/// The moment that a time names, in milliseconds since 1970; one in the past is 1. `None` if there
/// is no such moment.
pub fn moment(now_ms: u64, time: i64, unit: Unit) -> Option<u64> {
    let time = match unit {
        Unit::Seconds | Unit::SecondsSince => time.checked_mul(1000)?,
        _ => time,
    };
    let since = match unit {
        Unit::Seconds | Unit::Milliseconds => time.checked_add(i64::try_from(now_ms).ok()?)?,
        _ => time,
    };
    Some(u64::try_from(since).unwrap_or(1).max(1))
}

/// EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT key time [NX|XX|GT|LT]
pub fn expire(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let name = words[0].to_ascii_lowercase();
    let (unit, refusal) = match name.as_slice() {
        b"expire" => (Unit::Seconds, "ERR invalid expire time in 'expire' command"),
        b"pexpire" => (Unit::Milliseconds, "ERR invalid expire time in 'pexpire' command"),
        b"expireat" => (Unit::SecondsSince, "ERR invalid expire time in 'expireat' command"),
        _ => (Unit::MillisecondsSince, "ERR invalid expire time in 'pexpireat' command"),
    };
    let (mut nx, mut xx, mut gt, mut lt) = (false, false, false, false);
    for option in &words[3..] {
        match option.to_ascii_lowercase().as_slice() {
            b"nx" => nx = true,
            b"xx" => xx = true,
            b"gt" => gt = true,
            b"lt" => lt = true,
            _ => {
                let text = format!("ERR Unsupported option {}", String::from_utf8_lossy(option));
                return Err(super::db::Refusal::Say(text.into()));
            }
        }
    }
    if nx && (xx || gt || lt) {
        return refuse("ERR NX and XX, GT or LT options at the same time are not compatible");
    }
    if gt && lt {
        return refuse("ERR GT and LT options at the same time are not compatible");
    }
    let Some(at) = moment(db.keys.now_ms, integer(&words[2])?, unit) else { return refuse(refusal) };
    let name = Name::of(&words[1]);
    let Some((item, head)) = db.item(tx, &name)? else {
        reply.integer(0);
        return Ok(());
    };
    let has = head.expires;
    // A key that never expires does so later than every other.
    let refused = nx && has != 0 || xx && has == 0 || gt && (has == 0 || at <= has) || lt && has != 0 && at >= has;
    if !refused && at <= db.keys.now_ms {
        db.remove(tx, &name)?;
    } else if !refused {
        db.keys.expire(tx, &name, item, at)?;
        db.touched(&name);
    }
    reply.integer(i64::from(!refused));
    Ok(())
}

/// PERSIST key
pub fn persist(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let name = Name::of(&words[1]);
    let found = db.item(tx, &name)?.filter(|(_, head)| head.expires != 0);
    if let Some((item, _)) = found {
        db.keys.expire(tx, &name, item, 0)?;
        db.touched(&name);
    }
    reply.integer(i64::from(found.is_some()));
    Ok(())
}

/// TTL, PTTL, EXPIRETIME, PEXPIRETIME key
pub fn ttl(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let left = match db.item(from, &Name::of(&words[1]))? {
        None => -2,
        Some((_, head)) if head.expires == 0 => -1,
        Some((_, head)) => {
            let left = head.expires.saturating_sub(db.keys.now_ms) as i64;
            match words[0].to_ascii_lowercase().as_slice() {
                b"ttl" => left.saturating_add(500) / 1000,
                b"pttl" => left,
                b"expiretime" => (head.expires as i64).saturating_add(500) / 1000,
                _ => head.expires as i64,
            }
        }
    };
    reply.integer(left);
    Ok(())
}
