//! Commands of keys, whatever they lead to.

use nearpm::prelude::*;

use super::db::{Db, Kind, Outcome, Owned, SYNTAX, refuse};
use super::reply::Reply;
use super::words::{integer, is};
use crate::glob::matches;
use crate::store::{Item, Name, expired};

/// DEL, UNLINK key ...
pub fn del(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let mut removed = 0;
    for word in &words[1..] {
        removed += i64::from(db.remove(tx, &Name::of(word))?);
    }
    reply.integer(removed);
    Ok(())
}

/// EXISTS, TOUCH key ...
pub fn exists(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let mut found = 0;
    for word in &words[1..] {
        found += i64::from(db.item(from, &Name::of(word))?.is_some());
    }
    reply.integer(found);
    Ok(())
}

/// TYPE key
pub fn kind(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let found = db.item(from, &Name::of(&words[1]))?;
    reply.simple(found.map_or(Ok("none"), |(_, item)| Kind::of(&item).map(Kind::name))?);
    Ok(())
}

/// SELECT database
pub fn select(_: &Db<'_>, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    match integer(&words[1])? {
        0 => reply.simple("OK"),
        _ => return refuse("ERR DB index is out of range"),
    }
    Ok(())
}

/// DBSIZE
pub fn dbsize(db: &Db<'_>, from: &impl Load, _: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    reply.integer(db.keys.len(from)? as i64);
    Ok(())
}

/// KEYS pattern
pub fn keys(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (_, found) = db.keys.scan(from, 0, usize::MAX)?;
    let live = |expires| !expired(expires, db.keys.now_ms);
    let found: Vec<_> =
        found.into_iter().filter(|(name, item)| live(item.expires) && matches(&words[1], &name.bytes)).collect();
    reply.array(found.len());
    found.iter().for_each(|(name, _)| reply.bulk(&name.bytes));
    Ok(())
}

/// FLUSHALL, FLUSHDB [ASYNC|SYNC]
pub fn flush(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    match &words[1..] {
        [] => {}
        [option] if is(option, "async") || is(option, "sync") => {}
        _ => return refuse(SYNTAX),
    }
    for key in db.state.watches.keys() {
        let name = Name::of(&key);
        if db.item(tx, &name)?.is_some() {
            db.touched(&name);
        }
    }
    db.keys.clear::<Owned>(tx)?;
    reply.simple("OK");
    Ok(())
}

/// RANDOMKEY
pub fn randomkey(db: &Db<'_>, from: &impl Load, _: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let live = |(name, item): (Name, Item)| (!expired(item.expires, db.keys.now_ms)).then_some(name);
    let mut drawn = None;
    // From a random hash on, where many may have expired, and at last from the first key on.
    for start in [rand::random(), rand::random(), 0] {
        let mut cursor = start;
        while drawn.is_none() {
            let (next, found) = db.keys.scan(from, cursor, 16)?;
            drawn = found.into_iter().find_map(live);
            cursor = next;
            if next == 0 {
                break;
            }
        }
    }
    reply.bulk_or_null(drawn.as_ref().map(|name| name.bytes.as_slice()));
    Ok(())
}

/// MOVE key database: there is only one.
pub fn move_(_: &Db<'_>, _: &impl Load, words: &[Vec<u8>], _: &mut Reply<'_>) -> Outcome {
    match integer(&words[2]) {
        Ok(0) => refuse("ERR source and destination objects are the same"),
        Ok(_) => refuse("ERR DB index is out of range"),
        Err(_) => refuse("ERR value is not an integer or out of range"),
    }
}
