//! LSET, LINSERT, LREM, LTRIM.

use nearpm::prelude::*;

use super::list;
use crate::redis::db::{Db, Found, Outcome, SYNTAX, refuse};
use crate::redis::elements::list::{insert, remove, replace};
use crate::redis::reply::Reply;
use crate::redis::words::{integer, is, part};
use crate::store::Name;

/// LSET key index element
pub fn lset(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let name = Name::of(&words[1]);
    let Some(Found { item, body }) = list(db, tx, &name)? else { return refuse("ERR no such key") };
    let (index, length) = (integer(&words[2])?, body.len(tx)?);
    let at = if index < 0 { index.saturating_add(length as i64) } else { index };
    let Some(at) = u64::try_from(at).ok().filter(|at| *at < length) else { return refuse("ERR index out of range") };
    let bytes = replace(tx, body, at, &words[3])?;
    db.resize(tx, &name, item, bytes, length)?;
    reply.simple("OK");
    Ok(())
}

/// LINSERT key BEFORE|AFTER pivot element
pub fn linsert(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let behind = match words[2].to_ascii_lowercase().as_slice() {
        b"before" => 0,
        b"after" => 1,
        _ => return refuse(SYNTAX),
    };
    let name = Name::of(&words[1]);
    let Some(Found { item, body }) = list(db, tx, &name)? else {
        reply.integer(0);
        return Ok(());
    };
    let mut pivot = None;
    for (place, entry) in body.iter(tx)?.enumerate() {
        if entry?.1.read(tx)? == words[3] {
            pivot = Some(place as u64);
            break;
        }
    }
    let Some(pivot) = pivot else {
        reply.integer(-1);
        return Ok(());
    };
    let bytes = insert(tx, body, pivot + behind, &words[4])?;
    let length = body.len(tx)?;
    db.resize(tx, &name, item, (bytes, 0), length)?;
    reply.integer(length as i64);
    Ok(())
}

/// LREM key count element
pub fn lrem(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (count, name) = (integer(&words[2])?, Name::of(&words[1]));
    let Some(Found { item, body }) = list(db, tx, &name)? else {
        reply.integer(0);
        return Ok(());
    };
    let mut numbers = Vec::new();
    for entry in body.iter(tx)? {
        let (number, element) = entry?;
        if element.read(tx)? == words[3] {
            numbers.push(number);
        }
        if count > 0 && numbers.len() as i64 == count {
            break;
        }
    }
    let skip = if count < 0 { numbers.len().saturating_sub(count.unsigned_abs() as usize) } else { 0 };
    let numbers = &numbers[skip..];
    if !numbers.is_empty() {
        let bytes = remove(tx, body, numbers)?;
        let left = body.len(tx)?;
        db.resize(tx, &name, item, (0, bytes), left)?;
    }
    reply.integer(numbers.len() as i64);
    Ok(())
}

/// LTRIM key start stop
pub fn ltrim(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (start, stop, name) = (integer(&words[2])?, integer(&words[3])?, Name::of(&words[1]));
    if let Some(Found { item, body }) = list(db, tx, &name)? {
        let length = body.len(tx)?;
        let kept = part(start, stop, length);
        let mut numbers = Vec::new();
        for (first, count) in [(0, kept.start), (kept.end, length - kept.end)] {
            // Nothing is kept: the first range is empty, and the second all.
            for entry in body.iter_from(tx, first)?.take(count as usize) {
                numbers.push(entry?.0);
            }
        }
        if !numbers.is_empty() {
            let bytes = remove(tx, body, &numbers)?;
            let left = body.len(tx)?;
            db.resize(tx, &name, item, (0, bytes), left)?;
        }
    }
    reply.simple("OK");
    Ok(())
}

/// Which end a word names.
pub fn end_of(word: &[u8]) -> Outcome<bool> {
    match () {
        () if is(word, "left") => Ok(true),
        () if is(word, "right") => Ok(false),
        () => refuse(SYNTAX),
    }
}
