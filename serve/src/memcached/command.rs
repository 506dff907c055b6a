//! What clients of memcached ask for.

/// How a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// In any case.
    Set,
    /// If there is none.
    Add,
    /// If there is one.
    Replace,
    /// Behind the one that is there.
    Append,
    /// In front of the one that is there.
    Prepend,
}

/// How a key is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The number for `cas` is wanted.
    pub cas: bool,
    /// It shall expire then (`gat`).
    pub touch: Option<i64>,
}

/// A request of the meta protocol, whatever its command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// The key.
    pub key: Vec<u8>,
    /// The key as it was sent: in base64 with the flag `b`.
    pub sent: Vec<u8>,
    /// Flags with their tokens, in their order.
    pub flags: Vec<(u8, Vec<u8>)>,
}

impl Meta {
    /// Whether there is a flag.
    pub fn has(&self, flag: u8) -> bool {
        self.token(flag).is_some()
    }

    /// The token of a flag.
    pub fn token(&self, flag: u8) -> Option<&[u8]> {
        self.flags.iter().find(|(name, _)| *name == flag).map(|(_, token)| token.as_slice())
    }

    /// The token of a flag as a number; whoever parsed the request has checked it.
    pub fn number<T: std::str::FromStr>(&self, flag: u8) -> Option<T> {
        std::str::from_utf8(self.token(flag)?).ok()?.parse().ok()
    }
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// The reply is known.
    Say(Vec<u8>),
    /// get, gets, gat, gats
    Get(Read, Vec<Vec<u8>>),
    /// set, add, replace, append, prepend, cas
    Put {
        /// How.
        store: Store,
        /// The key.
        key: Vec<u8>,
        /// The client's flags.
        flags: u32,
        /// When it expires.
        expires: i64,
        /// Only if this is still its number (`cas`).
        cas: Option<u64>,
        /// The value.
        value: Vec<u8>,
    },
    /// delete
    Delete(Vec<u8>),
    /// incr (true), decr
    Arithmetic(bool, Vec<u8>, u64),
    /// touch
    Touch(Vec<u8>, i64),
    /// flush_all, after so many seconds
    Flush(i64),
    /// stats, of what
    Stats(Vec<u8>),
    /// mg
    MetaGet(Meta),
    /// ms, with its value
    MetaSet(Meta, Vec<u8>),
    /// md
    MetaDelete(Meta),
    /// ma
    MetaArithmetic(Meta),
    /// me
    MetaDebug(Meta),
}

/// A command, and whether its reply is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The command.
    pub command: Command,
    /// It is not.
    pub quiet: bool,
}

impl Command {
    /// Whether it may change the pool.
    pub fn changes(&self) -> bool {
        match self {
            Command::Say(_) | Command::Stats(_) | Command::MetaDebug(_) => false,
            Command::Get(read, _) => read.touch.is_some(),
            _ => true,
        }
    }

    /// Bytes, about.
    pub fn weight(&self) -> usize {
        match self {
            Command::Put { value, .. } | Command::MetaSet(_, value) => value.len() + 100,
            Command::Get(_, keys) => 100 * keys.len(),
            _ => 100,
        }
    }
}
