//! The clients that everybody uses, from Debian's packages.

use std::process::{Command, Output};

use nearpm_serve::{start_memcached, start_redis};

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
    let server = memcached.address().to_string();
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
    let text = run("memcaslap", &["-s", &server, "-x", "3000", "-c", "8", "-T", "2", "-X", "200"]);
    assert!(text.contains("Ops:"), "{text}");
    assert!(text.contains("get_misses: 0"), "{text}");
}
