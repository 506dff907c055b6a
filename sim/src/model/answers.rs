//! Answers to submitted accesses, by ticket.

use std::collections::VecDeque;

use nearpm_interface::geometry::LINE;

use crate::core::{Answer, Ticket};

enum State {
    Pending,
    /// A write or an error.
    Plain {
        cycle: u64,
        error: bool,
    },
    Data(Box<Answer>),
    Taken,
}

/// Outstanding tickets. Answers to writes that nobody asks for stay, at a few bytes each.
pub struct Answers {
    first: u64,
    states: VecDeque<State>,
}

impl Answers {
    pub fn new() -> Self {
        Answers { first: 0, states: VecDeque::new() }
    }

    /// A new ticket.
    pub fn issue(&mut self) -> Ticket {
        self.states.push_back(State::Pending);
        Ticket(self.first + self.states.len() as u64 - 1)
    }

    /// Answers without data.
    pub fn plain(&mut self, ticket: Ticket, cycle: u64, error: bool) {
        self.set(ticket, State::Plain { cycle, error });
    }

    /// Answers with data.
    pub fn data(&mut self, ticket: Ticket, cycle: u64, data: [u8; LINE]) {
        self.set(ticket, State::Data(Box::new(Answer { cycle, data, error: false })));
    }

    fn set(&mut self, ticket: Ticket, state: State) {
        let old = &mut self.states[(ticket.0 - self.first) as usize];
        debug_assert!(matches!(old, State::Pending), "{ticket:?} is answered twice");
        *old = state;
    }

    /// The cycle of an answer that is known.
    pub fn cycle(&self, ticket: Ticket) -> Option<u64> {
        match self.states.get(ticket.0.checked_sub(self.first)? as usize)? {
            State::Pending | State::Taken => None,
            State::Plain { cycle, .. } => Some(*cycle),
            State::Data(answer) => Some(answer.cycle),
        }
    }

    /// Takes an answer that has left the card by `now`.
    pub fn take(&mut self, ticket: Ticket, now: u64) -> Option<Answer> {
        self.cycle(ticket).filter(|&cycle| cycle <= now)?;
        let state = std::mem::replace(&mut self.states[(ticket.0 - self.first) as usize], State::Taken);
        while matches!(self.states.front(), Some(State::Taken)) {
            self.states.pop_front();
            self.first += 1;
        }
        match state {
            State::Plain { cycle, error } => Some(Answer { cycle, data: [0; LINE], error }),
            State::Data(answer) => Some(*answer),
            State::Pending | State::Taken => None,
        }
    }
}
