//! What opening a table does: the GPU goes through all slots, makes tags, and finds out which cells
//! are spare.

use nearpm_gpu::{Buffer, Module, PmRegion};

use crate::descriptor::Descriptor;
use crate::error::{Error, Result};
use crate::found::{Found, UNLIKE};
use crate::kernels::kernels_of;
use crate::layout::Design;
use crate::table::Table;

/// The word of the counts that a check begins anew besides [`UNLIKE`]: `GPH_TWICE`.
const TWICE: u64 = 9;

/// Makes everything that is in the device's memory, and ends a growth that a crash has cut off.
fn recover(table: &Table) -> Result<Found> {
    table.end_growth()?;
    let owned = table.scan()?;
    table.launch("gph_find_spares", table.layout().cells(), &[])?;
    let found = Found::of_words(&table.counts.download_words()?);
    table.describe(Descriptor { owned: 0, ..table.descriptor() })?;
    drop(owned);
    Ok(found)
}

impl Table {
    /// Opens a table, whatever its design, and recovers it: what had been answered before a crash
    /// is there, of everything else each operation has happened or not.
    ///
    /// # Errors
    /// There is none of that name; [`Error::Damaged`]: no pair was changed then; no room in the
    /// device's memory.
    pub fn open(region: &PmRegion, name: &str) -> Result<Table> {
        let kernels = kernels_of(&Table::layout_of(region, name)?, false);
        Table::open_with(region, name, kernels)?.sound(name)
    }

    /// The same with other kernels, whatever recovery finds: for tests, and to repair.
    ///
    /// # Errors
    /// As for [`Table::open`].
    pub fn open_with(region: &PmRegion, name: &str, kernels: &Module) -> Result<Table> {
        let mut table = Table::unrecovered(region, name, kernels)?;
        table.found = recover(&table)?;
        Ok(table)
    }

    /// The table, if recovery has found what runs and crashes of this library leave.
    pub(crate) fn sound(self, name: &str) -> Result<Table> {
        match self.found.is_sound() {
            true => Ok(self),
            false => Err(Error::Damaged { table: name.to_owned(), found: self.found }),
        }
    }

    /// Goes through all slots: tags, counts, and which cells have an owner, which the descriptor
    /// has as long as the buffer is there.
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

    /// Looks for everything that is wrong, keys that are there twice included. No batch runs
    /// meanwhile.
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
