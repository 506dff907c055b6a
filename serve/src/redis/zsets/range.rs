//! Ranges: ZRANGE in all its forms, ZRANGESTORE, ZREMRANGEBY..., ZCOUNT, ZLEXCOUNT.

use std::ops::Range;

use nearpm::prelude::*;

use super::add::remove;
use super::window::{By, Window};
use super::{give, zset};
use crate::redis::db::{Db, Outcome, SYNTAX, ZSet, refuse};
use crate::redis::rank::ScoreKey;
use crate::redis::reply::Reply;
use crate::redis::value::Value;
use crate::redis::words::integer;
use crate::store::Name;

/// Members with their scores.
type Rows = Vec<(Vec<u8>, f64)>;

/// What is asked for.
struct Query {
    window: Window,
    reverse: bool,
    with_scores: bool,
    limit: Option<(i64, i64)>,
}

impl Query {
    /// Of the words behind the key. What the command's name does not say, options do.
    fn parse(named: Option<By>, mut reverse: bool, words: &[Vec<u8>], may_have_scores: bool) -> Outcome<Query> {
        let (mut by, free) = (named.unwrap_or(By::Rank), named.is_none());
        let (mut with_scores, mut limit, mut rest) = (false, None, &words[2..]);
        while let [option, behind @ ..] = rest {
            rest = behind;
            match (option.to_ascii_lowercase().as_slice(), behind) {
                (b"withscores", _) if may_have_scores => with_scores = true,
                (b"limit", [offset, count, behind @ ..]) => {
                    limit = Some((integer(offset)?, integer(count)?));
                    rest = behind;
                }
                (b"rev", _) if free => reverse = true,
                (b"byscore", _) if free && by == By::Rank => by = By::Score,
                (b"bylex", _) if free && by == By::Rank => by = By::Lex,
                _ => return refuse(SYNTAX),
            }
        }
        if limit.is_some() && by == By::Rank {
            return refuse("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
        }
        if with_scores && by == By::Lex {
            return refuse("ERR syntax error, WITHSCORES not supported in combination with BYLEX");
        }
        let window = Window::parse(by, reverse, &words[0], &words[1])?;
        Ok(Query { window, reverse, with_scores, limit })
    }

    /// The places of the members, of which the highest come first if `reverse`.
    fn places(&self, from: &impl Load, body: Ptr<ZSet>) -> Result<Range<u64>, Error> {
        let Range { start, end } = self.window.places(from, body, self.reverse)?;
        let Some((offset, count)) = self.limit else { return Ok(start..end) };
        let Ok(offset) = u64::try_from(offset) else { return Ok(0..0) };
        let skip = offset.min(end - start);
        let taken = if count < 0 { u64::MAX } else { count as u64 }.min(end - start - skip);
        Ok(if self.reverse { end - skip - taken..end - skip } else { start + skip..start + skip + taken })
    }

    fn rows(&self, db: &Db<'_>, from: &impl Load, key: &[u8]) -> Outcome<Rows> {
        let Some(found) = zset(db, from, &Name::of(key))? else { return Ok(Vec::new()) };
        let places = self.places(from, found.body)?;
        let mut rows = rows(from, found.body, places)?;
        if self.reverse {
            rows.reverse();
        }
        Ok(rows)
    }
}

/// The members at places.
fn rows(from: &impl Load, body: Ptr<ZSet>, places: Range<u64>) -> Result<Rows, Error> {
    let entries = body.order().iter_from(from, places.start)?.take((places.end - places.start) as usize);
    entries.map(|entry| entry.map(|(ScoreKey { score, member }, _)| (member, score))).collect()
}

/// What the name of a command says of its range: by what, if it is fixed, and whether from the
/// highest on.
fn named(name: &[u8]) -> (Option<By>, bool) {
    let name = name.to_ascii_lowercase();
    let by = match name.as_slice() {
        b"zrange" | b"zrangestore" => None,
        _ if name.ends_with(b"score") || name == b"zcount" => Some(By::Score),
        _ if name.ends_with(b"lex") || name == b"zlexcount" => Some(By::Lex),
        _ => Some(By::Rank),
    };
    (by, name.starts_with(b"zrev"))
}

/// ZRANGE key first last [BYSCORE|BYLEX] [REV] [LIMIT offset count] [WITHSCORES]; ZREVRANGE,
/// ZRANGEBYSCORE, ZREVRANGEBYSCORE, ZRANGEBYLEX, ZREVRANGEBYLEX
pub fn zrange(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (by, reverse) = named(&words[0]);
    let query = Query::parse(by, reverse, &words[2..], true)?;
    give(&query.rows(db, from, &words[1])?, query.with_scores, reply);
    Ok(())
}

/// ZRANGESTORE destination source first last [BYSCORE|BYLEX] [REV] [LIMIT offset count]
pub fn zrangestore(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let rows = Query::parse(None, false, &words[3..], false)?.rows(db, tx, &words[2])?;
    reply.integer(rows.len() as i64);
    Value::ZSet(rows).store(db, tx, &Name::of(&words[1]), 0)
}

/// ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX key first last
pub fn zremrange(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let window = Window::parse(named(&words[0]).0.unwrap_or(By::Rank), false, &words[2], &words[3])?;
    let name = Name::of(&words[1]);
    let mut removed = 0;
    if let Some(found) = zset(db, tx, &name)? {
        let places = window.places(tx, found.body, false)?;
        let members: Vec<_> = rows(tx, found.body, places)?.into_iter().map(|(member, _)| member).collect();
        removed = remove(db, tx, &name, found, &members)?;
    }
    reply.integer(removed);
    Ok(())
}

/// ZCOUNT, ZLEXCOUNT key first last
pub fn zcount(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let window = Window::parse(named(&words[0]).0.unwrap_or(By::Score), false, &words[2], &words[3])?;
    let found = zset(db, from, &Name::of(&words[1]))?;
    let places = found.map_or(Ok(0..0), |found| window.places(from, found.body, false))?;
    reply.integer((places.end - places.start) as i64);
    Ok(())
}
