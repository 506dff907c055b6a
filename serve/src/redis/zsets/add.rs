//! ZADD, ZINCRBY, ZREM.

use nearpm::prelude::*;

use super::{score, zset};
use crate::redis::db::{Db, Found, Kind, Outcome, SYNTAX, ZSet, refuse};
use crate::redis::elements::zset::{put, take, weight};
use crate::redis::reply::Reply;
use crate::store::Name;

/// The options of ZADD.
#[derive(Clone, Copy, Default)]
struct Options {
    if_absent: bool,
    if_present: bool,
    if_greater: bool,
    if_less: bool,
    count_changes: bool,
    add: bool,
}

/// The options, and the words behind them.
fn options(words: &[Vec<u8>]) -> Outcome<(Options, &[Vec<u8>])> {
    let (mut options, mut rest) = (Options::default(), words);
    while let [word, behind @ ..] = rest {
        match word.to_ascii_lowercase().as_slice() {
            b"nx" => options.if_absent = true,
            b"xx" => options.if_present = true,
            b"gt" => options.if_greater = true,
            b"lt" => options.if_less = true,
            b"ch" => options.count_changes = true,
            b"incr" => options.add = true,
            _ => break,
        }
        rest = behind;
    }
    if rest.is_empty() || !rest.len().is_multiple_of(2) {
        return refuse(SYNTAX);
    }
    if options.if_absent && options.if_present {
        return refuse("ERR XX and NX options at the same time are not compatible");
    }
    if [options.if_absent, options.if_greater, options.if_less].iter().filter(|set| **set).count() > 1 {
        return refuse("ERR GT, LT, and/or NX options at the same time are not compatible");
    }
    if options.add && rest.len() > 2 {
        return refuse("ERR INCR option supports a single increment-element pair");
    }
    Ok((options, rest))
}

impl Options {
    /// The score that a member gets; `None` if it keeps what it has.
    fn new_score(self, had: Option<f64>, given: f64) -> Outcome<Option<f64>> {
        if self.if_absent && had.is_some() || self.if_present && had.is_none() {
            return Ok(None);
        }
        let Some(had) = had else { return Ok(Some(given)) };
        let score = if self.add { had + given } else { given };
        if score.is_nan() {
            return refuse("ERR resulting score is not a number (NaN)");
        }
        let refused = self.if_greater && score <= had || self.if_less && score >= had;
        Ok(Some(score).filter(|_| !refused))
    }
}

/// ZADD key [NX|XX] [GT|LT] [CH] [INCR] score member ...
pub fn zadd(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (options, pairs) = options(&words[2..])?;
    let pairs = pairs.chunks_exact(2).map(|pair| Ok((score(&pair[0])?, &pair[1]))).collect::<Outcome<Vec<_>>>()?;
    let name = Name::of(&words[1]);
    let (mut added, mut changed, mut bytes, mut last) = (0, 0, 0, None);
    if !options.if_present || zset(db, tx, &name)?.is_some() {
        let Found { item, body } = db.collection_or_new::<ZSet>(tx, &name, Kind::ZSet)?;
        for (given, member) in pairs {
            let had = body.scores().get(tx, &Name::of(member))?.map(f64::from_bits);
            last = options.new_score(had, given)?;
            let Some(score) = last.filter(|score| had != Some(*score)) else { continue };
            changed += 1;
            if put(tx, body, member, score)? {
                (added, bytes) = (added + 1, bytes + weight(member));
            }
        }
        if changed > 0 {
            db.resize(tx, &name, item, (bytes, 0), 1)?;
        }
    }
    match (options.add, last) {
        (true, Some(score)) => reply.double(score),
        (true, None) => reply.null(),
        _ => reply.integer(if options.count_changes { changed } else { added }),
    }
    Ok(())
}

/// ZINCRBY key number member
pub fn zincrby(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (name, by, member) = (Name::of(&words[1]), score(&words[2])?, &words[3]);
    let had = match zset(db, tx, &name)? {
        Some(found) => found.body.scores().get(tx, &Name::of(member))?.map_or(0.0, f64::from_bits),
        None => 0.0,
    };
    let sum = had + by;
    if sum.is_nan() {
        return refuse("ERR resulting score is not a number (NaN)");
    }
    let Found { item, body } = db.collection_or_new::<ZSet>(tx, &name, Kind::ZSet)?;
    let bytes = if put(tx, body, member, sum)? { weight(member) } else { 0 };
    db.resize(tx, &name, item, (bytes, 0), 1)?;
    reply.double(sum);
    Ok(())
}

/// ZREM key member ...
pub fn zrem(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let name = Name::of(&words[1]);
    let removed = match zset(db, tx, &name)? {
        Some(found) => remove(db, tx, &name, found, &words[2..])?,
        None => 0,
    };
    reply.integer(removed);
    Ok(())
}

/// Removes members; gives how many were there.
pub fn remove(
    db: &Db<'_>,
    tx: &mut impl Store,
    name: &Name,
    Found { item, body }: Found<ZSet>,
    members: &[Vec<u8>],
) -> Outcome<i64> {
    let (mut removed, mut bytes) = (0, 0);
    for member in members {
        if take(tx, body, member)? {
            (removed, bytes) = (removed + 1, bytes + weight(member));
        }
    }
    if removed > 0 {
        let left = body.scores().len(tx)?;
        db.resize(tx, name, item, (0, bytes), left)?;
    }
    Ok(removed)
}
