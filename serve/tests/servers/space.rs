//! Space: what has expired goes before anyone is refused, and eviction takes what a request needs.

use std::time::{Duration, Instant};

use nearpm_serve::{start_memcached, start_redis};

use crate::client::{Client, Value};
use crate::differential::lines;
use crate::process::{Folder, options};

/// A number that INFO tells.
fn info(client: &mut Client, name: &str) -> u64 {
    let Value::Bulk(text) = client.say("INFO") else { panic!("INFO answers") };
    let text = String::from_utf8(text).expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).expect("it is told");
    line.trim().parse().expect("a number")
}

/// Stores keys of so many bytes until there is no room, and says how many there are.
fn fill(client: &mut Client, prefix: &str, bytes: usize) -> u64 {
    let value = "x".repeat(bytes);
    let mut stored = 0;
    loop {
        for number in stored..stored + 100 {
            client.command(&["SET", &format!("{prefix}{number:010}"), &value]).expect("the server listens");
        }
        let replies: Vec<_> = (0..100).map(|_| client.value().expect("an answer")).collect();
        stored += replies.iter().filter(|reply| matches!(reply, Value::Simple(_))).count() as u64;
        if replies.iter().any(|reply| matches!(reply, Value::Error(_))) || info(client, "evicted_keys") > 0 {
            return client_keys(client);
        }
    }
}

fn client_keys(client: &mut Client) -> u64 {
    match client.say("DBSIZE") {
        Value::Integer(keys) => keys as u64,
        other => panic!("{other:?}"),
    }
}

/// Sends commands, a hundred at a time, each of which gets this reply.
fn say_all(client: &mut Client, commands: impl Iterator<Item = String>, expected: &Value) {
    let commands: Vec<_> = commands.collect();
    for some in commands.chunks(100) {
        for line in some {
            client.command(&line.split(' ').collect::<Vec<_>>()).expect("the server listens");
        }
        for line in some {
            assert_eq!(client.value().expect("an answer"), *expected, "{line}");
        }
    }
}

const FAST: [&str; 4] = ["--survives", "process-crash", "--bytes", "4M"];

#[test]
fn expired_keys_go_before_anyone_is_refused() {
    for more in [&[][..], &["--memory-limit", "1500K"]] {
        let folder = Folder::new();
        let arguments = [&FAST[..], more].concat();
        let server = start_redis(options(&folder.path("pool"), &arguments)).expect("the server starts");
        let client = &mut Client::connect(server.address());
        let permanent = fill(client, "perm", 100) * 6 / 10;
        assert_eq!(client.say("FLUSHALL"), Value::Simple("OK".into()));
        let (ok, value) = (Value::Simple("OK".into()), "x".repeat(100));
        say_all(client, (0..permanent).map(|number| format!("SET perm{number:010} {value}")), &ok);
        // Short-lived keys, each as soon as those before it have died: all of them together would
        // not fit by far.
        let room = permanent / 20;
        for round in 0..20 {
            let until = Instant::now() + Duration::from_millis(30);
            // Of the same length as the others: a place of one size is none of another.
            let short_lived = (0..room).map(|number| format!("SET life{round:03}-{number:06} {value} PX 20"));
            say_all(client, short_lived, &ok);
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
        }
        assert_eq!(info(client, "evicted_keys"), 0, "{more:?}");
        say_all(client, (0..permanent).map(|number| format!("EXISTS perm{number:010}")), &Value::Integer(1));
    }
}

#[test]
fn keys_that_expired_while_nobody_served_them_go_too() {
    let folder = Folder::new();
    let arguments = [&FAST[..], &["--eviction", "none"]].concat();
    let start = || start_redis(options(&folder.path("pool"), &arguments)).expect("the server starts");
    let server = start();
    let client = &mut Client::connect(server.address());
    let keys = fill(client, "k", 100);
    assert_eq!(client.say("FLUSHALL"), Value::Simple("OK".into()));
    for number in 0..keys * 19 / 20 {
        client.say(&format!("SET k{number:010} {} PX 1500", "x".repeat(100)));
    }
    server.stop().expect("an orderly end");
    std::thread::sleep(Duration::from_millis(1600));
    let server = start();
    let client = &mut Client::connect(server.address());
    // At once: the scan of the whole pool is not over.
    for number in 0..keys * 19 / 20 {
        let reply = client.say(&format!("SET n{number:010} {}", "x".repeat(100)));
        assert_eq!(reply, Value::Simple("OK".into()), "{number} of {keys}, {} are there", client_keys(client));
    }
}

#[test]
fn a_flushed_cache_has_room_at_once() {
    let folder = Folder::new();
    let arguments = ["--survives", "process-crash", "--bytes", "1M", "--eviction", "none"];
    let server = start_memcached(options(&folder.path("pool"), &arguments)).expect("the server starts");
    let client = &mut Client::connect(server.address());
    let set = |number| format!("set k{number} 0 0 3000\r\n{}\r\n", "x".repeat(3000));
    for _ in 0..3 {
        let stored = (0..).take_while(|number| lines(client, set(*number)) == ["STORED"]).count();
        assert!(stored > 100, "{stored}");
        assert_eq!(lines(client, "flush_all\r\n"), ["OK"]);
    }
}

#[test]
fn eviction_takes_what_a_request_needs() {
    // A pool full of values of one size, and what is stored then.
    for (filled, bytes, requests, most) in [
        (1000, 1, 1000, 1200),
        (100, 1, 1000, 1500),
        (100, 100, 1000, 1500),
        (100, 3000, 20, 20 * 40),
        (100, 60_000, 2, 2 * 600),
        (3000, 100, 1000, 1200),
    ] {
        let folder = Folder::new();
        let arguments = [&FAST[..], &["--eviction", "lru"]].concat();
        let server = start_redis(options(&folder.path("pool"), &arguments)).expect("the server starts");
        let client = &mut Client::connect(server.address());
        fill(client, "filled", filled);
        let before = info(client, "evicted_keys");
        let value = "y".repeat(bytes);
        for number in 0..requests {
            let reply = client.say(&format!("SET new{number} {value}"));
            assert_eq!(reply, Value::Simple("OK".into()), "{bytes} bytes among {filled}");
        }
        let evicted = info(client, "evicted_keys") - before;
        println!("{requests} values of {bytes} bytes among such of {filled}: {evicted} evicted");
        assert!(evicted <= most, "{requests} values of {bytes} bytes among such of {filled}: {evicted} evicted");
    }
}

#[test]
fn below_a_limit_eviction_takes_what_is_too_much() {
    let folder = Folder::new();
    let arguments = [&FAST[..], &["--memory-limit", "500K", "--eviction", "lru"]].concat();
    let server = start_redis(options(&folder.path("pool"), &arguments)).expect("the server starts");
    let client = &mut Client::connect(server.address());
    fill(client, "filled", 100);
    let before = info(client, "evicted_keys");
    for number in 0..1000 {
        assert_eq!(client.say(&format!("SET n{number} {}", "y".repeat(100))), Value::Simple("OK".into()));
    }
    let evicted = info(client, "evicted_keys") - before;
    assert!((900..=1100).contains(&evicted), "{evicted}");
}
