//! Commands of keys, whatever they lead to.

use nearpm::prelude::*;

use super::db::{Db, Kind, Outcome, Owned, SYNTAX, integer, is, refuse};
use super::reply::Reply;
use crate::glob::matches;
use crate::store::{Name, expired};

/// DEL, UNLINK key ...
pub fn del(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let mut removed = 0;
    for word in &words[1..] {
        let name = Name::of(word);
        let lived = db.item(tx, &name)?.is_some();
        db.keys.remove::<Owned>(tx, &name)?;
        removed += i64::from(lived);
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
pub fn select(words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    match integer(&words[1])? {
        0 => reply.simple("OK"),
        _ => return refuse("ERR DB index is out of range"),
    }
    Ok(())
}

/// DBSIZE
pub fn dbsize(db: &Db<'_>, from: &impl Load, reply: &mut Reply<'_>) -> Outcome {
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

/// SCAN cursor [MATCH pattern] [COUNT n] [TYPE kind]. The cursor is a hash: each key that is there from the first call to the last is given.
pub fn scan(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let cursor = std::str::from_utf8(&words[1]).ok().and_then(|text| text.parse().ok());
    let Some(cursor) = cursor else { return refuse("ERR invalid cursor") };
    let (mut pattern, mut count, mut wanted) = (None, 10, None);
    let mut options = words[2..].iter();
    while let Some(option) = options.next() {
        let Some(value) = options.next() else { return refuse(SYNTAX) };
        if is(option, "match") {
            pattern = Some(value);
        } else if is(option, "count") {
            count = integer(value)?;
            if count < 1 {
                return refuse(SYNTAX);
            }
        } else if is(option, "type") {
            wanted = Some(value.to_ascii_lowercase());
        } else {
            return refuse(SYNTAX);
        }
    }
    let (next, found) = db.keys.scan(from, cursor, count.min(1 << 20) as usize)?;
    let mut given = Vec::new();
    for (name, item) in found {
        let kind = Kind::of(&item)?.name();
        if !expired(item.expires, db.keys.now_ms)
            && pattern.is_none_or(|pattern| matches(pattern, &name.bytes))
            && wanted.as_ref().is_none_or(|wanted| wanted == kind.as_bytes())
        {
            given.push(name);
        }
    }
    reply.array(2);
    reply.bulk(next.to_string().as_bytes());
    reply.array(given.len());
    given.iter().for_each(|name| reply.bulk(&name.bytes));
    Ok(())
}

/// FLUSHALL, FLUSHDB [ASYNC|SYNC]
pub fn flush(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    match &words[1..] {
        [] => {}
        [option] if is(option, "async") || is(option, "sync") => {}
        _ => return refuse(SYNTAX),
    }
    db.keys.clear::<Owned>(tx)?;
    reply.simple("OK");
    Ok(())
}
