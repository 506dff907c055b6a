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

/// STRLEN key
pub fn strlen(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let found = db.string(from, &Name::of(&words[1]))?;
    reply.integer(found.map_or(0, |(_, head)| i64::from(head.length)));
    Ok(())
}

/// GETRANGE, SUBSTR key start end
pub fn getrange(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (start, stop) = (integer(&words[2])?, integer(&words[3])?);
    let found = db.string(from, &Name::of(&words[1]))?;
    let Some((place, head)) = found else {
        reply.bulk(b"");
        return Ok(());
    };
    let length = i64::from(head.length);
    // An end in front of the string is its first byte, but not if both are, in the wrong order.
    let clamp = |at: i64| if at < 0 { at.saturating_add(length).max(0) } else { at };
    let wrong = start < 0 && stop < 0 && start > stop;
    let (start, stop) = (clamp(start), clamp(stop).min(length - 1));
    if wrong || start > stop || length == 0 {
        reply.bulk(b"");
        return Ok(());
    }
    let mut bytes = vec![0; (stop - start + 1) as usize];
    from.read(item::data(place) + start as u64, &mut bytes)?;
    reply.bulk(&bytes);
    Ok(())
}

/// SETRANGE key offset value
pub fn setrange(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let offset = integer(&words[2])?;
    let Ok(offset) = u64::try_from(offset) else { return refuse("ERR offset is out of range") };
    let (name, more) = (Name::of(&words[1]), &words[3]);
    let found = db.string(tx, &name)?;
    let had = found.map_or(0, |(_, head)| u64::from(head.length));
    if more.is_empty() {
        reply.integer(had as i64);
        return Ok(());
    }
    let end = offset.saturating_add(more.len() as u64);
    db.check_length(end)?;
    change_bytes(db, tx, &name, found, end, |tx, at| tx.write(at + offset, more))?;
    reply.integer(had.max(end) as i64);
    Ok(())
}

/// Changes bytes of a string in their place, which is made as long as `length` first, with zeros.
pub fn change_bytes<S: Store>(
    db: &Db<'_>,
    tx: &mut S,
    name: &Name,
    found: Option<(Ptr<Item>, Item)>,
    length: u64,
    change: impl FnOnce(&mut S, u64) -> Result<(), Error>,
) -> Outcome {
    let (had, room) = found.map_or((0, 0), |(_, head)| (u64::from(head.length), u64::from(head.room)));
    let place = match found {
        Some((place, _)) if length <= had => {
            db.touched(name);
            place
        }
        Some((place, _)) if length <= room => {
            db.touched(name);
            tx.write(item::data(place) + had, &vec![0; (length - had) as usize])?;
            tx.set(place.length(), length as u32)?;
            place
        }
        _ => {
            let old = found.map_or(Ok(Vec::new()), |found| value(tx, found))?;
            let expires = found.map_or(0, |(_, head)| head.expires);
            let zeros = vec![0; length as usize - old.len()];
            db.put(tx, name, head(Kind::String, expires, 0), [&old, &zeros])?
        }
    };
    Ok(change(tx, item::data(place))?)
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

/// APPEND key value
pub fn append(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (name, more) = (Name::of(&words[1]), &words[2]);
    let found = db.string(tx, &name)?;
    let (had, expires) = found.map_or((0, 0), |(_, head)| (u64::from(head.length), head.expires));
    let length = had + more.len() as u64;
    db.check_length(length)?;
    match found {
        Some((place, head)) if length <= u64::from(head.room) => {
            tx.write(item::data(place) + had, more)?;
            tx.set(place.length(), length as u32)?;
            db.touched(&name);
        }
        Some(found) => {
            let old = value(tx, found)?;
            db.put(tx, &name, head(Kind::String, expires, 0), [&old, more])?;
        }
        None => put(db, tx, &name, more, 0)?,
    }
    reply.integer(length as i64);
    Ok(())
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
