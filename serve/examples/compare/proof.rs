//! Whether what a client was timed for was done: a server that refuses everything answers fast.
//!
//! The clients print a rate whatever the replies were. So the servers are asked, and a run whose
//! work is not there has no rate.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};

use crate::client::{Client, Value};

/// Keys and members that redis-benchmark draws from.
pub const KEYS: u64 = 1000;
/// Keys that are stored in one command.
const AT_ONCE: u64 = 100;

/// What redis-benchmark is to do in one run.
#[derive(Clone, Copy)]
pub struct Test<'a> {
    /// As `-t` names it.
    pub name: &'a str,
    /// Requests.
    pub requests: u64,
    /// Bytes of a value.
    pub bytes: u64,
}

fn ask(client: &mut Client, line: &str) -> Result<Value> {
    client.ask(&line.split(' ').collect::<Vec<_>>()).with_context(|| format!("{line} is not answered"))
}

fn number(client: &mut Client, line: &str) -> Result<u64> {
    let reply = ask(client, line)?;
    match &reply {
        Value::Integer(number) => u64::try_from(*number).ok(),
        Value::Bulk(text) => String::from_utf8_lossy(text).parse().ok(),
        _ => None,
    }
    .with_context(|| format!("{line}: {reply:?} is no number"))
}

/// A counter of INFO.
fn counter(client: &mut Client, name: &str) -> Result<u64> {
    let Value::Bulk(text) = ask(client, "info stats")? else { anyhow::bail!("INFO is no text") };
    let text = String::from_utf8_lossy(&text).into_owned();
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok());
    found.with_context(|| format!("INFO has no {name}"))
}

/// A key as redis-benchmark names it.
fn key(number: u64) -> String {
    format!("key:{number:012}")
}

/// Redis before a run: empty, but for the keys that are read. Gives what [`redis`] compares with.
pub fn prepare(address: SocketAddr, test: Test<'_>) -> Result<u64> {
    let mut client = Client::try_connect(address)?;
    ensure!(ask(&mut client, "flushall")? == Value::Simple("OK".to_owned()), "FLUSHALL is refused");
    if test.name == "get" {
        let value = "x".repeat(test.bytes as usize);
        for first in (0..KEYS).step_by(AT_ONCE as usize) {
            let pairs = (first..first + AT_ONCE).map(|at| format!(" {} {value}", key(at)));
            let line = format!("mset{}", pairs.collect::<String>());
            ensure!(ask(&mut client, &line)? == Value::Simple("OK".to_owned()), "MSET is refused");
        }
    }
    counter(&mut client, "keyspace_hits")
}

/// Redis after a run: what the requests must have left is there, whole.
pub fn redis(address: SocketAddr, test: Test<'_>, hits_before: u64) -> Result<()> {
    let client = &mut Client::try_connect(address)?;
    let Test { name, requests, bytes } = test;
    // Of so many draws from the keys at least half as many differ as on average.
    let distinct = (KEYS as f64 * (1.0 - (1.0 - 1.0 / KEYS as f64).powf(requests as f64)) / 2.0) as u64;
    let (found, least, most) = match name {
        "get" => (counter(client, "keyspace_hits")? - hits_before, requests, requests),
        "set" => (of_length(client, bytes)?, distinct, KEYS),
        "incr" => (sum_of_counters(client)?, requests, requests),
        "lpush" => (number(client, "llen mylist")?, requests, requests),
        "sadd" => (number(client, "scard myset")?, distinct, KEYS),
        "hset" => (number(client, "hlen myhash")?, distinct, KEYS),
        "zadd" => (number(client, "zcard myzset")?, distinct, KEYS),
        other => anyhow::bail!("nobody knows what {other} leaves behind"),
    };
    ensure!((least..=most).contains(&found), "{name}: {requests} requests left {found}, not {least} to {most}");
    Ok(())
}

/// Keys that are there; each must have a value of so many bytes.
fn of_length(client: &mut Client, bytes: u64) -> Result<u64> {
    let mut found = 0;
    for at in 0..KEYS {
        let length = number(client, &format!("strlen {}", key(at)))?;
        ensure!(length == 0 || length == bytes, "{} has {length} B, not {bytes}", key(at));
        found += u64::from(length > 0);
    }
    Ok(found)
}

fn sum_of_counters(client: &mut Client) -> Result<u64> {
    let mut sum = 0;
    for at in 0..KEYS {
        let name = format!("counter:{at:012}");
        sum +=
            if number(client, &format!("exists {name}"))? == 1 { number(client, &format!("get {name}"))? } else { 0 };
    }
    Ok(sum)
}

/// A number behind a name in what memcaslap printed, or in memcached's statistics.
fn named(text: &str, name: &str) -> Result<u64> {
    let found = text.lines().find_map(|line| line.trim().strip_prefix(name)?.trim().parse().ok());
    found.with_context(|| format!("no {name} in {text}"))
}

/// memcached after a run of memcaslap: it has answered, stored and given what memcaslap says that
/// it asked for. memcaslap itself compares each value that it reads (`-v 1`).
pub fn memcached(address: SocketAddr, printed: &str, bytes: u64) -> Result<()> {
    let mut client = Client::try_connect(address)?;
    client.send(b"stats\r\nquit\r\n")?;
    let stats = String::from_utf8(client.rest()?)?;
    let (sets, gets) = (named(printed, "cmd_set:")?, named(printed, "cmd_get:")?);
    ensure!(sets > 0 && gets > 0, "memcaslap has asked for nothing: {printed}");
    for complaint in ["get_misses:", "verify_misses:", "verify_failed:"] {
        ensure!(named(printed, complaint)? == 0, "memcaslap found what it did not store: {printed}");
    }
    for (name, wanted) in [("cmd_set", sets), ("curr_items", sets), ("get_hits", gets), ("get_misses", 0)] {
        let found = named(&stats, &format!("STAT {name} "))?;
        ensure!(found == wanted, "memcaslap asked for {sets} sets and {gets} gets; {name} is {found}, not {wanted}");
    }
    let read = named(printed, "read_bytes:")?;
    ensure!(read >= gets * bytes, "{gets} values of {bytes} B were read, and {read} B came");
    Ok(())
}
