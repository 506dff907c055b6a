//! Who is let in, and who may do what.

use std::net::{SocketAddr, UdpSocket};

use nearpm_serve::{start_memcached, start_redis};

use crate::client::{Client, Value, bulk};
use crate::operation::{Ask, FAST};
use crate::process::{Folder, options};

/// The address of this machine by which others reach it, if it has one.
fn outside() -> Option<SocketAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent.
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().filter(|address| !address.ip().is_loopback() && !address.ip().is_unspecified())
}

#[test]
fn clients_of_other_machines_need_a_password() {
    let Some(outside) = outside() else {
        eprintln!("SKIPPED: this machine has no address but its own");
        return;
    };
    let folder = Folder::new();
    let pool = folder.path("pool");
    let file = folder.path("users");
    std::fs::write(&file, "me:secret\n").expect("it can be written");
    let users = file.to_str().expect("a path of this test");
    for (more, refused) in [
        (&[][..], true),
        (&["--protected-mode", "no"], false),
        (&["--auth-file", users], false),
        (&["--requirepass", "secret"], false),
    ] {
        let arguments = [&FAST[..], &["--listen", "0.0.0.0:0"], more].concat();
        let server = start_memcached(options(&pool, &arguments)).expect("the server starts");
        let port = server.address().port();
        let first = |address: SocketAddr| {
            let mut client = Client::connect(address);
            // One that is turned away is told so before it asks.
            let turned_away = refused && !address.ip().is_loopback();
            if !turned_away {
                client.send(b"version\r\n").expect("the server listens");
            }
            (client.line().expect("it is answered").contains("protected mode"), turned_away)
        };
        for ip in [[127, 0, 0, 1].into(), outside.ip()] {
            let (told, expected) = first((ip, port).into());
            assert_eq!(told, expected, "{more:?} {ip}");
        }
    }
}

#[test]
fn memcached_asks_who_a_client_is() {
    let folder = Folder::new();
    let users = folder.path("users");
    std::fs::write(&users, "me:secret word\nyou:other\n").expect("it can be written");
    let arguments = [&FAST[..], &["--auth-file", users.to_str().expect("a path")]].concat();
    let server = start_memcached(options(&folder.path("pool"), &arguments)).expect("the server starts");
    let send = |client: &mut Client, request: &str| {
        client.send(request.as_bytes()).expect("the server listens");
        client.line().expect("it answers")
    };
    let login = |who: &str| format!("set ignored 0 0 {}\r\n{who}\r\n", who.len());
    let client = &mut Client::connect(server.address());
    for request in [
        "get k\r\n",
        "flush_all\r\n",
        "set k 0 0 9\r\nflush_all\r\n",
        &login("me wrong"),
        &login("me other"),
        &login("me"),
    ] {
        assert!(send(client, request).starts_with("CLIENT_ERROR"), "{request}");
    }
    assert!(send(client, &format!("set k 0 0 100000\r\n{}\r\n", "x".repeat(100_000))).starts_with("CLIENT_ERROR"));
    assert_eq!(send(client, &login("me secret word")), "STORED");
    assert_eq!(client.told("set k 0 0 1\r\nx\r\nget k\r\n"), ["STORED", "VALUE k 0 1", "x", "END"]);
}

#[test]
fn users_may_do_what_their_rules_say() {
    let folder = Folder::new();
    let users = folder.path("users");
    let rules =
        "# comment\nuser default off\nuser reader on >r ~a* ~the-end +@read\nuser writer on >w ~* +@all -@dangerous\n";
    std::fs::write(&users, rules).expect("it can be written");
    let arguments = [&FAST[..], &["--acl-file", users.to_str().expect("a path")]].concat();
    let server = start_memcached(options(&folder.path("pool"), &arguments)).expect("the server starts");
    let login = |who: &str| {
        let mut client = Client::connect(server.address());
        client.send(format!("set ignored 0 0 {}\r\n{who}\r\n", who.len()).as_bytes()).expect("the server listens");
        assert_eq!(client.line().expect("it answers"), "STORED");
        client
    };
    let (mut reader, mut writer) = (login("reader r"), login("writer w"));
    assert_eq!(writer.told("set a1 0 0 1\r\nx\r\nset b1 0 0 1\r\nx\r\n"), ["STORED", "STORED"]);
    let told = |client: &mut Client, request: &str| client.told(request).remove(0);
    assert_eq!(told(&mut reader, "get a1\r\n"), "VALUE a1 0 1");
    for refused in ["get b1\r\n", "get a1 b1\r\n", "delete a1\r\n", "gat 0 a1\r\n", "mg a1 T0\r\n", "stats\r\n"] {
        assert!(told(&mut reader, refused).contains("no permission"), "{refused}");
    }
    let large = format!("set a1 0 0 2000000\r\n{}\r\n", "x".repeat(2_000_000));
    assert!(told(&mut reader, &large).contains("no permission"));
    assert!(told(&mut writer, "flush_all\r\n").contains("no permission"));
    assert_eq!(told(&mut reader, "get a1\r\n"), "VALUE a1 0 1");
}

#[test]
fn commands_can_be_disabled() {
    let folder = Folder::new();
    let arguments = [&FAST[..], &["--rename-command", "flush_all=", "--rename-command", "stats=tell"]].concat();
    let server = start_memcached(options(&folder.path("pool"), &arguments)).expect("the server starts");
    let client = &mut Client::connect(server.address());
    assert_eq!(client.told("flush_all\r\n"), ["CLIENT_ERROR flush_all not allowed"]);
    assert_eq!(client.told("stats\r\n"), ["CLIENT_ERROR stats not allowed"]);
    assert!(client.told("tell\r\n").len() > 10);
}

#[test]
fn redis_asks_who_a_client_is() {
    let folder = Folder::new();
    let users = folder.path("users");
    std::fs::write(&users, "user default on >pass ~* +@all\nuser reader on >r ~a* +@read\n")
        .expect("it can be written");
    let more = [
        "--acl-file",
        users.to_str().expect("a path"),
        "--rename-command",
        "flushall=",
        "--rename-command",
        "get=fetch",
    ];
    let server = start_redis(options(&folder.path("pool"), &[&FAST[..], &more].concat())).expect("the server starts");
    let ok = || Value::Simple("OK".to_owned());
    let error = |value: Value| matches!(&value, Value::Error(_)).then(|| format!("{value:?}")).unwrap_or_default();
    let client = &mut Client::connect(server.address());
    for refused in ["SET a1 x", "FETCH a1", "MULTI", "CONFIG GET maxclients", "HELLO 3"] {
        assert!(error(client.say(refused)).contains("NOAUTH"), "{refused}");
    }
    assert!(error(client.say("AUTH wrong")).contains("WRONGPASS"));
    assert!(error(client.say("HELLO 3 AUTH reader pass")).contains("WRONGPASS"));
    assert_eq!(client.say("AUTH pass"), ok());
    assert_eq!(client.say("SET a1 x"), ok());
    assert!(error(client.say("FLUSHALL")).contains("unknown command"));
    assert!(error(client.say("GET a1")).contains("unknown command"));
    assert_eq!(client.say("FETCH a1"), Value::Bulk(b"x".to_vec()));
    let reader = &mut Client::connect(server.address());
    assert!(matches!(reader.say("HELLO 3 AUTH reader r"), Value::Map(_)));
    assert_eq!(reader.say("FETCH a1"), Value::Bulk(b"x".to_vec()));
    for refused in ["SET a1 y", "FETCH b1", "MGET a1 b1", "CONFIG GET port", "FLUSHDB"] {
        assert!(error(reader.say(refused)).contains("NOPERM"), "{refused}");
    }
}

#[test]
fn redis_users_may_do_what_their_rules_say() {
    let folder = Folder::new();
    let users = folder.path("users");
    let rules = "user default off\nuser all on >x ~* &* +@all\n\
        user some on >x ~a* %R~b* &news* +@all -@dangerous +client|list\nuser lists on >x ~* +@list +@connection\n";
    std::fs::write(&users, rules).expect("it can be written");
    let more = ["--acl-file", users.to_str().expect("a path"), "--rename-command", "decr=less"];
    let server = start_redis(options(&folder.path("pool"), &[&FAST[..], &more].concat())).expect("the server starts");
    let client = |name: &str| {
        let mut client = Client::connect(server.address());
        assert_eq!(client.say(&format!("AUTH {name} x")), Value::Simple("OK".to_owned()));
        client
    };
    let refused =
        |client: &mut Client, line: &str| matches!(client.say(line), Value::Error(text) if text.starts_with("NOPERM"));
    let (mut all, mut some, mut lists) = (client("all"), client("some"), client("lists"));
    for line in ["SET b 1", "RPUSH c 1 2", "SADD a 1 2"] {
        assert!(!matches!(all.say(line), Value::Error(_)), "{line}");
    }
    for line in [
        "SINTERSTORE b 1 a",
        "BLPOP a c 0.1",
        "BLMPOP 0.1 1 c LEFT",
        "ZUNIONSTORE a 1 c",
        "SORT a GET c*",
        "COPY a b",
        "OBJECT ENCODING c",
        "WATCH c",
        "KEYS *",
        "CONFIG GET port",
        "CLIENT KILL TYPE normal",
        "SUBSCRIBE other",
        "PSUBSCRIBE n*",
        "PUBLISH other x",
        "FLUSHALL",
    ] {
        assert!(refused(&mut some, line), "{line}");
    }
    for line in
        ["GET b", "SCARD a", "CLIENT LIST", "CLIENT SETNAME me", "PUBLISH news1 x", "BLPOP alist 0.01", "LESS a1"]
    {
        assert!(!matches!(some.say(line), Value::Error(_)), "{line}");
    }
    assert_eq!(some.say("LESS a1"), Value::Integer(-2));
    assert_eq!(lists.say("LLEN c"), Value::Integer(2));
    assert!(refused(&mut lists, "GET b") && refused(&mut lists, "MULTI") && refused(&mut lists, "SUBSCRIBE x"));
    // What is refused between MULTI and EXEC spoils both, and RESET forgets who the client was.
    assert_eq!(some.say("MULTI"), Value::Simple("OK".to_owned()));
    assert!(refused(&mut some, "GET c"));
    assert!(matches!(some.say("EXEC"), Value::Error(text) if text.starts_with("EXECABORT")));
    let lines = |client: &mut Client| match client.say("CLIENT LIST") {
        Value::Bulk(text) => String::from_utf8(text).expect("text"),
        other => panic!("{other:?}"),
    };
    assert!(lines(&mut all).contains("user=some") && lines(&mut all).contains("user=lists"));
    assert_eq!(some.say("RESET"), Value::Simple("RESET".to_owned()));
    assert!(matches!(some.say("GET b"), Value::Error(text) if text.starts_with("NOAUTH")));
    assert_eq!(all.say("CLIENT KILL USER lists"), Value::Integer(1));
    assert!(!lines(&mut all).contains("user=lists"));
}

#[test]
fn the_password_changes_while_the_server_runs() {
    let folder = Folder::new();
    let server = start_redis(options(&folder.path("pool"), &FAST)).expect("the server starts");
    let (mut client, ok) = (Client::connect(server.address()), Value::Simple("OK".to_owned()));
    // All of the pairs or none.
    assert!(matches!(client.say("config set requirepass secret maxclients 0"), Value::Error(_)));
    assert_eq!(Client::connect(server.address()).say("ping"), Value::Simple("PONG".to_owned()));
    assert_eq!(client.say("config set slowlog-log-slower-than 0 requirepass secret"), ok);
    let mut other = Client::connect(server.address());
    assert!(matches!(other.say("ping"), Value::Error(why) if why.starts_with("NOAUTH")));
    assert_eq!(other.say("auth secret"), ok);
    assert_eq!(other.say("config get requirepass"), Value::Array(vec![bulk("requirepass"), bulk("secret")]));
    assert_eq!(other.say("acl setuser me >hidden"), ok);
    // What is slow is told, but no password.
    let told = format!("{:?}", other.say("slowlog get 10"));
    assert!(!told.contains("hidden") && !told.contains("secret"), "{told}");
    assert_eq!(other.ask(&["config", "set", "requirepass", ""]).expect("it is answered"), ok);
    assert_eq!(Client::connect(server.address()).say("ping"), Value::Simple("PONG".to_owned()));
}
