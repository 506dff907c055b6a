//! SCAN, SSCAN, HSCAN, ZSCAN. The cursor is a hash, and what is given lies behind it in the order
//! of hashes: each key that is there from the first call to the last is given exactly once.

use nearpm::collections::Ranked;
use nearpm::prelude::*;

use super::db::{Db, Hash, Kind, Outcome, SYNTAX, Set, ZSet, refuse};
use super::reply::{Reply, score_text};
use super::words::{integer, is};
use crate::glob::matches;
use crate::store::{Label, Name, expired};

/// The options of all four.
struct Options<'w> {
    cursor: u64,
    pattern: Option<&'w [u8]>,
    count: usize,
    kind: Option<Vec<u8>>,
}

impl Options<'_> {
    fn fits(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| matches(pattern, name))
    }
}

fn options(words: &[Vec<u8>], of_keys: bool) -> Outcome<Options<'_>> {
    let cursor = std::str::from_utf8(&words[0]).ok().and_then(|text| text.parse().ok());
    let Some(cursor) = cursor else { return refuse("ERR invalid cursor") };
    let mut options = Options { cursor, pattern: None, count: 10, kind: None };
    let mut rest = words[1..].iter();
    while let Some(option) = rest.next() {
        let Some(value) = rest.next() else { return refuse(SYNTAX) };
        if is(option, "match") {
            options.pattern = Some(value);
        } else if is(option, "count") {
            let count = integer(value)?;
            if count < 1 {
                return refuse(SYNTAX);
            }
            options.count = count.min(1 << 20) as usize;
        } else if is(option, "type") && of_keys {
            options.kind = Some(value.to_ascii_lowercase());
        } else {
            return refuse(SYNTAX);
        }
    }
    Ok(options)
}

/// SCAN cursor [MATCH pattern] [COUNT n] [TYPE kind]
pub fn scan(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let options = options(&words[1..], true)?;
    let (next, found) = db.keys.scan(from, options.cursor, options.count)?;
    let mut given = Vec::new();
    for (name, item) in found {
        let kind = Kind::of(&item)?.name();
        let wanted = options.kind.as_ref().is_none_or(|wanted| wanted == kind.as_bytes());
        if wanted && !expired(item.expires, db.keys.now_ms) && options.fits(&name.bytes) {
            given.push(name);
        }
    }
    reply.array(2);
    reply.bulk(next.to_string().as_bytes());
    reply.bulks(given.iter().map(|name| name.bytes.as_slice()));
    Ok(())
}

/// Entries of a collection from a hash on, at most about `count`, and the hash to go on from. Those
/// of one hash are given together.
fn part_of<V: Persistent>(
    from: &impl Load,
    body: Ptr<PBTreeMap<Ranked<Label>, V>>,
    options: &Options<'_>,
) -> Result<(u64, Vec<(Name, V)>), Error> {
    let mut found: Vec<(Name, V)> = Vec::new();
    for entry in body.range(from, Name::from_hash(options.cursor)..)? {
        let (name, value) = entry?;
        if found.len() >= options.count && found.last().is_some_and(|(last, _)| last.hash != name.hash) {
            return Ok((name.hash, found));
        }
        found.push((name, value));
    }
    Ok((0, found))
}

/// Replies with the cursor and the entries that fit, each as one or two texts.
fn give<V>(
    found: (u64, Vec<(Name, V)>),
    options: &Options<'_>,
    reply: &mut Reply<'_>,
    second: impl Fn(V) -> Result<Option<Vec<u8>>, Error>,
) -> Outcome {
    let mut rows = Vec::new();
    for (name, value) in found.1.into_iter().filter(|(name, _)| options.fits(&name.bytes)) {
        rows.push(name.bytes);
        rows.extend(second(value)?);
    }
    reply.array(2);
    reply.bulk(found.0.to_string().as_bytes());
    reply.bulks(rows.iter().map(Vec::as_slice));
    Ok(())
}

/// SSCAN key cursor [MATCH pattern] [COUNT n]
pub fn sscan(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let options = options(&words[2..], false)?;
    let found = db.collection::<Set>(from, &Name::of(&words[1]), Kind::Set)?;
    let part = found.map_or(Ok((0, Vec::new())), |found| part_of(from, found.body, &options))?;
    give(part, &options, reply, |_| Ok(None))
}

/// HSCAN key cursor [MATCH pattern] [COUNT n]
pub fn hscan(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let options = options(&words[2..], false)?;
    let found = db.collection::<Hash>(from, &Name::of(&words[1]), Kind::Hash)?;
    let part = found.map_or(Ok((0, Vec::new())), |found| part_of(from, found.body, &options))?;
    give(part, &options, reply, |value| value.read(from).map(Some))
}

/// ZSCAN key cursor [MATCH pattern] [COUNT n]
pub fn zscan(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let options = options(&words[2..], false)?;
    let found = db.collection::<ZSet>(from, &Name::of(&words[1]), Kind::ZSet)?;
    let part = found.map_or(Ok((0, Vec::new())), |found| part_of(from, found.body.scores(), &options))?;
    give(part, &options, reply, |score| Ok(Some(score_text(f64::from_bits(score)).into_bytes())))
}
