//! Commands of sets.

use nearpm::prelude::*;

use super::db::{Db, ELEMENT, Found, Kind, Outcome, Set, count_of, refuse};
use super::reply::Reply;
use crate::store::Name;

fn set(db: &Db<'_>, from: &impl Load, name: &Name) -> Outcome<Option<Found<Set>>> {
    db.collection(from, name, Kind::Set)
}

fn weight(member: &[u8]) -> u64 {
    ELEMENT + member.len() as u64
}

/// SADD key member ...
pub fn sadd(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let name = Name::of(&words[1]);
    let Found { item, body } = db.collection_or_new::<Set>(tx, &name, Kind::Set)?;
    let (mut added, mut bytes) = (0, 0);
    for member in &words[2..] {
        if body.insert(tx, &Name::of(member), 0)?.is_none() {
            (added, bytes) = (added + 1, bytes + weight(member));
        }
    }
    db.resize(tx, &name, item, (bytes, 0), 1)?;
    reply.integer(added);
    Ok(())
}

/// SREM key member ...
pub fn srem(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let name = Name::of(&words[1]);
    let (mut removed, mut bytes) = (0, 0);
    if let Some(Found { item, body }) = set(db, tx, &name)? {
        for member in &words[2..] {
            if body.remove(tx, &Name::of(member))?.is_some() {
                (removed, bytes) = (removed + 1, bytes + weight(member));
            }
        }
        let left = body.len(tx)?;
        db.resize(tx, &name, item, (0, bytes), left)?;
    }
    reply.integer(removed);
    Ok(())
}

/// Some member, drawn at random.
fn draw(from: &impl Load, body: Ptr<Set>) -> Result<Option<Name>, Error> {
    let drawn = Name::from_hash(rand::random());
    let behind = body.range(from, drawn..)?.next().transpose()?;
    Ok(match behind {
        Some((member, _)) => Some(member),
        None => body.first(from)?.map(|(member, _)| member),
    })
}

/// SPOP key [count]
pub fn spop(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    if words.len() > 3 {
        return refuse("ERR syntax error");
    }
    let count = count_of(words.get(2))?;
    let name = Name::of(&words[1]);
    let Some(Found { item, body }) = set(db, tx, &name)? else {
        if count.is_some() {
            reply.set(0)
        } else {
            reply.null()
        }
        return Ok(());
    };
    let length = body.len(tx)?;
    let taken = count.unwrap_or(1).min(length);
    if count.is_some() {
        reply.set(taken as usize);
    }
    let mut bytes = 0;
    for _ in 0..taken {
        let Some(member) = draw(tx, body)? else { break };
        body.remove(tx, &member)?;
        bytes += weight(&member.bytes);
        reply.bulk(&member.bytes);
    }
    Ok(db.resize(tx, &name, item, (0, bytes), length - taken)?)
}

/// SMEMBERS key
pub fn smembers(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let Some(Found { body, .. }) = set(db, from, &Name::of(&words[1]))? else {
        reply.set(0);
        return Ok(());
    };
    reply.set(body.len(from)? as usize);
    for member in body.iter(from)? {
        reply.bulk(&member?.0.bytes);
    }
    Ok(())
}

/// SISMEMBER key member
pub fn sismember(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let found = set(db, from, &Name::of(&words[1]))?;
    let is = found.map_or(Ok(false), |found| found.body.contains_key(from, &Name::of(&words[2])))?;
    reply.integer(i64::from(is));
    Ok(())
}

/// SCARD key
pub fn scard(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let length = set(db, from, &Name::of(&words[1]))?.map_or(Ok(0), |found| found.body.len(from))?;
    reply.integer(length as i64);
    Ok(())
}
