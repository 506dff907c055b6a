//! What CONFIG SET changes while the server runs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::limits::clients;
use crate::options::{Eviction, Options};

/// A number that is read without a lock.
#[derive(Debug)]
pub struct Number {
    /// As CONFIG names it.
    pub name: &'static str,
    value: AtomicI64,
    least: i64,
    most: i64,
}

impl Number {
    const fn new(name: &'static str, value: i64, least: i64, most: i64) -> Number {
        Number { name, value: AtomicI64::new(value), least, most }
    }

    /// Its value.
    pub fn get(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }
}

/// All that can be changed. The limits of encodings are what OBJECT ENCODING goes by: a pool has
/// one way to keep a value.
#[derive(Debug)]
pub struct Settings {
    /// Commands that take so many microseconds go to the slow log; below 0 none does.
    pub slower_than: Number,
    /// Entries of the slow log.
    pub slowlog_length: Number,
    /// Elements of a list whose encoding is `listpack`, or bytes by classes below 0.
    pub list_size: Number,
    /// Pieces of a list at its ends that are not compressed; here none is.
    pub list_depth: Number,
    /// Fields of a hash whose encoding is `listpack`.
    pub hash_entries: Number,
    /// Bytes of a field or value in one.
    pub hash_value: Number,
    /// Members of a set whose encoding is `intset`.
    pub set_entries: Number,
    /// Members of a sorted set whose encoding is `listpack`.
    pub zset_entries: Number,
    /// Bytes of a member in one.
    pub zset_value: Number,
    /// Clients at a time.
    pub max_clients: Number,
    /// Seconds after which a client that asks for nothing is turned away; 0 for never.
    pub timeout: Number,
    /// Seconds without a packet after which the system asks whether a client is still there; 0 for
    /// never.
    pub keepalive: Number,
    memory_limit: AtomicU64,
    eviction: Mutex<Eviction>,
}

impl Settings {
    /// As the server was started.
    pub fn new(options: &Options) -> Settings {
        const MANY: i64 = i64::MAX;
        let network = &options.network;
        Settings {
            slower_than: Number::new("slowlog-log-slower-than", 10_000, -1, MANY),
            slowlog_length: Number::new("slowlog-max-len", 128, 0, 1 << 20),
            list_size: Number::new("list-max-listpack-size", -2, -5, MANY),
            list_depth: Number::new("list-compress-depth", 0, 0, MANY),
            hash_entries: Number::new("hash-max-listpack-entries", 512, 0, MANY),
            hash_value: Number::new("hash-max-listpack-value", 64, 0, MANY),
            set_entries: Number::new("set-max-intset-entries", 512, 0, MANY),
            zset_entries: Number::new("zset-max-listpack-entries", 128, 0, MANY),
            zset_value: Number::new("zset-max-listpack-value", 64, 0, MANY),
            max_clients: Number::new("maxclients", network.max_clients as i64, 1, i64::from(u32::MAX)),
            timeout: Number::new("timeout", network.timeout as i64, 0, i64::from(i32::MAX)),
            keepalive: Number::new("tcp-keepalive", network.tcp_keepalive as i64, 0, i64::from(i32::MAX)),
            memory_limit: AtomicU64::new(options.memory_limit.unwrap_or(0)),
            eviction: Mutex::new(options.eviction.unwrap_or(Eviction::None)),
        }
    }

    /// All numbers.
    pub fn numbers(&self) -> [&Number; 12] {
        let [a, b, c, d] = [&self.slower_than, &self.slowlog_length, &self.list_size, &self.hash_entries];
        let [e, f, g] = [&self.hash_value, &self.set_entries, &self.list_depth];
        let [h, i] = [&self.zset_entries, &self.zset_value];
        [a, b, c, d, e, f, g, h, i, &self.max_clients, &self.timeout, &self.keepalive]
    }

    /// Bytes that keys and values may take, if that is bounded.
    pub fn memory_limit(&self) -> Option<u64> {
        Some(self.memory_limit.load(Ordering::Relaxed)).filter(|&limit| limit > 0)
    }

    /// What happens when memory is used up.
    pub fn eviction(&self) -> Eviction {
        *self.eviction.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Sets one of them. An error says why not.
    pub fn set(&self, name: &str, value: &str) -> Result<(), String> {
        // The names of Redis 6, which Redis takes too.
        let name = name.replace("ziplist", "listpack");
        if name == "maxmemory" {
            let bytes = memory(value).ok_or("argument must be a memory value")?;
            self.memory_limit.store(bytes, Ordering::Relaxed);
            return Ok(());
        }
        if name == "maxmemory-policy" {
            let chosen = match value {
                "noeviction" => Eviction::None,
                "allkeys-lru" => Eviction::Lru,
                _ => return Err("argument(s) must be one of the following: allkeys-lru, noeviction".to_owned()),
            };
            *self.eviction.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = chosen;
            return Ok(());
        }
        let number = self.numbers().into_iter().find(|number| number.name == name).ok_or("unknown")?;
        let parsed: i64 = value.parse().map_err(|_| "argument couldn't be parsed into an integer")?;
        if !(number.least..=number.most).contains(&parsed) {
            return Err(format!("argument must be between {} and {} inclusive", number.least, number.most));
        }
        if name == self.max_clients.name {
            let possible = clients(parsed as usize) as i64;
            if possible < parsed {
                return Err(format!("the process may open files for {possible} clients (ulimit -n)"));
            }
        }
        number.value.store(parsed, Ordering::Relaxed);
        Ok(())
    }
}

/// Bytes, as Redis writes them: `100mb` is of 1024, `100m` of 1000.
fn memory(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &lower[digits.len()..] {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::memory;

    #[test]
    fn bytes_as_redis_writes_them() {
        assert_eq!(["0", "100mb", "1k", "2gb"].map(memory), [Some(0), Some(100 << 20), Some(1000), Some(2 << 30)]);
        for bad in ["", "x", "-1", "1tb", "99999999999gb"] {
            assert_eq!(memory(bad), None, "{bad}");
        }
    }
}
