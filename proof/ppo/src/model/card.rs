//! A card: what it accepts, what waits for what, and what it knows of its peers.

use super::{Blocked, Card, Item, Model, State, Work, bit, with};
use crate::litmus::{Instruction, Step, Value};
use crate::rules::Rule;

impl Item {
    fn new(work: Work, unanswered: Vec<Vec<(usize, Value)>>) -> Item {
        Item { work, started: false, step: 0, progress: 0, unanswered, after: 0 }
    }
}

impl Model<'_> {
    pub(super) fn accept_store(&self, state: &mut State, device: usize, writes: Vec<(usize, Value)>) {
        // Memory writes eight bytes in one piece, and a line in any order.
        let groups = writes.into_iter().map(|write| vec![write]).collect();
        state.cards[device].items.push(Item::new(Work::Store, groups));
    }

    pub(super) fn accept_load(&self, state: &mut State, device: usize, thread: Option<usize>, line: usize) {
        state.cards[device].items.push(Item::new(Work::Load(thread, line), Vec::new()));
    }

    /// Accepts a command; `false` if the FIFO is full.
    pub(super) fn accept_command(&self, state: &mut State, device: usize, procedure: usize) -> bool {
        let made = &self.test.procedures[procedure];
        let card = &mut state.cards[device];
        let is_command = |item: &&Item| matches!(item.work, Work::Command(_));
        let mut taken = card.items.iter().filter(is_command).count();
        if !self.keep(Rule::ParkedHoldsNothing) {
            taken += card.parked.len();
        }
        let parks = made.synchronises() && self.keep(Rule::ParkedHoldsNothing);
        if !parks && self.test.options.fifo.is_some_and(|bound| taken >= bound) {
            return false;
        }
        let mut item = Item::new(Work::Command(procedure), Vec::new());
        if made.ordered {
            let thread = self.test.thread_of(procedure);
            let earlier = card.items.iter().chain(&card.parked).filter_map(command);
            item.after = earlier.filter(|p| self.test.thread_of(*p) == thread).map(bit).sum();
        }
        if made.synchronises() {
            card.parked.push(item)
        } else {
            card.items.push(item)
        }
        true
    }

    /// Steps of the items of a running card.
    pub(super) fn item_steps(&self, state: &State, device: usize, next: &mut Vec<State>) {
        for index in 0..state.cards[device].items.len() {
            if state.cards[device].items[index].started || self.may_start(&state.cards[device], index) {
                self.advance(state, device, index, next);
            }
        }
        self.reset_steps(state, device, next);
    }

    /// Whether nothing earlier holds an item back.
    fn may_start(&self, card: &Card, index: usize) -> bool {
        let item = &card.items[index];
        if item.work == Work::Store && self.is_held(card, item) {
            return false;
        }
        if item.after != 0 && self.keep(Rule::CommitWaitsForThread) {
            return false;
        }
        let parked_blocks =
            !self.keep(Rule::ParkedHoldsNothing) && card.parked.iter().any(|earlier| self.blocks(earlier, item));
        !parked_blocks
            && !card.items[..index]
                .iter()
                .any(|earlier| !self.is_answered(card, item, earlier) && self.blocks(earlier, item))
    }

    /// A load that would wait for a held store is answered with an error instead, and a command is
    /// refused (C10).
    fn is_answered(&self, card: &Card, item: &Item, earlier: &Item) -> bool {
        item.work != Work::Store && earlier.work == Work::Store && self.is_held(card, earlier)
    }

    /// Whether a failed log covers a store.
    pub(super) fn is_held(&self, card: &Card, item: &Item) -> bool {
        self.keep(Rule::LatchHoldsStores)
            && item.unanswered.iter().flatten().any(|(w, _)| card.held & bit(self.line_of(*w)) != 0)
    }

    /// Whether an earlier item must retire before a later one may start.
    fn blocks(&self, earlier: &Item, later: &Item) -> bool {
        let rule = match (&earlier.work, &later.work) {
            (Work::Command(_), Work::Store) => Some(Rule::StoreWaitsForCommand),
            (Work::Store, Work::Command(_)) => Some(Rule::CommandWaitsForStore),
            (Work::Command(_), Work::Command(_)) => Some(Rule::CommandWaitsForCommand),
            (Work::Store, Work::Store) => Some(Rule::StoreWaitsForStore),
            (Work::Load(..), Work::Load(..)) => return false,
            (_, Work::Load(..)) => Some(Rule::LoadWaits),
            // Not to be dropped: a thread waits for its loads, so no program can tell.
            (Work::Load(..), _) => None,
        };
        let host_and_command = matches!(earlier.work, Work::Command(_)) != matches!(later.work, Work::Command(_));
        if rule.is_some_and(|rule| !self.keep(rule)) || self.test.options.host_unordered && host_and_command {
            return false;
        }
        let (reads, writes) = self.held_ranges(earlier);
        let (later_reads, later_writes) = self.ranges(later);
        writes & (later_reads | later_writes) != 0 || reads & later_writes != 0
    }

    /// Lines that an item reads and writes, as bit masks.
    pub(super) fn ranges(&self, item: &Item) -> (u32, u32) {
        match item.work {
            Work::Store => (0, item.unanswered.iter().flatten().fold(0, |mask, (w, _)| mask | bit(self.line_of(*w)))),
            Work::Load(_, line) => (bit(line), 0),
            Work::Command(procedure) => {
                let made = &self.test.procedures[procedure];
                let mask = |lines: &std::collections::BTreeSet<usize>| lines.iter().fold(0, |mask, l| mask | bit(*l));
                (mask(&made.reads), mask(&made.writes))
            }
        }
    }

    /// The ranges that an item has not released.
    fn held_ranges(&self, item: &Item) -> (u32, u32) {
        let (reads, writes) = self.ranges(item);
        let Work::Command(procedure) = item.work else { return (reads, writes) };
        let left = &self.test.procedures[procedure].steps[item.step..];
        if item.started && left.is_empty() && !self.keep(Rule::ReleaseAfterAnswer) {
            return (0, 0);
        }
        let reads_on = !item.started || left.iter().any(|s| matches!(s, Step::Copy(_) | Step::Log(_)));
        if self.test.options.early_release && !reads_on { (0, writes) } else { (reads, writes) }
    }

    /// Executes a load.
    pub(super) fn answer_load(
        &self,
        state: &mut State,
        device: usize,
        index: usize,
        thread: Option<usize>,
        line: usize,
    ) {
        state.cards[device].items.remove(index);
        let error = state.cards[device].held & bit(line) != 0;
        if state.cache[line].is_none() && !error {
            self.fill(state, line);
        }
        let Some(thread) = thread else { return };
        state.threads[thread].blocked = Blocked::No;
        state.threads[thread].counter += 1;
        if error {
            // The instruction ends without a value.
            return;
        }
        // The instruction takes what has come before the line can go again.
        match self.test.threads[thread].program[state.threads[thread].counter - 1] {
            Instruction::Load(word, register) => state.registers[register] = self.read_cached(state, word),
            Instruction::Store(word, value) => self.write_cached(state, word, value),
            _ => unreachable!("only loads and stores ask for a line"),
        }
    }

    /// Whether a command has come to its synchronisation: then its card says so, again and again
    /// (messages are cumulative).
    fn has_reached(&self, state: &State, procedure: usize) -> bool {
        let made = &self.test.procedures[procedure];
        let transaction = &self.test.transactions[made.transaction];
        let card = &state.cards[made.device];
        let waits = card.parked.iter().find(|i| command(i) == Some(procedure));
        if let Some(item) = waits {
            return item.after == 0 || !self.keep(Rule::PersistBeforeSync);
        }
        let epoch = self.test.epoch(transaction.thread, made.device);
        card.items.iter().any(|i| command(i) == Some(procedure)) || state.medium[epoch] >= transaction.number
    }

    /// A message of a peer arrives, or a command whose peers have all reported goes on.
    pub(super) fn peer_steps(&self, state: &State, device: usize, next: &mut Vec<State>) {
        for (index, item) in state.cards[device].parked.iter().enumerate() {
            let procedure = command(item).expect("commands wait for peers");
            let transaction = self.test.procedures[procedure].transaction;
            let mut all_heard = true;
            for peer in self.peers(transaction, device) {
                let heard = peer.is_some_and(|p| state.cards[device].heard & bit(p) != 0);
                all_heard &= heard;
                if let Some(peer) = peer.filter(|p| !heard && self.has_reached(state, *p)) {
                    next.push(with(state, |s| s.cards[device].heard |= bit(peer)));
                }
            }
            let complete = all_heard || !self.keep(Rule::SyncWaitsForPeers);
            if complete && (item.after == 0 || !self.keep(Rule::CommitWaitsForThread)) {
                next.push(with(state, |s| {
                    // It takes its place in the order anew, behind everything accepted by now.
                    let card = &mut s.cards[device];
                    let mut item = card.parked.remove(index);
                    (item.step, item.progress) = (1, 1);
                    card.items.push(item);
                    let peers: u32 = self.peers(transaction, device).flatten().map(bit).sum();
                    card.heard &= !peers;
                }));
            }
        }
    }

    /// For each other participant, its command that synchronises.
    fn peers(&self, transaction: usize, device: usize) -> impl Iterator<Item = Option<usize>> {
        let others = self.test.transactions[transaction].devices.iter().filter(move |d| **d != device);
        others.map(move |d| {
            self.test.procedures.iter().position(|p| p.synchronises() && p.transaction == transaction && p.device == *d)
        })
    }
}

/// The procedure of a command.
pub(super) fn command(item: &Item) -> Option<usize> {
    match item.work {
        Work::Command(procedure) => Some(procedure),
        _ => None,
    }
}
