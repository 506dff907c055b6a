//! Which keys memcached takes: its own programs send control characters.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use nearpm_serve::start_memcached;

use crate::client::Client;
use crate::differential::{ENDED, lines};
use crate::process::{Folder, options};
use crate::stock::Stock;

/// Requests that name a key at `%k`, each with what follows its line.
const REQUESTS: &[(&str, &str)] = &[
    ("set %k 0 0 1", "x\r\n"),
    ("get %k", ""),
    ("get other %k", ""),
    ("ms %k 1", "y\r\n"),
    ("mg %k v k", ""),
    ("append %k 0 0 1", "z\r\n"),
    ("cas %k 0 0 1 1", "z\r\n"),
    ("incr %k 1", ""),
    ("touch %k 0", ""),
    ("gat 0 %k", ""),
    ("md %k k", ""),
    ("ma %k N0 J1 v k", ""),
    ("delete %k", ""),
];

/// The same by keys in base64.
const IN_BASE64: &[&str] = &["ms %k 1 b\r\nx\r\n", "mg %k b k v\r\n", "mg %k k\r\n", "md %k b\r\n"];

fn with_key(template: &str, key: &[u8]) -> Vec<u8> {
    let (before, behind) = template.split_once("%k").expect("it has a key");
    [before.as_bytes(), key, behind.as_bytes()].concat()
}

/// Every byte alone, in front, inside and behind; lengths about the limit.
fn keys() -> Vec<Vec<u8>> {
    let placed = |byte: u8| [vec![byte], vec![byte, b'k'], vec![b'k', byte, b'k'], vec![b'k', byte]];
    let long = [1, 249, 250, 251, 252, 1000].map(|length| vec![b'k'; length]);
    (0..=u8::MAX).flat_map(placed).chain(long).collect()
}

/// Asks memcached and our server the same; nothing where memcached is not installed.
fn compare(requests: impl Iterator<Item = Vec<u8>>) {
    let Some(stock) = Stock::memcached() else { return };
    let folder = Folder::new();
    let ours =
        start_memcached(options(&folder.path("pool"), &["--survives", "process-crash"])).expect("the server starts");
    let mut both = [Client::connect(stock.address), Client::connect(ours.address())];
    for request in requests {
        let [mut theirs, mut mine] = both.each_mut().map(|client| lines(client, &request));
        if mine.last().is_some_and(|line| line == ENDED) {
            both[1] = Client::connect(ours.address());
        }
        if theirs[0].contains("ERROR") && request.iter().filter(|&&byte| byte == b'\n').count() > 1 {
            // memcached takes the value of a refused command for commands, and we do not.
            theirs.truncate(1);
            mine.truncate(1);
        }
        assert_eq!(theirs, mine, "{:?}", String::from_utf8_lossy(&request));
    }
}

#[test]
fn memcached_takes_the_same_keys() {
    let request =
        |key: &[u8], (line, value): &(&str, &str)| [&with_key(line, key)[..], b"\r\n", value.as_bytes()].concat();
    compare(keys().iter().flat_map(|key| REQUESTS.iter().map(move |r| request(key, r))));
}

#[test]
fn memcached_takes_the_same_keys_in_base64() {
    let sized = [1, 2, 3, 184, 186, 187, 188, 250, 251].map(|length| {
        let key: Vec<u8> = (0..length).map(|at| at as u8).collect();
        BASE64_STANDARD.encode(key)
    });
    // Broken ones; bits behind the last byte; a space, a newline and a NUL.
    let others = ["a2V5=", "a2V", "a2", "a", "a===", "====", "a2V_", "a-V5", "a2V=", "YR==", "IA==", "Cg==", "AA=="];
    let all = sized.iter().map(String::as_str).chain(others);
    compare(all.flat_map(|key| IN_BASE64.iter().map(|request| with_key(request, key.as_bytes()))));
}
