//! The controller's queue of one direction: requests by bank, each bank in order of arrival.

use super::bank::Banks;
use super::map::{BANKS, DramAddress};

/// One line to read or write.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Where it lies.
    pub place: DramAddress,
    /// Rises with arrival, over both queues.
    pub age: u64,
    /// Controller cycle of arrival.
    pub arrived: u64,
    /// Read: number of its beat, from power-up. Unused for a write.
    pub beat: u64,
    /// Write: a read of the same line waits for it.
    pub awaited: bool,
}

/// What a bank needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A column command for the request at this position of the bank's list.
    Column(usize),
    /// The row of the first request opened.
    Activate,
    /// The open row closed.
    Precharge,
}

/// Requests of one direction.
pub struct Queue {
    bank: [Vec<Request>; BANKS],
    /// Bit per bank that has requests.
    occupied: u16,
    len: usize,
}

impl Queue {
    /// An empty queue; `lines` is the most that it will hold.
    pub fn new(lines: usize) -> Self {
        Queue { bank: std::array::from_fn(|_| Vec::with_capacity(lines)), occupied: 0, len: 0 }
    }

    /// Number of requests.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Banks that have requests, one bit each.
    #[inline]
    pub fn occupied(&self) -> u16 {
        self.occupied
    }

    /// Adds a request behind all others of its bank.
    pub fn push(&mut self, request: Request) {
        let bank = request.place.bank as usize;
        self.bank[bank].push(request);
        self.occupied |= 1 << bank;
        self.len += 1;
    }

    /// The oldest request of a bank that has some.
    #[inline]
    pub fn first(&self, bank: usize) -> &Request {
        &self.bank[bank][0]
    }

    /// The request at a position of a bank's list.
    #[inline]
    pub fn get(&self, bank: usize, position: usize) -> &Request {
        &self.bank[bank][position]
    }

    /// Removes a request.
    pub fn remove(&mut self, bank: usize, position: usize) -> Request {
        let request = self.bank[bank].remove(position);
        if self.bank[bank].is_empty() {
            self.occupied &= !(1 << bank);
        }
        self.len -= 1;
        request
    }

    /// Marks the youngest request to a line, so that its removal can be awaited; whether there was
    /// one that was not awaited yet.
    pub fn await_line(&mut self, place: DramAddress) -> bool {
        let found = self.bank[place.bank as usize].iter_mut().rev().find(|r| r.place == place);
        found.is_some_and(|request| !std::mem::replace(&mut request.awaited, true))
    }

    /// What a bank that has requests needs next: first-ready, first-come, but a request that
    /// arrived before `old` is passed by none.
    #[inline]
    pub fn need(&self, bank: usize, banks: &Banks, old: u64) -> Need {
        let list = &self.bank[bank];
        let Some(row) = banks.open_row(bank) else { return Need::Activate };
        if list[0].place.row == row {
            return Need::Column(0);
        }
        if list[0].arrived < old {
            return Need::Precharge;
        }
        match list.iter().position(|r| r.place.row == row) {
            Some(position) => Need::Column(position),
            None => Need::Precharge,
        }
    }
}
