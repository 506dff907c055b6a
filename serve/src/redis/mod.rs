//! Redis's protocol and commands.
//!
//! | file | holds |
//! |---|---|
//! | `resp.rs`, `reply.rs` | the protocol, as it comes and as it goes |
//! | `request.rs`, `session.rs`, `greeting.rs`, `listening.rs` | what is asked for; what a connection knows: MULTI; HELLO, AUTH; SUBSCRIBE |
//! | `table.rs`, `spec.rs`, `subcommands.rs`, `dispatch.rs` | the commands, one row for each; what is said of one; how it is called |
//! | `guard.rs` | what a client may ask for |
//! | `db.rs`, `elements/`, `value.rs` | values of several kinds under keys, and their elements; a whole value outside of the pool |
//! | `words.rs` | what the words of commands say |
//! | `watch.rs`, `waiting.rs`, `channels.rs`, `clients.rs`, `slowlog.rs`, `settings.rs` | what clients share besides the pool |
//! | `run.rs`, `serve.rs` | how commands are run; the protocol as the server sees it |
//! | `strings.rs`, `ranges.rs`, `lcs.rs`, `numbers.rs`, `bits.rs`, `bitfield.rs` | commands of strings |
//! | `lists/`, `sets/`, `hashes/`, `zsets/` | commands of collections |
//! | `generic.rs`, `expiry.rs`, `scan.rs`, `rename.rs`, `sort.rs`, `object.rs`, `dump/` | commands of all keys |
//! | `about.rs`, `info.rs`, `commands.rs`, `config.rs`, `client.rs`, `acl.rs`, `monitors.rs` | the server, its clients and users |
//! | `rank.rs` | members of sorted sets in their order |

mod about;
mod acl;
mod bitfield;
mod bits;
mod channels;
mod client;
mod clients;
mod commands;
mod config;
mod db;
mod dispatch;
pub(crate) mod dump;
mod elements;
mod expiry;
mod generic;
mod greeting;
mod guard;
mod hashes;
mod info;
mod lcs;
mod listening;
mod lists;
mod monitors;
mod numbers;
mod object;
mod ranges;
mod rank;
mod rename;
mod reply;
mod request;
pub(crate) mod resp;
mod run;
mod scan;
mod serve;
mod session;
mod sets;
mod settings;
mod slowlog;
mod sort;
mod spec;
mod strings;
mod subcommands;
mod table;
mod value;
mod waiting;
mod watch;
mod words;
mod zsets;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use nearpm::prelude::*;

use crate::access::Access;
use crate::fault::system;
use crate::options::{Eviction, Options, Renamed};
use crate::service::Turn;
use crate::store::{Item, Keys, Keyspace, Name, expired};
use crate::tally::Totals;
use channels::Channels;
use clients::Clients;
use db::{Db, Owned};
use monitors::Monitors;
use request::Command;
use settings::Settings;
use slowlog::SlowLog;
use waiting::Waiting;
use watch::Watches;

/// The root of a pool that serves Redis's protocol.
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
struct RedisRoot {
    keys: Keyspace,
    /// How collections lie in the pool: [`FORMAT`].
    format: u64,
}

/// Collections know the places of their elements.
const FORMAT: u64 = 2;

const OUT_OF_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// What clients share besides the pool.
pub struct State {
    access: Arc<Access>,
    /// The names under which commands are known.
    names: Renamed,
    watches: Arc<Watches>,
    waiting: Waiting,
    channels: Channels,
    clients: Clients,
    monitors: Monitors,
    slowlog: SlowLog,
    settings: Settings,
    /// Changes of keys.
    changes: AtomicU64,
    /// Bytes that keys and values took, when it was last looked.
    used: AtomicU64,
    /// Forty digits that no other run of a server has.
    run_id: String,
}

/// Redis's protocol on a pool.
pub struct Redis {
    space: Ptr<Keyspace>,
    options: Options,
    totals: Arc<Totals>,
    started: Instant,
    state: Arc<State>,
}

impl State {
    /// Whether commands that need memory are refused, as far as is known.
    fn is_full(&self) -> bool {
        let limit = self.settings.memory_limit().filter(|_| self.settings.eviction() == Eviction::None);
        limit.is_some_and(|limit| self.used.load(Ordering::Relaxed) > limit)
    }
}

impl Redis {
    /// Finds what a pool holds, or makes the root of a new one.
    ///
    /// # Errors
    /// [`Error::RootType`] for a pool of another program.
    pub fn new(pool: &DirectPool, options: &Options, totals: Arc<Totals>, access: Arc<Access>) -> Result<Redis, Error> {
        let root = pool.tx(|tx| {
            let root = tx.root_or_zeroed::<RedisRoot>()?;
            // A restart writes nothing, so that it need not wait for the log.
            match tx.get(root.format())? {
                FORMAT => {}
                0 => tx.set(root.format(), FORMAT)?,
                _ => {
                    let why = "its collections are of another version of this server";
                    return Err(system("use the pool", io::Error::new(io::ErrorKind::Unsupported, why)));
                }
            }
            Ok(root)
        })?;
        let state = State {
            access,
            names: options.access.names(),
            watches: Arc::default(),
            waiting: Waiting::default(),
            channels: Channels::default(),
            clients: Clients::default(),
            monitors: Monitors::default(),
            slowlog: SlowLog::default(),
            settings: Settings::new(options),
            changes: AtomicU64::new(0),
            used: AtomicU64::new(0),
            run_id: format!(
                "{:016x}{:016x}{:08x}",
                rand::random::<u64>(),
                rand::random::<u64>(),
                rand::random::<u32>()
            ),
        };
        let (space, started) = (root.keys(), Instant::now());
        Ok(Redis { space, options: options.clone(), totals, started, state: Arc::new(state) })
    }

    fn eviction(&self) -> Eviction {
        self.state.settings.eviction()
    }

    fn keys<'t>(&self, turn: &'t Turn<'_>) -> Keys<'t> {
        let (recency, expiries, notes) = (turn.recency, turn.expiries, &turn.notes);
        Keys { space: self.space, now_ms: turn.now_ms, recency, expiries, notes }
    }

    fn db<'t>(&'t self, turn: &'t Turn<'_>) -> Db<'t> {
        Db {
            keys: self.keys(turn),
            tally: &turn.tally,
            max_value: self.options.max_value,
            reads: true,
            state: &self.state,
            effects: &turn.effects,
            client: None,
        }
    }

    /// Notes how much memory is used, for those who are to know without looking.
    fn note_used(&self, keys: &Keys<'_>, from: &impl Load) -> Result<(), Error> {
        if self.state.settings.memory_limit().is_some() {
            self.state.used.store(keys.bytes(from)?, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Makes room below the memory limit before a command that may need some.
    fn relieve(&self, db: &Db<'_>, tx: &mut impl Store, command: &Command) -> Result<(), Error> {
        let Some(limit) = self.state.settings.memory_limit().filter(|_| command.spec.has('m')) else { return Ok(()) };
        let evicts = self.eviction() == Eviction::Lru;
        let dead = |item: &Item| expired(item.expires, db.keys.now_ms);
        let relieved = db.keys.relieve::<Owned>(tx, (limit, evicts), (db.tally, near(command)), dead);
        self.forget_evicted(&db.keys);
        relieved
    }

    /// Keys that were evicted have changed for those who watch them.
    fn forget_evicted(&self, keys: &Keys<'_>) {
        keys.notes.evicted.take().iter().for_each(|name| self.state.watches.touch(&name.bytes));
    }
}

/// The hash of the first key of a command; 0 if it has none.
fn near(command: &Command) -> u64 {
    command.spec.keys_of(&command.words).first().map_or(0, |key| Name::of(key).hash)
}
