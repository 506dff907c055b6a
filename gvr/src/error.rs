//! What can go wrong: what, where, and what to do.

/// Which versions can be read.
fn kept(oldest: u64, newest: u64) -> String {
    if oldest > newest { "none was closed yet".to_owned() } else { format!("versions {oldest} to {newest} are") }
}

/// Any error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A rank has died, or has left while others still work together.
    #[error(
        "rank {rank} of {ranks} is gone: nothing more is shared with it; end this run and open the job again, on any number of ranks"
    )]
    DeadRank {
        /// The rank.
        rank: usize,
        /// Ranks of the world.
        ranks: usize,
    },
    /// A simulated rank was stopped here.
    #[error("this rank was stopped by its simulation at step {step}")]
    Stopped {
        /// Step of the schedule.
        step: u64,
    },
    /// An index range leaves the array, or runs backwards.
    #[error(
        "index {lo:?} to {hi:?} (both included) is not inside of an array of {dims:?} elements: nothing was read or written; stay inside, with lo <= hi"
    )]
    OutOfRange {
        /// First index, by dimension.
        lo: Vec<u64>,
        /// Last index, by dimension.
        hi: Vec<u64>,
        /// Elements, by dimension.
        dims: Vec<u64>,
    },
    /// A buffer has another number of elements than the range.
    #[error(
        "the buffer has {given} elements and the range {wanted}: nothing was read or written; give a buffer of {wanted}"
    )]
    Buffer {
        /// Elements of the buffer.
        given: usize,
        /// Elements of the range.
        wanted: usize,
    },
    /// A rank's log has no room for the blocks of a put.
    #[error(
        "the log of rank {rank} is full ({free} of {capacity} blocks are free, {needed} are needed): the put of these blocks was not done; call version_inc, which cleans the log, keep fewer versions, close cursors, or give the array more log blocks"
    )]
    LogFull {
        /// Owner of the log.
        rank: usize,
        /// Blocks that a put needs.
        needed: u64,
        /// Blocks that are free.
        free: u64,
        /// Blocks of the log.
        capacity: u64,
    },
    /// Another rank has claimed a block and does not publish it.
    #[error(
        "a block of rank {rank} (number {block}) was claimed by a rank that has not published it within {seconds} s: the put was not done; look for a rank that hangs"
    )]
    Unpublished {
        /// Owner of the block.
        rank: usize,
        /// The block.
        block: u64,
        /// How long it was waited for, in seconds.
        seconds: u64,
    },
    /// A version that is not kept.
    #[error("version {version} is not kept; {}", kept(*oldest, *newest))]
    NoVersion {
        /// The version that was asked for.
        version: u64,
        /// The oldest version that can be read; where there is none, one more than `newest`.
        oldest: u64,
        /// The newest one.
        newest: u64,
    },
    /// Old versions need more metadata than there is room for, since a cursor holds on to them.
    #[error(
        "rank {rank} cannot note version {version}: cursors hold on to old versions, back to {pinned}, and their metadata fills its room; the version was not made: close cursors"
    )]
    Pinned {
        /// The rank without room.
        rank: usize,
        /// The version that was to be made.
        version: u64,
        /// The oldest version that a cursor holds.
        pinned: u64,
    },
    /// An option or argument makes no sense.
    #[error("{what}")]
    BadOption {
        /// What, and what to do.
        what: String,
    },
    /// An array of other elements, dimensions or blocks than the program's.
    #[error(
        "array {name:?} holds {found}, and the program wants {wanted}: nothing was opened; use the program that made it"
    )]
    OtherType {
        /// Name of the array.
        name: String,
        /// What it holds.
        found: String,
        /// What was asked for.
        wanted: String,
    },
    /// Another rank has had an error that keeps this call from being done.
    #[error(
        "rank {rank} has failed since the last version ({what}): nothing was done on any rank; act on the error there, then call again"
    )]
    Elsewhere {
        /// The rank.
        rank: usize,
        /// Kind of error there.
        what: &'static str,
    },
    /// What a rank had stored is not there.
    #[error(
        "job {folder}: the pool of rank {rank} of {ranks} is missing ({path}): nothing was opened or changed; bring the file back, or begin a new job in another folder"
    )]
    MissingPool {
        /// Folder of the job.
        folder: String,
        /// The rank.
        rank: usize,
        /// Ranks that have pools.
        ranks: usize,
        /// Where the pool should be.
        path: String,
    },
    /// A folder is no job, or a damaged one.
    #[error("job {folder}: {what}")]
    Job {
        /// Folder of the job.
        folder: String,
        /// What is wrong, and what to do.
        what: String,
    },
    /// A checksum does not fit, and there is no other copy.
    #[error(
        "block {block} of version {version} of array {array:?} on rank {rank} is damaged in {place}: run a scrub while another copy exists, or restore another version"
    )]
    Damaged {
        /// Name of the array.
        array: String,
        /// Rank that owns the block.
        rank: usize,
        /// The block.
        block: u64,
        /// The version.
        version: u64,
        /// The log in memory, or the pool.
        place: &'static str,
    },
    /// The pool underneath.
    #[error(transparent)]
    Pool(#[from] nearpm::Error),
    /// The operating system refused.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// Memory of the world is used up.
    #[error(
        "an array needs {needed} bytes of each rank's shared memory and {free} are left: nothing was made; start the world with more"
    )]
    NoMemory {
        /// Bytes that are needed on each rank.
        needed: u64,
        /// Bytes that are left.
        free: u64,
    },
}

/// Code of an error that the program has raised.
pub(crate) const RAISED: u64 = 12;

/// Result of a call of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Code of [`Error::LogFull`].
    pub(crate) const LOG_FULL: u64 = 3;

    /// Makes an error of what the system says.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(rustix::io::Errno) -> Error {
        let what = what.into();
        move |errno| Error::System { what, source: errno.into() }
    }

    /// Makes an error of what the standard library says.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
        let what = what.into();
        move |source| Error::System { what, source }
    }

    pub(crate) fn option(what: impl Into<String>) -> Error {
        Error::BadOption { what: what.into() }
    }

    /// A number for the kind of error, by which other ranks are told of it; never 0.
    pub(crate) fn code(&self) -> u64 {
        match self {
            Error::OutOfRange { .. } => 1,
            Error::Buffer { .. } => 2,
            Error::LogFull { .. } => Error::LOG_FULL,
            Error::Unpublished { .. } => 4,
            Error::Pinned { .. } => 5,
            Error::Pool(_) => 6,
            Error::Damaged { .. } => 7,
            Error::OtherType { .. } => 8,
            Error::MissingPool { .. } => 9,
            Error::Job { .. } => 10,
            _ => 11,
        }
    }

    /// What a number of [`Error::code`] says.
    pub(crate) fn of_code(code: u64, rank: usize) -> Error {
        const KINDS: [&str; 12] = [
            "an index out of range",
            "a buffer of another size",
            "a full log",
            "a block that was claimed and not published",
            "old versions that cursors hold",
            "its pool",
            "a damaged block",
            "an array of another type",
            "a pool that is missing",
            "a job that cannot be opened",
            "another error",
            "an error that its program has raised and not resumed",
        ];
        let what = KINDS.get((code as usize).wrapping_sub(1)).copied().unwrap_or("another error");
        Error::Elsewhere { rank, what }
    }
}
