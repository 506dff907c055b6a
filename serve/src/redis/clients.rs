//! Clients that are connected, for those who ask about each other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::access::DEFAULT;
use crate::effects::Mailbox;
use crate::service::Peer;

/// What is known of a client by all.
#[derive(Debug)]
pub struct Client {
    /// Its number.
    pub number: u64,
    /// Where it is.
    pub address: String,
    /// Where it came in.
    pub local: String,
    /// Where what is sent to it arrives.
    pub mailbox: Mailbox,
    /// It speaks RESP3.
    pub resp3: AtomicBool,
    /// Channels that it listens to.
    pub channels: AtomicUsize,
    /// Patterns of channels.
    pub patterns: AtomicUsize,
    /// Commands behind a MULTI; -1 outside of one.
    pub queued: std::sync::atomic::AtomicI64,
    /// It is told what all others ask for.
    pub monitors: AtomicBool,
    /// Bytes of its last command.
    pub input: AtomicUsize,
    texts: Mutex<Texts>,
    came: Instant,
    /// Milliseconds after it came that it sent the last command.
    last_ms: AtomicU64,
}

/// What a client says of itself.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// Its name.
    pub name: Vec<u8>,
    /// Which user it is.
    pub user: Vec<u8>,
    /// Its library.
    pub library: Vec<u8>,
    /// Version of that.
    pub version: Vec<u8>,
    /// The last command.
    pub command: &'static str,
    /// Its subcommand.
    pub sub: Option<String>,
}

impl Client {
    /// One that has just come.
    pub fn new(peer: Peer) -> Client {
        Client {
            number: peer.number,
            address: peer.address,
            local: peer.local,
            mailbox: peer.mailbox,
            resp3: AtomicBool::new(false),
            channels: AtomicUsize::new(0),
            patterns: AtomicUsize::new(0),
            queued: (-1).into(),
            monitors: AtomicBool::new(false),
            input: AtomicUsize::new(0),
            texts: Mutex::new(Texts { user: DEFAULT.to_vec(), ..Texts::default() }),
            came: Instant::now(),
            last_ms: AtomicU64::new(0),
        }
    }

    /// What it says of itself.
    pub fn texts(&self) -> MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It sends a command, which may have a subcommand.
    pub fn sends(&self, command: &'static str, sub: Option<&Vec<u8>>) {
        self.last_ms.store(self.came.elapsed().as_millis() as u64, Ordering::Relaxed);
        let mut texts = self.texts();
        texts.command = command;
        texts.sub = sub.map(|sub| String::from_utf8_lossy(&sub[..sub.len().min(32)]).to_ascii_lowercase());
    }

    /// What kind of client it is, as a letter: O monitors, P listens, x is inside of a MULTI, N
    /// none of these.
    pub fn line_flag(&self) -> &'static str {
        if self.monitors.load(Ordering::Relaxed) {
            return "O";
        }
        let listens = self.channels.load(Ordering::Relaxed) + self.patterns.load(Ordering::Relaxed) > 0;
        match (listens, self.queued.load(Ordering::Relaxed) >= 0) {
            (true, _) => "P",
            (_, true) => "x",
            _ => "N",
        }
    }

    /// The line of CLIENT LIST.
    pub fn line(&self) -> Vec<u8> {
        let texts = self.texts().clone();
        let age = self.came.elapsed();
        let idle = (age.as_millis() as u64).saturating_sub(self.last_ms.load(Ordering::Relaxed)) / 1000;
        let (channels, patterns) = (self.channels.load(Ordering::Relaxed), self.patterns.load(Ordering::Relaxed));
        let queued = self.queued.load(Ordering::Relaxed);
        let flags = self.line_flag();
        let mut line = format!("id={} addr={} laddr={} fd=0 name=", self.number, self.address, self.local).into_bytes();
        line.extend_from_slice(&texts.name);
        let rest = format!(
            " age={} idle={idle} flags={flags} db=0 sub={channels} psub={patterns} ssub=0 multi={queued} qbuf={} qbuf-free=0 argv-mem=0 \
             multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd={} user={} redir=-1 resp={} lib-name=",
            age.as_secs(),
            self.input.load(Ordering::Relaxed),
            match &texts.sub {
                Some(sub) => format!("{}|{sub}", texts.command),
                None => texts.command.to_owned(),
            },
            String::from_utf8_lossy(&texts.user),
            if self.resp3.load(Ordering::Relaxed) { 3 } else { 2 },
        );
        line.extend_from_slice(rest.as_bytes());
        line.extend_from_slice(&texts.library);
        line.extend_from_slice(b" lib-ver=");
        line.extend_from_slice(&texts.version);
        line.push(b'\n');
        line
    }
}

/// All clients, by their numbers.
#[derive(Default)]
pub struct Clients(Mutex<BTreeMap<u64, Arc<Client>>>);

impl Clients {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One comes.
    pub fn add(&self, client: &Arc<Client>) {
        self.lock().insert(client.number, client.clone());
    }

    /// One goes.
    pub fn remove(&self, number: u64) {
        self.lock().remove(&number);
    }

    /// All that were not told to go, the oldest first.
    pub fn all(&self) -> Vec<Arc<Client>> {
        self.lock().values().filter(|client| !client.mailbox.is_closed()).cloned().collect()
    }
}
