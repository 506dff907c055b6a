//! What clients of Redis's protocol do to each other: waiting, watching, listening.

use std::time::Duration;

use nearpm_serve::{Server, start_redis};

use crate::client::{Client, Value, bulk};
use crate::process::{Folder, Process, options};

type Redis = Server<nearpm_serve::redis::Redis>;

fn server(folder: &Folder, more: &[&str]) -> Redis {
    start_redis(options(&folder.path("pool"), more)).expect("the server starts")
}

fn pair(a: &str, b: &str) -> Value {
    Value::Array(vec![bulk(a), bulk(b)])
}

/// Sends a command that waits, and looks until the server says that it does.
fn wait(client: &mut Client, other: &mut Client, line: &str, waiting: usize) {
    client.command(&line.split(' ').collect::<Vec<_>>()).unwrap();
    blocked(other, waiting);
}

fn blocked(other: &mut Client, waiting: usize) {
    let found = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        let Value::Bulk(info) = other.say("info clients") else { panic!("no text") };
        String::from_utf8_lossy(&info).contains(&format!("blocked_clients:{waiting}\r\n"))
    });
    assert!(found, "{waiting} clients do not wait");
}

#[test]
fn those_who_wait_are_served_in_the_order_in_which_they_came() {
    for (level, threads) in [("group", "4"), ("durable", "2"), ("async", "1")] {
        let folder = Folder::new();
        let redis = server(&folder, &["--threads", threads, "--durability", level]);
        let mut other = Client::connect(redis.address());
        let mut clients: Vec<_> = (0..6).map(|_| Client::connect(redis.address())).collect();
        for (index, client) in clients.iter_mut().enumerate() {
            let line = ["blpop l none 0", "brpop none l 0"][index % 2];
            wait(client, &mut other, line, index + 1);
        }
        assert_eq!(other.say("rpush l a b c"), Value::Integer(3));
        other.say("rpush l d");
        other.say("rpush l e f");
        // Each takes from its own end of what is there when it is its turn.
        let expected = ["a", "c", "b", "d", "e", "f"];
        for (client, element) in clients.iter_mut().zip(expected) {
            assert_eq!(client.value().unwrap(), pair("l", element), "{level}");
        }
        blocked(&mut other, 0);
        assert_eq!(other.say("exists l"), Value::Integer(0));
    }
}

#[test]
fn a_chain_of_waiting_moves_is_one_transaction() {
    let folder = Folder::new();
    let redis = server(&folder, &["--threads", "4"]);
    let mut other = Client::connect(redis.address());
    let mut clients: Vec<_> = (0..3).map(|_| Client::connect(redis.address())).collect();
    wait(&mut clients[0], &mut other, "blmove a b left right 0", 1);
    wait(&mut clients[1], &mut other, "brpoplpush b c 0", 2);
    wait(&mut clients[2], &mut other, "blmpop 0 2 none c left count 9", 3);
    other.say("lpush a x");
    assert_eq!(clients[0].value().unwrap(), bulk("x"));
    assert_eq!(clients[1].value().unwrap(), bulk("x"));
    assert_eq!(clients[2].value().unwrap(), Value::Array(vec![bulk("c"), Value::Array(vec![bulk("x")])]));
    assert_eq!(other.say("dbsize"), Value::Integer(0));
}

#[test]
fn sorted_sets_are_waited_for_and_other_kinds_are_not_what_is_waited_for() {
    let folder = Folder::new();
    let redis = server(&folder, &[]);
    let (mut one, mut two, mut other) =
        (Client::connect(redis.address()), Client::connect(redis.address()), Client::connect(redis.address()));
    wait(&mut one, &mut other, "bzpopmax z 0", 1);
    wait(&mut two, &mut other, "bzmpop 0 1 z min", 2);
    other.say("rpush z nothing");
    other.say("del z");
    // A key that is gone when the transaction ends was never there.
    other.say("multi");
    other.say("zadd z 1 gone");
    other.say("del z");
    other.say("exec");
    other.say("zadd z 1 a 2 b 3 c");
    assert_eq!(one.value().unwrap(), Value::Array(["z", "c", "3"].map(bulk).to_vec()));
    let taken = Value::Array(vec![pair("a", "1")]);
    assert_eq!(two.value().unwrap(), Value::Array(vec![bulk("z"), taken]));
    assert_eq!(other.say("zrange z 0 -1"), Value::Array(vec![bulk("b")]));
}

#[test]
fn waiting_ends_by_time_by_others_and_by_the_end_of_the_client() {
    let folder = Folder::new();
    let redis = server(&folder, &[]);
    let (mut client, mut other) = (Client::connect(redis.address()), Client::connect(redis.address()));
    assert_eq!(client.say("blpop l 0.01"), Value::Null);
    assert_eq!(client.say("blmove l m left left 0.01"), Value::Null);
    let Value::Integer(number) = client.say("client id") else { panic!("no number") };
    // What is sent behind waits too.
    client.send(b"blpop l 0\r\nping\r\n").unwrap();
    blocked(&mut other, 1);
    assert_eq!(other.say(&format!("client unblock {number} error")), Value::Integer(1));
    assert!(matches!(client.value().unwrap(), Value::Error(text) if text.starts_with("UNBLOCKED")));
    assert_eq!(client.value().unwrap(), Value::Simple("PONG".to_owned()));
    assert_eq!(other.say(&format!("client unblock {number}")), Value::Integer(0));
    wait(&mut client, &mut other, "blpop l 0", 1);
    drop(client);
    blocked(&mut other, 0);
    other.say("rpush l stays");
    assert_eq!(other.say("lrange l 0 -1"), Value::Array(vec![bulk("stays")]));
    // In a transaction nobody waits.
    other.say("multi");
    other.say("blpop none 0");
    other.say("bzpopmin none 0");
    assert_eq!(other.say("exec"), Value::Array(vec![Value::Null, Value::Null]));
}

/// The element went to the client that was told so, or is there: it is never lost and never given
/// twice.
#[test]
fn an_element_that_was_given_away_is_gone_after_a_kill() {
    let folder = Folder::new();
    let pool = folder.path("pool");
    for round in 0..4 {
        let mut process = Process::start("redis", &pool, &["--bytes", "4M", "--threads", "2"]);
        let (mut client, mut other) = (Client::connect(process.address), Client::connect(process.address));
        wait(&mut client, &mut other, "blpop l 0", 1);
        let element = format!("e{round}");
        other.command(&["rpush", "l", &element]).unwrap();
        assert_eq!(client.value().unwrap(), pair("l", &element));
        process.kill();
        process.wait();
        let process = Process::start("redis", &pool, &["--bytes", "4M"]);
        assert_eq!(Client::connect(process.address).say("exists l"), Value::Integer(0));
        process.stop();
    }
}

#[test]
fn exec_runs_only_if_what_was_watched_is_as_it_was() {
    let folder = Folder::new();
    let redis = server(&folder, &["--threads", "2"]);
    let (mut client, mut other) = (Client::connect(redis.address()), Client::connect(redis.address()));
    let exec = |client: &mut Client| {
        client.say("multi");
        client.say("set done 1");
        client.say("exec") != Value::Null
    };
    client.say("sadd s a");
    client.say("set k 1");
    for (change, runs) in [
        ("get k", true),
        ("sadd s a", true),
        ("del none", true),
        ("set k 1", false),
        ("sadd s b", false),
        ("expire k 100", false),
        ("rename k k2", false),
        ("flushall", false),
        ("flushall", true),
        ("set k 1", false),
    ] {
        client.say("watch k s");
        other.say(change);
        assert_eq!(exec(&mut client), runs, "{change}");
        assert!(exec(&mut client), "EXEC ends what is watched");
    }
    client.say("watch k");
    other.say("set k 2");
    client.say("unwatch");
    assert!(exec(&mut client));
    client.say("watch k");
    other.say("set k 3");
    client.say("multi");
    client.say("discard");
    assert!(exec(&mut client));
    // One that expires has changed.
    client.say("set k 1 px 30");
    client.say("watch k");
    std::thread::sleep(Duration::from_millis(60));
    assert!(!exec(&mut client));
    // In one go, where nothing is run before all of it has come.
    client.send(b"set k 1\r\nwatch k\r\nmulti\r\nincr k\r\nexec\r\n").unwrap();
    let replies: Vec<_> = (0..5).map(|_| client.value().unwrap()).collect();
    assert_eq!(replies[4], Value::Array(vec![Value::Integer(2)]));
    client.say("multi");
    assert!(matches!(client.say("watch k"), Value::Error(_)));
}

#[test]
fn messages_reach_those_who_listen() {
    let folder = Folder::new();
    let redis = server(&folder, &["--threads", "3"]);
    let (mut two, mut three, mut other) =
        (Client::connect(redis.address()), Client::connect(redis.address()), Client::connect(redis.address()));
    let message = |words: &[&str]| Value::Array(words.iter().map(|word| bulk(word)).collect());
    two.command(&["subscribe", "news", "more"]).unwrap();
    for (index, name) in ["news", "more"].iter().enumerate() {
        let said = vec![bulk("subscribe"), bulk(name), Value::Integer(index as i64 + 1)];
        assert_eq!(two.value().unwrap(), Value::Array(said));
    }
    three.say("hello 3");
    three.say("psubscribe n*s");
    assert_eq!(other.say("publish news hello"), Value::Integer(2));
    assert_eq!(other.say("publish nobody hello"), Value::Integer(0));
    assert_eq!(two.value().unwrap(), message(&["message", "news", "hello"]));
    assert_eq!(three.value().unwrap(), message(&["pmessage", "n*s", "news", "hello"]));
    // Version 2 has no room for other replies; version 3 has.
    assert!(matches!(two.say("get k"), Value::Error(text) if text.contains("only (P|S)SUBSCRIBE")));
    assert_eq!(two.say("ping"), pair("pong", ""));
    assert_eq!(three.say("get k"), Value::Null);
    assert_eq!(
        other.say("pubsub numsub news nobody"),
        Value::Array(vec![bulk("news"), Value::Integer(1), bulk("nobody"), Value::Integer(0),])
    );
    assert_eq!(other.say("pubsub numpat"), Value::Integer(1));
    // A publication of a transaction is sent when that is run.
    other.say("multi");
    other.say("publish more 1");
    other.say("set k v");
    other.say("publish more 2");
    other.say("exec");
    assert_eq!(two.value().unwrap(), message(&["message", "more", "1"]));
    assert_eq!(two.value().unwrap(), message(&["message", "more", "2"]));
    drop((two, three));
    let gone = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        other.say("publish news again") == Value::Integer(0)
    });
    assert!(gone, "those who went still listen");
}

#[test]
fn clients_see_and_end_each_other() {
    let folder = Folder::new();
    let redis = server(&folder, &[]);
    let (mut client, mut other) = (Client::connect(redis.address()), Client::connect(redis.address()));
    client.say("client setname one");
    let Value::Integer(number) = client.say("client id") else { panic!("no number") };
    let Value::Bulk(list) = other.say("client list") else { panic!("no text") };
    let list = String::from_utf8(list).unwrap();
    assert_eq!(list.lines().count(), 2);
    assert!(list.lines().any(|line| line.starts_with(&format!("id={number} ")) && line.contains(" name=one ")));
    assert!(list.contains(" cmd=client|list "));
    assert_eq!(other.say(&format!("client kill id {number}")), Value::Integer(1));
    assert!(client.rest().is_ok_and(|rest| rest.is_empty()));
    assert_eq!(other.say(&format!("client kill id {number}")), Value::Integer(0));
}
