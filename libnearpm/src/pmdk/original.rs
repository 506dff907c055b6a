//! Pools as PMDK's own libpmemobj writes them (major version 6), read without PMDK: for
//! [`super::import`].
//!
//! | file | what |
//! |---|---|
//! | this one | the file, its two heads, and what an error is |
//! | `heap` | zones, chunks, runs: which objects there are |
//! | `logs` | whether a transaction was left open |
//! | `checksum` | PMDK's sum |
//!
//! Source: `src/common/pool_hdr.h`, `src/libpmemobj/{obj,heap_layout,lane,ulog}.h` of PMDK, which
//! hold for every pool since its version 1.5. All numbers are little-endian. The file is read by
//! `pread`, never mapped: one that another process cuts short is an error, no signal.

mod checksum;
mod heap;
mod logs;

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

use thiserror::Error;

use self::checksum::fletcher64;
pub(super) use self::heap::Object;

const SIGNATURE: &[u8; 8] = b"PMEMOBJ\0";
const MAJOR: u32 = 6;
const PAGE: usize = 4096;
/// The two pages of heads.
const HEADS: usize = 2 * PAGE;

/// Offsets of fields in the file.
mod field {
    pub const MAJOR: usize = 8;
    pub const INCOMPATIBLE: usize = 16;
    pub const SET: usize = 24;
    pub const OWN: usize = 40;
    /// Part before, part behind, replica before, replica behind.
    pub const NEIGHBOURS: [usize; 4] = [56, 72, 88, 104];
    pub const CLASS: usize = 136;
    pub const ENCODING: usize = 137;
    /// The shutdown state's mark of a pool that is open.
    pub const DIRTY: usize = 4024 + 16;
    pub const HEAD_SUM: usize = 4088;
    pub const LAYOUT: usize = super::PAGE;
    pub const LAYOUT_END: usize = LAYOUT + 1024;
    pub const LANES: usize = LAYOUT_END;
    pub const LANE_COUNT: usize = LANES + 8;
    pub const HEAP: usize = LANES + 16;
    pub const DESCRIPTION_END: usize = super::PAGE + 2048;
    pub const DESCRIPTION_SUM: usize = DESCRIPTION_END - 8;
    pub const ROOT: usize = DESCRIPTION_END;
    pub const ROOT_BYTES: usize = ROOT + 16;
    pub const CONVERSION: usize = ROOT + 24;
    pub const HEAP_BYTES: usize = ROOT + 32;
}

/// Features that a reader must know: one head for all parts, a sum of the first 2 KiB alone, the
/// shutdown state.
mod feature {
    pub const SUM_OF_2K: u32 = 2;
    pub const SHUTDOWN_STATE: u32 = 4;
    pub const KNOWN: u32 = 7;
}

/// Why a pool of PMDK cannot be imported. Nothing of it is ever changed.
#[derive(Debug, Error)]
pub enum Refusal {
    /// The system refuses to open or to read it.
    #[error("cannot be read: {0}")]
    System(#[from] io::Error),
    /// Another kind of file.
    #[error("is no pool of PMDK's libpmemobj; give the path of one (pmempool info says what a file is)")]
    Foreign,
    /// Another version of the format.
    #[error("has version {found} of PMDK's format, and {MAJOR} is known; convert it first, by pmdk-convert")]
    Version {
        /// The one that it has.
        found: u32,
    },
    /// Features that are not known.
    #[error("has features that are not known ({unknown:#x} among what a reader must support)")]
    Features {
        /// Their bits.
        unknown: u32,
    },
    /// Of a machine with other numbers.
    #[error("was written by a machine that is not 64-bit and little-endian")]
    Machine,
    /// A part of a pool set, or a replica.
    #[error(
        "is a part or a replica of a pool set; make one file of the set first, by pmempool transform or pmempool sync"
    )]
    Set,
    /// A process has it open.
    #[error("is open in another process; close it there first")]
    InUse,
    /// It was not closed, or a transaction of it was left open.
    #[error(
        "was not closed by the last program that had it ({what}); open and close it once by PMDK, which recovers it"
    )]
    NotClosed {
        /// What shows it.
        what: &'static str,
    },
    /// Shorter than its heads say.
    #[error("is truncated: {needed} bytes are to be there and {found} are; restore it from a copy")]
    Truncated {
        /// Bytes by its heads.
        needed: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// Damaged.
    #[error("is damaged: {what} at offset {offset:#x}; see what pmempool check says, or restore it from a copy")]
    Damaged {
        /// What is wrong.
        what: &'static str,
        /// Where, in the file.
        offset: u64,
    },
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("a word of a head"))
}

fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("half a word of a head"))
}

/// A pool file of PMDK, locked against programs that would open it.
#[derive(Debug)]
pub(super) struct Original {
    file: File,
    /// Bytes of the file.
    pub bytes: u64,
    /// The layout's name, without zeros.
    pub layout: Vec<u8>,
    /// `pool_uuid_lo` of identifiers of its objects.
    pub uuid: u64,
    /// Offset of the root object's data, 0 for none, and the bytes that the program asked for.
    pub root: (u64, u64),
    lanes: (u64, u64),
    heap: (u64, u64),
}

impl Original {
    /// Opens and looks at the heads and the logs.
    pub fn open(path: &Path) -> Result<Original, Refusal> {
        // A FIFO does not wait for a writer.
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        let kind = file.metadata()?;
        if !kind.is_file() {
            let kind = kind.file_type();
            let no_file = if kind.is_char_device() || kind.is_block_device() { "is a device" } else { "is no file" };
            return Err(Refusal::System(io::Error::other(no_file)));
        }
        // PMDK locks its pools in the same way.
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockShared) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(Refusal::InUse),
            Err(error) => return Err(Refusal::System(error.into())),
        }
        let bytes = kind.len();
        let mut heads = vec![0; HEADS.min(bytes as usize)];
        file.read_exact_at(&mut heads, 0)?;
        if !heads.starts_with(SIGNATURE) {
            return Err(Refusal::Foreign);
        }
        if heads.len() < HEADS {
            return Err(Refusal::Truncated { needed: HEADS as u64, found: bytes });
        }
        check_heads(&heads)?;
        let original = Original {
            file,
            bytes,
            layout: heads[field::LAYOUT..field::LAYOUT_END]
                .split(|&byte| byte == 0)
                .next()
                .unwrap_or_default()
                .to_vec(),
            uuid: uuid_lo(&heads),
            root: (word(&heads, field::ROOT), word(&heads, field::ROOT_BYTES)),
            lanes: (word(&heads, field::LANES), word(&heads, field::LANE_COUNT)),
            heap: (word(&heads, field::HEAP), word(&heads, field::HEAP_BYTES)),
        };
        let (start, length) = original.heap;
        let end = start
            .checked_add(length)
            .ok_or(Refusal::Damaged { what: "the heap ends behind all offsets", offset: field::HEAP_BYTES as u64 })?;
        if end > bytes {
            return Err(Refusal::Truncated { needed: end, found: bytes });
        }
        logs::check(&original)?;
        Ok(original)
    }

    /// Reads bytes at an offset of the file.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Refusal> {
        self.file.read_exact_at(into, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                Refusal::Truncated { needed: offset.saturating_add(into.len() as u64), found: self.bytes }
            }
            _ => Refusal::System(error),
        })
    }

    /// All objects, by ascending offsets.
    pub fn objects(&self) -> Result<Vec<Object>, Refusal> {
        heap::objects(self)
    }
}

/// The sum of the pool's two halves of its identifier, byte by byte, as `pmemobj_get_uuid_lo` forms
/// it.
fn uuid_lo(heads: &[u8]) -> u64 {
    let uuid = &heads[field::SET..field::SET + 16];
    (0..8).fold(0, |sum, at| sum << 8 | u64::from(uuid[at] ^ uuid[at + 8]))
}

fn check_heads(heads: &[u8]) -> Result<(), Refusal> {
    let found = half(heads, field::MAJOR);
    if found != MAJOR {
        return Err(Refusal::Version { found });
    }
    let features = half(heads, field::INCOMPATIBLE);
    if features & !feature::KNOWN != 0 {
        return Err(Refusal::Features { unknown: features & !feature::KNOWN });
    }
    let summed = if features & feature::SUM_OF_2K != 0 { 2048 } else { field::HEAD_SUM };
    if fletcher64(&heads[..PAGE], field::HEAD_SUM, summed) != word(heads, field::HEAD_SUM) {
        return Err(Refusal::Damaged { what: "the checksum of the head does not hold", offset: 0 });
    }
    let description = &heads[PAGE..field::DESCRIPTION_END];
    if fletcher64(description, field::DESCRIPTION_SUM - PAGE, description.len()) != word(heads, field::DESCRIPTION_SUM)
    {
        return Err(Refusal::Damaged { what: "the checksum of the description does not hold", offset: PAGE as u64 });
    }
    if (heads[field::CLASS], heads[field::ENCODING]) != (2, 1) {
        return Err(Refusal::Machine);
    }
    let uuid = |at: usize| &heads[at..at + 16];
    if field::NEIGHBOURS.iter().any(|&at| uuid(at) != uuid(field::OWN)) {
        return Err(Refusal::Set);
    }
    if features & feature::SHUTDOWN_STATE != 0 && heads[field::DIRTY] != 0 {
        return Err(Refusal::NotClosed { what: "its shutdown state says so" });
    }
    if word(heads, field::CONVERSION) != 0 {
        return Err(Refusal::NotClosed { what: "it has been converted, and not opened since" });
    }
    Ok(())
}
