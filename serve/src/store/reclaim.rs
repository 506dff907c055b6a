//! Removing what has expired.

use nearpm::prelude::*;

use super::{Content, Item, Keys, Name};

/// Keys that one step of the scan looks at.
const SCAN: usize = 256;

impl Keys<'_> {
    /// Removes some keys that are `dead`, `most` at most of those that are known to have expired,
    /// and says how many. There may be more as long as [`super::Expiries::is_due`].
    pub fn reclaim<C: Content>(
        &self,
        tx: &mut impl Store,
        most: usize,
        dead: impl Fn(&Item) -> bool,
    ) -> Result<u64, Error> {
        let mut removed = 0;
        for (moment, hash) in self.expiries.due(self.now_ms, most) {
            for name in self.dead_of_hash(tx, hash, &dead)? {
                removed += u64::from(self.remove::<C>(tx, &name)?);
            }
            // Also when the key expires at another moment by now, which is known by itself.
            self.notes.changes.moved(hash, moment, 0);
        }
        let Some(start) = self.expiries.scan() else { return Ok(removed) };
        let (next, found) = self.scan(tx, start, SCAN)?;
        for (name, item) in found {
            if dead(&item) {
                removed += u64::from(self.remove::<C>(tx, &name)?);
            } else {
                self.notes.changes.moved(name.hash, 0, item.expires);
            }
        }
        self.notes.changes.scanned((next != 0).then_some(next));
        Ok(removed)
    }

    fn dead_of_hash(&self, from: &impl Load, hash: u64, dead: impl Fn(&Item) -> bool) -> Result<Vec<Name>, Error> {
        let (_, found) = self.scan(from, hash, 1)?;
        let dead = found.into_iter().filter(|(name, item)| name.hash == hash && dead(item));
        Ok(dead.map(|(name, _)| name).collect())
    }
}
