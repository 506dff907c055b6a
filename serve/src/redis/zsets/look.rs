//! ZCARD, ZSCORE, ZMSCORE, ZRANK, ZREVRANK, ZRANDMEMBER.

use nearpm::prelude::*;

use super::zset;
use crate::redis::db::{Db, Outcome, SYNTAX, refuse};
use crate::redis::rank::ScoreKey;
use crate::redis::reply::Reply;
use crate::redis::sets::{drawn_count, each_drawn};
use crate::redis::words::is;
use crate::store::Name;

/// ZCARD key
pub fn zcard(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let length = zset(db, from, &Name::of(&words[1]))?.map_or(Ok(0), |found| found.body.scores().len(from))?;
    reply.integer(length as i64);
    Ok(())
}

fn score_or_null(score: Option<u64>, reply: &mut Reply<'_>) {
    match score {
        Some(score) => reply.double(f64::from_bits(score)),
        None => reply.null(),
    }
}

/// ZSCORE key member
pub fn zscore(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let found = zset(db, from, &Name::of(&words[1]))?;
    score_or_null(found.map_or(Ok(None), |found| found.body.scores().get(from, &Name::of(&words[2])))?, reply);
    Ok(())
}

/// ZMSCORE key member ...
pub fn zmscore(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let body = zset(db, from, &Name::of(&words[1]))?.map(|found| found.body);
    reply.array(words.len() - 2);
    for member in &words[2..] {
        score_or_null(body.map_or(Ok(None), |body| body.scores().get(from, &Name::of(member)))?, reply);
    }
    Ok(())
}

/// ZRANK, ZREVRANK key member
pub fn zrank(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let body = zset(db, from, &Name::of(&words[1]))?.map(|found| found.body);
    let score = body.map_or(Ok(None), |body| body.scores().get(from, &Name::of(&words[2])))?;
    let (Some(body), Some(score)) = (body, score) else {
        reply.null();
        return Ok(());
    };
    let place = ScoreKey { score: f64::from_bits(score), member: words[2].clone() };
    let (rank, _) = body.order().rank(from, &place)?;
    let rank = if is(&words[0], "zrank") { rank } else { body.order().len(from)?.saturating_sub(rank + 1) };
    reply.integer(rank as i64);
    Ok(())
}

/// ZRANDMEMBER key [count [WITHSCORES]]
pub fn zrandmember(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let count = words.get(2).map(|word| drawn_count(word)).transpose()?;
    let with = match words.get(3..).unwrap_or_default() {
        [] => false,
        [option] if is(option, "withscores") => true,
        _ => return refuse(SYNTAX),
    };
    let body = zset(db, from, &Name::of(&words[1]))?.map(|found| found.body);
    let length = body.map_or(Ok(0), |body| body.order().len(from))?;
    let entry = |place| {
        let found = body.map_or(Ok(None), |body| body.order().entry_at(from, place))?;
        Ok(found.map(|(ScoreKey { score, member }, _)| (member, score)))
    };
    let Some(count) = count else {
        let drawn = if length == 0 { None } else { entry(rand::random_range(0..length))? };
        reply.bulk_or_null(drawn.as_ref().map(|(member, _)| member.as_slice()));
        return Ok(());
    };
    let drawn = if count < 0 && length > 0 { count.unsigned_abs() } else { length.min(count.unsigned_abs()) } as usize;
    let pairs = with && reply.resp3();
    reply.array(if with && !pairs { 2 * drawn } else { drawn });
    each_drawn((length, count), reply, entry, |reply, (member, score)| {
        if pairs {
            reply.array(2);
        }
        reply.bulk(&member);
        if with {
            reply.double(score);
        }
        Ok(())
    })
}
