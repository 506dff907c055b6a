//! What clients of memcached ask for.

use std::borrow::Cow;

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

    /// How `ms` stores its value.
    pub fn how(&self) -> Option<Store> {
        Some(match self.token(b'M').map(<[u8]>::to_ascii_uppercase).as_deref() {
            None | Some(b"S") => Store::Set,
            Some(b"E") => Store::Add,
            Some(b"A") => Store::Append,
            Some(b"P") => Store::Prepend,
            Some(b"R") => Store::Replace,
            Some(_) => return None,
        })
    }

    /// Whether `ms` stores in any case, whatever was there.
    pub fn overwrites(&self) -> bool {
        self.how() == Some(Store::Set) && !self.has(b'C')
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
    /// The request is refused, and the key of a value that could not be stored has none any more.
    Refuse(Cow<'static, str>, Option<Vec<u8>>),
    /// get, gets, gat, gats: keys, and whether they are the last ones of the line
    Get(Read, Vec<Vec<u8>>, bool),
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

impl Request {
    /// One whose reply is wanted.
    pub fn answered(command: Command) -> Request {
        Request { command, quiet: false }
    }

    /// One that is refused.
    pub fn refused(why: impl Into<Cow<'static, str>>, quiet: bool) -> Request {
        Request { command: Command::Refuse(why.into(), None), quiet }
    }

    /// One that is not told anything.
    pub fn nothing() -> Request {
        Request { command: Command::Say(Vec::new()), quiet: true }
    }

    /// The key whose value goes when the new one cannot be stored: who set it must not be given an
    /// older one.
    pub fn overwrites(&self) -> Option<&[u8]> {
        match &self.command {
            Command::Put { store: Store::Set, key, cas: None, .. } => Some(key),
            Command::MetaSet(meta, _) if meta.overwrites() => Some(&meta.key),
            _ => None,
        }
    }
}

impl Command {
    /// Whether it may change the pool.
    pub fn changes(&self) -> bool {
        match self {
            Command::Say(_) | Command::Stats(_) | Command::MetaDebug(_) => false,
            Command::Get(read, ..) => read.touch.is_some(),
            Command::Refuse(_, forgotten) => forgotten.is_some(),
            _ => true,
        }
    }

    /// The key that it may make.
    pub fn stores(&self) -> Option<&[u8]> {
        match self {
            Command::Put { key, .. } | Command::Arithmetic(_, key, _) => Some(key),
            Command::MetaSet(meta, _) | Command::MetaArithmetic(meta) | Command::MetaGet(meta) => Some(&meta.key),
            _ => None,
        }
    }

    /// Bytes, about.
    pub fn weight(&self) -> usize {
        match self {
            Command::Put { value, .. } | Command::MetaSet(_, value) => value.len() + 100,
            Command::Get(_, keys, _) => 100 * keys.len(),
            _ => 100,
        }
    }
}
