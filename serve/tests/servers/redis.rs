//! Redis's protocol.

use nearpm_serve::{Server, start_redis};

use crate::client::{Client, Value, bulk, encode};
use crate::process::{Folder, options};

type Redis = Server<nearpm_serve::redis::Redis>;

fn server(folder: &Folder, more: &[&str]) -> Redis {
    start_redis(options(&folder.path("pool"), more)).expect("the server starts")
}

fn ok() -> Value {
    Value::Simple("OK".to_owned())
}

#[test]
fn values_and_expiry_survive_a_restart() {
    let folder = Folder::new();
    let redis = server(&folder, &[]);
    let mut client = Client::connect(redis.address());
    assert_eq!(client.say("set a 1"), ok());
    assert_eq!(client.say("set gone 1 px 60"), ok());
    assert_eq!(client.say("set stays 1 ex 100"), ok());
    assert_eq!(client.say("rpush l x y z"), Value::Integer(3));
    assert_eq!(client.say("hset h f v g w"), Value::Integer(2));
    assert_eq!(client.say("sadd s m"), Value::Integer(1));
    assert_eq!(client.say("zadd z 2 b 1 a"), Value::Integer(2));
    redis.stop().expect("an orderly end");
    std::thread::sleep(std::time::Duration::from_millis(80));
    let redis = server(&folder, &[]);
    let mut client = Client::connect(redis.address());
    assert_eq!(client.say("mget a gone stays"), Value::Array(vec![bulk("1"), Value::Null, bulk("1")]));
    assert!(matches!(client.say("ttl stays"), Value::Integer(99..=100)));
    assert_eq!(client.say("lrange l 0 -1"), Value::Array(["x", "y", "z"].map(bulk).to_vec()));
    assert_eq!(client.say("hget h g"), bulk("w"));
    assert_eq!(client.say("smembers s"), Value::Array(vec![bulk("m")]));
    assert_eq!(client.say("zrange z 0 -1"), Value::Array(["a", "b"].map(bulk).to_vec()));
}

#[test]
fn a_restart_writes_nothing() {
    let folder = Folder::new();
    let bytes = || std::fs::read(folder.path("pool")).expect("the pool's file");
    let redis = server(&folder, &[]);
    assert_eq!(Client::connect(redis.address()).say("set a 1"), ok());
    redis.stop().expect("an orderly end");
    let before = bytes();
    let redis = server(&folder, &[]);
    assert_eq!(Client::connect(redis.address()).say("get a"), bulk("1"));
    redis.stop().expect("an orderly end");
    assert!(before == bytes(), "the log, too, is made when something is written");
}

#[test]
fn version_three() {
    let folder = Folder::new();
    let redis = server(&folder, &[]);
    let mut client = Client::connect(redis.address());
    assert!(matches!(client.say("hello 3"), Value::Map(_)));
    assert_eq!(client.say("get nothing"), Value::Null);
    client.say("hset h f v");
    assert_eq!(client.say("hgetall h"), Value::Map(vec![bulk("f"), bulk("v")]));
    client.say("zadd z 1.5 m");
    assert_eq!(client.say("zscore z m"), Value::Double("1.5".to_owned()));
    assert!(matches!(client.say("hello 4"), Value::Error(text) if text.starts_with("NOPROTO")));
}

#[test]
fn transactions_take_all_or_nothing() {
    let folder = Folder::new();
    let redis = server(&folder, &[]);
    let mut client = Client::connect(redis.address());
    client.say("multi");
    assert_eq!(client.say("set a 1"), Value::Simple("QUEUED".to_owned()));
    client.say("incr a");
    client.say("lpush a x");
    let Value::Array(replies) = client.say("exec") else { panic!("no array") };
    assert_eq!(replies[..2], [ok(), Value::Integer(2)]);
    assert!(matches!(&replies[2], Value::Error(text) if text.starts_with("WRONGTYPE")));
    client.say("multi");
    client.say("nonsense");
    assert!(matches!(client.say("exec"), Value::Error(text) if text.starts_with("EXECABORT")));
    client.say("multi");
    client.say("set a 9");
    assert_eq!(client.say("discard"), ok());
    assert_eq!(client.say("get a"), bulk("2"));
}

#[test]
fn commands_may_come_in_any_pieces_and_many_at_once() {
    let folder = Folder::new();
    let redis = server(&folder, &[]);
    let mut client = Client::connect(redis.address());
    let bytes = [encode(&["set", "k", "value"]), encode(&["append", "k", "s"]), b"get k\r\n".to_vec()].concat();
    for _ in 0..2 {
        for byte in &bytes {
            client.send(std::slice::from_ref(byte)).unwrap();
        }
        let replies: Vec<_> = (0..3).map(|_| client.value().unwrap()).collect();
        assert_eq!(replies, [ok(), Value::Integer(6), bulk("values")]);
    }
    // More than wait at a time, and more than a transaction takes.
    let many: Vec<u8> = (0..5000).flat_map(|i| encode(&["incrby".to_owned(), "n".to_owned(), i.to_string()])).collect();
    client.send(&many).unwrap();
    let mut sum = 0;
    for i in 0..5000 {
        sum += i;
        assert_eq!(client.value().unwrap(), Value::Integer(sum));
    }
}

#[test]
fn a_client_that_does_not_read_holds_nobody_up() {
    let folder = Folder::new();
    let redis = server(&folder, &["--threads", "1"]);
    let mut slow = Client::connect(redis.address());
    slow.ask(&[&b"set"[..], b"big", &[b'x'; 500_000]]).unwrap();
    for _ in 0..400 {
        slow.command(&["get", "big"]).unwrap();
    }
    let mut other = Client::connect(redis.address());
    assert_eq!(other.say("set a 1"), ok());
    for _ in 0..400 {
        assert!(matches!(slow.value().unwrap(), Value::Bulk(bytes) if bytes.len() == 500_000));
    }
}

#[test]
fn broken_input_ends_one_connection_alone() {
    let folder = Folder::new();
    let redis = server(&folder, &["--max-value", "1000"]);
    let mut other = Client::connect(redis.address());
    let too_long = encode(&[&b"set"[..], b"k", &[b'x'; 1001]]);
    let huge = b"*1\r\n$99999999999\r\n";
    for broken in [&b"*3\r\n:1\r\n"[..], b"*x\r\n", b"*1\r\n$-9\r\n", huge, &too_long, b"get \"k\r\n"] {
        let mut client = Client::connect(redis.address());
        client.send(broken).unwrap();
        assert!(client.line().unwrap().starts_with("-ERR Protocol error"), "{broken:?}");
        // What was sent behind the error may make the end of the connection a reset.
        assert!(client.rest().map_or(true, |rest| rest.is_empty()));
        assert_eq!(other.say("ping"), Value::Simple("PONG".to_owned()));
    }
    // Half a request, and then nothing any more.
    let mut half = Client::connect(redis.address());
    half.send(b"*2\r\n$3\r\nget\r\n$5").unwrap();
    drop(half);
    assert!(matches!(other.ask(&[&b"append"[..], b"k", &[b'x'; 900]]), Ok(Value::Integer(900))));
    assert!(matches!(other.ask(&[&b"append"[..], b"k", &[b'x'; 900]]), Ok(Value::Error(_))));
}

#[test]
fn one_client_too_many_is_told_so() {
    let folder = Folder::new();
    let redis = server(&folder, &["--max-clients", "2"]);
    let mut clients: Vec<_> = (0..2).map(|_| Client::connect(redis.address())).collect();
    clients.iter_mut().for_each(|client| drop(client.say("ping")));
    let mut third = Client::connect(redis.address());
    assert_eq!(third.line().unwrap(), "-ERR max number of clients reached");
    drop(clients.pop());
    let served = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        Client::connect(redis.address()).ask(&["ping"]).is_ok_and(|reply| reply == Value::Simple("PONG".to_owned()))
    });
    assert!(served, "the place of a client that went is not given to another");
}

#[test]
fn a_full_pool_refuses_and_goes_on() {
    let folder = Folder::new();
    let redis = server(&folder, &["--bytes", "1M"]);
    let mut client = Client::connect(redis.address());
    let value = vec![b'x'; 3000];
    let set = |client: &mut Client, i: i32| client.ask(&[b"set", format!("k{i}").as_bytes(), &value]).unwrap();
    let full = (0..1000).find(|&i| matches!(set(&mut client, i), Value::Error(text) if text.starts_with("OOM")));
    let full = full.expect("a megabyte does not hold three");
    assert!(full > 100, "{full} values of 3000 bytes filled a pool of 1 MiB");
    for i in 0..full {
        assert_eq!(client.say(&format!("strlen k{i}")), Value::Integer(3000));
    }
    for i in 0..full {
        assert_eq!(client.say(&format!("del k{i}")), Value::Integer(1));
    }
    assert_eq!(set(&mut client, 1), ok());
}

#[test]
fn a_full_pool_evicts_where_it_may() {
    for more in [&["--bytes", "1M"][..], &["--memory-limit", "300K"]] {
        let folder = Folder::new();
        let redis = server(&folder, &[&["--eviction", "lru"], more].concat());
        let mut client = Client::connect(redis.address());
        for i in 0..600 {
            assert_eq!(client.ask(&[b"set", format!("k{i}").as_bytes(), &vec![b'x'; 3000]]).unwrap(), ok(), "{i}");
        }
        let Value::Bulk(info) = client.say("info stats") else { panic!("no text") };
        let info = String::from_utf8(info).unwrap();
        let evicted = info.split("evicted_keys:").nth(1).and_then(|rest| rest.lines().next()?.parse::<u64>().ok());
        assert!(evicted.is_some_and(|evicted| evicted > 100), "{info}");
        let Value::Integer(left) = client.say("dbsize") else { panic!("no number") };
        assert_eq!(left as u64 + evicted.unwrap(), 600);
    }
}

#[test]
fn scans_give_every_key_that_stays() {
    let folder = Folder::new();
    let redis = server(&folder, &[]);
    let mut client = Client::connect(redis.address());
    for i in 0..300 {
        client.say(&format!("set stays:{i} 1"));
    }
    let (mut cursor, mut seen, mut calls) = ("0".to_owned(), std::collections::BTreeSet::new(), 0);
    loop {
        let scan = format!("scan {cursor} match stays:* count 7");
        let Value::Array(parts) = client.say(&scan) else { panic!("no array") };
        let [Value::Bulk(next), Value::Array(keys)] = &parts[..] else { panic!("{parts:?}") };
        for key in keys {
            let Value::Bulk(key) = key else { panic!("{key:?}") };
            assert!(seen.insert(key.clone()), "a key came twice");
        }
        cursor = String::from_utf8(next.clone()).unwrap();
        client.say(&format!("set other:{calls} 1"));
        client.say(&format!("del other:{}", calls / 2));
        calls += 1;
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(seen.len(), 300);
    assert!(calls > 40, "{calls}");
}

#[test]
fn expired_keys_are_removed_although_nobody_asks() {
    let folder = Folder::new();
    let redis = server(&folder, &[]);
    let mut client = Client::connect(redis.address());
    for i in 0..200 {
        client.say(&format!("set k{i} v px {}", 20 + i % 30));
    }
    client.say("set stays 1");
    let swept = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        client.say("dbsize") == Value::Integer(1)
    });
    assert!(swept, "{:?}", client.say("dbsize"));
}
