//! Memory after a crash: a word is decided when somebody asks for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nearpm::Error;
use nearpm::memory::Memory;

use crate::arena::{Arena, parts};
use crate::card::Watch;
use crate::choices::Choices;
use crate::image::{Image, mix};
use crate::lines::Line;
use crate::trace::{Event, LINE, LINE_WORDS, Step, lines};

/// A word that a crash has left: its index, and the number of the store on its line that left it
/// there.
pub type Kept = (usize, usize);

/// What a recovery meets, and what it does.
#[derive(Default)]
pub struct Run {
    arena: Option<Arena>,
    open: BTreeMap<u64, Line>,
    /// What was decided, to be repeated.
    pub choices: Choices,
    /// Torn lines that are still allowed.
    tears: u32,
    /// Words that were decided to be other than durable.
    pub kept: Vec<Kept>,
    /// Decided words, with their values.
    words: Vec<(usize, u64)>,
    /// How many of them a card was told of.
    told: usize,
    /// What was done since the crash, while it is recorded.
    pub steps: Vec<Step>,
    recording: bool,
    /// Words that nobody decided in the run that led here: of an image that stands for many.
    unknown: Arc<BTreeSet<usize>>,
    /// Those of them that were loaded all the same.
    pub met: Vec<usize>,
}

impl Run {
    fn arena(&self) -> &Arena {
        self.arena.as_ref().expect("the arena is there while the run lasts")
    }

    fn decide(&mut self, number: u64, word: usize) {
        let line = self.open.get_mut(&number).expect("only open lines are decided");
        let values = line.candidates(word, self.tears > 0);
        let value = values[self.choices.choose(values.len())];
        let index = number as usize * LINE_WORDS + word;
        let was_torn = line.is_torn();
        let patch = line.decide(word, value);
        self.tears -= u32::from(line.is_torn() && !was_torn);
        if patch > 0 {
            self.kept.push((index, patch));
        }
        self.words.push((index, value));
        self.arena().set_word(index, value);
    }

    fn decide_line(&mut self, number: u64, words: impl Iterator<Item = usize>) {
        for word in words {
            if self.open[&number].is_open(word) {
                self.decide(number, word);
            }
        }
    }

    /// Decides every word that is open.
    fn decide_all(&mut self) {
        let numbers: Vec<u64> = self.open.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.decide_line(number, 0..LINE_WORDS));
    }

    fn before_load(&mut self, offset: u64, bytes: u64) {
        let (first, end) = lines(offset, bytes);
        if first == end {
            return;
        }
        let (from, to) = (offset as usize / 8, (offset + bytes).div_ceil(8) as usize);
        let numbers: Vec<u64> = self.open.range(first..end).filter(|l| !l.1.is_closed()).map(|l| *l.0).collect();
        for number in numbers {
            let start = number as usize * LINE_WORDS;
            self.decide_line(number, from.max(start) - start..to.min(start + LINE_WORDS) - start);
        }
        let met = |word: &&usize| !self.kept.iter().any(|kept| kept.0 == **word) && !self.has_stored(**word);
        let met: Vec<usize> = self.unknown.range(from..to).filter(met).copied().collect();
        self.met.extend(met);
    }

    /// Whether the run itself has stored to a word.
    fn has_stored(&self, word: usize) -> bool {
        self.steps.iter().any(|step| match &step.event {
            Event::Store(parts) | Event::Stream(parts) => parts.iter().any(|p| p.word == word && p.mask == u64::MAX),
            _ => false,
        })
    }

    fn before_store(&mut self, offset: u64, data: &[u8]) {
        if self.open.is_empty() {
            return;
        }
        for part in parts(offset, data) {
            let (number, word) = ((part.word / LINE_WORDS) as u64, part.word % LINE_WORDS);
            let Some(line) = self.open.get_mut(&number) else { continue };
            if part.mask == u64::MAX {
                line.overwrite(word);
            } else if line.is_open(word) {
                self.decide(number, word);
            }
        }
    }
}

/// Memory that a crash has left. Clones share it.
#[derive(Clone)]
pub struct CrashMemory {
    bytes: u64,
    one_domain: bool,
    run: Arc<Mutex<Run>>,
}

/// How a run begins.
pub struct Start<'a> {
    /// What is certain of the medium.
    pub durable: &'a [u64],
    /// Lines that are not.
    pub open: BTreeMap<u64, Line>,
    /// Decisions that were made in earlier runs.
    pub choices: Choices,
    /// Torn lines that are allowed.
    pub tears: u32,
    /// Words that stand for any value.
    pub unknown: Arc<BTreeSet<usize>>,
    /// A fence is that of all processors.
    pub one_domain: bool,
}

impl CrashMemory {
    /// Begins a run.
    pub fn new(arena: Arena, start: Start<'_>) -> CrashMemory {
        arena.fill(start.durable);
        let Start { open, choices, tears, unknown, one_domain, .. } = start;
        let (bytes, recording) = (arena.bytes(), true);
        let run = Run { arena: Some(arena), open, choices, tears, unknown, recording, ..Run::default() };
        CrashMemory { bytes, one_domain, run: Arc::new(Mutex::new(run)) }
    }

    fn lock(&self) -> MutexGuard<'_, Run> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides everything, or these words alone, before anybody asks.
    pub fn decide(&self, words: Option<&BTreeSet<usize>>) {
        let mut run = self.lock();
        match words {
            None => run.decide_all(),
            Some(words) => words.iter().for_each(|&word| {
                let number = (word / LINE_WORDS) as u64;
                if run.open.contains_key(&number) {
                    run.decide_line(number, std::iter::once(word % LINE_WORDS));
                }
            }),
        }
    }

    /// Puts these words where the crash left them, and everything else as it was durable.
    ///
    /// # Errors
    /// There is no such store.
    pub fn put(&self, kept: &[Kept]) -> Result<(), String> {
        let mut run = self.lock();
        for &(index, patch) in kept {
            let line = run.open.get(&((index / LINE_WORDS) as u64));
            let value = line.and_then(|line| line.value_of(index % LINE_WORDS, patch));
            let value = value.ok_or_else(|| format!("no store {patch} to the word at {:#x}", index * 8))?;
            run.arena().set_word(index, value);
            run.words.push((index, value));
        }
        run.open.clear();
        Ok(())
    }

    /// What the memory holds, as far as it was decided.
    pub fn words(&self) -> Vec<u64> {
        let mut run = self.lock();
        run.told = run.words.len();
        run.arena().image()
    }

    /// What happens from here on is not of the recovery any more.
    pub fn recovered(&self) {
        self.lock().recording = false;
    }

    /// Hash of what the crash left, as far as it was decided.
    pub fn hash(&self, durable: &[u64], durable_hash: u64) -> u64 {
        let change = |&(index, value): &(usize, u64)| mix(index, durable[index]) ^ mix(index, value);
        self.lock().words.iter().map(change).fold(durable_hash, |a, b| a ^ b)
    }

    /// The image that the crash left, with what was not decided as it was durable; and what was
    /// not.
    pub fn image(&self, durable: &Image) -> (Image, BTreeSet<usize>) {
        let run = self.lock();
        let undecided = |(&number, line): (&u64, &Line)| {
            line.undecided().map(|word| number as usize * LINE_WORDS + word).collect::<Vec<_>>()
        };
        let unknown = run.open.iter().flat_map(undecided).chain(run.unknown.iter().copied()).collect();
        (durable.with(&run.words), unknown)
    }

    /// Ends the run. Pools that use the memory are closed by then.
    pub fn end(self) -> (Run, Arena) {
        let mut run = std::mem::take(&mut *self.lock());
        let arena = run.arena.take().expect("a run ends once");
        (run, arena)
    }
}

impl Memory for CrashMemory {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn load(&self, offset: u64, data: &mut [u8]) {
        let mut run = self.lock();
        run.before_load(offset, data.len() as u64);
        run.arena().load(offset, data);
    }
    fn store(&self, offset: u64, data: &[u8]) {
        self.lock().put(offset, data, Event::Store);
    }
    fn stream(&self, offset: u64, lines: &[u8]) {
        self.lock().put(offset, lines, Event::Stream);
    }
    fn write_back(&self, offset: u64, bytes: u64) {
        let (first, end) = lines(offset, bytes);
        self.lock().note(|| Event::WriteBack(first, end));
    }
    fn fence(&self) -> Result<(), Error> {
        self.lock().note(|| Event::Fence);
        Ok(())
    }
    fn drains_for_all(&self) -> bool {
        self.one_domain
    }
    /// As in a recording: nothing to drop.
    fn invalidate(&self, _offset: u64, _bytes: u64) {}
    /// Whoever has the address may load anything.
    fn address(&self) -> Option<*mut u8> {
        let mut run = self.lock();
        run.before_load(0, self.bytes / LINE * LINE);
        Some(run.arena().address())
    }
}

impl Watch for CrashMemory {
    fn command(&self, page: usize, line: &[u8; LINE as usize]) {
        self.lock().note(|| Event::Command(page, *line));
    }
    fn push(&self) {
        self.lock().note(|| Event::Push);
    }
    fn ended(&self, page: usize, tag: Option<u32>) {
        self.lock().note(|| Event::Ended(page, tag));
    }
    fn take_decided(&self) -> Vec<(usize, u64)> {
        let mut run = self.lock();
        let decided = run.words[run.told..].to_vec();
        run.told = run.words.len();
        decided
    }
}

impl Run {
    fn note(&mut self, event: impl FnOnce() -> Event) {
        if self.recording {
            self.steps.push(Step { processor: 0, event: event() });
        }
    }

    fn put(&mut self, offset: u64, data: &[u8], event: fn(Vec<crate::arena::Part>) -> Event) {
        self.before_store(offset, data);
        self.note(|| event(parts(offset, data).collect()));
        self.arena().store(offset, data);
    }
}
