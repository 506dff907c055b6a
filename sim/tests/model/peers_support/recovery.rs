//! The recovery of all cards by the rules of `docs/ppo.md`, as short as it can be.

use std::collections::{BTreeMap, BTreeSet};

use nearpm_driver::pci::PciFunction;
use nearpm_interface::media::EntryHead;
use nearpm_interface::registers::parked_action;

use super::{Computer, POOL, SLOT_BYTES, SLOTS, data, epoch};

/// A transaction: thread and number.
pub type Transaction = (u16, u64);

/// What one card knows of its transactions.
#[derive(Default)]
struct Found {
    /// Participants and old value of each transaction with an entry above the epoch.
    entries: BTreeMap<Transaction, (u32, u64)>,
    /// Participants and place of each commit that waits.
    waiting: BTreeMap<Transaction, (u32, u32)>,
    epochs: Vec<u64>,
}

impl Computer {
    /// Recovers all cards and opens them for further work.
    pub fn recover(&mut self, threads: u16) {
        for function in self.machine.functions() {
            function.reset().unwrap();
        }
        self.attach();
        // What waits is read before the epochs: a command that is let go is found in one of them.
        let found: Vec<Found> = (0..self.views.len()).map(|card| self.look(card, threads)).collect();
        let lost = self.decide(&found);
        for (card, found) in found.iter().enumerate() {
            for (transaction, (_, place)) in &found.waiting {
                let committed = !lost.contains(transaction);
                self.views[card].act(*place, if committed { parked_action::RELEASE } else { parked_action::DISCARD });
            }
        }
        self.wait_for("what waits", |c| c.views.iter().all(|view| view.parked().is_empty()));
        for (card, found) in found.iter().enumerate() {
            for ((thread, _), (_, old)) in found.entries.iter().rev().filter(|(t, _)| lost.contains(t)) {
                self.views[card].store(data(*thread), *old);
            }
            self.views[card].status();
        }
        for (card, found) in found.iter().enumerate() {
            for (thread, txid) in &lost {
                let known =
                    found.entries.contains_key(&(*thread, *txid)) || found.waiting.contains_key(&(*thread, *txid));
                if known && self.views[card].load(epoch(*thread)) < *txid {
                    self.views[card].store(epoch(*thread), *txid);
                }
            }
            self.views[card].status();
        }
        for card in 0..self.views.len() {
            let epochs: Vec<u64> = (0..threads).map(|thread| self.views[card].load(epoch(thread))).collect();
            self.join(card, threads, |thread| epochs[thread as usize]);
        }
    }

    fn look(&self, card: usize, threads: u16) -> Found {
        let view = &self.views[card];
        let waiting = view.parked().into_iter().map(|p| ((p.thread, p.txid), (p.participants, p.place))).collect();
        let mut found = Found { waiting, ..Found::default() };
        for thread in 0..threads {
            let reached = view.load(epoch(thread));
            found.epochs.push(reached);
            for slot in 0..SLOTS {
                let mut bytes = [0; SLOT_BYTES as usize];
                view.bytes(epoch(thread) + 64 + slot * SLOT_BYTES, &mut bytes);
                if let Some(head) = EntryHead::decode(&bytes)
                    && (head.pool, head.thread) == (POOL, thread)
                    && head.txid > reached
                {
                    let at = 64 + (data(thread) % 64) as usize;
                    let old = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
                    found.entries.insert((thread, head.txid), (head.participants, old));
                }
            }
        }
        found
    }

    /// Transactions that are not committed.
    fn decide(&self, found: &[Found]) -> BTreeSet<Transaction> {
        let mut known: BTreeMap<Transaction, u32> = BTreeMap::new();
        for found in found {
            known.extend(found.entries.iter().map(|(t, (participants, _))| (*t, *participants)));
            known.extend(found.waiting.iter().map(|(t, (participants, _))| (*t, *participants)));
        }
        let committed = |(transaction, participants): &(Transaction, u32)| {
            let (thread, txid) = *transaction;
            let mut devices = (0..found.len()).filter(|device| participants >> device & 1 == 1);
            let reached = devices.clone().any(|device| found[device].epochs[thread as usize] >= txid);
            reached || devices.all(|device| found[device].waiting.contains_key(transaction))
        };
        known.into_iter().filter(|known| !committed(known)).map(|(transaction, _)| transaction).collect()
    }
}
