//! Values of several kinds under keys, and what commands share.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use nearpm::collections::Ranked;
use nearpm::prelude::*;

use super::State;
use super::clients::Client;
use crate::effects::Effects;
use crate::store::{Blob, Content, Item, Keys, Label, Name, expired};
use crate::tally::{Tally, count};

/// Why a command does nothing.
#[derive(Debug)]
pub enum Refusal {
    /// The pool refuses.
    Pool(Error),
    /// The client is told this.
    Say(Cow<'static, str>),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Pool(error)
    }
}

/// A refusal with a fixed text.
pub fn refuse<T>(text: &'static str) -> Result<T, Refusal> {
    Err(Refusal::Say(Cow::Borrowed(text)))
}

/// A refusal with a text that was made.
pub fn refuse_with<T>(text: String) -> Outcome<T> {
    Err(Refusal::Say(Cow::Owned(text)))
}

/// Words of a command.
pub type Words<'w> = &'w [Vec<u8>];

/// What a command gives.
pub type Outcome<T = ()> = Result<T, Refusal>;

/// Some text of the protocol that several commands use.
pub const SYNTAX: &str = "ERR syntax error";
/// As above.
pub const OVERFLOW: &str = "ERR increment or decrement would overflow";
/// As above.
pub const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// What an item is: its `tag`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Bytes behind the item's head.
    String = 0,
    /// [`List`].
    List = 1,
    /// [`Set`].
    Set = 2,
    /// [`Hash`].
    Hash = 3,
    /// [`ZSet`].
    ZSet = 4,
}

impl Kind {
    /// Of an item.
    pub fn of(item: &Item) -> Result<Kind, Error> {
        [Kind::String, Kind::List, Kind::Set, Kind::Hash, Kind::ZSet]
            .into_iter()
            .find(|kind| *kind as u32 == item.tag)
            .ok_or(Error::Corrupt { what: "an item is of no kind", offset: item.extra })
    }

    /// As `TYPE` says it.
    pub fn name(self) -> &'static str {
        ["string", "list", "set", "hash", "zset"][self as usize]
    }
}

/// Elements by place; places fall at the front and rise at the end.
pub type List = PBTreeMap<Ranked<i64>, Blob>;
/// Members.
pub type Set = PBTreeMap<Ranked<Label>, u64>;
/// Values by field.
pub type Hash = PBTreeMap<Ranked<Label>, Blob>;

/// Members by score.
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
pub struct ZSet {
    /// Bits of the score of each member.
    pub scores: PBTreeMap<Ranked<Label>, u64>,
    /// Members in the order of their scores.
    pub order: PBTreeMap<Ranked<super::rank::Rank>, u64>,
}

/// Bytes that an element counts for, besides its own.
pub const ELEMENT: u64 = 48;

/// What items own: `extra` is the offset of a collection, and `stored` the number of its bytes.
pub struct Owned;

impl Content for Owned {
    fn release(tx: &mut impl Store, item: Item) -> Result<u64, Error> {
        fn destroy<T: Persistent>(tx: &mut impl Store, offset: u64) -> Result<(), Error> {
            tx.destroy(Ptr::<T>::from_offset(offset).ok_or(Error::NotAllocated { offset })?)
        }
        match Kind::of(&item)? {
            Kind::String => return Ok(0),
            Kind::List => destroy::<List>(tx, item.extra)?,
            Kind::Set => destroy::<Set>(tx, item.extra)?,
            Kind::Hash => destroy::<Hash>(tx, item.extra)?,
            Kind::ZSet => destroy::<ZSet>(tx, item.extra)?,
        }
        Ok(item.stored)
    }
}

/// The head of an item.
pub fn head(kind: Kind, expires: u64, collection: u64) -> Item {
    Item { expires, extra: collection, stored: 0, tag: kind as u32, marks: 0, length: 0, room: 0 }
}

/// A collection with the item that leads to it.
pub struct Found<T: Persistent> {
    /// The item.
    pub item: Ptr<Item>,
    /// The collection.
    pub body: Ptr<T>,
}

/// The data, for one command.
pub struct Db<'a> {
    /// Keys.
    pub keys: Keys<'a>,
    /// What is counted.
    pub tally: &'a Tally,
    /// Bytes of the largest value.
    pub max_value: u64,
    /// Whether keys that are looked for count as hits and misses.
    pub reads: bool,
    /// What the server knows besides.
    pub state: &'a State,
    /// What the command does besides.
    pub effects: &'a Effects,
    /// Who asks, if somebody does.
    pub client: Option<&'a Client>,
}

impl Db<'_> {
    /// The item of a key that has not expired.
    pub fn item(&self, from: &impl Load, name: &Name) -> Result<Option<(Ptr<Item>, Item)>, Error> {
        self.keys.live(from, name)
    }

    /// The item of a key, counted as a hit or a miss by a command that reads.
    pub fn asked(&self, from: &impl Load, name: &Name) -> Result<Option<(Ptr<Item>, Item)>, Error> {
        let found = self.item(from, name)?;
        if self.reads {
            count(&self.tally.gets);
            self.tally.hits.set(self.tally.hits.get() + u64::from(found.is_some()));
        }
        Ok(found)
    }

    /// As [`Db::item`], of a string.
    pub fn string(&self, from: &impl Load, name: &Name) -> Outcome<Option<(Ptr<Item>, Item)>> {
        match self.item(from, name)? {
            Some((_, item)) if item.tag != Kind::String as u32 => refuse(WRONG_TYPE),
            found => Ok(found),
        }
    }

    /// The collection of a key.
    pub fn collection<T: Persistent>(&self, from: &impl Load, name: &Name, kind: Kind) -> Outcome<Option<Found<T>>> {
        let Some((item, head)) = self.asked(from, name)? else { return Ok(None) };
        if head.tag != kind as u32 {
            return refuse(WRONG_TYPE);
        }
        let body = Ptr::from_offset(head.extra).ok_or(Error::NotAllocated { offset: head.extra })?;
        Ok(Some(Found { item, body }))
    }

    /// The collection of a key, made if there is none.
    pub fn collection_or_new<T: Persistent>(&self, tx: &mut impl Store, name: &Name, kind: Kind) -> Outcome<Found<T>> {
        if let Some(found) = self.collection(tx, name, kind)? {
            return Ok(found);
        }
        self.drop_expired(tx, name)?;
        self.new_collection(tx, name, kind, 0)
    }

    /// An empty collection in the place of what a key has. It must not stay empty.
    pub fn new_collection<T: Persistent>(
        &self,
        tx: &mut impl Store,
        name: &Name,
        kind: Kind,
        expires: u64,
    ) -> Outcome<Found<T>> {
        let body = tx.alloc_zeroed::<T>(1)?;
        let item = self.put(tx, name, head(kind, expires, Ptr::offset(body)), [b"", b""])?;
        self.grown(name);
        Ok(Found { item, body })
    }

    /// A key has something new, which others may wait for.
    pub fn grown(&self, name: &Name) {
        if self.state.waiting.is_wanted(&name.bytes) {
            self.effects.ready.borrow_mut().push(name.bytes.clone());
        }
    }

    /// A key changes.
    pub fn touched(&self, name: &Name) {
        self.state.changes.fetch_add(1, Ordering::Relaxed);
        self.state.watches.touch(&name.bytes);
    }

    /// Makes an item the one of a key: see [`Keys::put`].
    pub fn put(&self, tx: &mut impl Store, name: &Name, head: Item, parts: [&[u8]; 2]) -> Result<Ptr<Item>, Error> {
        self.touched(name);
        self.keys.put::<Owned>(tx, name, head, parts)
    }

    /// Removes a key and what it leads to; false if there was nothing, or nothing any more.
    pub fn remove(&self, tx: &mut impl Store, name: &Name) -> Result<bool, Error> {
        let Some((_, item)) = self.keys.find(tx, name)? else { return Ok(false) };
        self.keys.remove::<Owned>(tx, name)?;
        let lived = !expired(item.expires, self.keys.now_ms);
        if lived {
            self.touched(name);
        } else {
            count(&self.tally.expired);
        }
        Ok(lived)
    }

    /// A collection has other bytes now; it goes with its last element.
    pub fn resize(
        &self,
        tx: &mut impl Store,
        name: &Name,
        item: Ptr<Item>,
        bytes: (u64, u64),
        left: u64,
    ) -> Result<(), Error> {
        let (more, less) = bytes;
        self.touched(name);
        if more != less {
            tx.update(item.stored(), |stored| stored.saturating_add(more).saturating_sub(less))?;
            self.keys.count(tx, more, less)?;
        }
        if left == 0 {
            self.keys.remove::<Owned>(tx, name)?;
        }
        Ok(())
    }

    /// Removes a key if it has expired.
    pub fn drop_expired(&self, tx: &mut impl Store, name: &Name) -> Result<(), Error> {
        if self.keys.find(tx, name)?.is_some_and(|(_, item)| expired(item.expires, self.keys.now_ms)) {
            self.keys.remove::<Owned>(tx, name)?;
            count(&self.tally.expired);
        }
        Ok(())
    }

    /// Refuses a value that is too long.
    pub fn check_length(&self, bytes: u64) -> Outcome {
        if bytes <= self.max_value {
            return Ok(());
        }
        refuse("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
    }
}
