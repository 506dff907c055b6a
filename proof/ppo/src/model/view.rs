//! What is observed of a state.

use super::{Model, Phase, State, bit};
use crate::litmus::{EMPTY, Moment, Observable, Value, WRITTEN};

impl Model<'_> {
    /// The observation of a state, if it is one in which the test looks.
    pub fn observe(&self, state: &State) -> Option<Vec<String>> {
        let looks = match (self.test.moment, &state.phase) {
            (Moment::Failure, Phase::Running) => true,
            (Moment::Replay, Phase::Replay) => self.is_replayed(state),
            (_, Phase::Over) => true,
            _ => false,
        };
        looks.then(|| self.test.observables.iter().map(|o| self.value(state, *o)).collect())
    }

    fn value(&self, state: &State, observable: Observable) -> String {
        let flag = |set: bool| (if set { "1" } else { "0" }).to_string();
        match observable {
            Observable::Word(word) => printed(state.medium[word]),
            Observable::Register(register) => printed(state.registers[register]),
            Observable::Mark(mark) => flag(state.marks & bit(mark) != 0),
            Observable::Loss => flag(state.loss),
            Observable::Epoch(transaction, device) => {
                let t = &self.test.transactions[transaction];
                flag(state.medium[self.test.epoch(t.thread, device)] >= t.number)
            }
            Observable::Entry(entry) => {
                let entry = &self.test.entries[entry];
                let logged = entry.data.iter().filter(|(word, _)| entry.exact.contains(word));
                let values: Vec<Value> = logged.map(|(_, slot)| state.medium[*slot]).collect();
                if state.medium[entry.head] != WRITTEN || values.contains(&EMPTY) {
                    return "-".into();
                }
                values.into_iter().map(printed).collect::<Vec<_>>().join(",")
            }
        }
    }
}

/// A value as litmus files write it.
pub fn printed(value: Value) -> String {
    if value == EMPTY { "-".into() } else { value.to_string() }
}
