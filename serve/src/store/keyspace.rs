//! Items by name.

use std::cell::{Cell, RefCell};

use nearpm::prelude::*;

use super::item::{self, Item, OVERHEAD};
use super::{Changes, Expiries, Label, Name, Recency, Search};
use crate::tally::Tally;

/// Keys that had expired that are removed in one go.
pub const RECLAIMED: usize = 256;

/// What a server keeps: part of its root.
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
pub struct Keyspace {
    items: PBTreeMap<Label, Option<Ptr<Item>>>,
    /// Bytes that items take, overhead included.
    bytes: u64,
}

/// What items of a server own besides their bytes.
pub trait Content {
    /// Frees what an item owns, and gives how many bytes that was.
    ///
    /// # Errors
    /// Those of the pool.
    fn release(tx: &mut impl Store, item: Item) -> Result<u64, Error>;
}

/// Whether a moment of expiry has passed.
pub fn expired(expires: u64, now_ms: u64) -> bool {
    expires != 0 && expires <= now_ms
}

/// The keys of a pool, at one moment.
#[derive(Clone, Copy)]
pub struct Keys<'a> {
    /// Where they are.
    pub space: Ptr<Keyspace>,
    /// Milliseconds since 1970.
    pub now_ms: u64,
    /// What was used last.
    pub recency: &'a Recency,
    /// When keys expire.
    pub expiries: &'a Expiries,
    /// What this turn adds to that, and where it finds places.
    pub notes: &'a Notes,
}

/// What a turn notes about keys.
#[derive(Debug, Default)]
pub struct Notes {
    /// When keys expire, once the turn counts.
    pub changes: Changes,
    /// Bytes of places that were made free, for an item and for a name: they are taken when there
    /// is none of the right size. 0 for none.
    pub places: Cell<[u64; 2]>,
    /// What had expired was removed.
    pub reclaimed: Cell<bool>,
    /// Keys that were evicted.
    pub evicted: RefCell<Vec<Name>>,
}

/// How many keys there are, and bytes that they take.
pub fn size(space: Ptr<Keyspace>, from: &impl Load) -> Result<(u64, u64), Error> {
    Ok((space.items().len(from)?, from.get(space.bytes())?))
}

fn present(slot: Option<Ptr<Item>>, place: u64) -> Result<Ptr<Item>, Error> {
    slot.ok_or(Error::Corrupt { what: "a key has no item", offset: place })
}

/// Bytes that an item counts for.
fn weight(name: &Name, head: &Item) -> u64 {
    OVERHEAD + name.bytes.len() as u64 + u64::from(head.room)
}

impl Keys<'_> {
    /// The item of a key, be it expired or not.
    pub fn find(&self, from: &impl Load, name: &Name) -> Result<Option<(Ptr<Item>, Item)>, Error> {
        let Some(slot) = self.space.items().slot(from, name)? else { return Ok(None) };
        let item = present(from.get(slot)?, Ptr::offset(slot))?;
        Ok(Some((item, from.get(item)?)))
    }

    /// The item of a key that has not expired. The key counts as used.
    pub fn live(&self, from: &impl Load, name: &Name) -> Result<Option<(Ptr<Item>, Item)>, Error> {
        let found = self.find(from, name)?.filter(|(_, head)| !expired(head.expires, self.now_ms));
        if found.is_some() {
            self.recency.touch(name.hash, self.now_ms);
        }
        Ok(found)
    }

    /// How many keys there are, the expired ones that nobody has removed yet included.
    pub fn len(&self, from: &impl Load) -> Result<u64, Error> {
        self.space.items().len(from)
    }

    /// Bytes that they take.
    pub fn bytes(&self, from: &impl Load) -> Result<u64, Error> {
        from.get(self.space.bytes())
    }

    /// The count of bytes changes by so many.
    pub fn count(&self, tx: &mut impl Store, more: u64, less: u64) -> Result<(), Error> {
        if more == less {
            return Ok(());
        }
        tx.update(self.space.bytes(), |bytes| bytes.saturating_add(more).saturating_sub(less)).map(drop)
    }

    /// Makes an item the one of a key that has a value of bytes, in place of what it had. The
    /// head's length and room are found here.
    pub fn put<C: Content>(
        &self,
        tx: &mut impl Store,
        name: &Name,
        head: Item,
        parts: [&[u8]; 2],
    ) -> Result<Ptr<Item>, Error> {
        self.recency.touch(name.hash, self.now_ms);
        let needed = parts.iter().map(|part| part.len()).sum::<usize>() as u64;
        let slot = self.space.items().slot(tx, name)?;
        let [place, name_place] = self.notes.places.get();
        let Some(slot) = slot else {
            let item = item::make(tx, head, parts, place)?;
            self.space.items().insert(tx, &name.placed(name_place), Some(item))?;
            self.notes.changes.moved(name.hash, 0, head.expires);
            let head = tx.get(item)?;
            self.count(tx, weight(name, &head), 0)?;
            return Ok(item);
        };
        let old = present(tx.get(slot)?, Ptr::offset(slot))?;
        let had = tx.get(old)?;
        self.notes.changes.moved(name.hash, had.expires, head.expires);
        let room = u64::from(had.room);
        let fits = needed <= room && room <= 4 * needed + 64;
        if fits && !tx.prefers_new(item::HEAD + needed) {
            let owned = C::release(tx, had)?;
            item::overwrite(tx, old, head, parts)?;
            self.count(tx, 0, owned)?;
            return Ok(old);
        }
        let item = item::make(tx, head, parts, place)?;
        tx.set(slot, Some(item))?;
        let owned = C::release(tx, had)?;
        tx.free(old)?;
        let room = tx.get(item.room())?;
        self.count(tx, u64::from(room), owned + u64::from(had.room))?;
        Ok(item)
    }

    /// Removes a key and what it leads to; false if it was not there.
    pub fn remove<C: Content>(&self, tx: &mut impl Store, name: &Name) -> Result<bool, Error> {
        let Some(slot) = self.space.items().remove(tx, name)? else { return Ok(false) };
        let item = present(slot, Ptr::offset(self.space))?;
        let head = tx.get(item)?;
        let owned = C::release(tx, head)?;
        tx.free(item)?;
        self.notes.changes.moved(name.hash, head.expires, 0);
        self.count(tx, 0, weight(name, &head) + owned)?;
        Ok(true)
    }

    /// Takes what a key leads to away from it, to be hung under another one.
    pub fn take(&self, tx: &mut impl Store, name: &Name, owned: u64) -> Result<Option<Ptr<Item>>, Error> {
        let Some(slot) = self.space.items().remove(tx, name)? else { return Ok(None) };
        let item = present(slot, Ptr::offset(self.space))?;
        let head = tx.get(item)?;
        self.notes.changes.moved(name.hash, head.expires, 0);
        self.count(tx, 0, weight(name, &head) + owned)?;
        Ok(Some(item))
    }

    /// Hangs an item, which owns so many bytes, under a key that is not there.
    pub fn hang(&self, tx: &mut impl Store, name: &Name, item: Ptr<Item>, owned: u64) -> Result<(), Error> {
        self.recency.touch(name.hash, self.now_ms);
        let [_, place] = self.notes.places.get();
        self.space.items().insert(tx, &name.placed(place), Some(item))?;
        let head = tx.get(item)?;
        self.notes.changes.moved(name.hash, 0, head.expires);
        self.count(tx, weight(name, &head) + owned, 0)
    }

    /// Bytes that a key and its item count for, besides what the item owns.
    pub fn bytes_of(&self, name: &Name, head: &Item) -> u64 {
        weight(name, head)
    }

    /// Removes all keys.
    pub fn clear<C: Content>(&self, tx: &mut impl Store) -> Result<(), Error> {
        let items = self.space.items().iter(tx)?.map(|entry| Ok(entry?.1)).collect::<Result<Vec<_>, Error>>()?;
        for item in items.into_iter().flatten() {
            let head = tx.get(item)?;
            C::release(tx, head)?;
            tx.free(item)?;
        }
        self.notes.changes.cleared();
        self.space.items().clear(tx)?;
        tx.set(self.space.bytes(), 0)
    }

    /// Keys from a hash on, at most about `count`, and the hash to go on from, 0 at the end. Keys
    /// of one hash are given together.
    pub fn scan(&self, from: &impl Load, hash: u64, count: usize) -> Result<(u64, Vec<(Name, Item)>), Error> {
        let mut found: Vec<(Name, Item)> = Vec::new();
        for entry in self.space.items().range(from, Name::from_hash(hash)..)? {
            let (name, item) = entry?;
            if found.len() >= count && found.last().is_some_and(|(last, _)| last.hash != name.hash) {
                return Ok((name.hash, found));
            }
            let item = present(item, Ptr::offset(self.space))?;
            found.push((name, from.get(item)?));
        }
        Ok((0, found))
    }

    /// Each key with the place of its item: offset and bytes.
    pub fn each_item(&self, from: &impl Load, mut look: impl FnMut(Name, u64, u64)) -> Result<(), Error> {
        for entry in self.space.items().iter(from)? {
            let (name, item) = entry?;
            let item = present(item, Ptr::offset(self.space))?;
            look(name, Ptr::offset(item), item::HEAD + u64::from(from.get(item.room())?));
        }
        Ok(())
    }

    /// Makes room below a limit of bytes for a key, by what is `dead` first, then by eviction.
    ///
    /// # Errors
    /// [`Error::Full`] for 0 bytes: there is no more to remove, or it may not be.
    pub fn relieve<C: Content>(
        &self,
        tx: &mut impl Store,
        (limit, evicts): (u64, bool),
        (tally, near): (&Tally, u64),
        dead: impl Fn(&Item) -> bool,
    ) -> Result<(), Error> {
        if self.bytes(tx)? <= limit {
            return Ok(());
        }
        if !self.notes.reclaimed.replace(true) {
            let removed = self.reclaim::<C>(tx, RECLAIMED, dead)?;
            tally.expired.set(tally.expired.get() + removed);
        }
        let mut search = Search::new(near, 0..0);
        while self.bytes(tx)? > limit {
            let evicted = if evicts { self.evict::<C>(tx, &mut search)? } else { 0 };
            if evicted == 0 {
                return Err(Error::Full { requested: 0, free: 0 });
            }
            tally.evictions.set(tally.evictions.get() + u64::from(evicted));
        }
        Ok(())
    }

    /// A key expires at another moment; 0 is never.
    pub fn expire(&self, tx: &mut impl Store, name: &Name, item: Ptr<Item>, at: u64) -> Result<(), Error> {
        self.notes.changes.moved(name.hash, tx.get(item.expires())?, at);
        tx.set(item.expires(), at)
    }
}
