//! memcached's text and meta protocols. The binary protocol is refused.
//!
//! | file | holds |
//! |---|---|
//! | `command.rs` | what clients ask for |
//! | `parse.rs`, `parse_put.rs`, `parse_meta.rs`, `multiget.rs` | the protocol, as it comes |
//! | `foreign.rs` | other protocols, which are hung up on |
//! | `session.rs`, `guard.rs` | who a client is, what it may do |
//! | `cache.rs` | which items live, and what is done to them |
//! | `classic.rs`, `meta.rs` | what commands do and answer |
//! | `stats.rs` | what the server tells about itself |

mod cache;
mod classic;
mod command;
mod foreign;
mod guard;
mod meta;
mod multiget;
mod parse;
mod parse_meta;
mod parse_put;
mod session;
mod stats;

use std::sync::Arc;
use std::time::Instant;

use nearpm::direct::Tx;
use nearpm::prelude::*;

use crate::access::{Access, User};
use crate::options::{Eviction, Options, Renamed};
use crate::service::{Admission, Service, Turn};
use crate::store::{Keys, Name};
use crate::tally::{Totals, count};
use cache::{Cache, MemcachedRoot, Plain};
use command::{Command, Request};
use session::Session;

/// The version of memcached whose protocol this is.
const VERSION: &str = "1.6.18";

/// Dead items that one transaction of the sweep removes at most.
const SWEEP: usize = 64;

/// memcached's protocol on a pool.
pub struct Memcached {
    root: Ptr<MemcachedRoot>,
    options: Options,
    totals: Arc<Totals>,
    access: Arc<Access>,
    names: Renamed,
    started: Instant,
}

impl Memcached {
    /// Finds what a pool holds, or makes the root of a new one.
    ///
    /// # Errors
    /// [`Error::RootType`] for a pool of another program.
    pub fn new(
        pool: &DirectPool,
        options: &Options,
        totals: Arc<Totals>,
        access: Arc<Access>,
    ) -> Result<Memcached, Error> {
        let root = pool.tx(|tx| tx.root_or_zeroed::<MemcachedRoot>())?;
        let names = options.access.names();
        Ok(Memcached { root, options: options.clone(), totals, access, names, started: Instant::now() })
    }

    /// What a user asks for, or that it may not.
    fn permit(&self, user: &User, request: Request) -> Request {
        match guard::refusal(user, &request) {
            Some(why) => Request::refused(why, request.quiet),
            None => request,
        }
    }

    fn evicts(&self) -> bool {
        self.options.eviction.unwrap_or(Eviction::Lru) == Eviction::Lru
    }

    fn cache<'t>(&self, turn: &'t Turn<'_>) -> Cache<'t> {
        let keys = Keys { space: self.root.keys(), now_ms: turn.now_ms, recency: turn.recency };
        Cache { root: self.root, keys, tally: &turn.tally, max_value: self.options.max_value }
    }

    /// Makes room below the memory limit; false if there is none.
    fn relieve(&self, cache: &Cache<'_>, tx: &mut impl Store) -> Result<bool, Error> {
        let Some(limit) = self.options.memory_limit else { return Ok(true) };
        while cache.keys.bytes(tx)? > limit {
            if !self.evicts() || cache.keys.evict::<Plain>(tx)?.is_none() {
                return Ok(false);
            }
            count(&cache.tally.evictions);
        }
        Ok(true)
    }
}

const OUT_OF_MEMORY: &str = "SERVER_ERROR out of memory storing object";

impl Service for Memcached {
    type Session = Session;
    type Request = Request;

    const TOO_MANY: &'static [u8] = b"ERROR Too many open connections\r\n";
    const PROTECTED: &'static [u8] = b"ERROR the server is in protected mode, because it has no users: it answers clients of its own machine\r\n";
    const PORT: u16 = 11211;

    fn session(&self, _: u64) -> Session {
        Session::new(&self.access)
    }

    fn admit(&self, session: &mut Session, input: &[u8]) -> Admission<Request> {
        session.admit(self, input)
    }

    fn changes(request: &Request) -> bool {
        request.command.changes()
    }

    fn weight(request: &Request) -> usize {
        request.command.weight()
    }

    fn look(&self, from: &impl Load, turn: &Turn<'_>, request: &Request, out: &mut Vec<u8>) -> Result<(), Error> {
        let cache = self.cache(turn);
        match &request.command {
            Command::Say(_) if request.quiet => {}
            Command::Say(text) => out.extend_from_slice(text),
            Command::Get(read, keys, last) => {
                classic::get(&cache, from, read, keys, out)?;
                if *last {
                    classic::line(out, "END");
                }
            }
            Command::Refuse(..) if request.quiet => {}
            Command::Refuse(why, _) => classic::line(out, why),
            Command::Stats(what) => stats::stats(self, &cache, from, what, out)?,
            Command::MetaDebug(meta) => meta::debug(&cache, from, meta, out)?,
            other => unreachable!("{other:?} changes something"),
        }
        Ok(())
    }

    fn change(&self, tx: &mut Tx<'_>, turn: &Turn<'_>, request: &Request, out: &mut Vec<u8>) -> Result<(), Error> {
        let (cache, start) = (self.cache(turn), out.len());
        let grows = matches!(request.command, Command::Put { .. } | Command::MetaSet(..) | Command::MetaArithmetic(_));
        if grows && !self.relieve(&cache, tx)? {
            self.abandon(tx, turn, request)?;
            self.refuse(request, &Error::Full { requested: 0, free: 0 }, out);
            return Ok(());
        }
        match &request.command {
            Command::MetaGet(meta) => meta::get(&cache, tx, meta, out)?,
            Command::MetaSet(meta, value) => meta::set(&cache, tx, meta, value, out)?,
            Command::MetaDelete(meta) => meta::delete(&cache, tx, meta, out)?,
            Command::MetaArithmetic(meta) => meta::arithmetic(&cache, tx, meta, out)?,
            command => classic::change(&cache, tx, command, out)?,
        }
        if request.quiet {
            out.truncate(start);
        }
        Ok(())
    }

    fn refuse(&self, request: &Request, error: &Error, out: &mut Vec<u8>) {
        match error {
            _ if request.quiet => {}
            Error::Full { .. } => classic::line(out, OUT_OF_MEMORY),
            error => classic::line(out, &format!("SERVER_ERROR {error}")),
        }
    }

    fn abandon(&self, tx: &mut Tx<'_>, turn: &Turn<'_>, request: &Request) -> Result<(), Error> {
        match request.overwrites() {
            Some(key) => self.cache(turn).keys.remove::<Plain>(tx, &Name::of(key)).map(drop),
            None => Ok(()),
        }
    }

    fn evict(&self, tx: &mut Tx<'_>, turn: &Turn<'_>) -> Result<bool, Error> {
        let evicted = self.evicts() && self.cache(turn).keys.evict::<Plain>(tx)?.is_some();
        turn.tally.evictions.set(turn.tally.evictions.get() + u64::from(evicted));
        Ok(evicted)
    }

    fn sweep(&self, pool: &DirectPool, turn: &Turn<'_>) -> Result<bool, Error> {
        let cache = self.cache(turn);
        let dead = pool.read(|from| {
            let root = from.get(self.root)?;
            cache.keys.find_expired(from, SWEEP, |head| cache.is_dead(&root, head))
        })?;
        if dead.is_empty() {
            return Ok(false);
        }
        let removed = pool.tx(|tx| {
            let mut removed = 0;
            for name in &dead {
                // What was stored under the same key meanwhile lives.
                if cache.find(tx, name)?.is_none() {
                    removed += u64::from(cache.keys.remove::<Plain>(tx, name)?);
                }
            }
            Ok(removed)
        })?;
        turn.tally.expired.set(removed);
        Ok(removed as usize > SWEEP / 4)
    }
}
