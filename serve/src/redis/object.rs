//! OBJECT and MEMORY: about what a key leads to.

use nearpm::prelude::*;

use super::db::{Db, Kind, Outcome, SYNTAX, refuse};
use super::reply::Reply;
use super::resp::number;
use super::settings::Settings;
use super::subcommands::wrong_form;
use super::value::Value;
use super::words::{integer, is};
use crate::store::{Item, Name, expired};

/// The encoding that Redis would choose; a pool has one way to keep a value.
fn encoding(settings: &Settings, from: &impl Load, found: (Ptr<Item>, Item)) -> Result<&'static str, Error> {
    let within = |text: &Vec<u8>, limit: i64| text.len() as i64 <= limit;
    let few = |count: usize, limit: i64| count as i64 <= limit;
    let value = Value::read(from, found)?;
    Ok(match value {
        Value::String(bytes) if number(&bytes).is_some() => "int",
        Value::String(bytes) if bytes.len() <= 44 => "embstr",
        Value::String(_) => "raw",
        Value::List(_) => "quicklist",
        Value::Set(rows) => {
            let numbers = few(rows.len(), settings.set_entries.get()) && rows.iter().all(|row| number(row).is_some());
            if numbers { "intset" } else { "hashtable" }
        }
        Value::Hash(rows) => {
            let limit = settings.hash_value.get();
            let small = rows.iter().all(|(field, value)| within(field, limit) && within(value, limit));
            if few(rows.len(), settings.hash_entries.get()) && small { "listpack" } else { "hashtable" }
        }
        Value::ZSet(rows) => {
            let small = rows.iter().all(|(member, _)| within(member, settings.zset_value.get()));
            if few(rows.len(), settings.zset_entries.get()) && small { "listpack" } else { "skiplist" }
        }
    })
}

/// OBJECT ENCODING, REFCOUNT, IDLETIME, FREQ key
pub fn object(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let sub = words[1].to_ascii_lowercase();
    let [_, _, key] = words else { return Err(wrong_form(words)) };
    let name = Name::of(key);
    // To look is not to use.
    let age_ms = db.keys.recency.age_ms(name.hash, db.keys.now_ms);
    let found = db.keys.find(from, &name)?.filter(|(_, item)| !expired(item.expires, db.keys.now_ms));
    let Some(found) = found else {
        reply.null();
        return Ok(());
    };
    match sub.as_slice() {
        b"encoding" => reply.bulk(encoding(&db.state.settings, from, found)?.as_bytes()),
        b"refcount" => reply.integer(1),
        b"idletime" => reply.integer(i64::from(age_ms / 1000)),
        _ => {
            return refuse(
                "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.",
            );
        }
    }
    Ok(())
}

/// MEMORY USAGE key [SAMPLES n]
pub fn memory(db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    match &words[2..] {
        [_] => {}
        [_, option, samples] if is(option, "samples") => {
            if integer(samples)? < 0 {
                return refuse(SYNTAX);
            }
        }
        _ => return refuse(SYNTAX),
    }
    let name = Name::of(&words[2]);
    let found = db.keys.find(from, &name)?.filter(|(_, item)| !expired(item.expires, db.keys.now_ms));
    match found {
        None => reply.null(),
        Some((_, head)) => {
            let owned = if Kind::of(&head)? == Kind::String { 0 } else { head.stored };
            reply.integer((db.keys.bytes_of(&name, &head) + owned) as i64);
        }
    }
    Ok(())
}
