//! The same random commands to a stock server and to ours give the same replies.

use std::time::Duration;

use nearpm_serve::{start_memcached, start_redis};

use crate::client::{Client, Value};
use crate::process::{Folder, draw, options, thorough};
use crate::redis_commands::REDIS;
use crate::redis_edges::EDGES;
use crate::stock::Stock;

/// Numbers that are drawn one after the other.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 += 1;
        draw(self.0.wrapping_mul(0x5851_f42d_4c95_7f2d)) % limit
    }

    pub fn of<'t>(&mut self, choice: &[&'t str]) -> &'t str {
        choice[self.below(choice.len() as u64) as usize]
    }
}

/// A row with what it names drawn.
pub fn command(template: &str, dice: &mut Dice) -> Vec<String> {
    let mut words = Vec::new();
    for word in template.split(' ') {
        let mut word = word.replace("%k", dice.of(&["k1", "k2", "k3", "k4", "k5", "k6"]));
        word = word.replace("%m", dice.of(&["a", "b", "c", "d", "e"]));
        word = word.replace("%v", dice.of(&["v", "a longer value", "7", "", "x\r\ny", "12", "0.5"]));
        word = word.replace("%n", dice.of(&["0", "1", "-1", "3", "7", "-2", "9223372036854775807"]));
        word = word.replace("%i", dice.of(&["0", "1", "-1", "3", "-3", "5"]));
        word = word.replace("%s", dice.of(&["0", "1", "-1", "2.5", "(1", "(2.5", "-inf", "+inf", "inf"]));
        word = word.replace("%x", dice.of(&["-", "+", "[b", "(b", "[d", "(d", "[a", "[z"]));
        words.push(word.replace("%t", dice.of(&["100", "1000", "100000"])));
    }
    words
}

fn sorted(mut values: Vec<Value>) -> Vec<Value> {
    values.sort_by_key(|value| format!("{value:?}"));
    values
}

fn pairs(values: &[Value]) -> Vec<Value> {
    sorted(values.chunks(2).map(|pair| Value::Array(pair.to_vec())).collect())
}

/// What has no order gets one, and a time becomes a class of times. What a kind of reply is stays.
fn normal(words: &[String], value: Value) -> Value {
    match (words[0].as_str(), value) {
        ("scan" | "sscan" | "hscan" | "zscan", Value::Array(mut values)) if values.len() == 2 => {
            normal(&["keys".to_owned()], values.pop().unwrap_or(Value::Null))
        }
        ("smembers" | "keys" | "hkeys" | "hvals" | "spop" | "sunion" | "sinter" | "sdiff", Value::Array(values)) => {
            Value::Array(sorted(values))
        }
        ("smembers" | "spop" | "sunion" | "sinter" | "sdiff", Value::Set(values)) => Value::Set(sorted(values)),
        ("hgetall", Value::Array(values)) => Value::Array(pairs(&values)),
        ("hgetall", Value::Map(values)) => Value::Map(pairs(&values)),
        // The runs are not at the same time.
        ("ttl", Value::Integer(seconds)) if seconds > 0 => Value::Integer((seconds + 20) / 100),
        ("pttl" | "expiretime" | "pexpiretime", Value::Integer(time)) if time > 0 => Value::Integer(1),
        ("time", Value::Array(_)) => Value::Array(Vec::new()),
        ("lastsave", Value::Integer(_)) => Value::Integer(1),
        // Who they are, and which of the keys.
        ("hello", Value::Array(_)) => Value::Array(Vec::new()),
        ("hello", Value::Map(_)) => Value::Map(Vec::new()),
        ("randomkey", Value::Bulk(_)) => Value::Bulk(Vec::new()),
        (_, other) => other,
    }
}

#[test]
fn redis_gives_the_same_replies() {
    let Some(stock) = Stock::redis() else { return };
    let folder = Folder::new();
    let ours = start_redis(options(&folder.path("pool"), &["--survives", "process-crash"])).expect("the server starts");
    let mut both = [Client::connect(stock.address), Client::connect(ours.address())];
    let mut dice = Dice(7);
    let (mut queued, mut open, count) = (Vec::<Vec<String>>::new(), false, if thorough() { 200_000 } else { 12_000 });
    for number in 0..count {
        let list = if dice.below(4) == 0 { EDGES } else { REDIS };
        let words = command(dice.of(list), &mut dice);
        // What a connection says of itself is refused inside of a transaction.
        if open && matches!(words[0].as_str(), "hello" | "auth" | "client") {
            continue;
        }
        if words.last().is_some_and(|word| word == "gt") {
            // A time that was set in the same millisecond is not later; which it was set in, each
            // server finds by itself.
            std::thread::sleep(Duration::from_millis(2));
        }
        let [theirs, mine] = both.each_mut().map(|client| client.ask(&words).expect("the server answers"));
        // The replies of EXEC are those of the commands in it.
        let settle = |value: Value| match value {
            Value::Array(values) if words[0] == "exec" => {
                Value::Array(values.into_iter().zip(&queued).map(|(value, words)| normal(words, value)).collect())
            }
            value => normal(&words, value),
        };
        let [theirs, mine] = [theirs, mine].map(settle);
        assert_eq!(theirs, mine, "command {number}: {words:?}, queued {}", queued.len());
        match words[0].as_str() {
            // With a word more it is refused, and changes nothing.
            "multi" if words.len() == 1 => open = true,
            "exec" | "discard" | "reset" if words.len() == 1 => {
                open = false;
                queued.clear();
            }
            _ if theirs == Value::Simple("QUEUED".to_owned()) => queued.push(words),
            _ => {}
        }
    }
}

/// `%c` is the number of the key for `cas`.
const MEMCACHED: &[&str] = &[
    "get %k %k",
    "gets %k",
    "set %k %f 0 %d",
    "set %k %f %t %d noreply",
    "add %k %f 0 %d",
    "replace %k %f 0 %d",
    "append %k 0 0 %d",
    "prepend %k 0 0 %d",
    "set %k 0 -1 %d",
    "cas %k %f 0 %d %c",
    "cas %k %f 0 %d 999999",
    "delete %k",
    "incr %k %n",
    "decr %k %n",
    "incr %k x",
    "touch %k %t",
    "gat %t %k",
    "gats %t %k %k",
    "get",
    "nonsense",
    "flush_all",
    "flush_all x",
    "verbosity 1",
    "verbosity",
    "verbosity 1 2",
    "version x",
    "touch %k",
    "touch %k x",
    "bget %k",
    "get noreply %k",
    "set noreply %f 0 %d",
    "delete noreply",
    "delete %k 0 noreply",
    "delete %k x",
    "noreply",
    "nonsense noreply",
    "incr noreply 1",
    "incr %k x noreply",
    "mg %k v f s k t O77",
    "mg %k",
    "mg %k q v",
    "mg none%k N30 v t",
    "mg none%k t N30 v",
    "mg %k N30 v t",
    "mg %k t T100 v t",
    "mg %k t v T100",
    "mg %k T100 t v",
    "mg %k R30 v t",
    "mg %k R3000 v t",
    "mg %k R3000 T60 v t",
    "mg %k D5 M3 v u",
    "mg %k v v",
    "mg %k Nx",
    "mg %k Nx O12345678901234567890123456789012",
    "mg %k O1234567890123456789012345678901 v",
    "mg none O1234567890123456789012345678901 k",
    "ms %k %d T0 F3",
    "ms %k %d T60",
    "ms %k %d MA",
    "ms %k %d MP q",
    "ms %k %d ME k O1",
    "ms %k %d MR q",
    "ms %k %d I C1",
    "ms %k %d I C1 T500",
    "ms %k %d I C%c T500",
    "ms %k %d MA I C1",
    "ms %k %d C%c",
    "ms %k %d C0",
    "ms %k %d MA C%c",
    "ms %k %d MA C0",
    "ms %k %d MA C999999",
    "ms %k %d ME C5",
    "ms %k %d MR C%c",
    "ms none %d C5",
    "ms none %d MA C5",
    "ms none%k %d ME C5",
    "ms %k %d Mx",
    "ms %k %d Fx",
    "ms %k %d ?",
    "mn",
    "md %k",
    "md %k q",
    "md %k C999999",
    "md %k C0",
    "md %k v",
    "md %k ?",
    "md none%k",
    "ma %k",
    "ma %k q",
    "ma %k v D5",
    "ma %k MD v D7",
    "ma %k N0 J5 v t",
    "ma %k N0 J5 q v t",
    "ma %k C%c v",
    "ma %k C0 v",
    "ma %k C1 v",
    "ma %k Dx",
    "mg %k v s t f",
    "md %k I T60",
    "md %k I",
    "md %k I",
    "mg",
    "mg %k ?",
    "me none",
];

/// A request with its value, if it has one.
fn request(template: &str, dice: &mut Dice, cas: &str) -> String {
    let value = dice.of(&["v", "12", "7", "a longer value", "99999", ""]);
    let mut text = template.replace("%f", dice.of(&["0", "5", "4294967295"])).replace("%t", dice.of(&["100", "1000"]));
    while text.contains("%k") {
        text = text.replacen("%k", dice.of(&["k1", "k2", "k3", "k4"]), 1);
    }
    text = text.replace("%n", dice.of(&["0", "1", "7", "18446744073709551615"])).replace("%c", cas);
    let with_value = text.contains("%d");
    text = text.replace("%d", &value.len().to_string());
    if with_value { format!("{text}\r\n{value}\r\n") } else { format!("{text}\r\n") }
}

/// What stands for the end of a connection.
pub const ENDED: &str = "(the connection has ended)";

/// The lines of a reply.
pub fn lines(client: &mut Client, request: impl AsRef<[u8]>) -> Vec<String> {
    client.send(request.as_ref()).expect("the server listens");
    // It may be gone already.
    let _ = client.send(b"get the-end\r\nmn\r\n");
    let mut lines = Vec::new();
    loop {
        let Ok(line) = client.line() else {
            lines.push(ENDED.to_owned());
            return lines;
        };
        if line == "MN" && lines.last().is_some_and(|last| last == "END") {
            lines.pop();
            return lines;
        }
        lines.push(line);
    }
}

#[test]
fn memcached_gives_the_same_replies() {
    let Some(stock) = Stock::memcached() else { return };
    let folder = Folder::new();
    let ours =
        start_memcached(options(&folder.path("pool"), &["--survives", "process-crash"])).expect("the server starts");
    let mut both = [Client::connect(stock.address), Client::connect(ours.address())];
    let mut dice = Dice(11);
    let mut last = std::collections::VecDeque::new();
    for number in 0..if thorough() { 200_000 } else { 12_000 } {
        let (template, seed) = (dice.of(MEMCACHED), dice.0);
        let mut asked = String::new();
        let [theirs, mine] = both.each_mut().map(|client| {
            // Each server has numbers of its own.
            let cas = lines(client, "gets k1\r\n").first().and_then(|line| line.split(' ').nth(4).map(str::to_owned));
            asked = request(template, &mut Dice(seed), cas.as_deref().unwrap_or("1"));
            let reply = lines(client, &asked);
            let cas_of = |line: String| match line.rsplit_once(' ') {
                Some((rest, _)) if line.starts_with("VALUE ") && line.split(' ').count() == 5 => rest.to_owned(),
                _ => line,
            };
            // Seconds that are left: the servers do not count from the same moment.
            let time_of = |line: String| match line.split_once(" t") {
                Some((front, behind)) if line.starts_with("VA ") => {
                    format!("{front} t{}", behind.trim_start_matches(|c: char| c.is_ascii_digit()))
                }
                _ => line,
            };
            reply.into_iter().map(cas_of).map(time_of).collect::<Vec<_>>()
        });
        dice.below(1);
        last.push_back(asked);
        assert_eq!(theirs, mine, "request {number}, the last of {last:#?}");
        if last.len() > 30 {
            last.pop_front();
        }
    }
}
