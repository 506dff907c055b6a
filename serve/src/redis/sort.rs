//! SORT, SORT_RO: the elements of a list, set or sorted set in another order.

use std::cmp::Ordering;

use nearpm::prelude::*;

use super::db::{Db, Kind, Outcome, SYNTAX, WRONG_TYPE, refuse};
use super::reply::Reply;
use super::value::Value;
use super::words::{float, integer, part};
use crate::store::Name;

/// What is asked for.
#[derive(Default)]
struct Query<'w> {
    by: Option<&'w [u8]>,
    gets: Vec<&'w [u8]>,
    limit: Option<(i64, i64)>,
    descending: bool,
    by_text: bool,
    store: Option<&'w [u8]>,
}

fn parse(words: &[Vec<u8>], may_store: bool) -> Outcome<Query<'_>> {
    let (mut query, mut rest) = (Query::default(), words);
    while let [option, behind @ ..] = rest {
        rest = behind;
        match (option.to_ascii_lowercase().as_slice(), behind) {
            (b"asc", _) => query.descending = false,
            (b"desc", _) => query.descending = true,
            (b"alpha", _) => query.by_text = true,
            (b"limit", [offset, count, behind @ ..]) => {
                query.limit = Some((integer(offset)?, integer(count)?));
                rest = behind;
            }
            (b"by", [pattern, behind @ ..]) => (query.by, rest) = (Some(pattern.as_slice()), behind),
            (b"get", [pattern, behind @ ..]) => {
                query.gets.push(pattern);
                rest = behind;
            }
            (b"store", [key, behind @ ..]) if may_store => (query.store, rest) = (Some(key.as_slice()), behind),
            _ => return refuse(SYNTAX),
        }
    }
    Ok(query)
}

/// What a pattern leads to for an element: `#` is the element itself, `a*b` a string, `a*b->c` a
/// field of a hash.
fn follow(db: &Db<'_>, from: &impl Load, pattern: &[u8], element: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    if pattern == b"#" {
        return Ok(Some(element.to_vec()));
    }
    let Some(star) = pattern.iter().position(|byte| *byte == b'*') else { return Ok(None) };
    let behind = &pattern[star + 1..];
    let arrow = behind.windows(2).position(|pair| pair == b"->").filter(|at| at + 2 < behind.len());
    let (suffix, field) = arrow.map_or((behind, None), |at| (&behind[..at], Some(&behind[at + 2..])));
    let key = [&pattern[..star], element, suffix].concat();
    let Some(found) = db.item(from, &Name::of(&key))? else { return Ok(None) };
    match (Kind::of(&found.1)?, field) {
        (Kind::String, None) => super::strings::value(from, found).map(Some),
        (Kind::Hash, Some(field)) => {
            let hash = db.collection::<super::db::Hash>(from, &Name::of(&key), Kind::Hash);
            let value = hash.ok().flatten().map_or(Ok(None), |hash| hash.body.get(from, &Name::of(field)))?;
            value.map(|value| value.read(from)).transpose()
        }
        _ => Ok(None),
    }
}

/// The elements in their order, with what is asked for of each.
fn run(db: &Db<'_>, from: &impl Load, key: &[u8], query: &Query<'_>) -> Outcome<Vec<Option<Vec<u8>>>> {
    let value = db.asked(from, &Name::of(key))?.map(|found| Value::read(from, found)).transpose()?;
    let mut elements = match value {
        None => Vec::new(),
        Some(Value::List(rows)) => rows,
        Some(Value::Set(mut rows)) => {
            if query.store.is_some() || query.by.is_some() {
                // A set has no order of its own: what is stored is the same each time.
                rows.sort_unstable();
            }
            rows
        }
        Some(Value::ZSet(rows)) => rows.into_iter().map(|(member, _)| member).collect(),
        Some(_) => return refuse(WRONG_TYPE),
    };
    let unsorted = query.by.is_some_and(|by| !by.contains(&b'*'));
    if unsorted {
        if query.descending {
            elements.reverse();
        }
    } else {
        elements = ordered(db, from, elements, query)?;
    }
    if let Some((offset, count)) = query.limit {
        let stop = if count < 0 { i64::MAX } else { offset.max(0).saturating_add(count) - 1 };
        let kept = if count == 0 { 0..0 } else { part(offset.max(0), stop.max(-1), elements.len() as u64) };
        elements = elements[kept.start as usize..kept.end as usize].to_vec();
    }
    if query.gets.is_empty() {
        return Ok(elements.into_iter().map(Some).collect());
    }
    let mut rows = Vec::new();
    for element in &elements {
        for pattern in &query.gets {
            rows.push(follow(db, from, pattern, element)?);
        }
    }
    Ok(rows)
}

fn ordered(db: &Db<'_>, from: &impl Load, elements: Vec<Vec<u8>>, query: &Query<'_>) -> Outcome<Vec<Vec<u8>>> {
    let mut keyed = Vec::with_capacity(elements.len());
    for element in elements {
        let weight = match query.by {
            Some(pattern) => follow(db, from, pattern, &element)?,
            None => Some(element.clone()),
        };
        let number = match &weight {
            Some(text) if !query.by_text => match float(text) {
                Some(number) => number,
                None => return refuse("ERR One or more scores can't be converted into double"),
            },
            _ => 0.0,
        };
        keyed.push((number, weight.unwrap_or_default(), element));
    }
    keyed.sort_by(|a, b| {
        let order = if query.by_text { a.1.cmp(&b.1) } else { a.0.total_cmp(&b.0) };
        // Equal ones by their texts, so that the order is always the same.
        let order = order.then_with(|| if query.by_text { Ordering::Equal } else { a.2.cmp(&b.2) });
        if query.descending { order.reverse() } else { order }
    });
    Ok(keyed.into_iter().map(|(_, _, element)| element).collect())
}

fn give(rows: &[Option<Vec<u8>>], reply: &mut Reply<'_>) {
    reply.array(rows.len());
    rows.iter().for_each(|row| reply.bulk_or_null(row.as_deref()));
}

/// SORT key [BY pattern] [LIMIT offset count] [GET pattern ...] [ASC|DESC] [ALPHA] [STORE key]
pub fn sort(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let query = parse(&words[2..], true)?;
    let rows = run(db, tx, &words[1], &query)?;
    let Some(target) = query.store else {
        give(&rows, reply);
        return Ok(());
    };
    reply.integer(rows.len() as i64);
    Value::List(rows.into_iter().map(Option::unwrap_or_default).collect()).store(db, tx, &Name::of(target), 0)
}

/// SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern ...] [ASC|DESC] [ALPHA]
pub fn sort_ro(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let query = parse(&words[2..], false)?;
    give(&run(db, from, &words[1], &query)?, reply);
    Ok(())
}
