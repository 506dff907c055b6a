//! Pools of PMDK's libpmemobj become pools of this library, without PMDK: objects, type numbers,
//! root, and every byte of them.
//!
//! Objects get other places, so identifiers (`PMEMoid`) in them must follow. They are known by the
//! 64 bits of their pool: a word at a multiple of eight that is the pool's `pool_uuid_lo`, and
//! behind it a word that is an offset inside of an object. Both become those of the new pool. One
//! that leads into no object, as of one that was freed, keeps its bytes, so that it is of no known
//! pool; such ones are counted. Offsets that a program keeps without the pool's number beside them
//! look like any number and stay as they are.

use std::path::Path;

use thiserror::Error;

use super::original::{Object, Original};
use super::{Header, create_with, layout_of, uuid_lo};
use crate::direct::DirectPool;
use crate::error::{Error, Problem};
use crate::options::Options;
use crate::typed::{Load, Store};

pub use super::original::Refusal;

/// Bytes that a transaction of the import stores, or more where one object has more.
const BATCH: usize = 256 << 10;
/// How often a larger pool is tried where objects do not fit one of the file's bytes.
const LARGER: u32 = 3;

/// What a pool of PMDK holds.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holds {
    /// The layout's name; bytes that are no UTF-8 are replaced.
    pub layout: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// Objects, with the root.
    pub objects: u64,
    /// Bytes of these that programs may use.
    pub object_bytes: u64,
}

/// What was imported.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Bytes of the new pool.
    pub bytes: u64,
    /// Objects, with the root.
    pub objects: u64,
    /// Bytes of these that programs may use.
    pub object_bytes: u64,
    /// Identifiers that lead to the new places.
    pub identifiers: u64,
    /// Identifiers of the pool that lead into no object: they are as they were.
    pub dangling: u64,
}

/// Why a pool was not imported. Nothing is left behind.
#[derive(Debug, Error)]
pub enum ImportError {
    /// PMDK's pool.
    #[error("{path} {refusal}")]
    Original {
        /// Its path.
        path: String,
        /// What is wrong with it.
        refusal: Refusal,
    },
    /// The new pool.
    #[error(transparent)]
    New(#[from] Error),
}

/// Where an object was, and where it is.
#[derive(Clone, Copy)]
struct Moved {
    object: Object,
    data: u64,
}

struct Import<'a> {
    original: &'a Original,
    path: &'a str,
    /// By ascending old offsets.
    moved: Vec<Moved>,
    /// `pool_uuid_lo` of the new pool.
    uuid: u64,
}

/// The pool and its objects, without those that are PMDK's own.
fn open(from: &Path) -> Result<(Original, Vec<Object>), Refusal> {
    let original = Original::open(from)?;
    let mut objects = original.objects()?;
    let (root, root_bytes) = original.root;
    if root != 0 {
        let damaged = |what| Refusal::Damaged { what, offset: root };
        let at = objects.binary_search_by_key(&root, |object| object.offset);
        let object = objects[at.map_err(|_| damaged("the root is no object"))?];
        if root_bytes > object.bytes {
            return Err(damaged("the root has fewer bytes than the pool says"));
        }
    }
    objects.retain(|object| !object.internal || object.offset == root);
    Ok((original, objects))
}

fn refused(from: &Path) -> impl Fn(Refusal) -> ImportError {
    let path = from.display().to_string();
    move |refusal| ImportError::Original { path: path.clone(), refusal }
}

/// Looks through the tables of PMDK's pool at `from`, and says what would be imported.
///
/// # Errors
/// [`ImportError::Original`], as of [`import`].
pub fn examine(from: &Path) -> Result<Holds, ImportError> {
    let (original, objects) = open(from).map_err(refused(from))?;
    Ok(Holds {
        layout: layout_of(&original.layout),
        bytes: original.bytes,
        objects: objects.len() as u64,
        object_bytes: objects.iter().map(usable).sum(),
    })
}

/// Imports PMDK's pool at `from`, which no program has open, to a new pool at a path or at
/// `card:NAME/POOL`. The new pool has `bytes` bytes; by default as many as PMDK's, or more where
/// its objects need them. It is read again and compared before this returns.
///
/// # Errors
/// [`ImportError::Original`] for a file that is no such pool, is damaged, was not closed, or
/// belongs to a pool set; [`ImportError::New`] with the errors of [`DirectPool::create`].
pub fn import(from: &Path, to: &str, bytes: Option<u64>, options: &Options) -> Result<Imported, ImportError> {
    let (original, objects) = open(from).map_err(refused(from))?;
    let path = from.display().to_string();
    let mut tried = 0;
    loop {
        let size = bytes.unwrap_or(original.bytes.saturating_mul(1 << tried));
        match Import::run(&original, &path, &objects, to, size, options) {
            Err(ImportError::New(Error::Full { .. })) if bytes.is_none() && tried < LARGER => tried += 1,
            done => return done,
        }
    }
}

impl Import<'_> {
    fn run(
        original: &Original,
        path: &str,
        objects: &[Object],
        to: &str,
        bytes: u64,
        options: &Options,
    ) -> Result<Imported, ImportError> {
        let mut moved = Vec::new();
        moved.try_reserve_exact(objects.len()).map_err(Error::no_memory("where objects are"))?;
        let mut import = Import { original, path, moved, uuid: 0 };
        let mut counted = Imported::default();
        let pool = DirectPool::create_with(to, bytes, options, |pool| {
            import.uuid = uuid_lo(pool.id());
            import.place(pool, objects)?;
            counted = import.fill(pool)?;
            // On a card, where the pool has its name already, no program takes what a killed
            // process leaves for a whole one.
            import.put_head(pool)?;
            Ok::<(), ImportError>(())
        })?;
        counted.bytes = pool.bytes();
        let done = pool.close().map_err(ImportError::New).and_then(|()| import.compare(to, options));
        if let Err(error) = done {
            crate::pool::remove(to)?;
            return Err(error);
        }
        Ok(counted)
    }

    /// Allocates all objects, with their headers.
    fn place(&mut self, pool: &DirectPool, objects: &[Object]) -> Result<(), Error> {
        for batch in objects.chunks(BATCH / 1024) {
            let placed = pool.tx(|tx| {
                let mut placed = Vec::with_capacity(batch.len());
                for &object in batch {
                    let bytes = usable(&object);
                    let spare = if object.alignment > Header::BYTES { object.alignment } else { 0 };
                    let start = tx.alloc_bytes(bytes + Header::BYTES + spare)?;
                    let first = start + Header::BYTES;
                    let distance = if spare == 0 { 0 } else { first.next_multiple_of(spare) - first };
                    if distance != 0 {
                        tx.write(start, &Header::forward(distance).to_bytes())?;
                    }
                    let header = Header::new(object.type_num, bytes, distance);
                    let header = if spare != 0 { header.aligned() } else { header };
                    tx.write(start + distance, &header.to_bytes())?;
                    placed.push(Moved { object, data: first + distance });
                }
                Ok(placed)
            })?;
            self.moved.extend(placed);
        }
        Ok(())
    }

    /// Stores all bytes.
    fn fill(&self, pool: &DirectPool) -> Result<Imported, ImportError> {
        let mut counted = Imported { objects: self.moved.len() as u64, ..Imported::default() };
        let mut batch: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut waiting = 0;
        for moved in &self.moved {
            counted.object_bytes += usable(&moved.object);
            self.pieces(moved, |at, bytes, found| {
                counted.identifiers += found.identifiers;
                counted.dangling += found.dangling;
                waiting += bytes.len();
                batch.push((at, bytes));
                if waiting >= BATCH {
                    store(pool, &batch)?;
                    batch.clear();
                    waiting = 0;
                }
                Ok(())
            })?;
        }
        store(pool, &batch)?;
        Ok(counted)
    }

    /// Goes through an object's bytes as they are in the new pool, in pieces, each with its offset
    /// there.
    fn pieces(
        &self,
        moved: &Moved,
        mut take: impl FnMut(u64, Vec<u8>, Imported) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        let Object { offset, bytes, .. } = moved.object;
        let mut at = 0;
        while at < bytes {
            let length = (bytes - at).min(BATCH as u64);
            // An identifier may begin in the last word of a piece.
            let ahead = (bytes - at - length).min(8);
            let before = at.min(8);
            let mut piece = vec![0; (before + length + ahead) as usize];
            self.original
                .read(offset + at - before, &mut piece)
                .map_err(|refusal| ImportError::Original { path: self.path.to_owned(), refusal })?;
            let found = self.follow(&mut piece, before as usize, (before + length) as usize);
            piece.truncate((before + length) as usize);
            take(moved.data + at, piece.split_off(before as usize), found)?;
            at += length;
        }
        Ok(())
    }

    /// Lets the identifiers in a piece lead to the new places; those that begin in `start..end` are
    /// counted.
    fn follow(&self, piece: &mut [u8], start: usize, end: usize) -> Imported {
        let mut counted = Imported::default();
        let word = |piece: &[u8], at: usize| u64::from_le_bytes(*piece[at..].first_chunk().expect("eight bytes"));
        let mut at = 0;
        while at + 16 <= piece.len() {
            if word(piece, at) != self.original.uuid {
                at += 8;
                continue;
            }
            let is_counted = u64::from((start..end).contains(&at));
            if let Some(place) = self.new_place(word(piece, at + 8)) {
                piece[at..at + 8].copy_from_slice(&self.uuid.to_le_bytes());
                piece[at + 8..at + 16].copy_from_slice(&place.to_le_bytes());
                counted.identifiers += is_counted;
                at += 16;
            } else {
                counted.dangling += is_counted;
                at += 8;
            }
        }
        counted
    }

    fn new_place(&self, old: u64) -> Option<u64> {
        let behind = self.moved.partition_point(|moved| moved.object.offset <= old);
        let Moved { object, data } = *self.moved.get(behind.checked_sub(1)?)?;
        let inside = old - object.offset;
        (inside == 0 || inside < object.bytes).then_some(data + inside)
    }

    /// Makes the head, with the layout, the root, and what is allocated.
    fn put_head(&self, pool: &DirectPool) -> Result<u64, Error> {
        let (root, root_bytes) = self.original.root;
        let root = if root == 0 { 0 } else { self.new_place(root).expect("the root is an object") };
        let allocated: u64 = self.moved.iter().map(|moved| usable(&moved.object) + Header::BYTES).sum();
        create_with(pool, &self.original.layout, [root, if root == 0 { 0 } else { root_bytes }, allocated])
    }

    /// Opens the new pool again, and compares all objects.
    fn compare(&self, to: &str, options: &Options) -> Result<(), ImportError> {
        let pool = DirectPool::open(to, options)?;
        let mut there = vec![0; BATCH];
        for moved in &self.moved {
            self.pieces(moved, |at, bytes, _| {
                let there = &mut there[..bytes.len()];
                pool.read(|reader| reader.read(at, there))?;
                if *there == bytes[..] {
                    return Ok(());
                }
                let what = "an imported object differs from PMDK's";
                Err(Problem::Corrupt { what, offset: at }.at(to).into())
            })?;
        }
        Ok(pool.close()?)
    }
}

/// Bytes of an object that a program may use in the new pool.
fn usable(object: &Object) -> u64 {
    object.bytes.next_multiple_of(Header::BYTES)
}

fn store(pool: &DirectPool, batch: &[(u64, Vec<u8>)]) -> Result<(), Error> {
    pool.tx(|tx| batch.iter().try_for_each(|(at, bytes)| tx.write(*at, bytes)))
}
