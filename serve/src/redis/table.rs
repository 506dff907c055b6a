//! The commands: names, how many words they take, what they may do.

/// A command.
#[derive(Debug, PartialEq, Eq)]
pub struct Spec {
    /// In lower case.
    pub name: &'static str,
    /// Words, the name included; negative: at least so many.
    pub arity: i64,
    /// It may change something.
    pub changes: bool,
    /// It may take memory.
    pub grows: bool,
}

const fn read(name: &'static str, arity: i64) -> Spec {
    Spec { name, arity, changes: false, grows: false }
}

const fn change(name: &'static str, arity: i64) -> Spec {
    Spec { name, arity, changes: true, grows: false }
}

const fn grow(name: &'static str, arity: i64) -> Spec {
    Spec { name, arity, changes: true, grows: true }
}

/// All commands, by name.
pub const TABLE: &[Spec] = &[
    grow("append", 3),
    read("auth", -2),
    read("client", -2),
    read("command", -1),
    read("config", -2),
    read("dbsize", 1),
    grow("decr", 2),
    grow("decrby", 3),
    change("del", -2),
    read("discard", 1),
    read("echo", 2),
    read("exec", 1),
    read("exists", -2),
    change("expire", -3),
    change("expireat", -3),
    change("flushall", -1),
    change("flushdb", -1),
    read("get", 2),
    change("getdel", 2),
    grow("getset", 3),
    change("hdel", -3),
    read("hello", -1),
    read("hexists", 3),
    read("hget", 3),
    read("hgetall", 2),
    grow("hincrby", 4),
    read("hkeys", 2),
    read("hlen", 2),
    read("hmget", -3),
    grow("hmset", -4),
    grow("hset", -4),
    grow("hsetnx", 4),
    read("hvals", 2),
    grow("incr", 2),
    grow("incrby", 3),
    read("info", -1),
    read("keys", 2),
    read("lindex", 3),
    read("llen", 2),
    change("lpop", -2),
    grow("lpush", -3),
    read("lrange", 4),
    read("mget", -2),
    grow("mset", -3),
    read("multi", 1),
    change("persist", 2),
    change("pexpire", -3),
    change("pexpireat", -3),
    read("ping", -1),
    grow("psetex", 4),
    read("pttl", 2),
    read("quit", -1),
    read("reset", 1),
    change("rpop", -2),
    grow("rpush", -3),
    grow("sadd", -3),
    read("scan", -2),
    read("scard", 2),
    read("select", 2),
    grow("set", -3),
    grow("setex", 4),
    grow("setnx", 3),
    read("sismember", 3),
    read("smembers", 2),
    change("spop", -2),
    change("srem", -3),
    read("strlen", 2),
    read("touch", -2),
    read("ttl", 2),
    read("type", 2),
    change("unlink", -2),
    grow("zadd", -4),
    read("zcard", 2),
    grow("zincrby", 4),
    change("zpopmin", -2),
    read("zrange", -4),
    change("zrem", -3),
    read("zscore", 3),
];

/// The command of a name, in any case.
pub fn find(name: &[u8]) -> Option<&'static Spec> {
    let mut lower = [0; 16];
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found() {
        assert!(TABLE.is_sorted_by(|a, b| a.name < b.name));
        for spec in TABLE {
            assert_eq!(find(spec.name.to_ascii_uppercase().as_bytes()), Some(spec));
        }
        assert_eq!(find(b"nothing"), None);
        assert_eq!(find(&[b'x'; 99]), None);
    }
}
