//! Pools that are open, and where: in files, or on the card that `NEARPM_CARD` names.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::Deref;

use super::error::{Failure, NearPM_code};
use nearpm::Error;
use nearpm_place::{Place, Refused, Session};

/// An open pool.
pub(super) struct Opened<P> {
    pool: P,
    /// The card that it lies on, which stays in until the pool is closed: fields are dropped in
    /// this order.
    card: Option<Session>,
}

impl<P> Deref for Opened<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.pool
    }
}

impl<P> From<P> for Opened<P> {
    /// A pool whose place is somebody else's concern.
    fn from(pool: P) -> Opened<P> {
        Opened { pool, card: None }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Failure {
        let code = match &refused {
            Refused::NoCard | Refused::Card(_) => NearPM_code::NEARPM_EDEVICE,
            Refused::Forked => NearPM_code::NEARPM_EBUSY,
            Refused::System(..) => NearPM_code::NEARPM_ESYSTEM,
            Refused::Pool(_) => NearPM_code::NEARPM_EINTERNAL,
        };
        match refused {
            Refused::Pool(error) => error.into(),
            refused => Failure { code, message: refused.to_string() },
        }
    }
}

impl<P> Opened<P> {
    /// Creates a pool at a path or a location, where `create` is told.
    pub fn create(
        path: &str,
        bytes: u64,
        create: impl FnOnce(&str, u64) -> Result<P, Error>,
    ) -> Result<Opened<P>, Failure> {
        let number = RandomState::new().hash_one(path);
        let (mut place, bytes) = Place::of_new(path, bytes, number)?;
        let pool = create(&place.location, bytes)?;
        if let Err(refused) = place.announce(None) {
            drop(pool);
            // The error that led here is the one to report.
            let _ = nearpm::remove(&place.location);
            return Err(refused.into());
        }
        Ok(Opened { pool, card: place.into_session() })
    }

    /// Opens the pool at a path or a location, where `open` is told.
    pub fn open(path: &str, open: impl FnOnce(&str) -> Result<P, Error>) -> Result<Opened<P>, Failure> {
        let place = Place::of(path)?;
        let pool = open(&place.location)?;
        Ok(Opened { pool, card: place.into_session() })
    }

    /// Closes the pool, and takes the card out if this was the last one on it.
    pub fn close(self, close: impl FnOnce(P) -> Result<(), Error>) -> Result<(), Failure> {
        let Opened { pool, card } = self;
        let closed = close(pool);
        drop(card);
        Ok(closed?)
    }
}
