//! What opening a table does: the GPU goes through all slots, makes tags, and finds out which cells are spare.

use nearpm_gpu::Buffer;

use crate::descriptor::Descriptor;
use crate::error::Result;
use crate::layout::Design;
use crate::table::Table;

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
}

impl Found {
    /// Whether it is what runs and crashes of this library leave.
    pub fn is_sound(&self) -> bool {
        self.broken == 0 && self.shared == 0 && self.stray == 0 && self.twice == 0
    }

    fn of_words(words: &[u32]) -> Found {
        let [broken, shared, stray, marked, twice, live] = std::array::from_fn(|at| words[5 + at]);
        Found { live, marked, broken, shared, stray, twice }
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} pairs, {} marks; {} pointers that do not hold, {} cells that slots share, {} keys out of place, {} keys twice",
            self.live, self.marked, self.broken, self.shared, self.stray, self.twice
        )
    }
}

/// Makes everything that is in the device's memory.
pub(crate) fn recover(table: &Table) -> Result<Found> {
    let layout = *table.layout();
    let owned = Buffer::zeroed(table.device(), layout.cells().div_ceil(32) * 4)?;
    table.describe(Descriptor { owned: owned.address(), ..table.descriptor() })?;
    let items = match layout.design {
        Design::Levels => layout.all_slots(),
        Design::Tags => layout.all_slots() / 2,
    };
    table.launch("gph_recover", items, &[])?;
    table.launch("gph_find_spares", layout.cells(), &[])?;
    let found = Found::of_words(&table.counts.download_words()?);
    table.describe(Descriptor { owned: 0, ..table.descriptor() })?;
    Ok(found)
}

impl Table {
    /// Looks for everything that is wrong, keys that are there twice included. No batch runs meanwhile.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn check(&self) -> Result<Found> {
        self.launch("gph_find_twice", self.layout().all_slots(), &[])?;
        let words = self.counts.download_words()?;
        let found = Found::of_words(&words);
        self.device().fill(self.counts.address() + 4 * 9, 0, 4)?;
        Ok(Found { live: self.found().live, ..found })
    }
}
