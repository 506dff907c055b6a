//! memcached's text and meta protocols. The binary protocol is refused.
//!
//! | file | holds |
//! |---|---|
//! | `command.rs` | what clients ask for |
//! | `line.rs`, `parse.rs`, `parse_put.rs`, `parse_meta.rs`, `multiget.rs` | the protocol, as it comes |
//! | `foreign.rs` | other protocols, which are hung up on |
//! | `session.rs`, `guard.rs` | who a client is, what it may do |
//! | `cache.rs` | which items live, and what is done to them |
//! | `classic.rs`, `meta.rs` | what commands do and answer |
//! | `stats.rs`, `detail.rs` | what the server tells about itself |

mod cache;
mod classic;
mod command;
mod detail;
mod foreign;
mod guard;
pub(crate) mod line;
mod meta;
pub(crate) mod multiget;
pub(crate) mod parse;
mod parse_meta;
mod parse_put;
mod session;
mod stats;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use nearpm::direct::Tx;
use nearpm::prelude::*;

use crate::access::{Access, User};
use crate::options::{Eviction, Options, Renamed};
use crate::service::{Admission, Clients, Peer, Service, Turn};
use crate::store::{Keys, Name, RECLAIMED, Search, size};
use crate::tally::Totals;
use cache::{Cache, MemcachedRoot, Plain};
use command::{Command, Request};
use detail::Detail;
use session::Session;

/// The version of memcached whose protocol this is.
const VERSION: &str = "1.6.18";

/// memcached's protocol on a pool.
pub struct Memcached {
    root: Ptr<MemcachedRoot>,
    options: Options,
    totals: Arc<Totals>,
    access: Arc<Access>,
    names: Renamed,
    /// The moment of the last flush whose items were looked for.
    flushed: AtomicU64,
    detail: Detail,
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
        Ok(Memcached {
            root,
            options: options.clone(),
            totals,
            access,
            names,
            flushed: AtomicU64::new(0),
            detail: Detail::default(),
            started: Instant::now(),
        })
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

    fn cache<'t>(&'t self, turn: &'t Turn<'_>) -> Cache<'t> {
        let (recency, expiries, notes) = (turn.recency, turn.expiries, &turn.notes);
        let keys = Keys { space: self.root.keys(), now_ms: turn.now_ms, recency, expiries, notes };
        Cache { root: self.root, keys, tally: &turn.tally, detail: &self.detail, max_value: self.options.max_value }
    }

    /// Makes room below the memory limit.
    fn relieve(&self, cache: &Cache<'_>, tx: &mut impl Store, request: &Request) -> Result<(), Error> {
        let Some(limit) = self.options.memory_limit else { return Ok(()) };
        let (root, near) = (tx.get(self.root)?, self.near(request).unwrap_or_default());
        cache.keys.relieve::<Plain>(tx, (limit, self.evicts()), (cache.tally, near), |head| cache.is_dead(&root, head))
    }
}

const OUT_OF_MEMORY: &str = "SERVER_ERROR out of memory storing object";

impl Service for Memcached {
    type Session = Session;
    type Request = Request;

    const TOO_MANY: &'static [u8] = b"ERROR Too many open connections\r\n";
    const PROTECTED: &'static [u8] =
        b"ERROR the server is in protected mode, because it has no users: it answers clients of its own machine\r\n";
    const PORT: u16 = 11211;

    fn has_command(name: &str) -> bool {
        parse::COMMANDS.contains(&name)
    }

    fn clients(&self) -> Clients {
        let network = &self.options.network;
        Clients::new(network.max_clients, network.timeout, network.tcp_keepalive)
    }

    fn session(&self, _: Peer) -> Session {
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
        if grows {
            self.relieve(&cache, tx, request)?;
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

    fn near(&self, request: &Request) -> Option<u64> {
        request.command.stores().map(|key| Name::of(key).hash)
    }

    fn evict(&self, tx: &mut Tx<'_>, turn: &Turn<'_>, search: &mut Search) -> Result<u32, Error> {
        if self.evicts() { self.cache(turn).keys.evict::<Plain>(tx, search) } else { Ok(0) }
    }

    fn size(&self, from: &impl Load) -> Result<(u64, u64), Error> {
        size(self.root.keys(), from)
    }

    fn reclaim(&self, tx: &mut Tx<'_>, turn: &Turn<'_>) -> Result<u64, Error> {
        let (cache, root) = (self.cache(turn), tx.get(self.root)?);
        cache.keys.reclaim::<Plain>(tx, RECLAIMED, |head| cache.is_dead(&root, head))
    }

    /// A flush that was to come has come.
    fn tick(&self, from: &impl Load, turn: &Turn<'_>) -> Result<(), Error> {
        let at = from.get(self.root.flush_at())?;
        if at != 0 && at <= turn.now_ms && self.flushed.swap(at, Ordering::Relaxed) != at {
            turn.notes.changes.look_again();
        }
        Ok(())
    }
}
