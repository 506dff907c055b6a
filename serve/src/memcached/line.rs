//! Lines as they come from clients: their words, and what the start of an input may be.

use super::command::{Read, Request};

/// Bytes of a line at most, but for those of multi-gets.
pub const LINE_BYTES: usize = 64 << 10;
/// Bytes of a key at most.
pub const KEY_BYTES: usize = 250;

/// What every broken line is told.
pub const FORMAT: &str = "CLIENT_ERROR bad command line format";
/// A command that is none.
pub const ERROR: &str = "ERROR";
/// A time that is none.
pub const EXPTIME: &str = "CLIENT_ERROR invalid exptime argument";

/// What the start of an input is.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// Not a whole request yet.
    Incomplete,
    /// A request, and how many bytes it had; of a refused one more than there are yet may have to
    /// be passed over.
    Request(Request, usize),
    /// Keys of a multi-get follow behind so many bytes, up to the end of the line.
    Keys(Read, usize),
    /// Nothing behind it can be understood, or is wanted: the connection ends with this request.
    Last(Request),
}

impl Parsed {
    /// A request that is refused, whose bytes are known.
    pub fn refused(why: &'static str, taken: usize) -> Parsed {
        Parsed::Request(Request::refused(why, false), taken)
    }

    /// A request behind which nothing can be understood.
    pub fn broken(why: &'static str, quiet: bool) -> Parsed {
        Parsed::Last(Request::refused(why, quiet))
    }
}

/// Whether a key of a line is one. As in memcached, only its length counts: a word has every byte
/// but those that end it (space, NUL, newline), so that control characters belong to keys.
pub fn is_key(key: &[u8]) -> bool {
    (1..=KEY_BYTES).contains(&key.len())
}

/// A number of a command.
pub fn number<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// A time of a command.
pub fn time(word: &[u8]) -> Option<i64> {
    number(word)
}

/// The words of a line, which ends at a NUL as memcached's lines do.
pub fn words(line: &[u8]) -> Vec<&[u8]> {
    let end = line.iter().position(|&byte| byte == 0).unwrap_or(line.len());
    line[..end].split(|&byte| byte == b' ').filter(|word| !word.is_empty()).collect()
}

/// Whether the last word says that no reply is wanted.
pub fn is_quiet(words: &[&[u8]]) -> bool {
    words.last() == Some(&&b"noreply"[..])
}
