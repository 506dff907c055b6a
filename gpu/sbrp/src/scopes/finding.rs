//! What the checker says.

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Flaw {
    /// A release whose scope does not hold the thread that acquires it.
    NarrowRelease,
    /// An acquire whose scope does not hold the thread that has released.
    NarrowAcquire,
    /// An acquire reads what a plain store has stored.
    MissingRelease,
    /// A plain load reads what a release has stored, and no fence follows before the thread
    /// persists.
    MissingAcquire,
    /// A thread persists something though nothing orders what it has read, of another thread,
    /// before that.
    Unordered,
    /// Two threads of different blocks store to one word of PM, and nothing orders them: either may
    /// be final.
    TwoWriters,
}

/// Something that is wrong with a kernel. Lines are of the PTX text; [`crate::scopes::Source`] has
/// those of the CUDA source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Finding {
    /// What.
    pub flaw: Flaw,
    /// The line to mend: of the release, acquire, load or store.
    pub line: u32,
    /// The other line: of the store that was read or overwritten.
    pub other: u32,
    /// Of an unordered persist: the line of the load; else 0.
    pub load: u32,
}

impl Finding {
    /// What to say of it, with places as `line` gives them.
    pub fn in_words(&self, line: impl Fn(u32) -> String) -> String {
        let (here, other) = (line(self.line), line(self.other));
        match self.flaw {
            Flaw::NarrowRelease => format!(
                "{here}: this release has the scope of the block, and a thread of another block acquires it at {other}: \
                 pRel_dev is needed"
            ),
            Flaw::NarrowAcquire => format!(
                "{here}: this acquire has the scope of the block, and a thread of another block has released at {other}: \
                 pAcq_dev is needed"
            ),
            Flaw::MissingRelease => {
                format!(
                    "{here}: this store is read by the acquire at {other} and is no release: a pRel is missing here"
                )
            }
            Flaw::MissingAcquire => {
                format!("{here}: this load reads a release at {other} and is no acquire: a pAcq is missing here")
            }
            Flaw::Unordered => format!(
                "{here}: this persist may be durable before the store at {other}, which its thread has read at {}",
                line(self.load)
            ),
            Flaw::TwoWriters => format!(
                "{here}: this store and that at {other}, of another block, are not ordered: either may be left after a crash"
            ),
        }
    }
}
