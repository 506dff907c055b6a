//! Redis's protocol and commands.
//!
//! | file | holds |
//! |---|---|
//! | `resp.rs`, `reply.rs` | the protocol, as it comes and as it goes |
//! | `session.rs`, `guard.rs` | what a connection knows, and may do; MULTI |
//! | `table.rs` | the commands |
//! | `db.rs` | values of several kinds under keys |
//! | `generic.rs`, `expiry.rs`, `strings.rs`, `lists.rs`, `sets.rs`, `hashes.rs`, `zsets.rs`, `about.rs` | what commands do |
//! | `rank.rs` | members of sorted sets in their order |

mod about;
mod db;
mod expiry;
mod generic;
mod guard;
mod hashes;
mod lists;
mod rank;
mod reply;
mod resp;
mod session;
mod sets;
mod strings;
mod table;
mod zsets;

use std::sync::Arc;
use std::time::Instant;

use nearpm::direct::Tx;
use nearpm::prelude::*;

use crate::access::Access;
use crate::options::{Eviction, Options, Renamed};
use crate::service::{Admission, Service, Turn};
use crate::store::{Item, Keys, Keyspace, Name, RECLAIMED, Search, expired, size};
use crate::tally::Totals;
use db::{Db, Outcome, Owned, Refusal};
use reply::Reply;
use session::{Command, Request, Session};

/// The root of a pool that serves Redis's protocol.
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
struct RedisRoot {
    keys: Keyspace,
}

/// Redis's protocol on a pool.
pub struct Redis {
    space: Ptr<Keyspace>,
    options: Options,
    totals: Arc<Totals>,
    access: Arc<Access>,
    names: Renamed,
    started: Instant,
}

impl Redis {
    /// Finds what a pool holds, or makes the root of a new one.
    ///
    /// # Errors
    /// [`Error::RootType`] for a pool of another program.
    pub fn new(pool: &DirectPool, options: &Options, totals: Arc<Totals>, access: Arc<Access>) -> Result<Redis, Error> {
        let root = pool.tx(|tx| tx.root_or_zeroed::<RedisRoot>())?;
        Ok(Redis {
            space: root.keys(),
            options: options.clone(),
            totals,
            access,
            names: options.access.names(),
            started: Instant::now(),
        })
    }

    fn eviction(&self) -> Eviction {
        self.options.eviction.unwrap_or(Eviction::None)
    }

    fn keys<'t>(&self, turn: &'t Turn<'_>) -> Keys<'t> {
        let (recency, expiries, notes) = (turn.recency, turn.expiries, &turn.notes);
        Keys { space: self.space, now_ms: turn.now_ms, recency, expiries, notes }
    }

    fn db<'t>(&self, turn: &'t Turn<'_>) -> Db<'t> {
        Db { keys: self.keys(turn), tally: &turn.tally, max_value: self.options.max_value, reads: true }
    }

    /// Runs a command that changes nothing.
    fn ask(&self, db: &Db<'_>, from: &impl Load, command: &Command, reply: &mut Reply<'_>) -> Outcome {
        let words = &command.words;
        match command.spec.name {
            "command" => about::command(words, reply),
            "config" => about::config(self, words, reply),
            "dbsize" => generic::dbsize(db, from, reply),
            "echo" => {
                reply.bulk(&words[1]);
                Ok(())
            }
            "exists" | "touch" => generic::exists(db, from, words, reply),
            "get" => strings::get(db, from, words, reply),
            "hexists" => hashes::hexists(db, from, words, reply),
            "hget" => hashes::hget(db, from, words, reply),
            "hgetall" | "hkeys" | "hvals" => hashes::hgetall(db, from, words, reply),
            "hlen" => hashes::hlen(db, from, words, reply),
            "hmget" => hashes::hmget(db, from, words, reply),
            "info" => about::info(self, db, from, words, reply),
            "keys" => generic::keys(db, from, words, reply),
            "lindex" => lists::lindex(db, from, words, reply),
            "llen" => lists::llen(db, from, words, reply),
            "lrange" => lists::lrange(db, from, words, reply),
            "mget" => strings::mget(db, from, words, reply),
            "ping" => about::ping(words, reply),
            "pttl" | "ttl" => expiry::ttl(db, from, words, reply),
            "scan" => generic::scan(db, from, words, reply),
            "scard" => sets::scard(db, from, words, reply),
            "select" => generic::select(words, reply),
            "sismember" => sets::sismember(db, from, words, reply),
            "smembers" => sets::smembers(db, from, words, reply),
            "strlen" => strings::strlen(db, from, words, reply),
            "type" => generic::kind(db, from, words, reply),
            "zcard" => zsets::zcard(db, from, words, reply),
            "zrange" => zsets::zrange(db, from, words, reply),
            "zscore" => zsets::zscore(db, from, words, reply),
            other => unreachable!("{other} is answered by the session, or changes something"),
        }
    }

    /// Runs a command that may change something.
    fn act(&self, db: &Db<'_>, tx: &mut impl Store, command: &Command, reply: &mut Reply<'_>) -> Outcome {
        if command.spec.grows {
            self.relieve(db, tx, command)?;
        }
        // As Redis counts: a key that is looked for to be written is no hit and no miss.
        let (words, reading, db) = (&command.words, db, &Db { reads: false, ..*db });
        match command.spec.name {
            "append" => strings::append(db, tx, words, reply),
            "decr" | "decrby" | "incr" | "incrby" => strings::increment(db, tx, words, reply),
            "del" | "unlink" => generic::del(db, tx, words, reply),
            "expire" | "expireat" | "pexpire" | "pexpireat" => expiry::expire(db, tx, words, reply),
            "flushall" | "flushdb" => generic::flush(db, tx, words, reply),
            "getdel" => strings::getdel(db, tx, words, reply),
            "getset" => strings::getset(db, tx, words, reply),
            "hdel" => hashes::hdel(db, tx, words, reply),
            "hincrby" => hashes::hincrby(db, tx, words, reply),
            "hmset" | "hset" => hashes::hset(db, tx, words, reply),
            "hsetnx" => hashes::hsetnx(db, tx, words, reply),
            "lpop" | "rpop" => lists::pop(db, tx, words, reply),
            "lpush" | "rpush" => lists::push(db, tx, words, reply),
            "mset" => strings::mset(db, tx, words, reply),
            "persist" => expiry::persist(db, tx, words, reply),
            "psetex" | "setex" => strings::setex(db, tx, words, reply),
            "sadd" => sets::sadd(db, tx, words, reply),
            "set" => strings::set(db, tx, words, reply),
            "setnx" => strings::setnx(db, tx, words, reply),
            "spop" => sets::spop(db, tx, words, reply),
            "srem" => sets::srem(db, tx, words, reply),
            "zadd" => zsets::zadd(db, tx, words, reply),
            "zincrby" => zsets::zincrby(db, tx, words, reply),
            "zpopmin" => zsets::zpopmin(db, tx, words, reply),
            "zrem" => zsets::zrem(db, tx, words, reply),
            _ => self.ask(reading, tx, command, reply),
        }
    }

    /// Makes room below the memory limit before a command that may need some.
    fn relieve(&self, db: &Db<'_>, tx: &mut impl Store, command: &Command) -> Outcome {
        let Some(limit) = self.options.memory_limit else { return Ok(()) };
        let evicts = self.eviction() == Eviction::Lru;
        let near = command.words.get(1).map_or(0, |key| Name::of(key).hash);
        let dead = |item: &Item| expired(item.expires, db.keys.now_ms);
        Ok(db.keys.relieve::<Owned>(tx, (limit, evicts), (db.tally, near), dead)?)
    }
}

/// Turns what a command says into its reply; nothing of a refused one remains in the reply.
fn settle(done: Outcome, start: usize, resp3: bool, out: &mut Vec<u8>) -> Result<(), Error> {
    match done {
        Ok(()) => Ok(()),
        Err(Refusal::Pool(error)) => Err(error),
        Err(refusal) => {
            out.truncate(start);
            Reply::new(out, resp3).error(&session::answer(&refusal));
            Ok(())
        }
    }
}

impl Service for Redis {
    type Session = Session;
    type Request = Request;

    const TOO_MANY: &'static [u8] = b"-ERR max number of clients reached\r\n";
    const PROTECTED: &'static [u8] = b"-DENIED the server is in protected mode, because it has no password: it answers clients of its own machine. Give it a password (--requirepass-file), users (--acl-file), or --protected-mode no\r\n";
    const PORT: u16 = 6379;

    fn session(&self, number: u64) -> Session {
        Session::new(number, &self.access)
    }

    fn admit(&self, session: &mut Session, input: &[u8]) -> Admission<Request> {
        session.admit(input, self.options.max_value as usize, (&self.access, &self.names))
    }

    fn changes(request: &Request) -> bool {
        match request {
            Request::Say(_) => false,
            Request::Run { command, .. } => command.spec.changes,
            Request::Exec { commands, .. } => commands.iter().any(|command| command.spec.changes),
        }
    }

    fn weight(request: &Request) -> usize {
        request.weight()
    }

    fn look(&self, from: &impl Load, turn: &Turn<'_>, request: &Request, out: &mut Vec<u8>) -> Result<(), Error> {
        let db = self.db(turn);
        match request {
            Request::Say(text) => out.extend_from_slice(text),
            Request::Run { resp3, command } => {
                let start = out.len();
                let done = self.ask(&db, from, command, &mut Reply::new(out, *resp3));
                settle(done, start, *resp3, out)?;
            }
            Request::Exec { resp3, commands } => {
                Reply::new(out, *resp3).array(commands.len());
                for command in commands {
                    let start = out.len();
                    let done = self.ask(&db, from, command, &mut Reply::new(out, *resp3));
                    settle(done, start, *resp3, out)?;
                }
            }
        }
        Ok(())
    }

    fn change(&self, tx: &mut Tx<'_>, turn: &Turn<'_>, request: &Request, out: &mut Vec<u8>) -> Result<(), Error> {
        let db = self.db(turn);
        let (resp3, commands) = match request {
            Request::Say(_) => return self.look(tx, turn, request, out),
            Request::Run { resp3, command } => (*resp3, std::slice::from_ref(command)),
            Request::Exec { resp3, commands } => {
                Reply::new(out, *resp3).array(commands.len());
                (*resp3, commands.as_slice())
            }
        };
        for command in commands {
            let start = out.len();
            let done = self.act(&db, tx, command, &mut Reply::new(out, resp3));
            settle(done, start, resp3, out)?;
        }
        Ok(())
    }

    fn refuse(&self, request: &Request, error: &Error, out: &mut Vec<u8>) {
        let resp3 = match request {
            Request::Say(_) => false,
            Request::Run { resp3, .. } | Request::Exec { resp3, .. } => *resp3,
        };
        let text = match error {
            Error::Full { requested: 0, .. } => "OOM command not allowed when used memory > 'maxmemory'.".to_owned(),
            Error::Full { .. } => format!("OOM command not allowed: {error}"),
            error => format!("ERR {error}"),
        };
        Reply::new(out, resp3).error(&text);
    }

    fn abandon(&self, _: &mut Tx<'_>, _: &Turn<'_>, _: &Request) -> Result<(), Error> {
        Ok(())
    }

    fn near(&self, request: &Request) -> Option<u64> {
        match request {
            Request::Run { command, .. } => command.words.get(1).map(|key| Name::of(key).hash),
            _ => None,
        }
    }

    fn empties(request: &Request) -> bool {
        matches!(request, Request::Run { command, .. } if matches!(command.spec.name, "flushall" | "flushdb"))
    }

    fn evict(&self, tx: &mut Tx<'_>, turn: &Turn<'_>, search: &mut Search) -> Result<u32, Error> {
        if self.eviction() == Eviction::None && !search.empties {
            return Ok(0);
        }
        self.keys(turn).evict::<Owned>(tx, search)
    }

    fn size(&self, from: &impl Load) -> Result<(u64, u64), Error> {
        size(self.space, from)
    }

    fn reclaim(&self, tx: &mut Tx<'_>, turn: &Turn<'_>) -> Result<u64, Error> {
        self.keys(turn).reclaim::<Owned>(tx, RECLAIMED, |item| expired(item.expires, turn.now_ms))
    }

    fn tick(&self, _: &impl Load, _: &Turn<'_>) -> Result<(), Error> {
        Ok(())
    }
}
