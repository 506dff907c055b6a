//! Where a pool is: in a file, or on the card that `NEARPM_CARD` names.
//!
//! A program knows its pools by paths, looks whether they exist, and removes them. So a pool on the
//! card has a file at its path, too: one line that says where the pool is. A path is a pool on the
//! card if such a file is there; a new pool goes to the card while `NEARPM_CARD` is set. Who
//! removes the file leaves the pool on the card, where it can still be opened by its location,
//! `card:sim/NAME`.
//!
//! The card itself comes with libraries of their own (`sim/pmemobj-card`, `sim/c-card`), which
//! provide it when they are loaded.

#![warn(missing_docs)]

use std::fmt;
use std::fs::{File, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use nearpm::{Error, Problem};
use nearpm_newfile::{Durability, NewFile};

/// Name under which the card of `NEARPM_CARD` is known.
pub const CARD: &str = "sim";

/// What the file of a pool on a card begins with.
const POINTER: &str = "nearpm-pool ";
/// Longest file of that kind.
const POINTER_BYTES: u64 = 100;

/// A card in the computer. Dropping it takes the card out.
pub type Plugged = Box<dyn Send>;

type Plug = fn(&Path) -> Result<Plugged, String>;

/// Why a pool has no place.
#[derive(Debug)]
pub enum Refused {
    /// `NEARPM_CARD` is set, and the library has no card.
    NoCard,
    /// The card is the parent's of this process.
    Forked,
    /// The card cannot be put in, and why.
    Card(String),
    /// The file of the path cannot be looked at or written: what was tried, and what the system
    /// said.
    System(String, std::io::Error),
    /// What the library says of a pool.
    Pool(Error),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::NoCard => f.write_str(
                "NEARPM_CARD is set, and this library has no simulated card: use the one that \
                 `./x pmemobj --simulated-card` or `./x libnearpm --simulated-card` builds",
            ),
            Refused::Forked => f.write_str(
                "this process was forked while its parent had a pool on the card open: open pools in one of the two",
            ),
            Refused::Card(why) => write!(f, "NEARPM_CARD: {why}"),
            Refused::System(what, error) => write!(f, "{what}: {error}"),
            Refused::Pool(error) => error.fmt(f),
        }
    }
}

static PLUG: OnceLock<Plug> = OnceLock::new();

/// Says how the card of a file is put in and made known as [`CARD`].
pub fn provide(plug: Plug) {
    // Whoever was first stays.
    let _ = PLUG.set(plug);
}

/// The card that is in.
struct Socket {
    _plugged: Plugged,
    /// Sessions that there are.
    users: usize,
    process: u32,
}

/// Locked also while the card is put in or taken out.
static SOCKET: Mutex<Option<Socket>> = Mutex::new(None);

/// Keeps the card in, for a process.
pub struct Session(u32);

impl Drop for Session {
    fn drop(&mut self) {
        // In a child of `fork` another thread of the parent may hold the lock for ever, and the
        // card is the parent's.
        if self.0 != std::process::id() {
            return;
        }
        let mut socket = SOCKET.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(card) = socket.as_mut() else { return };
        card.users -= 1;
        if card.users == 0 {
            *socket = None;
        }
    }
}

fn card_file() -> Option<PathBuf> {
    std::env::var_os("NEARPM_CARD").filter(|file| !file.is_empty()).map(PathBuf::from)
}

/// Puts the card in, unless it is; `None` where none is asked for.
fn session() -> Result<Option<Session>, Refused> {
    let Some(file) = card_file() else { return Ok(None) };
    let plug = PLUG.get().ok_or(Refused::NoCard)?;
    let mut socket = SOCKET.lock().unwrap_or_else(PoisonError::into_inner);
    match socket.as_mut() {
        Some(card) if card.process == std::process::id() => card.users += 1,
        Some(_) => return Err(Refused::Forked),
        None => {
            let plugged = plug(&file).map_err(Refused::Card)?;
            *socket = Some(Socket { _plugged: plugged, users: 1, process: std::process::id() });
        }
    }
    Ok(Some(Session(std::process::id())))
}

/// Where a pool is, and what keeps it reachable.
pub struct Place {
    /// As the library below names it.
    pub location: String,
    session: Option<Session>,
    /// The file that is to say so, of a new pool on the card.
    pointer: Option<Pointer>,
}

struct Pointer {
    path: PathBuf,
    /// A blank file is there, whose place it takes.
    replaces: bool,
}

/// Whether a program has named a place on a card instead of a path.
pub fn is_location(path: &str) -> bool {
    path.starts_with("card:")
}

/// The location that a file says, if it is one that does.
fn pointed(path: &str) -> Option<String> {
    let mut text = String::new();
    ordinary_file(path)?.take(POINTER_BYTES).read_to_string(&mut text).ok()?;
    text.strip_prefix(POINTER)?.strip_suffix('\n').filter(|location| is_location(location)).map(str::to_owned)
}

/// A name on the card for a path: the start of the file's name, and a number that no other pool
/// has.
fn name_for(path: &str, number: u64) -> String {
    let file = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    let sound = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
    let start: String = file.chars().map(|c| if sound(c) { c } else { '_' }).take(15).collect();
    format!("{start}-{number:016x}")
}

/// Opens a file that is one. Whoever opens a FIFO waits for a writer, and opening a device may do
/// something.
pub fn ordinary_file(path: &str) -> Option<File> {
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    if is_file { File::open(path).ok() } else { None }
}

impl Place {
    /// Of a pool that exists.
    ///
    /// # Errors
    /// The card that it is on cannot be put in.
    pub fn of(path: &str) -> Result<Place, Refused> {
        let location = if is_location(path) { Some(path.to_owned()) } else { pointed(path) };
        let session = if location.is_some() { session()? } else { None };
        Ok(Place { location: location.unwrap_or_else(|| path.to_owned()), session, pointer: None })
    }

    /// Of a new one, and its bytes: 0 asks for those of a blank file that exists. `number` is a
    /// random one.
    ///
    /// # Errors
    /// Something is at the path, or the card cannot be put in.
    pub fn of_new(path: &str, bytes: u64, number: u64) -> Result<(Place, u64), Refused> {
        if is_location(path) || card_file().is_none() {
            let session = if is_location(path) { session()? } else { None };
            return Ok((Place { location: path.to_owned(), session, pointer: None }, bytes));
        }
        let found = match std::fs::metadata(path) {
            Ok(metadata) => Some(metadata.len()),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(Refused::System(path.to_owned(), error)),
        };
        let refuse = |problem| Err(Refused::Pool(Error::Pool { location: path.to_owned(), problem }));
        let bytes = match (found, bytes) {
            (None, 0) => return refuse(Problem::NotFound),
            (Some(bytes), 0) if is_blank(path) => bytes,
            (None, bytes) => bytes,
            (Some(_), _) => return refuse(Problem::Exists),
        };
        let location = format!("card:{CARD}/{}", name_for(path, number));
        let pointer = Some(Pointer { path: PathBuf::from(path), replaces: found.is_some() });
        Ok((Place { location, session: session()?, pointer }, bytes))
    }

    /// The pool on a card has been made: from now on it is known by its path. The file there gets
    /// these permissions, or those that the system gives to new files.
    ///
    /// # Errors
    /// What the system refused.
    pub fn announce(&mut self, mode: Option<u32>) -> Result<(), Refused> {
        let Some(pointer) = self.pointer.take() else { return Ok(()) };
        write_pointer(&pointer, &self.location, mode)
            .map_err(|error| Refused::System("create the file of a pool on the card".to_owned(), error))
    }

    /// Whether the pool is a file.
    pub fn is_file(&self) -> bool {
        !is_location(&self.location)
    }

    /// The file that was made for a new pool of which so many bytes were asked for; `None` where
    /// there was one (0 bytes), and on a card.
    pub fn file_made(&self, bytes: u64) -> Option<String> {
        (bytes != 0 && self.is_file()).then(|| self.location.clone())
    }

    /// What has to live as long as the pool is open.
    pub fn into_session(self) -> Option<Session> {
        self.session
    }
}

fn write_pointer(Pointer { path, replaces }: &Pointer, location: &str, mode: Option<u32>) -> std::io::Result<()> {
    let new = if *replaces { NewFile::replace(path) } else { NewFile::create(path) }?;
    new.file().write_all(format!("{POINTER}{location}\n").as_bytes())?;
    if let Some(mode) = mode {
        new.file().set_permissions(Permissions::from_mode(mode & 0o7777))?;
    }
    new.publish(Durability::Durable).map(drop)
}

/// Whether a pool may be made of a file: its first page is blank, as for pools in files.
fn is_blank(path: &str) -> bool {
    let mut page = Vec::new();
    let read = ordinary_file(path).map(|file| file.take(4096).read_to_end(&mut page));
    read.is_some_and(|read| read.is_ok()) && page.iter().all(|&byte| byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_such_as_cards_take() {
        for path in ["/a/pool", "pool", "/a/very long name: with (odd) characters, é", "/", ""] {
            let name = name_for(path, u64::MAX);
            let location = format!("card:{CARD}/{name}");
            assert!(nearpm::Location::parse(&location).is_ok(), "{location}");
            assert!((POINTER.len() + location.len() + 1) as u64 <= POINTER_BYTES);
        }
        assert_eq!(name_for("/a/my pool.obj", 10), "my_pool.obj-000000000000000a");
    }

    #[test]
    fn only_files_that_say_so_point_to_a_card() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pool");
        let text = path.to_str().unwrap();
        assert_eq!(pointed(text), None);
        let pointer = Pointer { path: path.clone(), replaces: false };
        write_pointer(&pointer, "card:sim/p", Some(0o640)).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o640);
        assert_eq!(pointed(text).as_deref(), Some("card:sim/p"));
        for other in ["nearpm-pool card:sim/p", "nearpm-pool /etc/x\n", "card:sim/p\n", "\0\0", ""] {
            std::fs::write(&path, other).unwrap();
            assert_eq!(pointed(text), None, "{other:?}");
        }
    }
}
