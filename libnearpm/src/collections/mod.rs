//! Collections that lie in pools.
//!
//! Each is a small value of its own, to be put into a root, another struct or another collection;
//! zeros are an empty one, so that a root that was just made has its collections. What they can do
//! are methods of a pointer to them: `book.people().push(tx, person)`, where `book` is a
//! `Ptr<Book>` and `people` a field of `Book`. They run on every pool, by [`Load`](crate::Load) and
//! [`Store`].
//!
//! | type | what it is | costs |
//! |---|---|---|
//! | [`PVec`] | a row of values | push, pop O(1), a push now and then O(n) |
//! | [`PString`] | text | as a vector of bytes |
//! | [`PHashMap`] | values by keys, in no order | all O(1), and no call moves more than one bucket |
//! | [`PBTreeMap`] | values by keys, in order | all O(log n); iteration of a range |
//! | [`PBTreeMap`] with [`Ranked`] keys | the same, and entries by their place in the order | all O(log n), with a store more a level |
//! | [`PHashSet`], [`PBTreeSet`] | keys alone | as the maps |
//! | [`PBytes`] | a key of bytes, looked up by a `&[u8]` | as a vector of bytes |
//! | [`PQueue`] | values, first in, first out | all O(1) |
//!
//! A call that finds no room at its first step has changed nothing, and the transaction may go on.
//! One that fails later leaves the collection half changed, so that the transaction can only be
//! aborted: its commit fails.
//!
//! `drain` takes out all that is there, as a `Vec`, and `retain` of maps and sets what a function
//! does not want to keep. `entry` of a map looks a key up once, for all that is then done with it.
//!
//! A collection owns its memory, and not what pointers in its values point to. It is freed by
//! `clear`, together with what the values own: text in a vector, say. Copying a collection's value
//! copies the handle, and not what it holds: two copies are one collection, of which only one may
//! be changed.

mod btree;
mod bytes;
mod drain;
mod entry;
mod hashmap;
mod key;
mod queue;
#[cfg(feature = "serde")]
mod serialised;
mod set;
mod string;
mod vector;

pub use btree::{Backwards, Cursor, CursorMut, PBTreeMap, Range, Ranked};
pub use bytes::PBytes;
pub use entry::{Entry, OccupiedEntry, VacantEntry};
pub use hashmap::{Entries, PHashMap};
pub use key::{Key, PlainKey};
pub use queue::{Items, PQueue};
#[cfg(feature = "serde")]
pub use serialised::{Serialised, deserialised};
pub use set::{PBTreeSet, PHashSet};
pub use string::PString;
pub use vector::{PVec, Values};

use crate::Store;
use crate::error::Error;

/// Copies bytes from one place of a pool to another; the places may overlap.
fn copy<S: Store>(tx: &mut S, from: u64, to: u64, bytes: u64) -> Result<(), Error> {
    const PIECE: u64 = 512;
    let mut buffer = [0; PIECE as usize];
    let mut done = 0;
    while done < bytes {
        let length = PIECE.min(bytes - done);
        // What overlaps is read before it is written: upwards from the front, downwards from the
        // back.
        let at = if from > to { done } else { bytes - done - length };
        let piece = &mut buffer[..length as usize];
        tx.read(from.saturating_add(at), piece)?;
        tx.write(to.saturating_add(at), piece)?;
        done += length;
    }
    Ok(())
}
