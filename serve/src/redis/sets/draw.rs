//! SPOP, SRANDMEMBER.

use nearpm::prelude::*;

use super::{set, weight};
use crate::redis::db::{Db, Found, Outcome, SYNTAX, refuse};
use crate::redis::reply::Reply;
use crate::redis::words::{count_of, integer};
use crate::store::Name;

/// SPOP key [count]
pub fn spop(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    if words.len() > 3 {
        return refuse(SYNTAX);
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
    for left in (length - taken + 1..=length).rev() {
        let Some((member, _)) = body.entry_at(tx, rand::random_range(0..left))? else { break };
        body.remove(tx, &member)?;
        bytes += weight(&member.bytes);
        reply.bulk(&member.bytes);
    }
    if taken > 0 {
        db.resize(tx, &name, item, (0, bytes), length - taken)?;
    }
    Ok(())
}

/// Places in a row of `length` drawn by chance: so many different ones, or, if `count` is below 0,
/// so many of which some may be the same.
fn places(length: u64, count: i64) -> Vec<u64> {
    let wanted = count.unsigned_abs();
    if length == 0 {
        return Vec::new();
    }
    if count < 0 {
        return (0..wanted).map(|_| rand::random_range(0..length)).collect();
    }
    if wanted >= length {
        return (0..length).collect();
    }
    let drawn = rand::seq::index::sample(&mut rand::rng(), length as usize, wanted as usize);
    drawn.into_iter().map(|place| place as u64).collect()
}

/// How many are drawn by a command that says so, within what a reply can hold.
pub fn drawn_count(word: &[u8]) -> Outcome<i64> {
    let count = integer(word)?;
    if (-(i64::MAX / 2)..=i64::MAX / 2).contains(&count) { Ok(count) } else { refuse("ERR value is out of range") }
}

/// Draws with places until a reply is full.
pub fn each_drawn<T>(
    (length, count): (u64, i64),
    reply: &mut Reply<'_>,
    entry: impl Fn(u64) -> Result<Option<T>, Error>,
    give: impl Fn(&mut Reply<'_>, T) -> Result<(), Error>,
) -> Outcome {
    // A great many, with repetition: drawn one by one, because their places alone would take memory
    // without bound.
    let single = || rand::random_range(0..length);
    let many = count < 0 && length > 0;
    let rows = if many { Vec::new() } else { places(length, count) };
    let total = if many { count.unsigned_abs() } else { rows.len() as u64 };
    for index in 0..total {
        let place = if many { single() } else { rows[index as usize] };
        if let Some(found) = entry(place)? {
            give(reply, found)?;
        }
        if reply.is_too_long() {
            break;
        }
    }
    Ok(())
}

/// SRANDMEMBER key [count]
pub fn srandmember(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    if words.len() > 3 {
        return refuse(SYNTAX);
    }
    let count = words.get(2).map(|word| drawn_count(word)).transpose()?;
    let body = set(db, from, &Name::of(&words[1]))?.map(|found| found.body);
    let length = body.map_or(Ok(0), |body| body.len(from))?;
    let member = |place| Ok(body.map_or(Ok(None), |body| body.entry_at(from, place))?.map(|(member, _)| member.bytes));
    let Some(count) = count else {
        let drawn = if length == 0 { None } else { member(rand::random_range(0..length))? };
        reply.bulk_or_null(drawn.as_deref());
        return Ok(());
    };
    reply.array(if count < 0 && length > 0 { count.unsigned_abs() } else { length.min(count.unsigned_abs()) } as usize);
    each_drawn((length, count), reply, member, |reply, member| {
        reply.bulk(&member);
        Ok(())
    })
}
