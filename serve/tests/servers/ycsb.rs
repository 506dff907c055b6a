//! The client of YCSB against our servers and the stock ones: what it counts is what the servers
//! count.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Command, Output};
use std::time::Duration;

use nearpm_serve::{start_memcached, start_redis};
use nearpm_ycsb::key;
use serde_json::Value as Json;

use crate::client::{Client, Value};
use crate::process::{Folder, Process, options};
use crate::stock::Stock;

/// Records that the client looks at before a workload begins.
const LOOKED_AT: u64 = 3;

fn run(server: &str, address: SocketAddr, words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearpm-serve"));
    command.args(["ycsb", "--server", server, "--connect", &address.to_string(), "--json"]);
    command.args(words.split(' ')).output().expect("it runs")
}

/// Runs it to a good end.
pub fn report(server: &str, address: SocketAddr, words: &str) -> Json {
    let Output { status, stdout, stderr } = run(server, address, words);
    assert!(status.success(), "{words} ended with {status}: {}", String::from_utf8_lossy(&stderr));
    serde_json::from_slice(&stdout).expect("it prints JSON")
}

/// Runs it to an end that is none: what it says on standard error, and its report, if it came so
/// far.
fn failure(server: &str, address: SocketAddr, words: &str) -> (String, Option<Json>) {
    let Output { status, stdout, stderr } = run(server, address, words);
    let text = String::from_utf8_lossy(&stderr).into_owned();
    assert_eq!(status.code(), Some(1), "{words}: {text}");
    (text, serde_json::from_slice(&stdout).ok())
}

/// A count of the last workload.
fn count(report: &Json, kind: &str, what: &str) -> u64 {
    let phase = report["phases"].as_array().and_then(|phases| phases.last()).expect("a workload ran");
    let kinds = phase["kinds"].as_array().expect("kinds of operations");
    let kind = kinds.iter().find(|row| row["kind"] == kind);
    kind.map_or(0, |row| row[what].as_u64().expect("a number"))
}

/// What a server counts: keys, reads that found theirs, reads that did not, and requests that it
/// was asked.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Statistics {
    keys: u64,
    hits: u64,
    misses: u64,
    requests: u64,
}

fn number_behind(text: &str, name: &str) -> u64 {
    let number =
        text.split(name).nth(1).and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok());
    number.unwrap_or_else(|| panic!("no {name} in {text}"))
}

fn redis_statistics(address: SocketAddr) -> Statistics {
    let mut client = Client::connect(address);
    let Value::Integer(keys) = client.say("dbsize") else { panic!("no number of keys") };
    let Value::Bulk(info) = client.say("info stats") else { panic!("no statistics") };
    let of = |name| number_behind(&String::from_utf8_lossy(&info), name);
    Statistics {
        keys: keys as u64,
        hits: of("keyspace_hits:"),
        misses: of("keyspace_misses:"),
        requests: of("total_commands_processed:"),
    }
}

fn memcached_statistics(address: SocketAddr) -> Statistics {
    let mut client = Client::connect(address);
    client.send(b"stats\r\n").expect("the server listens");
    let mut text = String::new();
    while !text.ends_with("END\n") {
        text += &(client.line().expect("the server answers") + "\n");
    }
    let of = |name| number_behind(&text, name);
    Statistics {
        keys: of("STAT curr_items "),
        hits: of("STAT get_hits "),
        misses: of("STAT get_misses "),
        requests: of("STAT cmd_get ") + of("STAT cmd_set "),
    }
}

/// Loads and runs A, D, F and two of the paper's, and compares counts. `asking` is what it takes of
/// the server's requests to ask for its statistics.
fn counts_agree(
    server: &str,
    address: SocketAddr,
    statistics: fn(SocketAddr) -> Statistics,
    asking: u64,
    layout: &str,
) {
    let common = format!("--records 500 --threads 3 --layout {layout}");
    let mut before = statistics(address);
    assert_eq!(before.keys, 0);
    let words = format!("--workload load {common}");
    let loaded = report(server, address, &words);
    assert_eq!(count(&loaded, "insert", "count"), 500);
    let after = statistics(address);
    assert_eq!((after.keys, after.requests - before.requests), (500, 500 + asking), "{words}");
    before = after;
    let workloads: &[&str] = if layout == "hash" { &["a", "d", "f"] } else { &["a", "d", "f", "w1", "w4"] };
    for workload in workloads {
        let words = format!("--workload {workload} --operations 1500 {common}");
        let report = report(server, address, &words);
        let of = |kind| count(&report, kind, "count");
        let (reads, updates, inserts, both) = (of("read"), of("update"), of("insert"), of("read-modify-write"));
        assert_eq!(reads + updates + inserts + both, 1500, "{words}");
        for kind in ["read", "update", "insert", "read-modify-write"] {
            assert_eq!(["errors", "wrong", "misses"].map(|what| count(&report, kind, what)), [0; 3], "{words}: {kind}");
        }
        let looked = if *workload == "w1" { 0 } else { LOOKED_AT };
        let after = statistics(address);
        // What D inserted is inserted again by w1, with others.
        let new = if *workload == "w1" { inserts - (before.keys - 500) } else { inserts };
        let expected = Statistics {
            keys: before.keys + new,
            hits: before.hits + reads + both + looked,
            misses: before.misses,
            requests: before.requests + reads + updates + inserts + 2 * both + looked + asking,
        };
        assert_eq!(after, expected, "{words}");
        before = after;
    }
}

/// Scans give what is there, in order: every record is compared, and one that is missing is
/// noticed.
fn scans_agree(address: SocketAddr) {
    let words = "--workload e --load --records 300 --operations 400 --threads 3 --fields 3";
    let report = report("redis", address, words);
    let (scans, inserts) = (count(&report, "scan", "count"), count(&report, "insert", "count"));
    assert_eq!(scans + inserts, 400);
    assert!(scans > 340 && inserts > 5, "{scans} scans, {inserts} inserts");
    for kind in ["scan", "insert"] {
        assert_eq!(["errors", "wrong", "misses"].map(|what| count(&report, kind, what)), [0; 3], "{kind}");
    }
    let mut client = Client::connect(address);
    assert_eq!(client.say("zcard index"), Value::Integer(300 + inserts as i64));
    // A record that is in no order any more.
    for number in 0..300 {
        client.say(&format!("zrem index {}", if number % 2 == 0 { key(number) } else { "none".to_owned() }));
    }
    let (text, report) = failure("redis", address, "--workload e --records 300 --operations 50 --fields 3");
    assert!(text.contains("left") && report.is_some(), "{text}");
}

#[test]
fn scans_agree_with_our_redis_and_the_stock_one() {
    let folder = Folder::new();
    let redis = start_redis(options(&folder.path("pool"), &[])).expect("the server starts");
    scans_agree(redis.address());
    if let Some(stock) = Stock::redis() {
        scans_agree(stock.address);
    }
}

#[test]
fn counts_agree_with_our_redis() {
    for layout in ["hash", "value"] {
        let folder = Folder::new();
        let redis = start_redis(options(&folder.path("pool"), &[])).expect("the server starts");
        counts_agree("redis", redis.address(), redis_statistics, 2, layout);
    }
}

#[test]
fn counts_agree_with_stock_redis() {
    for layout in ["hash", "value"] {
        let Some(redis) = Stock::redis() else { return };
        counts_agree("redis", redis.address, redis_statistics, 2, layout);
    }
}

#[test]
fn counts_agree_with_our_memcached() {
    let folder = Folder::new();
    let memcached = start_memcached(options(&folder.path("pool"), &[])).expect("the server starts");
    counts_agree("memcached", memcached.address(), memcached_statistics, 0, "value");
}

#[test]
fn counts_agree_with_stock_memcached() {
    let Some(memcached) = Stock::memcached() else { return };
    counts_agree("memcached", memcached.address, memcached_statistics, 0, "value");
}

#[test]
fn what_was_never_written_is_noticed() {
    let folder = Folder::new();
    let redis = start_redis(options(&folder.path("pool"), &[])).expect("the server starts");
    let words = "--workload c --records 100 --operations 500";
    report("redis", redis.address(), &format!("{words} --load"));
    let mut client = Client::connect(redis.address());
    // One byte of one field, of all records but those that are looked at first.
    for number in (1..99).filter(|number| *number != 50) {
        let Value::Bulk(mut value) = client.say(&format!("hget {} field3", key(number))) else { panic!("no field") };
        value[70] ^= 1;
        client.ask(&[b"hset", key(number).as_bytes(), b"field3", &value]).expect("the server answers");
    }
    let (text, report) = failure("redis", redis.address(), words);
    assert!(text.contains("found what was never written; the first: field 3 of record"), "{text}");
    let report = report.expect("it is told what there was");
    assert!(count(&report, "read", "wrong") > 250, "{report}");
    // A server that has no room is told of as well.
    let folder = Folder::new();
    let full = start_redis(options(&folder.path("pool"), &["--memory-limit", "20K"])).expect("the server starts");
    let (text, _) = failure("redis", full.address(), "--workload load --records 100");
    assert!(text.contains("were refused, 0 found") && text.contains("OOM"), "{text}");
}

#[test]
fn records_that_are_not_there_or_otherwise_are_named() {
    let folder = Folder::new();
    let redis = start_redis(options(&folder.path("pool"), &[])).expect("the server starts");
    let (text, _) = failure("redis", redis.address(), "--workload a");
    assert!(text.contains("record 0 of 1000 is not there: insert them first, with --load"), "{text}");
    report("redis", redis.address(), "--workload load --records 100");
    let (text, _) = failure("redis", redis.address(), "--workload a --records 1000");
    assert!(text.contains("record 500 of 1000 is not there"), "{text}");
    for words in ["--workload w3 --records 100", "--workload c --records 100 --fields 9"] {
        let (text, _) = failure("redis", redis.address(), words);
        assert!(text.contains("record 0 is not as it is to be"), "{words}: {text}");
    }
    let (text, _) = failure("memcached", redis.address(), "--workload c --records 100");
    assert!(text.contains("the answer is not memcached's"), "{text}");
    let memcached = start_memcached(options(&folder.path("other"), &[])).expect("the server starts");
    let (text, _) = failure("redis", memcached.address(), "--workload c --records 100");
    // Which hangs up on other protocols.
    assert!(text.contains("unexpected end of file"), "{text}");
}

#[test]
fn servers_that_are_absent_or_go_away_are_named() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let absent = listener.local_addr().expect("it has one");
    drop(listener);
    for server in ["redis", "memcached"] {
        let (text, _) = failure(server, absent, "--workload load");
        assert!(text.contains(&format!("cannot connect to {server} at {absent}")), "{text}");
        let folder = Folder::new();
        let mut process = Process::start(server, &folder.path("pool"), &["--bytes", "16M"]);
        let address = process.address;
        let client =
            std::thread::spawn(move || failure(server, address, "--workload a --load --records 50 --seconds 60"));
        let asked = || if server == "redis" { redis_statistics(address) } else { memcached_statistics(address) }.hits;
        while asked() < 100 {
            std::thread::sleep(Duration::from_millis(5));
        }
        process.kill();
        let (text, report) = client.join().expect("it ends");
        assert!(text.contains(&format!("a: the connection to {address} was lost after")), "{text}");
        assert!(count(&report.expect("what there was is told"), "read", "count") > 0);
    }
}
