//! JEDEC's rules between commands: when may each command come at the earliest?
//!
//! All times are in DRAM clocks since power-up. The command bus itself is never short: a controller
//! cycle has four command slots and issues at most one column, one activate and one precharge
//! command.

use super::config::Timing;
use super::map::{BANKS, GROUPS, group_of};

/// Direction of the data bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the DRAM.
    Read = 0,
    /// To the DRAM.
    Write = 1,
}

impl Direction {
    /// The other direction.
    pub fn other(self) -> Direction {
        match self {
            Direction::Read => Direction::Write,
            Direction::Write => Direction::Read,
        }
    }
}

/// No row is open.
const CLOSED: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Bank {
    row: u32,
    /// Earliest column command.
    column: u64,
    /// Earliest precharge.
    precharge: u64,
    /// Earliest activate.
    activate: u64,
}

/// The banks of the rank and what they share.
pub struct Banks {
    timing: Timing,
    bank: [Bank; BANKS],
    /// Earliest column command by direction: any group, and per group.
    column_any: [u64; 2],
    column_group: [[u64; GROUPS]; 2],
    activate_any: u64,
    activate_group: [u64; GROUPS],
    /// End of the window that each of the last four activates opened, oldest at `window_next`.
    window: [u64; 4],
    window_next: usize,
}

impl Banks {
    /// All banks closed and free.
    pub fn new(timing: Timing) -> Self {
        Banks {
            timing,
            bank: [Bank { row: CLOSED, column: 0, precharge: 0, activate: 0 }; BANKS],
            column_any: [0; 2],
            column_group: [[0; GROUPS]; 2],
            activate_any: 0,
            activate_group: [0; GROUPS],
            window: [0; 4],
            window_next: 0,
        }
    }

    /// The open row of a bank.
    #[inline]
    pub fn open_row(&self, bank: usize) -> Option<u32> {
        let row = self.bank[bank].row;
        (row != CLOSED).then_some(row)
    }

    /// Earliest column command to the open row of a bank.
    #[inline]
    pub fn column_at(&self, bank: usize, direction: Direction) -> u64 {
        let d = direction as usize;
        self.bank[bank].column.max(self.column_any[d]).max(self.column_group[d][group_of(bank)])
    }

    /// Earliest activate of a closed bank.
    #[inline]
    pub fn activate_at(&self, bank: usize) -> u64 {
        let shared = self.activate_any.max(self.activate_group[group_of(bank)]).max(self.window[self.window_next]);
        self.bank[bank].activate.max(shared)
    }

    /// Earliest precharge of an open bank.
    #[inline]
    pub fn precharge_at(&self, bank: usize) -> u64 {
        self.bank[bank].precharge
    }

    /// Issues a column command at `at`.
    pub fn column(&mut self, bank: usize, direction: Direction, at: u64) {
        debug_assert!(at >= self.column_at(bank, direction) && self.open_row(bank).is_some());
        let t = self.timing;
        let d = direction as usize;
        let group = group_of(bank);
        self.column_any[d] = at + t.ccd_s;
        self.column_group[d][group] = at + t.ccd_l;
        let precharge = match direction {
            Direction::Read => {
                let write = &mut self.column_any[Direction::Write as usize];
                *write = (*write).max(at + t.rtw);
                at + t.rtp
            }
            Direction::Write => {
                let end = at + t.cwl + t.burst;
                let read = Direction::Read as usize;
                self.column_any[read] = self.column_any[read].max(end + t.wtr_s);
                self.column_group[read][group] = self.column_group[read][group].max(end + t.wtr_l);
                end + t.wr
            }
        };
        self.bank[bank].precharge = self.bank[bank].precharge.max(precharge);
    }

    /// Opens a row at `at`.
    pub fn activate(&mut self, bank: usize, row: u32, at: u64) {
        debug_assert!(at >= self.activate_at(bank) && self.open_row(bank).is_none());
        let t = self.timing;
        let group = group_of(bank);
        self.activate_any = at + t.rrd_s;
        self.activate_group[group] = at + t.rrd_l;
        self.window[self.window_next] = at + t.faw;
        self.window_next = (self.window_next + 1) % self.window.len();
        let bank = &mut self.bank[bank];
        bank.row = row;
        bank.column = at + t.rcd;
        bank.precharge = at + t.ras;
    }

    /// Closes the row at `at`.
    pub fn precharge(&mut self, bank: usize, at: u64) {
        debug_assert!(at >= self.precharge_at(bank) && self.open_row(bank).is_some());
        self.bank[bank].row = CLOSED;
        self.bank[bank].activate = at + self.timing.rp;
    }

    /// Closes all rows and refreshes as soon as may be from `due` on.
    pub fn refresh(&mut self, due: u64) {
        let t = self.timing;
        let mut start = due;
        for bank in 0..BANKS {
            let free = match self.open_row(bank) {
                Some(_) => due.max(self.precharge_at(bank)) + t.rp,
                None => self.bank[bank].activate,
            };
            start = start.max(free);
        }
        for bank in &mut self.bank {
            bank.row = CLOSED;
            bank.activate = start + t.rfc;
        }
    }
}
