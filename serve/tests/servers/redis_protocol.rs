//! What must not be taken from a client, and what clients ask of a server before they begin.

use nearpm_serve::start_redis;

use crate::client::{Client, Value, bulk, encode};
use crate::process::{Folder, options};

fn error(value: Value) -> String {
    match value {
        Value::Error(text) => text,
        other => panic!("{other:?} is no error"),
    }
}

#[test]
fn a_hello_that_is_refused_changes_nothing() {
    let folder = Folder::new();
    let redis = start_redis(options(&folder.path("pool"), &[])).expect("the server starts");
    let mut client = Client::connect(redis.address());
    for refused in
        ["hello 3 bogus", "hello 3 auth nobody secret", "hello 3 setname", "hello 3 setname n bogus", "hello 4"]
    {
        error(client.say(refused));
        client.command(&["get", "nothing"]).unwrap();
        assert_eq!(client.line().unwrap(), "$-1", "{refused}");
        assert_eq!(client.say("client getname"), Value::Null, "{refused}");
    }
    client.say("hello 3 setname me");
    error(client.say("hello 2 bogus"));
    client.command(&["get", "nothing"]).unwrap();
    assert_eq!(client.line().unwrap(), "_");
    assert_eq!(client.say("client getname"), bulk("me"));
}

/// What a page in a browser can make it send to this port.
#[test]
fn nothing_that_a_browser_sends_is_run() {
    let folder = Folder::new();
    let redis = start_redis(options(&folder.path("pool"), &[])).expect("the server starts");
    let mut other = Client::connect(redis.address());
    other.say("set precious x");
    let get = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nFLUSHALL\r\n";
    for sent in ["POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nFLUSHALL\r\n", "post x\r\nFLUSHALL\r\n", get] {
        let mut browser = Client::connect(redis.address());
        browser.send(sent.as_bytes()).unwrap();
        // What was sent behind may make the end of the connection a reset.
        let rest = browser.rest().unwrap_or_default();
        assert!(!rest.starts_with(b"+OK"), "{sent:?}: {rest:?}");
        assert_eq!(other.say("get precious"), bulk("x"), "{sent:?}");
    }
}

#[test]
fn every_client_has_a_number_of_its_own() {
    let folder = Folder::new();
    let redis = start_redis(options(&folder.path("pool"), &["--threads", "4"])).expect("the server starts");
    let clients: Vec<_> = (0..32).map(|_| Client::connect(redis.address())).collect();
    let numbers: std::collections::BTreeSet<_> = clients
        .into_iter()
        .map(|mut client| match client.say("client id") {
            Value::Integer(number) => number,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(numbers.len(), 32);
}

#[test]
fn info_has_what_clients_read() {
    let folder = Folder::new();
    let redis = start_redis(options(&folder.path("pool"), &[])).expect("the server starts");
    let mut client = Client::connect(redis.address());
    for i in 0..10 {
        client.say(&format!("set k{i} v"));
    }
    client.say("expire k1 100");
    let Value::Bulk(info) = client.say("info") else { panic!("no text") };
    let info = String::from_utf8(info).unwrap();
    for field in [
        "redis_version",
        "redis_mode",
        "os",
        "arch_bits",
        "run_id",
        "tcp_port",
        "uptime_in_days",
        "blocked_clients",
        "used_memory_human",
        "used_memory_rss",
        "used_memory_peak",
        "maxmemory_policy",
        "mem_fragmentation_ratio",
        "loading",
        "rdb_last_save_time",
        "rdb_last_bgsave_status",
        "aof_enabled",
        "instantaneous_ops_per_sec",
        "keyspace_hits",
        "pubsub_channels",
        "role",
        "master_replid",
        "used_cpu_sys",
        "cluster_enabled",
    ] {
        assert_eq!(info.lines().filter(|line| line.starts_with(&format!("{field}:"))).count(), 1, "{field}");
    }
    assert!(info.contains(&format!("tcp_port:{}\r\n", redis.address().port())));
    assert!(info.contains("db0:keys=10,expires=1,avg_ttl="), "{info}");
}

#[test]
fn no_reply_takes_memory_without_bound() {
    let folder = Folder::new();
    let redis = start_redis(options(&folder.path("pool"), &[])).expect("the server starts");
    let mut client = Client::connect(redis.address());
    client.ask(&[&b"set"[..], b"big", &vec![b'x'; 1 << 20]]).unwrap();
    let mget = |count: usize| encode(&[vec!["mget"], vec!["big"; count]].concat());
    client.send(&mget(200)).unwrap();
    assert!(error(client.value().unwrap()).contains("128 MiB"));
    client.send(&mget(2)).unwrap();
    let Value::Array(values) = client.value().unwrap() else { panic!("no array") };
    assert!(values.iter().all(|value| matches!(value, Value::Bulk(bytes) if bytes.len() == 1 << 20)));
    // Nor do the commands of one MULTI together, of which each would fit.
    client.say("multi");
    for _ in 0..3 {
        client.send(&mget(60)).unwrap();
        client.value().unwrap();
    }
    client.say("set after 1");
    let Value::Array(replies) = client.say("exec") else { panic!("no array") };
    assert!(matches!(&replies[0], Value::Array(values) if values.len() == 60));
    assert!(matches!(&replies[2], Value::Error(text) if text.contains("128 MiB")));
    assert_eq!(replies[3], Value::Simple("OK".to_owned()));
}

#[test]
fn commands_describe_themselves() {
    let folder = Folder::new();
    let redis = start_redis(options(&folder.path("pool"), &[])).expect("the server starts");
    let mut client = Client::connect(redis.address());
    let Value::Array(all) = client.say("command") else { panic!("no array") };
    assert_eq!(client.say("command count"), Value::Integer(all.len() as i64));
    let Value::Array(found) = client.say("command info get nothing") else { panic!("no array") };
    let Value::Array(get) = &found[0] else { panic!("{found:?}") };
    assert_eq!((&get[0], &get[1]), (&bulk("get"), &Value::Integer(2)));
    assert_eq!(get[3..6], [1, 1, 1].map(Value::Integer));
    assert_eq!(found[1], Value::Null);
    let keys = Value::Array(["a", "b"].map(bulk).to_vec());
    assert_eq!(client.say("command getkeys mset a 1 b 2"), keys);
    assert_eq!(client.say("command getkeys zunion 2 a b"), keys);
    let Value::Array(docs) = client.say("command docs zadd") else { panic!("no array") };
    assert_eq!(docs[1], Value::Array(vec![bulk("group"), bulk("sorted-set")]));
}

#[test]
fn what_can_be_configured_is_configured() {
    let folder = Folder::new();
    let redis = start_redis(options(&folder.path("pool"), &[])).expect("the server starts");
    let mut client = Client::connect(redis.address());
    assert_eq!(client.say("config set maxmemory 1mb slowlog-log-slower-than 0"), Value::Simple("OK".to_owned()));
    let expected = Value::Array(["maxmemory", "1048576"].map(bulk).to_vec());
    assert_eq!(client.say("config get maxmemory"), expected);
    // All or nothing.
    error(client.say("config set maxmemory 2mb nonsense 1"));
    error(client.say("config set maxmemory 2mb maxmemory 3mb"));
    error(client.say("config set maxmemory 2mb databases 5"));
    assert_eq!(client.say("config get maxmemory"), expected);
    client.say("set a 1");
    let Value::Array(entries) = client.say("slowlog get") else { panic!("no array") };
    let Value::Array(newest) = &entries[0] else { panic!("{entries:?}") };
    assert_eq!(newest[3], Value::Array(["set", "a", "1"].map(bulk).to_vec()));
    client.say("config set maxmemory 1");
    assert!(error(client.say("set b 1")).starts_with("OOM"));
    client.say("multi");
    assert!(error(client.say("set b 1")).starts_with("OOM"));
    assert!(error(client.say("exec")).starts_with("EXECABORT"));
    client.say("config set maxmemory 0");
    assert_eq!(client.say("set b 1"), Value::Simple("OK".to_owned()));
}

#[test]
fn other_protocols_are_hung_up_on() {
    let folder = Folder::new();
    let server = start_redis(options(&folder.path("pool"), &[])).expect("the server starts");
    let client = &mut Client::connect(server.address());
    assert_eq!(client.say("SET keep me"), Value::Simple("OK".to_owned()));
    for foreign in [
        "GET / HTTP/1.0\r\n\r\nFLUSHALL\r\n",
        "POST / HTTP/1.1\r\nHost: here\r\n\r\nFLUSHALL\r\n",
        "PUT /x HTTP/1.1\r\nFLUSHALL\r\n",
        "Host: here\r\nFLUSHALL\r\n",
        "EHLO here\r\nFLUSHALL\r\n",
        "\x16\x03\x01\x00\x05\r\nFLUSHALL\r\n",
    ] {
        let mut hostile = Client::connect(server.address());
        hostile.send(foreign.as_bytes()).expect("the server listens");
        assert!(hostile.rest().unwrap_or_default().is_empty(), "{foreign:?}");
        assert_eq!(client.say("GET keep"), bulk("me"), "{foreign:?}");
    }
}

#[test]
fn help_lists_subcommands() {
    let folder = Folder::new();
    let redis = start_redis(options(&folder.path("pool"), &[])).expect("the server starts");
    let mut client = Client::connect(redis.address());
    let mut help = |name: &str| match client.say(&format!("{name} help")) {
        Value::Array(rows) => rows,
        other => panic!("{name}: {other:?}"),
    };
    let names = ["GET", "LEN", "RESET", "HELP"].map(|name| Value::Simple(name.to_owned()));
    assert_eq!(help("slowlog")[1..], names);
    for name in ["acl", "client", "command", "config", "memory", "object", "pubsub"] {
        assert!(help(name).len() > 2, "{name}");
    }
}
