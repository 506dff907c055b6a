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
    /// Wide keys: slots with 64 bits of another key than their cell has. Only a check looks for them.
    pub unlike: u32,
}

impl Found {
    /// Whether it is what runs and crashes of this library leave.
    pub fn is_sound(&self) -> bool {
        [self.broken, self.shared, self.stray, self.twice, self.unlike] == [0; 5]
    }

    fn of_words(words: &[u32]) -> Found {
        let [broken, shared, stray, marked, twice, live] = std::array::from_fn(|at| words[5 + at]);
        Found { live, marked, broken, shared, stray, twice, unlike: words[UNLIKE as usize] }
    }
}

/// Words of the counts that a check begins anew: `GPH_TWICE`, `GPH_UNLIKE`.
const TWICE: u64 = 9;
const UNLIKE: u64 = 13;

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

/// Makes everything that is in the device's memory, and ends a growth that a crash has cut off.
pub(crate) fn recover(table: &Table) -> Result<Found> {
    table.end_growth()?;
    let owned = table.scan()?;
    table.launch("gph_find_spares", table.layout().cells(), &[])?;
    let found = Found::of_words(&table.counts.download_words()?);
    table.describe(Descriptor { owned: 0, ..table.descriptor() })?;
    drop(owned);
    Ok(found)
}

impl Table {
    /// Goes through all slots: tags, counts, and which cells have an owner, which the descriptor has as long as the buffer is there.
    pub(crate) fn scan(&self) -> Result<Buffer> {
        let layout = *self.layout();
        let owned = Buffer::zeroed(self.device(), layout.cells().div_ceil(32) * 4)?;
        self.describe(Descriptor { owned: owned.address(), ..self.descriptor() })?;
        match layout.design {
            Design::Levels => self.launch("gph_recover", layout.all_slots(), &[])?,
            Design::Tags => {
                self.launch("gph_recover", layout.all_slots() / 2, &[])?;
                self.launch("gph_settle", layout.stash_slots(), &[])?;
            }
        }
        Ok(owned)
    }

    /// Looks for everything that is wrong, keys that are there twice included. No batch runs meanwhile.
    ///
    /// # Errors
    /// What the device refuses.
    pub fn check(&self) -> Result<Found> {
        for count in [TWICE, UNLIKE] {
            self.device().fill(self.counts.address() + 4 * count, 0, 4)?;
        }
        self.launch("gph_find_twice", self.layout().all_slots(), &[])?;
        let found = Found::of_words(&self.counts.download_words()?);
        Ok(Found { live: self.found().live, ..found })
    }
}
