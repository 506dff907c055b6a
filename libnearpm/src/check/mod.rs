//! Looking into pools that nobody has open: what is wrong, what is in them, and putting them right.
//!
//! An [`Image`] is a pool in private pages of this process, under a lock that others may share who
//! only look, too. A log that waits is read there: the pool itself stays as it is.
//!
//! | file | holds |
//! |---|---|
//! | `head.rs`, `log.rs`, `tables.rs` | finding them, each in its part of a pool |
//! | `one_bit.rs` | what checksums say of single damaged bits |
//! | `info.rs` | what a pool is, without judging it |
//! | `contents.rs` | whose data a pool holds |
//! | `resize.rs` | pools that become larger or shorter |
//! | `copy.rs` | sound copies, also of another size |
//! | `region.rs`, `hash_table.rs` | the same for regions of GPUs, which are no pools and lie in the same format's terms, and for their hash tables |
//! | `repair.rs` | putting right what can be, behind a backup of what is overwritten |

use std::path::Path;

use nearpm_interface::media::PoolHead;

use crate::error::{Error, Problem};
use crate::memory::{Backing, Medium, Memory, VolatileMemory};
use crate::pool::on_card::{self, Name};
use crate::pool::{Location, file, format};
use crate::recovery::{Recovery, recover};
use crate::statistics::HeapState;

mod contents;
mod copy;
mod hash_table;
mod head;
mod info;
mod log;
mod one_bit;
mod region;
mod repair;
mod resize;
mod tables;
#[cfg(test)]
mod tests;

pub use crate::damage::Class;
pub use contents::{Contents, TypeInfo};
pub use copy::{Copied, copy};
pub use info::{Info, LogInfo, Region};
pub use region::{RegionInfo, RegionObject};
pub use repair::{Repair, repair};
pub use resize::{Resized, resize};
pub(crate) use tables::Tables;

/// One damage.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub class: Class,
    /// Where, as an offset in the pool.
    pub offset: u64,
    /// Whether a repair can put it right without losing anything.
    pub repairable: bool,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} at offset {:#x}", self.class, self.class.what(), self.offset)
    }
}

/// What a check found.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Everything that is wrong.
    pub findings: Vec<Finding>,
    /// What the recovery would do, or has done to a repaired pool; `None` where damage is in its
    /// way.
    pub recovery: Option<Recovery>,
    /// Whether the tables behind the log were judged. They are not while the log cannot be read.
    pub judged_heap: bool,
}

impl Report {
    /// Nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }
}

/// An object of a pool.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Offset in the pool.
    pub offset: u64,
    /// Bytes that it has.
    pub bytes: u64,
}

/// A damage with what belongs in its place.
pub(crate) struct Found {
    finding: Finding,
    /// Bytes that belong at the finding's offset.
    patch: Option<Vec<u8>>,
}

impl Found {
    fn new(class: Class, offset: u64) -> Found {
        Found { finding: Finding { class, offset, repairable: false }, patch: None }
    }

    /// What a loader met.
    fn of(error: &Error) -> Found {
        match error {
            Error::Corrupt { what, offset } => {
                let class = Class::of(what).expect("what a loader refuses has a class");
                Found::new(class, *offset)
            }
            other => unreachable!("private pages fail in no other way: {other}"),
        }
    }

    fn mend(mut self, bytes: Vec<u8>) -> Found {
        self.finding.repairable = true;
        self.patch = Some(bytes);
        self
    }

    fn mend_word(self, word: Option<u64>) -> Found {
        match word {
            Some(word) => self.mend(word.to_le_bytes().to_vec()),
            None => self,
        }
    }
}

/// A pool in private pages.
pub struct Image {
    medium: Medium,
    location: String,
    /// Outcome of the recovery, once it was made.
    recovered: Option<Result<Recovery, Finding>>,
}

impl Image {
    /// Reads a pool in a file, while others may read it at the same time, or a pool on a card that
    /// is open in this process.
    ///
    /// # Errors
    /// [`Problem::InUse`] while somebody has it open for writing; what the system refuses.
    pub fn open(location: &str) -> Result<Image, Error> {
        match Location::parse(location)? {
            Location::File(path) => {
                let memory = file::open_shared(Path::new(&path))?;
                Ok(Image::of(Medium::new(Backing::Private(memory)), location))
            }
            Location::Card { card, pool } => {
                let bytes = on_card::read(&Name { card: &card, pool: &pool, location })?;
                Ok(Image::of(Medium::new(Backing::Other(Box::new(VolatileMemory::from_bytes(bytes)))), location))
            }
        }
    }

    /// Reads the pool that a memory holds.
    pub fn open_in(memory: &dyn Memory) -> Image {
        let mut bytes = vec![0; memory.bytes() as usize];
        memory.load(0, &mut bytes);
        Image::of(Medium::new(Backing::Other(Box::new(VolatileMemory::from_bytes(bytes)))), "in memory")
    }

    fn of(medium: Medium, location: &str) -> Image {
        Image { medium, location: location.to_owned(), recovered: None }
    }

    /// Refuses what was never a pool: that is no damage.
    fn refuse_foreign(&self) -> Result<(), Error> {
        if region::is_one(&self.medium) {
            return Ok(());
        }
        head::refuse_foreign(&self.medium).map_err(|problem| problem.at(&self.location))
    }

    /// The head, which must be sound.
    fn head(&self) -> Result<PoolHead, Error> {
        format::read(&self.medium).map_err(|problem| problem.at(&self.location))
    }

    /// Reads the log, here and not in the pool.
    fn recover(&mut self, head: &PoolHead) -> Result<Recovery, Finding> {
        *self.recovered.get_or_insert_with(|| match recover(&self.medium, head) {
            Ok((recovery, _)) => Ok(recovery),
            Err(error) => Err(Found::of(&error).finding),
        })
    }

    /// The tables of the recovered pool.
    fn tables(&mut self) -> Result<Tables, Error> {
        let head = self.head()?;
        let named = |finding: Finding| {
            let (what, offset) = (finding.class.what(), finding.offset);
            Problem::Corrupt { what, offset }.at(&self.location)
        };
        if self.recovered.is_none()
            && let Some(found) = log::examine(&self.medium, &head).first()
        {
            return Err(named(found.finding));
        }
        if let Err(finding) = self.recover(&head) {
            let (what, offset) = (finding.class.what(), finding.offset);
            return Err(Problem::Corrupt { what, offset }.at(&self.location));
        }
        let tables = Tables::load(&self.medium, &head).map_err(|error| match error {
            Error::Corrupt { what, offset } => Problem::Corrupt { what, offset }.at(&self.location),
            other => other,
        });
        self.alive()?;
        tables
    }

    /// Whether everything that was looked at was there: a file that is cut short, or cannot be
    /// read, looks blank.
    fn alive(&self) -> Result<(), Error> {
        self.medium.backing().alive()
    }

    /// Looks for damage in everything that the library itself keeps in the pool: not in what
    /// programs have stored, of which it knows nothing.
    pub fn check(&mut self) -> Report {
        let (found, report) = self.examine();
        Report { findings: found.into_iter().map(|found| found.finding).collect(), ..report }
    }

    fn examine(&mut self) -> (Vec<Found>, Report) {
        if region::is_one(&self.medium) {
            return region::examine(&self.medium);
        }
        let mut report = Report::default();
        let head = match head::examine(&self.medium) {
            Ok(head) => head,
            Err(found) => return (vec![found], report),
        };
        let mut found: Vec<Found> = head::opened_word(&self.medium).into_iter().collect();
        if self.recovered.is_none() {
            found.extend(log::examine(&self.medium, &head));
            if found.iter().any(|found| found.finding.class != Class::OpenedWord) {
                return (found, report);
            }
        }
        match self.recover(&head) {
            Ok(recovery) => report.recovery = Some(recovery),
            Err(finding) => {
                let one = Found { finding, patch: None };
                let is_word = finding.class == Class::BitmapWord;
                let mended = if is_word { tables::mended_sealed(&self.medium, finding.offset) } else { None };
                found.push(one.mend_word(mended));
                return (found, report);
            }
        }
        let pages = tables::examine_pages(&self.medium, &head).expect("private pages do not fail");
        if !pages.is_empty() {
            found.extend(pages);
            return (found, report);
        }
        report.judged_heap = true;
        let tables = Tables::load(&self.medium, &head).expect("the page table was found sound");
        found.extend(tables.examine(&self.medium, &head));
        (found, report)
    }

    /// What a region of a GPU is; `None` for a pool.
    ///
    /// # Errors
    /// A region without a sound head or directory: there is nothing to tell.
    pub fn region(&self) -> Result<Option<RegionInfo>, Error> {
        if !region::is_one(&self.medium) {
            return Ok(None);
        }
        let info = region::info(&self.medium).map_err(|problem| problem.at(&self.location))?;
        self.alive()?;
        Ok(Some(info))
    }

    /// The state of the allocator, after the recovery.
    ///
    /// # Errors
    /// Damage that is in the way of a recovery.
    pub fn heap_state(&mut self) -> Result<HeapState, Error> {
        Ok(self.tables()?.heap_state())
    }

    /// The objects, rising, after the recovery.
    ///
    /// # Errors
    /// Damage that is in the way of a recovery.
    pub fn objects(&mut self) -> Result<Vec<Object>, Error> {
        if let Some(info) = self.region()? {
            return Ok(info
                .objects
                .iter()
                .map(|&RegionObject { offset, bytes, .. }| Object { offset, bytes })
                .collect());
        }
        Ok(self.tables()?.objects().collect())
    }

    /// Bytes of the heap, as programs see them, after the recovery.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; damage that is in the way of a recovery.
    pub fn read(&mut self, offset: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        if region::is_one(&self.medium) {
            return self.raw(offset, bytes);
        }
        let tables = self.tables()?;
        let heap = tables.layout().range();
        let end = offset.checked_add(bytes);
        if offset < heap.start || end.is_none_or(|end| end > heap.end) {
            return Err(Error::OutOfRange { offset, length: bytes, heap });
        }
        let mut data = vec![0; bytes as usize];
        tables.read(&self.medium, offset, &mut data);
        self.alive()?;
        Ok(data)
    }

    /// Bytes as they lie in the file; call it before anything that recovers.
    ///
    /// # Errors
    /// [`Error::OutOfRange`].
    pub fn raw(&self, offset: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        let all = 0..self.medium.bytes();
        if offset.checked_add(bytes).is_none_or(|end| end > all.end) {
            return Err(Error::OutOfRange { offset, length: bytes, heap: all });
        }
        let data = self.medium.load_vec(offset, bytes);
        self.alive()?;
        Ok(data)
    }
}

/// Looks for damage in a pool, which is not changed.
///
/// # Errors
/// As [`Image::open`]; [`Problem::Foreign`] for a file that was never a pool.
pub fn check(location: &str) -> Result<Report, Error> {
    match Image::open(location) {
        Ok(mut image) => {
            image.refuse_foreign()?;
            let report = image.check();
            image.alive().map(|()| report)
        }
        Err(Error::Pool { problem: Problem::RepairInterrupted, .. }) => {
            let finding = Found::new(Class::RepairInterrupted, 0).mend(Vec::new()).finding;
            Ok(Report { findings: vec![finding], ..Report::default() })
        }
        Err(Error::Pool { problem: Problem::Unfinished, .. }) => {
            Ok(Report { findings: vec![Found::new(Class::HeadBlank, 0).finding], ..Report::default() })
        }
        Err(other) => Err(other),
    }
}

/// Recovers a pool in a file, as opening it would, and changes nothing else.
///
/// # Errors
/// As for opening it.
pub fn recover_file(location: &str, survives: crate::Survives) -> Result<Recovery, Error> {
    let Location::File(path) = Location::parse(location)? else {
        let what = "a pool on a card is recovered when it is opened";
        return Err(Problem::BadOption { what }.at(location));
    };
    let medium = Medium::new(Backing::Mapped(file::open(&path, survives)?));
    let head = format::read(&medium).map_err(|problem| problem.at(location))?;
    match recover(&medium, &head) {
        Ok((recovery, _)) => Ok(recovery),
        Err(Error::Corrupt { what, offset }) => Err(Problem::Corrupt { what, offset }.at(location)),
        Err(other) => Err(other),
    }
}
