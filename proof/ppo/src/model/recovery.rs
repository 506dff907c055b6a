//! The recovery by software, which may be cut at any step.
//!
//! It reads the epochs, the log entries and the waiting commands of all cards, makes a plan, and
//! carries it out; each repair is durable before the next (it is written, fenced and read back). A
//! failure throws the plan away and everything starts over with the replay.

use super::card::command;
use super::{GARBAGE, Model, Phase, State, with};
use crate::litmus::{EMPTY, Entry, Value, WRITTEN};
use crate::rules::Rule;

/// A repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repair {
    /// Takes a waiting command off its card.
    Discard(usize),
    /// Writes a word back.
    Restore(usize, Value),
    /// Deletes a log: writes an epoch word.
    Epoch(usize, Value),
}

impl Model<'_> {
    /// The repairs that a state needs.
    pub(super) fn plan(&self, state: &State) -> Vec<Repair> {
        let mut discards = Vec::new();
        for card in &state.cards {
            let waiting = card.parked.iter().filter_map(command);
            discards.extend(waiting.filter(|p| self.is_lost(state, *p)).map(Repair::Discard));
        }
        let per_device = |device: usize| (self.undo(state, device), self.deletes(state, device));
        let mut plan = Vec::new();
        if self.keep(Rule::DiscardFirst) {
            plan.append(&mut discards);
        }
        if self.keep(Rule::UndoBeforeDelete) {
            let (undo, deletes): (Vec<_>, Vec<_>) = (0..self.test.devices).map(per_device).unzip();
            plan.extend(undo.into_iter().chain(deletes).flatten());
        } else {
            for device in 0..self.test.devices {
                let (undo, deletes) = per_device(device);
                plan.extend(undo.into_iter().chain(deletes));
            }
        }
        plan.append(&mut discards);
        plan
    }

    /// Whether a waiting command belongs to a transaction that is not committed.
    fn is_lost(&self, state: &State, procedure: usize) -> bool {
        let made = &self.test.procedures[procedure];
        !self.is_committed(state, made.transaction, made.device)
    }

    /// Whether a transaction is committed, as the recovery of a card sees it.
    fn is_committed(&self, state: &State, transaction: usize, device: usize) -> bool {
        let t = &self.test.transactions[transaction];
        let reached = |device: usize| state.medium[self.test.epoch(t.thread, device)] >= t.number;
        let any = match self.keep(Rule::AnyEpochCommits) {
            true => t.devices.iter().any(|d| reached(*d)),
            false => reached(device),
        };
        let holds = |device: usize| {
            let card = &state.cards[device];
            let mut accepted = card.parked.iter().chain(&card.items).filter_map(command);
            accepted.any(|p| self.test.procedures[p].transaction == transaction && self.test.procedures[p].commits())
        };
        any || self.keep(Rule::AllAcceptedCommits) && t.devices.iter().all(|d| holds(*d))
    }

    /// The entries of a card that count.
    fn counting(&self, state: &State, device: usize) -> Vec<&Entry> {
        let mut found = Vec::new();
        let mut ended = Vec::new();
        for entry in self.test.entries.iter().filter(|e| e.device == device) {
            let thread = self.test.transactions[entry.transaction].thread;
            let head = state.medium[entry.head] == WRITTEN;
            let data = entry.data.iter().all(|(_, slot)| state.medium[*slot] != EMPTY);
            let whole = head && (data || !self.keep(Rule::EntriesCertify));
            if !whole && !self.keep(Rule::PastHoles) {
                ended.push(thread);
            }
            let committed = self.keep(Rule::EpochDeletes) && self.is_committed(state, entry.transaction, device);
            if whole && !committed && !ended.contains(&thread) {
                found.push(entry);
            }
        }
        found
    }

    fn undo(&self, state: &State, device: usize) -> Vec<Repair> {
        if !self.keep(Rule::UncommittedIsUndone) {
            return Vec::new();
        }
        let mut entries = self.counting(state, device);
        if self.keep(Rule::NewestFirst) {
            entries.reverse();
        }
        let restore = |entry: &&Entry| {
            let logged =
                entry.data.iter().filter(|(word, _)| entry.exact.contains(word) || !self.keep(Rule::ExactBytes));
            let value = |slot: usize| if state.medium[slot] == EMPTY { GARBAGE } else { state.medium[slot] };
            logged.map(|(word, slot)| Repair::Restore(*word, value(*slot))).collect::<Vec<_>>()
        };
        entries.iter().flat_map(restore).collect()
    }

    /// The epochs that take the logs of what was undone, and of what was discarded, out of account.
    fn deletes(&self, state: &State, device: usize) -> Vec<Repair> {
        let entries = self.counting(state, device).into_iter().map(|e| e.transaction);
        let waiting = state.cards[device].parked.iter().filter_map(command);
        let discarded = waiting.filter(|p| self.is_lost(state, *p)).map(|p| self.test.procedures[p].transaction);
        let mut deletes: Vec<Repair> = Vec::new();
        for transaction in entries.chain(discarded) {
            let t = &self.test.transactions[transaction];
            let word = self.test.epoch(t.thread, device);
            if state.medium[word] < t.number {
                deletes.push(Repair::Epoch(word, t.number));
            }
        }
        deletes
    }

    /// The next repair, and what the cards do meanwhile.
    pub(super) fn recovery_steps(&self, state: &State, next: &mut Vec<State>) {
        let Phase::Recovery(plan) = &state.phase else { return };
        self.card_steps_after_failure(state, next);
        match plan.split_first() {
            Some((repair, rest)) => next.push(with(state, |s| {
                self.repair(s, *repair);
                s.phase = Phase::Recovery(rest.to_vec());
            })),
            None if self.is_replayed(state) => next.push(with(state, |s| s.phase = Phase::Over)),
            None => {}
        }
    }

    fn repair(&self, state: &mut State, repair: Repair) {
        match repair {
            Repair::Discard(procedure) => {
                let card = &mut state.cards[self.test.procedures[procedure].device];
                card.parked.retain(|item| command(item) != Some(procedure));
            }
            Repair::Restore(word, value) => state.medium[word] = value,
            Repair::Epoch(word, value) => state.medium[word] = state.medium[word].max(value),
        }
    }
}
