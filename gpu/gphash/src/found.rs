//! What recovery, or a check, found: counts of slots that are right, and wrong.

/// What recovery, or a check, found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Pairs.
    pub live: u32,
    /// Marks of operations that a crash had cut off, and of deleted keys: freed.
    pub marked: u32,
    /// Slots whose pointer does not hold.
    pub broken: u32,
    /// Slots whose cell another slot has, too.
    pub shared: u32,
    /// Keys in a bucket that is none of theirs.
    pub stray: u32,
    /// Keys that are there twice, counted each time: only a check looks for them.
    pub twice: u32,
    /// Wide keys: slots with 64 bits of another key than their cell has. Only a check looks for
    /// them.
    pub unlike: u32,
}

impl Found {
    /// Whether it is what runs and crashes of this library leave.
    pub fn is_sound(&self) -> bool {
        [self.broken, self.shared, self.stray, self.twice, self.unlike] == [0; 5]
    }

    pub(crate) fn of_words(words: &[u32]) -> Found {
        let [broken, shared, stray, marked, twice, live] = std::array::from_fn(|at| words[5 + at]);
        Found { live, marked, broken, shared, stray, twice, unlike: words[UNLIKE as usize] }
    }
}

/// The word of the counts `GPH_UNLIKE`, which a check begins anew.
pub(crate) const UNLIKE: u64 = 13;

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} pairs, {} marks; {} pointers that do not hold, {} cells that slots share, {} keys out of place, {} keys twice, \
             {} unlike their cell's",
            self.live, self.marked, self.broken, self.shared, self.stray, self.twice, self.unlike
        )
    }
}
