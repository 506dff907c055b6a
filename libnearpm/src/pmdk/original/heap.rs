//! The heap of a PMDK pool: zones of chunks of 256 KiB, each a part of one large object, or of a
//! run of units of one size with a bitmap.

use std::collections::TryReserveError;
use std::io;

use super::checksum::fletcher64;
use super::{Original, Refusal, half, word};

const HEAP_HEAD: u64 = 1024;
const HEAP_SIGNATURE: &[u8; 16] = b"MEMORY_HEAP_HDR\0";
const CHUNK: u64 = 256 << 10;
/// Most chunks of a zone.
const ZONE_CHUNKS: u64 = 65528;
const ZONE_HEAD: u64 = 64;
const CHUNK_HEAD: u64 = 8;
const ZONE_TABLES: u64 = ZONE_HEAD + CHUNK_HEAD * ZONE_CHUNKS;
const ZONE_MAGIC: u32 = 0xC3F0_A2D2;
/// Block size and alignment, in front of a run's bitmap.
const RUN_HEAD: u64 = 16;
/// Fewest bytes of a unit.
const LEAST_UNIT: u64 = 8;
/// Words of the bitmap of runs without [`flag::FLEXIBLE`].
const FIXED_WORDS: u64 = 38;
const LINE_WORDS: u64 = 8;

mod flag {
    pub const COMPACT: u16 = 1;
    pub const NO_HEADER: u16 = 2;
    pub const ALIGNED: u16 = 4;
    pub const FLEXIBLE: u16 = 8;
}

mod kind {
    pub const FREE: u16 = 2;
    pub const USED: u16 = 3;
    pub const RUN: u16 = 4;
}

/// Marks objects that `POBJ_FIRST` and its sisters pass over: the root, and further logs.
const INTERNAL: u16 = 1 << 15;

/// An object of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Object {
    /// Where its data is in the file, and in identifiers.
    pub offset: u64,
    /// Bytes that the program may use.
    pub bytes: u64,
    /// The program's number for its type.
    pub type_num: u64,
    /// What its data is aligned to by the wish of an allocation class; 0 for none.
    pub alignment: u64,
    /// The library's own.
    pub internal: bool,
}

/// What stands in front of an object.
#[derive(Clone, Copy)]
enum Header {
    Legacy,
    Compact,
    None,
}

impl Header {
    fn of(flags: u16) -> Header {
        match flags {
            flags if flags & flag::NO_HEADER != 0 => Header::None,
            flags if flags & flag::COMPACT != 0 => Header::Compact,
            _ => Header::Legacy,
        }
    }

    fn bytes(self) -> u64 {
        match self {
            Header::Legacy => 64,
            Header::Compact => 16,
            Header::None => 0,
        }
    }
}

fn damaged(what: &'static str, offset: u64) -> Refusal {
    Refusal::Damaged { what, offset }
}

/// Where a damaged file says that it has more objects than memory can list.
fn no_memory(error: TryReserveError) -> Refusal {
    Refusal::System(io::Error::new(io::ErrorKind::OutOfMemory, error))
}

/// A block that an object fills, and how many bytes it may have at most.
struct Block {
    start: u64,
    least: u64,
    most: u64,
    header: Header,
    alignment: u64,
}

impl Block {
    /// The object in it, and the bytes of both.
    fn object(&self, original: &Original) -> Result<(Object, u64), Refusal> {
        let mut bytes = [0; 64];
        let header = &mut bytes[..self.header.bytes() as usize];
        original.read(self.start, header)?;
        let (all, type_num, flags) = match self.header {
            Header::Legacy => (word(header, 8), word(header, 56), (word(header, 48) >> 48) as u16),
            Header::Compact => (word(header, 0) & ((1 << 48) - 1), word(header, 8), (word(header, 0) >> 48) as u16),
            Header::None => (self.least, 0, 0),
        };
        if all < self.header.bytes() || all > self.most {
            return Err(damaged("an object has more bytes than its place", self.start));
        }
        let (offset, bytes) = (self.start + self.header.bytes(), all - self.header.bytes());
        let internal = flags & INTERNAL != 0;
        Ok((Object { offset, bytes, type_num, alignment: self.alignment, internal }, all))
    }
}

/// Chunks that belong together: their place, how many, what they are.
struct Chunks {
    start: u64,
    bytes: u64,
    flags: u16,
}

impl Chunks {
    fn large(&self, original: &Original) -> Result<Object, Refusal> {
        let header = Header::of(self.flags);
        let block = Block { start: self.start, least: self.bytes, most: self.bytes, header, alignment: 0 };
        Ok(block.object(original)?.0)
    }

    /// Where the units of a run begin, and how many there are (`memblock_run_bitmap`).
    fn units(&self, unit: u64, alignment: u64) -> Option<(u64, u64, u64)> {
        let content = self.bytes - RUN_HEAD;
        let spare = u64::from(alignment != 0);
        let (words, units) = if self.flags & flag::FLEXIBLE != 0 {
            let words = (content / unit).div_ceil(64) + RUN_HEAD / 8;
            let words = words.next_multiple_of(LINE_WORDS) - RUN_HEAD / 8;
            (words, (content.checked_sub(words * 8)? / unit).checked_sub(spare)?)
        } else {
            let units = content.checked_sub(FIXED_WORDS * 8)? / unit;
            (FIXED_WORDS, units.min(FIXED_WORDS * 64).checked_sub(spare)?)
        };
        Some((words, units, RUN_HEAD + words * 8))
    }

    fn run(&self, original: &Original, into: &mut Vec<Object>) -> Result<(), Refusal> {
        let mut head = [0; RUN_HEAD as usize];
        original.read(self.start, &mut head)?;
        let unit = word(&head, 0);
        let alignment = if self.flags & flag::ALIGNED != 0 { word(&head, 8) } else { 0 };
        if unit < LEAST_UNIT
            || unit > self.bytes
            || (alignment != 0 && !(alignment.is_power_of_two() && alignment <= CHUNK))
        {
            return Err(damaged("a run has units of no size", self.start));
        }
        let layout = self.units(unit, alignment).filter(|&(words, units, _)| units <= words * 64);
        let (_, units, front) = layout.ok_or_else(|| damaged("a run has no room for its bitmap", self.start))?;
        let (mut bitmap, bytes) = (Vec::new(), units.div_ceil(64) as usize * 8);
        bitmap.try_reserve_exact(bytes).map_err(no_memory)?;
        bitmap.resize(bytes, 0);
        original.read(self.start + RUN_HEAD, &mut bitmap)?;
        let header = Header::of(self.flags);
        // The data is aligned, not the header in front of it.
        let first = match alignment {
            0 => self.start + front,
            _ => (self.start + front + header.bytes()).next_multiple_of(alignment) - header.bytes(),
        };
        let mut number = 0;
        while number < units {
            if word(&bitmap, number as usize / 64 * 8) >> (number % 64) & 1 == 0 {
                number += 1;
                continue;
            }
            let most = (units - number) * unit;
            let block = Block { start: first + number * unit, least: unit, most, header, alignment };
            let (object, all) = block.object(original)?;
            into.try_reserve(1).map_err(no_memory)?;
            into.push(object);
            number += all.div_ceil(unit).max(1);
        }
        Ok(())
    }
}

/// All objects of one zone whose tables begin at an offset; false for one that is not in use.
fn zone(original: &Original, start: u64, end: u64, into: &mut Vec<Object>) -> Result<bool, Refusal> {
    let mut head = [0; ZONE_HEAD as usize];
    original.read(start, &mut head)?;
    match half(&head, 0) {
        0 => return Ok(false),
        ZONE_MAGIC => {}
        _ => return Err(damaged("a zone has no magic number", start)),
    }
    let chunks = u64::from(half(&head, 4));
    let first = start + ZONE_TABLES;
    if chunks > ZONE_CHUNKS || chunks * CHUNK > end.saturating_sub(first) {
        return Err(damaged("a zone has more chunks than its place", start));
    }
    let mut table = vec![0; (chunks * CHUNK_HEAD) as usize];
    original.read(start + ZONE_HEAD, &mut table)?;
    let mut number = 0;
    while number < chunks {
        let at = (number * CHUNK_HEAD) as usize;
        let (types, count) = (half(&table, at), u64::from(half(&table, at + 4)));
        let wrong = |what| damaged(what, start + ZONE_HEAD + at as u64);
        if count == 0 || count > chunks - number {
            return Err(wrong("chunks go on behind their zone"));
        }
        let place = Chunks { start: first + number * CHUNK, bytes: count * CHUNK, flags: (types >> 16) as u16 };
        match types as u16 {
            kind::FREE => {}
            kind::USED => into.push(place.large(original)?),
            kind::RUN => place.run(original, into)?,
            _ => return Err(wrong("a chunk is of no known kind")),
        }
        number += count;
    }
    Ok(true)
}

/// All objects, by ascending offsets.
pub(super) fn objects(original: &Original) -> Result<Vec<Object>, Refusal> {
    let (start, bytes) = original.heap;
    let mut head = [0; HEAP_HEAD as usize];
    original.read(start, &mut head)?;
    if !head.starts_with(HEAP_SIGNATURE) || fletcher64(&head, head.len() - 8, head.len()) != word(&head, head.len() - 8)
    {
        return Err(damaged("the head of the heap does not hold", start));
    }
    let (end, mut found) = (start + bytes, Vec::new());
    let (mut at, mut is_behind_used) = (start + HEAP_HEAD, true);
    while at < end && end - at >= ZONE_TABLES + CHUNK {
        let is_used = zone(original, at, end, &mut found)?;
        // Zones come into use one after the other.
        if is_used && !is_behind_used {
            return Err(damaged("a zone in front of this one has no magic number", at));
        }
        is_behind_used = is_used;
        at += ZONE_TABLES + ZONE_CHUNKS * CHUNK;
    }
    found.sort_unstable_by_key(|object| object.offset);
    let apart = found.is_sorted_by(|one, next| one.offset + one.bytes <= next.offset);
    if !apart {
        return Err(damaged("objects lie over each other", start));
    }
    Ok(found)
}
