//! What a key leads to: one object, a head and behind it the bytes of the value.

use nearpm::prelude::*;

/// The head of an item. The bytes of its value follow.
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
pub struct Item {
    /// When it expires, in milliseconds since 1970; 0 for never.
    pub expires: u64,
    /// Redis: offset of the collection, 0 for a string. memcached: the number for `cas`.
    pub extra: u64,
    /// memcached: when it was stored, in milliseconds since 1970.
    pub stored: u64,
    /// Redis: what it is. memcached: the client's flags.
    pub tag: u32,
    /// Redis: 0. memcached: marks of the meta protocol.
    pub marks: u32,
    /// Bytes of the value.
    pub length: u32,
    /// Bytes that the object has room for.
    pub room: u32,
}

/// Bytes of the head.
pub const HEAD: u64 = size_of::<Item>() as u64;

/// What an entry takes besides key and value: its place in the tree, heads, rounding.
pub const OVERHEAD: u64 = HEAD + 72;

/// Where the bytes of a value lie.
pub fn data(item: Ptr<Item>) -> u64 {
    Ptr::offset(item).saturating_add(HEAD)
}

/// Adds the value's bytes to a buffer.
pub fn append_value(from: &impl Load, item: Ptr<Item>, length: u32, to: &mut Vec<u8>) -> Result<(), Error> {
    let start = to.len();
    // Refused before it takes memory, if the length is damaged.
    from.read(data(item).saturating_add(u64::from(length).saturating_sub(1)), &mut [0; 1][..length.min(1) as usize])?;
    to.resize(start + length as usize, 0);
    from.read(data(item), &mut to[start..])
}

/// Makes an item with this head, whose length and room are set, and this value. Without a place of
/// the right size it takes one of `place` bytes.
pub fn make(tx: &mut impl Store, head: Item, parts: [&[u8]; 2], place: u64) -> Result<Ptr<Item>, Error> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let bytes = (length as u64 + HEAD).next_multiple_of(16);
    let (object, bytes) = alloc(tx, bytes, place)?;
    let room = bytes - HEAD;
    let item = Ptr::<Item>::from_offset(object).ok_or(Error::NotAllocated { offset: object })?;
    tx.set(item, Item { length: length as u32, room: room as u32, ..head })?;
    write_parts(tx, item, parts)?;
    Ok(item)
}

/// Takes memory: so many bytes, or, where there is no such place, as many as another place has.
pub fn alloc(tx: &mut impl Store, bytes: u64, place: u64) -> Result<(u64, u64), Error> {
    match tx.alloc_bytes(bytes) {
        Err(Error::Full { .. }) if place > bytes => tx.alloc_bytes(place).map(|object| (object, place)),
        done => done.map(|object| (object, bytes)),
    }
}

/// Stores head and value in the place of an item that has room for them.
pub fn overwrite(tx: &mut impl Store, item: Ptr<Item>, head: Item, parts: [&[u8]; 2]) -> Result<(), Error> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    tx.declare(Ptr::offset(item)..data(item) + length as u64)?;
    let room = tx.get(item.room())?;
    tx.set(item, Item { length: length as u32, room, ..head })?;
    write_parts(tx, item, parts)
}

fn write_parts(tx: &mut impl Store, item: Ptr<Item>, parts: [&[u8]; 2]) -> Result<(), Error> {
    tx.write(data(item), parts[0])?;
    tx.write(data(item) + parts[0].len() as u64, parts[1])
}
