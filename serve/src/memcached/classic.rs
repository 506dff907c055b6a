//! What the text protocol's own commands do, and what they answer.

use std::io::Write;

use nearpm::prelude::*;

use super::cache::{Cache, Done, Found, New, Plain, moment};
use super::command::{Command, Read};
use crate::store::{Name, item};

/// A reply of one line.
pub fn line(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// A value as get gives it.
fn give(from: &impl Load, key: &[u8], (place, head): Found, cas: bool, out: &mut Vec<u8>) -> Result<(), Error> {
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    // A vector takes everything.
    let _ = write!(out, " {} {}", head.tag, head.length);
    if cas {
        let _ = write!(out, " {}", head.extra);
    }
    out.extend_from_slice(b"\r\n");
    item::append_value(from, place, head.length, out)?;
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// get, gets
pub fn get(cache: &Cache<'_>, from: &impl Load, read: &Read, keys: &[Vec<u8>], out: &mut Vec<u8>) -> Result<(), Error> {
    keys.iter().try_for_each(|key| match cache.asked(from, &Name::of(key))? {
        Some(found) => give(from, key, found, read.cas, out),
        None => Ok(()),
    })
}

/// gat, gats
fn get_and_touch(
    cache: &Cache<'_>,
    tx: &mut impl Store,
    read: &Read,
    keys: &[Vec<u8>],
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let expires = moment(cache.now_ms(), read.touch.unwrap_or_default());
    for key in keys {
        let name = Name::of(key);
        if let Some(found) = cache.asked(tx, &name)? {
            cache.keys.expire(tx, &name, found.0, expires)?;
            give(tx, key, found, read.cas, out)?;
        }
    }
    Ok(())
}

/// Runs a command that may change something.
pub fn change(cache: &Cache<'_>, tx: &mut impl Store, command: &Command, out: &mut Vec<u8>) -> Result<(), Error> {
    match command {
        Command::Get(read, keys, last) => {
            get_and_touch(cache, tx, read, keys, out)?;
            if *last {
                line(out, "END");
            }
        }
        Command::Refuse(why, forgotten) => {
            if let Some(key) = forgotten {
                cache.keys.remove::<Plain>(tx, &Name::of(key))?;
            }
            line(out, why);
        }
        Command::Put { store, key, flags, expires, cas, value } => {
            let expires = moment(cache.now_ms(), *expires);
            let new = New { flags: *flags, expires, value, marks: 0 };
            line(
                out,
                match cache.put(tx, &Name::of(key), *store, *cas, new)? {
                    Done::Stored(_) => "STORED",
                    Done::NotStored => "NOT_STORED",
                    Done::Changed => "EXISTS",
                    Done::NotFound => "NOT_FOUND",
                },
            );
        }
        Command::Delete(key) => {
            let removed = cache.remove(tx, &Name::of(key))?;
            line(out, if removed { "DELETED" } else { "NOT_FOUND" });
        }
        Command::Arithmetic(up, key, delta) => {
            let name = Name::of(key);
            match cache.asked(tx, &name)? {
                None => line(out, "NOT_FOUND"),
                Some(found) => match cache.add(tx, &name, found, *up, *delta)? {
                    Some((number, _)) => line(out, &number.to_string()),
                    None => line(out, "CLIENT_ERROR cannot increment or decrement non-numeric value"),
                },
            }
        }
        Command::Touch(key, expires) => {
            let name = Name::of(key);
            match cache.asked(tx, &name)? {
                None => line(out, "NOT_FOUND"),
                Some((place, _)) => {
                    cache.keys.expire(tx, &name, place, moment(cache.now_ms(), *expires))?;
                    line(out, "TOUCHED");
                }
            }
        }
        Command::Flush(delay) => {
            cache.flush(tx, *delay)?;
            line(out, "OK");
        }
        other => unreachable!("{other:?} is no command of this protocol that changes something"),
    }
    Ok(())
}
