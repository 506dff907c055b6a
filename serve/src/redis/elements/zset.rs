//! Members of sorted sets.

use nearpm::prelude::*;

use crate::redis::db::{ELEMENT, ZSet};
use crate::redis::rank::ScoreKey;
use crate::store::Name;

/// A member is kept twice.
pub fn weight(member: &[u8]) -> u64 {
    2 * (ELEMENT + member.len() as u64)
}

/// Gives a member a score; whether it is new.
pub fn put(tx: &mut impl Store, body: Ptr<ZSet>, member: &[u8], score: f64) -> Result<bool, Error> {
    let old = body.scores().insert(tx, &Name::of(member), score.to_bits())?;
    let place = |score| ScoreKey { score, member: member.to_vec() };
    if let Some(old) = old {
        body.order().remove(tx, &place(f64::from_bits(old)))?;
    }
    body.order().insert(tx, &place(score), 0)?;
    Ok(old.is_none())
}

/// Removes a member, whether it was there.
pub fn take(tx: &mut impl Store, body: Ptr<ZSet>, member: &[u8]) -> Result<bool, Error> {
    let Some(score) = body.scores().remove(tx, &Name::of(member))? else { return Ok(false) };
    body.order().remove(tx, &ScoreKey { score: f64::from_bits(score), member: member.to_vec() })?;
    Ok(true)
}
