//! Cache lines on their way to the medium: what a crash may leave of each.
//!
//! **Fault model.** A store goes to a cache line, at a granularity of aligned words of 8 bytes, and a line may be evicted at any time. Stores
//! through the cache to one line persist in their order: when a word of one is there, so is all of those before it. The words of one store
//! call have no order among themselves, as it may be made of several instructions. Words that are stored around the cache persist
//! in any order; only those to the same word keep theirs. A fence makes certain what its processor wrote back, or stored around
//! the cache, before. Nothing else is certain.
//!
//! So the states of a line are these: some number `p` of stores through the cache is whole, and then each word by itself holds what the last
//! of them left there, or what the store after them or a store around the cache left there later. Given `p`, words are independent of each other: that
//! is what makes it exact to decide them one at a time ([`Line::candidates`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::arena::Part;
use crate::image::{hash, mix};
use crate::trace::{Event, LINE_WORDS, Step};

/// A store, as far as it goes to one line.
#[derive(Clone, Debug)]
struct Patch {
    parts: Vec<Part>,
    streamed: bool,
}

#[derive(Clone, Debug, Default)]
struct OpenLine {
    patches: Vec<Patch>,
    /// How many of them each processor has written back.
    pending: Vec<(u32, usize)>,
}

/// The medium, and the lines of which it is not known what it holds.
#[derive(Clone)]
pub struct Medium {
    durable: Vec<u64>,
    /// Of what is durable.
    hash: u64,
    lines: BTreeMap<u64, OpenLine>,
    one_domain: bool,
}

/// A value that a word may have, and who stored it.
#[derive(Clone, Copy, Debug)]
struct Link {
    value: u64,
    /// Number of the store on this line, from 1; 0 for what is durable.
    patch: usize,
    /// Its number among the stores through the cache, from 0.
    rank: Option<usize>,
}

/// Everything that a line may hold.
#[derive(Debug)]
pub struct Possible {
    /// The values of each word, the durable one first.
    chains: [Vec<Link>; LINE_WORDS],
    /// Stores through the cache.
    ranks: usize,
    patches: usize,
}

/// What is known of a line that a crash has left.
#[derive(Clone, Debug)]
pub struct Line {
    possible: Arc<Possible>,
    decided: [Option<u64>; LINE_WORDS],
    /// Words that were stored to since.
    overwritten: u8,
    torn: bool,
}

impl Medium {
    /// A medium that holds an image, with nothing in the caches.
    pub fn new(durable: Vec<u64>, one_domain: bool) -> Medium {
        Medium { hash: hash(&durable), durable, lines: BTreeMap::new(), one_domain }
    }

    /// What is certain.
    pub fn durable(&self) -> &[u64] {
        &self.durable
    }

    /// Hash of that.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    fn fenced(&self, step: &Step, processor: u32) -> bool {
        self.one_domain || step.processor == processor
    }

    /// Whether fewer states are possible after a step than before it. After all others there are as many, or more.
    pub fn is_narrowed_by(&self, step: &Step) -> bool {
        step.event == Event::Fence && self.lines.values().any(|l| l.pending.iter().any(|p| self.fenced(step, p.0)))
    }

    /// Takes a step.
    pub fn take(&mut self, step: &Step) {
        match &step.event {
            Event::Store(parts) => self.store(parts, None),
            Event::Stream(parts) => self.store(parts, Some(step.processor)),
            Event::WriteBack(first, end) => {
                for (_, line) in self.lines.range_mut(first..end) {
                    line.pending.push((step.processor, line.patches.len()));
                }
            }
            Event::Fence => self.fence(step),
        }
    }

    fn store(&mut self, parts: &[Part], streamed_by: Option<u32>) {
        for parts in parts.chunk_by(|a, b| a.word / LINE_WORDS == b.word / LINE_WORDS) {
            let line = self.lines.entry((parts[0].word / LINE_WORDS) as u64).or_default();
            line.patches.push(Patch { parts: parts.to_vec(), streamed: streamed_by.is_some() });
            line.pending.extend(streamed_by.map(|processor| (processor, line.patches.len())));
        }
    }

    fn fence(&mut self, step: &Step) {
        let one_domain = self.one_domain;
        let (durable, hash) = (&mut self.durable, &mut self.hash);
        self.lines.retain(|_, line| {
            let fenced = |p: &&(u32, usize)| one_domain || p.0 == step.processor;
            let certain = line.pending.iter().filter(fenced).map(|p| p.1).max().unwrap_or(0);
            for part in line.patches.drain(..certain).flat_map(|patch| patch.parts) {
                let old = durable[part.word];
                durable[part.word] = old & !part.mask | part.value;
                *hash ^= mix(part.word, old) ^ mix(part.word, durable[part.word]);
            }
            line.pending = line.pending.iter().map(|&(by, n)| (by, n.saturating_sub(certain))).collect();
            line.pending.retain(|p| p.1 > 0);
            !line.patches.is_empty()
        });
    }

    /// The lines of which a crash now may leave more than one state, by number.
    pub fn possible(&self) -> BTreeMap<u64, Line> {
        let line = |(&number, line): (&u64, &OpenLine)| {
            let possible = Possible::of(&self.durable[number as usize * LINE_WORDS..][..LINE_WORDS], &line.patches);
            let open = (0..LINE_WORDS).any(|word| possible.is_open(word));
            let decided = [None; LINE_WORDS];
            open.then(|| (number, Line { possible: Arc::new(possible), decided, overwritten: 0, torn: false }))
        };
        self.lines.iter().filter_map(line).collect()
    }
}

impl Possible {
    fn of(durable: &[u64], patches: &[Patch]) -> Possible {
        let mut chains: [Vec<Link>; LINE_WORDS] =
            std::array::from_fn(|word| vec![Link { value: durable[word], patch: 0, rank: None }]);
        let mut ranks = 0;
        for (number, patch) in patches.iter().enumerate() {
            let rank = (!patch.streamed).then_some(ranks);
            ranks += usize::from(!patch.streamed);
            for part in &patch.parts {
                let chain = &mut chains[part.word % LINE_WORDS];
                let value = chain[chain.len() - 1].value & !part.mask | part.value;
                chain.push(Link { value, patch: number + 1, rank });
            }
        }
        Possible { chains, ranks, patches: patches.len() }
    }

    /// Whether a word may have more than one value.
    fn is_open(&self, word: usize) -> bool {
        self.chains[word].iter().any(|link| link.value != self.chains[word][0].value)
    }

    /// The values of a word when the first `whole` stores through the cache are there, and none but the next.
    fn window(&self, word: usize, whole: usize) -> &[Link] {
        let chain = &self.chains[word];
        let low = chain.iter().rposition(|link| link.rank.is_some_and(|rank| rank < whole)).unwrap_or(0);
        let more = chain[low + 1..].iter().take_while(|link| link.rank.is_none_or(|rank| rank == whole)).count();
        &chain[low..=low + more]
    }

    /// The value of a word when exactly the first stores are there.
    fn prefix(&self, word: usize, patches: usize) -> u64 {
        let chain = &self.chains[word];
        chain.iter().rev().find(|link| link.patch <= patches).expect("the durable value is in front").value
    }

    /// Whether a line may hold these words without a store that is half there.
    fn is_whole(&self, decided: &[Option<u64>; LINE_WORDS]) -> bool {
        let holds = |patches| (0..LINE_WORDS).all(|w| decided[w].is_none_or(|v| v == self.prefix(w, patches)));
        (0..=self.patches).any(holds)
    }
}

impl Line {
    /// Whether somebody who loads the word has to decide what it holds.
    pub fn is_open(&self, word: usize) -> bool {
        self.overwritten >> word & 1 == 0 && self.decided[word].is_none() && self.possible.is_open(word)
    }

    /// Whether no word is left to be decided.
    pub fn is_closed(&self) -> bool {
        (0..LINE_WORDS).all(|word| !self.is_open(word))
    }

    /// Words that are left undecided, stored to since or not.
    pub fn undecided(&self) -> impl Iterator<Item = usize> {
        (0..LINE_WORDS).filter(|&word| self.decided[word].is_none() && self.possible.is_open(word))
    }

    /// Whether a store that is half there shows in what was decided.
    pub fn is_torn(&self) -> bool {
        self.torn
    }

    /// The values that a word may have, given those that were decided; the durable one first where it is one of them.
    pub fn candidates(&self, word: usize, may_tear: bool) -> Vec<u64> {
        let has = |w: usize, whole| {
            self.decided[w].is_none_or(|v| self.possible.window(w, whole).iter().any(|link| link.value == v))
        };
        let mut values = Vec::new();
        for whole in (0..=self.possible.ranks).filter(|&whole| (0..LINE_WORDS).all(|w| has(w, whole))) {
            for link in self.possible.window(word, whole) {
                if !values.contains(&link.value) {
                    values.push(link.value);
                }
            }
        }
        if !may_tear && !self.torn {
            values.retain(|&value| self.possible.is_whole(&self.with(word, value)));
        }
        values
    }

    fn with(&self, word: usize, value: u64) -> [Option<u64>; LINE_WORDS] {
        let mut decided = self.decided;
        decided[word] = Some(value);
        decided
    }

    /// Decides a word; gives the number of the store that left it there, 0 for what was durable.
    pub fn decide(&mut self, word: usize, value: u64) -> usize {
        self.decided = self.with(word, value);
        self.torn = self.torn || !self.possible.is_whole(&self.decided);
        let chain = &self.possible.chains[word];
        chain.iter().find(|link| link.value == value).expect("the value is one of the word's").patch
    }

    /// The value that a store has left in a word.
    pub fn value_of(&self, word: usize, patch: usize) -> Option<u64> {
        self.possible.chains[word].iter().find(|link| link.patch == patch).map(|link| link.value)
    }

    /// A store that covers the word: what the crash left there is not asked for any more.
    pub fn overwrite(&mut self, word: usize) {
        self.overwritten |= 1 << word;
    }
}
