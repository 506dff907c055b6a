//! Parts of strings: STRLEN, GETRANGE, SETRANGE, APPEND.

use nearpm::prelude::*;

use super::db::{Db, Kind, Outcome, head, refuse};
use super::reply::Reply;
use super::strings::{put, value};
use super::words::integer;
use crate::store::{Item, Name, item};

/// STRLEN key
pub fn strlen(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let found = db.string(from, &Name::of(&words[1]))?;
    reply.integer(found.map_or(0, |(_, head)| i64::from(head.length)));
    Ok(())
}

/// GETRANGE, SUBSTR key start end
pub fn getrange(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (start, stop) = (integer(&words[2])?, integer(&words[3])?);
    let found = db.string(from, &Name::of(&words[1]))?;
    let Some((place, head)) = found else {
        reply.bulk(b"");
        return Ok(());
    };
    let length = i64::from(head.length);
    // An end in front of the string is its first byte, but not if both are, in the wrong order.
    let clamp = |at: i64| if at < 0 { at.saturating_add(length).max(0) } else { at };
    let wrong = start < 0 && stop < 0 && start > stop;
    let (start, stop) = (clamp(start), clamp(stop).min(length - 1));
    if wrong || start > stop || length == 0 {
        reply.bulk(b"");
        return Ok(());
    }
    let mut bytes = vec![0; (stop - start + 1) as usize];
    from.read(item::data(place) + start as u64, &mut bytes)?;
    reply.bulk(&bytes);
    Ok(())
}

/// SETRANGE key offset value
pub fn setrange(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let offset = integer(&words[2])?;
    let Ok(offset) = u64::try_from(offset) else { return refuse("ERR offset is out of range") };
    let (name, more) = (Name::of(&words[1]), &words[3]);
    let found = db.string(tx, &name)?;
    let had = found.map_or(0, |(_, head)| u64::from(head.length));
    if more.is_empty() {
        reply.integer(had as i64);
        return Ok(());
    }
    let end = offset.saturating_add(more.len() as u64);
    db.check_length(end)?;
    change_bytes(db, tx, &name, found, end, |tx, at| tx.write(at + offset, more))?;
    reply.integer(had.max(end) as i64);
    Ok(())
}

/// Changes bytes of a string in their place, which is made as long as `length` first, with zeros.
pub fn change_bytes<S: Store>(
    db: &Db<'_>,
    tx: &mut S,
    name: &Name,
    found: Option<(Ptr<Item>, Item)>,
    length: u64,
    change: impl FnOnce(&mut S, u64) -> Result<(), Error>,
) -> Outcome {
    let (had, room) = found.map_or((0, 0), |(_, head)| (u64::from(head.length), u64::from(head.room)));
    let place = match found {
        Some((place, _)) if length <= had => {
            db.touched(name);
            place
        }
        Some((place, _)) if length <= room => {
            db.touched(name);
            tx.write(item::data(place) + had, &vec![0; (length - had) as usize])?;
            tx.set(place.length(), length as u32)?;
            place
        }
        _ => {
            let old = found.map_or(Ok(Vec::new()), |found| value(tx, found))?;
            let expires = found.map_or(0, |(_, head)| head.expires);
            let zeros = vec![0; length as usize - old.len()];
            db.put(tx, name, head(Kind::String, expires, 0), [&old, &zeros])?
        }
    };
    Ok(change(tx, item::data(place))?)
}

/// APPEND key value
pub fn append(db: &Db<'_>, tx: &mut impl Store, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (name, more) = (Name::of(&words[1]), &words[2]);
    let found = db.string(tx, &name)?;
    let (had, expires) = found.map_or((0, 0), |(_, head)| (u64::from(head.length), head.expires));
    let length = had + more.len() as u64;
    db.check_length(length)?;
    match found {
        Some((place, head)) if length <= u64::from(head.room) => {
            tx.write(item::data(place) + had, more)?;
            tx.set(place.length(), length as u32)?;
            db.touched(&name);
        }
        Some(found) => {
            let old = value(tx, found)?;
            db.put(tx, &name, head(Kind::String, expires, 0), [&old, more])?;
        }
        None => put(db, tx, &name, more, 0)?,
    }
    reply.integer(length as i64);
    Ok(())
}
