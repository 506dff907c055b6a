//! CONFIG GET, SET, RESETSTAT, REWRITE.

use std::sync::atomic::Ordering;

use nearpm::prelude::*;

use super::Redis;
use super::db::{Db, Outcome, SYNTAX, refuse, refuse_with};
use super::reply::Reply;
use super::subcommands::wrong_form;
use crate::glob::matches;
use crate::options::{Eviction, Level};
use crate::service::Service;

/// As Redis names a policy.
pub fn policy(eviction: Eviction) -> &'static str {
    if eviction == Eviction::Lru { "allkeys-lru" } else { "noeviction" }
}

/// All parameters with their values.
fn all(redis: &Redis) -> Vec<(String, String)> {
    let settings = &redis.state.settings;
    let fsync = match redis.options.durability {
        Level::Async => "everysec",
        Level::Durable | Level::Group => "always",
    };
    let network = &redis.options.network;
    let port = network
        .listen
        .as_deref()
        .map_or(Redis::PORT.to_string(), |listen| listen.rsplit(':').next().unwrap_or_default().to_owned());
    let mut all: Vec<(String, String)> = [
        ("save", String::new()),
        ("appendonly", "yes".to_owned()),
        ("appendfsync", fsync.to_owned()),
        ("databases", "1".to_owned()),
        ("port", port),
        ("maxmemory", settings.memory_limit().unwrap_or(0).to_string()),
        ("maxmemory-policy", policy(settings.eviction()).to_owned()),
        ("proto-max-bulk-len", redis.options.max_value.to_string()),
        ("io-threads", redis.options.threads.to_string()),
        ("cluster-enabled", "no".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    for number in settings.numbers() {
        all.push((number.name.to_owned(), number.get().to_string()));
        if number.name.contains("listpack") {
            // The name of Redis 6, which its clients still ask for.
            all.push((number.name.replace("listpack", "ziplist"), number.get().to_string()));
        }
    }
    all
}

fn get(redis: &Redis, patterns: &[Vec<u8>], reply: &mut Reply<'_>) {
    let patterns: Vec<_> = patterns.iter().map(|word| word.to_ascii_lowercase()).collect();
    let mut given = all(redis);
    given.push((PASSWORD.to_owned(), String::from_utf8_lossy(&redis.state.access.password()).into_owned()));
    given.retain(|(name, _)| patterns.iter().any(|pattern| matches(pattern, name.as_bytes())));
    reply.map(given.len());
    for (name, value) in given {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
}

/// The password of the user `default`.
pub const PASSWORD: &str = "requirepass";

/// Gives the user `default` another password, or none.
fn set_password(redis: &Redis, password: &str) -> Outcome {
    let set = redis.state.access.set_password(password.as_bytes());
    set.or_else(|why| refuse_with(format!("ERR CONFIG SET failed - {why}")))
}

/// Sets one parameter. One that was given when the server was started takes only what it has.
fn set(redis: &Redis, name: &str, value: &str) -> Outcome {
    let failed =
        |why: String| refuse_with(format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}"));
    if name == PASSWORD {
        // Behind all others, which may fail.
        return Ok(());
    }
    let known = all(redis).into_iter().find(|(known, _)| known == name);
    match (redis.state.settings.set(name, value), known) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some((_, has))) if has == value => Ok(()),
        (Err(why), _) if why != "unknown" => failed(why),
        (Err(_), Some(_)) => failed("can't set immutable config: it is given when the server is started".to_owned()),
        (Err(_), None) => refuse_with(format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'")),
    }
}

/// Sets several parameters, or none of them.
fn set_all(redis: &Redis, pairs: &[(String, String)]) -> Outcome {
    let had = all(redis);
    for (index, (name, value)) in pairs.iter().enumerate() {
        let twice = pairs[..index].iter().any(|(before, _)| before == name);
        let done = if twice {
            refuse_with(format!("ERR CONFIG SET failed (possibly related to argument '{name}') - duplicate parameter"))
        } else {
            set(redis, name, value)
        };
        if done.is_err() {
            for (name, _) in &pairs[..index] {
                let old = had.iter().find(|(known, _)| known == name);
                // It was valid before.
                old.iter().for_each(|(name, value)| drop(redis.state.settings.set(name, value)));
            }
            return done;
        }
    }
    pairs.iter().find(|(name, _)| name == PASSWORD).map_or(Ok(()), |(_, password)| set_password(redis, password))
}

/// CONFIG GET pattern ..., SET name value ..., RESETSTAT, REWRITE
pub fn config(redis: &Redis, db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let sub = words[1].to_ascii_lowercase();
    match (sub.as_slice(), &words[2..]) {
        (b"get", patterns @ [_, ..]) => get(redis, patterns, reply),
        (b"set", pairs @ [_, _, ..]) if pairs.len().is_multiple_of(2) => {
            let text =
                |word: &Vec<u8>| String::from_utf8(word.clone()).or_else(|_| refuse("ERR CONFIG SET takes text"));
            let pair = |pair: &[Vec<u8>]| Ok((text(&pair[0])?.to_ascii_lowercase(), text(&pair[1])?));
            set_all(redis, &pairs.chunks_exact(2).map(pair).collect::<Outcome<Vec<_>>>()?)?;
            redis.state.used.store(db.keys.bytes(from)?, Ordering::Relaxed);
            reply.simple("OK");
        }
        (b"resetstat", []) => {
            redis.totals.reset();
            reply.simple("OK");
        }
        (b"rewrite", []) => return refuse("ERR The server is running without a config file"),
        (b"set", _) => return refuse(SYNTAX),
        _ => return Err(wrong_form(words)),
    }
    Ok(())
}
