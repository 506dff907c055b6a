//! memcached's text and meta protocols. The binary protocol is refused.
//!
//! | file | holds |
//! |---|---|
//! | `command.rs` | what clients ask for |
//! | `parse.rs`, `parse_meta.rs` | the protocol, as it comes |
//! | `cache.rs` | which items live, and what is done to them |
//! | `classic.rs`, `meta.rs` | what commands do and answer |
//! | `stats.rs` | what the server tells about itself |

mod cache;
mod classic;
mod command;
mod meta;
mod parse;
mod parse_meta;
mod stats;

use std::sync::Arc;
use std::time::Instant;

use nearpm::direct::Tx;
use nearpm::prelude::*;

use crate::options::{Eviction, Options};
use crate::service::{Admission, Peer, Service, Turn};
use crate::store::Keys;
use crate::tally::{Totals, count};
use cache::{Cache, MemcachedRoot, Plain};
use command::{Command, Request};
use parse::Parsed;

/// The version of memcached whose protocol this is.
const VERSION: &str = "1.6.18";

/// Dead items that one transaction of the sweep removes at most.
const SWEEP: usize = 64;

/// memcached's protocol on a pool.
pub struct Memcached {
    root: Ptr<MemcachedRoot>,
    options: Options,
    totals: Arc<Totals>,
    started: Instant,
}

/// What is known of a client: how many bytes of a refused value are still to come.
#[derive(Debug, Default)]
pub struct Session {
    skip: usize,
}

impl Memcached {
    /// Finds what a pool holds, or makes the root of a new one.
    ///
    /// # Errors
    /// [`Error::RootType`] for a pool of another program.
    pub fn new(pool: &DirectPool, options: &Options, totals: Arc<Totals>) -> Result<Memcached, Error> {
        let root = pool.tx(|tx| tx.root_or_zeroed::<MemcachedRoot>())?;
        Ok(Memcached { root, options: options.clone(), totals, started: Instant::now() })
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

fn say(text: &str) -> Request {
    let mut out = Vec::new();
    classic::line(&mut out, text);
    Request { command: Command::Say(out), quiet: false }
}

impl Service for Memcached {
    type Session = Session;
    type Request = Request;

    const TOO_MANY: &'static [u8] = b"ERROR Too many open connections\r\n";

    fn session(&self, _: Peer) -> Session {
        Session::default()
    }

    fn admit(&self, session: &mut Session, input: &[u8]) -> Admission<Request> {
        if session.skip > 0 {
            let taken = session.skip.min(input.len());
            session.skip -= taken;
            return Admission::Request(Request { command: Command::Say(Vec::new()), quiet: true }, taken);
        }
        match parse::parse(input, self.options.max_value as usize) {
            Parsed::Incomplete => Admission::Incomplete,
            Parsed::Request(request, taken) => Admission::Request(request, taken),
            Parsed::Refused(why, taken) => {
                let here = taken.min(input.len());
                session.skip = taken - here;
                Admission::Request(say(why), here)
            }
            Parsed::Quit => Admission::Last(Request { command: Command::Say(Vec::new()), quiet: true }),
            Parsed::Broken(why) => Admission::Last(say(why)),
        }
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
            Command::Get(read, keys) => classic::get(&cache, from, read, keys, out)?,
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
            classic::line(out, OUT_OF_MEMORY);
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

    fn refuse(&self, _: &Request, error: &Error, out: &mut Vec<u8>) {
        match error {
            Error::Full { .. } => classic::line(out, OUT_OF_MEMORY),
            error => classic::line(out, &format!("SERVER_ERROR {error}")),
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
