//! The file that holds the card's persistent memory while the card has no power, and what it has
//! accepted since it had.
//!
//! | where | holds |
//! |---|---|
//! | 0, 4096 | two heads; the valid one of the higher generation counts |
//! | 64 KiB | two images of the memory, one of which is in force |
//! | behind them | the journal of the generation in force |
//!
//! **Invariant.** The image in force with the journal behind it is the state of the card, at any
//! moment. An image that is in force is never written over in trapping mode: the next one is made
//! in the other place, and one write of a head puts it in force and empties the journal. In mapped
//! mode the host stores into the image in force, and what commands write comes to it through sealed
//! lines of the journal.
//!
//! **Fault model.** SIGKILL at any moment: each write that returned is in the file, the last one
//! may be there in part. Everything goes through the page cache, and is synchronised when an image
//! is put in force; what a crash of the computer itself leaves is whole only then.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use nearpm_interface::geometry::{LINE, POOLS_BASE};
use nearpm_newfile::sync_folder;
use nearpm_sim::core::Medium;

use crate::record::{RECORD_BYTES, Record};

const MAGIC: [u8; 8] = *b"NPSIMPM1";
const HEAD_BYTES: usize = 40;
const PAGE: usize = 4096;
/// First byte of the first image.
const IMAGES: u64 = 64 << 10;
/// Bytes that are read or compared at once.
const PIECE: usize = 1 << 20;
/// Largest memory of a card.
const MOST_BYTES: u64 = 1 << 40;

/// The file of a card that nobody else has.
pub struct Store {
    path: PathBuf,
    file: File,
    /// Bytes of the memory.
    bytes: u64,
    /// Image in force.
    image: u64,
    /// Of the head in force.
    generation: u64,
    /// Bytes of the journal.
    tail: u64,
}

/// Eight bytes that are other in the image than in the memory it is made of.
pub type Patch = (u64, [u8; 8]);

fn is_size(bytes: u64) -> bool {
    bytes.is_multiple_of(PAGE as u64) && (2 * POOLS_BASE..=MOST_BYTES).contains(&bytes)
}

fn encode_head(bytes: u64, image: u64, generation: u64) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..8].copy_from_slice(&MAGIC);
    for (at, value) in [(8, bytes), (16, image), (24, generation)] {
        head[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    let crc = crc32c::crc32c(&head[..32]);
    head[32..36].copy_from_slice(&crc.to_le_bytes());
    head
}

/// Memory, image and generation of a head.
fn decode_head(head: &[u8; HEAD_BYTES]) -> Option<(u64, u64, u64)> {
    let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
    let sealed = head[..8] == MAGIC && crc32c::crc32c(&head[..32]).to_le_bytes() == head[32..36];
    (sealed && is_size(word(8)) && word(16) < 2).then(|| (word(8), word(16), word(24)))
}

impl Store {
    /// Opens a card's file, or makes it where it is missing or empty, for a blank memory of
    /// `new_bytes`.
    ///
    /// # Errors
    /// If it is no card's file, is damaged, or another process has it. Then it was not changed.
    pub fn open(path: &Path, new_bytes: u64) -> Result<Store> {
        let named = |what: &str| format!("cannot {what} {}", path.display());
        let has_size = || {
            ensure!(
                is_size(new_bytes),
                "a card has no {new_bytes} bytes of memory: use a multiple of 4096 from 2 MiB on"
            );
            Ok(())
        };
        // A size that is refused leaves no file behind.
        if !path.exists() {
            has_size()?;
        }
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.with_context(|| named("open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!("{} is the memory of a card that another process serves: end that first", path.display());
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(|| named("lock")),
        }
        let length = file.metadata().with_context(|| named("look at"))?.len();
        let mut store = Store { path: path.to_owned(), file, bytes: new_bytes, image: 0, generation: 0, tail: 0 };
        if length == 0 {
            has_size()?;
            // In this order: what ends the process in between leaves a file that the next open
            // completes.
            store.put_head(0).with_context(|| named("write"))?;
            store.file.set_len(store.journal_start()).with_context(|| named("enlarge"))?;
            // A card acknowledges saves: the file's name must outlive a power cut as what is in it
            // does.
            store.file.sync_all().with_context(|| named("synchronise"))?;
            sync_folder(path, &store.file).with_context(|| named("synchronise the folder of"))?;
            return Ok(store);
        }
        let heads = [0, PAGE as u64].map(|at| {
            let mut head = [0; HEAD_BYTES];
            store.file.read_exact_at(&mut head, at).ok().and_then(|()| decode_head(&head))
        });
        let newest = heads.into_iter().flatten().max_by_key(|&(.., generation)| generation);
        let Some((bytes, image, generation)) = newest else {
            bail!("{} is no memory of a simulated card, or its heads are damaged: nothing was changed", path.display());
        };
        (store.bytes, store.image, store.generation) = (bytes, image, generation);
        if store.is_fresh(length) {
            store.file.set_len(store.journal_start()).with_context(|| named("enlarge"))?;
        } else if length < store.journal_start() {
            bail!(
                "{} is cut short: {length} bytes where a card of {bytes} bytes needs {}; nothing was changed",
                path.display(),
                store.journal_start()
            );
        }
        Ok(store)
    }

    /// Whether a file of so many bytes holds its first head and nothing else: its creation was
    /// interrupted.
    fn is_fresh(&self, length: u64) -> bool {
        self.generation == 1 && length == (PAGE + HEAD_BYTES) as u64
    }

    /// Bytes of the memory.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The file, for who maps the image in force.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// First byte of the image in force.
    pub fn image_start(&self) -> u64 {
        IMAGES + self.image * self.bytes
    }

    /// Bytes of the journal.
    pub fn journal_bytes(&self) -> u64 {
        self.tail
    }

    fn journal_start(&self) -> u64 {
        IMAGES + 2 * self.bytes
    }

    /// Takes the disk's room for both images, so that a store into a mapping of one cannot find the
    /// disk full.
    pub fn take_room(&self) -> Result<()> {
        let mut piece = vec![0; PAGE];
        for at in (IMAGES..self.journal_start()).step_by(PAGE) {
            self.file.read_exact_at(&mut piece, at).with_context(|| self.named("read"))?;
            self.file.write_all_at(&piece, at).with_context(|| self.named("take the disk's room for"))?;
        }
        Ok(())
    }

    fn named(&self, what: &str) -> String {
        format!("cannot {what} {}", self.path.display())
    }

    /// The memory of the image in force. Pages of zeros are not touched.
    pub fn medium(&self) -> Result<Medium> {
        let mut medium = Medium::blank(self.bytes as usize);
        let mut piece = vec![0; PIECE];
        for (number, target) in medium.bytes.chunks_mut(PIECE).enumerate() {
            let piece = &mut piece[..target.len()];
            self.read((number * PIECE) as u64, piece).with_context(|| self.named("read"))?;
            for (to, from) in target.chunks_mut(PAGE).zip(piece.chunks(PAGE)) {
                if from.iter().any(|&byte| byte != 0) {
                    to.copy_from_slice(from);
                }
            }
        }
        Ok(medium)
    }

    /// What was journalled behind the image in force. A record that was not written whole ends it:
    /// nobody was told of that.
    pub fn journal(&mut self) -> Result<Vec<Record>> {
        let length = self.file.metadata().with_context(|| self.named("look at"))?.len();
        let mut bytes = vec![0; length.saturating_sub(self.journal_start()) as usize];
        self.file.read_exact_at(&mut bytes, self.journal_start()).with_context(|| self.named("read"))?;
        let (records, _) = bytes.as_chunks::<RECORD_BYTES>();
        let records: Vec<_> = records.iter().map_while(|bytes| Record::decode(bytes, self.generation)).collect();
        self.tail = (records.len() * RECORD_BYTES) as u64;
        Ok(records)
    }

    /// Journals a record: when this returns it outlives the process.
    pub fn append(&mut self, record: &Record) -> Result<(), Error> {
        self.file.write_all_at(&record.encode(self.generation), self.journal_start() + self.tail)?;
        self.tail += RECORD_BYTES as u64;
        Ok(())
    }

    /// Reads the image in force.
    pub fn read(&self, address: u64, data: &mut [u8]) -> Result<(), Error> {
        self.file.read_exact_at(data, self.image_start() + address)
    }

    /// Stores into the image in force, as a host does that has mapped it.
    pub fn write(&self, address: u64, data: &[u8]) -> Result<(), Error> {
        self.file.write_all_at(data, self.image_start() + address)
    }

    /// Changes lines of the image in force, all or none of them, whatever kills the process.
    pub fn replace_lines(&mut self, lines: &[(u64, [u8; LINE])]) -> Result<(), Error> {
        let mut bytes = Vec::with_capacity((lines.len() + 1) * RECORD_BYTES);
        for &(address, data) in lines {
            bytes.extend(Record::Line { address, data }.encode(self.generation));
        }
        bytes.extend(Record::Seal.encode(self.generation));
        self.file.write_all_at(&bytes, self.journal_start())?;
        lines.iter().try_for_each(|(address, data)| self.write(*address, data))?;
        self.put_head(self.image)
    }

    /// Puts a memory in force and empties the journal.
    pub fn put(&mut self, memory: &[u8], patch: Option<Patch>) -> Result<(), Error> {
        assert_eq!(memory.len() as u64, self.bytes, "a card keeps its size");
        let other = 1 - self.image;
        let start = IMAGES + other * self.bytes;
        let mut piece = vec![0; PIECE];
        for (number, new) in memory.chunks(PIECE).enumerate() {
            let at = start + (number * PIECE) as u64;
            let old = &mut piece[..new.len()];
            self.file.read_exact_at(old, at)?;
            if old == new {
                continue;
            }
            for (page, (new, old)) in new.chunks(PAGE).zip(old.chunks(PAGE)).enumerate() {
                if new != old {
                    self.file.write_all_at(new, at + (page * PAGE) as u64)?;
                }
            }
        }
        if let Some((address, bytes)) = patch {
            self.file.write_all_at(&bytes, start + address)?;
        }
        self.file.sync_data()?;
        self.put_head(other)?;
        self.file.set_len(self.journal_start())?;
        self.file.sync_data()
    }

    /// Puts an image in force in a generation of its own, in which nothing is journalled.
    fn put_head(&mut self, image: u64) -> Result<(), Error> {
        let generation = self.generation + 1;
        let at = generation % 2 * PAGE as u64;
        self.file.write_all_at(&encode_head(self.bytes, image, generation), at)?;
        (self.image, self.generation, self.tail) = (image, generation, 0);
        Ok(())
    }
}

/// Whether an error says that the disk, or what the process may have of it, is full.
pub fn is_full(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 2 << 20;

    fn reopened(path: &Path) -> (Store, Vec<Record>) {
        let mut store = Store::open(path, 0).unwrap();
        let journal = store.journal().unwrap();
        (store, journal)
    }

    #[test]
    fn image_and_journal_survive_and_a_new_image_empties_the_journal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pm");
        let mut store = Store::open(&path, BYTES).unwrap();
        store.append(&Record::Seal).unwrap();
        assert!(Store::open(&path, BYTES).err().unwrap().to_string().contains("another process"));
        drop(store);
        let (mut store, journal) = reopened(&path);
        assert_eq!(journal, [Record::Seal]);
        let mut medium = store.medium().unwrap();
        medium.bytes[0x10_0000] = 7;
        store.put(&medium.bytes, Some((0x10_0040, *b"patched!"))).unwrap();
        drop(store);
        let (mut store, journal) = reopened(&path);
        assert_eq!(journal, []);
        let found = store.medium().unwrap();
        assert_eq!((found.bytes[0x10_0000], &found.bytes[0x10_0040..0x10_0048]), (7, &b"patched!"[..]));
        store.replace_lines(&[(0x10_0000, [9; LINE])]).unwrap();
        drop(store);
        let (store, journal) = reopened(&path);
        assert_eq!((journal, store.medium().unwrap().bytes[0x10_0000]), (vec![], 9));
    }

    #[test]
    fn a_size_that_is_refused_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card");
        for bytes in [0, 5000, BYTES - 1] {
            let refused = Store::open(&path, bytes).err().unwrap().to_string();
            assert!(refused.contains(&bytes.to_string()) && !path.exists(), "{bytes}: {refused}");
        }
    }

    #[test]
    fn a_torn_record_ends_the_journal_and_one_of_its_heads_is_enough() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pm");
        let mut store = Store::open(&path, BYTES).unwrap();
        store.put(&vec![1; BYTES as usize], None).unwrap();
        (0..3).for_each(|_| store.append(&Record::Seal).unwrap());
        let start = store.journal_start();
        store.file.set_len(start + 2 * RECORD_BYTES as u64 + 50).unwrap();
        // The head of the generation before.
        store.file.write_all_at(&[0xee; HEAD_BYTES], (store.generation + 1) % 2 * PAGE as u64).unwrap();
        drop(store);
        let (store, journal) = reopened(&path);
        assert_eq!((journal.len(), store.medium().unwrap().bytes[5]), (2, 1));
    }

    #[test]
    fn a_creation_that_was_interrupted_is_completed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, whole) = (folder.path().join("pm"), folder.path().join("whole"));
        let first = Store::open(&whole, BYTES).unwrap();
        let whole = std::fs::read(whole).unwrap();
        // As it is after each of the calls that make it.
        for length in [0, PAGE + HEAD_BYTES] {
            std::fs::write(&path, &whole[..length]).unwrap();
            let mut store = Store::open(&path, BYTES).unwrap();
            let journal = store.journal().unwrap();
            assert_eq!((store.bytes, store.generation, journal), (BYTES, first.generation, vec![]), "{length}");
            assert_eq!(std::fs::read(&path).unwrap(), whole);
        }
        // A card that has lived is not completed.
        std::fs::remove_file(&path).unwrap();
        let mut store = Store::open(&path, BYTES).unwrap();
        store.put(&vec![1; BYTES as usize], None).unwrap();
        store.file.set_len((PAGE + HEAD_BYTES) as u64).unwrap();
        drop(store);
        assert!(Store::open(&path, BYTES).err().unwrap().to_string().contains("cut short"));
    }

    #[test]
    fn what_is_no_memory_of_a_card_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pm");
        for content in [&b"a letter"[..], &[0; 9000]] {
            std::fs::write(&path, content).unwrap();
            assert!(Store::open(&path, BYTES).err().unwrap().to_string().contains("nothing was changed"));
            assert_eq!(std::fs::read(&path).unwrap(), content);
        }
        std::fs::remove_file(&path).unwrap();
        drop(Store::open(&path, BYTES).unwrap());
        File::options().write(true).open(&path).unwrap().set_len(BYTES).unwrap();
        assert!(Store::open(&path, BYTES).err().unwrap().to_string().contains("cut short"));
        assert!(
            Store::open(&folder.path().join("other"), 4097).err().unwrap().to_string().contains("multiple of 4096")
        );
    }
}
