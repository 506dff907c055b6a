//! Whether a history is linearizable, key by key (Wing and Gong 1993, with memory of what was
//! tried; Herlihy and Wing 1990: a history is linearizable if that of each object is). After a
//! crash: durably linearizable (Izraelevitz and others 2016): what was answered has happened,
//! everything else has happened or not, and what is there then is what that leaves.

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

/// Whether the events of one key, at most 64, can be brought to an order that explains their
/// answers and, if it is known, what is there at the end.
pub fn is_linearizable(events: &[Event], before: State, end: Option<State>) -> bool {
    assert!(events.len() <= 64, "{} operations on one key are more than this checks", events.len());
    let (events, before, unseen) = told_apart(events, before, end);
    let must = events
        .iter()
        .enumerate()
        .filter(|(_, event)| event.answer.is_some())
        .fold(0, |mask, (at, _)| mask | 1u64 << at);
    Search { events: &events, must, end, unseen, tried: HashSet::new() }.from(0, before)
}

/// The events that matter, and the value that stands for all that nobody has seen: such values
/// differ in nothing. Without it, operations that were cut off would be tried in all of their
/// orders. Cut off, a look-up does nothing, and an update to a value that nobody saw nothing that
/// anybody needs.
fn told_apart(events: &[Event], before: State, end: Option<State>) -> (Vec<Event>, State, u32) {
    let read = |event: &Event| event.answer.filter(|_| event.op == Op::Get).map(|answer| answer.value);
    let seen: HashSet<u32> = events.iter().filter_map(read).chain(end.flatten()).collect();
    let unseen = (0..).find(|value| !seen.contains(value)).expect("there are more values than events");
    let of = |value: u32| if seen.contains(&value) { value } else { unseen };
    let matters = |event: &Event| match event.op {
        _ if event.answer.is_some() => true,
        Op::Get | Op::Rmw => false,
        Op::Update => event.value != unseen,
        _ => true,
    };
    let value_of = |event: &Event| if event.op == Op::Delete { unseen } else { of(event.value) };
    let told = events.iter().map(|event| Event { value: value_of(event), ..*event }).filter(matters).collect();
    (told, before.map(of), unseen)
}

struct Search<'e> {
    events: &'e [Event],
    /// Those that were answered: they have happened.
    must: u64,
    end: Option<State>,
    unseen: u32,
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
        // What has its answer here and never changes anything may as well come now: no order is
        // lost.
        if let Some(&(at, _)) = can.iter().find(|&&(at, next)| next == state && only_looks(&self.events[at])) {
            return self.from(done | 1 << at, state);
        }
        let helps = |&(at, next): &(usize, State)| self.helps(done, state, at, next);
        let can: Vec<(usize, State)> = can.into_iter().filter(helps).collect();
        can.into_iter().any(|(at, next)| self.from(done | 1 << at, next))
    }

    /// Whether it may be of use that an operation happens now which need not: it changes something,
    /// is no value that nobody saw in place of another, and none that does the same and began
    /// earlier is left.
    fn helps(&self, done: u64, state: State, at: usize, next: State) -> bool {
        let event = &self.events[at];
        if event.answer.is_some() {
            return true;
        }
        let alike = |other: &Event| {
            other.answer.is_none() && (other.op == Op::Delete) == (event.op == Op::Delete) && other.value == event.value
        };
        let earlier = |(number, other): (usize, &Event)| {
            done >> number & 1 == 0 && alike(other) && (other.begun, number) < (event.begun, at)
        };
        let is_new = next != state && !(state.is_some() && next == Some(self.unseen));
        let same = next.is_none() || next == Some(self.unseen);
        is_new && !(same && self.events.iter().enumerate().any(earlier))
    }
}

/// Whether an operation was answered so that it changed nothing, whenever it came.
fn only_looks(event: &Event) -> bool {
    let puts = matches!(event.op, Op::Insert | Op::Put | Op::Update);
    event.answer.is_some_and(|answer| !(puts && answer.outcome == Outcome::Done))
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
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

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

    /// All orders of all choices of operations that were cut off, one by one.
    fn any_order(events: &[Event], done: u64, state: State, end: Option<State>) -> bool {
        let left = || (0..events.len()).filter(|at| done >> at & 1 == 0);
        if left().all(|at| events[at].answer.is_none()) && end.is_none_or(|end| end == state) {
            return true;
        }
        let first = left().filter_map(|at| events[at].answer.map(|answer| answer.at)).min().unwrap_or(u64::MAX);
        left()
            .filter(|&at| events[at].begun < first)
            .any(|at| after(&events[at], state).is_some_and(|next| any_order(events, done | 1 << at, next, end)))
    }

    #[test]
    fn what_is_left_out_changes_no_verdict() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let kinds = [Op::Get, Op::Insert, Op::Update, Op::Put, Op::Delete, Op::Rmw];
        let mut verdicts = [0; 2];
        for _ in 0..20_000 {
            let one = |number: u32, random: &mut ChaCha8Rng| {
                let begun = random.random_range(0..8);
                let outcomes = [Outcome::Done, Outcome::Done, Outcome::Absent, Outcome::Exists, Outcome::Full];
                let outcome = outcomes[random.random_range(0..outcomes.len())];
                let answered =
                    Answered { at: begun + random.random_range(1..8), outcome, value: random.random_range(0..4) };
                let answer = random.random_bool(0.4).then_some(answered);
                Event { op: kinds[random.random_range(0..kinds.len())], key: 1, value: number + 1, begun, answer }
            };
            let events: Vec<Event> = (0..random.random_range(1..7)).map(|number| one(number, &mut random)).collect();
            let before = random.random_bool(0.5).then_some(0);
            let end = random.random_bool(0.8).then(|| random.random_bool(0.6).then(|| random.random_range(0..7)));
            let expected = any_order(&events, 0, before, end);
            assert_eq!(is_linearizable(&events, before, end), expected, "{before:?}, {events:#?}, {end:?}");
            verdicts[usize::from(expected)] += 1;
        }
        assert!(verdicts.iter().all(|&count| count > 1000), "{verdicts:?}");
    }

    /// 27 operations that were cut off before any was answered, and whose end nobody can explain,
    /// once took hours.
    #[test]
    fn many_operations_that_were_cut_off_take_no_time() {
        let kinds = [Op::Insert, Op::Put, Op::Delete, Op::Update, Op::Get];
        let events: Vec<Event> = (0..60).map(|number| cut_off(kinds[number % 5], number as u32 + 1, 0)).collect();
        assert!(!is_linearizable(&events, None, Some(Some(99))));
        assert!(is_linearizable(&events, None, Some(Some(2))));
    }
}
