//! The clients that everybody uses, from Debian's packages.

use std::net::SocketAddr;
use std::process::{Command, Output};

use nearpm_serve::{start_memcached, start_redis};

use crate::client::{Client, Value};
use crate::process::{Folder, options};
use crate::stock::present;

fn run(program: &str, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = Command::new(program).args(arguments).output().expect("it runs");
    let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{program} {arguments:?} ended with {status}: {text}");
    text
}

#[test]
fn redis_cli_and_redis_benchmark() {
    if !present("redis-cli", "redis-tools") || !present("redis-benchmark", "redis-tools") {
        return;
    }
    let folder = Folder::new();
    let redis = start_redis(options(&folder.path("pool"), &[])).expect("the server starts");
    let port = redis.address().port().to_string();
    let cli = |words: &[&str]| run("redis-cli", &[&["-p", &port], words].concat());
    assert_eq!(cli(&["set", "k", "v"]), "OK\n");
    assert_eq!(cli(&["-3", "hset", "h", "f", "v"]), "1\n");
    assert_eq!(cli(&["-3", "--json", "hgetall", "h"]), "{\"f\":\"v\"}\n");
    assert_eq!(cli(&["--scan", "--pattern", "k*"]), "k\n");
    assert!(cli(&["info", "server"]).contains("server_name:nearpm"));
    let tests = "ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange,mset";
    for pipeline in ["1", "16"] {
        let arguments = ["-p", &port, "-n", "400", "-c", "20", "-r", "100", "-P", pipeline, "-t", tests, "--csv"];
        let table = run("redis-benchmark", &arguments);
        assert!(!table.contains("rror") && !table.contains("ARNING"), "{table}");
        assert!(table.lines().filter(|line| line.starts_with('"')).count() >= 18, "{table}");
    }
    // It says nothing of refusals: two runs have each added 400 to counters, and filled a hash and
    // strings.
    let mut client = Client::connect(redis.address());
    let counters = (0..100).map(|at| match client.say(&format!("get counter:{at:012}")) {
        Value::Bulk(text) => String::from_utf8(text).expect("text").parse::<i64>().expect("a number"),
        _ => 0,
    });
    assert_eq!(counters.sum::<i64>(), 800);
    for (line, least) in [("hlen myhash", 50), ("strlen key:000000000007", 3)] {
        let found = client.say(line);
        assert!(matches!(found, Value::Integer(found) if found >= least), "{line}: {found:?}");
    }
}

/// A counter of memcached's statistics.
fn stat(memcached: SocketAddr, name: &str) -> u64 {
    let mut client = Client::connect(memcached);
    client.send(b"stats\r\nquit\r\n").expect("the server listens");
    let text = String::from_utf8(client.rest().expect("it answers")).expect("text");
    let prefix = format!("STAT {name} ");
    let found = text.lines().find_map(|line| line.strip_prefix(&prefix)?.trim().parse().ok());
    found.unwrap_or_else(|| panic!("no {name} in {text}"))
}

#[test]
fn the_tools_of_libmemcached() {
    for tool in ["memcping", "memcslap", "memcaslap", "memcstat"] {
        if !present(tool, "libmemcached-tools") {
            return;
        }
    }
    let folder = Folder::new();
    let memcached = start_memcached(options(&folder.path("pool"), &[])).expect("the server starts");
    let address = memcached.address();
    let server = address.to_string();
    let servers = format!("--servers={server}");
    run("memcping", &[&servers]);
    assert!(run("memcstat", &[&servers]).contains("curr_items"));
    for test in ["set", "get", "mget"] {
        let text = run(
            "memcslap",
            &[&servers, "--concurrency=4", "--execute-number=100", "--initial-load=100", &format!("--test={test}")],
        );
        assert!(text.contains("Time total"), "{text}");
    }
    // The tools say nothing of refusals: 400 sets and 400 gets, twice those behind 100 sets of
    // their own.
    let counted = ["cmd_set", "get_hits", "get_misses"].map(|name| stat(address, name));
    assert_eq!(counted, [600, 800, 0]);
    let before = ["curr_items", "cmd_set", "get_hits"].map(|name| stat(address, name));
    let text = run("memcaslap", &["-s", &server, "-x", "3000", "-c", "8", "-T", "2", "-X", "200", "-v", "1"]);
    assert!(text.contains("Ops: 3000"), "{text}");
    // It counts what it asked for, and compares what it read; what was stored the server knows.
    for clean in ["get_misses: 0\n", "verify_misses: 0\n", "verify_failed: 0\n"] {
        assert!(text.contains(clean), "{text}");
    }
    let asked = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    let (sets, gets) = (asked("cmd_set:").expect("it sets"), asked("cmd_get:").expect("it gets"));
    assert!(sets + gets == 3000 && sets >= 200, "{text}");
    let after = ["curr_items", "cmd_set", "get_hits"].map(|name| stat(address, name));
    assert_eq!([0, 1, 2].map(|at| after[at] - before[at]), [sets, sets, gets]);
}
