//! How much the ordering side of a card holds.

use nearpm_interface::geometry::{HELD_STORES, HOST_QUEUE_LINES, MAP_ENTRIES, PARKED_COMMANDS, REQUEST_SLOTS, UNITS};

/// Places for commands, host accesses and mappings.
///
/// The ports of the units, the registers and the save area are those of the full card whatever the
/// sizes are: of a smaller card the places above these numbers are never offered, and are not in
/// its Verilog. The register `GEOMETRY` tells software.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Request slots: a power of two from 4 on.
    pub slots: usize,
    /// Lines of the host queue: a power of two from 4 on.
    pub lines: usize,
    /// Of these, lines in which stores that a failed log covers are held; fewer than there are.
    pub held_stores: usize,
    /// Entries of the address mapping table: a power of two from 2 on.
    pub map_entries: usize,
    /// Places for commands that wait for other devices: a power of two, for each mapping entry as
    /// many as a full card has.
    pub parked_commands: usize,
}

impl Sizes {
    /// Those of `nearpm_interface::geometry`, which no card exceeds.
    pub const FULL: Self = Self {
        slots: REQUEST_SLOTS,
        lines: HOST_QUEUE_LINES,
        held_stores: HELD_STORES,
        map_entries: MAP_ENTRIES,
        parked_commands: PARKED_COMMANDS,
    };

    /// A small card, as it fits an ECP5-85k.
    pub const SMALL: Self = Self { slots: 8, lines: 8, held_stores: 4, map_entries: 4, parked_commands: 8 };

    /// Checks the ranges above.
    ///
    /// # Panics
    /// When a size is outside of them.
    pub const fn check(&self) {
        const fn is(size: usize, least: usize, most: usize) -> bool {
            size.is_power_of_two() && least <= size && size <= most
        }
        assert!(is(self.slots, 4, REQUEST_SLOTS), "request slots");
        assert!(is(self.lines, 4, HOST_QUEUE_LINES), "lines of the host queue");
        assert!(self.held_stores < self.lines, "held stores leave a line for others");
        assert!(is(self.map_entries, 2, MAP_ENTRIES), "mapping entries");
        assert!(is(self.parked_commands, 2, PARKED_COMMANDS), "places for commands that wait");
        let of_each = PARKED_COMMANDS / MAP_ENTRIES;
        assert!(self.parked_commands >= of_each * self.map_entries, "places for each mapping entry");
    }

    /// The register `GEOMETRY` of a card with `units` units.
    pub const fn geometry(&self, units: usize) -> u32 {
        assert!(units >= 1 && units <= UNITS, "units");
        (self.map_entries << 24 | self.lines << 16 | self.slots << 8 | units) as u32
    }
}

impl Default for Sizes {
    fn default() -> Self {
        Self::FULL
    }
}
