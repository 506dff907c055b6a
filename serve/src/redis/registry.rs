//! What a command is, and how the rows of `table.rs` become the table and the two ways to run a command.

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

/// Makes the table of commands, and the functions that run them. A row says: identifier, name, words, flags, first and last key and the
/// step between keys, group, and who runs it:
///
/// | kind | is called as |
/// |---|---|
/// | `look` | `f(db, from, words, reply)`: changes nothing |
/// | `tell` | `f(redis, db, from, words, reply)`: about the server |
/// | `talk` | `f(db, words, reply)`: touches no key |
/// | `act` | `f(db, tx, words, reply)`: may change something |
/// | `wait` | `f(db, tx, words, key, reply)`: writes no reply if there is nothing; one key alone is looked at, if that is given |
/// | `session` | answered by the session |
macro_rules! commands {
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

        impl Redis {
            /// Runs a command that changes nothing.
            pub(super) fn ask(&self, db: &Db<'_>, from: &impl Load, command: &Command, reply: &mut Reply<'_>) -> Outcome {
                let words = command.words.as_slice();
                match command.spec.id {
                    $(Id::$id => commands!(@ask $kind $handler, self, db, from, words, reply),)*
                }
            }

            /// Runs any command. One that waits looks at one key alone, if that is given.
            pub(super) fn act(
                &self,
                db: &Db<'_>,
                tx: &mut impl Store,
                command: &Command,
                key: Option<&[u8]>,
                reply: &mut Reply<'_>,
            ) -> Outcome {
                let words = command.words.as_slice();
                match command.spec.id {
                    $(Id::$id => commands!(@act $kind $handler, self, db, tx, words, key, reply),)*
                }
            }
        }
    };
    (@ask look $f:path, $redis:expr, $db:expr, $from:expr, $words:expr, $reply:expr) => { $f($db, $from, $words, $reply) };
    (@ask tell $f:path, $redis:expr, $db:expr, $from:expr, $words:expr, $reply:expr) => { $f($redis, $db, $from, $words, $reply) };
    (@ask talk $f:path, $redis:expr, $db:expr, $from:expr, $words:expr, $reply:expr) => { $f($db, $words, $reply) };
    (@ask $kind:ident $f:path, $redis:expr, $db:expr, $from:expr, $words:expr, $reply:expr) => {
        unreachable!("it is answered by the session, or changes something")
    };
    (@act act $f:path, $redis:expr, $db:expr, $tx:expr, $words:expr, $key:expr, $reply:expr) => { $f($db, $tx, $words, $reply) };
    (@act wait $f:path, $redis:expr, $db:expr, $tx:expr, $words:expr, $key:expr, $reply:expr) => { $f($db, $tx, $words, $key, $reply) };
    (@act $kind:ident $f:path, $redis:expr, $db:expr, $tx:expr, $words:expr, $key:expr, $reply:expr) => {
        commands!(@ask $kind $f, $redis, $db, $tx, $words, $reply)
    };
}

pub(super) use commands;
