//! What the meta protocol's commands do, and what they answer.

use nearpm::prelude::*;

use super::cache::{Cache, Done, New, STALE, WON, moment};
use super::classic::line;
use super::command::{Meta, Store as How};
use crate::store::{Item, Name, item};

/// Seconds until an item expires, -1 for never.
fn ttl(now_ms: u64, head: &Item) -> i64 {
    if head.expires == 0 { -1 } else { head.expires.saturating_sub(now_ms).div_ceil(1000) as i64 }
}

/// Adds a flag to a reply.
fn flag(out: &mut Vec<u8>, flag: u8, value: impl std::fmt::Display) {
    out.extend_from_slice(format!(" {}{value}", char::from(flag)).as_bytes());
}

/// Adds the flags that say what the request was: key, whether that is in base64, opaque.
fn echo(meta: &Meta, name: u8, token: &[u8], out: &mut Vec<u8>) {
    match name {
        b'k' => {
            out.extend_from_slice(b" k");
            out.extend_from_slice(&meta.sent);
            if meta.has(b'b') {
                out.extend_from_slice(b" b");
            }
        }
        b'O' => {
            out.extend_from_slice(b" O");
            out.extend_from_slice(token);
        }
        _ => {}
    }
}

/// Replies with a code and the flags that need no item.
fn answer(meta: &Meta, code: &str, cas: Option<u64>, out: &mut Vec<u8>) {
    out.extend_from_slice(code.as_bytes());
    for (name, token) in &meta.flags {
        match (name, cas) {
            (b'c', Some(cas)) => flag(out, b'c', cas),
            _ => echo(meta, *name, token, out),
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// What a reply says of an item.
struct Told {
    /// Flags, in the order in which the request has them.
    flags: Vec<u8>,
    /// The request asks for the value to be made anew when it expires as soon as this.
    soon: bool,
}

/// Tells of an item what a request asks for. Flags that change the item do so in their turn, so
/// that what stands in front of them tells of it as it was.
fn tell(cache: &Cache<'_>, meta: &Meta, idle_ms: u32, head: &mut Item, is_new: bool) -> Told {
    let (now_ms, mut told) = (cache.now_ms(), Told { flags: Vec::new(), soon: false });
    let out = &mut told.flags;
    for (kind, token) in &meta.flags {
        match kind {
            b'T' => head.expires = moment(now_ms, meta.number(b'T').unwrap_or(0)),
            b'N' if is_new => head.expires = moment(now_ms, meta.number(b'N').unwrap_or(0)),
            b'R' if !is_new => {
                let least = meta.number::<i64>(b'R').unwrap_or(0);
                told.soon |= (0..least).contains(&ttl(now_ms, head));
            }
            b'c' => flag(out, b'c', head.extra),
            b'f' => flag(out, b'f', head.tag),
            b's' => flag(out, b's', head.length),
            b't' => flag(out, b't', ttl(now_ms, head)),
            b'l' => flag(out, b'l', idle_ms / 1000),
            b'h' => flag(out, b'h', u8::from(u64::from(idle_ms) < now_ms.saturating_sub(head.stored))),
            _ => echo(meta, *kind, token, out),
        }
    }
    told
}

/// Replies with an item: what is told of it, marks, and a value if one is asked for.
fn give(meta: &Meta, told: &Told, marks: &str, value: &[u8], out: &mut Vec<u8>) {
    match meta.has(b'v') {
        true => out.extend_from_slice(format!("VA {}", value.len()).as_bytes()),
        false => out.extend_from_slice(b"HD"),
    }
    out.extend_from_slice(&told.flags);
    line(out, marks);
    if meta.has(b'v') {
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
}

/// mg
pub fn get(cache: &Cache<'_>, tx: &mut impl Store, meta: &Meta, out: &mut Vec<u8>) -> Result<(), Error> {
    let name = Name::of(&meta.key);
    // Before the request itself counts as a use.
    let idle_ms = cache.keys.recency.age_ms(name.hash, cache.now_ms());
    let found = cache.asked(tx, &name)?;
    let is_new = found.is_none() && meta.has(b'N');
    if is_new {
        let new = New { flags: 0, expires: 0, value: b"", marks: 0 };
        cache.put(tx, &name, How::Add, None, new)?;
    }
    let found = if is_new { cache.find(tx, &name)? } else { found };
    let Some((place, had)) = found else {
        if !meta.has(b'q') {
            answer(meta, "EN", None, out);
        }
        return Ok(());
    };
    let mut head = had;
    let told = tell(cache, meta, idle_ms, &mut head, is_new);
    let marks = match (head.marks & WON != 0, head.marks & STALE != 0) {
        (true, true) => " Z X",
        (true, false) => " Z",
        (false, true) => " X W",
        (false, false) if is_new || told.soon => " W",
        (false, false) => "",
    };
    if marks.ends_with('W') {
        head.marks |= WON;
    }
    if head.expires != had.expires {
        cache.keys.expire(tx, &name, place, head.expires)?;
    }
    if head.marks != had.marks {
        tx.set(place.marks(), head.marks)?;
    }
    if meta.has(b'u') {
        // It does not count as a use.
        cache.keys.recency.touch(name.hash, cache.now_ms().saturating_sub(u64::from(idle_ms)));
    }
    let mut value = Vec::new();
    if meta.has(b'v') {
        item::append_value(tx, place, head.length, &mut value)?;
    }
    give(meta, &told, marks, &value, out);
    Ok(())
}

/// Whether the reply is left out: a client that asks for quiet expects this one.
fn is_expected(meta: &Meta, code: &str) -> bool {
    meta.has(b'q') && code == "HD"
}

/// ms
pub fn set(cache: &Cache<'_>, tx: &mut impl Store, meta: &Meta, value: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    // Whoever has parsed the request has looked at its mode.
    let how = meta.how().unwrap_or(How::Set);
    let (name, flags) = (Name::of(&meta.key), meta.number(b'F').unwrap_or(0));
    let mut cas = meta.number::<u64>(b'C');
    let mut new = New { flags, expires: moment(cache.now_ms(), meta.number(b'T').unwrap_or(0)), value, marks: 0 };
    // With the flag I a value that is too old is stored as a stale one, and expires when the newer
    // one would have.
    if let (true, How::Set | How::Replace, Some(given)) = (meta.has(b'I'), how, cas)
        && let Some((_, old)) = cache.find(tx, &name)?
        && (1..old.extra).contains(&given)
    {
        cas = Some(old.extra);
        (new.expires, new.marks) = (old.expires, STALE | old.marks & WON);
    }
    let (code, number) = match cache.put(tx, &name, how, cas, new)? {
        Done::Stored(number) => ("HD", Some(number)),
        Done::NotStored => ("NS", None),
        Done::Changed => ("EX", None),
        Done::NotFound => ("NF", None),
    };
    if is_expected(meta, code) {
        return Ok(());
    }
    answer(meta, code, number, out);
    Ok(())
}

/// md
pub fn delete(cache: &Cache<'_>, tx: &mut impl Store, meta: &Meta, out: &mut Vec<u8>) -> Result<(), Error> {
    let name = Name::of(&meta.key);
    let code = match cache.find(tx, &name)? {
        None => "NF",
        Some((_, head)) if meta.number(b'C').is_some_and(|cas: u64| cas != head.extra) => "EX",
        Some((place, head)) if meta.has(b'I') => {
            if let Some(time) = meta.number(b'T') {
                cache.keys.expire(tx, &name, place, moment(cache.now_ms(), time))?;
            }
            tx.set(place.marks(), (head.marks | STALE) & !WON)?;
            let serial = tx.update(cache.root.serial(), |serial| serial + 1)?;
            tx.set(place.extra(), serial)?;
            "HD"
        }
        Some(_) => {
            cache.remove(tx, &name)?;
            "HD"
        }
    };
    if !is_expected(meta, code) {
        answer(meta, code, None, out);
    }
    Ok(())
}

/// ma
pub fn arithmetic(cache: &Cache<'_>, tx: &mut impl Store, meta: &Meta, out: &mut Vec<u8>) -> Result<(), Error> {
    let up = match meta.token(b'M') {
        None | Some(b"I" | b"i" | b"+") => true,
        Some(b"D" | b"d" | b"-") => false,
        Some(_) => {
            line(out, "CLIENT_ERROR invalid mode for ma M token");
            return Ok(());
        }
    };
    let name = Name::of(&meta.key);
    let found = cache.asked(tx, &name)?;
    let cas = meta.number::<u64>(b'C').filter(|&cas| cas != 0);
    let number = match found {
        None => match meta.has(b'N') {
            true => {
                let first = meta.number::<u64>(b'J').unwrap_or(0);
                let text = first.to_string();
                let new = New { flags: 0, expires: 0, value: text.as_bytes(), marks: 0 };
                cache.put(tx, &name, How::Add, None, new)?;
                Some(first)
            }
            false => {
                answer(meta, "NF", None, out);
                return Ok(());
            }
        },
        Some((_, head)) if head.length > 0 && cas.is_some_and(|cas| cas != head.extra) => {
            answer(meta, "EX", None, out);
            return Ok(());
        }
        Some(found) => cache.add(tx, &name, found, up, meta.number(b'D').unwrap_or(1))?.map(|(sum, _)| sum),
    };
    let (Some(number), Some((place, had))) = (number, cache.find(tx, &name)?) else {
        line(out, "CLIENT_ERROR cannot increment or decrement non-numeric value");
        return Ok(());
    };
    let mut head = had;
    let told = tell(cache, meta, 0, &mut head, found.is_none());
    if head.expires != had.expires {
        cache.keys.expire(tx, &name, place, head.expires)?;
    }
    // As in memcached, a number that was made is told in any case.
    if found.is_none() || !is_expected(meta, "HD") {
        give(meta, &told, "", number.to_string().as_bytes(), out);
    }
    Ok(())
}

/// me
pub fn debug(cache: &Cache<'_>, from: &impl Load, meta: &Meta, out: &mut Vec<u8>) -> Result<(), Error> {
    let name = Name::of(&meta.key);
    let Some((_, head)) = cache.find(from, &name)? else {
        line(out, "EN");
        return Ok(());
    };
    let idle = cache.keys.recency.age_ms(name.hash, cache.now_ms()) / 1000;
    out.extend_from_slice(b"ME ");
    out.extend_from_slice(&meta.sent);
    let (exp, cas, size) = (ttl(cache.now_ms(), &head), head.extra, u64::from(head.length) + item::OVERHEAD);
    line(out, &format!(" exp={exp} la={idle} cas={cas} fetch=no cls=1 size={size}"));
    Ok(())
}
