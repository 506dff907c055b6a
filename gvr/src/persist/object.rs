//! Objects of a pool that hold blocks: a head, an item for each block, and their bytes.

use std::sync::atomic::AtomicU64;

use nearpm::prelude::*;

use super::format::{self, Item, RAW, Sealed};
use crate::error::{Error, Result};

/// A block as it is to be kept.
pub struct Kept {
    pub block: u64,
    pub form: Form,
    /// CRC-32C of the block. Of one that lies in a log it is computed when the block is read.
    pub sum: u32,
}

/// What is kept of a block.
pub enum Form {
    /// These bytes, and how they are to be understood.
    Bytes(u32, Vec<u8>),
    /// The block itself, which lies in a log: a logical number.
    Logged(u64),
}

/// Where the items of a version lie: behind its head.
pub fn items_at(place: Ptr<Sealed>) -> Ptr<Item> {
    Ptr::cast(Ptr::nth(place, 1))
}

/// Bytes of a word: each block begins at one.
const WORD: usize = 8;
/// Bytes that go into a pool together, of blocks that are at hand.
const PIECE: usize = 1 << 16;

/// Bytes of an object in the order of their places, which go into a transaction by pieces, or word
/// by word from where they are.
struct Stream<'t, 'p> {
    tx: &'t mut Tx<'p>,
    at: u64,
    piece: Vec<u8>,
    filled: usize,
}

impl Stream<'_, '_> {
    /// Where the next block will be.
    fn place(&self) -> u64 {
        self.at + self.filled as u64
    }

    /// Adds a block that is at hand.
    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let room = bytes.len().next_multiple_of(WORD);
        if self.filled + room > self.piece.len() {
            self.end()?;
            self.piece.resize(room.max(PIECE), 0);
        }
        let (to, rest) = self.piece[self.filled..self.filled + room].split_at_mut(bytes.len());
        to.copy_from_slice(bytes);
        rest.fill(0);
        self.filled += room;
        Ok(())
    }

    /// Adds a block of whole words that `read` copies to its place, and gives its CRC-32C: of what
    /// has come there, which is in the nearest cache.
    fn copy(&mut self, bytes: usize, read: impl FnOnce(&[AtomicU64]) -> Result<()>) -> Result<u32> {
        self.end()?;
        read(self.tx.words(self.at, (bytes / WORD) as u64)?)?;
        self.piece.resize(bytes.max(self.piece.len()), 0);
        let copied = &mut self.piece[..bytes];
        self.tx.read(self.at, copied)?;
        self.at += bytes as u64;
        Ok(crc32c::crc32c(copied))
    }

    fn end(&mut self) -> Result<()> {
        self.tx.write(self.at, &self.piece[..self.filled])?;
        self.at += self.filled as u64;
        self.filled = 0;
        Ok(())
    }
}

/// Makes an object of blocks: head, items, bytes. `size` are those of a block; `read` gives blocks
/// that lie in a log.
pub fn write_object(
    tx: &mut Tx<'_>,
    mut head: Sealed,
    size: usize,
    blocks: &[Kept],
    read: &dyn Fn(u64, &[AtomicU64]) -> Result<()>,
) -> Result<(Ptr<Sealed>, Vec<Item>)> {
    let start = (size_of::<Sealed>() + blocks.len() * size_of::<Item>()) as u64;
    let length = |kept: &Kept| if let Form::Bytes(_, bytes) = &kept.form { bytes.len() } else { size };
    head.count = blocks.len() as u64;
    head.bytes = start + blocks.iter().map(|kept| length(kept).next_multiple_of(WORD)).sum::<usize>() as u64;
    let object = tx.alloc_bytes(head.bytes)?;
    let place = Ptr::<Sealed>::from_offset(object).ok_or(nearpm::Error::ZeroSize { what: "a version" })?;
    let mut items = Vec::with_capacity(blocks.len());
    let mut stream = Stream { tx, at: object + start, piece: Vec::new(), filled: 0 };
    for kept in blocks {
        let (at, bytes) = (stream.place(), length(kept) as u32);
        let (encoding, sum, kept_sum) = match &kept.form {
            Form::Logged(logical) => {
                let sum = stream.copy(size, |words| read(*logical, words))?;
                (RAW, sum, sum)
            }
            Form::Bytes(encoding, bytes) => {
                stream.add(bytes)?;
                (*encoding, kept.sum, if *encoding == RAW { kept.sum } else { crc32c::crc32c(bytes) })
            }
        };
        items.push(Item { block: kept.block, at, object, bytes, encoding, sum, kept_sum });
    }
    stream.end()?;
    head.sum = format::sum(&head, &items);
    tx.set(place, head)?;
    tx.set_all(items_at(place), &items)?;
    Ok((place, items))
}

/// For objects whose bytes are at hand.
pub fn nothing_logged(_: u64, _: &[AtomicU64]) -> Result<()> {
    Err(Error::option("a block that is mended lies in no log"))
}

/// So many that use an object go.
pub fn release(tx: &mut Tx<'_>, object: u64, users: u64) -> std::result::Result<(), nearpm::Error> {
    let Some(place) = Ptr::<Sealed>::from_offset(object) else { return Ok(()) };
    if tx.update(place.users(), |all| all.saturating_sub(users))? == 0 { tx.free(place) } else { Ok(()) }
}
