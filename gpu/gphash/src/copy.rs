//! Volatile copies of tables: everything is in the device's memory, and ends with it.

use nearpm_gpu::{Buffer, PmRegion};

use crate::descriptor::Descriptor;
use crate::error::Result;
use crate::table::Table;

impl Table {
    /// Opens a table and copies it to the device's memory. What batches change is changed in the
    /// copy alone, which is gone when it is dropped: for what needs no durability, and to compare
    /// with tables that have none.
    ///
    /// # Errors
    /// As for [`Table::open`]; no room in the device's memory for slots and values.
    pub fn open_volatile(region: &PmRegion, name: &str) -> Result<Table> {
        let mut table = Table::open(region, name)?;
        let layout = *table.layout();
        let (slots_at, slots_bytes) = table.slots();
        let copied = |at: u64, bytes: u64| -> Result<Buffer> {
            let buffer = Buffer::new(region.device(), bytes)?;
            region.device().copy(buffer.address(), region.address(at), bytes)?;
            Ok(buffer)
        };
        let slots = copied(slots_at, slots_bytes)?;
        let cells = copied(table.object.offset + layout.cells_at(), layout.cells() * layout.cell_bytes())?;
        table.describe(Descriptor { slots: slots.address(), cells: cells.address(), ..table.descriptor() })?;
        table.copy = Some([slots, cells]);
        Ok(table)
    }
}
