//! Operations, answers, and batches in the device's memory.

use std::rc::Rc;

use nearpm_gpu::{Buffer, Device};

use crate::error::{Error, Result};
use crate::key::Key;
use crate::layout::Keys;

/// What is done with a key: `GPH_GET` and its like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Op {
    /// The value.
    Get = 0,
    /// Puts the pair in if the key is not there.
    Insert = 1,
    /// Gives the key another value if it is there.
    Update = 2,
    /// Either of these.
    Put = 3,
    /// Removes the pair.
    Delete = 4,
    /// The value, then an update: two operations, as in YCSB's F.
    Rmw = 5,
}

impl Op {
    /// Whether it may put a value.
    pub fn puts(self) -> bool {
        !matches!(self, Op::Get | Op::Delete)
    }
}

/// How an operation ended: `GPH_DONE` and its like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Outcome {
    /// It was done.
    Done = 1,
    /// The key is not there.
    Absent = 2,
    /// The key is there already.
    Exists = 3,
    /// There was no free slot in this batch.
    Full = 4,
    /// There was no spare cell in this batch.
    NoCell = 5,
    /// The key is none.
    Reserved = 6,
    /// Another key is there of which the slot would have the same 64 bits: wide keys alone.
    Collides = 7,
}

impl Outcome {
    /// The outcome of a code; `None` for one that no kernel stores.
    pub fn from_code(code: u32) -> Option<Outcome> {
        use Outcome::{Absent, Collides, Done, Exists, Full, NoCell, Reserved};
        [Done, Absent, Exists, Full, NoCell, Reserved, Collides].into_iter().find(|&outcome| outcome as u32 == code)
    }
}

impl Key {
    /// The key as a batch of these keys has it.
    pub(crate) fn stored(&self, keys: Keys) -> Result<Vec<u8>> {
        let refuse = |rule: String| Err(Error::Invalid(format!("the key {self} is none of this table's: {rule}")));
        let padded = |bytes: &[u8]| {
            let mut stored = bytes.to_vec();
            stored.resize(keys.stored_bytes() as usize, 0);
            stored
        };
        match (self, keys) {
            (Key::Word(word), Keys::Words) => Ok(word.to_le_bytes().to_vec()),
            (Key::Bytes(key), Keys::Fixed(bytes)) if key.len() == bytes as usize => Ok(padded(key)),
            (Key::Bytes(key), Keys::Variable(most)) if key.len() <= most as usize => {
                Ok(padded(&[&(key.len() as u16).to_le_bytes()[..], key].concat()))
            }
            (_, Keys::Words) => refuse("its keys are words of 8 bytes".to_owned()),
            (_, Keys::Fixed(bytes)) => refuse(format!("its keys have {bytes} bytes")),
            (_, Keys::Variable(most)) => refuse(format!("its keys have {most} bytes at most")),
        }
    }
}

/// An operation of the processor's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub op: Op,
    /// With which key.
    pub key: Key,
    /// The value, where one is put.
    pub value: Vec<u8>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// How it ended.
    pub outcome: Outcome,
    /// The value that was read.
    pub value: Option<Vec<u8>>,
}

/// A batch in the device's memory. Kernels may fill it as well as the processor.
pub struct Operations {
    pub(crate) count: u32,
    /// One operation for all, where `ops` has none for each.
    pub(crate) op: Op,
    pub(crate) ops: Option<Buffer>,
    /// How many may put a value.
    pub(crate) puts: u32,
    /// Keys: of 8 bytes, or as wide keys are stored, filled up to whole units of 16 bytes.
    pub keys: Buffer,
    /// Values one behind the other, where any is put.
    pub values: Option<Buffer>,
    /// Room for values that are read.
    pub found: Option<Buffer>,
    /// A code of [`Outcome`] for each, of 4 bytes.
    pub outcomes: Buffer,
}

impl Operations {
    /// The same operation on each of `keys`, without values and without room for them.
    ///
    /// # Errors
    /// No memory.
    pub fn new(device: &Rc<dyn Device>, op: Op, keys: &[u64]) -> Result<Operations> {
        let bytes: Vec<u8> = keys.iter().flat_map(|key| key.to_le_bytes()).collect();
        Operations::of_stored(device, op, keys.len() as u32, &bytes)
    }

    /// The same on `count` keys as the table stores them, one behind the other.
    ///
    /// # Errors
    /// No memory.
    pub fn of_stored(device: &Rc<dyn Device>, op: Op, count: u32, keys: &[u8]) -> Result<Operations> {
        let buffer = Buffer::new(device, keys.len().max(8) as u64)?;
        buffer.upload(keys)?;
        let outcomes = Buffer::zeroed(device, 4 * u64::from(count.max(1)))?;
        Ok(Operations {
            count,
            puts: if op.puts() { count } else { 0 },
            op,
            ops: None,
            keys: buffer,
            values: None,
            found: None,
            outcomes,
        })
    }

    /// An operation of its own for each key, as many as keys.
    ///
    /// # Errors
    /// No memory.
    pub fn each(mut self, device: &Rc<dyn Device>, ops: &[Op]) -> Result<Operations> {
        debug_assert_eq!(ops.len(), self.count as usize);
        self.puts = ops.iter().filter(|op| op.puts()).count() as u32;
        self.ops = Some(Buffer::of_words(device, &ops.iter().map(|&op| op as u32).collect::<Vec<_>>())?);
        Ok(self)
    }

    /// With values that are put.
    #[must_use]
    pub fn with_values(mut self, values: Buffer) -> Operations {
        self.values = Some(values);
        self
    }

    /// With room for values that are read.
    #[must_use]
    pub fn with_found(mut self, found: Buffer) -> Operations {
        self.found = Some(found);
        self
    }

    /// Another operation for all.
    #[must_use]
    pub fn all(mut self, op: Op) -> Operations {
        (self.op, self.ops, self.puts) = (op, None, if op.puts() { self.count } else { 0 });
        self
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.count
    }
}
