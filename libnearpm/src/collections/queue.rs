//! First in, first out.

use crate::error::Error;
use crate::typed::{later, pointer, whole};
use crate::{Load, Persistent, Ptr, Store};

/// In front of the values of a block.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Block {
    next: Option<Ptr<Block>>,
    /// So that the values behind it lie as objects do.
    reserved: u64,
}

/// The first value of a queue: its block and itself.
type Front<T> = (Ptr<Block>, Ptr<T>);

/// Bytes of a block, unless a value is longer.
const BLOCK_BYTES: u64 = 1024;

/// A queue: values go in at its end and come out at its front; see
/// [`collections`](crate::collections). Its methods are those of `Ptr<PQueue<T>>`.
///
/// Every call takes O(1), but for `iter`, which takes O(1) a value, and `clear`. The values lie in
/// blocks of 1 KiB, which are freed when they are empty.
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
#[persistent(release = release)]
pub struct PQueue<T: Persistent> {
    /// The block that holds the first value, `None` while there is no block.
    front: Option<Ptr<Block>>,
    /// The block that holds the last value, or held it.
    back: Option<Ptr<Block>>,
    /// Index of the first value in its block.
    first: u64,
    pub(super) length: u64,
    values: std::marker::PhantomData<T>,
}

impl<T: Persistent> PQueue<T> {
    const EMPTY: PQueue<T> = PQueue { front: None, back: None, first: 0, length: 0, values: std::marker::PhantomData };

    /// Values of a block.
    const ROOM: u64 = {
        let room = (BLOCK_BYTES - size_of::<Block>() as u64) / size_of::<T>() as u64;
        if room == 0 { 1 } else { room }
    };

    fn slot(block: Ptr<Block>, index: u64) -> Ptr<T> {
        Ptr::nth(Ptr::behind(block, size_of::<Block>() as u64), index)
    }

    /// What is left when the first value is gone, with the block that holds no more.
    fn without_first(self, from: &impl Load, front: Ptr<Block>) -> Result<(PQueue<T>, Option<Ptr<Block>>), Error> {
        let mut rest = PQueue { first: self.first + 1, length: self.length - 1, ..self };
        if rest.first < Self::ROOM {
            return Ok((rest, None));
        }
        rest.front = from.get(front.next())?;
        rest.first = 0;
        if rest.front.is_none() {
            rest = PQueue::EMPTY;
        }
        Ok((rest, Some(front)))
    }

    /// All of it as numbers.
    fn state(&self) -> [u64; 4] {
        let offset = |block: Option<Ptr<Block>>| block.map_or(0, Ptr::offset);
        [offset(self.front), offset(self.back), self.first, self.length]
    }

    /// Where the first value lies.
    fn front_slot(&self) -> Result<Option<Front<T>>, Error> {
        match self.front {
            _ if self.length == 0 => Ok(None),
            Some(front) if self.first < Self::ROOM => Ok(Some((front, Self::slot(front, self.first)))),
            front => {
                let offset = front.map_or(0, Ptr::offset);
                Err(Error::Corrupt { what: "a queue has values and no block for them", offset })
            }
        }
    }
}

/// Frees what a queue holds.
fn release<T: Persistent, S: Store>(queue: PQueue<T>, tx: &mut S) -> Result<(), Error> {
    queue.front.map_or(Ok(()), |block| tx.free(block))?;
    release_values(queue, tx)
}

/// Frees what the values own, and each block when the values in front of it are done: a queue that
/// holds itself, by a copied handle, cannot be freed again.
fn release_values<T: Persistent, S: Store>(mut queue: PQueue<T>, tx: &mut S) -> Result<(), Error> {
    while let Some((front, slot)) = queue.front_slot()? {
        let value = if T::OWNS { Some(tx.get(slot)?) } else { None };
        let (rest, empty) = queue.without_first(tx, front)?;
        if let Some(block) = rest.front.filter(|_| empty.is_some()) {
            tx.free(block)?;
        }
        if let Some(value) = value {
            later(tx, release_rest::<T, S>, rest.state())?;
            return value.release(tx);
        }
        queue = rest;
    }
    Ok(())
}

/// Frees what is left of a queue.
fn release_rest<T: Persistent, S: Store>(tx: &mut S, [front, back, first, length]: [u64; 4]) -> Result<(), Error> {
    let (front, back) = (Ptr::from_offset(front), Ptr::from_offset(back));
    release_values(PQueue::<T> { front, back, first, length, ..PQueue::EMPTY }, tx)
}

impl<T: Persistent> Ptr<PQueue<T>> {
    /// How many values there are.
    pub fn len(self, from: &impl Load) -> Result<u64, Error> {
        from.get(self.length())
    }

    /// Whether there are none.
    pub fn is_empty(self, from: &impl Load) -> Result<bool, Error> {
        Ok(self.len(from)? == 0)
    }

    /// Adds a value at the end.
    pub fn push(self, tx: &mut impl Store, value: T) -> Result<(), Error> {
        whole(tx, |tx| {
            let mut queue = tx.get(self)?;
            let at = queue.first.wrapping_add(queue.length) % PQueue::<T>::ROOM;
            let block = match queue.back {
                Some(back) if at != 0 => back,
                back => {
                    let bytes = size_of::<Block>() as u64 + PQueue::<T>::ROOM * size_of::<T>() as u64;
                    let block: Ptr<Block> = pointer(tx.alloc_bytes(bytes)?)?;
                    tx.set(block, Block { next: None, reserved: 0 })?;
                    match back {
                        Some(back) => tx.set(back.next(), Some(block))?,
                        None => queue.front = Some(block),
                    }
                    queue.back = Some(block);
                    block
                }
            };
            tx.set(PQueue::slot(block, at), value)?;
            queue.length = queue.length.saturating_add(1);
            tx.set(self, queue)
        })
    }

    /// Takes the first value out.
    pub fn pop(self, tx: &mut impl Store) -> Result<Option<T>, Error> {
        whole(tx, |tx| {
            let queue = tx.get(self)?;
            let Some((front, slot)) = queue.front_slot()? else { return Ok(None) };
            let value = tx.get(slot)?;
            let (rest, empty) = queue.without_first(tx, front)?;
            if let Some(block) = empty {
                tx.free(block)?;
            }
            tx.set(self, rest)?;
            Ok(Some(value))
        })
    }

    /// The first value.
    pub fn front_value(self, from: &impl Load) -> Result<Option<T>, Error> {
        from.get(self)?.front_slot()?.map(|(_, slot)| from.get(slot)).transpose()
    }

    /// Frees everything that the queue holds.
    pub fn clear(self, tx: &mut impl Store) -> Result<(), Error> {
        whole(tx, |tx| {
            tx.get(self)?.release(tx)?;
            tx.set(self, PQueue::EMPTY)
        })
    }

    /// The values, in order.
    pub fn iter<L: Load>(self, from: &L) -> Result<Items<'_, L, T>, Error> {
        from.get(self)?.iterate(from)
    }
}

impl<T: Persistent> PQueue<T> {
    /// The values, in order.
    pub(super) fn iterate<L: Load>(self, from: &L) -> Result<Items<'_, L, T>, Error> {
        Ok(Items { from, queue: self })
    }
}

/// The values of a [`PQueue`].
pub struct Items<'t, L, T: Persistent> {
    from: &'t L,
    /// What is left of it.
    queue: PQueue<T>,
}

impl<L: Load, T: Persistent> Iterator for Items<'_, L, T> {
    type Item = Result<T, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = || -> Result<_, Error> {
            let Some((front, slot)) = self.queue.front_slot()? else { return Ok(None) };
            let value = self.from.get(slot)?;
            Ok(Some((value, self.queue.without_first(self.from, front)?.0)))
        };
        match step() {
            Ok(step) => step.map(|(value, rest)| {
                self.queue = rest;
                Ok(value)
            }),
            Err(error) => {
                // Behind an error there is nothing.
                self.queue = PQueue::EMPTY;
                Some(Err(error))
            }
        }
    }
}

impl<T: Persistent> PQueue<T> {
    /// An empty one, as zeros are.
    pub const fn new() -> Self {
        Self::EMPTY
    }
}

impl<T: Persistent> Default for PQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}
