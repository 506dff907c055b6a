//! The executions of a test.

use super::matrix::Matrix;
use crate::litmus::{Action, NOT_LOADED, Test, Value, Wanted};

/// An instruction that was executed.
#[derive(Clone, Copy)]
pub struct Event {
    pub thread: usize,
    /// Its place in the thread's program.
    pub place: usize,
    pub action: Action,
}

/// An execution.
pub struct Candidate<'t> {
    pub test: &'t Test,
    pub events: Vec<Event>,
    /// Of each load: the event that it reads, or the word's initial value.
    pub reads: Vec<Option<usize>>,
    /// Order in which the stores to each word are visible.
    pub visible: Vec<Vec<usize>>,
    pub registers: Vec<Value>,
    pub marks: u16,
    /// Launches of whose end the host was told.
    pub ended: u8,
    /// What is visible, or happened, before what.
    pub before: Matrix,
}

impl Candidate<'_> {
    pub fn is_before_in_thread(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.events[a], &self.events[b]);
        a.thread == b.thread && a.place < b.place
    }

    pub fn same_block(&self, a: usize, b: usize) -> bool {
        let place = |event: usize| {
            let thread = &self.test.threads[self.events[event].thread];
            (thread.block, thread.launch)
        };
        place(a) == place(b)
    }

    /// Number of an event among the barriers of its thread, if it is one.
    pub fn barrier(&self, event: usize) -> Option<usize> {
        let is = |event: &Event| event.action == Action::Barrier;
        let Event { thread, place, .. } = self.events[event];
        is(&self.events[event]).then(|| {
            self.events.iter().filter(|other| other.thread == thread && other.place < place && is(other)).count()
        })
    }

    /// Whether an event is a store to PM.
    pub fn is_persist(&self, event: usize) -> bool {
        matches!(self.events[event].action, Action::Store { word, .. } if self.test.words[word].persistent)
    }
}

/// Calls `found` with every execution.
pub fn each(test: &Test, mut found: impl FnMut(&Candidate)) {
    for ended in 0..=test.launches() {
        let choices: Vec<Vec<usize>> = test
            .threads
            .iter()
            .map(|thread| match thread.launch.cmp(&ended) {
                std::cmp::Ordering::Less => vec![thread.program.len()],
                std::cmp::Ordering::Equal => (0..=thread.program.len()).collect(),
                std::cmp::Ordering::Greater => vec![0],
            })
            .collect();
        product(&choices, |lengths| each_reading(test, ended as u8, lengths, &mut found));
    }
}

/// Goes through all loads' choices for the prefixes of the threads.
fn each_reading(test: &Test, ended: u8, lengths: &[usize], found: &mut impl FnMut(&Candidate)) {
    let mut sites = Vec::new();
    for (thread, length) in lengths.iter().enumerate() {
        for place in 0..*length {
            sites.push(Event { thread, place, action: test.threads[thread].program[place].action });
        }
    }
    let loads: Vec<usize> = (0..sites.len()).filter(|s| matches!(sites[*s].action, Action::Load { .. })).collect();
    let options = |load: &usize| {
        let Action::Load { word: wanted, .. } = sites[*load].action else { return vec![None] };
        let stores =
            (0..sites.len()).filter(|site| matches!(sites[*site].action, Action::Store { word, .. } if word == wanted));
        std::iter::once(None).chain(stores.map(Some)).collect()
    };
    let choices: Vec<Vec<Option<usize>>> = loads.iter().map(options).collect();
    product(&choices, |chosen| {
        let mut reads = vec![None; sites.len()];
        loads.iter().zip(chosen).for_each(|(load, from)| reads[*load] = *from);
        if let Some(candidate) = execute(test, ended, &sites, &reads) {
            each_order(candidate, found);
        }
    });
}

/// Conditions and values under the choices; none if they contradict each other.
fn execute<'t>(test: &'t Test, ended: u8, sites: &[Event], reads: &[Option<usize>]) -> Option<Candidate<'t>> {
    let mut registers = vec![NOT_LOADED; test.registers.len()];
    let mut marks = 0;
    let mut number = vec![None; sites.len()];
    let mut events = Vec::new();
    for (site, event) in sites.iter().enumerate() {
        let guard = test.threads[event.thread].program[event.place].guard;
        if guard.is_some_and(|(register, wanted)| registers[register] != wanted) {
            if reads[site].is_some() {
                return None;
            }
            continue;
        }
        if let Action::Load { word, wanted, .. } = event.action {
            let value = match reads[site].map(|from| sites[from].action) {
                Some(Action::Store { value, .. }) => value,
                _ => test.words[word].initial,
            };
            match wanted {
                Wanted::Register(register) => registers[register] = value,
                Wanted::Until(wanted) if wanted != value => return None,
                Wanted::Until(_) => {}
            }
        }
        if let Action::Mark(mark) = event.action {
            marks |= 1 << mark;
        }
        number[site] = Some(events.len());
        events.push((site, *event));
    }
    let mut read = Vec::new();
    for (site, _) in &events {
        read.push(match reads[*site] {
            Some(from) => Some(number[from]?),
            None => None,
        });
    }
    let events: Vec<Event> = events.into_iter().map(|(_, event)| event).collect();
    let before = Matrix::new(events.len());
    let visible = vec![Vec::new(); test.words.len()];
    let candidate = Candidate { test, events, reads: read, visible, registers, marks, ended, before };
    barriers_are_whole(&candidate).then_some(candidate)
}

/// All threads of a block have passed a barrier, or none has.
fn barriers_are_whole(candidate: &Candidate) -> bool {
    let test = candidate.test;
    let passed =
        |thread: usize| candidate.events.iter().filter(|e| e.thread == thread && e.action == Action::Barrier).count();
    let place = |thread: usize| (test.threads[thread].block, test.threads[thread].launch);
    let all = 0..test.threads.len();
    all.clone().all(|a| all.clone().all(|b| place(a) != place(b) || passed(a) == passed(b)))
}

/// Goes through all orders of the stores to each word that agree with one order of everything.
fn each_order(mut candidate: Candidate, found: &mut impl FnMut(&Candidate)) {
    let stores = |word: usize| -> Vec<usize> {
        let of = |e: &usize| matches!(candidate.events[*e].action, Action::Store { word: w, .. } if w == word);
        (0..candidate.events.len()).filter(of).collect()
    };
    let choices: Vec<Vec<Vec<usize>>> =
        (0..candidate.test.words.len()).map(|word| permutations(&stores(word))).collect();
    let fixed = fixed_order(&candidate);
    product(&choices, |visible| {
        let mut before = fixed.clone();
        for order in visible {
            for (i, first) in order.iter().enumerate() {
                order[i + 1..].iter().for_each(|second| before.add(*first, *second));
            }
        }
        for (load, event) in candidate.events.iter().enumerate() {
            let Action::Load { word, .. } = event.action else { continue };
            // What is stored behind what was read is stored behind the load.
            let order = &visible[word];
            let later =
                candidate.reads[load].map_or(0, |from| order.iter().position(|s| *s == from).map_or(0, |p| p + 1));
            order[later..].iter().for_each(|store| before.add(load, *store));
        }
        before.close();
        if before.is_irreflexive() {
            candidate.visible = visible.to_vec();
            candidate.before = before;
            found(&candidate);
        }
    });
}

/// Program order, reads, barriers and launches.
fn fixed_order(candidate: &Candidate) -> Matrix {
    let mut before = Matrix::new(candidate.events.len());
    let all = 0..candidate.events.len();
    for a in all.clone() {
        if let Some(from) = candidate.reads[a] {
            before.add(from, a);
        }
        for b in all.clone() {
            let launch = |event: usize| candidate.test.threads[candidate.events[event].thread].launch;
            if candidate.is_before_in_thread(a, b) || launch(a) < launch(b) {
                before.add(a, b);
            }
            let number = candidate.barrier(b);
            if number.is_some() && candidate.same_block(a, b) {
                // What its thread did before its own arrival at this barrier.
                let arrival = all.clone().find(|e| {
                    candidate.events[*e].thread == candidate.events[a].thread && candidate.barrier(*e) == number
                });
                if arrival.is_some_and(|arrival| candidate.is_before_in_thread(a, arrival)) {
                    before.add(a, b);
                }
            }
        }
    }
    before
}

/// Calls `with` for one of each.
pub fn product<T: Clone>(choices: &[Vec<T>], mut with: impl FnMut(&[T])) {
    let mut digits = vec![0; choices.len()];
    if choices.iter().any(Vec::is_empty) {
        return;
    }
    loop {
        let chosen: Vec<T> = digits.iter().zip(choices).map(|(digit, of)| of[*digit].clone()).collect();
        with(&chosen);
        let Some(place) = (0..digits.len()).find(|place| digits[*place] + 1 < choices[*place].len()) else { return };
        digits[place] += 1;
        digits[..place].fill(0);
    }
}

fn permutations(of: &[usize]) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (index, first) in of.iter().enumerate() {
        let mut rest = of.to_vec();
        rest.remove(index);
        all.extend(permutations(&rest).into_iter().map(|rest| [vec![*first], rest].concat()));
    }
    all
}
