//! Commands of strings.

use nearpm::prelude::*;

use super::db::{Db, Kind, Outcome, SYNTAX, head, refuse};
use super::expiry::{Unit, moment};
use super::reply::Reply;
use super::words::{integer, is};
use crate::store::{Item, Name, item};
use crate::tally::count;

/// Replies with the bytes of a string.
fn give(from: &impl Load, found: Option<(Ptr<Item>, Item)>, reply: &mut Reply<'_>) -> Outcome {
    let Some((place, head)) = found else {
        reply.null();
        return Ok(());
    };
    Ok(reply.bulk_with(head.length as usize, |out| item::append_value(from, place, head.length, out))?)
}

/// GET key
pub fn get(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let found = db.string(from, &Name::of(&words[1]))?;
    count(&db.tally.gets);
    db.tally.hits.set(db.tally.hits.get() + u64::from(found.is_some()));
    give(from, found, reply)
}

/// MGET key ...
pub fn mget(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    reply.array(words.len() - 1);
    for word in &words[1..] {
        let found = db.asked(from, &Name::of(word))?;
        give(from, found.filter(|(_, head)| head.tag == Kind::String as u32), reply)?;
    }
    Ok(())
}

/// The options of SET.
#[derive(Default)]
struct SetOptions {
    expires: Option<u64>,
    keep: bool,
    if_absent: bool,
    if_present: bool,
    get: bool,
}

/// The moment that an option names, which must not be in the past.
fn expiry_at(db: &Db<'_>, number: &[u8], unit: Unit, refusal: &'static str) -> Outcome<u64> {
    let time = integer(number)?;
    moment(db.keys.now_ms, time, unit).filter(|_| time > 0).map_or_else(|| refuse(refusal), Ok)
}

fn options(db: &Db<'_>, words: &[Vec<u8>]) -> Outcome<SetOptions> {
    let (mut options, mut words) = (SetOptions::default(), words.iter());
    while let Some(word) = words.next() {
        if is(word, "nx") {
            options.if_absent = true;
        } else if is(word, "xx") {
            options.if_present = true;
        } else if is(word, "get") {
            options.get = true;
        } else if is(word, "keepttl") {
            options.keep = true;
        } else if let (Some(unit), true) = (Unit::of_option(word), options.expires.is_none()) {
            let Some(number) = words.next() else { return refuse(SYNTAX) };
            options.expires = Some(expiry_at(db, number, unit, "ERR invalid expire time in 'set' command")?);
        } else {
            return refuse(SYNTAX);
        }
    }
    if options.if_absent && options.if_present || options.keep && options.expires.is_some() {
        return refuse(SYNTAX);
    }
    Ok(options)
}

/// Stores a string.
pub fn put(db: &Db<'_>, tx: &mut impl Store, name: &Name, value: &[u8], expires: u64) -> Outcome {
    count(&db.tally.sets);
    db.put(tx, name, head(Kind::String, expires, 0), [value, b""])?;
    Ok(())
}

/// SET key value [NX|XX] [GET] [EX n|PX n|EXAT n|PXAT n|KEEPTTL]
pub fn set(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (name, options) = (Name::of(&words[1]), options(db, &words[3..])?);
    let found = if options.get { db.string(tx, &name)? } else { db.item(tx, &name)? };
    if options.get {
        give(tx, found, reply)?;
    }
    if options.if_absent && found.is_some() || options.if_present && found.is_none() {
        if !options.get {
            reply.null();
        }
        return Ok(());
    }
    let kept = found.filter(|_| options.keep).map_or(0, |(_, head)| head.expires);
    put(db, tx, &name, &words[2], options.expires.unwrap_or(kept))?;
    if !options.get {
        reply.simple("OK");
    }
    Ok(())
}

/// SETEX and PSETEX key time value
pub fn setex(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let time = integer(&words[2])?;
    let (unit, refusal) = if is(&words[0], "setex") {
        (Unit::Seconds, "ERR invalid expire time in 'setex' command")
    } else {
        (Unit::Milliseconds, "ERR invalid expire time in 'psetex' command")
    };
    let Some(expires) = moment(db.keys.now_ms, time, unit).filter(|_| time > 0) else { return refuse(refusal) };
    put(db, tx, &Name::of(&words[1]), &words[3], expires)?;
    reply.simple("OK");
    Ok(())
}

/// SETNX key value
pub fn setnx(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let name = Name::of(&words[1]);
    let absent = db.item(tx, &name)?.is_none();
    if absent {
        put(db, tx, &name, &words[2], 0)?;
    }
    reply.integer(i64::from(absent));
    Ok(())
}

/// MSET key value ...
pub fn mset(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    if words.len().is_multiple_of(2) {
        return refuse("ERR wrong number of arguments for 'mset' command");
    }
    for pair in words[1..].chunks_exact(2) {
        put(db, tx, &Name::of(&pair[0]), &pair[1], 0)?;
    }
    reply.simple("OK");
    Ok(())
}

/// GETSET key value
pub fn getset(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let name = Name::of(&words[1]);
    let found = db.string(tx, &name)?;
    give(tx, found, reply)?;
    put(db, tx, &name, &words[2], 0)
}

/// GETDEL key
pub fn getdel(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let name = Name::of(&words[1]);
    let found = db.string(tx, &name)?;
    give(tx, found, reply)?;
    if found.is_some() {
        db.remove(tx, &name)?;
    }
    Ok(())
}

/// The bytes of a string.
pub fn value(from: &impl Load, found: (Ptr<Item>, Item)) -> Result<Vec<u8>, Error> {
    let mut value = Vec::with_capacity(found.1.length as usize);
    item::append_value(from, found.0, found.1.length, &mut value)?;
    Ok(value)
}

/// MSETNX key value ...
pub fn msetnx(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    if words.len().is_multiple_of(2) {
        return refuse("ERR wrong number of arguments for 'msetnx' command");
    }
    for pair in words[1..].chunks_exact(2) {
        if db.item(tx, &Name::of(&pair[0]))?.is_some() {
            reply.integer(0);
            return Ok(());
        }
    }
    for pair in words[1..].chunks_exact(2) {
        put(db, tx, &Name::of(&pair[0]), &pair[1], 0)?;
    }
    reply.integer(1);
    Ok(())
}

/// GETEX key [EX n|PX n|EXAT n|PXAT n|PERSIST]
pub fn getex(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let expires = match &words[2..] {
        [] => None,
        [option] if is(option, "persist") => Some(0),
        [option, _] if Unit::of_option(option).is_some() => None,
        _ => return refuse(SYNTAX),
    };
    let name = Name::of(&words[1]);
    let found = db.string(tx, &name)?;
    // As Redis: of a key that is not there, nothing is asked of the time.
    let expires = match (words.get(3), words.get(2).and_then(|option| Unit::of_option(option))) {
        (Some(number), Some(unit)) if found.is_some() => {
            Some(expiry_at(db, number, unit, "ERR invalid expire time in 'getex' command")?)
        }
        _ => expires,
    };
    give(tx, found, reply)?;
    let (Some((place, head)), Some(at)) = (found, expires) else { return Ok(()) };
    if at != 0 && at <= db.keys.now_ms {
        db.remove(tx, &name)?;
    } else if at != head.expires {
        db.keys.expire(tx, &name, place, at)?;
        db.touched(&name);
    }
    Ok(())
}
