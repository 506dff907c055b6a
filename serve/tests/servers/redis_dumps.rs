//! DUMP and RESTORE beside the stock server.

use nearpm_serve::start_redis;

use crate::client::{Client, Value};
use crate::process::{Folder, options};
use crate::stock::Stock;

/// Values move from this server to Redis and back, whatever form they were dumped in.
#[test]
fn dumps_are_those_of_redis() {
    let Some(stock) = Stock::redis() else { return };
    let folder = Folder::new();
    let redis = start_redis(options(&folder.path("pool"), &["--bytes", "64M"])).expect("the server starts");
    let (mut ours, mut theirs) = (Client::connect(redis.address()), Client::connect(stock.address));
    let many = |command: &str, entry: &dyn Fn(usize) -> String, count| {
        (0..count)
            .step_by(50)
            .map(|at| (at..at + 50).fold(command.to_owned(), |line, i| line + " " + &entry(i)))
            .collect::<Vec<_>>()
    };
    let long = "x".repeat(300);
    let mut lines = vec![
        "set number 12345".to_owned(),
        "set negative -70000".to_owned(),
        format!("set compressed {}", "abc".repeat(400)),
        "zadd scores 1.5 a -inf b inf c 3 d".to_owned(),
        format!("rpush long {long} short 5 -129 40000 -9000000000 {}", "y".repeat(5000)),
        "sadd numbers 1 2 70000 -5".to_owned(),
    ];
    lines.extend(many("rpush list", &|i| format!("{}", i as i64 * 7919 - 100_000), 3000));
    lines.extend(many("sadd set", &|i| format!("member{i}"), 1000));
    lines.extend(many("hset hash", &|i| format!("f{i} v{i}"), 100));
    lines.extend(many("hset big", &|i| format!("f{i} {long}"), 100));
    lines.extend(many("zadd zset", &|i| format!("{}.25 m{i}", i * i), 1000));
    for line in &lines {
        assert_eq!(ours.say(line), theirs.say(line), "{line}");
    }
    let keys = ["number", "negative", "compressed", "scores", "long", "numbers", "list", "set", "hash", "big", "zset"];
    for key in keys {
        let dump = |client: &mut Client| match client.say(&format!("dump {key}")) {
            Value::Bulk(bytes) => bytes,
            other => panic!("{key}: {other:?}"),
        };
        for (from, to) in [(true, false), (false, true)] {
            let bytes = dump(if from { &mut ours } else { &mut theirs });
            let to = if to { &mut ours } else { &mut theirs };
            let restored = to.ask(&[&b"restore"[..], b"copy", b"0", &bytes, b"replace"]).unwrap();
            assert_eq!(restored, Value::Simple("OK".to_owned()), "{key}");
            let ask = match key {
                "number" | "negative" | "compressed" => "get {}",
                "scores" | "zset" => "zrange {} 0 -1 withscores",
                "long" | "list" => "lrange {} 0 -1",
                "numbers" | "set" => "smembers {}",
                _ => "hgetall {}",
            };
            let sorted = |value| match (value, ask) {
                (Value::Array(mut rows), "smembers {}") => {
                    rows.sort_by_key(|row| format!("{row:?}"));
                    Value::Array(rows)
                }
                (Value::Array(rows), "hgetall {}") => {
                    let mut rows: Vec<_> = rows.chunks(2).map(|pair| Value::Array(pair.to_vec())).collect();
                    rows.sort_by_key(|row| format!("{row:?}"));
                    Value::Array(rows)
                }
                (value, _) => value,
            };
            let [original, copy] = [key, "copy"].map(|key| sorted(to.say(&ask.replace("{}", key))));
            assert_eq!(original, copy, "{key}");
        }
    }
}
