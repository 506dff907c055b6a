//! How an item is executed: step by step, its writes answered by the memory in any order.

use super::card::command;
use super::{Model, Phase, State, Work, bit, with};
use crate::litmus::{Step, WRITTEN};
use crate::rules::Rule;

impl Model<'_> {
    /// What an item that may run can do next.
    pub(super) fn advance(&self, state: &State, device: usize, index: usize, next: &mut Vec<State>) {
        let item = &state.cards[device].items[index];
        match item.work {
            Work::Load(thread, line) => {
                return next.push(with(state, |s| self.answer_load(s, device, index, thread, line)));
            }
            Work::Store => {}
            Work::Command(procedure) => {
                if !item.started && self.is_refused(state, device, procedure) {
                    return next.push(with(state, |s| self.refuse(s, device, index)));
                }
                if let Some(step) = self.test.procedures[procedure].steps.get(item.step) {
                    self.step(state, device, index, step, next);
                }
            }
        }
        for (place, group) in item.unanswered.iter().enumerate() {
            let overtakes = |earlier: &Vec<(usize, u8)>| earlier.iter().any(|(w, _)| group.iter().any(|(g, _)| g == w));
            if item.unanswered[..place].iter().any(overtakes) {
                continue;
            }
            next.push(with(state, |s| {
                let item = &mut s.cards[device].items[index];
                item.started = true;
                let writes = item.unanswered.remove(place);
                let refused = writes.iter().any(|(word, _)| self.test.lines[self.line_of(*word)].refused);
                for (word, value) in writes.into_iter().filter(|_| !refused) {
                    s.medium[word] = value;
                }
                self.settle(s, device, index);
                if refused {
                    self.lose_store(s, device);
                }
            }));
        }
    }

    /// Executes a step of a command.
    fn step(&self, state: &State, device: usize, index: usize, step: &Step, next: &mut Vec<State>) {
        let item = &state.cards[device].items[index];
        let groups = match step {
            Step::Wait if !item.unanswered.is_empty() && self.keep(Rule::WaitIsABarrier) => return,
            Step::Wait => Vec::new(),
            Step::Sync => unreachable!("a command that synchronises is parked until its peers have reported"),
            Step::Copy(pairs) => pairs.iter().map(|(from, to)| vec![(*to, state.medium[*from])]).collect(),
            Step::Set(word, value) => vec![vec![(*word, *value)]],
            Step::Log(_) if self.test.procedures[command(item).expect("a step of a command")].fails => {
                return next.push(with(state, |s| self.latch(s, device, index)));
            }
            Step::Log(entry) => {
                let entry = &self.test.entries[*entry];
                let data = entry.data.iter().map(|(word, slot)| (*slot, state.medium[*word])).collect();
                vec![vec![(entry.head, WRITTEN)], data]
            }
            Step::Commit => {
                let procedure = &self.test.procedures[command(item).expect("a step of a command")];
                let transaction = &self.test.transactions[procedure.transaction];
                vec![vec![(self.test.epoch(transaction.thread, device), transaction.number)]]
            }
        };
        next.push(with(state, |s| {
            let item = &mut s.cards[device].items[index];
            item.started = true;
            item.step += 1;
            item.unanswered.extend(groups);
            self.settle(s, device, index);
        }));
    }

    /// Passes what needs no time: a `wait` with nothing to wait for, and the retirement behind the
    /// last answer.
    fn settle(&self, state: &mut State, device: usize, index: usize) {
        let item = &mut state.cards[device].items[index];
        let steps = match item.work {
            Work::Command(procedure) => self.test.procedures[procedure].steps.as_slice(),
            _ => &[],
        };
        if item.unanswered.is_empty() {
            while steps.get(item.step) == Some(&Step::Wait) {
                item.step += 1;
            }
            if item.step > 0 && steps[item.step - 1] == Step::Wait {
                item.progress = item.step;
            }
        }
        let (requested, done) = (item.step == steps.len(), item.unanswered.is_empty());
        let Some(procedure) = command(item) else {
            if done {
                state.cards[device].items.remove(index);
            }
            return;
        };
        if requested && (done || !self.keep(Rule::RecordAfterAnswer)) {
            state.completed |= bit(procedure);
        }
        if requested && done {
            self.retire(state, device, index);
        }
    }

    /// The memory refuses a store that the card has answered: its pool is latched, and the card
    /// tells of it until somebody has heard. In a replay that is a loss at once, and nothing more
    /// is replayed.
    fn lose_store(&self, state: &mut State, device: usize) {
        state.cards[device].lost = true;
        if state.phase != Phase::Running && self.keep(Rule::LostStoreIsLoss) {
            state.loss = true;
            state.phase = Phase::Over;
        }
        if self.keep(Rule::LostStoreLatches) {
            let threads = self.test.epochs.iter().filter(|(_, of, _)| *of == device).map(|(thread, ..)| *thread);
            threads.for_each(|thread| self.latch_thread(state, device, thread));
        }
    }

    /// Nothing of a thread commits any more.
    fn latch_thread(&self, state: &mut State, device: usize, thread: usize) {
        let card = &mut state.cards[device];
        card.latched |= bit(thread);
        if self.keep(Rule::LatchRefusesCommit) {
            card.parked.retain(|i| command(i).is_none_or(|p| self.test.thread_of(p) != thread));
        }
    }

    /// Takes a command off the card's tables.
    pub(super) fn retire(&self, state: &mut State, device: usize, index: usize) {
        let card = &mut state.cards[device];
        let procedure = command(&card.items.remove(index)).expect("commands retire");
        card.items.iter_mut().chain(&mut card.parked).for_each(|i| i.after &= !bit(procedure));
    }

    fn is_refused(&self, state: &State, device: usize, procedure: usize) -> bool {
        let card = &state.cards[device];
        let made = &self.test.procedures[procedure];
        let touches_held = made.reads.iter().chain(&made.writes).any(|l| card.held & bit(*l) != 0);
        let latched = card.latched & bit(self.test.thread_of(procedure)) != 0;
        touches_held && self.keep(Rule::LatchHoldsStores)
            || latched && made.commits() && self.keep(Rule::LatchRefusesCommit)
    }

    /// Ends a command without effect; its record says so. Unless it is a commit, it latches its
    /// thread, and what it was to read or write is held like what the failed log covers.
    fn refuse(&self, state: &mut State, device: usize, index: usize) {
        let item = &state.cards[device].items[index];
        let procedure = command(item).expect("commands are refused");
        let (reads, writes) = self.ranges(item);
        if !self.test.procedures[procedure].commits() {
            state.cards[device].held |= reads | writes;
            state.cards[device].latched |= bit(self.test.thread_of(procedure));
        }
        state.completed |= bit(procedure);
        self.retire(state, device, index);
    }

    /// The memory refuses a log: its thread is latched and what it covers is held.
    fn latch(&self, state: &mut State, device: usize, index: usize) {
        let procedure = command(&state.cards[device].items[index]).expect("a log is a command");
        let thread = self.test.thread_of(procedure);
        for step in &self.test.procedures[procedure].steps {
            if let Step::Log(entry) = step {
                // The memory has taken the head and not the data.
                state.medium[self.test.entries[*entry].head] = WRITTEN;
            }
        }
        let card = &mut state.cards[device];
        card.held |= self.test.procedures[procedure].reads.iter().fold(0, |mask, line| mask | bit(*line));
        self.latch_thread(state, device, thread);
        state.completed |= bit(procedure);
        self.retire(state, device, index);
    }
}
