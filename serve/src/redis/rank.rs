//! Members of a sorted set, in the order of their scores.

use std::cmp::Ordering;

use nearpm::collections::Key;
use nearpm::prelude::*;

use crate::store::Blob;

/// A score and a member, outside of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreKey {
    /// The score.
    pub score: f64,
    /// The member.
    pub member: Vec<u8>,
}

/// A score and a member in a pool.
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
pub struct Rank {
    /// Bits of the score.
    score: u64,
    member: Blob,
}

impl Key for Rank {
    type Query = ScoreKey;
    type Owned = ScoreKey;

    fn hash(_: &ScoreKey) -> u64 {
        unreachable!("a sorted set orders its members and hashes none")
    }

    fn compare(self, from: &impl Load, query: &ScoreKey) -> Result<Ordering, Error> {
        // 0 and -0 are one score, and none is no number.
        match f64::from_bits(self.score).partial_cmp(&query.score) {
            Some(Ordering::Equal) | None => Ok(self.member.read(from)?.cmp(&query.member)),
            Some(other) => Ok(other),
        }
    }

    fn make(tx: &mut impl Store, query: &ScoreKey) -> Result<Rank, Error> {
        Ok(Rank { score: query.score.to_bits(), member: Blob::make(tx, &query.member)? })
    }

    fn duplicate(self, tx: &mut impl Store) -> Result<Rank, Error> {
        let member = self.member.read(tx)?;
        Ok(Rank { score: self.score, member: Blob::make(tx, &member)? })
    }

    fn owned(self, from: &impl Load) -> Result<ScoreKey, Error> {
        Ok(ScoreKey { score: f64::from_bits(self.score), member: self.member.read(from)? })
    }
}
