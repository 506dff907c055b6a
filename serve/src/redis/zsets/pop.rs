//! ZPOPMIN, ZPOPMAX, ZMPOP, BZPOPMIN, BZPOPMAX, BZMPOP.

use nearpm::prelude::*;

use super::zset;
use crate::redis::db::{Db, Found, Outcome, ZSet};
use crate::redis::elements::zset::{take, weight};
use crate::redis::rank::ScoreKey;
use crate::redis::reply::Reply;
use crate::redis::words::{Pops, count_of, is, keys_and_patience, looked_at, or_nothing, patience, pops, wrong_count};
use crate::store::Name;

/// Takes so many members from an end, at most.
fn pop(
    db: &Db<'_>,
    tx: &mut impl Store,
    name: &Name,
    Found { item, body }: Found<ZSet>,
    (lowest, count): (bool, u64),
) -> Outcome<Vec<(Vec<u8>, f64)>> {
    let length = body.scores().len(tx)?;
    let (mut taken, mut bytes) = (Vec::new(), 0);
    for _ in 0..count.min(length) {
        let end = if lowest { body.order().first(tx)? } else { body.order().last(tx)? };
        let Some((ScoreKey { score, member }, _)) = end else { break };
        take(tx, body, &member)?;
        bytes += weight(&member);
        taken.push((member, score));
    }
    if !taken.is_empty() {
        db.resize(tx, name, item, (0, bytes), length - taken.len() as u64)?;
    }
    Ok(taken)
}

/// ZPOPMIN, ZPOPMAX key [count]
pub fn zpop(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    if words.len() > 3 {
        return wrong_count(&words[0]);
    }
    let count = count_of(words.get(2))?;
    let name = Name::of(&words[1]);
    let lowest = is(&words[0], "zpopmin");
    let taken = match zset(db, tx, &name)? {
        Some(found) => pop(db, tx, &name, found, (lowest, count.unwrap_or(1)))?,
        None => Vec::new(),
    };
    let pairs = reply.resp3() && count.is_some();
    reply.array(if pairs { taken.len() } else { 2 * taken.len() });
    for (member, score) in taken {
        if pairs {
            reply.array(2);
        }
        reply.bulk(&member);
        reply.double(score);
    }
    Ok(())
}

/// BZPOPMIN, BZPOPMAX key ... seconds
pub fn bzpop(
    db: &Db<'_>,
    tx: &mut impl Store,
    words: &[Vec<u8>],
    key: Option<&[u8]>,
    reply: &mut Reply<'_>,
) -> Outcome {
    for word in keys_and_patience(words, key)? {
        let name = Name::of(word);
        let Some(found) = zset(db, tx, &name)? else { continue };
        if let Some((member, score)) = pop(db, tx, &name, found, (is(&words[0], "bzpopmin"), 1))?.pop() {
            reply.array(3);
            reply.bulk(word);
            reply.bulk(&member);
            reply.double(score);
            return Ok(());
        }
    }
    Ok(())
}

/// `numkeys key ... MIN|MAX [COUNT n]`: pops from the first set that is there; whether there was
/// one.
fn pop_first(
    db: &Db<'_>,
    tx: &mut impl Store,
    words: &[Vec<u8>],
    key: Option<&[u8]>,
    reply: &mut Reply<'_>,
) -> Outcome<bool> {
    let Pops { keys, first: lowest, count } = pops(words, ["min", "max"])?;
    for word in looked_at(keys, key) {
        let name = Name::of(word);
        let Some(found) = zset(db, tx, &name)? else { continue };
        let taken = pop(db, tx, &name, found, (lowest, count))?;
        reply.array(2);
        reply.bulk(word);
        reply.array(taken.len());
        for (member, score) in taken {
            reply.array(2);
            reply.bulk(&member);
            reply.double(score);
        }
        return Ok(true);
    }
    Ok(false)
}

/// ZMPOP numkeys key ... MIN|MAX [COUNT n]
pub fn zmpop(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let found = pop_first(db, tx, &words[1..], None, reply)?;
    or_nothing(found, reply);
    Ok(())
}

/// BZMPOP seconds numkeys key ... MIN|MAX [COUNT n]
pub fn bzmpop(
    db: &Db<'_>,
    tx: &mut impl Store,
    words: &[Vec<u8>],
    key: Option<&[u8]>,
    reply: &mut Reply<'_>,
) -> Outcome {
    patience(&words[1])?;
    pop_first(db, tx, &words[2..], key, reply).map(drop)
}
