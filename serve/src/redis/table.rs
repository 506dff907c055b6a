//! The commands: one row for each, which everything that is said of it comes from.

use nearpm::prelude::*;

use super::db::{Db, Outcome};
use super::registry::{Group, commands};
use super::reply::Reply;
use super::request::Command;
use super::{
    Redis, about, acl, bitfield, bits, channels, client, config, dump, expiry, generic, hashes, lcs, lists, monitors,
    numbers, object, rename, scan, sets, slowlog, sort, strings, zsets,
};

/// A command.
#[derive(Debug, PartialEq, Eq)]
pub struct Spec {
    /// Which one it is.
    pub id: Id,
    /// In lower case.
    pub name: &'static str,
    /// Words, the name included; negative: at least so many.
    pub arity: i64,
    /// `w` it may change something, `m` it may take memory, `r` it reads keys, `F` its time does not grow with the data, `b` it may wait,
    /// `c` its second word is a subcommand, `p` it concerns channels, `M` which words are keys depends on other words, `a` it concerns the server, `d` it is
    /// slow, shows much, or removes much (Redis's category `dangerous`, which all that concern the server are in, too).
    pub flags: &'static str,
    /// First and last word that is a key (negative: counted from the end), and the step between two.
    pub keys: (i64, i64, i64),
    /// Where it is documented.
    pub group: Group,
}

#[rustfmt::skip]
commands! {
    Acl "acl" -2 "ac" 0 0 0 Server talk acl::acl;
    Append "append" 3 "wmF" 1 1 1 String act strings::append;
    Auth "auth" -2 "F" 0 0 0 Connection session elsewhere;
    Bitcount "bitcount" -2 "r" 1 1 1 Bitmap look bits::bitcount;
    Bitfield "bitfield" -2 "wm" 1 1 1 Bitmap act bitfield::bitfield;
    BitfieldRo "bitfield_ro" -2 "rF" 1 1 1 Bitmap look bitfield::bitfield_ro;
    Bitop "bitop" -4 "wm" 2 -1 1 Bitmap act bits::bitop;
    Bitpos "bitpos" -3 "r" 1 1 1 Bitmap look bits::bitpos;
    Blmove "blmove" 6 "wmb" 1 2 1 List wait lists::blmove;
    Blmpop "blmpop" -5 "wbM" 0 0 0 List wait lists::blmpop;
    Blpop "blpop" -3 "wb" 1 -2 1 List wait lists::bpop;
    Brpop "brpop" -3 "wb" 1 -2 1 List wait lists::bpop;
    Brpoplpush "brpoplpush" 4 "wmb" 1 2 1 List wait lists::brpoplpush;
    Bzmpop "bzmpop" -5 "wbM" 0 0 0 SortedSet wait zsets::bzmpop;
    Bzpopmax "bzpopmax" -3 "wbF" 1 -2 1 SortedSet wait zsets::bzpop;
    Bzpopmin "bzpopmin" -3 "wbF" 1 -2 1 SortedSet wait zsets::bzpop;
    Client "client" -2 "ac" 0 0 0 Connection talk client::client;
    Command "command" -1 "c" 0 0 0 Server talk about::command;
    Config "config" -2 "ac" 0 0 0 Server tell config::config;
    Copy "copy" -3 "wm" 1 2 1 Generic act rename::copy;
    Dbsize "dbsize" 1 "rF" 0 0 0 Server look generic::dbsize;
    Decr "decr" 2 "wmF" 1 1 1 String act numbers::increment;
    Decrby "decrby" 3 "wmF" 1 1 1 String act numbers::increment;
    Del "del" -2 "w" 1 -1 1 Generic act generic::del;
    Discard "discard" 1 "F" 0 0 0 Transactions session elsewhere;
    Dump "dump" 2 "r" 1 1 1 Generic look dump::dump;
    Echo "echo" 2 "F" 0 0 0 Connection talk about::echo;
    Exec "exec" 1 "" 0 0 0 Transactions session elsewhere;
    Exists "exists" -2 "rF" 1 -1 1 Generic look generic::exists;
    Expire "expire" -3 "wF" 1 1 1 Generic act expiry::expire;
    Expireat "expireat" -3 "wF" 1 1 1 Generic act expiry::expire;
    Expiretime "expiretime" 2 "rF" 1 1 1 Generic look expiry::ttl;
    Flushall "flushall" -1 "wd" 0 0 0 Server act generic::flush;
    Flushdb "flushdb" -1 "wd" 0 0 0 Server act generic::flush;
    Function "function" -2 "c" 0 0 0 Scripting talk about::function;
    Get "get" 2 "rF" 1 1 1 String look strings::get;
    Getbit "getbit" 3 "rF" 1 1 1 Bitmap look bits::getbit;
    Getdel "getdel" 2 "wF" 1 1 1 String act strings::getdel;
    Getex "getex" -2 "wF" 1 1 1 String act strings::getex;
    Getrange "getrange" 4 "r" 1 1 1 String look strings::getrange;
    Getset "getset" 3 "wmF" 1 1 1 String act strings::getset;
    Hdel "hdel" -3 "wF" 1 1 1 Hash act hashes::hdel;
    Hello "hello" -1 "F" 0 0 0 Connection session elsewhere;
    Hexists "hexists" 3 "rF" 1 1 1 Hash look hashes::hexists;
    Hget "hget" 3 "rF" 1 1 1 Hash look hashes::hget;
    Hgetall "hgetall" 2 "r" 1 1 1 Hash look hashes::hgetall;
    Hincrby "hincrby" 4 "wmF" 1 1 1 Hash act hashes::hincrby;
    Hincrbyfloat "hincrbyfloat" 4 "wmF" 1 1 1 Hash act hashes::hincrbyfloat;
    Hkeys "hkeys" 2 "r" 1 1 1 Hash look hashes::hgetall;
    Hlen "hlen" 2 "rF" 1 1 1 Hash look hashes::hlen;
    Hmget "hmget" -3 "rF" 1 1 1 Hash look hashes::hmget;
    Hmset "hmset" -4 "wmF" 1 1 1 Hash act hashes::hset;
    Hrandfield "hrandfield" -2 "r" 1 1 1 Hash look hashes::hrandfield;
    Hscan "hscan" -3 "r" 1 1 1 Hash look scan::hscan;
    Hset "hset" -4 "wmF" 1 1 1 Hash act hashes::hset;
    Hsetnx "hsetnx" 4 "wmF" 1 1 1 Hash act hashes::hsetnx;
    Hstrlen "hstrlen" 3 "rF" 1 1 1 Hash look hashes::hstrlen;
    Hvals "hvals" 2 "r" 1 1 1 Hash look hashes::hgetall;
    Incr "incr" 2 "wmF" 1 1 1 String act numbers::increment;
    Incrby "incrby" 3 "wmF" 1 1 1 String act numbers::increment;
    Incrbyfloat "incrbyfloat" 3 "wmF" 1 1 1 String act numbers::incrbyfloat;
    Info "info" -1 "d" 0 0 0 Server tell about::info;
    Keys "keys" 2 "rd" 0 0 0 Generic look generic::keys;
    Lastsave "lastsave" 1 "aF" 0 0 0 Server talk about::lastsave;
    Lcs "lcs" -3 "r" 1 2 1 String look lcs::lcs;
    Lindex "lindex" 3 "r" 1 1 1 List look lists::lindex;
    Linsert "linsert" 5 "wm" 1 1 1 List act lists::linsert;
    Llen "llen" 2 "rF" 1 1 1 List look lists::llen;
    Lmove "lmove" 5 "wm" 1 2 1 List act lists::lmove;
    Lmpop "lmpop" -4 "wM" 0 0 0 List act lists::lmpop;
    Lpop "lpop" -2 "wF" 1 1 1 List act lists::pop;
    Lpos "lpos" -3 "r" 1 1 1 List look lists::lpos;
    Lpush "lpush" -3 "wmF" 1 1 1 List act lists::push;
    Lpushx "lpushx" -3 "wmF" 1 1 1 List act lists::push;
    Lrange "lrange" 4 "r" 1 1 1 List look lists::lrange;
    Lrem "lrem" 4 "w" 1 1 1 List act lists::lrem;
    Lset "lset" 4 "wm" 1 1 1 List act lists::lset;
    Ltrim "ltrim" 4 "w" 1 1 1 List act lists::ltrim;
    Memory "memory" -2 "rc" 2 2 1 Server look object::memory;
    Mget "mget" -2 "rF" 1 -1 1 String look strings::mget;
    Monitor "monitor" 1 "a" 0 0 0 Server talk monitors::monitor;
    Move "move" 3 "wF" 1 1 1 Generic look generic::move_;
    Mset "mset" -3 "wm" 1 -1 2 String act strings::mset;
    Msetnx "msetnx" -3 "wm" 1 -1 2 String act strings::msetnx;
    Multi "multi" 1 "F" 0 0 0 Transactions session elsewhere;
    Object "object" -2 "rc" 2 2 1 Generic look object::object;
    Persist "persist" 2 "wF" 1 1 1 Generic act expiry::persist;
    Pexpire "pexpire" -3 "wF" 1 1 1 Generic act expiry::expire;
    Pexpireat "pexpireat" -3 "wF" 1 1 1 Generic act expiry::expire;
    Pexpiretime "pexpiretime" 2 "rF" 1 1 1 Generic look expiry::ttl;
    Ping "ping" -1 "F" 0 0 0 Connection talk about::ping;
    Psetex "psetex" 4 "wm" 1 1 1 String act strings::setex;
    Psubscribe "psubscribe" -2 "p" 0 0 0 Pubsub session elsewhere;
    Pttl "pttl" 2 "rF" 1 1 1 Generic look expiry::ttl;
    Publish "publish" 3 "pF" 0 0 0 Pubsub talk channels::publish;
    Pubsub "pubsub" -2 "pc" 0 0 0 Pubsub talk channels::pubsub;
    Punsubscribe "punsubscribe" -1 "p" 0 0 0 Pubsub session elsewhere;
    Quit "quit" -1 "F" 0 0 0 Connection session elsewhere;
    Randomkey "randomkey" 1 "r" 0 0 0 Generic look generic::randomkey;
    Rename "rename" 3 "w" 1 2 1 Generic act rename::rename;
    Renamenx "renamenx" 3 "wF" 1 2 1 Generic act rename::rename;
    Reset "reset" 1 "F" 0 0 0 Connection session elsewhere;
    Restore "restore" -4 "wmd" 1 1 1 Generic act dump::restore;
    Role "role" 1 "aF" 0 0 0 Server talk about::role;
    Rpop "rpop" -2 "wF" 1 1 1 List act lists::pop;
    Rpoplpush "rpoplpush" 3 "wm" 1 2 1 List act lists::rpoplpush;
    Rpush "rpush" -3 "wmF" 1 1 1 List act lists::push;
    Rpushx "rpushx" -3 "wmF" 1 1 1 List act lists::push;
    Sadd "sadd" -3 "wmF" 1 1 1 Set act sets::sadd;
    Scan "scan" -2 "r" 0 0 0 Generic look scan::scan;
    Scard "scard" 2 "rF" 1 1 1 Set look sets::scard;
    Script "script" -2 "c" 0 0 0 Scripting talk about::script;
    Sdiff "sdiff" -2 "r" 1 -1 1 Set look sets::algebra;
    Sdiffstore "sdiffstore" -3 "wm" 1 -1 1 Set act sets::algebra_store;
    Select "select" 2 "F" 0 0 0 Connection talk generic::select;
    Set "set" -3 "wm" 1 1 1 String act strings::set;
    Setbit "setbit" 4 "wm" 1 1 1 Bitmap act bits::setbit;
    Setex "setex" 4 "wm" 1 1 1 String act strings::setex;
    Setnx "setnx" 3 "wmF" 1 1 1 String act strings::setnx;
    Setrange "setrange" 4 "wm" 1 1 1 String act strings::setrange;
    Sinter "sinter" -2 "r" 1 -1 1 Set look sets::algebra;
    Sintercard "sintercard" -3 "rM" 0 0 0 Set look sets::sintercard;
    Sinterstore "sinterstore" -3 "wm" 1 -1 1 Set act sets::algebra_store;
    Sismember "sismember" 3 "rF" 1 1 1 Set look sets::sismember;
    Slowlog "slowlog" -2 "ac" 0 0 0 Server talk slowlog::slowlog;
    Smembers "smembers" 2 "r" 1 1 1 Set look sets::smembers;
    Smismember "smismember" -3 "rF" 1 1 1 Set look sets::smismember;
    Smove "smove" 4 "wF" 1 2 1 Set act sets::smove;
    Sort "sort" -2 "wmd" 1 1 1 Generic act sort::sort;
    SortRo "sort_ro" -2 "rd" 1 1 1 Generic look sort::sort_ro;
    Spop "spop" -2 "wF" 1 1 1 Set act sets::spop;
    Srandmember "srandmember" -2 "r" 1 1 1 Set look sets::srandmember;
    Srem "srem" -3 "wF" 1 1 1 Set act sets::srem;
    Sscan "sscan" -3 "r" 1 1 1 Set look scan::sscan;
    Strlen "strlen" 2 "rF" 1 1 1 String look strings::strlen;
    Subscribe "subscribe" -2 "p" 0 0 0 Pubsub session elsewhere;
    Substr "substr" 4 "r" 1 1 1 String look strings::getrange;
    Sunion "sunion" -2 "r" 1 -1 1 Set look sets::algebra;
    Sunionstore "sunionstore" -3 "wm" 1 -1 1 Set act sets::algebra_store;
    Time "time" 1 "F" 0 0 0 Server talk about::time;
    Touch "touch" -2 "rF" 1 -1 1 Generic look generic::exists;
    Ttl "ttl" 2 "rF" 1 1 1 Generic look expiry::ttl;
    Type "type" 2 "rF" 1 1 1 Generic look generic::kind;
    Unlink "unlink" -2 "wF" 1 -1 1 Generic act generic::del;
    Unsubscribe "unsubscribe" -1 "p" 0 0 0 Pubsub session elsewhere;
    Unwatch "unwatch" 1 "F" 0 0 0 Transactions talk about::unwatch;
    Wait "wait" 3 "" 0 0 0 Generic talk about::wait;
    Watch "watch" -2 "F" 1 -1 1 Transactions session elsewhere;
    Zadd "zadd" -4 "wmF" 1 1 1 SortedSet act zsets::zadd;
    Zcard "zcard" 2 "rF" 1 1 1 SortedSet look zsets::zcard;
    Zcount "zcount" 4 "rF" 1 1 1 SortedSet look zsets::zcount;
    Zdiff "zdiff" -3 "rM" 0 0 0 SortedSet look zsets::algebra;
    Zdiffstore "zdiffstore" -4 "wmM" 1 1 1 SortedSet act zsets::algebra_store;
    Zincrby "zincrby" 4 "wmF" 1 1 1 SortedSet act zsets::zincrby;
    Zinter "zinter" -3 "rM" 0 0 0 SortedSet look zsets::algebra;
    Zintercard "zintercard" -3 "rM" 0 0 0 SortedSet look zsets::zintercard;
    Zinterstore "zinterstore" -4 "wmM" 1 1 1 SortedSet act zsets::algebra_store;
    Zlexcount "zlexcount" 4 "rF" 1 1 1 SortedSet look zsets::zcount;
    Zmpop "zmpop" -4 "wM" 0 0 0 SortedSet act zsets::zmpop;
    Zmscore "zmscore" -3 "rF" 1 1 1 SortedSet look zsets::zmscore;
    Zpopmax "zpopmax" -2 "wF" 1 1 1 SortedSet act zsets::zpop;
    Zpopmin "zpopmin" -2 "wF" 1 1 1 SortedSet act zsets::zpop;
    Zrandmember "zrandmember" -2 "r" 1 1 1 SortedSet look zsets::zrandmember;
    Zrange "zrange" -4 "r" 1 1 1 SortedSet look zsets::zrange;
    Zrangebylex "zrangebylex" -4 "r" 1 1 1 SortedSet look zsets::zrange;
    Zrangebyscore "zrangebyscore" -4 "r" 1 1 1 SortedSet look zsets::zrange;
    Zrangestore "zrangestore" -5 "wm" 1 2 1 SortedSet act zsets::zrangestore;
    Zrank "zrank" 3 "rF" 1 1 1 SortedSet look zsets::zrank;
    Zrem "zrem" -3 "wF" 1 1 1 SortedSet act zsets::zrem;
    Zremrangebylex "zremrangebylex" 4 "w" 1 1 1 SortedSet act zsets::zremrange;
    Zremrangebyrank "zremrangebyrank" 4 "w" 1 1 1 SortedSet act zsets::zremrange;
    Zremrangebyscore "zremrangebyscore" 4 "w" 1 1 1 SortedSet act zsets::zremrange;
    Zrevrange "zrevrange" -4 "r" 1 1 1 SortedSet look zsets::zrange;
    Zrevrangebylex "zrevrangebylex" -4 "r" 1 1 1 SortedSet look zsets::zrange;
    Zrevrangebyscore "zrevrangebyscore" -4 "r" 1 1 1 SortedSet look zsets::zrange;
    Zrevrank "zrevrank" 3 "rF" 1 1 1 SortedSet look zsets::zrank;
    Zscan "zscan" -3 "r" 1 1 1 SortedSet look scan::zscan;
    Zscore "zscore" 3 "rF" 1 1 1 SortedSet look zsets::zscore;
    Zunion "zunion" -3 "rM" 0 0 0 SortedSet look zsets::algebra;
    Zunionstore "zunionstore" -4 "wmM" 1 1 1 SortedSet act zsets::algebra_store;
}

/// The command of a name, in any case.
pub fn find(name: &[u8]) -> Option<&'static Spec> {
    let mut lower = [0; 20];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    TABLE.binary_search_by(|spec| spec.name.as_bytes().cmp(lower)).ok().map(|at| &TABLE[at])
}

impl Spec {
    /// Whether a command may have so many words.
    pub fn takes(&self, words: usize) -> bool {
        if self.arity < 0 { words as i64 >= -self.arity } else { words as i64 == self.arity }
    }

    /// Whether it has a flag.
    pub fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }

    /// Whether it may change something.
    pub fn changes(&self) -> bool {
        self.has('w')
    }

    /// Which words are keys.
    pub fn keys_of<'w>(&self, words: &'w [Vec<u8>]) -> Vec<&'w Vec<u8>> {
        let (first, last, step) = self.keys;
        let last = if last < 0 { words.len() as i64 + last } else { last };
        let mut keys: Vec<_> = match first {
            0 => Vec::new(),
            _ => (first..=last).step_by(step.max(1) as usize).filter_map(|at| words.get(at as usize)).collect(),
        };
        if self.id == Id::Sort {
            let target = words.iter().rposition(|word| word.eq_ignore_ascii_case(b"store"));
            keys.extend(target.and_then(|at| words.get(at + 1)));
        }
        if self.has('M') {
            // The number of keys stands in front of them: behind the name, the destination or the time to wait.
            let at = 1 + usize::from(first != 0 || self.has('b'));
            let count = words.get(at).and_then(|word| super::resp::number(word)).unwrap_or(0).max(0) as usize;
            keys.extend(words.iter().skip(at + 1).take(count));
        }
        keys
    }

    /// Which words are channels, or patterns of channels.
    pub fn channels_of<'w>(&self, words: &'w [Vec<u8>]) -> &'w [Vec<u8>] {
        match self.id {
            Id::Publish => words.get(1..2).unwrap_or_default(),
            Id::Subscribe | Id::Psubscribe => &words[1..],
            _ => &[],
        }
    }

    /// The categories that it is in, or that a subcommand of it is in, as the rules of users name them.
    pub fn categories(&self, subcommand: Option<&str>) -> Vec<&'static str> {
        // What clients do with themselves concerns nobody else.
        let own = ["getname", "getredir", "id", "info", "no-touch", "reply", "setinfo", "setname"];
        let whoami = self.id == Id::Acl && subcommand == Some("whoami");
        let own = self.id == Id::Client && subcommand.is_some_and(|name| own.contains(&name)) || whoami;
        let admin = self.has('a') && !own;
        let by_flags = [
            ("read", self.has('r')),
            ("write", self.has('w')),
            ("admin", admin),
            ("dangerous", admin || self.has('d')),
            ("blocking", self.has('b')),
            ("fast", self.has('F')),
            ("slow", !self.has('F')),
            ("keyspace", self.group == Group::Server && (self.has('r') || self.has('w'))),
        ];
        let by_flags = by_flags.into_iter().filter(|(_, is)| *is).map(|(name, _)| name);
        self.group.category().into_iter().chain(by_flags).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found() {
        assert!(TABLE.is_sorted_by(|a, b| a.name < b.name));
        for spec in TABLE {
            assert_eq!(find(spec.name.to_ascii_uppercase().as_bytes()), Some(spec));
            assert!(spec.flags.chars().all(|flag| "wmrFbpMacd".contains(flag)), "{spec:?}");
            assert!(!spec.has('m') || spec.has('w'), "{spec:?}");
        }
        assert_eq!(find(b"nothing"), None);
        assert_eq!(find(&[b'x'; 99]), None);
    }

    #[test]
    fn keys_are_found_among_the_words() {
        let keys = |line: &str| {
            let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            let keys = find(&words[0]).unwrap().keys_of(&words).into_iter().cloned().collect::<Vec<_>>();
            String::from_utf8(keys.join(&b' ')).unwrap()
        };
        assert_eq!(keys("mset a 1 b 2"), "a b");
        assert_eq!(keys("blpop a b 0"), "a b");
        assert_eq!(keys("zunionstore d 2 a b weights 1 2"), "d a b");
        assert_eq!(keys("blmpop 0 1 a left"), "a");
        assert_eq!(keys("sintercard 2 a b"), "a b");
        assert_eq!(keys("sort a by nosort store b"), "a b");
        assert_eq!(keys("ping"), "");
    }

    #[test]
    fn every_command_is_in_categories() {
        let of = |name: &str, sub| find(name.as_bytes()).unwrap().categories(sub);
        assert_eq!(of("get", None), ["string", "read", "fast"]);
        assert_eq!(of("flushall", None), ["write", "dangerous", "slow", "keyspace"]);
        assert_eq!(of("blpop", None), ["list", "write", "blocking", "slow"]);
        assert_eq!(of("config", Some("get")), ["admin", "dangerous", "slow"]);
        assert_eq!(of("client", Some("kill")), ["connection", "admin", "dangerous", "slow"]);
        assert_eq!(of("client", Some("setname")), ["connection", "slow"]);
        assert_eq!(of("watch", None), ["transaction", "fast"]);
        assert_eq!(of("zadd", None), ["sortedset", "write", "fast"]);
    }
}
