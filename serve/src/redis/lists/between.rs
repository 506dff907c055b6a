//! LMOVE, RPOPLPUSH, LMPOP, and what waits for elements: BLPOP, BRPOP, BLMOVE, BRPOPLPUSH, BLMPOP.

use nearpm::prelude::*;

use super::edit::end_of;
use super::ends::pop_many;
use super::{is_left, list};
use crate::redis::db::{Db, Found, Kind, List, Outcome};
use crate::redis::elements::list::{pop_one, push_all};
use crate::redis::reply::Reply;
use crate::redis::words::{Pops, keys_and_patience, looked_at, or_nothing, patience, pops};
use crate::store::Name;

/// Moves an element; `None` if there is none.
fn move_one(db: &Db<'_>, tx: &mut impl Store, keys: (&[u8], &[u8]), ends: (bool, bool)) -> Outcome<Option<Vec<u8>>> {
    let (source, target) = (Name::of(keys.0), Name::of(keys.1));
    let Some(Found { item, body }) = list(db, tx, &source)? else { return Ok(None) };
    list(db, tx, &target)?;
    let Some((value, less)) = pop_one(tx, body, ends.0)? else { return Ok(None) };
    if source == target {
        let more = push_all(tx, body, ends.1, std::slice::from_ref(&value))?;
        db.resize(tx, &source, item, (more, less), 1)?;
        return Ok(Some(value));
    }
    let left = body.len(tx)?;
    db.resize(tx, &source, item, (0, less), left)?;
    let Found { item, body } = db.collection_or_new::<List>(tx, &target, Kind::List)?;
    let more = push_all(tx, body, ends.1, std::slice::from_ref(&value))?;
    db.resize(tx, &target, item, (more, 0), 1)?;
    Ok(Some(value))
}

/// LMOVE source destination LEFT|RIGHT LEFT|RIGHT
pub fn lmove(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let ends = (end_of(&words[3])?, end_of(&words[4])?);
    let moved = move_one(db, tx, (&words[1], &words[2]), ends)?;
    reply.bulk_or_null(moved.as_deref());
    Ok(())
}

/// RPOPLPUSH source destination
pub fn rpoplpush(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let moved = move_one(db, tx, (&words[1], &words[2]), (false, true))?;
    reply.bulk_or_null(moved.as_deref());
    Ok(())
}

/// BLMOVE source destination LEFT|RIGHT LEFT|RIGHT seconds
pub fn blmove(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], _: Option<&[u8]>, reply: &mut Reply<'_>) -> Outcome {
    let ends = (end_of(&words[3])?, end_of(&words[4])?);
    patience(&words[5])?;
    if let Some(value) = move_one(db, tx, (&words[1], &words[2]), ends)? {
        reply.bulk(&value);
    }
    Ok(())
}

/// BRPOPLPUSH source destination seconds
pub fn brpoplpush(
    db: &Db<'_>,
    tx: &mut impl Store,
    words: &[Vec<u8>],
    _: Option<&[u8]>,
    reply: &mut Reply<'_>,
) -> Outcome {
    patience(&words[3])?;
    if let Some(value) = move_one(db, tx, (&words[1], &words[2]), (false, true))? {
        reply.bulk(&value);
    }
    Ok(())
}

/// BLPOP, BRPOP key ... seconds
pub fn bpop(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], key: Option<&[u8]>, reply: &mut Reply<'_>) -> Outcome {
    for word in keys_and_patience(words, key)? {
        let name = Name::of(word);
        if let Some(found) = list(db, tx, &name)? {
            reply.array(2);
            reply.bulk(word);
            return pop_many(db, tx, &name, &found, (is_left(words), 1), reply);
        }
    }
    Ok(())
}

/// `numkeys key ... LEFT|RIGHT [COUNT n]`: pops from the first list that is there; whether there
/// was one.
fn pop_first(
    db: &Db<'_>,
    tx: &mut impl Store,
    words: &[Vec<u8>],
    key: Option<&[u8]>,
    reply: &mut Reply<'_>,
) -> Outcome<bool> {
    let Pops { keys, first: left, count } = pops(words, ["left", "right"])?;
    for word in looked_at(keys, key) {
        let name = Name::of(word);
        let Some(found) = list(db, tx, &name)? else { continue };
        reply.array(2);
        reply.bulk(word);
        reply.array(found.body.len(tx)?.min(count) as usize);
        pop_many(db, tx, &name, &found, (left, count), reply)?;
        return Ok(true);
    }
    Ok(false)
}

/// LMPOP numkeys key ... LEFT|RIGHT [COUNT n]
pub fn lmpop(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let found = pop_first(db, tx, &words[1..], None, reply)?;
    or_nothing(found, reply);
    Ok(())
}

/// BLMPOP seconds numkeys key ... LEFT|RIGHT [COUNT n]
pub fn blmpop(
    db: &Db<'_>,
    tx: &mut impl Store,
    words: &[Vec<u8>],
    key: Option<&[u8]>,
    reply: &mut Reply<'_>,
) -> Outcome {
    patience(&words[1])?;
    pop_first(db, tx, &words[2..], key, reply).map(drop)
}
