//! A thread's part of the table: buckets of four slots, a line each, searched one behind the other;
//! values in cells of their own. A pair's cell is durable before its slot names it; an update takes
//! another cell.

use nearpm_gphash::{Op, Outcome};
use nearpm_gpu::{persist, persist_scattered};

use super::{Answers, Batch, VALUE};

const LINE: usize = 64;
const SLOTS: usize = 4;
/// Keys of slots that nobody has had, or that somebody had: neither is a key of a batch.
const NONE: u64 = 0;
const GONE: u64 = u64::MAX;
/// Operations whose buckets are looked for together, so that the processor waits for several lines
/// of memory at once.
const GROUP: usize = 16;

/// A part of a table.
pub struct Shard<'m> {
    slots: &'m mut [u8],
    cells: &'m mut [u8],
    /// Cells that nobody has; volatile, as a recovery would find them by the slots.
    free: Vec<u32>,
}

/// A hash of a key (the finalizer of SplitMix64).
pub fn hash(key: u64) -> u64 {
    let key = (key ^ key >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let key = (key ^ key >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ key >> 31
}

/// Where a key is, or would be.
#[derive(Clone, Copy)]
enum Found {
    Slot(usize),
    /// A slot that is free, if there is one.
    Absent(Option<usize>),
}

impl<'m> Shard<'m> {
    /// Bytes of a part with so many slots, a multiple of four: a cell each, and an eighth more for
    /// updates.
    pub fn bytes(slots: usize) -> usize {
        slots / SLOTS * LINE + (slots + slots / 8) * VALUE
    }

    /// A part without pairs in zeroed memory.
    pub fn new(memory: &'m mut [u8], slots: usize) -> Shard<'m> {
        let (slots_of, cells) = memory.split_at_mut(slots / SLOTS * LINE);
        let free = (0..(cells.len() / VALUE) as u32).rev().collect();
        Shard { slots: slots_of, cells, free }
    }

    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.slots[at..at + 8].as_chunks::<8>().0[0])
    }

    fn find(&self, key: u64) -> Found {
        let buckets = self.slots.len() / LINE;
        let first = (hash(key) & 0xff_ffff_ffff) as usize % buckets;
        let mut free = None;
        for step in 0..buckets {
            let bucket = (first + step) % buckets * LINE;
            for slot in (bucket..bucket + LINE).step_by(LINE / SLOTS) {
                match self.word(slot) {
                    found if found == key => return Found::Slot(slot),
                    NONE => return Found::Absent(free.or(Some(slot))),
                    GONE => free = free.or(Some(slot)),
                    _ => {}
                }
            }
        }
        Found::Absent(free)
    }

    fn cell(&self, slot: usize) -> usize {
        self.word(slot + 8) as usize * VALUE
    }

    /// Does the operations of a batch at these places, in their order; all is durable when it
    /// returns.
    pub fn run(&mut self, batch: &Batch, places: Vec<u32>) -> Answers {
        let mut answers = Answers { outcomes: Vec::with_capacity(places.len()), ..Answers::default() };
        if batch.op == Op::Get {
            self.read(batch, &places, &mut answers);
        } else {
            for group in places.chunks(GROUP) {
                self.change(batch, group, &mut answers.outcomes);
            }
        }
        answers.places = places;
        answers
    }

    fn read(&self, batch: &Batch, places: &[u32], answers: &mut Answers) {
        answers.values = vec![0; places.len() * VALUE];
        for (group, into) in places.chunks(GROUP).zip(answers.values.chunks_mut(GROUP * VALUE)) {
            let mut found = [Found::Absent(None); GROUP];
            for (found, &place) in found.iter_mut().zip(group) {
                *found = self.find(batch.keys[place as usize]);
            }
            for (found, into) in found[..group.len()].iter().zip(into.chunks_exact_mut(VALUE)) {
                let Found::Slot(slot) = *found else {
                    answers.outcomes.push(Outcome::Absent);
                    continue;
                };
                into.copy_from_slice(&self.cells[self.cell(slot)..][..VALUE]);
                answers.outcomes.push(Outcome::Done);
            }
        }
    }

    /// Values first, and one wait until they are durable; then slots, and one wait more.
    fn change(&mut self, batch: &Batch, group: &[u32], outcomes: &mut Vec<Outcome>) {
        let mut cells = Vec::with_capacity(GROUP);
        if batch.op.puts() {
            for &place in group {
                // One that turns out not to be needed goes back.
                let Some(cell) = self.free.pop() else { break };
                let value = &batch.values[place as usize * VALUE..][..VALUE];
                self.cells[cell as usize * VALUE..][..VALUE].copy_from_slice(value);
                cells.push(cell);
            }
            let lines =
                cells.iter().flat_map(|&cell| (0..VALUE).step_by(LINE).map(move |at| cell as usize * VALUE + at));
            persist_scattered(self.cells, lines);
        }
        let mut changed = Vec::with_capacity(GROUP);
        let mut cells = cells.into_iter();
        for &place in group {
            let key = batch.keys[place as usize];
            let cell = cells.next();
            let (outcome, slot) = match (batch.op, self.find(key)) {
                (Op::Insert, Found::Slot(_)) => (Outcome::Exists, None),
                (Op::Update | Op::Delete, Found::Absent(_)) => (Outcome::Absent, None),
                (Op::Delete, Found::Slot(slot)) => {
                    self.free.push((self.cell(slot) / VALUE) as u32);
                    self.store(slot, GONE, None);
                    (Outcome::Done, Some(slot))
                }
                (_, Found::Absent(None)) => (Outcome::Full, None),
                _ if cell.is_none() => (Outcome::NoCell, None),
                (_, Found::Slot(slot)) => {
                    self.free.push((self.cell(slot) / VALUE) as u32);
                    self.store(slot, key, cell);
                    (Outcome::Done, Some(slot))
                }
                (_, Found::Absent(Some(slot))) => {
                    self.store(slot, key, cell);
                    (Outcome::Done, Some(slot))
                }
            };
            if slot.is_none() {
                self.free.extend(cell);
            }
            changed.extend(slot);
            outcomes.push(outcome);
        }
        match changed[..] {
            [] => {}
            [slot] => persist(&self.slots[slot..slot + 16]),
            _ => persist_scattered(self.slots, changed.into_iter()),
        }
    }

    /// The cell's number is in the slot's line, which holds it before the key: stores to a line
    /// persist in their order.
    fn store(&mut self, slot: usize, key: u64, cell: Option<u32>) {
        if let Some(cell) = cell {
            self.slots[slot + 8..slot + 16].copy_from_slice(&u64::from(cell).to_le_bytes());
        }
        self.slots[slot..slot + 8].copy_from_slice(&key.to_le_bytes());
    }
}
