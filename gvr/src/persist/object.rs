//! Objects of a pool that hold blocks: a head, an item for each block, and their bytes.

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

/// Bytes that go into a pool together: as many as stay in a near cache between being read, summed and written.
const PIECE: usize = 1 << 16;

/// Bytes of an object in the order of their places, which go into a transaction by pieces.
struct Stream<'t, 'p> {
    tx: &'t mut Tx<'p>,
    at: u64,
    piece: Vec<u8>,
    filled: usize,
}

impl Stream<'_, '_> {
    /// Room for the next bytes.
    fn room(&mut self, bytes: usize) -> Result<&mut [u8]> {
        if self.filled + bytes > self.piece.len() {
            self.end()?;
            self.piece.resize(bytes.max(PIECE), 0);
        }
        let start = self.filled;
        self.filled += bytes;
        Ok(&mut self.piece[start..start + bytes])
    }

    /// Where the next bytes will be.
    fn place(&self) -> u64 {
        self.at + self.filled as u64
    }

    fn end(&mut self) -> Result<()> {
        self.tx.write(self.at, &self.piece[..self.filled])?;
        self.at += self.filled as u64;
        self.filled = 0;
        Ok(())
    }
}

/// Makes an object of blocks: head, items, bytes. `size` are those of a block; `read` gives blocks that lie in a log.
pub fn write_object(
    tx: &mut Tx<'_>,
    mut head: Sealed,
    size: usize,
    blocks: &[Kept],
    read: &dyn Fn(u64, &mut [u8]) -> Result<()>,
) -> Result<(Ptr<Sealed>, Vec<Item>)> {
    let start = (size_of::<Sealed>() + blocks.len() * size_of::<Item>()) as u64;
    let length = |kept: &Kept| if let Form::Bytes(_, bytes) = &kept.form { bytes.len() } else { size };
    head.count = blocks.len() as u64;
    head.bytes = start + blocks.iter().map(length).sum::<usize>() as u64;
    let object = tx.alloc_bytes(head.bytes)?;
    let place = Ptr::<Sealed>::from_offset(object).ok_or(nearpm::Error::ZeroSize { what: "a version" })?;
    let mut items = Vec::with_capacity(blocks.len());
    let mut stream = Stream { tx, at: object + start, piece: Vec::new(), filled: 0 };
    for kept in blocks {
        let (at, bytes) = (stream.place(), length(kept) as u32);
        let room = stream.room(length(kept))?;
        let (encoding, sum, kept_sum) = match &kept.form {
            Form::Logged(logical) => {
                read(*logical, room)?;
                let sum = crc32c::crc32c(room);
                (RAW, sum, sum)
            }
            Form::Bytes(encoding, bytes) => {
                room.copy_from_slice(bytes);
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
pub fn nothing_logged(_: u64, _: &mut [u8]) -> Result<()> {
    Err(Error::option("a block that is mended lies in no log"))
}

/// One that uses an object goes.
pub fn release(tx: &mut Tx<'_>, object: u64) -> std::result::Result<(), nearpm::Error> {
    let Some(place) = Ptr::<Sealed>::from_offset(object) else { return Ok(()) };
    if tx.update(place.users(), |users| users.saturating_sub(1))? == 0 { tx.free(place) } else { Ok(()) }
}
