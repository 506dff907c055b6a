//! Power failure, save and replay.
//!
//! The failure takes the processor, its caches and buffers, and the links with it. What the cards
//! have accepted is saved. The memory has written each unanswered group of words or not; both are
//! other states of the same exploration, so nothing is torn here.

use super::card::command;
use super::{Model, Phase, State, Work, with};
use crate::litmus::Moment;
use crate::rules::Rule;

impl Model<'_> {
    /// The power fails: a step from every state.
    pub(super) fn failure_steps(&self, state: &State, next: &mut Vec<State>) {
        if self.test.moment == Moment::Failure {
            return;
        }
        next.push(with(state, |s| self.fail(s)));
        if self.test.options.save_may_tear && state.phase == Phase::Running {
            next.push(with(state, |s| self.fail_without_save(s)));
        }
    }

    fn fail(&self, state: &mut State) {
        let first = state.phase == Phase::Running;
        self.lose_the_processor(state);
        state.phase = Phase::Replay;
        // What was lost before the power went is in the save; the boot tells of it when the rest is
        // replayed.
        state.loss |= self.keep(Rule::LostStoreIsLoss) && state.cards.iter().any(|card| card.lost);
        for card in &mut state.cards {
            card.pieces = 0;
            card.heard = 0;
            if !self.keep(Rule::AcceptedIsSaved) {
                card.items.clear();
            }
            if !self.keep(Rule::ParkedIsSaved) {
                card.parked.clear();
            }
            card.items.retain(|item| !matches!(item.work, Work::Load(..)));
            if !self.keep(Rule::ReplayResumes) {
                // Planted: the image is replayed from its start after each failure.
                if first {
                    card.image = card.items.clone();
                } else {
                    card.items = card.image.clone();
                }
            }
            if self.test.options.early_release {
                continue;
            }
            for item in &mut card.items {
                item.started = false;
                if command(item).is_none() {
                    continue;
                }
                item.step = if self.keep(Rule::ProgressAtWait) { item.progress } else { 0 };
                item.unanswered.clear();
            }
        }
    }

    /// The energy does not suffice: what was accepted is lost, and the loss is reported.
    fn fail_without_save(&self, state: &mut State) {
        self.lose_the_processor(state);
        state.cards = vec![super::Card::default(); self.test.devices];
        state.loss = self.keep(Rule::TornSaveIsLoss);
        state.phase = if state.loss { Phase::Over } else { Phase::Replay };
        if !state.loss {
            // Planted: the image of an earlier failure is taken instead.
            for (word, value) in &self.test.options.old_image {
                state.medium[*word] = *value;
            }
        }
    }

    fn lose_the_processor(&self, state: &mut State) {
        state.threads.clear();
        state.cache.fill(None);
        state.links.iter_mut().for_each(Vec::clear);
        state.completed = 0;
    }

    /// Replay: each card executes its items one at a time in their order; then peers report again.
    pub(super) fn replay_steps(&self, state: &State, next: &mut Vec<State>) {
        self.card_steps_after_failure(state, next);
        let replayed = state.cards.iter().all(|card| card.items.is_empty());
        if self.test.moment == Moment::Recovery && (replayed || !self.keep(Rule::WindowClosed)) {
            let recovery = |s: &State| if s.loss { Phase::Over } else { Phase::Recovery(self.plan(s)) };
            next.push(with(state, |s| s.phase = recovery(s)));
        }
    }

    /// What the cards do of their own after a failure.
    pub(super) fn card_steps_after_failure(&self, state: &State, next: &mut Vec<State>) {
        for device in 0..self.test.devices {
            let items = &state.cards[device].items;
            let begun = items.iter().position(|i| i.started);
            let candidates = match begun {
                Some(index) if !self.test.options.early_release => index..index + 1,
                _ if self.keep(Rule::ReplayInOrder) => 0..items.len().min(1),
                _ => 0..items.len(),
            };
            for index in candidates {
                if items[index].work == Work::Store && self.is_held(&state.cards[device], &items[index]) {
                    next.push(with(state, |s| _ = s.cards[device].items.remove(index)));
                } else {
                    self.advance(state, device, index, next);
                }
            }
            self.peer_steps(state, device, next);
        }
    }

    /// Whether the replay is over and the cards have nothing to tell each other.
    pub fn is_replayed(&self, state: &State) -> bool {
        let mut next = Vec::new();
        self.card_steps_after_failure(state, &mut next);
        next.is_empty()
    }
}
