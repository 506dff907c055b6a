//! The bytes of what programs of PMDK's libpmemobj have in a pool; their meaning is in
//! [`crate::pmdk`].

use nearpm_interface::geometry::LINE;
use nearpm_interface::seal;

use crate::error::Problem;

/// Bytes of a layout's name with its closing zero.
pub const MAX_LAYOUT: usize = 1024;
/// Where the root's two words lie in the head, and behind them the one of the statistics.
pub const ROOT_WORDS: usize = MAX_LAYOUT + LINE;
/// Bytes of the head.
pub const HEAD_BYTES: usize = ROOT_WORDS + LINE;

const _: () = assert!(MAX_LAYOUT.is_multiple_of(LINE));

const MAGIC: u64 = u64::from_le_bytes(*b"NPMOBJ\0\0");
const VERSION: u32 = 1;

fn sealed_line() -> [u8; LINE] {
    let mut line = [0; LINE];
    line[..8].copy_from_slice(&MAGIC.to_le_bytes());
    line[8..12].copy_from_slice(&VERSION.to_le_bytes());
    line
}

/// The head of a new pool with a layout's name, of at most 1023 bytes and no zero.
pub(crate) fn new_head(layout: &[u8]) -> [u8; HEAD_BYTES] {
    let mut bytes = [0; HEAD_BYTES];
    bytes[..layout.len()].copy_from_slice(layout);
    let mut line = sealed_line();
    seal::seal(&bytes[..MAX_LAYOUT], &mut line);
    bytes[MAX_LAYOUT..ROOT_WORDS].copy_from_slice(&line);
    bytes
}

/// The layout's name, from the start of a head.
pub fn layout_of(name: &[u8]) -> String {
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// What the head says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The layout's name; bytes that are no UTF-8 are replaced.
    pub layout: String,
    /// Offset of the root object's data, 0 for none.
    pub root: u64,
    /// Bytes of it that the program asked for.
    pub root_bytes: u64,
}

impl Head {
    /// Reads the head from the bytes of the pool's root object, which lies at `offset`; `None` if
    /// that is another object.
    ///
    /// # Errors
    /// It is damaged, or of a newer library.
    pub fn read(bytes: &[u8], offset: u64) -> Result<Option<Head>, Problem> {
        let Some(bytes) = bytes.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let line = bytes[MAX_LAYOUT..].first_chunk::<LINE>().expect("a line");
        if line[..8] != MAGIC.to_le_bytes() {
            return Ok(None);
        }
        if !seal::is_sealed(&bytes[..MAX_LAYOUT], line) {
            return Err(Problem::Corrupt { what: "the checksum of the layout's name does not hold", offset });
        }
        let version = u32::from_le_bytes(*line[8..].first_chunk().expect("four bytes"));
        if version > VERSION {
            return Err(Problem::Newer { found: version, supported: VERSION });
        }
        let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("eight bytes"));
        Ok(Some(Head {
            layout: layout_of(&bytes[..MAX_LAYOUT]),
            root: word(ROOT_WORDS),
            root_bytes: word(ROOT_WORDS + 8),
        }))
    }
}

/// The header of an object, in front of the bytes that the program sees: the type number, and a
/// word with the bytes that the program may use (bits 43:0) and the distance from the start of the
/// object to the header in units of 16 bytes (bits 60:44). That distance is 0 unless an allocation
/// class asks for more alignment, which bit 62 tells; then the object begins with 16 bytes of the
/// same form, marked by bit 63.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The program's number for its type.
    pub type_num: u64,
    word: u64,
}

impl Header {
    /// Bytes of a header.
    pub const BYTES: u64 = 16;
    const DISTANCE_SHIFT: u32 = 44;
    const BYTES_MASK: u64 = (1 << Self::DISTANCE_SHIFT) - 1;
    const DISTANCE_MASK: u64 = (1 << 17) - 1;
    const ALIGNED: u64 = 1 << 62;
    const FORWARD: u64 = 1 << 63;

    /// The header of an object with so many bytes, which lies so far from the object's start.
    pub fn new(type_num: u64, bytes: u64, distance: u64) -> Header {
        let distance = (distance / Self::BYTES) << Self::DISTANCE_SHIFT;
        Header { type_num, word: (bytes & Self::BYTES_MASK) | distance }
    }

    /// The same header, of an object for which an allocation class asked for more alignment than
    /// others have.
    pub fn aligned(self) -> Header {
        Header { word: self.word | Self::ALIGNED, ..self }
    }

    /// What stands at the start of an object whose header lies so far from there.
    pub fn forward(distance: u64) -> Header {
        let header = Header::new(0, 0, distance);
        Header { word: header.word | Self::FORWARD, ..header }
    }

    /// As it lies in the pool.
    pub fn from_bytes(bytes: &[u8; 16]) -> Header {
        let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("eight bytes"));
        Header { type_num: word(0), word: word(8) }
    }

    /// As it lies in the pool.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.type_num.to_le_bytes());
        bytes[8..].copy_from_slice(&self.word.to_le_bytes());
        bytes
    }

    /// From the object's start to this header, in bytes.
    pub fn distance(self) -> u64 {
        (self.word >> Self::DISTANCE_SHIFT & Self::DISTANCE_MASK) * Self::BYTES
    }

    /// Where the header is, from this one at the object's start, in bytes.
    pub fn ahead(self) -> u64 {
        if self.word & Self::FORWARD != 0 { self.distance() } else { 0 }
    }

    /// An allocation class asked for more alignment than others have.
    pub fn is_aligned(self) -> bool {
        self.word & Self::ALIGNED != 0 || self.distance() != 0
    }

    /// Bytes that the program may use.
    pub fn bytes(self) -> u64 {
        self.word & Self::BYTES_MASK
    }
}
