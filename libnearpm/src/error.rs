//! What can go wrong: what, where, and what to do.

use std::ops::Range;

use nearpm_driver::CardError;
use nearpm_interface::command::Opcode;

nearpm_interface::debug_as_display!(Error, Problem);

/// Any error of the library. Its `Debug` is its sentence, as `main` prints it.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A pool could not be created, opened or removed.
    #[error("pool {location}: {problem}")]
    Pool {
        /// Path or `card:NAME/POOL`.
        location: String,
        /// Why.
        problem: Problem,
    },
    /// The operating system refused.
    #[error("cannot {what}: {source}; mend what the system reports, then open the pool again")]
    System {
        /// What was tried, and on what.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A range is empty of sense: it leaves the heap of the pool, or wraps.
    #[error("{length} bytes at offset {offset:#x} leave the pool's heap ({start:#x}..{end:#x}): nothing was read or written; stay inside the heap", start = heap.start, end = heap.end)]
    OutOfRange {
        /// First byte, as an offset in the pool.
        offset: u64,
        /// Bytes.
        length: u64,
        /// Offsets that programs may use.
        heap: Range<u64>,
    },
    /// An offset is not aligned as the call needs.
    #[error("offset {offset:#x} is not a multiple of {alignment}: nothing was done; give one that is")]
    Misaligned {
        /// The offset.
        offset: u64,
        /// What it must be a multiple of, in bytes.
        alignment: u64,
    },
    /// Zero bytes were asked for.
    #[error("a size of zero bytes makes no sense for {what}: nothing was done; ask for at least one")]
    ZeroSize {
        /// The call.
        what: &'static str,
    },
    /// `free` of something that is not an allocated object.
    #[error(
        "offset {offset:#x} is not the start of an allocated object (freed twice, or never allocated): nothing was freed; free each object once, by the offset that its allocation gave"
    )]
    NotAllocated {
        /// The offset.
        offset: u64,
    },
    /// The root of the pool is of another type than the program's, or of another layout.
    #[error(
        "the root of the pool is {found}, and the program has {wanted} or other types behind it: nothing was changed; open the pool with the program that made it, or \
         copy what it holds into a new pool"
    )]
    RootType {
        /// What the pool says of its root.
        found: String,
        /// What the program asked for.
        wanted: String,
    },
    /// No free space in the heap.
    #[error(
        "the pool is full: {requested} bytes do not fit ({free} bytes are free, in pieces); free objects or create a larger pool"
    )]
    Full {
        /// Bytes that were asked for.
        requested: u64,
        /// Bytes that are free altogether.
        free: u64,
    },
    /// A transaction outgrew its log or its spare pages. It was rolled back.
    #[error(
        "the transaction is too large: {what} needs {needed} bytes and has {available}; split it, or create the pool with {remedy}"
    )]
    TooLarge {
        /// What is full.
        what: &'static str,
        /// Bytes that were needed.
        needed: u64,
        /// Bytes that there are.
        available: u64,
        /// Option that makes more of it.
        remedy: &'static str,
    },
    /// A transaction inside a transaction of the same pool and thread.
    #[error("a transaction of this pool is open on this thread already: pass it on instead of nesting")]
    Nested,
    /// A change through a pool that was opened for reading.
    #[error("the pool was opened for reading only: nothing was changed; open it for writing")]
    ReadOnly,
    /// A change through a pool that the parent of this process opened.
    #[error(
        "the pool belongs to the parent of this process, which was forked while it was open: nothing was changed; open the pool in one of the two \
         processes, after the fork"
    )]
    Forked,
    /// The system gives this process no more memory for what the library has to remember.
    #[error(
        "the process has no memory left for {what}: nothing was changed by this call; give it more, or do less at once"
    )]
    NoMemory {
        /// What it was needed for.
        what: &'static str,
    },
    /// A rollback failed, so memory and log do not agree: the pool must be opened anew, which
    /// recovers it.
    #[error(
        "the pool was left in the middle of a rollback by an earlier failure: close and open it, which recovers it"
    )]
    Poisoned,
    /// The closure gave up by [`Error::abort`].
    #[error("the transaction was aborted: {0}")]
    Aborted(Box<dyn std::error::Error + Send + Sync>),
    /// The pool's metadata contradicts itself.
    #[error(
        "the pool is corrupt: {what} at offset {offset:#x}; close it and see what nearpm pool check says, or restore it from a copy"
    )]
    Corrupt {
        /// What is wrong.
        what: &'static str,
        /// Where, as an offset in the pool.
        offset: u64,
    },
    /// The card failed.
    #[error("card: {0}")]
    Card(#[from] CardError),
    /// The card failed in the middle of a command that writes.
    #[error(
        "the card failed while it wrote {length} bytes at offset {offset:#x}: what they hold is undefined; restore them from a copy ({source})"
    )]
    Damaged {
        /// First damaged byte, as an offset in the pool.
        offset: u64,
        /// Bytes.
        length: u64,
        /// The failure.
        source: CardError,
    },
    /// A log of the pool failed on the card, of this thread or of another one: what the log covers
    /// has no old value, and the card holds back or drops what is stored there.
    #[error(
        "the card failed in a log for {length} bytes at offset {offset:#x}, so that what they hold cannot be taken back, and stores to them may be lost: \
         nothing was acknowledged by this call, and the pool takes no more transactions; close and open it, which recovers the rest, and restore these \
         bytes from a copy ({source})"
    )]
    LogFailed {
        /// First byte that the log was to cover, as an offset in the pool.
        offset: u64,
        /// Bytes; all of the pool where the card does not say which log it was.
        length: u64,
        /// What the card says.
        source: CardError,
    },
    /// The card's memory refused stores to the pool that the card had accepted.
    #[error(
        "the card lost stores to {length} bytes at offset {offset:#x}, because its memory refused them: some of these bytes are old; nothing was acknowledged \
         by this call, and the pool takes no more transactions; close it, and restore these bytes from a copy ({source})"
    )]
    StoresLost {
        /// First byte of the first lost line, as an offset in the pool.
        offset: u64,
        /// Bytes from there to the end of the last lost line; not all of them need be old.
        length: u64,
        /// What the card says.
        source: CardError,
    },
    /// A thread number that the pool has no log for.
    #[error(
        "thread {thread} has no log: this pool has logs for the threads below {lanes}; create it with more (Options::lanes)"
    )]
    NoLane {
        /// The number.
        thread: u16,
        /// Thread numbers that have one.
        lanes: u16,
    },
    /// The log of a thread holds something else.
    #[error("the log of thread {thread} holds {holds}, and cannot take {wanted}: end it first, with NearPM_commit_log")]
    LogInUse {
        /// The thread.
        thread: u16,
        /// What it holds.
        holds: &'static str,
        /// What was asked for.
        wanted: &'static str,
    },
    /// Not an entry of the thread's redo log.
    #[error(
        "offset {offset:#x} is not a value in the redo log of this thread, or not of this size: nothing was applied; give offset and size of a value as it was logged"
    )]
    NotALog {
        /// The offset.
        offset: u64,
    },
}

impl Error {
    /// An error of the program itself, to leave a transaction with.
    pub fn abort(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Aborted(reason.into())
    }

    /// Of a vector that cannot grow.
    pub(crate) fn no_memory(what: &'static str) -> impl FnOnce(std::collections::TryReserveError) -> Error {
        move |_| Error::NoMemory { what }
    }

    /// For a commit after a change of several steps that failed between them.
    pub(crate) fn half_done() -> Error {
        Error::abort("an earlier call of the transaction failed half-way, and its error was ignored")
    }

    /// What a failed command or a lost store leaves undefined, in a pool at these device addresses.
    pub(crate) fn failed(source: CardError, place: &Range<u64>) -> Error {
        let failure = match &source {
            CardError::Command(failure) => *failure,
            CardError::LogFailed { log: Some(failure), .. } => *failure,
            CardError::LogFailed { log: None, .. } => {
                return Error::LogFailed { offset: 0, length: place.end - place.start, source };
            }
            CardError::StoresLost(lost) => {
                let bytes = lost.within(place).unwrap_or_else(|| place.clone());
                return Error::StoresLost {
                    offset: bytes.start - place.start,
                    length: bytes.end - bytes.start,
                    source,
                };
            }
            _ => return source.into(),
        };
        let command = failure.command;
        let (offset, length) = match Opcode::from_code(command.opcode) {
            Some(Opcode::UndoLog | Opcode::Checkpoint) => (command.source, command.length.into()),
            Some(Opcode::Commit | Opcode::Switch) => (command.destination, 8),
            _ => (command.destination, command.length.into()),
        };
        if failure.tells_of_a_failed_log() {
            Error::LogFailed { offset, length, source }
        } else if failure.error.had_side_effects() {
            Error::Damaged { offset, length, source }
        } else {
            source.into()
        }
    }

    /// An operating system error with what was tried.
    pub(crate) fn system(what: impl Into<String>, source: std::io::Error) -> Error {
        Error::System { what: what.into(), source }
    }
}

/// Why a pool was refused, and what to do about it.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Nothing there.
    #[error("does not exist; create it first")]
    NotFound,
    /// Something there already.
    #[error("exists already; choose another name, or remove it first")]
    Exists,
    /// Not a pool.
    #[error("is not a NearPM pool but {}; nothing was changed; {}", signature::name(*.found), signature::advice(*.found))]
    Foreign {
        /// First eight bytes, little-endian.
        found: u64,
    },
    /// Not a file that holds bytes.
    #[error("is {kind}, and a pool lies in an ordinary file: nothing was changed; give the path of one")]
    NotAFile {
        /// What it is.
        kind: &'static str,
    },
    /// May not be read by this user.
    #[error(
        "may not be read by this user: nothing was changed; change the permission of it or of its folder, or copy it"
    )]
    Unreadable,
    /// Its creation was interrupted.
    #[error("was never finished (its header is blank): its creation was interrupted; remove it and create it again")]
    Unfinished,
    /// From a newer library.
    #[error("has format version {found}, this library knows up to {supported}; use the library that created it")]
    Newer {
        /// Version of the pool.
        found: u32,
        /// Newest version that is known.
        supported: u32,
    },
    /// Shorter than its header says.
    #[error("is truncated: its header says {header} bytes, there are {found}; restore it from a copy")]
    Truncated {
        /// Bytes by the header.
        header: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// Damaged.
    #[error(
        "is corrupt: {what} at offset {offset:#x}; see what nearpm pool check says, and whether --repair can put it right, or restore it from a copy"
    )]
    Corrupt {
        /// What is wrong.
        what: &'static str,
        /// Where, as an offset in the pool.
        offset: u64,
    },
    /// Open elsewhere.
    #[error("is open already, in {}; close it there first", holder(.process))]
    InUse {
        /// Identifier of the process that has it, if the system tells.
        process: Option<u32>,
    },
    /// May not be written.
    #[error(
        "may not be written by this user, or lies on a read-only medium; a pool needs write permission also for recovery: change the permission, or copy it"
    )]
    ReadOnly,
    /// A repair was interrupted, so that the pool may be half changed.
    #[error("was being repaired when that was interrupted; run nearpm pool check --repair on it, which begins anew")]
    RepairInterrupted,
    /// No room on the medium.
    #[error(
        "needs {needed} bytes and the medium has not that many free; nothing was changed: free space there, or ask for less"
    )]
    NoSpace {
        /// Bytes that were asked for.
        needed: u64,
    },
    /// Too small to hold anything.
    #[error(
        "cannot have {bytes} bytes: with these options the smallest pool has {minimum} bytes; ask for that many or more"
    )]
    TooSmall {
        /// Bytes that were asked for.
        bytes: u64,
        /// Fewest bytes.
        minimum: u64,
    },
    /// A name that no pool can have.
    #[error("has a bad name: {rule}; choose another")]
    BadName {
        /// What names must be like.
        rule: &'static str,
    },
    /// A card that is not known.
    #[error(
        "names the card {name:?}, which is not open in this process; open it and register it with nearpm::cards::register"
    )]
    UnknownCard {
        /// Name of the card.
        name: String,
    },
    /// The table of pools on the card is full.
    #[error("does not fit in the card's table of pools, which holds {limit}; remove a pool")]
    DirectoryFull {
        /// Most pools that it holds.
        limit: usize,
    },
    /// A member of a striped pool, taken for a pool.
    #[error(
        "is {found}, which is nothing by itself: nothing was changed; name all its cards, in their order (card:A+B/POOL)"
    )]
    MemberAlone {
        /// What it is.
        found: String,
    },
    /// Not the member of a striped pool that was named.
    #[error(
        "is {found}, and {wanted} is wanted here: nothing was changed; name the cards of one pool, each once, in the order in which it was created"
    )]
    OtherMember {
        /// What is there.
        found: String,
        /// What must be there.
        wanted: String,
    },
    /// The card of a member does not answer.
    #[error(
        "its card does not answer ({error}): nothing was changed on the other cards of the pool, and nothing on them is lost; bring the card back and open          the pool again"
    )]
    NoAnswer {
        /// What the driver says.
        error: String,
    },
    /// An option that this pool cannot have.
    #[error("cannot be opened so: {what}; change the option")]
    BadOption {
        /// Which, and what to do.
        what: &'static str,
    },
}

/// A process, as a message names it.
fn holder(process: &Option<u32>) -> String {
    match process {
        Some(own) if *own == std::process::id() => "this process".to_owned(),
        Some(other) => format!("process {other}"),
        None => "this process or another".to_owned(),
    }
}

impl Problem {
    /// The error for a pool.
    pub(crate) fn at(self, location: impl ToString) -> Error {
        Error::Pool { location: location.to_string(), problem: self }
    }
}

/// What files begin with that are no pools.
mod signature {
    /// First bytes, what they are the beginning of, and whether that is PMDK's.
    const KNOWN: &[(&[u8], &str, bool)] = &[
        (b"PMEMOBJ\0", "a pool of PMDK's libpmemobj", true),
        (b"PMEMLOG\0", "a pool of PMDK's libpmemlog", true),
        (b"PMEMBLK\0", "a pool of PMDK's libpmemblk", true),
        (b"PMEMPOOL", "a pool set file of PMDK", true),
        (b"NearPGPU", "a region of a GPU's persistent memory", false),
        (b"\x7fELF", "a program or library (ELF)", false),
        (b"\x89PNG", "an image (PNG)", false),
        (b"PK\x03\x04", "an archive (ZIP)", false),
        (b"\x1f\x8b", "compressed data (gzip)", false),
        (b"SQLite f", "a database of SQLite", false),
        (b"REDIS", "a dump of Redis", false),
    ];

    fn known(found: u64) -> Option<&'static (&'static [u8], &'static str, bool)> {
        KNOWN.iter().find(|(start, ..)| found.to_le_bytes().starts_with(start))
    }

    /// What begins with eight bytes.
    pub fn name(found: u64) -> String {
        let first = || {
            let start = found.to_le_bytes();
            let end = start.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            format!("another file (the first bytes are \"{}\")", start[..end].escape_ascii())
        };
        known(found).map_or_else(first, |(_, name, _)| (*name).to_owned())
    }

    /// What to do about it.
    pub fn advice(found: u64) -> &'static str {
        match known(found) {
            Some((.., true)) => {
                "open it with PMDK's own library and tools (pmempool), or make a pool of one that libpmemobj wrote by nearpm pool import, as docs/pmdk.md says"
            }
            _ => "give the path of a pool",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the text of each problem must advise; a new variant does not compile before it is here
    /// and in [`problems`].
    fn advice(problem: &Problem) -> &'static str {
        match problem {
            Problem::NotFound => "create it first",
            Problem::Exists => "choose another name, or remove it",
            Problem::Foreign { .. } => "nothing was changed; give the path of a pool",
            Problem::NotAFile { .. } => "give the path of one",
            Problem::Unreadable => "change the permission",
            Problem::Unfinished => "remove it and create it again",
            Problem::Newer { .. } => "use the library that created it",
            Problem::Truncated { .. } | Problem::Corrupt { .. } => "restore it from a copy",
            Problem::InUse { .. } => "close it there first",
            Problem::ReadOnly => "change the permission",
            Problem::RepairInterrupted => "run nearpm pool check --repair",
            Problem::NoSpace { .. } => "free space there, or ask for less",
            Problem::TooSmall { .. } => "ask for that many or more",
            Problem::BadName { .. } => "choose another",
            Problem::UnknownCard { .. } => "register it",
            Problem::DirectoryFull { .. } => "remove a pool",
            Problem::MemberAlone { .. } => "name all its cards",
            Problem::OtherMember { .. } => "in the order in which it was created",
            Problem::NoAnswer { .. } => "bring the card back",
            Problem::BadOption { .. } => "change the option",
        }
    }

    fn problems() -> [Problem; 21] {
        [
            Problem::NotFound,
            Problem::Exists,
            Problem::Foreign { found: 1 },
            Problem::NotAFile { kind: "a folder" },
            Problem::Unreadable,
            Problem::Unfinished,
            Problem::Newer { found: 2, supported: 1 },
            Problem::Truncated { header: 2, found: 1 },
            Problem::Corrupt { what: "a word", offset: 8 },
            Problem::InUse { process: Some(1) },
            Problem::ReadOnly,
            Problem::RepairInterrupted,
            Problem::NoSpace { needed: 1 },
            Problem::TooSmall { bytes: 1, minimum: 2 },
            Problem::BadName { rule: "names are short" },
            Problem::UnknownCard { name: "card0".into() },
            Problem::DirectoryFull { limit: 3 },
            Problem::MemberAlone { found: "member 1 of 2".into() },
            Problem::OtherMember { found: "member 1 of 2".into(), wanted: "member 0 of 2".into() },
            Problem::NoAnswer { error: "the card has gone".into() },
            Problem::BadOption { what: "no lanes" },
        ]
    }

    /// As [`advice`], with [`errors`].
    fn remedy(error: &Error) -> &'static str {
        match error {
            Error::Pool { problem, .. } => advice(problem),
            Error::System { .. } => "mend what the system reports",
            Error::OutOfRange { .. } => "stay inside the heap",
            Error::Misaligned { .. } => "give one that is",
            Error::ZeroSize { .. } => "ask for at least one",
            Error::NotAllocated { .. } => "free each object once",
            Error::RootType { .. } => "copy what it holds",
            Error::Full { .. } => "free objects or create a larger pool",
            Error::TooLarge { .. } => "split it",
            Error::Nested => "pass it on",
            Error::ReadOnly => "open it for writing",
            Error::NoMemory { .. } => "do less at once",
            Error::Forked => "open the pool in one of the two",
            Error::Poisoned => "close and open it",
            // What to do is the program's own to say.
            Error::Aborted(_) => "try another seat",
            Error::Corrupt { .. } | Error::Damaged { .. } | Error::LogFailed { .. } | Error::StoresLost { .. } => {
                "from a copy"
            }
            Error::Card(_) => "open card and pools again",
            Error::NoLane { .. } => "create it with more",
            Error::LogInUse { .. } => "end it first",
            Error::NotALog { .. } => "give offset and size",
        }
    }

    fn errors() -> Vec<Error> {
        let own = [
            Error::system("map /a", std::io::ErrorKind::OutOfMemory.into()),
            Error::OutOfRange { offset: 1, length: 2, heap: 4..8 },
            Error::Misaligned { offset: 1, alignment: 8 },
            Error::ZeroSize { what: "alloc" },
            Error::NotAllocated { offset: 1 },
            Error::RootType { found: "\"A\" of 8 bytes".into(), wanted: "\"B\" of 8 bytes".into() },
            Error::Full { requested: 2, free: 1 },
            Error::TooLarge { what: "the log ring", needed: 2, available: 1, remedy: "Options::ring_bytes" },
            Error::Nested,
            Error::Poisoned,
            Error::abort("seat 4 is taken, try another seat"),
            Error::Corrupt { what: "a word", offset: 8 },
            Error::Card(CardError::Gone),
            Error::Damaged { offset: 1, length: 2, source: CardError::Gone },
            Error::LogFailed { offset: 1, length: 2, source: CardError::Gone },
            Error::StoresLost { offset: 1, length: 2, source: CardError::Gone },
            Error::NoLane { thread: 3, lanes: 2 },
            Error::LogInUse { thread: 1, holds: "undo entries", wanted: "a redo entry" },
            Error::NotALog { offset: 1 },
        ];
        own.into_iter().chain(problems().map(|problem| problem.at("/a/pool"))).collect()
    }

    #[test]
    fn files_of_others_are_recognised() {
        let says = |start: &[u8; 8]| Problem::Foreign { found: u64::from_le_bytes(*start) }.to_string();
        for start in [b"PMEMOBJ\0", b"PMEMLOG\0", b"PMEMBLK\0", b"PMEMPOOL"] {
            let text = says(start);
            assert!(
                text.contains("of PMDK") && text.contains("open it with PMDK") && text.contains("docs/pmdk.md"),
                "{text}"
            );
        }
        assert!(says(b"PMEMPOOL").contains("pool set"));
        assert!(says(b"\x7fELF\x02\x01\x01\0").contains("a program or library"));
        assert!(says(b"root:x:0").contains("\"root:x:0\"") && says(b"root:x:0").contains("give the path of a pool"));
    }

    #[test]
    fn each_error_says_what_to_do() {
        for error in errors() {
            let (text, remedy) = (error.to_string(), remedy(&error));
            assert!(text.contains(remedy), "{text:?} lacks {remedy:?}");
            assert_eq!(format!("{error:?}"), text, "what main prints");
            assert!(!matches!(error, Error::Pool { .. }) || text.contains("/a/pool"), "{text:?} does not say where");
        }
    }
}
