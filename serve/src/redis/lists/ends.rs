//! LPUSH, RPUSH, LPUSHX, RPUSHX, LPOP, RPOP.

use nearpm::prelude::*;

use super::{is_left, list};
use crate::redis::db::{Db, Found, Kind, List, Outcome};
use crate::redis::elements::list::{pop_one, push_all};
use crate::redis::reply::Reply;
use crate::redis::words::{count_of, wrong_count};
use crate::store::Name;

/// LPUSH, RPUSH, LPUSHX, RPUSHX key element ...
pub fn push(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (name, if_there) = (Name::of(&words[1]), words[0].ends_with(b"x") || words[0].ends_with(b"X"));
    if if_there && list(db, tx, &name)?.is_none() {
        reply.integer(0);
        return Ok(());
    }
    let Found { item, body } = db.collection_or_new::<List>(tx, &name, Kind::List)?;
    let bytes = push_all(tx, body, is_left(words), &words[2..])?;
    let length = body.len(tx)?;
    db.resize(tx, &name, item, (bytes, 0), length)?;
    reply.integer(length as i64);
    Ok(())
}

/// Takes so many elements from an end, at most, and replies with each.
pub fn pop_many(
    db: &Db<'_>,
    tx: &mut impl Store,
    name: &Name,
    found: &Found<List>,
    (left, count): (bool, u64),
    reply: &mut Reply<'_>,
) -> Outcome {
    let length = found.body.len(tx)?;
    let mut bytes = 0;
    for _ in 0..count.min(length) {
        let Some((value, less)) = pop_one(tx, found.body, left)? else { break };
        reply.bulk(&value);
        bytes += less;
    }
    if count > 0 {
        let left = found.body.len(tx)?;
        db.resize(tx, name, found.item, (0, bytes), left)?;
    }
    Ok(())
}

/// LPOP, RPOP key [count]
pub fn pop(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    if words.len() > 3 {
        return wrong_count(&words[0]);
    }
    let count = count_of(words.get(2))?;
    let name = Name::of(&words[1]);
    let Some(found) = list(db, tx, &name)? else {
        if count.is_some() {
            reply.null_array()
        } else {
            reply.null()
        }
        return Ok(());
    };
    if let Some(count) = count {
        reply.array(found.body.len(tx)?.min(count) as usize);
    }
    pop_many(db, tx, &name, &found, (is_left(words), count.unwrap_or(1)), reply)
}
