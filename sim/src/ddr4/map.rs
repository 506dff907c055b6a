//! Device address to bank group, bank, row and column.
//!
//! From the lowest bit of the line address: 2 bits bank group, 7 bits column (of eight), 2 bits
//! bank, the rest row. Adjacent lines lie in different bank groups, so that a stream runs at
//! tCCD_S; 32 KiB share four open rows.

/// Banks of a rank.
pub const BANKS: usize = 16;
/// Bank groups of a rank.
pub const GROUPS: usize = 4;

const GROUP_BITS: u32 = 2;
const COLUMN_BITS: u32 = 7;
const BANK_BITS: u32 = 2;

/// Where a line lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DramAddress {
    /// Bank, 0 to 15; the low two bits are its group.
    pub bank: u8,
    /// Row of the bank.
    pub row: u32,
    /// Column divided by the burst length.
    pub column: u8,
}

impl DramAddress {
    /// The place of the line at a device address.
    pub fn of(address: u64) -> DramAddress {
        let line = address / 64;
        let group = line & ((1 << GROUP_BITS) - 1);
        let column = line >> GROUP_BITS & ((1 << COLUMN_BITS) - 1);
        let bank = line >> (GROUP_BITS + COLUMN_BITS) & ((1 << BANK_BITS) - 1);
        let row = line >> (GROUP_BITS + COLUMN_BITS + BANK_BITS);
        DramAddress { bank: (bank << GROUP_BITS | group) as u8, row: row as u32, column: column as u8 }
    }
}

/// Bank group of a bank.
pub fn group_of(bank: usize) -> usize {
    bank & (GROUPS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_lines_change_the_group_and_32_kib_share_rows() {
        let places: Vec<_> = (0..512u64).map(|line| DramAddress::of(line * 64)).collect();
        assert!(places.windows(2).all(|w| group_of(w[0].bank as usize) != group_of(w[1].bank as usize)));
        assert!(places.iter().all(|p| p.row == 0 && p.bank < 4));
        assert_eq!(DramAddress::of(32 * 1024), DramAddress { bank: 4, row: 0, column: 0 });
        assert_eq!(DramAddress::of(128 * 1024), DramAddress { bank: 0, row: 1, column: 0 });
    }

    #[test]
    fn no_two_lines_share_a_place() {
        let mut seen = std::collections::HashSet::new();
        assert!((0..8192u64).map(|l| DramAddress::of(l * 64)).all(|p| seen.insert((p.bank, p.row, p.column))));
    }
}
