//! What a crash may leave of a line, against the definition: every set of words that the order of stores allows.

use std::collections::BTreeSet;

use nearpm_explorer::arena::Part;
use nearpm_explorer::choices::Choices;
use nearpm_explorer::lines::{Line, Medium};
use nearpm_explorer::program::Random;
use nearpm_explorer::trace::{Event, Step};

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
