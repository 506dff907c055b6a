//! What a protocol is to the server.

use std::time::Duration;

use nearpm::direct::Tx;
use nearpm::prelude::*;

use crate::effects::{Effects, Mailbox};
use crate::store::{Expiries, Notes, Recency, Search};
use crate::tally::Tally;

/// Requests taken from what a client sent.
pub enum Admission<R> {
    /// The bytes are not a whole request yet.
    Incomplete,
    /// A request, and how many bytes it had.
    Request(R, usize),
    /// The last request of this client: it is answered, and the connection closed.
    Last(R),
}

/// The circumstances of one run through requests. What it counts becomes known only if the run
/// counts.
pub struct Turn<'a> {
    /// Milliseconds since 1970.
    pub now_ms: u64,
    /// What was used last.
    pub recency: &'a Recency,
    /// When keys expire.
    pub expiries: &'a Expiries,
    /// What is noted about keys.
    pub notes: Notes,
    /// What happened in it.
    pub tally: Tally,
    /// What it does besides.
    pub effects: Effects,
}

/// Who a client is.
pub struct Peer {
    /// Its number, which no other client of this server has had.
    pub number: u64,
    /// Where it is, as `host:port`.
    pub address: String,
    /// Where it came in.
    pub local: String,
    /// Where what others send to it arrives.
    pub mailbox: Mailbox,
}

/// What holds for all clients. It may change while the server runs.
#[derive(Clone, Copy, Debug)]
pub struct Clients {
    /// How many may be connected.
    pub most: usize,
    /// How long one may ask for nothing.
    pub idle: Option<Duration>,
    /// Seconds without a packet after which the system asks whether one is still there; 0 for
    /// never.
    pub keepalive: u64,
}

impl Clients {
    /// With a time in seconds, 0 for no end.
    pub fn new(most: usize, idle: u64, keepalive: u64) -> Clients {
        Clients { most, idle: (idle > 0).then(|| Duration::from_secs(idle)), keepalive }
    }
}

/// A protocol with its data. Requests are taken from bytes once, and then may be run several times:
/// a transaction that does not commit leaves nothing behind, in the pool or elsewhere.
pub trait Service: Send + Sync + Sized + 'static {
    /// What is known of a client.
    type Session: Send;
    /// A request.
    type Request: Send;

    /// Whether there is a command of a name, in lower case.
    fn has_command(name: &str) -> bool;

    /// What holds for all clients from here on.
    fn clients(&self) -> Clients;

    /// A client comes.
    fn session(&self, peer: Peer) -> Self::Session;

    /// Takes one request from the start of what a client has sent. Broken ones become requests
    /// whose reply says so.
    fn admit(&self, session: &mut Self::Session, input: &[u8]) -> Admission<Self::Request>;

    /// Whether a request may change the pool.
    fn changes(request: &Self::Request) -> bool;

    /// Bytes of a request, about.
    fn weight(request: &Self::Request) -> usize;

    /// Runs a request that changes nothing.
    fn look(
        &self,
        from: &impl Load,
        turn: &Turn<'_>,
        request: &Self::Request,
        reply: &mut Vec<u8>,
    ) -> Result<(), Error>;

    /// Runs any request.
    fn change(
        &self,
        tx: &mut Tx<'_>,
        turn: &Turn<'_>,
        request: &Self::Request,
        reply: &mut Vec<u8>,
    ) -> Result<(), Error>;

    /// Answers a request that the pool refused.
    fn refuse(&self, request: &Self::Request, error: &Error, reply: &mut Vec<u8>);

    /// What is to be done when a request finds no room whatever goes.
    fn abandon(&self, tx: &mut Tx<'_>, turn: &Turn<'_>, request: &Self::Request) -> Result<(), Error>;

    /// Behind each request that may have changed something: runs what waited for it.
    fn attend(&self, _: &mut Tx<'_>, _: &Turn<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// A transaction did commit, or not.
    fn ended(&self, _: &Turn<'_>, _committed: bool) {}

    /// Takes back that a request waits; false if it is being answered.
    fn give_up(&self, _ticket: u64) -> bool {
        true
    }

    /// Answers a request that has waited in vain.
    fn timed_out(&self, _: &Self::Request, _reply: &mut Vec<u8>) {}

    /// Whether a client is told what others do without asking each time.
    fn listens(_: &Self::Session) -> bool {
        false
    }

    /// The hash of the key that a request stores, if it is one.
    fn near(&self, request: &Self::Request) -> Option<u64>;

    /// Whether a request does nothing but remove all keys.
    fn empties(_: &Self::Request) -> bool {
        false
    }

    /// Evicts keys, if that is allowed or all are to go, and says how many.
    fn evict(&self, tx: &mut Tx<'_>, turn: &Turn<'_>, search: &mut Search) -> Result<u32, Error>;

    /// Removes some keys that have expired, and says how many.
    fn reclaim(&self, tx: &mut Tx<'_>, turn: &Turn<'_>) -> Result<u64, Error>;

    /// It is a moment at which keys may have died that do not expire.
    fn tick(&self, from: &impl Load, turn: &Turn<'_>) -> Result<(), Error>;

    /// How many keys there are, and bytes that they take.
    fn size(&self, from: &impl Load) -> Result<(u64, u64), Error>;

    /// What a client is told that is one too many.
    const TOO_MANY: &'static [u8];

    /// What a client of another machine is told where nobody needs a password.
    const PROTECTED: &'static [u8];

    /// The port of the protocol.
    const PORT: u16;
}
