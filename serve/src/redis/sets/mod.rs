//! Commands of sets.
//!
//! | file | holds |
//! |---|---|
//! | `algebra.rs` | unions, intersections, differences |
//! | `draw.rs` | members by chance |

mod algebra;
mod draw;

pub use algebra::{algebra, algebra_store, sintercard};
pub use draw::{drawn_count, each_drawn, spop, srandmember};

use nearpm::prelude::*;

use super::db::{Db, ELEMENT, Found, Kind, Outcome, Set};
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
    if added > 0 {
        db.resize(tx, &name, item, (bytes, 0), 1)?;
    }
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
        if removed > 0 {
            db.resize(tx, &name, item, (0, bytes), left)?;
        }
    }
    reply.integer(removed);
    Ok(())
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

/// SMISMEMBER key member ...
pub fn smismember(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let found = set(db, from, &Name::of(&words[1]))?;
    reply.array(words.len() - 2);
    for member in &words[2..] {
        let is = found.as_ref().map_or(Ok(false), |found| found.body.contains_key(from, &Name::of(member)))?;
        reply.integer(i64::from(is));
    }
    Ok(())
}

/// SMOVE source destination member
pub fn smove(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (source, target, member) = (Name::of(&words[1]), Name::of(&words[2]), Name::of(&words[3]));
    let Some(Found { item, body }) = set(db, tx, &source)? else {
        reply.integer(0);
        return Ok(());
    };
    set(db, tx, &target)?;
    let there = body.contains_key(tx, &member)?;
    if there && source != target {
        body.remove(tx, &member)?;
        let left = body.len(tx)?;
        db.resize(tx, &source, item, (0, weight(&member.bytes)), left)?;
        let Found { item, body } = db.collection_or_new::<Set>(tx, &target, Kind::Set)?;
        if body.insert(tx, &member, 0)?.is_none() {
            db.resize(tx, &target, item, (weight(&member.bytes), 0), 1)?;
        }
    }
    reply.integer(i64::from(there));
    Ok(())
}
