//! What the meta protocol's commands do, and what they answer.

use nearpm::prelude::*;

use super::cache::{Cache, Done, Found, New, STALE, WON, moment};
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

/// Replies with an item; with a number instead of its value, which may have spaces behind it.
fn give(
    cache: &Cache<'_>,
    from: &impl Load,
    meta: &Meta,
    found: (Found, &Name),
    (marks, number): (&str, Option<u64>),
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let ((place, head), name) = found;
    let now_ms = cache.now_ms();
    let number = number.map(|number| number.to_string());
    let length = number.as_ref().map_or(head.length as usize, String::len);
    if meta.has(b'v') {
        out.extend_from_slice(format!("VA {length}").as_bytes());
    } else {
        out.extend_from_slice(b"HD");
    }
    for (kind, token) in &meta.flags {
        match kind {
            b'c' => flag(out, b'c', head.extra),
            b'f' => flag(out, b'f', head.tag),
            b's' => flag(out, b's', head.length),
            b't' => flag(out, b't', ttl(now_ms, &head)),
            b'l' => flag(out, b'l', cache.keys.recency.age_ms(name.hash, now_ms) / 1000),
            b'h' => {
                let since = now_ms.saturating_sub(head.stored);
                flag(out, b'h', u8::from(u64::from(cache.keys.recency.age_ms(name.hash, now_ms)) < since));
            }
            _ => echo(meta, *kind, token, out),
        }
    }
    out.extend_from_slice(marks.as_bytes());
    out.extend_from_slice(b"\r\n");
    if meta.has(b'v') {
        match number {
            Some(number) => out.extend_from_slice(number.as_bytes()),
            None => item::append_value(from, place, head.length, out)?,
        }
        out.extend_from_slice(b"\r\n");
    }
    Ok(())
}

/// mg
pub fn get(cache: &Cache<'_>, tx: &mut impl Store, meta: &Meta, out: &mut Vec<u8>) -> Result<(), Error> {
    let name = Name::of(&meta.key);
    // Before the request itself counts as a use.
    let idle_ms = cache.keys.recency.age_ms(name.hash, cache.now_ms());
    let Some((place, mut head)) = cache.asked(tx, &name)? else {
        let Some(time) = meta.number(b'N') else {
            if !meta.has(b'q') {
                answer(meta, "EN", None, out);
            }
            return Ok(());
        };
        let new = New { flags: 0, expires: moment(cache.now_ms(), time), value: b"", marks: WON };
        cache.put(tx, &name, How::Add, None, new)?;
        let made = cache.find(tx, &name)?;
        return made.map_or(Ok(()), |found| give(cache, tx, meta, (found, &name), (" W", None), out));
    };
    if let Some(time) = meta.number(b'T') {
        head.expires = moment(cache.now_ms(), time);
        tx.set(place.expires(), head.expires)?;
    }
    let stale = head.marks & STALE != 0;
    let soon = meta.number::<i64>(b'R').is_some_and(|least| (0..least).contains(&ttl(cache.now_ms(), &head)));
    let marks = match (head.marks & WON != 0, stale) {
        (true, true) => " Z X",
        (true, false) => " Z",
        (false, true) => " X W",
        (false, false) if soon => " W",
        (false, false) => "",
    };
    if marks.ends_with('W') {
        tx.set(place.marks(), head.marks | WON)?;
    }
    // What the request itself has touched would be no news.
    cache.keys.recency.touch(name.hash, cache.now_ms() - u64::from(idle_ms).min(cache.now_ms()));
    give(cache, tx, meta, ((place, head), &name), (marks, None), out)?;
    cache.keys.recency.touch(name.hash, cache.now_ms());
    Ok(())
}

/// Whether the reply is left out: a client that asks for quiet expects this one.
fn is_expected(meta: &Meta, code: &str) -> bool {
    meta.has(b'q') && code == "HD"
}

/// ms
pub fn set(cache: &Cache<'_>, tx: &mut impl Store, meta: &Meta, value: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let how = match meta.token(b'M').map(<[u8]>::to_ascii_uppercase).as_deref() {
        None | Some(b"S") => How::Set,
        Some(b"E") => How::Add,
        Some(b"A") => How::Append,
        Some(b"P") => How::Prepend,
        Some(b"R") => How::Replace,
        Some(_) => {
            line(out, "CLIENT_ERROR invalid mode for ms M token");
            return Ok(());
        }
    };
    let expires = moment(cache.now_ms(), meta.number(b'T').unwrap_or(0));
    let (name, flags) = (Name::of(&meta.key), meta.number(b'F').unwrap_or(0));
    let cas = meta.number::<u64>(b'C');
    // With the flag I a value that is too old is stored as a stale one.
    let old = cache.find(tx, &name)?.map(|(_, head)| head.extra);
    let stale = meta.has(b'I') && cas.zip(old).is_some_and(|(cas, old)| cas < old);
    let (cas, marks) = if stale { (old, STALE) } else { (cas, 0) };
    let done = cache.put(tx, &name, how, cas, New { flags, expires, value, marks })?;
    let (code, number) = match done {
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
                tx.set(place.expires(), moment(cache.now_ms(), time))?;
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
    let (name, mut number) = (Name::of(&meta.key), None);
    let code = match cache.asked(tx, &name)? {
        None => match meta.number(b'N') {
            None => "NF",
            Some(time) => {
                let first = meta.number::<u64>(b'J').unwrap_or(0).to_string();
                let expires = moment(cache.now_ms(), time);
                let new = New { flags: 0, expires, value: first.as_bytes(), marks: 0 };
                cache.put(tx, &name, How::Add, None, new)?;
                "HD"
            }
        },
        Some((_, head)) if meta.number(b'C').is_some_and(|cas: u64| cas != head.extra) => "EX",
        Some(found) => match cache.add(tx, &name, found, up, meta.number(b'D').unwrap_or(1))? {
            None => {
                line(out, "CLIENT_ERROR cannot increment or decrement non-numeric value");
                return Ok(());
            }
            Some((sum, _)) => {
                number = Some(sum);
                if let (Some(time), Some((place, _))) = (meta.number(b'T'), cache.find(tx, &name)?) {
                    tx.set(place.expires(), moment(cache.now_ms(), time))?;
                }
                "HD"
            }
        },
    };
    if is_expected(meta, code) {
        return Ok(());
    }
    match cache.find(tx, &name)?.filter(|_| code == "HD") {
        Some(found) => give(cache, tx, meta, (found, &name), ("", number), out),
        None => {
            answer(meta, code, None, out);
            Ok(())
        }
    }
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
