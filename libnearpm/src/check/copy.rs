//! Copies of pools.
//!
//! A copy has the identifier of the pool, and its objects at the same offsets: what programs have
//! stored refers to both. It is made from the recovered pool, so that its logs are blank and its
//! pages at home.

use std::os::unix::fs::FileExt;
use std::path::Path;

use nearpm_interface::geometry::LINE;
use nearpm_interface::media::{
    CHUNK_BYTES, ChunkWord, MAX_RING_BYTES, MIN_RING_BYTES, PAGE_BYTES, POOL_GROWN, POOL_VERSION, PoolHead,
    SPAN_VERSION,
};
use nearpm_newfile::Durability;

use super::{Image, Object, Tables};
use crate::error::{Error, Problem};
use crate::heap::HeapLayout;
use crate::memory::{Backing, Medium, PrivateMemory, private_view};
use crate::options::Options;
use crate::pool::{Location, Put, file, format, grow};

/// A copy that was made.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Bytes of the copy.
    pub bytes: u64,
    /// Objects in it.
    pub objects: u64,
    /// Bytes of these.
    pub object_bytes: u64,
}

/// Copies a pool to a file or to a card, also with another size. The copy is read again and
/// compared: in a file before it has its name, on a card before this returns; one that differs is
/// removed. Nothing is ever there by half. Others may read the pool meanwhile.
///
/// # Errors
/// [`Problem::Exists`]; [`Problem::Corrupt`] for a pool that is not sound; [`Problem::TooSmall`]
/// and [`Problem::BadOption`] for a size that the pool cannot have, because objects would have to
/// move; what the system refuses.
pub fn copy(from: &str, to: &str, bytes: Option<u64>) -> Result<Copied, Error> {
    let target = Location::parse(to)?;
    if let Location::File(path) = &target {
        if path.exists() {
            return Err(Problem::Exists.at(to));
        }
        file::refuse_left_backup(path)?;
    }
    let mut image = Image::open(from)?;
    image.refuse_foreign()?;
    if let Some(finding) = image.check().findings.first() {
        let (what, offset) = (finding.class.what(), finding.offset);
        return Err(Problem::Corrupt { what, offset }.at(from));
    }
    let (old, tables) = (image.head()?, image.tables()?);
    let head = resize(&old, &tables, bytes.unwrap_or(grow::bytes(&old))).map_err(|problem| problem.at(to))?;
    let objects: Vec<Object> = tables.objects().collect();
    match target {
        Location::File(path) => to_file(&image, &tables, &head, &path, &objects)?,
        Location::Card { .. } if head.grown() != 0 => {
            let what = "a pool that has grown, or is to grow for this size, is copied to a file: a card's pools have their tables in one piece";
            return Err(Problem::BadOption { what }.at(to));
        }
        Location::Card { card, pool } => {
            let fill = |put: &mut Put<'_>| contents(&image, &tables, &head, put);
            let made = Options::new().create_filled((&card, &pool), head, to, fill)?;
            let same = |object: &Object| -> Result<bool, Error> {
                let there = made.tx(|tx| tx.read_vec(object.offset, object.bytes as usize))?;
                Ok(there == bytes_of(&image, &tables, object))
            };
            let compared = made.root().and_then(|root| Ok(root == tables.root && all(&objects, same)?));
            let closed = made.close();
            let done = compared.and_then(|sound| if sound { closed } else { Err(differs(to)) });
            if let Err(error) = done {
                crate::pool::remove(to)?;
                return Err(error);
            }
        }
    }
    let object_bytes = objects.iter().map(|object| object.bytes).sum();
    Ok(Copied { bytes: grow::bytes(&head), objects: objects.len() as u64, object_bytes })
}

fn differs(location: &str) -> Error {
    Problem::Corrupt { what: "the copy differs from the pool, as the medium gives it back", offset: 0 }.at(location)
}

fn all(objects: &[Object], same: impl Fn(&Object) -> Result<bool, Error>) -> Result<bool, Error> {
    objects.iter().try_fold(true, |so_far, object| Ok(so_far && same(object)?))
}

fn bytes_of(image: &Image, tables: &Tables, object: &Object) -> Vec<u8> {
    let mut bytes = vec![0; object.bytes as usize];
    tables.read(&image.medium, object.offset, &mut bytes);
    bytes
}

/// Everything of the copy but its head.
fn contents(image: &Image, tables: &Tables, head: &PoolHead, put: &mut Put<'_>) -> Result<(), Error> {
    let layout = HeapLayout::of(head);
    put(layout.root(), &layout.form.encode(tables.root).to_le_bytes())?;
    for zone in layout.parts().skip(1) {
        put(layout.word(zone.chunks.start), &layout.tables_word(&zone).to_le_bytes())?;
    }
    for (chunk, word, bitmap) in tables.used_chunks() {
        put(layout.word(chunk), &layout.form.encode_chunk(word).to_le_bytes())?;
        put(layout.bitmap_word(chunk, 0), &layout.form.encode_bitmap(bitmap))?;
    }
    tables.objects().try_for_each(|object| {
        let mut piece = vec![0; object.bytes.min(1 << 20) as usize];
        let mut at = object.offset;
        while at < object.offset + object.bytes {
            piece.truncate((object.offset + object.bytes - at) as usize);
            tables.read(&image.medium, at, &mut piece);
            image.alive()?;
            put(at, &piece)?;
            at += piece.len() as u64;
        }
        Ok(())
    })
}

fn to_file(image: &Image, tables: &Tables, head: &PoolHead, path: &Path, objects: &[Object]) -> Result<(), Error> {
    let refuse = |what: &str, error| Error::system(format!("{what} {}", path.display()), error);
    let bytes = grow::bytes(head);
    let new = file::begin(path, bytes)?;
    let write = |offset: u64, bytes: &[u8]| {
        new.file().write_all_at(bytes, offset).map_err(|error| refuse("write a copy for", error))
    };
    contents(image, tables, head, &mut |offset, bytes| write(offset, bytes))?;
    if head.grown() != 0 {
        write(POOL_GROWN, &format::grown_word(head).to_le_bytes())?;
    }
    write(0, &format::line_of(head))?;
    new.file().sync_all().map_err(|error| refuse("write a copy for", error))?;
    let location = path.display().to_string();
    let file = new.file().try_clone().map_err(|error| refuse("read the copy for", error))?;
    let memory = PrivateMemory::new(private_view(&file, path, bytes)?, bytes, file);
    let mut copy = Image::of(Medium::new(Backing::Private(memory)), &location);
    let same = |copied: &Tables, copy: &Image| {
        let content = |object: &Object| Ok(bytes_of(image, tables, object) == bytes_of(copy, copied, object));
        let same = copied.root == tables.root && copied.objects().eq(objects.iter().copied());
        Ok::<bool, Error>(same && all(objects, content)?)
    };
    if !copy.check().is_sound() || !same(&copy.tables()?, &copy)? {
        return Err(differs(&location));
    }
    if let Location::File(from) = Location::parse(&image.location)? {
        let mode = std::fs::metadata(from).map(|metadata| metadata.permissions());
        mode.and_then(|mode| new.file().set_permissions(mode))
            .map_err(|error| refuse("set the permissions of", error))?;
    }
    new.publish(Durability::Durable).map(drop).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Problem::Exists.at(path.display()),
        _ => refuse("name", error),
    })
}

/// The head of a copy of so many bytes, in which objects stay at their offsets.
///
/// The tables in front of the objects grow with the heap. Room for that is where log rings become
/// smaller, which are blank in a copy; they become larger where the heap shrinks.
///
/// Where that leaves too little, and for a pool that has grown, what is new has tables of its own,
/// as if the pool had grown; a pool of format 1 becomes one that grows for that. In one without
/// objects none has to stay, so that the copy is made as a new pool of its size.
fn resize(old: &PoolHead, tables: &Tables, bytes: u64) -> Result<PoolHead, Problem> {
    if bytes == grow::bytes(old) {
        return Ok(*old);
    }
    format::check_bytes(bytes)?;
    if old.grown() != 0 {
        return resize_grown(old, tables, bytes);
    }
    match resize_made(old, tables, bytes) {
        Err(Problem::BadOption { .. }) if bytes > old.bytes && grow::check(old).is_ok() => {
            grow::plan(old, bytes).map(|head| PoolHead { version: SPAN_VERSION, ..head })
        }
        Err(Problem::BadOption { .. }) if bytes > old.bytes && old.version == POOL_VERSION => {
            if needed_chunks(tables) == 0 {
                return anew(old, bytes);
            }
            grow::plan(&growing(old, tables)?, bytes)
        }
        done => done,
    }
}

/// The head of a pool that was just made, with as many lanes and rings as large as another one.
fn anew(old: &PoolHead, bytes: u64) -> Result<PoolHead, Problem> {
    let shape = Options::new().id(old.pool).lanes(old.lanes).ring_bytes(old.ring_bytes);
    format::layout(&if old.spare == 0 { shape.spare_pages(0) } else { shape }, bytes)
}

/// The head of a pool of format 1 as one that grows, whose objects stay: it has no spare pages, and
/// its rings are smaller where the sealed tables need room.
fn growing(old: &PoolHead, tables: &Tables) -> Result<PoolHead, Problem> {
    let shape = PoolHead { version: SPAN_VERSION, spare: 0, crc: 0, ..*old };
    best_fit(&shape, tables).ok_or(Problem::BadOption { what: NO_ROOM })
}

/// Of a pool that has grown: its zones become more or fewer.
fn resize_grown(old: &PoolHead, tables: &Tables, bytes: u64) -> Result<PoolHead, Problem> {
    let (made, needed) = (old.with_grown(0), needed_chunks(tables));
    let base = HeapLayout::of(&made);
    let minimum = if needed <= base.chunks { old.bytes } else { base.first + needed * CHUNK_BYTES };
    if bytes < minimum {
        return Err(Problem::TooSmall { bytes, minimum });
    }
    match base.grown_to(bytes) {
        Some(layout) if layout.chunks >= needed => Ok(old.with_grown(layout.range().end)),
        Some(_) => Err(Problem::TooSmall { bytes, minimum: minimum + CHUNK_BYTES }),
        None => Ok(made),
    }
}

/// Chunks up to the last one that is in use.
fn needed_chunks(tables: &Tables) -> u64 {
    tables.used_chunks().last().map_or(0, |(chunk, word, _)| {
        u64::from(chunk)
            + match word {
                ChunkWord::Large { chunks } | ChunkWord::Run { chunks, .. } => u64::from(chunks),
                _ => 1,
            }
    })
}

fn resize_made(old: &PoolHead, tables: &Tables, bytes: u64) -> Result<PoolHead, Problem> {
    let needed = needed_chunks(tables);
    let least = old.end() - (tables.layout().chunks - needed) * CHUNK_BYTES / PAGE_BYTES * PAGE_BYTES;
    let best = best_fit(&PoolHead { bytes, crc: 0, ..*old }, tables);
    // What is larger must be of use.
    let wanted = bytes.saturating_sub(old.end()) / PAGE_BYTES + old.pages;
    match best {
        Some(head) if head.pages * 64 >= wanted * 63 || bytes < old.bytes => Ok(head),
        _ if bytes < old.bytes => Err(Problem::TooSmall { bytes, minimum: least.max(bytes + 1) }),
        _ => Err(Problem::BadOption { what: NO_ROOM }),
    }
}

/// What a pool says whose objects are in the way of its tables.
const NO_ROOM: &str = "its heap cannot grow so far, because objects keep their offsets and the tables in front of them would need more room \
                       than smaller log rings leave; create a larger pool, and copy the objects by a program";

/// Of the heads with rings of any size the one with most pages, with room for what is in use.
fn best_fit(shape: &PoolHead, tables: &Tables) -> Option<PoolHead> {
    let (layout, needed) = (tables.layout(), needed_chunks(tables));
    let widest = (layout.first / u64::from(shape.lanes)).min(MAX_RING_BYTES.into()) as u32;
    let rings = (MIN_RING_BYTES..=widest).step_by(PAGE_BYTES as usize);
    let fitting = rings.filter_map(|ring_bytes| fit(&PoolHead { ring_bytes, ..*shape }, layout));
    fitting.filter(|head| HeapLayout::of(head).chunks >= needed).max_by_key(|head| head.pages)
}

/// As many pages as leave the first chunk where it is, and fit.
fn fit(shape: &PoolHead, layout: &HeapLayout) -> Option<PoolHead> {
    let with = |pages: u64| PoolHead { pages, ..*shape };
    let fits = |pages: u64| {
        let head = with(pages);
        head.end() <= head.bytes && HeapLayout::of(&head).first <= layout.first
    };
    let (mut most, mut too_many) = (0, shape.bytes / PAGE_BYTES + 1);
    while too_many - most > 1 {
        let middle = most + (too_many - most) / 2;
        if fits(middle) { most = middle } else { too_many = middle }
    }
    let head = with(most);
    (HeapLayout::of(&head).first == layout.first && LINE as u64 <= head.bytes).then_some(head)
}
