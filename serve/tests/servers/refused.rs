//! What memcached's clients send that is refused: nothing of it is run, nothing answers a request
//! that wants no reply, and no old value is given in place of one that could not be stored.

use nearpm_serve::start_memcached;

use crate::client::Client;
use crate::differential::lines;
use crate::process::{Folder, options};

/// A server in this process, and a client of it.
macro_rules! served {
    ($folder:ident, $server:ident, $client:ident, $more:expr) => {
        let $folder = Folder::new();
        let $server = start_memcached(options(&$folder.path("pool"), $more)).expect("the server starts");
        let mut $client = Client::connect($server.address());
    };
}

#[test]
fn the_value_of_a_refused_command_is_not_run() {
    let long = "k".repeat(251);
    let large = format!("set k 0 0 {}", 2 << 20);
    served!(folder, server, client, &[]);
    assert_eq!(lines(&mut client, "set keep 0 0 2\r\nme\r\n"), ["STORED"]);
    for line in [
        &format!("set {long} 0 0 9"),
        &format!("add {long} 0 0 9 noreply"),
        &format!("ms {long} 9"),
        "set a key 0 0 9",
        "set a 1 0 0 9",
        "set k x 0 9",
        "set k 0 x 9",
        "set k 0 0 x",
        "set k 0 0 -1",
        "set k 0 0 4294967295",
        "set k 0 0",
        "set  0 0 9",
        "cas k 0 0 9",
        "cas k 0 0 9 x",
        "set k 0 0 4",
        "ms k 9 ?",
        "ms k 9 Mx",
        "ms k 9 Tx",
        "ms k",
        "ms k x",
    ] {
        // Each on a connection of its own, because some of them end it.
        let mut hostile = Client::connect(server.address());
        hostile.send(format!("{line}\r\nflush_all\r\n").as_bytes()).expect("the server listens");
        hostile.send(b"get keep\r\nquit\r\n").expect("the server listens");
        let told = String::from_utf8(hostile.rest().unwrap_or_default()).expect("text");
        assert!(!told.contains("OK"), "{line}: {told}");
        assert_eq!(lines(&mut client, "get keep\r\n"), ["VALUE keep 0 2", "me", "END"], "{line}: {told}");
    }
    // In pieces, as a large value comes.
    let value = b"flush_all\r\n".repeat((2 << 20) / 11 + 1);
    client.send(format!("{large}\r\n").as_bytes()).expect("the server listens");
    client.send(&value[..2 << 20]).expect("the server listens");
    assert_eq!(
        lines(&mut client, "\r\nget keep\r\n"),
        ["SERVER_ERROR object too large for cache", "VALUE keep 0 2", "me", "END"]
    );
}

#[test]
fn a_request_that_wants_no_reply_gets_none() {
    served!(folder, server, client, &["--bytes", "1M", "--eviction", "none"]);
    let value = "x".repeat(100_000);
    let full = format!("set k%d 0 0 100000 noreply\r\n{value}\r\n");
    let mut requests = vec![
        format!("set k 0 0 {} noreply\r\n{}\r\n", 2 << 20, "x".repeat(2 << 20)),
        format!("set {} 0 0 1 noreply\r\nx\r\n", "k".repeat(251)),
        "set n 0 0 1 noreply\r\nx\r\n".to_owned(),
        "incr n 1 noreply\r\nincr n x noreply\r\nincr none 1 noreply\r\n".to_owned(),
        "touch n x noreply\r\ndelete none noreply\r\nverbosity 1 noreply\r\nflush_all x noreply\r\n".to_owned(),
        "cas n 0 0 1 9999 noreply\r\nx\r\nadd n 0 0 1 noreply\r\nx\r\n".to_owned(),
    ];
    requests.extend((0..30).map(|number| full.replace("%d", &number.to_string())));
    for request in requests {
        assert!(lines(&mut client, &request).is_empty(), "{:?}", request.get(..60));
    }
    assert_eq!(
        lines(&mut client, format!("set last 0 0 100000\r\n{value}\r\n")),
        ["SERVER_ERROR out of memory storing object"]
    );
}

#[test]
fn a_refused_set_leaves_no_old_value() {
    let large = format!("{}\r\n{}\r\n", 2 << 20, "x".repeat(2 << 20));
    let half = format!("100000\r\n{}\r\n", "x".repeat(100_000));
    const TOO_LARGE: &str = "SERVER_ERROR object too large for cache";
    const FULL: &str = "SERVER_ERROR out of memory storing object";
    for more in [&["--bytes", "1M", "--eviction", "none"][..], &["--memory-limit", "200K", "--eviction", "none"]] {
        served!(folder, server, client, more);
        let mut is_there = |request: &str, refusal: &str| {
            assert_eq!(lines(&mut client, "set k 0 0 3\r\nold\r\n"), ["STORED"]);
            assert_eq!(lines(&mut client, request), [refusal]);
            lines(&mut client, "get k\r\n").len() == 3
        };
        assert!(!is_there(&format!("set k 0 0 {large}"), TOO_LARGE));
        assert!(!is_there(&format!("ms k {large}"), TOO_LARGE));
        // Those that store under a condition leave what is there.
        assert!(is_there(&format!("add k 0 0 {large}"), TOO_LARGE));
        assert!(is_there(&format!("append k 0 0 {large}"), TOO_LARGE));
        assert!(is_there(&format!("cas k 0 0 {}", large.replacen("\r\n", " 1\r\n", 1)), TOO_LARGE));
        let mut filler = Client::connect(server.address());
        let full = (0..30).any(|number| lines(&mut filler, format!("set f{number} 0 0 {half}")) == [FULL]);
        assert!(full, "{more:?}");
        // Of a value that was there before the server was full.
        let mut client = Client::connect(server.address());
        let there = lines(&mut client, "get k\r\n").len() == 3;
        assert!(there);
        assert_eq!(lines(&mut client, format!("replace k 0 0 {half}")), [FULL]);
        assert_eq!(lines(&mut client, "get k\r\n"), ["VALUE k 0 3", "old", "END"]);
        assert_eq!(lines(&mut client, format!("set k 0 0 {half}")), [FULL]);
        assert_eq!(lines(&mut client, "get k\r\n"), ["END"]);
    }
}

#[test]
fn multi_gets_have_any_length() {
    served!(folder, server, client, &[]);
    for number in 0..100 {
        assert_eq!(lines(&mut client, format!("set key{number} 0 0 2\r\n{:02}\r\n", number)), ["STORED"]);
    }
    let keys: Vec<_> = (0..60_000).map(|number| format!("key{}", number % 300)).collect();
    for (verb, behind) in [("get", ""), ("gets", "cas"), ("gat 0", ""), ("gats 0", "cas")] {
        let told = lines(&mut client, format!("{verb} {}\r\n", keys.join(" ")));
        assert_eq!(told.len(), 20_000 * 2 + 1, "{verb}");
        for (pair, number) in told.chunks(2).zip((0..60_000).filter(|number| number % 300 < 100)) {
            let words: Vec<_> = pair[0].split(' ').collect();
            assert_eq!(words[..4], ["VALUE", &format!("key{}", number % 300), "0", "2"], "{verb}");
            assert_eq!(words.len(), 4 + usize::from(behind == "cas"), "{verb}");
            assert_eq!(pair[1], format!("{:02}", number % 300), "{verb}");
        }
        assert_eq!(told.last().map(String::as_str), Some("END"));
    }
    // A word that is no key, behind many that were answered: the rest of the line is passed over.
    let wrong = format!("get {} {} key1\r\n", keys.join(" "), "k".repeat(251));
    let told = lines(&mut client, wrong);
    assert_eq!(told.last().map(String::as_str), Some("CLIENT_ERROR bad command line format"));
    assert_eq!(lines(&mut client, "get key1\r\n"), ["VALUE key1 0 2", "01", "END"]);
}

#[test]
fn a_reply_to_many_keys_is_made_a_few_at_a_time() {
    served!(folder, server, client, &["--bytes", "32M", "--durability", "async"]);
    let value = "x".repeat(1 << 20);
    assert_eq!(lines(&mut client, format!("set k 0 0 {}\r\n{value}\r\n", 1 << 20)), ["STORED"]);
    let before = memory();
    // 60 GiB, which nobody reads.
    client.send(format!("get {}\r\n", "k ".repeat(60_000)).as_bytes()).expect("the server listens");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(memory() - before < 200 << 20, "{} more bytes", memory() - before);
    assert_eq!(lines(&mut Client::connect(server.address()), "get none\r\n"), ["END"]);
}

/// Bytes of ordinary memory that this process has.
fn memory() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line of it");
    line.trim().trim_end_matches(" kB").parse::<i64>().expect("a number") << 10
}

#[test]
fn other_protocols_are_hung_up_on() {
    served!(folder, server, client, &[]);
    assert_eq!(lines(&mut client, "set keep 0 0 2\r\nme\r\n"), ["STORED"]);
    for foreign in [
        "GET / HTTP/1.0\r\n\r\nflush_all\r\n",
        "POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 11\r\n\r\nflush_all\r\n",
        "PUT /x HTTP/1.1\r\nflush_all\r\n",
        "DELETE HTTP/1.1\r\nflush_all\r\n",
        "*1\r\n$9\r\nflush_all\r\n",
        "EHLO here\r\nflush_all\r\n",
        "\x16\x03\x01\x00\x05flush_all\r\n",
    ] {
        let mut hostile = Client::connect(server.address());
        hostile.send(foreign.as_bytes()).expect("the server listens");
        assert!(hostile.rest().unwrap_or_default().is_empty(), "{foreign:?}");
        assert_eq!(lines(&mut client, "get keep\r\n"), ["VALUE keep 0 2", "me", "END"], "{foreign:?}");
    }
}

#[test]
fn a_number_that_needs_more_room_keeps_what_was_asked_for() {
    served!(folder, server, client, &[]);
    assert_eq!(lines(&mut client, "set n 0 0 1\r\n9\r\n"), ["STORED"]);
    assert_eq!(lines(&mut client, "ma n T60 t v\r\n"), ["VA 2 t60", "10"]);
    assert_eq!(lines(&mut client, "mg n t T90 t\r\n"), ["CLIENT_ERROR duplicate flag"]);
    assert_eq!(lines(&mut client, "mg n t T90\r\nmg n t\r\n"), ["HD t60", "HD t90"]);
}
