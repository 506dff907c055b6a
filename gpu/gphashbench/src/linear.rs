//! Whether a history is linearizable, key by key (Wing and Gong 1993, with memory of what was tried; Herlihy and Wing 1990: a history is linearizable
//! if that of each object is). After a crash: durably linearizable (Izraelevitz and others 2016): what was answered has happened, everything else has
//! happened or not, and what is there then is what that leaves.

use std::collections::HashSet;

use nearpm_gphash::{Op, Outcome};

/// An operation of a history, with its place in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What was done.
    pub op: Op,
    /// With which key.
    pub key: u64,
    /// The value that was put.
    pub value: u32,
    /// When it began; 0 where that is not known.
    pub begun: u64,
    /// When it was answered, and how; `None` when it was cut off.
    pub answer: Option<Answered>,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// When.
    pub at: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The value that was read.
    pub value: u32,
}

/// The value of a key, if it is there.
pub type State = Option<u32>;

/// Whether the events of one key, at most 64, can be brought to an order that explains their answers and, if it is known, what is there at the end.
pub fn is_linearizable(events: &[Event], before: State, end: Option<State>) -> bool {
    assert!(events.len() <= 64, "{} operations on one key are more than this checks", events.len());
    let must = events
        .iter()
        .enumerate()
        .filter(|(_, event)| event.answer.is_some())
        .fold(0, |mask, (at, _)| mask | 1u64 << at);
    Search { events, must, end, tried: HashSet::new() }.from(0, before)
}

struct Search<'e> {
    events: &'e [Event],
    /// Those that were answered: they have happened.
    must: u64,
    end: Option<State>,
    tried: HashSet<(u64, State)>,
}

impl Search<'_> {
    /// Whether the rest can follow what `done` have left.
    fn from(&mut self, done: u64, state: State) -> bool {
        if done & self.must == self.must && self.end.is_none_or(|end| end == state) {
            return true;
        }
        if !self.tried.insert((done, state)) {
            return false;
        }
        // What began after another had been answered does not come before that.
        let left = |at: &usize| done >> at & 1 == 0;
        let answered =
            (0..self.events.len()).filter(left).filter_map(|at| self.events[at].answer.map(|answer| answer.at));
        let first = answered.min().unwrap_or(u64::MAX);
        let next = |at: &usize| {
            let event = &self.events[*at];
            (event.begun < first).then(|| after(event, state)).flatten()
        };
        let can: Vec<(usize, State)> =
            (0..self.events.len()).filter(left).filter_map(|at| Some((at, next(&at)?))).collect();
        // What changes nothing and has its answer here may as well come now: no order is lost.
        if let Some(&(at, _)) = can.iter().find(|&&(at, next)| next == state && self.events[at].answer.is_some()) {
            return self.from(done | 1 << at, state);
        }
        can.into_iter().any(|(at, next)| self.from(done | 1 << at, next))
    }
}

/// What an event makes of a state; `None` where it cannot have its answer there.
fn after(event: &Event, state: State) -> Option<State> {
    let there = state.is_some();
    let (outcome, next) = match event.op {
        Op::Get | Op::Rmw => (if there { Outcome::Done } else { Outcome::Absent }, state),
        Op::Insert if there => (Outcome::Exists, state),
        Op::Insert | Op::Put => (Outcome::Done, Some(event.value)),
        Op::Update if there => (Outcome::Done, Some(event.value)),
        Op::Delete if there => (Outcome::Done, None),
        Op::Update | Op::Delete => (Outcome::Absent, state),
    };
    let Some(answer) = event.answer else { return Some(next) };
    // Nothing was done for want of room.
    if matches!(answer.outcome, Outcome::Full | Outcome::NoCell) {
        return Some(state);
    }
    let read = event.op != Op::Get || !there || state == Some(answer.value);
    (answer.outcome == outcome && read).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(op: Op, value: u32, begun: u64, at: u64, outcome: Outcome, read: u32) -> Event {
        Event { op, key: 1, value, begun, answer: Some(Answered { at, outcome, value: read }) }
    }

    fn cut_off(op: Op, value: u32, begun: u64) -> Event {
        Event { op, key: 1, value, begun, answer: None }
    }

    #[test]
    fn two_inserts_that_both_succeed_are_not_linearizable() {
        let both = [event(Op::Insert, 1, 1, 9, Outcome::Done, 0), event(Op::Insert, 2, 2, 8, Outcome::Done, 0)];
        assert!(!is_linearizable(&both, None, None));
        let with_delete = [both[0], both[1], event(Op::Delete, 0, 3, 7, Outcome::Done, 0)];
        assert!(is_linearizable(&with_delete, None, None));
    }

    #[test]
    fn reads_follow_the_order_of_answers() {
        let put = event(Op::Put, 5, 1, 2, Outcome::Done, 0);
        assert!(!is_linearizable(&[put, event(Op::Get, 0, 3, 4, Outcome::Absent, 0)], None, None));
        assert!(is_linearizable(&[put, event(Op::Get, 0, 1, 4, Outcome::Absent, 0)], None, None));
        assert!(!is_linearizable(&[put, event(Op::Get, 0, 3, 4, Outcome::Done, 6)], None, None));
    }

    #[test]
    fn after_a_crash_what_was_answered_is_there_and_the_rest_may_be() {
        let put = event(Op::Put, 5, 1, 2, Outcome::Done, 0);
        assert!(!is_linearizable(&[put], None, Some(None)));
        assert!(is_linearizable(&[put, cut_off(Op::Delete, 0, 3)], None, Some(None)));
        assert!(is_linearizable(&[put, cut_off(Op::Delete, 0, 3)], None, Some(Some(5))));
        let read = event(Op::Get, 0, 4, 5, Outcome::Done, 7);
        assert!(!is_linearizable(&[put, cut_off(Op::Put, 7, 3), read], None, Some(Some(5))));
        assert!(is_linearizable(&[put, cut_off(Op::Put, 7, 3), read], None, Some(Some(7))));
    }
}
