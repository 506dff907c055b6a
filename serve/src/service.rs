//! What a protocol is to the server.

use nearpm::direct::Tx;
use nearpm::prelude::*;

use crate::effects::{Effects, Mailbox};
use crate::store::Recency;
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

/// The circumstances of one run through requests. What it counts becomes known only if the run counts.
pub struct Turn<'a> {
    /// Milliseconds since 1970.
    pub now_ms: u64,
    /// What was used last.
    pub recency: &'a Recency,
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

/// A protocol with its data. Requests are taken from bytes once, and then may be run several times: a transaction that does not commit leaves
/// nothing behind, in the pool or elsewhere.
pub trait Service: Send + Sync + Sized + 'static {
    /// What is known of a client.
    type Session: Send;
    /// A request.
    type Request: Send;

    /// A client comes.
    fn session(&self, peer: Peer) -> Self::Session;

    /// Takes one request from the start of what a client has sent. Broken ones become requests whose reply says so.
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

    /// Evicts a key, if that is allowed; false if there was none.
    fn evict(&self, tx: &mut Tx<'_>, turn: &Turn<'_>) -> Result<bool, Error>;

    /// Behind each request that may have changed something: runs what waited for it.
    fn attend(&self, _: &mut Tx<'_>, _: &Turn<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// All requests of a transaction have run, and it is about to commit.
    fn settle(&self, _: &Turn<'_>) {}

    /// A transaction did commit, or not.
    fn ended(&self, _: &Turn<'_>, _committed: bool) {}

    /// Takes back that a request waits; false if it is being answered.
    fn give_up(&self, _ticket: u64) -> bool {
        true
    }

    /// Answers a request that has waited in vain.
    fn timed_out(&self, _: &Self::Request, _reply: &mut Vec<u8>) {}

    /// Removes some keys that have expired. True: there may be many more.
    fn sweep(&self, pool: &DirectPool, turn: &Turn<'_>) -> Result<bool, Error>;

    /// What a client is told that is one too many.
    const TOO_MANY: &'static [u8];
}
