//! What a command is: its name, words, keys and categories.

use super::table::rows;

/// A part of Redis's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Connection,
    Generic,
    Hash,
    List,
    Pubsub,
    Scripting,
    Server,
    Set,
    SortedSet,
    String,
    Bitmap,
    Transactions,
}

impl Group {
    /// As COMMAND DOCS says it.
    pub fn name(self) -> &'static str {
        match self {
            Group::Connection => "connection",
            Group::Generic => "generic",
            Group::Hash => "hash",
            Group::List => "list",
            Group::Pubsub => "pubsub",
            Group::Scripting => "scripting",
            Group::Server => "server",
            Group::Set => "set",
            Group::SortedSet => "sorted-set",
            Group::String => "string",
            Group::Bitmap => "bitmap",
            Group::Transactions => "transactions",
        }
    }

    /// The category of Redis's rules for users, if there is one.
    pub fn category(self) -> Option<&'static str> {
        match self {
            Group::Generic => Some("keyspace"),
            Group::Server => None,
            Group::SortedSet => Some("sortedset"),
            Group::Transactions => Some("transaction"),
            group => Some(group.name()),
        }
    }
}

/// A command.
#[derive(Debug, PartialEq, Eq)]
pub struct Spec {
    /// Which one it is.
    pub id: Id,
    /// In lower case.
    pub name: &'static str,
    /// Words, the name included; negative: at least so many.
    pub arity: i64,
    /// `w` it may change something, `m` it may take memory, `r` it reads keys, `F` its time does
    /// not grow with the data, `b` it may wait, `c` its second word is a subcommand, `p` it
    /// concerns channels, `M` which words are keys depends on other words, `a` it concerns the
    /// server, `d` it is slow, shows much, or removes much (Redis's category `dangerous`, which all
    /// that concern the server are in, too).
    pub flags: &'static str,
    /// First and last word that is a key (negative: counted from the end), and the step between
    /// two.
    pub keys: (i64, i64, i64),
    /// Where it is documented.
    pub group: Group,
}

macro_rules! specs {
    ($($id:ident $name:literal $arity:literal $flags:literal $first:literal $last:literal $step:literal $group:ident $kind:ident $handler:path;)*) => {
        /// Commands.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Id { $($id,)* }

        /// All commands, by name.
        pub const TABLE: &[Spec] = &[$(Spec {
            id: Id::$id,
            name: $name,
            arity: $arity,
            flags: $flags,
            keys: ($first, $last, $step),
            group: Group::$group,
        },)*];
    };
}

rows!(specs);

/// The command of a name, in any case.
pub fn find(name: &[u8]) -> Option<&'static Spec> {
    let mut lower = [0; 20];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    TABLE.binary_search_by(|spec| spec.name.as_bytes().cmp(lower)).ok().map(|at| &TABLE[at])
}

/// Whether a command may have so many words: as many as it says, or if that is negative at least so
/// many.
pub fn takes(arity: i64, words: usize) -> bool {
    if arity < 0 { words as i64 >= -arity } else { words as i64 == arity }
}

impl Spec {
    /// Whether a command may have so many words.
    pub fn takes(&self, words: usize) -> bool {
        takes(self.arity, words)
    }

    /// Whether it has a flag.
    pub fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }

    /// Whether it may change something.
    pub fn changes(&self) -> bool {
        self.has('w')
    }

    /// Which words are keys.
    pub fn keys_of<'w>(&self, words: &'w [Vec<u8>]) -> Vec<&'w Vec<u8>> {
        let (first, last, step) = self.keys;
        let last = if last < 0 { words.len() as i64 + last } else { last };
        let mut keys: Vec<_> = match first {
            0 => Vec::new(),
            _ => (first..=last).step_by(step.max(1) as usize).filter_map(|at| words.get(at as usize)).collect(),
        };
        if self.id == Id::Sort {
            let target = words.iter().rposition(|word| word.eq_ignore_ascii_case(b"store"));
            keys.extend(target.and_then(|at| words.get(at + 1)));
        }
        if self.has('M') {
            // The number of keys stands in front of them: behind the name, the destination or the
            // time to wait.
            let at = 1 + usize::from(first != 0 || self.has('b'));
            let count = words.get(at).and_then(|word| super::resp::number(word)).unwrap_or(0).max(0) as usize;
            keys.extend(words.iter().skip(at + 1).take(count));
        }
        keys
    }

    /// Which words are channels, or patterns of channels.
    pub fn channels_of<'w>(&self, words: &'w [Vec<u8>]) -> &'w [Vec<u8>] {
        match self.id {
            Id::Publish => words.get(1..2).unwrap_or_default(),
            Id::Subscribe | Id::Psubscribe => &words[1..],
            _ => &[],
        }
    }

    /// The categories that it is in, or that a subcommand of it is in, as the rules of users name
    /// them.
    pub fn categories(&self, subcommand: Option<&str>) -> Vec<&'static str> {
        // What clients do with themselves concerns nobody else.
        let own = ["getname", "getredir", "id", "info", "no-touch", "reply", "setinfo", "setname"];
        let whoami = self.id == Id::Acl && subcommand == Some("whoami");
        let own = self.id == Id::Client && subcommand.is_some_and(|name| own.contains(&name)) || whoami;
        let admin = self.has('a') && !own;
        let by_flags = [
            ("read", self.has('r')),
            ("write", self.has('w')),
            ("admin", admin),
            ("dangerous", admin || self.has('d')),
            ("blocking", self.has('b')),
            ("fast", self.has('F')),
            ("slow", !self.has('F')),
            ("keyspace", self.group == Group::Server && (self.has('r') || self.has('w'))),
        ];
        let by_flags = by_flags.into_iter().filter(|(_, is)| *is).map(|(name, _)| name);
        self.group.category().into_iter().chain(by_flags).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found() {
        assert!(TABLE.is_sorted_by(|a, b| a.name < b.name));
        for spec in TABLE {
            assert_eq!(find(spec.name.to_ascii_uppercase().as_bytes()), Some(spec));
            assert!(spec.flags.chars().all(|flag| "wmrFbpMacd".contains(flag)), "{spec:?}");
            assert!(!spec.has('m') || spec.has('w'), "{spec:?}");
        }
        assert_eq!(find(b"nothing"), None);
        assert_eq!(find(&[b'x'; 99]), None);
    }

    #[test]
    fn keys_are_found_among_the_words() {
        let keys = |line: &str| {
            let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            let keys = find(&words[0]).unwrap().keys_of(&words).into_iter().cloned().collect::<Vec<_>>();
            String::from_utf8(keys.join(&b' ')).unwrap()
        };
        assert_eq!(keys("mset a 1 b 2"), "a b");
        assert_eq!(keys("blpop a b 0"), "a b");
        assert_eq!(keys("zunionstore d 2 a b weights 1 2"), "d a b");
        assert_eq!(keys("blmpop 0 1 a left"), "a");
        assert_eq!(keys("sintercard 2 a b"), "a b");
        assert_eq!(keys("sort a by nosort store b"), "a b");
        assert_eq!(keys("ping"), "");
    }

    #[test]
    fn every_command_is_in_categories() {
        let of = |name: &str, sub| find(name.as_bytes()).unwrap().categories(sub);
        assert_eq!(of("get", None), ["string", "read", "fast"]);
        assert_eq!(of("flushall", None), ["write", "dangerous", "slow", "keyspace"]);
        assert_eq!(of("blpop", None), ["list", "write", "blocking", "slow"]);
        assert_eq!(of("config", Some("get")), ["admin", "dangerous", "slow"]);
        assert_eq!(of("client", Some("kill")), ["connection", "admin", "dangerous", "slow"]);
        assert_eq!(of("client", Some("setname")), ["connection", "slow"]);
        assert_eq!(of("watch", None), ["transaction", "fast"]);
        assert_eq!(of("zadd", None), ["sortedset", "write", "fast"]);
    }
}
