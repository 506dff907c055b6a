//! Commands of lists.

use nearpm::prelude::*;

use super::db::{Db, ELEMENT, Found, Kind, List, Outcome, count_of, integer, part};
use super::reply::Reply;
use crate::store::{Blob, Name};

fn list(db: &Db<'_>, from: &impl Load, name: &Name) -> Outcome<Option<Found<List>>> {
    db.collection(from, name, Kind::List)
}

/// Place of the first element, 0 for an empty list.
fn front(from: &impl Load, body: Ptr<List>) -> Result<i64, Error> {
    Ok(body.iter(from)?.next().transpose()?.map_or(0, |(place, _)| place))
}

/// LPUSH, RPUSH key element ...
pub fn push(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let name = Name::of(&words[1]);
    let Found { item, body } = db.collection_or_new::<List>(tx, &name, Kind::List)?;
    let left = words[0][0].eq_ignore_ascii_case(&b'l');
    let first = front(tx, body)?;
    let (mut at, step) = if left { (first - 1, -1) } else { (first + body.len(tx)? as i64, 1) };
    let mut bytes = 0;
    for element in &words[2..] {
        let blob = Blob::make(tx, element)?;
        body.insert(tx, &at, blob)?;
        bytes += ELEMENT + element.len() as u64;
        at += step;
    }
    let length = body.len(tx)?;
    db.resize(tx, &name, item, (bytes, 0), length)?;
    reply.integer(length as i64);
    Ok(())
}

/// LPOP, RPOP key [count]
pub fn pop(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    if words.len() > 3 {
        let name = if words[0][0].eq_ignore_ascii_case(&b'l') { "lpop" } else { "rpop" };
        let text = format!("ERR wrong number of arguments for '{name}' command");
        return Err(super::db::Refusal::Say(text.into()));
    }
    let count = count_of(words.get(2))?;
    let name = Name::of(&words[1]);
    let Some(Found { item, body }) = list(db, tx, &name)? else {
        if count.is_some() {
            reply.null_array()
        } else {
            reply.null()
        }
        return Ok(());
    };
    let length = body.len(tx)?;
    let taken = count.unwrap_or(1).min(length);
    if count.is_some() {
        reply.array(taken as usize);
    }
    let first = front(tx, body)?;
    let mut bytes = 0;
    for index in 0..taken as i64 {
        let at =
            if words[0][0].eq_ignore_ascii_case(&b'l') { first + index } else { first + length as i64 - 1 - index };
        let Some(element) = body.remove(tx, &at)? else { continue };
        let value = element.read(tx)?;
        reply.bulk(&value);
        bytes += ELEMENT + value.len() as u64;
        element.release(tx)?;
    }
    Ok(db.resize(tx, &name, item, (0, bytes), length - taken)?)
}

/// LLEN key
pub fn llen(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let length = list(db, from, &Name::of(&words[1]))?.map_or(Ok(0), |found| found.body.len(from))?;
    reply.integer(length as i64);
    Ok(())
}

/// LRANGE key start stop
pub fn lrange(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (start, stop) = (integer(&words[2])?, integer(&words[3])?);
    let Some(Found { body, .. }) = list(db, from, &Name::of(&words[1]))? else {
        reply.array(0);
        return Ok(());
    };
    let part = part(start, stop, body.len(from)?);
    reply.array((part.end - part.start) as usize);
    if part.is_empty() {
        return Ok(());
    }
    let first = front(from, body)?;
    for element in body.range(from, first + part.start as i64..first + part.end as i64)? {
        reply.bulk(&element?.1.read(from)?);
    }
    Ok(())
}

/// LINDEX key index
pub fn lindex(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let index = integer(&words[2])?;
    let Some(Found { body, .. }) = list(db, from, &Name::of(&words[1]))? else {
        reply.null();
        return Ok(());
    };
    let length = body.len(from)? as i64;
    let at = if index < 0 { index.saturating_add(length) } else { index };
    let element = if (0..length).contains(&at) { body.get(from, &(front(from, body)? + at))? } else { None };
    match element {
        Some(element) => reply.bulk(&element.read(from)?),
        None => reply.null(),
    }
    Ok(())
}
