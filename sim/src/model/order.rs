//! OrderingPoint, DependencyMatrix, RequestSlots and the lines of HostQueue: what is live, and what
//! waits for what.

use nearpm_interface::command::Command;
use nearpm_interface::firmware::{Descriptor, descriptor};
use nearpm_interface::geometry::{HELD_STORES, HOST_QUEUE_LINES, LINE, LINE_U64, REQUEST_SLOTS};

use super::fault::Fault;
use super::item::{ITEMS, Item, Ranges, SLOT_BITS};
use crate::core::Ticket;

/// A request slot.
#[derive(Clone, Copy)]
pub struct Slot {
    /// The command as it was posted.
    pub raw: [u8; LINE],
    /// The same by fields.
    pub command: Command,
    /// Operand descriptor.
    pub descriptor: Descriptor,
    /// Order number.
    pub order: u64,
    /// Order number under which it was accepted: another one where it was replayed, or has waited
    /// for other devices.
    pub accepted: u64,
    /// Page that it came from.
    pub page: u8,
    /// Mapping entry.
    pub entry: u8,
    /// Instruction at which a replay resumes; 0 for the entry of the program.
    pub resume: u8,
    /// A log that failed, or a command that was blocked: it holds its ranges against host accesses
    /// until its mapping goes.
    pub failed: bool,
    /// It waits for a store that is kept for a failed log, and is refused for that.
    pub blocked: bool,
    /// A place is kept for it where commands wait for other devices.
    pub parks: bool,
    /// It has waited there, and waits for no device any more.
    pub released: bool,
}

/// A line of the host queue.
#[derive(Clone, Copy)]
pub struct HostLine {
    /// Who waits for a read; a write is answered when it is numbered.
    pub ticket: Option<Ticket>,
    /// A store.
    pub write: bool,
    /// Device address of the line.
    pub address: u64,
    /// Data of a store.
    pub data: [u8; LINE],
    /// Bytes to write.
    pub strobes: u64,
    /// Order number.
    pub order: u64,
}

/// Live items and their dependency bits.
pub struct Order {
    /// Order number of the last numbered item.
    pub last: u64,
    /// Request slots; valid where live.
    pub slots: Vec<Slot>,
    /// Host lines; valid where live.
    pub lines: Vec<HostLine>,
    /// Live items, one bit each.
    live: u128,
    /// Live items that were issued.
    issued: u128,
    /// Failed slots.
    failed: u128,
    /// Lines of stores that are kept for failed slots until an unmap.
    kept: u128,
    /// Line address of each host line, and which of these are stores; valid where live.
    addresses: [u64; HOST_QUEUE_LINES],
    stores: u64,
    ranges: Vec<Ranges>,
    /// Row of each item: what it waits for.
    rows: Vec<u128>,
    /// Column of each item: what waits for it.
    columns: Vec<u128>,
}

const FREE_SLOT: Slot = Slot {
    raw: [0; LINE],
    command: Command {
        opcode: 0,
        flags: 0,
        thread: 0,
        pool: 0,
        txid: 0,
        source: 0,
        destination: 0,
        auxiliary: 0,
        sequence: 0,
        length: 0,
        tag: 0,
        participants: 0,
        crc: 0,
    },
    descriptor: Descriptor(0),
    order: 0,
    accepted: 0,
    page: 0,
    entry: 0,
    resume: 0,
    failed: false,
    blocked: false,
    parks: false,
    released: false,
};

const FREE_LINE: HostLine = HostLine { ticket: None, write: false, address: 0, data: [0; LINE], strobes: 0, order: 0 };

impl Order {
    /// Nothing live.
    pub fn new() -> Self {
        Order {
            last: 0,
            slots: vec![FREE_SLOT; REQUEST_SLOTS],
            lines: vec![FREE_LINE; HOST_QUEUE_LINES],
            live: 0,
            issued: 0,
            failed: 0,
            kept: 0,
            addresses: [0; HOST_QUEUE_LINES],
            stores: 0,
            ranges: vec![Ranges::NONE; ITEMS],
            rows: vec![0; ITEMS],
            columns: vec![0; ITEMS],
        }
    }

    /// The lowest free request slot.
    pub fn free_slot(&self) -> Option<u8> {
        let slot = (!self.live & SLOT_BITS).trailing_zeros();
        (slot < REQUEST_SLOTS as u32).then_some(slot as u8)
    }

    /// The lowest free host line.
    pub fn free_line(&self) -> Option<u8> {
        let line = (!self.live >> REQUEST_SLOTS).trailing_zeros();
        (line < HOST_QUEUE_LINES as u32).then_some(line as u8)
    }

    /// Whether no item is live.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Live items, lowest slot first, then lines.
    pub fn live(&self) -> impl Iterator<Item = Item> + use<> {
        bits(self.live).map(Item::from_bit)
    }

    /// Live commands for which a place is kept where commands wait for other devices.
    pub fn parking(&self) -> impl Iterator<Item = &Slot> {
        bits(self.live & SLOT_BITS).map(|bit| &self.slots[bit as usize]).filter(|slot| slot.parks)
    }

    /// One bit per mapping entry of one of them, or of one that has waited there.
    pub fn synchronising_entries(&self) -> u32 {
        let slots = bits(self.live & SLOT_BITS).map(|bit| &self.slots[bit as usize]);
        slots.filter(|slot| slot.parks || slot.released).fold(0, |mask, slot| mask | 1 << slot.entry)
    }

    /// Whether one of them is of a mapping entry.
    pub fn has_parking(&self, entry: u8) -> bool {
        self.parking().any(|slot| slot.entry == entry)
    }

    /// Whether a live command of a mapping entry that was accepted before another one has waited
    /// for other devices.
    pub fn has_released(&self, entry: u8, before: u64) -> bool {
        let released = |slot: &Slot| slot.released && slot.entry == entry && slot.accepted < before;
        bits(self.live & SLOT_BITS).any(|bit| released(&self.slots[bit as usize]))
    }

    /// Whether a live command is of a mapping entry.
    pub fn has_slot(&self, entry: u8) -> bool {
        bits(self.live & SLOT_BITS).any(|bit| self.slots[bit as usize].entry == entry)
    }

    /// Whether an item is live.
    pub fn is_live(&self, item: Item) -> bool {
        self.live >> item.bit() & 1 == 1
    }

    /// Marks an item as issued.
    pub fn issue(&mut self, item: Item) {
        self.issued |= 1 << item.bit();
    }

    /// Whether nothing live can go on: all of it is failed, or a store that is kept for what has
    /// failed.
    pub fn is_stuck(&self) -> bool {
        self.live & !self.failed & !self.kept == 0
    }

    /// Whether some slot is failed.
    pub fn has_failed(&self) -> bool {
        self.failed != 0
    }

    /// Whether no slot becomes free before an unmap.
    pub fn slots_lost(&self) -> bool {
        self.failed == SLOT_BITS
    }

    /// The oldest host line that waits for a failed slot, directly or through other items, and
    /// about which nothing is decided yet.
    pub fn held_line(&self) -> Option<u8> {
        let mut held = self.failed | self.kept;
        loop {
            let waits = |bit: &u32| self.rows[*bit as usize] & held != 0;
            let more = bits(self.live & !held).filter(waits).fold(0, |mask, bit| mask | 1 << bit);
            if more == 0 {
                break;
            }
            held |= more;
        }
        let undecided = held & self.live & !self.failed & !self.kept & !SLOT_BITS;
        let lines = bits(undecided).map(|bit| (bit - REQUEST_SLOTS as u32) as u8);
        lines.min_by_key(|&line| self.lines[line as usize].order)
    }

    /// Keeps a held store; false where [`HELD_STORES`] are kept already.
    pub fn keep(&mut self, line: u8) -> bool {
        let room = (self.kept.count_ones() as usize) < HELD_STORES;
        if room {
            self.kept |= 1 << Item::Line(line).bit();
        }
        room
    }

    /// The commands that wait for a kept store and were not refused yet; they count as refused from
    /// now on.
    pub fn block(&mut self) -> Vec<u8> {
        let waits = |&bit: &u32| self.rows[bit as usize] & self.kept != 0;
        let blocked: Vec<u32> = bits(self.live & SLOT_BITS & !self.failed & !self.issued).filter(waits).collect();
        for &bit in &blocked {
            self.issued |= 1 << bit;
            self.slots[bit as usize].blocked = true;
        }
        blocked.into_iter().map(|bit| bit as u8).collect()
    }

    /// Numbers a command into a free slot; whether it has to wait.
    pub fn number_command(&mut self, slot: u8, contents: Slot, ranges: Ranges, fault: Option<Fault>) -> bool {
        let ordered = contents.descriptor.flag(descriptor::ORDERED) && fault != Some(Fault::CommitIsNotOrdered);
        let mut row = 0;
        for bit in bits(self.live & !self.failed) {
            let waits = match Item::from_bit(bit) {
                Item::Slot(other) => {
                    (ordered && self.slots[other as usize].entry == contents.entry)
                        || self.ranges[bit as usize].conflicts(&ranges)
                }
                Item::Line(_) if fault == Some(Fault::CommandPassesHeldStore) => false,
                Item::Line(_) => self.ranges[bit as usize].conflicts(&ranges),
            };
            row |= (waits as u128) << bit;
        }
        self.last += 1;
        let accepted = if contents.accepted == 0 { self.last } else { contents.accepted };
        self.slots[slot as usize] = Slot { order: self.last, accepted, ..contents };
        self.enter(Item::Slot(slot), row, ranges)
    }

    /// Numbers a host access into a free line; whether it has to wait.
    pub fn number_line(&mut self, line: u8, contents: HostLine, fault: Option<Fault>) -> bool {
        let ranges = Ranges::line(contents.address, contents.write);
        let mut row =
            u128::from(self.lines_that_conflict(contents.address / LINE_U64, contents.write)) << REQUEST_SLOTS;
        for bit in bits(self.live & SLOT_BITS) {
            let passed = self.issued >> bit & 1 == 0 && fault == Some(Fault::StorePassesWaitingCommand);
            row |= ((self.ranges[bit as usize].conflicts(&ranges) && !passed) as u128) << bit;
        }
        if !contents.write && fault == Some(Fault::LoadsAreNotOrdered) {
            row = 0;
        }
        self.last += 1;
        self.lines[line as usize] = HostLine { order: self.last, ..contents };
        self.addresses[line as usize] = contents.address / LINE_U64;
        self.stores = self.stores & !(1 << line) | u64::from(contents.write) << line;
        self.enter(Item::Line(line), row, ranges)
    }

    /// Live host lines, a bit each, that an access to this line address conflicts with: those to
    /// the same line, all if it stores, else those that store. [`Ranges::conflicts`] says the same
    /// of each one's ranges, for many times the work.
    fn lines_that_conflict(&self, address: u64, stores: bool) -> u64 {
        let same = self.addresses.iter().rev().fold(0, |same, other| same << 1 | u64::from(*other == address));
        let live = (self.live >> REQUEST_SLOTS) as u64;
        live & same & if stores { u64::MAX } else { self.stores }
    }

    fn enter(&mut self, item: Item, row: u128, ranges: Ranges) -> bool {
        let bit = item.bit();
        debug_assert!(!self.is_live(item), "{item:?} is taken");
        self.live |= 1 << bit;
        self.issued &= !(1 << bit);
        self.ranges[bit as usize] = ranges;
        self.rows[bit as usize] = row;
        self.columns[bit as usize] = 0;
        for waited in bits(row) {
            self.columns[waited as usize] |= 1 << bit;
        }
        row != 0
    }

    /// Retires an item; gives the items that wait for nothing more.
    pub fn retire(&mut self, item: Item) -> impl Iterator<Item = Item> + use<> {
        let bit = item.bit();
        debug_assert!(self.is_live(item), "{item:?} retires twice");
        self.live &= !(1 << bit);
        self.failed &= !(1 << bit);
        self.kept &= !(1 << bit);
        let column = std::mem::take(&mut self.columns[bit as usize]);
        self.clear(bit, column)
    }

    /// Keeps the slot of a failed log or of a blocked command live: it lets commands go on and
    /// holds host accesses.
    pub fn fail(&mut self, slot: u8) -> impl Iterator<Item = Item> + use<> {
        let bit = Item::Slot(slot).bit();
        self.failed |= 1 << bit;
        self.slots[slot as usize].failed = true;
        self.slots[slot as usize].parks = false;
        let commands = self.columns[bit as usize] & SLOT_BITS;
        self.columns[bit as usize] &= !SLOT_BITS;
        self.clear(bit, commands)
    }

    /// Clears one bit in the rows of `waiters`.
    fn clear(&mut self, bit: u32, waiters: u128) -> impl Iterator<Item = Item> + use<> {
        let mut ready = 0;
        for waiter in bits(waiters) {
            let row = &mut self.rows[waiter as usize];
            *row &= !(1 << bit);
            ready |= ((*row == 0) as u128) << waiter;
        }
        bits(ready).map(Item::from_bit)
    }

    /// Failed slots of a mapping entry, or of all.
    pub fn failed_slots(&self, entry: Option<u8>) -> Vec<u8> {
        let of = |&bit: &u32| entry.is_none_or(|e| self.slots[bit as usize].entry == e);
        bits(self.failed).filter(of).map(|bit| bit as u8).collect()
    }
}

/// The set bits of a mask, lowest first.
fn bits(mut mask: u128) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        (mask != 0).then(|| {
            let bit = mask.trailing_zeros();
            mask &= mask - 1;
            bit
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::item::Span;
    use crate::rng::Rng;

    #[test]
    fn an_access_waits_for_what_its_ranges_conflict_with() {
        let (mut order, mut rng) = (Order::new(), Rng::new(1));
        let mut waits = 0;
        for _ in 0..20_000 {
            let by_ranges = |order: &Order, ranges: &Ranges| {
                bits(order.live)
                    .filter(|&bit| order.ranges[bit as usize].conflicts(ranges))
                    .fold(0, |row, bit| row | 1 << bit)
            };
            match (rng.below(8), order.free_line(), order.free_slot()) {
                (0..5, Some(line), _) => {
                    let contents = HostLine { write: rng.one_in(2), address: rng.below(40 * 64), ..FREE_LINE };
                    let row: u128 = by_ranges(&order, &Ranges::line(contents.address, contents.write));
                    order.number_line(line, contents, None);
                    assert_eq!(order.rows[Item::Line(line).bit() as usize], row);
                    waits += row.count_ones();
                }
                (5, _, Some(slot)) => {
                    let mut span = || Span::of(rng.below(40 * 64), rng.below(300));
                    let ranges = Ranges { read: span(), write: [span(), span()] };
                    order.number_command(slot, FREE_SLOT, ranges, None);
                }
                _ => {
                    let live: Vec<Item> = order.live().collect();
                    if let Some(&item) = live.get(rng.below(ITEMS as u64) as usize % live.len().max(1)) {
                        let _ready = order.retire(item);
                    }
                }
            }
        }
        assert!(waits > 10_000, "{waits}");
    }
}
