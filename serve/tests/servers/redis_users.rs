//! Users that change while the server runs, and clients that look on or want no answers.

use nearpm_serve::start_redis;

use crate::client::{Client, Value, bulk};
use crate::process::{Folder, options};
use crate::stock::Stock;

fn ok() -> Value {
    Value::Simple("OK".to_owned())
}

#[test]
fn users_are_made_and_told_of_as_by_the_stock_server() {
    let Some(stock) = Stock::redis() else { return };
    let folder = Folder::new();
    let redis = start_redis(options(&folder.path("pool"), &[])).expect("the server starts");
    let (mut ours, mut theirs) = (Client::connect(redis.address()), Client::connect(stock.address));
    for line in [
        "acl whoami",
        "acl users",
        "acl list",
        "acl getuser default",
        "acl getuser nobody",
        "acl setuser me",
        "acl getuser me",
        // One command: the stock server tells of several in the order of its hash table, which
        // differs with every start.
        "acl setuser me on >secret ~a* %R~b:* &news* -@all +get",
        "acl getuser me",
        "acl list",
        "acl users",
        "acl setuser me +nothing",
        "acl setuser me +@nothing",
        "acl setuser me nonsense",
        "acl getuser me",
        "acl setuser me #2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b nopass",
        "acl getuser me",
        "acl setuser me resetpass resetkeys resetchannels off nocommands",
        "acl getuser me",
        "acl setuser other on nopass allkeys allchannels allcommands",
        "acl list",
        "acl deluser default",
        "acl deluser me nobody other",
        "acl users",
        "acl cat nothing",
        "acl nonsense",
        "acl whoami x",
        "acl genpass 0",
        "acl genpass 5000",
        "acl setuser geographer +@geo",
        "acl getuser geographer",
        // With a word more it ends the transaction all the same.
        "exec x",
        "multi",
        "set queued 1",
        "exec x",
        "exec",
        "exists queued",
    ] {
        assert_eq!(ours.say(line), theirs.say(line), "{line}");
    }
    for (line, digits) in [("acl genpass", 64), ("acl genpass 5", 2)] {
        let Value::Bulk(password) = ours.say(line) else { panic!("{line} makes a password") };
        assert!(password.len() == digits && password.iter().all(u8::is_ascii_hexdigit), "{line}");
    }
    let Value::Array(commands) = ours.say("acl cat sortedset") else { panic!("a category has commands") };
    assert!(commands.contains(&bulk("zadd")) && !commands.contains(&bulk("get")));
}

#[test]
fn what_a_user_may_do_changes_at_once_and_one_that_is_removed_is_gone() {
    let folder = Folder::new();
    let redis = start_redis(options(&folder.path("pool"), &[])).expect("the server starts");
    let (mut admin, mut me) = (Client::connect(redis.address()), Client::connect(redis.address()));
    assert_eq!(admin.say("acl setuser me on >secret ~mine* +@all -@admin"), ok());
    assert_eq!(me.say("auth me secret"), ok());
    assert_eq!(me.say("acl whoami"), bulk("me"));
    assert_eq!(me.say("set mine 1"), ok());
    let refused = |value: Value| matches!(value, Value::Error(text) if text.starts_with("NOPERM"));
    assert!(refused(me.say("set yours 1")) && refused(me.say("acl list")));
    assert_eq!(admin.say("acl dryrun me set mine 1"), ok());
    assert!(matches!(admin.say("acl dryrun me set yours 1"), Value::Bulk(_)));
    assert_eq!(admin.say("acl setuser me ~yours* -get"), ok());
    assert_eq!(me.say("set yours 1"), ok());
    assert!(refused(me.say("get yours")));
    assert_eq!(admin.say("acl deluser me"), Value::Integer(1));
    let told = me.ask(&["get", "mine"]);
    assert!(!matches!(told, Ok(Value::Bulk(_))), "{told:?}");
    assert!(me.ask(&["ping"]).is_err() || me.ask(&["ping"]).is_err(), "its connection has ended");
    assert!(matches!(Client::connect(redis.address()).say("auth me secret"), Value::Error(_)));
}

#[test]
fn one_who_monitors_sees_what_others_ask_for() {
    let folder = Folder::new();
    let redis = start_redis(options(&folder.path("pool"), &[])).expect("the server starts");
    let (mut looks_on, mut asks) = (Client::connect(redis.address()), Client::connect(redis.address()));
    assert_eq!(looks_on.say("monitor"), ok());
    asks.ask(&["set", "a b", "x\r\n"]).expect("it is answered");
    asks.say("auth secret");
    asks.say("config get port");
    asks.say("get c");
    let mut seen = || looks_on.line().expect("it is told").split_once("] ").expect("an address").1.to_owned();
    assert_eq!(seen(), r#""set" "a b" "x\r\n""#);
    assert_eq!(seen(), r#""get" "c""#, "neither passwords nor what concerns the server is shown");
    looks_on.send(b"*1\r\n$5\r\nreset\r\n").expect("the server listens");
    assert_eq!(looks_on.line().expect("it answers"), "+RESET");
    asks.say("get d");
    assert_eq!(looks_on.say("ping"), Value::Simple("PONG".to_owned()));
}

#[test]
fn a_client_may_want_no_answers() {
    let folder = Folder::new();
    let redis = start_redis(options(&folder.path("pool"), &[])).expect("the server starts");
    let mut client = Client::connect(redis.address());
    let send = |client: &mut Client, line: &str| client.send(format!("{line}\r\n").as_bytes()).expect("it listens");
    for line in ["client reply skip", "set a 1", "client reply skip", "nonsense"] {
        send(&mut client, line);
    }
    assert_eq!(client.say("get a"), bulk("1"));
    // What comes next may say that it is to be answered, or that one more is not.
    send(&mut client, "client reply skip");
    assert_eq!(client.say("client reply on"), ok());
    for line in ["client reply skip", "client reply skip", "get a"] {
        send(&mut client, line);
    }
    assert_eq!(client.say("ping"), Value::Simple("PONG".to_owned()));
    for line in ["client reply off", "set b 2", "get b", "client reply skip", "get b", "multi", "set c 3", "exec"] {
        send(&mut client, line);
    }
    assert_eq!(client.say("client reply on"), ok());
    assert_eq!(client.say("mget a b c"), Value::Array(["1", "2", "3"].map(bulk).into()));
    assert!(matches!(client.say("client reply maybe"), Value::Error(_)));
    send(&mut client, "client reply off");
    let told = client.say("subscribe news");
    assert_eq!(told, Value::Array(vec![bulk("subscribe"), bulk("news"), Value::Integer(1)]), "no reply, but told");
}
