//! What all threads of a server share.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use nearpm::prelude::*;
use rustls::ServerConfig;

use crate::access::Access;
use crate::options::Options;
use crate::service::{Service, Turn};
use crate::store::{Expiries, Recency};
use crate::tally::Totals;

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

/// What all threads of a server share.
pub struct Shared<S> {
    /// The protocol.
    pub service: S,
    /// The pool.
    pub pool: DirectPool,
    /// How it was started.
    pub options: Options,
    /// What was used last.
    pub recency: Recency,
    /// When keys expire.
    pub expiries: Expiries,
    /// A chunk of the pool's heap, in front of all others that hold something.
    pub chunk: Range<u64>,
    /// What happened.
    pub totals: Arc<Totals>,
    /// Who may do what.
    pub access: Arc<Access>,
    /// What clients speak TLS with, if they do.
    pub tls: Option<Arc<ServerConfig>>,
    /// It is to end.
    pub stopping: AtomicBool,
}

impl<S: Service> Shared<S> {
    /// The circumstances of a run through requests.
    pub fn turn(&self, now_ms: u64) -> Turn<'_> {
        let (recency, expiries) = (&self.recency, &self.expiries);
        let (notes, tally, effects) = Default::default();
        Turn { now_ms, recency, expiries, notes, tally, effects }
    }

    /// A run counts.
    pub fn count(&self, turn: &Turn<'_>) {
        self.totals.add(&turn.tally);
        self.expiries.apply(&turn.notes.changes);
    }

    /// Removes some keys that have expired, and says how many: none if there are none.
    ///
    /// # Errors
    /// Those of the pool.
    pub fn reclaim(&self, now_ms: u64) -> Result<u64, Error> {
        while self.expiries.is_due(now_ms) {
            let turn = self.turn(now_ms);
            let removed = self.pool.tx(|tx| self.service.reclaim(tx, &turn))?;
            turn.tally.expired.set(removed);
            self.count(&turn);
            if removed > 0 {
                return Ok(removed);
            }
        }
        Ok(0)
    }
}
