//! LLEN, LRANGE, LINDEX, LPOS.

use nearpm::prelude::*;

use super::list;
use crate::redis::db::{Db, Found, Outcome, SYNTAX, refuse};
use crate::redis::reply::Reply;
use crate::redis::words::{integer, part};
use crate::store::Name;

/// LLEN key
pub fn llen(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let length = list(db, from, &Name::of(&words[1]))?.map_or(Ok(0), |found| found.body.len(from))?;
    reply.integer(length as i64);
    Ok(())
}

/// LRANGE key start stop
pub fn lrange(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (start, stop) = (integer(&words[2])?, integer(&words[3])?);
    let Some(Found { body, .. }) = list(db, from, &Name::of(&words[1]))? else {
        reply.array(0);
        return Ok(());
    };
    let part = part(start, stop, body.len(from)?);
    let length = (part.end - part.start) as usize;
    reply.array(length);
    for element in body.iter_from(from, part.start)?.take(length) {
        reply.bulk(&element?.1.read(from)?);
    }
    Ok(())
}

/// LINDEX key index
pub fn lindex(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let index = integer(&words[2])?;
    let Some(Found { body, .. }) = list(db, from, &Name::of(&words[1]))? else {
        reply.null();
        return Ok(());
    };
    let length = body.len(from)? as i64;
    let at = if index < 0 { index.saturating_add(length) } else { index };
    let element = u64::try_from(at).map_or(Ok(None), |at| body.entry_at(from, at))?;
    let element = element.map(|(_, element)| element.read(from)).transpose()?;
    reply.bulk_or_null(element.as_deref());
    Ok(())
}

/// LPOS key element [RANK rank] [COUNT n] [MAXLEN n]
pub fn lpos(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (mut rank, mut count, mut most, mut options) = (1, None, 0, words[3..].iter());
    while let Some(option) = options.next() {
        let Some(value) = options.next() else { return refuse(SYNTAX) };
        match option.to_ascii_lowercase().as_slice() {
            b"rank" => rank = integer(value)?,
            b"count" => {
                let given = integer(value).ok().filter(|given| *given >= 0);
                count = Some(given.map_or_else(|| refuse("ERR COUNT can't be negative"), Ok)?);
            }
            b"maxlen" => {
                let given = integer(value).ok().filter(|given| *given >= 0);
                most = given.map_or_else(|| refuse("ERR MAXLEN can't be negative"), Ok)?;
            }
            _ => return refuse(SYNTAX),
        }
    }
    if rank == 0 {
        return refuse(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list",
        );
    }
    if rank == i64::MIN {
        return refuse("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807");
    }
    let wanted = match count {
        Some(0) => usize::MAX,
        Some(count) => count as usize,
        None => 1,
    };
    let mut places = Vec::new();
    if let Some(Found { body, .. }) = list(db, from, &Name::of(&words[1]))? {
        let length = body.len(from)?;
        let looked = if most == 0 { length } else { length.min(most as u64) };
        let first = if rank > 0 { 0 } else { length - looked };
        for (index, entry) in body.iter_from(from, first)?.take(looked as usize).enumerate() {
            if entry?.1.read(from)? == words[2] {
                places.push(first as i64 + index as i64);
            }
        }
        if rank < 0 {
            places.reverse();
        }
        places = places.into_iter().skip(rank.unsigned_abs() as usize - 1).take(wanted).collect();
    }
    match (count, places.first()) {
        (None, None) => reply.null(),
        (None, Some(place)) => reply.integer(*place),
        _ => {
            reply.array(places.len());
            places.into_iter().for_each(|place| reply.integer(place));
        }
    }
    Ok(())
}
