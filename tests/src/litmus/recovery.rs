//! The software's recovery of a litmus test's pool, as the ordering model has it
//! (`proof/ppo/src/model/recovery.rs`).
//!
//! It reads epochs, log entries and waiting commands of all cards, decides which transactions are
//! committed (decision 10), lets their commands go, and then discards, undoes and deletes, each
//! repair durable before the next. A power cut throws everything away but what is durable.

use nearpm_driver::pci::{Caching, Mapping, PciFunction};
use nearpm_driver::{Card, Parked};
use nearpm_interface::geometry::{LINE_U64, PM_BAR, POOLS_BASE};
use nearpm_interface::media::EntryHead;
use nearpm_interface::seal;
use nearpm_ppo::litmus::{Entry, Test};
use nearpm_sim::host::Cut;
use nearpm_sim::machine::{Machine, Power, run_on_core, until_power_cut};
use nearpm_sim::rng::Rng;

use super::{PM_BYTES, SLOT, open, place, ring, slot};

/// Recoveries that are cut before one is not.
const CUTS: u64 = 2;

/// The cards behind a power-up, before they get their numbers.
pub(super) struct Cards<'a> {
    test: &'a Test,
    cards: Vec<Card>,
    memories: Vec<Box<dyn Mapping>>,
    parked: Vec<Vec<Parked>>,
    /// Transactions that are committed.
    committed: Vec<bool>,
}

impl<'a> Cards<'a> {
    /// Opens the cards and decides.
    pub fn open(test: &'a Test, machine: &Machine) -> Self {
        let cards = open(machine);
        let memory =
            |card| machine.function_of(card).map(PM_BAR, 0..PM_BYTES as u64, Caching::Uncached).expect("a mapping");
        let memories = (0..test.devices).map(memory).collect();
        let parked = cards.iter().map(|card| card.parked().expect("the card is there")).collect();
        let mut found = Cards { test, cards, memories, parked, committed: Vec::new() };
        found.committed = (0..test.transactions.len()).map(|transaction| found.is_committed(transaction)).collect();
        found
    }

    /// Whether some participant has the epoch of a transaction, or all have it waiting.
    fn is_committed(&self, transaction: usize) -> bool {
        let t = &self.test.transactions[transaction];
        let devices = || t.devices.iter().copied();
        devices().any(|card| self.epoch(card, t.thread) >= u64::from(t.number))
            || devices().all(|card| self.waiting(card, transaction).next().is_some())
    }

    /// The commands of a transaction that wait on a card.
    fn waiting(&self, card: usize, transaction: usize) -> impl Iterator<Item = Parked> + use<'_> {
        let t = &self.test.transactions[transaction];
        let is_of = move |p: &&Parked| usize::from(p.thread) == t.thread && p.txid == u64::from(t.number);
        self.parked[card].iter().filter(is_of).copied()
    }

    fn word(&self, card: usize, offset: u64) -> u64 {
        let mut word = [0; 8];
        self.memories[card].load(POOLS_BASE + offset, &mut word);
        u64::from_le_bytes(word)
    }

    fn epoch(&self, card: usize, thread: usize) -> u64 {
        seal::open_word(self.word(card, ring(thread))).unwrap_or(0)
    }

    /// Stores a word and waits until it is durable.
    fn set(&self, card: usize, offset: u64, value: u64) {
        self.memories[card].store(POOLS_BASE + offset, &value.to_le_bytes());
        self.memories[card].fence();
        assert_eq!(self.word(card, offset), value, "a word is read as it was stored");
    }

    /// Lets the commands of committed transactions go on.
    pub fn release(&self) {
        for transaction in (0..self.committed.len()).filter(|t| self.committed[*t]) {
            for card in self.test.transactions[transaction].devices.iter().copied() {
                let parked: Vec<_> = self.waiting(card, transaction).collect();
                self.cards[card].release(&parked).expect("what is let go retires");
            }
        }
    }

    /// Takes away what waits of the others, the newest first.
    fn discard(&self) {
        for transaction in (0..self.committed.len()).rev().filter(|t| !self.committed[*t]) {
            for card in self.test.transactions[transaction].devices.iter().copied() {
                let parked: Vec<_> = self.waiting(card, transaction).collect();
                self.cards[card].discard(&parked).expect("what is discarded retires");
            }
        }
    }

    /// The log entries that count: whole, and of no committed transaction.
    fn counting(&self) -> Vec<(&Entry, Vec<u8>)> {
        let read = |(number, entry): (usize, &'a Entry)| {
            let mut bytes = vec![0; SLOT as usize];
            self.memories[entry.device].load(POOLS_BASE + slot(self.test, number), &mut bytes);
            let counts = EntryHead::decode(&bytes).is_some() && !self.committed[entry.transaction];
            counts.then_some((entry, bytes))
        };
        self.test.entries.iter().enumerate().filter_map(read).collect()
    }

    /// Restores what was logged, the newest entry first, and deletes the logs of what was undone
    /// and discarded.
    fn undo(&self) {
        let counting = self.counting();
        for (entry, bytes) in counting.iter().rev() {
            for word in &entry.exact {
                let at = place(self.test, *word);
                let data = &bytes[(LINE_U64 + at % LINE_U64) as usize..][..8];
                self.set(entry.device, at, u64::from_le_bytes(data.try_into().expect("eight bytes")));
            }
        }
        let discarded = (0..self.committed.len()).filter(|t| !self.committed[*t]).flat_map(|transaction| {
            let on = move |card: &usize| self.waiting(*card, transaction).next().is_some();
            (0..self.test.devices).filter(on).map(move |card| (card, transaction))
        });
        let undone = counting.iter().map(|(entry, _)| (entry.device, entry.transaction));
        for (card, transaction) in undone.chain(discarded) {
            let t = &self.test.transactions[transaction];
            if self.epoch(card, t.thread) < u64::from(t.number) {
                self.set(card, ring(t.thread), seal::seal_word(t.number.into()));
            }
        }
    }
}

/// Recovers a machine whose power is on.
pub(super) fn recover(test: &Test, machine: &Machine) {
    let cards = Cards::open(test, machine);
    cards.release();
    cards.discard();
    cards.undo();
    machine.settle();
}

/// Recovers a machine whose power is off, at first with power cuts at random moments; at the end
/// the power is off again.
pub(super) fn recover_through_cuts(test: &Test, machine: &Machine, power: &dyn Power, rng: &mut Rng) {
    for attempt in 0.. {
        run_on_core(0);
        machine.power_up(power);
        if attempt < CUTS {
            match rng.below(2) {
                0 => machine.arm_cut(Cut::AtAccess(1 + rng.below(200)), rng.bits()),
                _ => machine.arm_cut(Cut::AtCycle(machine.cycle() + 1 + rng.below(20_000)), rng.bits()),
            }
        }
        let outcome = until_power_cut(|| recover(test, machine));
        run_on_core(0);
        if machine.is_powered() {
            machine.cut_now(rng.bits());
        }
        if outcome.is_ok() {
            return;
        }
    }
}
