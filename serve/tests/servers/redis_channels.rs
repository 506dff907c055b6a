//! Channels: clients that listen and send at random are told the same by a stock server and by
//! ours.

use std::collections::HashSet;
use std::net::SocketAddr;

use nearpm_serve::start_redis;

use crate::client::{Client, Value, bulk};
use crate::differential::{Dice, command};
use crate::process::{Folder, options, thorough};
use crate::redis_commands::REDIS;
use crate::redis_edges::EDGES;
use crate::stock::Stock;

/// `%k` is a channel, `%v` a text.
const CHANNELS: &[&str] = &[
    "subscribe %k",
    "subscribe %k %k %k",
    "subscribe",
    "psubscribe k* %k",
    "psubscribe k[1-3]",
    "psubscribe k?",
    "psubscribe",
    "unsubscribe %k",
    "unsubscribe %k %k",
    "unsubscribe",
    "punsubscribe k*",
    "punsubscribe k[1-3] %k",
    "punsubscribe",
    "publish %k %v",
    "publish %k %v",
    "publish %k %v",
    "publish %k",
    "pubsub channels",
    "pubsub channels k[1-3]",
    "pubsub numsub %k %k",
    "pubsub numpat",
    "ping",
    "get %k",
];

/// What a client is told until the server has seen a mark that it sends: whatever was to come to it
/// has come by then.
fn told(client: &mut Client, mark: &str) -> Vec<Value> {
    client.command(&["ping", mark]).expect("the server listens");
    let mut values = Vec::new();
    loop {
        let value = client.value().expect("the server answers");
        if value == bulk(mark) || value == Value::Array(vec![bulk("pong"), bulk(mark)]) {
            return values;
        }
        values.push(value);
    }
}

/// Names that no order is promised of are told apart from their counts.
fn sorted(values: Vec<Value>) -> Vec<String> {
    let of_value = |value: Value| match value {
        Value::Array(parts) if matches!(parts[..], [.., Value::Integer(_)]) && parts.len() == 3 => {
            vec![format!("{:?}", &parts[..2]), format!("{:?}", parts[2])]
        }
        // Names of channels.
        Value::Array(parts) => {
            let mut texts: Vec<_> = parts.iter().map(|part| format!("{part:?}")).collect();
            texts.sort();
            vec![texts.concat()]
        }
        other => vec![format!("{other:?}")],
    };
    let mut texts: Vec<_> = values.into_iter().flat_map(of_value).collect();
    texts.sort();
    texts
}

fn connect(address: SocketAddr) -> Vec<Client> {
    let mut clients: Vec<_> = (0..4).map(|_| Client::connect(address)).collect();
    clients.iter_mut().skip(2).for_each(|client| drop(client.say("hello 3")));
    clients
}

#[test]
fn who_listens_is_told_the_same() {
    let Some(stock) = Stock::redis() else { return };
    let folder = Folder::new();
    let ours = start_redis(options(&folder.path("pool"), &["--survives", "process-crash"])).expect("the server starts");
    let mut both = [connect(stock.address), connect(ours.address())];
    let mut dice = Dice(3);
    for number in 0..if thorough() { 20_000 } else { 1_500 } {
        let (words, who) = (command(dice.of(CHANNELS), &mut dice), dice.below(4) as usize);
        let mark = format!("mark {number}");
        let [theirs, mine] = both.each_mut().map(|clients| {
            clients[who].command(&words).expect("the server listens");
            // What it sends to itself comes in front of the reply there, and here when the change
            // of its transaction is durable.
            let mut first = Some(told(&mut clients[who], &mark));
            let all = clients.iter_mut().enumerate().map(|(at, client)| {
                let before = if at == who { first.take() } else { None };
                sorted(before.into_iter().flatten().chain(told(client, &mark)).collect())
            });
            all.collect::<Vec<_>>()
        });
        assert_eq!(theirs, mine, "command {number} of client {who}: {words:?}");
    }
}

#[test]
fn every_command_is_asked_of_both_servers() {
    let folder = Folder::new();
    let ours = start_redis(options(&folder.path("pool"), &["--survives", "process-crash"])).expect("the server starts");
    let Value::Array(names) = Client::connect(ours.address()).say("command list") else { panic!("it lists them") };
    let first = |row: &&'static str| row.split(' ').next().unwrap_or_default();
    let asked: HashSet<&str> = [REDIS, EDGES, CHANNELS].into_iter().flatten().map(first).collect();
    // One ends the connection (see below), the other makes one of another kind (`redis_users.rs`).
    let elsewhere = ["quit", "monitor"];
    let is_asked = |name: &Value| match name {
        Value::Bulk(name) => {
            let name = String::from_utf8_lossy(name);
            asked.contains(&*name) || elsewhere.contains(&&*name)
        }
        _ => false,
    };
    let forgotten: Vec<_> = names.iter().filter(|name| !is_asked(name)).collect();
    assert!(names.len() > 150 && forgotten.is_empty(), "of {}: {forgotten:?}", names.len());
}

#[test]
fn one_who_quits_is_answered_and_let_go() {
    let Some(stock) = Stock::redis() else { return };
    let folder = Folder::new();
    let ours = start_redis(options(&folder.path("pool"), &["--survives", "process-crash"])).expect("the server starts");
    let all = [stock.address, ours.address()].map(|address| {
        let mut client = Client::connect(address);
        client.command(&["subscribe", "k"]).expect("the server listens");
        client.command(&["quit"]).expect("the server listens");
        client.rest().expect("the connection ends in order")
    });
    assert_eq!(all[0], all[1], "{}", String::from_utf8_lossy(&all[1]));
    assert!(all[1].ends_with(b"+OK\r\n"), "{}", String::from_utf8_lossy(&all[1]));
}
