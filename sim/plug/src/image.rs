//! The file that holds a card's persistent memory between processes.

use std::env::var;
use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use nearpm_interface::geometry::{LINE, LINE_U64, POOLS_BASE, SAVE_BASE};
use nearpm_interface::save::ArmWord;
use nearpm_newfile::{Durability, NewFile, take_room};
use nearpm_sim::core::Medium;

/// Bytes of a new card, unless `NEARPM_CARD_BYTES` says otherwise.
const USUAL_BYTES: u64 = 256 << 20;
const PAGE: usize = 4096;
/// Bytes that are read at once.
const PIECE: usize = 256 * PAGE;

/// The file of a card that nobody else has.
pub struct Image {
    path: PathBuf,
    /// Kept open: it holds the lock.
    _file: File,
    map: MmapRaw,
}

fn context(what: &str, path: &Path) -> impl Fn(std::io::Error) -> String {
    move |error| format!("cannot {what} {}: {error}", path.display())
}

/// Whether a page, or less at an end, is all zeros: compared as a whole, since every byte of a card
/// comes by here whenever its file is opened.
fn is_zero(page: &[u8]) -> bool {
    page == &[0; PAGE][..page.len()]
}

fn is_blank(medium: &Medium) -> bool {
    medium.bytes.chunks(PAGE).all(is_zero)
}

/// The kind of state that a card left its memory in.
fn arm_word(medium: &Medium) -> Option<ArmWord> {
    let word = &medium.bytes[SAVE_BASE as usize..][..8];
    ArmWord::decode(u64::from_le_bytes(word.try_into().expect("eight bytes")))
}

fn new_bytes() -> Result<u64, String> {
    match var("NEARPM_CARD_BYTES").as_deref() {
        Err(_) | Ok("") => Ok(USUAL_BYTES),
        Ok(text) => match text.parse() {
            Ok(bytes) if is_size(bytes) => Ok(bytes),
            _ => Err(format!("NEARPM_CARD_BYTES is {text:?}: use a multiple of 4096 from 2097152 on")),
        },
    }
}

fn is_size(bytes: u64) -> bool {
    bytes.is_multiple_of(PAGE as u64) && (2 * POOLS_BASE..=1 << 40).contains(&bytes)
}

impl Image {
    /// Opens, locks and reads a card's file; makes one that is missing. `at_rest` shuts a card down
    /// that was not.
    pub fn open(path: &Path, at_rest: impl Fn(Medium) -> Result<Medium, String>) -> Result<(Image, Medium), String> {
        loop {
            let file = match OpenOptions::new().read(true).write(true).open(path) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    let medium = at_rest(Medium::blank(new_bytes()? as usize))?;
                    match write(NewFile::create(path), &medium, 0o600) {
                        Ok(()) => continue,
                        // Another process was faster.
                        Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                        Err(error) => return Err(context("create", path)(error)),
                    }
                }
                Err(error) => return Err(context("open", path)(error)),
            };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(format!("the card in {} is in another process: let that end first", path.display()));
                }
                Err(TryLockError::Error(error)) => return Err(context("lock", path)(error)),
            }
            if !is_still(path, &file)? {
                continue;
            }
            let medium = read(path, &file)?;
            match arm_word(&medium) {
                Some(ArmWord::Clean(_)) => {
                    // Lines arrive by stores to the mapping, which have nobody to tell that the
                    // disk is full.
                    take_room(&file, 0..medium.bytes.len() as u64)
                        .map_err(context("take the disk's room for", path))?;
                    let map = MmapOptions::new().map_raw(&file).map_err(context("map", path))?;
                    return Ok((Image { path: path.to_owned(), _file: file, map }, medium));
                }
                Some(ArmWord::Running(_)) => replace(path, &at_rest(medium)?)?,
                // A card that was never switched on.
                Some(ArmWord::Blank) if is_blank(&medium) => replace(path, &at_rest(medium)?)?,
                Some(ArmWord::Blank) | None => {
                    return Err(format!("{} is no memory of a card: nothing was changed", path.display()));
                }
            }
        }
    }

    /// Bytes of a line that has arrived at the card, in words from the first: what kills the
    /// process may come in between.
    pub fn store(&self, address: u64, data: &[u8; LINE], strobes: u64) {
        assert!(address as usize + LINE <= self.map.len() && address.is_multiple_of(LINE as u64));
        for (number, word) in data.as_chunks::<8>().0.iter().enumerate() {
            // SAFETY: the line lies in the mapping, whose pages begin at multiples of a word; this
            // process alone has the file, and every access to the mapping is one of these.
            let place = unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(address as usize + number * 8).cast()) };
            let chosen = (strobes >> (number * 8)) as u8;
            let mask =
                (0..8).filter(|byte| chosen >> byte & 1 == 1).fold(0, |mask, byte| mask | 0xff_u64 << (byte * 8));
            let old = place.load(Ordering::Relaxed);
            place.store(old & !mask | u64::from_le_bytes(*word) & mask, Ordering::Release);
        }
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// What has arrived in a range so far.
    pub fn load(&self, range: Range<u64>) -> Vec<u8> {
        let (first, last) = (range.start / 8, range.end.div_ceil(8));
        assert!(last * 8 <= self.bytes());
        // SAFETY: as in `store`.
        let word = |number: u64| unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(number as usize * 8).cast()) };
        let words = (first..last).flat_map(|number| word(number).load(Ordering::Relaxed).to_le_bytes());
        words.skip((range.start % 8) as usize).take((range.end - range.start) as usize).collect()
    }

    /// Bytes that a command has written, line by line from the first.
    pub fn store_bytes(&self, address: u64, bytes: &[u8]) {
        let (mut at, end) = (address, address + bytes.len() as u64);
        while at < end {
            let (start, inside) = (at / LINE_U64 * LINE_U64, (at % LINE_U64) as usize);
            let length = (LINE - inside).min((end - at) as usize);
            let mut line = [0; LINE];
            line[inside..inside + length].copy_from_slice(&bytes[(at - address) as usize..][..length]);
            self.store(start, &line, u64::MAX >> (LINE - length) << inside);
            at += length as u64;
        }
    }

    /// Puts the memory of a card without power in the file's place.
    pub fn replace(&self, medium: &Medium) -> Result<(), String> {
        replace(&self.path, medium)
    }

    /// Makes the file survive a crash of this computer, too.
    pub fn sync(&self) -> Result<(), String> {
        self.map.flush().map_err(context("write", &self.path))
    }
}

/// Whether the path names this file: it may have been replaced before it was locked.
fn is_still(path: &Path, file: &File) -> Result<bool, String> {
    let ours = file.metadata().map_err(context("look at", path))?;
    match path.metadata() {
        Ok(named) => Ok((named.dev(), named.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(context("look at", path)(error)),
    }
}

fn read(path: &Path, mut file: &File) -> Result<Medium, String> {
    let bytes = file.metadata().map_err(context("look at", path))?.len();
    if !is_size(bytes) {
        return Err(format!("{} has {bytes} bytes, which no card has: nothing was changed", path.display()));
    }
    // Pages of zeros are not touched: they take no memory.
    let mut medium = Medium::blank(bytes as usize);
    let mut piece = vec![0; PIECE];
    for target in medium.bytes.chunks_mut(PIECE) {
        let piece = &mut piece[..target.len()];
        file.read_exact(piece).map_err(context("read", path))?;
        for (to, from) in target.chunks_mut(PAGE).zip(piece.chunks(PAGE)).filter(|(_, from)| !is_zero(from)) {
            to.copy_from_slice(from);
        }
    }
    Ok(medium)
}

/// Writes a card's memory to a file that is being made, and gives that its name. Pages of zeros are
/// holes.
fn write(new: std::io::Result<NewFile>, medium: &Medium, mode: u32) -> std::io::Result<()> {
    let new = new?;
    new.file().set_permissions(Permissions::from_mode(mode))?;
    new.file().set_len(medium.bytes.len() as u64)?;
    for (number, page) in medium.bytes.chunks(PAGE).enumerate().filter(|(_, page)| !is_zero(page)) {
        new.file().write_all_at(page, (number * PAGE) as u64)?;
    }
    new.publish(Durability::Durable).map(drop)
}

fn replace(path: &Path, medium: &Medium) -> Result<(), String> {
    let mode = path.metadata().map_or(0o600, |metadata| metadata.permissions().mode());
    write(NewFile::replace(path), medium, mode).map_err(context("replace", path))
}
