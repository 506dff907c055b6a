//! Answers that wait to be taken, by ticket.

use std::collections::VecDeque;

use crate::core::{Answer, Ticket};

enum Slot {
    Open,
    Answered(Answer),
    Taken,
}

/// A window over the tickets, from the oldest one whose answer has not been taken.
#[derive(Default)]
pub struct Answers {
    first: u64,
    slots: VecDeque<Slot>,
}

impl Answers {
    /// Gives the next ticket.
    pub fn open(&mut self) -> Ticket {
        self.slots.push_back(Slot::Open);
        Ticket(self.first + self.slots.len() as u64 - 1)
    }

    /// Keeps an answer until it is taken.
    pub fn put(&mut self, ticket: Ticket, answer: Answer) {
        self.slots[(ticket.0 - self.first) as usize] = Slot::Answered(answer);
    }

    /// Takes an answer if it is there.
    pub fn take(&mut self, ticket: Ticket) -> Option<Answer> {
        let slot = self.slots.get_mut(ticket.0.checked_sub(self.first)? as usize)?;
        let answer = match std::mem::replace(slot, Slot::Taken) {
            Slot::Answered(answer) => answer,
            other => {
                *slot = other;
                return None;
            }
        };
        while let Some(Slot::Taken) = self.slots.front() {
            self.slots.pop_front();
            self.first += 1;
        }
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_taken_once_in_any_order() {
        let mut answers = Answers::default();
        let tickets: Vec<_> = (0..5).map(|_| answers.open()).collect();
        let answer = |cycle| Answer { cycle, data: [0; 64], error: false };
        for i in [3, 0, 1] {
            assert_eq!(answers.take(tickets[i]), None);
            answers.put(tickets[i], answer(i as u64));
        }
        for i in [1, 3, 0] {
            assert_eq!(answers.take(tickets[i]), Some(answer(i as u64)));
            assert_eq!(answers.take(tickets[i]), None);
        }
        assert_eq!(answers.open(), Ticket(5));
    }
}
