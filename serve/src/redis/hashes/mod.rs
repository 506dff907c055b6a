//! Commands of hashes. `draw.rs` has fields by chance.

mod draw;

pub use draw::hrandfield;

use nearpm::prelude::*;

use super::db::{Db, ELEMENT, Found, Hash, Kind, OVERFLOW, Outcome, Refusal, refuse};
use super::elements::hash::put;
use super::numbers::add;
use super::reply::Reply;
use super::resp::number;
use super::words::{integer, is};
use crate::store::Name;

fn hash(db: &Db<'_>, from: &impl Load, name: &Name) -> Outcome<Option<Found<Hash>>> {
    db.collection(from, name, Kind::Hash)
}

/// HSET, HMSET key field value ...
pub fn hset(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let old_name = is(&words[0], "hmset");
    if !words.len().is_multiple_of(2) {
        let name = if old_name { "hmset" } else { "hset" };
        return Err(Refusal::Say(format!("ERR wrong number of arguments for '{name}' command").into()));
    }
    let name = Name::of(&words[1]);
    let Found { item, body } = db.collection_or_new::<Hash>(tx, &name, Kind::Hash)?;
    let (mut fresh, mut more, mut less) = (0, 0, 0);
    for pair in words[2..].chunks_exact(2) {
        let (new, bytes) = put(tx, body, &pair[0], &pair[1])?;
        (fresh, more, less) = (fresh + i64::from(new), more + bytes.0, less + bytes.1);
    }
    db.resize(tx, &name, item, (more, less), 1)?;
    if old_name {
        reply.simple("OK")
    } else {
        reply.integer(fresh)
    }
    Ok(())
}

/// HSETNX key field value
pub fn hsetnx(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let name = Name::of(&words[1]);
    let Found { item, body } = db.collection_or_new::<Hash>(tx, &name, Kind::Hash)?;
    let absent = !body.contains_key(tx, &Name::of(&words[2]))?;
    if absent {
        let (_, bytes) = put(tx, body, &words[2], &words[3])?;
        db.resize(tx, &name, item, bytes, 1)?;
    }
    reply.integer(i64::from(absent));
    Ok(())
}

/// HINCRBY key field number
pub fn hincrby(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (name, by) = (Name::of(&words[1]), integer(&words[3])?);
    let had = match hash(db, tx, &name)? {
        Some(found) => found.body.get(tx, &Name::of(&words[2]))?,
        None => None,
    };
    let had = match had {
        Some(had) => number(&had.read(tx)?).map_or_else(|| refuse("ERR hash value is not an integer"), Ok)?,
        None => 0,
    };
    let Some(sum) = had.checked_add(by) else { return refuse(OVERFLOW) };
    let Found { item, body } = db.collection_or_new::<Hash>(tx, &name, Kind::Hash)?;
    let (_, bytes) = put(tx, body, &words[2], sum.to_string().as_bytes())?;
    db.resize(tx, &name, item, bytes, 1)?;
    reply.integer(sum);
    Ok(())
}

/// HINCRBYFLOAT key field number
pub fn hincrbyfloat(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let name = Name::of(&words[1]);
    let Some(by) = super::words::float(&words[3]) else { return refuse("ERR value is not a valid float") };
    if by.is_infinite() {
        return refuse("ERR value is NaN or Infinity");
    }
    let had = match hash(db, tx, &name)? {
        Some(found) => found.body.get(tx, &Name::of(&words[2]))?,
        None => None,
    };
    let had = had.map_or(Ok(b"0".to_vec()), |had| had.read(tx))?;
    let sum = add(&had, &words[3], "ERR hash value is not a float")?;
    let Found { item, body } = db.collection_or_new::<Hash>(tx, &name, Kind::Hash)?;
    let (_, bytes) = put(tx, body, &words[2], sum.as_bytes())?;
    db.resize(tx, &name, item, bytes, 1)?;
    reply.bulk(sum.as_bytes());
    Ok(())
}

/// HSTRLEN key field
pub fn hstrlen(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let found = hash(db, from, &Name::of(&words[1]))?;
    let value = found.map_or(Ok(None), |found| found.body.get(from, &Name::of(&words[2])))?;
    reply.integer(value.map_or(Ok(0), |value| value.len(from))? as i64);
    Ok(())
}

/// HDEL key field ...
pub fn hdel(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let name = Name::of(&words[1]);
    let (mut removed, mut bytes) = (0, 0);
    if let Some(Found { item, body }) = hash(db, tx, &name)? {
        for field in &words[2..] {
            if let Some(value) = body.remove(tx, &Name::of(field))? {
                (removed, bytes) = (removed + 1, bytes + ELEMENT + field.len() as u64 + value.len(tx)?);
                value.release(tx)?;
            }
        }
        let left = body.len(tx)?;
        if removed > 0 {
            db.resize(tx, &name, item, (0, bytes), left)?;
        }
    }
    reply.integer(removed);
    Ok(())
}

fn give(from: &impl Load, body: Option<Ptr<Hash>>, field: &[u8], reply: &mut Reply<'_>) -> Result<(), Error> {
    match body.map_or(Ok(None), |body| body.get(from, &Name::of(field)))? {
        Some(value) => reply.bulk(&value.read(from)?),
        None => reply.null(),
    }
    Ok(())
}

/// HGET key field
pub fn hget(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let found = hash(db, from, &Name::of(&words[1]))?;
    Ok(give(from, found.map(|found| found.body), &words[2], reply)?)
}

/// HMGET key field ...
pub fn hmget(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let body = hash(db, from, &Name::of(&words[1]))?.map(|found| found.body);
    reply.array(words.len() - 2);
    words[2..].iter().try_for_each(|field| Ok(give(from, body, field, reply)?))
}

/// HGETALL, HKEYS, HVALS key
pub fn hgetall(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let found = hash(db, from, &Name::of(&words[1]))?;
    let (keys, values) = (!is(&words[0], "hvals"), !is(&words[0], "hkeys"));
    let length = found.as_ref().map_or(Ok(0), |found| found.body.len(from))? as usize;
    if keys && values {
        reply.map(length)
    } else {
        reply.array(length)
    }
    let Some(Found { body, .. }) = found else { return Ok(()) };
    for entry in body.iter(from)? {
        let (field, value) = entry?;
        if keys {
            reply.bulk(&field.bytes);
        }
        if values {
            reply.bulk(&value.read(from)?);
        }
    }
    Ok(())
}

/// HEXISTS key field
pub fn hexists(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let found = hash(db, from, &Name::of(&words[1]))?;
    let is = found.map_or(Ok(false), |found| found.body.contains_key(from, &Name::of(&words[2])))?;
    reply.integer(i64::from(is));
    Ok(())
}

/// HLEN key
pub fn hlen(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let length = hash(db, from, &Name::of(&words[1]))?.map_or(Ok(0), |found| found.body.len(from))?;
    reply.integer(length as i64);
    Ok(())
}
