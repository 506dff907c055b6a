//! Items as memcached knows them: which of them live, and what is done to them.

use nearpm::prelude::*;

use super::command::Store as How;
use super::detail::Detail;
use crate::store::{Content, Item, Keys, Keyspace, Name, expired, item};
use crate::tally::{Tally, count};

/// The root of a pool that serves memcached's protocol.
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
pub struct MemcachedRoot {
    /// Items.
    pub keys: Keyspace,
    /// The number of the last change, for `cas`.
    pub serial: u64,
    /// Items with a number up to this one were flushed.
    pub flushed: u64,
    /// Items that were stored before this moment are flushed then, in milliseconds since 1970; 0
    /// for none.
    pub flush_at: u64,
}

/// The value was invalidated (`md` with the flag I), and is given with a mark.
pub const STALE: u32 = 1;
/// Some client was told to make the value anew.
pub const WON: u32 = 2;

/// Items own nothing beside their bytes.
pub struct Plain;

impl Content for Plain {
    fn release(_: &mut impl Store, _: Item) -> Result<u64, Error> {
        Ok(0)
    }
}

/// Bytes of a value that are looked at for a number: all digits of one, and a space.
const NUMBER_BYTES: u32 = 32;

/// Times in seconds up to this many are from now on, others since 1970.
const RELATIVE_MAX: i64 = 60 * 60 * 24 * 30;

/// The moment that a time of a command names, in milliseconds since 1970; 0 for never.
pub fn moment(now_ms: u64, time: i64) -> u64 {
    match time {
        0 => 0,
        // Past at once.
        ..0 => 1,
        1..=RELATIVE_MAX => now_ms + time as u64 * 1000,
        _ => (time as u64).saturating_mul(1000),
    }
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// It was made; this is the item's number.
    Stored(u64),
    /// A condition did not hold.
    NotStored,
    /// The item has another number.
    Changed,
    /// There is no item.
    NotFound,
}

/// What a value is stored with.
#[derive(Clone, Copy, Debug)]
pub struct New<'v> {
    /// The client's flags.
    pub flags: u32,
    /// When it expires, in milliseconds since 1970.
    pub expires: u64,
    /// Bytes.
    pub value: &'v [u8],
    /// [`STALE`] and [`WON`].
    pub marks: u32,
}

/// Why a value is not stored, where conditions do not hold. As in memcached, `add` has no use for a
/// number, and the others that join take 0 for none.
fn refusal(how: How, cas: Option<u64>, found: Option<Found>) -> Option<Done> {
    let number = found.map(|(_, head)| head.extra);
    match (how, cas, number) {
        (How::Add, _, Some(_)) => Some(Done::NotStored),
        (How::Add, _, None) => None,
        (How::Set | How::Replace, Some(_), None) => Some(Done::NotFound),
        (How::Set | How::Replace, Some(cas), Some(number)) => (cas != number).then_some(Done::Changed),
        (How::Set, None, _) => None,
        (How::Replace | How::Append | How::Prepend, _, None) => Some(Done::NotStored),
        (How::Append | How::Prepend, Some(cas), Some(number)) => (cas != 0 && cas != number).then_some(Done::Changed),
        (How::Replace | How::Append | How::Prepend, None, Some(_)) => None,
    }
}

/// Where an item is, and its head.
pub type Found = (Ptr<Item>, Item);

/// The items of a pool, at one moment.
pub struct Cache<'a> {
    /// The root.
    pub root: Ptr<MemcachedRoot>,
    /// Items by key.
    pub keys: Keys<'a>,
    /// What is counted.
    pub tally: &'a Tally,
    /// What is counted by parts of keys.
    pub detail: &'a Detail,
    /// Bytes of the largest value.
    pub max_value: u64,
}

impl Cache<'_> {
    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.keys.now_ms
    }

    /// Whether an item has expired or was flushed.
    pub fn is_dead(&self, root: &MemcachedRoot, head: &Item) -> bool {
        let flushing = root.flush_at != 0 && root.flush_at <= self.now_ms() && head.stored < root.flush_at;
        expired(head.expires, self.now_ms()) || head.extra <= root.flushed || flushing
    }

    /// The item of a key that lives.
    pub fn find(&self, from: &impl Load, name: &Name) -> Result<Option<Found>, Error> {
        let root = from.get(self.root)?;
        let found = self.keys.find(from, name)?;
        Ok(found.filter(|(_, head)| !self.is_dead(&root, head)))
    }

    /// As [`Cache::find`], as a client's request: it counts, and the key counts as used.
    pub fn asked(&self, from: &impl Load, name: &Name) -> Result<Option<Found>, Error> {
        let found = self.find(from, name)?;
        count(&self.tally.gets);
        self.detail.get(&name.bytes, found.is_some());
        if found.is_some() {
            count(&self.tally.hits);
            self.keys.recency.touch(name.hash, self.now_ms());
        }
        Ok(found)
    }

    /// The number of the change that is made now.
    fn next_serial(&self, tx: &mut impl Store) -> Result<u64, Error> {
        tx.update(self.root.serial(), |serial| serial + 1)
    }

    /// Stores a value, if the conditions hold.
    pub fn put(
        &self,
        tx: &mut impl Store,
        name: &Name,
        how: How,
        cas: Option<u64>,
        new: New<'_>,
    ) -> Result<Done, Error> {
        count(&self.tally.sets);
        self.detail.set(&name.bytes);
        let found = self.find(tx, name)?;
        let joins = matches!(how, How::Append | How::Prepend);
        if let Some(refused) = refusal(how, cas, found) {
            return Ok(refused);
        }
        let extra = self.next_serial(tx)?;
        let head = |flags, expires, marks| Item {
            expires,
            extra,
            stored: self.now_ms(),
            tag: flags,
            marks,
            length: 0,
            room: 0,
        };
        let Some(old) = found.filter(|_| joins) else {
            self.keys.put::<Plain>(tx, name, head(new.flags, new.expires, new.marks), [new.value, b""])?;
            return Ok(Done::Stored(extra));
        };
        if u64::from(old.1.length) + new.value.len() as u64 > self.max_value {
            return Ok(Done::NotStored);
        }
        let mut had = Vec::new();
        item::append_value(tx, old.0, old.1.length, &mut had)?;
        let parts = if how == How::Append { [&had, new.value] } else { [new.value, &had] };
        self.keys.put::<Plain>(tx, name, head(old.1.tag, old.1.expires, 0), parts)?;
        Ok(Done::Stored(extra))
    }

    /// Removes an item, and says whether there was a living one.
    pub fn remove(&self, tx: &mut impl Store, name: &Name) -> Result<bool, Error> {
        let lived = self.find(tx, name)?.is_some();
        self.detail.delete(&name.bytes);
        self.keys.remove::<Plain>(tx, name)?;
        Ok(lived)
    }

    /// Adds to a decimal number, or takes away from it, and gives the new one; `None` if the value
    /// is none. As memcached does it, a sum that is too large begins again at 0, a difference stays
    /// at 0, and a shorter value is filled up with spaces.
    pub fn add(
        &self,
        tx: &mut impl Store,
        name: &Name,
        found: Found,
        up: bool,
        delta: u64,
    ) -> Result<Option<(u64, u64)>, Error> {
        let (place, head) = found;
        let mut value = Vec::new();
        item::append_value(tx, place, head.length.min(NUMBER_BYTES), &mut value)?;
        // What follows a space does not count.
        let digits = value.trim_ascii_start().split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
        let number = std::str::from_utf8(digits).ok().and_then(|text| text.parse::<u64>().ok());
        let Some(number) = number.filter(|_| !digits.starts_with(b"+")) else { return Ok(None) };
        let sum = if up { number.wrapping_add(delta) } else { number.saturating_sub(delta) };
        let text = format!("{sum:<width$}", width = head.length as usize);
        let extra = self.next_serial(tx)?;
        // As in memcached, one that needs more room is a new value, and no stale one any more.
        let marks = if text.len() > head.length as usize { 0 } else { head.marks };
        let head = Item { extra, stored: self.now_ms(), marks, ..head };
        self.keys.put::<Plain>(tx, name, head, [text.as_bytes(), b""])?;
        Ok(Some((sum, extra)))
    }

    /// Flushes everything, at once or after some seconds.
    pub fn flush(&self, tx: &mut impl Store, delay: i64) -> Result<(), Error> {
        if delay <= 0 {
            let serial = tx.get(self.root.serial())?;
            tx.set(self.root.flushed(), serial)?;
            self.keys.notes.changes.look_again();
            return tx.set(self.root.flush_at(), 0);
        }
        tx.set(self.root.flush_at(), moment(self.now_ms(), delay))
    }
}
