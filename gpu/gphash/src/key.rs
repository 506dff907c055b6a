//! Keys of requests.

/// A key of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// Of a table whose keys are words.
    Word(u64),
    /// Of a table whose keys are bytes.
    Bytes(Vec<u8>),
}

impl From<u64> for Key {
    fn from(key: u64) -> Key {
        Key::Word(key)
    }
}

impl From<&[u8]> for Key {
    fn from(key: &[u8]) -> Key {
        Key::Bytes(key.to_vec())
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Key::Word(word) => write!(f, "{word:#018x}"),
            Key::Bytes(bytes) => write!(f, "{:?} of {} bytes", String::from_utf8_lossy(bytes), bytes.len()),
        }
    }
}
