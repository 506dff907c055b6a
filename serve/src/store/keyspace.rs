//! Items by name.

use nearpm::prelude::*;

use super::item::{self, Item, OVERHEAD};
use super::{Label, Name, Recency};

/// Keys that are looked at to find one that was not used for long, as Redis does it.
const SAMPLES: usize = 5;

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

    /// Makes an item the one of a key that has a value of bytes, in place of what it had. The head's length and room are found
    /// here.
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
        let Some(slot) = slot else {
            let item = item::make(tx, head, parts)?;
            self.space.items().insert(tx, name, Some(item))?;
            let head = tx.get(item)?;
            self.count(tx, weight(name, &head), 0)?;
            return Ok(item);
        };
        let old = present(tx.get(slot)?, Ptr::offset(slot))?;
        let had = tx.get(old)?;
        let room = u64::from(had.room);
        if needed <= room && room <= 4 * needed + 64 {
            let owned = C::release(tx, had)?;
            item::overwrite(tx, old, head, parts)?;
            self.count(tx, 0, owned)?;
            return Ok(old);
        }
        let item = item::make(tx, head, parts)?;
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
        self.count(tx, 0, weight(name, &head) + owned)?;
        Ok(true)
    }

    /// Takes what a key leads to away from it, to be hung under another one.
    pub fn take(&self, tx: &mut impl Store, name: &Name, owned: u64) -> Result<Option<Ptr<Item>>, Error> {
        let Some(slot) = self.space.items().remove(tx, name)? else { return Ok(None) };
        let item = present(slot, Ptr::offset(self.space))?;
        let head = tx.get(item)?;
        self.count(tx, 0, weight(name, &head) + owned)?;
        Ok(Some(item))
    }

    /// Hangs an item, which owns so many bytes, under a key that is not there.
    pub fn hang(&self, tx: &mut impl Store, name: &Name, item: Ptr<Item>, owned: u64) -> Result<(), Error> {
        self.recency.touch(name.hash, self.now_ms);
        self.space.items().insert(tx, name, Some(item))?;
        let head = tx.get(item)?;
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
        self.space.items().clear(tx)?;
        tx.set(self.space.bytes(), 0)
    }

    /// Keys from a hash on, at most about `count`, and the hash to go on from, 0 at the end. Keys of one hash are given together.
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

    /// Some key with its item, drawn by a number.
    fn sample(&self, from: &impl Load, drawn: u64) -> Result<Option<(Name, Item)>, Error> {
        let (_, mut found) = self.scan(from, drawn, 1)?;
        if found.is_empty() {
            found = self.scan(from, 0, 1)?.1;
        }
        Ok(found.into_iter().next())
    }

    /// Removes the key of a few drawn ones that has expired or was not used for longest; `None` if there is no key.
    pub fn evict<C: Content>(&self, tx: &mut impl Store) -> Result<Option<Name>, Error> {
        let mut chosen: Option<(u64, Name)> = None;
        for _ in 0..SAMPLES {
            let Some((name, head)) = self.sample(tx, rand::random())? else { break };
            let idle = match expired(head.expires, self.now_ms) {
                true => u64::MAX,
                false => u64::from(self.recency.age_ms(name.hash, self.now_ms)),
            };
            if chosen.as_ref().is_none_or(|(most, _)| idle > *most) {
                chosen = Some((idle, name));
            }
        }
        let Some((_, name)) = chosen else { return Ok(None) };
        self.remove::<C>(tx, &name)?;
        Ok(Some(name))
    }

    /// Keys among some drawn ones that are `dead`.
    pub fn find_expired(
        &self,
        from: &impl Load,
        samples: usize,
        dead: impl Fn(&Item) -> bool,
    ) -> Result<Vec<Name>, Error> {
        let (next, mut found) = self.scan(from, rand::random(), samples)?;
        if next == 0 {
            // Behind the end comes the beginning, so that each key is as likely to be looked at.
            found.extend(self.scan(from, 0, samples)?.1);
        }
        Ok(found.into_iter().filter(|(_, head)| dead(head)).map(|(name, _)| name).collect())
    }
}
