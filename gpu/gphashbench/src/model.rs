//! A model test: batches of all operations on a table on a device, each answer and each value
//! compared with a table of the processor's.
//!
//! Between batches the table grows, its cache turns, and it is opened again. Operations of a batch
//! that name the same key happen at the same time: for these some order must explain the answers
//! and what is there behind them.

use std::collections::HashMap;
use std::rc::Rc;

use anyhow::{Result, bail, ensure};
use nearpm_gphash::{Answer, CacheOptions, Design, Key, Layout, Op, Outcome, Request, Table};
use nearpm_gpu::{Device, Medium, PmRegion};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::linear::{Answered, Event, State, is_linearizable};
use crate::values::{VALUE, number_of, value_of};

/// What is tested.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// The table's design.
    pub design: Design,
    /// Operations in all.
    pub operations: u64,
    /// Operations of a batch.
    pub batch: u32,
    /// Keys that are asked for.
    pub keys: u32,
    /// Of the operations and their order.
    pub seed: u64,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tested {
    /// Operations, those that look at what a batch left included.
    pub operations: u64,
    /// Batches.
    pub batches: u64,
    /// Keys that several operations of one batch named.
    pub together: u64,
    /// Times that the table was opened again and checked.
    pub opened: u64,
    /// Slots in use at the end.
    pub slots: u64,
}

/// Batches between two openings.
const OPENED: u64 = 16;
/// Of so many operations one is on one of a few keys.
const HOT: u32 = 64;

/// Runs the test.
///
/// # Errors
/// The first answer or value that the model does not explain; what the table refuses.
pub fn run(device: &Rc<dyn Device>, model: &Model) -> Result<Tested> {
    let layout = match model.design {
        Design::Levels => Layout::levels(u64::from(model.keys), VALUE).growing(1),
        Design::Tags => Layout::tags(u64::from(model.keys), VALUE).growing(1),
    };
    let medium = Medium::memfd((layout.bytes() + (1 << 20)).next_multiple_of(1 << 21))?;
    let region = PmRegion::create_in(device.clone(), medium)?;
    drop(Table::create(&region, "table", &layout, model.seed as u32)?);
    let mut random = ChaCha8Rng::seed_from_u64(model.seed);
    let mut states: Vec<State> = vec![None; model.keys as usize + 1];
    let (mut tested, mut table) = (Tested::default(), open(&region, model)?);
    while tested.operations < model.operations {
        let requests = requests(model, &mut random, tested.operations as u32);
        let answers = table.batch(&requests)?;
        tested.operations += requests.len() as u64;
        tested.batches += 1;
        compare(&table, &requests, &answers, &mut states, &mut tested)?;
        if tested.batches.is_multiple_of(4) && table.can_grow() {
            table.grow(1)?;
        }
        table.turn_cache()?;
        if tested.batches.is_multiple_of(OPENED) {
            drop(table);
            table = open(&region, model)?;
            tested.opened += 1;
            let (found, live) = (table.check()?, states.iter().flatten().count());
            ensure!(found.is_sound(), "behind {} batches: {found}", tested.batches);
            ensure!(found.live as usize == live, "{} pairs are there, {live} should be", found.live);
        }
    }
    tested.slots = table.slots_in_use();
    everything(&table, model, &states, &mut tested)?;
    Ok(tested)
}

fn open(region: &PmRegion, model: &Model) -> Result<Table> {
    let entries = (model.keys / 8).max(8);
    let options = CacheOptions { entries, sampled: 1, ..CacheOptions::share(&Table::layout_of(region, "table")?, 0.1) };
    let mut table = Table::open_cached(region, "table", options)?;
    table.sort_batches(model.batch)?;
    Ok(table)
}

fn requests(model: &Model, random: &mut ChaCha8Rng, first: u32) -> Vec<Request> {
    let kinds = [Op::Get, Op::Get, Op::Get, Op::Insert, Op::Update, Op::Put, Op::Delete];
    (0..model.batch)
        .map(|at| {
            let op = kinds[random.random_range(0..kinds.len())];
            let most = if random.random_range(0..HOT) == 0 { model.keys.min(1024) } else { model.keys };
            let key = u64::from(random.random_range(1..=most));
            let value = if op.puts() { value_of(first.wrapping_add(at)) } else { Vec::new() };
            Request { op, key: key.into(), value }
        })
        .collect()
}

fn key_of(request: &Request) -> Result<u64> {
    match request.key {
        Key::Word(key) => Ok(key),
        Key::Bytes(_) => bail!("the model's keys are words"),
    }
}

fn event(request: &Request, answer: &Answer) -> Result<Event> {
    let value = answer.value.as_ref().map_or(0, |value| number_of(value));
    let put = if request.op.puts() { number_of(&request.value) } else { 0 };
    let answered = Answered { at: 1, outcome: answer.outcome, value };
    Ok(Event { op: request.op, key: key_of(request)?, value: put, begun: 0, answer: Some(answered) })
}

/// Holds the answers of a batch against what was there before.
fn compare(
    table: &Table,
    requests: &[Request],
    answers: &[Answer],
    states: &mut [State],
    tested: &mut Tested,
) -> Result<()> {
    let mut by_key: HashMap<u64, Vec<Event>> = HashMap::with_capacity(requests.len());
    for (request, answer) in requests.iter().zip(answers) {
        let event = event(request, answer)?;
        by_key.entry(event.key).or_default().push(event);
    }
    let mut together = Vec::new();
    for (&key, events) in &by_key {
        let before = states[key as usize];
        match events[..] {
            [one] => {
                let after = after(&one, before);
                ensure!(is_linearizable(events, before, Some(after)), "key {key}, {before:?} before: {one:?}");
                states[key as usize] = after;
            }
            _ => together.push(key),
        }
    }
    let ends = look(table, &together)?;
    tested.operations += together.len() as u64;
    tested.together += together.len() as u64;
    for (key, end) in together.into_iter().zip(ends) {
        let (before, events) = (states[key as usize], &by_key[&key]);
        let explained = is_linearizable(events, before, Some(end));
        ensure!(explained, "key {key}, {before:?} before, {end:?} behind: no order explains {events:?}");
        states[key as usize] = end;
    }
    Ok(())
}

/// What one operation alone leaves.
fn after(event: &Event, before: State) -> State {
    let done = event.answer.is_some_and(|answer| answer.outcome == Outcome::Done);
    match event.op {
        Op::Delete if done => None,
        Op::Insert | Op::Update | Op::Put | Op::Rmw if done => Some(event.value),
        _ => before,
    }
}

/// What is there of keys.
fn look(table: &Table, keys: &[u64]) -> Result<Vec<State>> {
    let get = |&key: &u64| Request { op: Op::Get, key: key.into(), value: Vec::new() };
    let answers = table.batch(&keys.iter().map(get).collect::<Vec<_>>())?;
    Ok(answers.into_iter().map(|answer| answer.value.map(|value| number_of(&value))).collect())
}

/// Looks at every key.
fn everything(table: &Table, model: &Model, states: &[State], tested: &mut Tested) -> Result<()> {
    let keys: Vec<u64> = (1..=u64::from(model.keys)).collect();
    for piece in keys.chunks(model.batch as usize) {
        tested.operations += piece.len() as u64;
        for (&key, found) in piece.iter().zip(look(table, piece)?) {
            ensure!(found == states[key as usize], "key {key} has {found:?}, not {:?}", states[key as usize]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use nearpm_gpu::Interpreted;

    use super::*;

    #[test]
    fn tables_are_what_the_model_is() {
        for design in [Design::Levels, Design::Tags] {
            let device: Rc<dyn Device> = Rc::new(Interpreted::new(64 << 20));
            let model = Model { design, operations: 1500, batch: 64, keys: 96, seed: 1 };
            let tested = run(&device, &model).unwrap_or_else(|error| panic!("{error:#}"));
            assert!(tested.operations >= 1500 && tested.together > 50 && tested.opened > 0, "{tested:?}");
        }
    }
}
