//! Cache lines on their way to the medium: what a crash may leave of each.
//!
//! **Fault model.** A store goes to a cache line, at a granularity of aligned words of 8 bytes, and
//! a line may be evicted at any time. Stores through the cache to one line persist in their order:
//! when a word of one is there, so is all of those before it. The words of one store call have no
//! order among themselves, as it may be made of several instructions. Words that are stored around
//! the cache persist in any order; only those to the same word keep theirs. A fence makes certain
//! what its processor wrote back, or stored around the cache, before. Nothing else is certain. On a
//! card commands arrive between stores, and write behind the cache ([`crate::commands`]).
//!
//! So the states of a line are these: some number `p` of stores through the cache is whole, and
//! then each word by itself holds what the last of them left there, or what the store after them or
//! a store around the cache left there later. Given `p`, words are independent of each other: that
//! is what makes it exact to decide them one at a time ([`Line::candidates`]).

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use crate::arena::Part;
use crate::card::Rules;
use crate::choices::Choices;
use crate::commands::{Commands, Words};
use crate::image::{hash, mix};
use crate::trace::{Event, LINE_WORDS, Step, Trace};

/// A store, as far as it goes to one line.
#[derive(Clone, Debug, Hash)]
struct Patch {
    parts: Vec<Part>,
    streamed: bool,
}

#[derive(Clone, Debug, Default, Hash)]
struct OpenLine {
    patches: Vec<Patch>,
    /// How many of them each processor has written back.
    pending: Vec<(u32, usize)>,
}

/// The medium, and the lines of which it is not known what it holds.
#[derive(Clone)]
pub struct Medium {
    certain: Certain,
    lines: BTreeMap<u64, OpenLine>,
    one_domain: bool,
    /// Where it is a card's.
    commands: Option<Commands>,
}

impl Trace {
    /// The medium with these words, and nothing on the way to it.
    pub fn after_power_up(&self, words: Vec<u64>) -> Medium {
        match self.card {
            Some(rules) => Medium::on_card(words, rules),
            None => Medium::new(words, self.one_domain),
        }
    }
}

/// What is certain of a medium.
#[derive(Clone)]
struct Certain {
    words: Vec<u64>,
    hash: u64,
}

impl Certain {
    fn set(&mut self, word: usize, value: u64) {
        self.hash ^= mix(word, self.words[word]) ^ mix(word, value);
        self.words[word] = value;
    }

    fn put(&mut self, part: &Part) {
        self.set(part.word, self.words[part.word] & !part.mask | part.value);
    }

    fn line(&self, number: u64) -> &[u64] {
        &self.words[number as usize * LINE_WORDS..][..LINE_WORDS]
    }
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
    /// The stores that left there what was decided, 0 where nothing was or it is the durable value.
    arrived: [usize; LINE_WORDS],
}

impl Medium {
    /// A medium that holds an image, with nothing in the caches.
    pub fn new(durable: Vec<u64>, one_domain: bool) -> Medium {
        let certain = Certain { hash: hash(&durable), words: durable };
        Medium { certain, lines: BTreeMap::new(), one_domain, commands: None }
    }

    /// The medium of a card that was powered up.
    pub fn on_card(durable: Vec<u64>, rules: Rules) -> Medium {
        Medium { commands: Some(Commands::after_power_up(rules)), ..Medium::new(durable, false) }
    }

    /// What is certain.
    pub fn durable(&self) -> &[u64] {
        &self.certain.words
    }

    /// Hash of that.
    pub fn hash(&self) -> u64 {
        self.certain.hash
    }

    /// Hash of all of it, what is on the way included. Of commands that were carried out the tables
    /// count that they have left.
    pub fn identity(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.hash(), &self.lines, self.commands.as_ref().map(Commands::identity)).hash(&mut hasher);
        hasher.finish()
    }

    /// Whether a crash may find commands that it can keep or lose, or that are not carried out.
    pub fn has_commands(&self) -> bool {
        self.commands.as_ref().is_some_and(|commands| commands.are_posted() || commands.are_accepted())
    }

    /// Whether a step may have to be decided about. Whatever else the host does has nothing to do
    /// with commands.
    pub fn is_decided_by(&self, step: &Step) -> bool {
        let Some(commands) = &self.commands else { return false };
        match step.event {
            Event::Fence => commands.are_posted() || commands.are_accepted(),
            Event::Store(_) | Event::Stream(_) | Event::Ended(..) => commands.are_accepted(),
            Event::WriteBack(..) | Event::Command(..) | Event::Push => false,
        }
    }

    fn fenced(&self, step: &Step, processor: u32) -> bool {
        self.one_domain || step.processor == processor
    }

    /// Whether fewer states are possible after a step than before it. After all others there are as
    /// many, or more.
    pub fn is_narrowed_by(&self, step: &Step) -> bool {
        let is_pending = |line: &OpenLine| line.pending.iter().any(|p| self.fenced(step, p.0));
        let are_posted = self.commands.as_ref().is_some_and(Commands::are_posted);
        step.event == Event::Fence && (are_posted || self.lines.values().any(is_pending))
    }

    /// Takes a step. Where commands arrive, or meet what the host stores, it may have to be decided
    /// in which order they do, and what they find.
    pub fn take(&mut self, step: &Step, choices: &mut Choices) {
        match &step.event {
            Event::Store(parts) => self.store(parts, None, choices),
            Event::Stream(parts) => self.store(parts, Some(step.processor), choices),
            Event::WriteBack(first, end) => {
                for (_, line) in self.lines.range_mut(first..end) {
                    line.pending.push((step.processor, line.patches.len()));
                }
            }
            Event::Command(page, line) => {
                self.commands.as_mut().expect("commands are posted to a card").post(*page, line);
            }
            // What it makes certain is a matter of when: see `Trace::allowed`.
            Event::Push => {}
            Event::Ended(page, tag) => {
                self.with_commands(|commands, medium| commands.end(*page, *tag, medium, choices));
            }
            Event::Fence => {
                self.with_commands(|commands, medium| commands.arrive(false, medium, choices));
                let fenced = |line: &OpenLine| line.pending.iter().any(|p| self.fenced(step, p.0));
                let lines = self.lines.iter().filter(|line| fenced(line.1)).map(|line| *line.0).collect();
                self.meet_commands(&lines, choices);
                self.fence(step);
            }
        }
    }

    /// Power fails: of the commands that were not fenced any may have arrived, and what has is
    /// carried out.
    pub fn crash(&mut self, choices: &mut Choices) {
        self.with_commands(|commands, medium| commands.arrive(true, medium, choices));
    }

    fn with_commands(&mut self, run: impl FnOnce(&mut Commands, &mut Medium)) {
        let Some(mut commands) = self.commands.take() else { return };
        run(&mut commands, self);
        self.commands = Some(commands);
    }

    /// Lines are about to change: commands that have arrived may find them as they are.
    fn meet_commands(&mut self, lines: &BTreeSet<u64>, choices: &mut Choices) {
        self.with_commands(|commands, medium| commands.meet(lines, medium, choices));
    }

    fn store(&mut self, parts: &[Part], streamed_by: Option<u32>, choices: &mut Choices) {
        self.meet_commands(&parts.iter().map(|part| (part.word / LINE_WORDS) as u64).collect(), choices);
        for parts in parts.chunk_by(|a, b| a.word / LINE_WORDS == b.word / LINE_WORDS) {
            let line = self.lines.entry((parts[0].word / LINE_WORDS) as u64).or_default();
            line.patches.push(Patch { parts: parts.to_vec(), streamed: streamed_by.is_some() });
            line.pending.extend(streamed_by.map(|processor| (processor, line.patches.len())));
        }
    }

    fn fence(&mut self, step: &Step) {
        let one_domain = self.one_domain;
        let durable = &mut self.certain;
        self.lines.retain(|_, line| {
            let fenced = |p: &&(u32, usize)| one_domain || p.0 == step.processor;
            let certain = line.pending.iter().filter(fenced).map(|p| p.1).max().unwrap_or(0);
            for part in line.patches.drain(..certain).flat_map(|patch| patch.parts) {
                durable.put(&part);
            }
            line.pending = line.pending.iter().map(|&(by, n)| (by, n.saturating_sub(certain))).collect();
            line.pending.retain(|p| p.1 > 0);
            !line.patches.is_empty()
        });
    }

    /// The lines of which a crash now may leave more than one state, by number.
    pub fn possible(&self) -> BTreeMap<u64, Line> {
        let line = |(&number, open): (&u64, &OpenLine)| {
            let line = Line::new(Possible::of(self.certain.line(number), &open.patches));
            (!line.is_closed()).then_some((number, line))
        };
        self.lines.iter().filter_map(line).collect()
    }
}

impl Words for Medium {
    fn settle(&mut self, words: Range<usize>, choices: &mut Choices) {
        for number in (words.start / LINE_WORDS) as u64..words.end.div_ceil(LINE_WORDS) as u64 {
            let Some(open) = self.lines.get_mut(&number) else { continue };
            let mut line = Line::new(Possible::of(self.certain.line(number), &open.patches));
            let first = number as usize * LINE_WORDS;
            for word in words.start.max(first)..words.end.min(first + LINE_WORDS) {
                if line.is_open(word - first) {
                    let values = line.candidates(word - first, true);
                    line.decide(word - first, values[choices.choose(values.len())]);
                }
            }
            open.arrive(&line, &mut self.certain);
            let decided = (first..).zip(line.decided).filter_map(|(word, value)| Some((word, value?)));
            decided.for_each(|(word, value)| self.certain.set(word, value));
        }
    }

    fn word(&self, word: usize) -> u64 {
        self.certain.words[word]
    }

    fn write(&mut self, word: usize, value: u64) {
        if let Some(open) = self.lines.get_mut(&((word / LINE_WORDS) as u64)) {
            open.keep_old(word, self.certain.words[word]);
        }
        self.certain.set(word, value);
    }
}

impl OpenLine {
    /// Moves to the medium what has arrived of words that were not decided, and forgets what has
    /// arrived, by what was decided of the line. The numbers of the stores stay.
    fn arrive(&mut self, line: &Line, medium: &mut Certain) {
        let whole = line.least_whole();
        let mut arrived = line.arrived;
        let through_the_cache = self.patches.iter().enumerate().filter(|(_, patch)| !patch.streamed);
        for (number, patch) in through_the_cache.take(whole) {
            for part in &patch.parts {
                arrived[part.word % LINE_WORDS] = arrived[part.word % LINE_WORDS].max(number + 1);
                medium.put(part);
            }
        }
        for (number, patch) in self.patches.iter_mut().enumerate() {
            let parts = std::mem::take(&mut patch.parts).into_iter();
            patch.parts = parts.filter(|part| arrived[part.word % LINE_WORDS] <= number).collect();
        }
    }

    /// The card has written a word behind the processor's cache, where the line is dirty: when it
    /// is evicted, it brings the old value back.
    fn keep_old(&mut self, word: usize, mut old: u64) {
        for patch in self.patches.iter_mut().filter(|patch| !patch.streamed && !patch.parts.is_empty()) {
            let stored = patch.parts.iter().position(|part| part.word == word).map(|at| patch.parts.swap_remove(at));
            old = stored.map_or(old, |part| old & !part.mask | part.value);
            patch.parts.push(Part { word, mask: u64::MAX, value: old });
        }
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

    /// The values of a word when the first `whole` stores through the cache are there, and none but
    /// the next.
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
    fn new(possible: Possible) -> Line {
        let (decided, arrived) = ([None; LINE_WORDS], [0; LINE_WORDS]);
        Line { possible: Arc::new(possible), decided, overwritten: 0, torn: false, arrived }
    }

    /// How many stores through the cache are there at least, by what was decided.
    fn least_whole(&self) -> usize {
        let mut ranks = 0..=self.possible.ranks;
        ranks.find(|&whole| self.may_be(whole)).expect("what was decided is possible")
    }

    /// Whether this many stores through the cache may be there, and no more that is whole, by what
    /// was decided.
    fn may_be(&self, whole: usize) -> bool {
        let has = |word: usize| {
            self.decided[word].is_none_or(|v| self.possible.window(word, whole).iter().any(|link| link.value == v))
        };
        (0..LINE_WORDS).all(has)
    }

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

    /// The values that a word may have, given those that were decided; the durable one first where
    /// it is one of them.
    pub fn candidates(&self, word: usize, may_tear: bool) -> Vec<u64> {
        let mut values = Vec::new();
        for whole in (0..=self.possible.ranks).filter(|&whole| self.may_be(whole)) {
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
        self.arrived[word] =
            chain.iter().find(|link| link.value == value).expect("the value is one of the word's").patch;
        self.arrived[word]
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
