//! What the server tells about itself: INFO, CONFIG GET, COMMAND.

use nearpm::prelude::*;

use super::db::{Db, Outcome, is, refuse};
use super::reply::Reply;
use super::{Redis, table};
use crate::glob::matches;
use crate::options::{Eviction, Level};
use crate::tally::of;

/// The version of Redis whose commands these are.
pub const VERSION: &str = "7.0.15";

/// PING [text]
pub fn ping(words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    match words {
        [_] => reply.simple("PONG"),
        [_, text] => reply.bulk(text),
        _ => return refuse("ERR wrong number of arguments for 'ping' command"),
    }
    Ok(())
}

/// INFO [section ...]
pub fn info(redis: &Redis, db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let totals = &redis.totals;
    let (keys, bytes) = (db.keys.len(from)?, db.keys.bytes(from)?);
    let sections = [
        (
            "Server",
            format!(
                "redis_version:{VERSION}\r\nserver_name:nearpm\r\nnearpm_version:{}\r\nredis_mode:standalone\r\nprocess_id:{}\r\nuptime_in_seconds:{}\r\n",
                env!("CARGO_PKG_VERSION"),
                std::process::id(),
                redis.started.elapsed().as_secs(),
            ),
        ),
        (
            "Clients",
            format!(
                "connected_clients:{}\r\nmaxclients:{}\r\n",
                of(&totals.clients),
                redis.options.network.max_clients
            ),
        ),
        (
            "Memory",
            format!(
                "used_memory:{bytes}\r\nmaxmemory:{}\r\nmaxmemory_policy:{}\r\n",
                redis.options.memory_limit.unwrap_or(0),
                policy(redis),
            ),
        ),
        (
            "Persistence",
            format!(
                "loading:0\r\nnearpm_durability:{:?}\r\nnearpm_pool:{}\r\n",
                redis.options.durability, redis.options.pool
            ),
        ),
        (
            "Stats",
            format!(
                "total_connections_received:{}\r\ntotal_commands_processed:{}\r\nrejected_connections:{}\r\nexpired_keys:{}\r\nevicted_keys:{}\r\nkeyspace_hits:{}\r\nkeyspace_misses:{}\r\n",
                of(&totals.accepted),
                of(&totals.requests),
                of(&totals.refused),
                of(&totals.expired),
                of(&totals.evictions),
                of(&totals.hits),
                of(&totals.gets).saturating_sub(of(&totals.hits)),
            ),
        ),
        ("Replication", "role:master\r\nconnected_slaves:0\r\n".to_owned()),
        ("Keyspace", if keys == 0 { String::new() } else { format!("db0:keys={keys},expires=0,avg_ttl=0\r\n") }),
    ];
    let everything =
        words.len() == 1 || words[1..].iter().any(|w| ["all", "default", "everything"].iter().any(|e| is(w, e)));
    let wanted = |name: &str| everything || words[1..].iter().any(|word| is(word, name));
    let texts: Vec<_> =
        sections.iter().filter(|(name, _)| wanted(name)).map(|(name, text)| format!("# {name}\r\n{text}")).collect();
    reply.bulk(texts.join("\r\n").as_bytes());
    Ok(())
}

fn policy(redis: &Redis) -> &'static str {
    if redis.eviction() == Eviction::Lru { "allkeys-lru" } else { "noeviction" }
}

/// CONFIG GET pattern ...
pub fn config(redis: &Redis, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    if !is(&words[1], "get") {
        return refuse("ERR the configuration is given when the server is started, and CONFIG has GET alone");
    }
    let patterns: Vec<_> = words[2..].iter().map(|word| word.to_ascii_lowercase()).collect();
    if patterns.is_empty() {
        return refuse("ERR wrong number of arguments for 'config|get' command");
    }
    let fsync = match redis.options.durability {
        Level::Async => "everysec",
        Level::Durable | Level::Group => "always",
    };
    let all = [
        ("save", String::new()),
        ("appendonly", "yes".to_owned()),
        ("appendfsync", fsync.to_owned()),
        ("databases", "1".to_owned()),
        ("maxclients", redis.options.network.max_clients.to_string()),
        ("maxmemory", redis.options.memory_limit.unwrap_or(0).to_string()),
        ("maxmemory-policy", policy(redis).to_owned()),
        ("proto-max-bulk-len", redis.options.max_value.to_string()),
    ];
    let given: Vec<_> =
        all.iter().filter(|(name, _)| patterns.iter().any(|pattern| matches(pattern, name.as_bytes()))).collect();
    reply.map(given.len());
    for (name, value) in given {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    Ok(())
}

/// COMMAND [COUNT|DOCS|LIST|INFO ...]
pub fn command(words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    match words.get(1).map(|word| word.to_ascii_lowercase()).as_deref() {
        Some(b"count") => reply.integer(table::TABLE.len() as i64),
        Some(b"docs") => reply.map(0),
        Some(b"list") => {
            reply.array(table::TABLE.len());
            table::TABLE.iter().for_each(|spec| reply.bulk(spec.name.as_bytes()));
        }
        None | Some(b"info") => {
            let wanted = |spec: &&table::Spec| words.len() <= 2 || words[2..].iter().any(|word| is(word, spec.name));
            let specs: Vec<_> = table::TABLE.iter().filter(wanted).collect();
            reply.array(specs.len());
            for spec in specs {
                reply.array(6);
                reply.bulk(spec.name.as_bytes());
                reply.integer(spec.arity);
                reply.array(1);
                reply.simple(if spec.changes { "write" } else { "readonly" });
                // Which words are keys matters to clusters, and this is none.
                (0..3).for_each(|_| reply.integer(0));
            }
        }
        Some(_) => return refuse("ERR unknown subcommand of COMMAND"),
    }
    Ok(())
}
