//! RENAME, COPY: what a key leads to under another one.

use nearpm::prelude::*;

use super::db::{Db, Kind, Outcome, SYNTAX, refuse};
use super::reply::Reply;
use super::value::Value;
use super::words::{integer, is};
use crate::store::Name;

/// RENAME, RENAMENX key new
pub fn rename(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let careful = is(&words[0], "renamenx");
    let (old, new) = (Name::of(&words[1]), Name::of(&words[2]));
    let Some((_, head)) = db.item(tx, &old)? else { return refuse("ERR no such key") };
    let occupied = db.item(tx, &new)?.is_some();
    let refused = careful && occupied;
    if !refused && old != new {
        db.remove(tx, &new)?;
        let owned = if Kind::of(&head)? == Kind::String { 0 } else { head.stored };
        if let Some(item) = db.keys.take(tx, &old, owned)? {
            db.keys.hang(tx, &new, item, owned)?;
        }
        db.touched(&old);
        db.touched(&new);
        db.grown(&new);
    }
    if careful {
        reply.integer(i64::from(!refused));
    } else {
        reply.simple("OK");
    }
    Ok(())
}

/// COPY source destination [DB 0] [REPLACE]
pub fn copy(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (mut replace, mut options) = (false, words[3..].iter());
    while let Some(option) = options.next() {
        if is(option, "replace") {
            replace = true;
        } else if let (true, Some(number)) = (is(option, "db"), options.next()) {
            if integer(number)? != 0 {
                return refuse("ERR DB index is out of range");
            }
        } else {
            return refuse(SYNTAX);
        }
    }
    let (source, target) = (Name::of(&words[1]), Name::of(&words[2]));
    if source == target {
        return refuse("ERR source and destination objects are the same");
    }
    let found = db.item(tx, &source)?;
    let copied = match found {
        Some(found) if replace || db.item(tx, &target)?.is_none() => {
            let value = Value::read(tx, found)?;
            db.remove(tx, &target)?;
            value.store(db, tx, &target, found.1.expires)?;
            true
        }
        _ => false,
    };
    reply.integer(i64::from(copied));
    Ok(())
}
