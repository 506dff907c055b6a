//! HRANDFIELD.

use nearpm::prelude::*;

use super::hash;
use crate::redis::db::{Db, Outcome, SYNTAX, refuse};
use crate::redis::reply::Reply;
use crate::redis::sets::{drawn_count, each_drawn};
use crate::redis::words::is;
use crate::store::Name;

/// HRANDFIELD key [count [WITHVALUES]]
pub fn hrandfield(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let count = words.get(2).map(|word| drawn_count(word)).transpose()?;
    let with = match words.get(3..).unwrap_or_default() {
        [] => false,
        [option] if is(option, "withvalues") => true,
        _ => return refuse(SYNTAX),
    };
    let body = hash(db, from, &Name::of(&words[1]))?.map(|found| found.body);
    let length = body.map_or(Ok(0), |body| body.len(from))?;
    let entry = |place| {
        let Some((name, value)) = body.map_or(Ok(None), |body| body.entry_at(from, place))? else { return Ok(None) };
        Ok(Some((name.bytes, if with { value.read(from)? } else { Vec::new() })))
    };
    let Some(count) = count else {
        let drawn = if length == 0 { None } else { entry(rand::random_range(0..length))? };
        reply.bulk_or_null(drawn.as_ref().map(|(name, _)| name.as_slice()));
        return Ok(());
    };
    let drawn = if count < 0 && length > 0 { count.unsigned_abs() } else { length.min(count.unsigned_abs()) } as usize;
    let pairs = with && reply.resp3();
    reply.array(if with && !pairs { 2 * drawn } else { drawn });
    each_drawn((length, count), reply, entry, |reply, (name, value)| {
        if pairs {
            reply.array(2);
        }
        reply.bulk(&name);
        if with {
            reply.bulk(&value);
        }
        Ok(())
    })
}
