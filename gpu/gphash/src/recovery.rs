//! What opening a table does: the GPU goes through all slots, makes tags, and finds out which cells are spare.

use nearpm_gpu::Buffer;

use crate::descriptor::Descriptor;
use crate::error::Result;
use crate::found::{Found, UNLIKE};
use crate::layout::Design;
use crate::table::Table;

/// The word of the counts that a check begins anew besides [`UNLIKE`]: `GPH_TWICE`.
const TWICE: u64 = 9;

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
