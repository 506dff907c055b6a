//! Commands of sorted sets.

use nearpm::prelude::*;

use super::db::{Db, ELEMENT, Found, Kind, Outcome, SYNTAX, ZSet, integer, is, part, refuse};
use super::rank::Place;
use super::reply::{Reply, score_text};
use crate::store::Name;

fn zset(db: &Db<'_>, from: &impl Load, name: &Name) -> Outcome<Option<Found<ZSet>>> {
    db.collection(from, name, Kind::ZSet)
}

/// A member is kept twice.
fn weight(member: &[u8]) -> u64 {
    2 * (ELEMENT + member.len() as u64)
}

fn score(word: &[u8]) -> Outcome<f64> {
    let number = std::str::from_utf8(word).ok().and_then(|text| text.parse().ok());
    number.filter(|number: &f64| !number.is_nan()).map_or_else(|| refuse("ERR value is not a valid float"), Ok)
}

/// Gives a member a score; whether it is new.
fn put(tx: &mut impl Store, body: Ptr<ZSet>, member: &[u8], score: f64) -> Result<bool, Error> {
    let old = body.scores().insert(tx, &Name::of(member), score.to_bits())?;
    let place = |score| Place { score, member: member.to_vec() };
    if let Some(old) = old {
        body.order().remove(tx, &place(f64::from_bits(old)))?;
    }
    body.order().insert(tx, &place(score), 0)?;
    Ok(old.is_none())
}

/// Removes a member, whether it was there.
fn take(tx: &mut impl Store, body: Ptr<ZSet>, member: &[u8]) -> Result<bool, Error> {
    let Some(score) = body.scores().remove(tx, &Name::of(member))? else { return Ok(false) };
    body.order().remove(tx, &Place { score: f64::from_bits(score), member: member.to_vec() })?;
    Ok(true)
}

/// ZADD key [NX|XX] [CH] score member ...
pub fn zadd(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (mut first, mut nx, mut xx, mut ch) = (2, false, false, false);
    while let Some(word) = words.get(first) {
        match word.to_ascii_lowercase().as_slice() {
            b"nx" => nx = true,
            b"xx" => xx = true,
            b"ch" => ch = true,
            _ => break,
        }
        first += 1;
    }
    let pairs = &words[first..];
    if pairs.is_empty() || !pairs.len().is_multiple_of(2) {
        return refuse(SYNTAX);
    }
    if nx && xx {
        return refuse("ERR XX and NX options at the same time are not compatible");
    }
    let pairs = pairs.chunks_exact(2).map(|pair| Ok((score(&pair[0])?, &pair[1]))).collect::<Outcome<Vec<_>>>()?;
    let name = Name::of(&words[1]);
    let (mut added, mut changed, mut bytes) = (0, 0, 0);
    if !xx || zset(db, tx, &name)?.is_some() {
        let Found { item, body } = db.collection_or_new::<ZSet>(tx, &name, Kind::ZSet)?;
        for (score, member) in pairs {
            let had = body.scores().get(tx, &Name::of(member))?.map(f64::from_bits);
            if nx && had.is_some() || xx && had.is_none() || had == Some(score) {
                continue;
            }
            changed += 1;
            if put(tx, body, member, score)? {
                (added, bytes) = (added + 1, bytes + weight(member));
            }
        }
        db.resize(tx, &name, item, (bytes, 0), 1)?;
    }
    reply.integer(if ch { changed } else { added });
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
    let (mut removed, mut bytes) = (0, 0);
    if let Some(Found { item, body }) = zset(db, tx, &name)? {
        for member in &words[2..] {
            if take(tx, body, member)? {
                (removed, bytes) = (removed + 1, bytes + weight(member));
            }
        }
        let left = body.scores().len(tx)?;
        db.resize(tx, &name, item, (0, bytes), left)?;
    }
    reply.integer(removed);
    Ok(())
}

/// ZPOPMIN key [count]
pub fn zpopmin(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    if words.len() > 3 {
        return refuse(SYNTAX);
    }
    let count = words.get(2).map(|word| integer(word)).transpose()?.map(u64::try_from).transpose();
    let Ok(count) = count else { return refuse("ERR value is out of range, must be positive") };
    let name = Name::of(&words[1]);
    let Some(Found { item, body }) = zset(db, tx, &name)? else {
        reply.array(0);
        return Ok(());
    };
    let length = body.scores().len(tx)?;
    let taken = count.unwrap_or(1).min(length);
    let pairs = reply.resp3() && count.is_some();
    reply.array(if pairs { taken as usize } else { 2 * taken as usize });
    let mut bytes = 0;
    for _ in 0..taken {
        let Some((Place { score, member }, _)) = body.order().first(tx)? else { break };
        take(tx, body, &member)?;
        bytes += weight(&member);
        if pairs {
            reply.array(2);
        }
        reply.bulk(&member);
        reply.double(score);
    }
    Ok(db.resize(tx, &name, item, (0, bytes), length - taken)?)
}

/// ZSCORE key member
pub fn zscore(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let found = zset(db, from, &Name::of(&words[1]))?;
    match found.map_or(Ok(None), |found| found.body.scores().get(from, &Name::of(&words[2])))? {
        Some(score) => reply.double(f64::from_bits(score)),
        None => reply.null(),
    }
    Ok(())
}

/// ZCARD key
pub fn zcard(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let length = zset(db, from, &Name::of(&words[1]))?.map_or(Ok(0), |found| found.body.scores().len(from))?;
    reply.integer(length as i64);
    Ok(())
}

/// ZRANGE key start stop [WITHSCORES], by place only
pub fn zrange(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let with = match &words[4..] {
        [] => false,
        [option] if is(option, "withscores") => true,
        _ => return refuse(SYNTAX),
    };
    let (start, stop) = (integer(&words[2])?, integer(&words[3])?);
    let Some(Found { body, .. }) = zset(db, from, &Name::of(&words[1]))? else {
        reply.array(0);
        return Ok(());
    };
    let part = part(start, stop, body.scores().len(from)?);
    let length = (part.end - part.start) as usize;
    let pairs = with && reply.resp3();
    reply.array(if with && !pairs { 2 * length } else { length });
    for entry in body.order().iter(from)?.skip(part.start as usize).take(length) {
        let (Place { score, member }, _) = entry?;
        if pairs {
            reply.array(2);
        }
        reply.bulk(&member);
        match (with, pairs) {
            (true, true) => reply.double(score),
            (true, false) => reply.bulk(score_text(score).as_bytes()),
            _ => {}
        }
    }
    Ok(())
}
