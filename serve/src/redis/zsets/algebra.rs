//! ZUNION, ZINTER, ZDIFF, with their STORE, and ZINTERCARD. Plain sets take part with scores of 1.

use std::collections::HashMap;

use nearpm::prelude::*;

use super::give;
use crate::redis::db::{Db, Kind, Outcome, SYNTAX, WRONG_TYPE, Words, refuse, refuse_with};
use crate::redis::reply::Reply;
use crate::redis::value::Value;
use crate::redis::words::{float_or, integer, is};
use crate::store::Name;

/// How scores of one member become one.
#[derive(Clone, Copy)]
enum Aggregate {
    Sum,
    Least,
    Greatest,
}

impl Aggregate {
    fn join(self, a: f64, b: f64) -> f64 {
        match self {
            // The sum of both infinities is 0.
            Aggregate::Sum => Some(a + b).filter(|sum| !sum.is_nan()).unwrap_or(0.0),
            Aggregate::Least => a.min(b),
            Aggregate::Greatest => a.max(b),
        }
    }
}

/// What is asked for.
struct Query<'w> {
    keys: &'w [Vec<u8>],
    weights: Vec<f64>,
    aggregate: Aggregate,
    with_scores: bool,
}

/// `numkeys key ...`, and the words behind.
fn keys_of<'w>(command: &[u8], words: &'w [Vec<u8>]) -> Outcome<(Words<'w>, Words<'w>)> {
    let count = integer(&words[0])?;
    if count < 1 {
        let name = String::from_utf8_lossy(command).to_ascii_lowercase();
        return refuse_with(format!("ERR at least 1 input key is needed for '{name}' command"));
    }
    if count as u64 > words.len() as u64 - 1 {
        return refuse(SYNTAX);
    }
    Ok(words[1..].split_at(count as usize))
}

impl Query<'_> {
    /// Of the words from the number of keys on.
    fn parse<'w>(command: &[u8], words: &'w [Vec<u8>], stores: bool) -> Outcome<Query<'w>> {
        let (keys, mut rest) = keys_of(command, words)?;
        let mut query = Query { keys, weights: vec![1.0; keys.len()], aggregate: Aggregate::Sum, with_scores: false };
        let weighs = !command.to_ascii_lowercase().starts_with(b"zdiff");
        while let [option, behind @ ..] = rest {
            rest = behind;
            if weighs && is(option, "weights") && behind.len() >= keys.len() {
                let weights = behind[..keys.len()].iter().map(|word| float_or(word, "ERR weight value is not a float"));
                query.weights = weights.collect::<Outcome<_>>()?;
                rest = &behind[keys.len()..];
            } else if let (true, true, [how, behind @ ..]) = (weighs, is(option, "aggregate"), behind) {
                query.aggregate = match how.to_ascii_lowercase().as_slice() {
                    b"sum" => Aggregate::Sum,
                    b"min" => Aggregate::Least,
                    b"max" => Aggregate::Greatest,
                    _ => return refuse(SYNTAX),
                };
                rest = behind;
            } else if !stores && is(option, "withscores") {
                query.with_scores = true;
            } else {
                return refuse(SYNTAX);
            }
        }
        Ok(query)
    }

    /// The result for a command, by scores and members.
    fn run(&self, db: &Db<'_>, from: &impl Load, command: &[u8]) -> Outcome<Vec<(Vec<u8>, f64)>> {
        let sources = self.keys.iter().map(|key| source(db, from, key)).collect::<Outcome<Vec<_>>>()?;
        let name = command.to_ascii_lowercase();
        let mut result: HashMap<Vec<u8>, (f64, usize)> = HashMap::new();
        if name.starts_with(b"zdiff") {
            result.extend(sources[0].iter().map(|(member, score)| (member.clone(), (*score, 1))));
            for (member, _) in sources[1..].iter().flatten() {
                result.remove(member);
            }
        } else {
            for (rows, weight) in sources.iter().zip(&self.weights) {
                for (member, score) in rows {
                    // Infinity by 0 is 0.
                    let weighed = Some(weight * score).filter(|score| !score.is_nan()).unwrap_or(0.0);
                    let joined = result.get(member).map(|(had, sets)| (self.aggregate.join(*had, weighed), sets + 1));
                    result.insert(member.clone(), joined.unwrap_or((weighed, 1)));
                }
            }
            if name.starts_with(b"zinter") {
                result.retain(|_, (_, sets)| *sets == self.keys.len());
            }
        }
        let mut rows: Vec<_> = result.into_iter().map(|(member, (score, _))| (member, score)).collect();
        rows.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
        Ok(rows)
    }
}

/// As in Redis, what the keys hold is looked at before the options behind them.
fn look_at_kinds(db: &Db<'_>, from: &impl Load, command: &[u8], words: &[Vec<u8>]) -> Outcome {
    for key in keys_of(command, words)?.0 {
        if let Some((_, item)) = db.item(from, &Name::of(key))?
            && !matches!(Kind::of(&item)?, Kind::Set | Kind::ZSet)
        {
            return refuse(WRONG_TYPE);
        }
    }
    Ok(())
}

/// The members of a key, be it a sorted set or a plain one.
fn source(db: &Db<'_>, from: &impl Load, key: &[u8]) -> Outcome<Vec<(Vec<u8>, f64)>> {
    let Some(found) = db.asked(from, &Name::of(key))? else { return Ok(Vec::new()) };
    if !matches!(Kind::of(&found.1)?, Kind::Set | Kind::ZSet) {
        return refuse(WRONG_TYPE);
    }
    Ok(match Value::read(from, found)? {
        Value::Set(members) => members.into_iter().map(|member| (member, 1.0)).collect(),
        Value::ZSet(rows) => rows,
        _ => Vec::new(),
    })
}

/// ZUNION, ZINTER, ZDIFF numkeys key ... [WEIGHTS weight ...] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]
pub fn algebra(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    look_at_kinds(db, from, &words[0], &words[1..])?;
    let query = Query::parse(&words[0], &words[1..], false)?;
    give(&query.run(db, from, &words[0])?, query.with_scores, reply);
    Ok(())
}

/// ZUNIONSTORE, ZINTERSTORE, ZDIFFSTORE destination numkeys key ... [WEIGHTS weight ...] [AGGREGATE
/// SUM|MIN|MAX]
pub fn algebra_store(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    look_at_kinds(db, tx, &words[0], &words[2..])?;
    let query = Query::parse(&words[0], &words[2..], true)?;
    let rows = query.run(db, tx, &words[0])?;
    reply.integer(rows.len() as i64);
    Value::ZSet(rows).store(db, tx, &Name::of(&words[1]), 0)
}

/// ZINTERCARD numkeys key ... [LIMIT n]
pub fn zintercard(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (keys, rest) = keys_of(&words[0], &words[1..])?;
    let limit = match rest {
        [] => 0,
        [option, limit] if is(option, "limit") => match integer(limit) {
            Ok(limit) if limit >= 0 => limit as usize,
            _ => return refuse("ERR LIMIT can't be negative"),
        },
        _ => return refuse(SYNTAX),
    };
    let query = Query { keys, weights: vec![1.0; keys.len()], aggregate: Aggregate::Sum, with_scores: false };
    let found = query.run(db, from, &words[0])?.len();
    reply.integer(if limit == 0 { found } else { found.min(limit) } as i64);
    Ok(())
}
