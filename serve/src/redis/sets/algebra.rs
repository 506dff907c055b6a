//! SUNION, SINTER, SDIFF, with their STORE, and SINTERCARD.

use std::collections::HashSet;

use nearpm::prelude::*;

use super::set;
use crate::redis::db::{Db, Outcome, SYNTAX, Set, refuse};
use crate::redis::reply::Reply;
use crate::redis::value::Value;
use crate::redis::words::{integer, is};
use crate::store::Name;

/// The sets of keys, as far as they are there.
fn bodies(db: &Db<'_>, from: &impl Load, keys: &[Vec<u8>]) -> Outcome<Vec<Option<Ptr<Set>>>> {
    keys.iter().map(|key| Ok(set(db, from, &Name::of(key))?.map(|found| found.body))).collect()
}

fn members(from: &impl Load, body: Ptr<Set>) -> Result<Vec<Name>, Error> {
    body.iter(from)?.map(|entry| Ok(entry?.0)).collect()
}

/// What all sets have in common, at most so many members.
fn common(from: &impl Load, bodies: Vec<Option<Ptr<Set>>>, limit: usize) -> Result<Vec<Name>, Error> {
    let Some(mut bodies) = bodies.into_iter().collect::<Option<Vec<_>>>() else { return Ok(Vec::new()) };
    let lengths = bodies.iter().map(|body| body.len(from)).collect::<Result<Vec<_>, _>>()?;
    let least = (0..lengths.len()).min_by_key(|&index| lengths[index]).unwrap_or(0);
    let smallest = bodies.swap_remove(least);
    let mut found = Vec::new();
    for entry in smallest.iter(from)? {
        let (member, _) = entry?;
        let mut in_all = true;
        for body in &bodies {
            in_all = in_all && body.contains_key(from, &member)?;
        }
        if in_all {
            found.push(member);
        }
        if found.len() >= limit {
            break;
        }
    }
    Ok(found)
}

/// What a command gives for keys: by its name.
fn result(db: &Db<'_>, from: &impl Load, name: &[u8], keys: &[Vec<u8>]) -> Outcome<Vec<Vec<u8>>> {
    let bodies = bodies(db, from, keys)?;
    let name = name.to_ascii_lowercase();
    if name.starts_with(b"sinter") {
        return Ok(common(from, bodies, usize::MAX)?.into_iter().map(|member| member.bytes).collect());
    }
    if name.starts_with(b"sunion") {
        let mut seen = HashSet::new();
        for body in bodies.into_iter().flatten() {
            seen.extend(members(from, body)?.into_iter().map(|member| member.bytes));
        }
        return Ok(seen.into_iter().collect());
    }
    let mut bodies = bodies.into_iter();
    let Some(first) = bodies.next().flatten() else { return Ok(Vec::new()) };
    let others: Vec<_> = bodies.flatten().collect();
    let mut left = Vec::new();
    for member in members(from, first)? {
        let mut elsewhere = false;
        for body in &others {
            elsewhere = elsewhere || body.contains_key(from, &member)?;
        }
        if !elsewhere {
            left.push(member.bytes);
        }
    }
    Ok(left)
}

/// SUNION, SINTER, SDIFF key ...
pub fn algebra(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let rows = result(db, from, &words[0], &words[1..])?;
    reply.set(rows.len());
    rows.iter().for_each(|member| reply.bulk(member));
    Ok(())
}

/// SUNIONSTORE, SINTERSTORE, SDIFFSTORE destination key ...
pub fn algebra_store(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let rows = result(db, tx, &words[0], &words[2..])?;
    reply.integer(rows.len() as i64);
    Value::Set(rows).store(db, tx, &Name::of(&words[1]), 0)
}

/// SINTERCARD numkeys key ... [LIMIT n]
pub fn sintercard(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let count = integer(&words[1]).ok().filter(|count| *count > 0);
    let Some(count) = count else { return refuse("ERR numkeys should be greater than 0") };
    if count as u64 > words.len() as u64 - 2 {
        return refuse("ERR Number of keys can't be greater than number of args");
    }
    let (keys, rest) = words[2..].split_at(count as usize);
    let limit = match rest {
        [] => 0,
        [option, limit] if is(option, "limit") => match integer(limit) {
            Ok(limit) if limit >= 0 => limit as usize,
            _ => return refuse("ERR LIMIT can't be negative"),
        },
        _ => return refuse(SYNTAX),
    };
    let found = common(from, bodies(db, from, keys)?, if limit == 0 { usize::MAX } else { limit })?;
    reply.integer(found.len() as i64);
    Ok(())
}
