//! What a crash may leave of a line, against the definition: every set of words that the order of
//! stores allows.

use std::collections::BTreeSet;

use nearpm_explorer::arena::Part;
use nearpm_explorer::card::Rules;
use nearpm_explorer::choices::Choices;
use nearpm_explorer::lines::{Line, Medium};
use nearpm_explorer::program::Random;
use nearpm_explorer::trace::{Event, Step};
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::POOLS_BASE;

/// Words of the line that are used.
const WORDS: usize = 3;

fn step(processor: u32, event: Event) -> Step {
    Step { processor, event }
}

fn part(word: usize, value: u64) -> Part {
    Part { word, mask: u64::MAX, value }
}

/// All states of the first line, word after word.
fn states(line: &Line, word: usize, tears: bool, found: &mut Vec<Vec<u64>>, so_far: &mut Vec<u64>, durable: &[u64]) {
    if word == WORDS {
        found.push(so_far.clone());
        return;
    }
    let values = if line.is_open(word) { line.candidates(word, tears) } else { vec![durable[word]] };
    for value in values {
        let mut line = line.clone();
        if line.is_open(word) {
            line.decide(word, value);
        }
        so_far.push(value);
        states(&line, word + 1, tears, found, so_far, durable);
        so_far.pop();
    }
}

fn left_by(medium: &Medium, tears: bool) -> BTreeSet<Vec<u64>> {
    let mut found = Vec::new();
    match medium.possible().get(&0) {
        Some(line) => states(line, 0, tears, &mut found, &mut Vec::new(), medium.durable()),
        None => found.push(medium.durable()[..WORDS].to_vec()),
    }
    let distinct: BTreeSet<Vec<u64>> = found.iter().cloned().collect();
    assert_eq!(distinct.len(), found.len(), "no state is found twice");
    distinct
}

/// By the definition: a word store is there only if those before it are that must be.
fn by_definition(stores: &[(bool, Vec<Part>)]) -> BTreeSet<Vec<u64>> {
    let all: Vec<(usize, bool, Part)> = stores
        .iter()
        .enumerate()
        .flat_map(|(n, (cached, parts))| parts.iter().map(move |p| (n, *cached, *p)))
        .collect();
    let mut found = BTreeSet::new();
    for set in 0..1u32 << all.len() {
        let is_there = |i: usize| set >> i & 1 == 1;
        let allowed = (0..all.len()).filter(|&i| is_there(i)).all(|i| {
            let (number, cached, part) = all[i];
            (0..i).all(|j| {
                let (earlier, earlier_cached, earlier_part) = all[j];
                let ordered = earlier < number && (earlier_part.word == part.word || (cached && earlier_cached));
                !ordered || is_there(j)
            })
        });
        if allowed {
            let mut words = vec![0; WORDS];
            (0..all.len()).filter(|&i| is_there(i)).for_each(|i| words[all[i].2.word] = all[i].2.value);
            found.insert(words);
        }
    }
    found
}

#[test]
fn the_states_of_a_line_are_those_of_the_definition() {
    let mut random = Random(5);
    let mut most = 0;
    for _ in 0..400 {
        let mut store = |number: u64| {
            let words = 1 + random.below(7);
            // Few values, so that a word may get one again.
            let parts = (0..WORDS).filter(|word| words >> word & 1 == 1);
            (random.below(3) > 0, parts.map(|word| part(word, number % 3 + 1)).collect::<Vec<_>>())
        };
        let stores: Vec<(bool, Vec<Part>)> = (0..4).map(&mut store).collect();
        let mut medium = Medium::new(vec![0; 8], false);
        for (cached, parts) in &stores {
            medium.take(
                &step(0, if *cached { Event::Store(parts.clone()) } else { Event::Stream(parts.clone()) }),
                &mut Choices::default(),
            );
        }
        let expected = by_definition(&stores);
        most = most.max(expected.len());
        assert_eq!(left_by(&medium, true), expected, "{stores:?}");
        assert!(left_by(&medium, false).is_subset(&expected));
    }
    assert!(most > 15, "{most}");
}

#[test]
fn a_store_is_certain_when_its_own_processor_wrote_it_back_and_fenced() {
    let mut medium = Medium::new(vec![0; 8], false);
    medium.take(&step(1, Event::Store(vec![part(0, 7)])), &mut Choices::default());
    assert_eq!(left_by(&medium, true), [vec![0, 0, 0], vec![7, 0, 0]].into());
    medium.take(&step(1, Event::Fence), &mut Choices::default());
    assert_eq!(left_by(&medium, true).len(), 2, "a fence without a write-back");
    medium.take(&step(1, Event::WriteBack(0, 1)), &mut Choices::default());
    medium.take(&step(2, Event::Fence), &mut Choices::default());
    assert_eq!(left_by(&medium, true).len(), 2, "the fence of another processor");
    medium.take(&step(1, Event::Store(vec![part(1, 8)])), &mut Choices::default());
    medium.take(&step(1, Event::Fence), &mut Choices::default());
    assert_eq!(left_by(&medium, true), [vec![7, 0, 0], vec![7, 8, 0]].into(), "what was stored after the write-back");
    // A line that one store has torn shows only where tears are allowed.
    medium.take(&step(1, Event::Store(vec![part(0, 1), part(1, 2)])), &mut Choices::default());
    let torn: BTreeSet<Vec<u64>> = [vec![1, 8, 0], vec![7, 2, 0]].into();
    assert!(torn.is_subset(&left_by(&medium, true)) && torn.is_disjoint(&left_by(&medium, false)));
}

/// A step that posts a command, on the only page that maps.
fn command(opcode: Opcode, command: Command) -> Step {
    let line = Command { opcode: opcode as u8, pool: 7, thread: 0, ..command }.encode();
    step(0, Event::Command(0, line))
}

const ORDERED: Rules = Rules { host_ordered: true };
const UNORDERED: Rules = Rules { host_ordered: false };

/// Every pair of values of two words that is left when power fails after these steps, on a card
/// with a pool of a few lines.
fn left_on_a_card(rules: Rules, steps: &[Step], words: [usize; 2]) -> BTreeSet<[u64; 2]> {
    const LINES: u64 = 8;
    let map =
        Command { source: POOLS_BASE, destination: LINES * 64, auxiliary: 64, length: 4 * 64, ..Command::default() };
    let mapped = [command(Opcode::Map, map), step(0, Event::Fence)];
    let runs = Choices::all(|choices| {
        let mut medium = Medium::on_card(vec![0; LINES as usize * 8], rules);
        mapped.iter().chain(steps).for_each(|step| medium.take(step, choices));
        medium.crash(choices);
        let mut lines = medium.possible();
        words.map(|word| {
            let Some(line) = lines.get_mut(&(word as u64 / 8)) else { return medium.durable()[word] };
            let values = line.candidates(word % 8, true);
            let value = values[choices.choose(values.len())];
            line.decide(word % 8, value);
            value
        })
    });
    runs.map(|(values, _)| values).collect()
}

#[test]
fn a_command_that_is_not_fenced_is_kept_or_lost_and_meets_what_is_dirty_before_or_after() {
    let commit = command(Opcode::Commit, Command { destination: 8, auxiliary: 5, txid: 1, ..Command::default() });
    let fence = || step(0, Event::Fence);
    assert_eq!(left_on_a_card(ORDERED, std::slice::from_ref(&commit), [0, 1]), [[0, 0], [0, 5]].into());
    assert_eq!(left_on_a_card(ORDERED, &[commit.clone(), fence()], [0, 1]), [[0, 5]].into());
    // The word beside it is dirty: an eviction behind the commit, or a part of one, brings back
    // what was there before.
    let dirty = step(0, Event::Store(vec![part(0, 3)]));
    let left = left_on_a_card(ORDERED, &[dirty.clone(), commit.clone(), fence()], [0, 1]);
    assert_eq!(left, [[0, 0], [0, 5], [3, 0], [3, 5]].into());
    let written_back = [dirty, step(0, Event::WriteBack(0, 1)), fence(), commit, fence()];
    assert_eq!(left_on_a_card(ORDERED, &written_back, [0, 1]), [[3, 5]].into());
}

#[test]
fn a_log_of_a_dirty_word_holds_the_old_or_the_new_value() {
    // Data keeps its place in the line, behind the head of an entry.
    let (source, slot, data) = (0, 64, 64 + 64);
    let log = Command { source, destination: slot, length: 8, txid: 1, ..Command::default() };
    let log = command(Opcode::UndoLog, log);
    let dirty = step(0, Event::Store(vec![part(0, 3)]));
    let left = left_on_a_card(ORDERED, &[dirty.clone(), log.clone(), step(0, Event::Fence)], [0, data / 8]);
    // Once it was evicted for the log it stays there.
    assert_eq!(left, [[0, 0], [3, 0], [3, 3]].into());
    let behind_the_fence = left_on_a_card(ORDERED, &[log, step(0, Event::Fence), dirty], [0, data / 8]);
    assert_eq!(behind_the_fence, [[0, 0], [3, 0]].into());
}

#[test]
fn on_a_card_that_does_not_order_host_accesses_a_store_passes_a_command_that_was_not_waited_for() {
    let (source, slot, data) = (0, 64, 64 + 64);
    let log = Command { source, destination: slot, length: 8, txid: 1, tag: 9, ..Command::default() };
    let fence = || step(0, Event::Fence);
    let ended = |tag| step(0, Event::Ended(0, tag));
    let left = |rules, waits: &[Step]| {
        let logged = [command(Opcode::UndoLog, log), fence()];
        let stored = [step(0, Event::Store(vec![part(0, 3)])), step(0, Event::WriteBack(0, 1)), fence()];
        left_on_a_card(rules, &[&logged[..], waits, &stored].concat(), [0, data / 8])
    };
    assert_eq!(left(ORDERED, &[]), [[3, 0]].into());
    assert_eq!(left(UNORDERED, &[]), [[3, 0], [3, 3]].into());
    assert_eq!(left(UNORDERED, &[ended(Some(8))]), [[3, 0], [3, 3]].into(), "another command has ended");
    assert_eq!(left(UNORDERED, &[ended(Some(9))]), [[3, 0]].into());
    assert_eq!(left(UNORDERED, &[ended(None)]), [[3, 0]].into());
}

#[test]
fn commands_keep_their_order_on_a_card_that_does_not_order_host_accesses() {
    let commit = |value, tag| {
        let commit = Command { destination: 8, auxiliary: value, txid: value, tag, ..Command::default() };
        command(Opcode::Commit, commit)
    };
    let ended = step(0, Event::Ended(0, Some(2)));
    let fence = || step(0, Event::Fence);
    // The second has ended, and so has the first that it waits for: what the host stores then is
    // the last.
    let store = [step(0, Event::Store(vec![part(1, 7)])), step(0, Event::WriteBack(0, 1)), fence()];
    let both = [commit(5, 1), fence(), commit(6, 2), fence()];
    assert_eq!(left_on_a_card(UNORDERED, &both, [0, 1]), [[0, 6]].into());
    assert_eq!(left_on_a_card(UNORDERED, &[&both[..], &[ended], &store].concat(), [0, 1]), [[0, 7]].into());
    assert_eq!(left_on_a_card(UNORDERED, &[&both[..], &store].concat(), [0, 1]), [[0, 6], [0, 7]].into());
}
