//! What a program did to persistent memory, event by event.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nearpm::Error;
use nearpm::memory::Memory;
use nearpm_driver::mock::MockCard;

use crate::arena::{Arena, Part, parts};
use crate::card::{Rules, Watch};
use crate::schedule::{Scheduler, processor};

/// Words of a cache line.
pub const LINE_WORDS: usize = 8;
/// Bytes of a cache line.
pub const LINE: u64 = 64;

/// An access that decides what survives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A store through the cache.
    Store(Vec<Part>),
    /// Whole lines that are stored around the cache; their write-back has begun.
    Stream(Vec<Part>),
    /// The write-back of lines begins: from the first number up to the second.
    WriteBack(u64, u64),
    /// What the processor wrote back before is durable. On the way to a card: it is in the link,
    /// ahead of everything later.
    Fence,
    /// A command is posted on a page of a card.
    Command(usize, [u8; LINE as usize]),
    /// Something is read that a card answers behind everything that was fenced before.
    Push,
    /// The host has seen that the command of this tag has ended, or all that were posted on a page
    /// before.
    Ended(usize, Option<u32>),
}

impl Event {
    /// Whether the library asks for it, so that it could have forgotten it.
    pub fn is_asked_for(&self) -> bool {
        !matches!(self, Event::Store(_) | Event::Stream(_))
    }
}

/// An event and the processor that it is of.
#[derive(Clone, Debug)]
pub struct Step {
    /// Number of the processor.
    pub processor: u32,
    /// What it did.
    pub event: Event,
}

/// A step without values: its processor, the number of its kind, and where it is.
pub type Shape = (u32, u8, Vec<usize>);

/// For each thread the first and the last of its states that a crash may leave.
pub type Bounds = Vec<(usize, usize)>;

/// A recorded program.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Everything since the memory was blank.
    pub steps: Vec<Step>,
    /// From a step on, what a crash may leave. The first says where crashes begin.
    pub bounds: Vec<(usize, Bounds)>,
    /// A fence is that of all processors.
    pub one_domain: bool,
    /// The memory is a card's.
    pub card: Option<Rules>,
}

impl Trace {
    /// What is stored, word by word, in the order of the [shape](Trace::shape).
    fn values(&self) -> Vec<u64> {
        let words = |step: &Step| match &step.event {
            Event::Store(parts) | Event::Stream(parts) => parts.iter().map(|part| part.value).collect(),
            Event::Command(_, bytes) => {
                bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight"))).collect()
            }
            _ => Vec::new(),
        };
        self.steps.iter().flat_map(words).collect()
    }

    /// What it does and where, without [values](Done::is_repeated_by).
    pub fn shape(&self) -> (Vec<Shape>, &[(usize, Bounds)]) {
        let words = |parts: &[Part]| parts.iter().flat_map(|part| [part.word, part.mask as usize]).collect();
        let shape = |step: &Step| {
            let (kind, places) = match &step.event {
                Event::Store(parts) => (0, words(parts)),
                Event::Stream(parts) => (1, words(parts)),
                Event::WriteBack(first, end) => (2, vec![*first as usize, *end as usize]),
                Event::Fence => (3, Vec::new()),
                Event::Command(page, _) => (4, vec![*page]),
                Event::Push => (5, Vec::new()),
                Event::Ended(page, _) => (6, vec![*page]),
            };
            (step.processor, kind, places)
        };
        (self.steps.iter().map(shape).collect(), &self.bounds)
    }

    /// What a crash may leave that finds the medium as it is before a step. `None` before crashes
    /// begin.
    ///
    /// Behind a link the medium may be as it was at an earlier moment of the host: fences order
    /// what is in the link, and only a push waits for it. So what a crash leaves at some fence, one
    /// leaves at any later moment up to the next push, too. What is acknowledged until then must be
    /// there.
    pub fn allowed(&self, step: usize) -> Option<Bounds> {
        let mut bounds = self.bounds.iter().rev().find(|change| change.0 < step)?.1.clone();
        if self.card.is_some() {
            let push = self.steps.iter().skip(step).position(|step| step.event == Event::Push);
            let end = push.map_or(self.steps.len(), |after| step + after);
            for (_, later) in self.bounds.iter().filter(|change| (step..=end).contains(&change.0)) {
                bounds.iter_mut().zip(later).for_each(|(bounds, later)| bounds.0 = bounds.0.max(later.0));
            }
        }
        Some(bounds)
    }
}

/// What a program did by a schedule, to be compared with what it does by others.
pub struct Done {
    trace: Trace,
    /// The words that are stored; `None` where two runs by the one schedule stored different ones:
    /// numbers that are drawn anew in each run, such as the nonce of a piece of the log and the
    /// checksums over it, and that of the thread.
    values: Vec<Option<u64>>,
}

impl Done {
    /// Of a run by a schedule, and what the same program did by the same schedule once more. Where
    /// that has another shape no word is known to be drawn.
    pub fn new(trace: Trace, again: &Trace) -> Done {
        let values = trace.values().into_iter().map(Some);
        let values = match trace.shape() == again.shape() {
            true => values.zip(again.values()).map(|(value, again)| value.filter(|value| *value == again)).collect(),
            false => values.collect(),
        };
        Done { trace, values }
    }

    /// Whether another run did the same: each step in the same place, with the same values but for
    /// those that are drawn.
    pub fn is_repeated_by(&self, other: &Trace) -> bool {
        let same = |(known, value): (&Option<u64>, u64)| known.is_none_or(|known| known == value);
        self.trace.shape() == other.shape() && self.values.iter().zip(other.values()).all(same)
    }
}

/// Lines that a range touches: from the first up to the second.
pub fn lines(offset: u64, bytes: u64) -> (u64, u64) {
    if bytes == 0 { (0, 0) } else { (offset / LINE, (offset + bytes).div_ceil(LINE)) }
}

/// Memory that writes down what is done to it. Clones share it.
#[derive(Clone)]
pub struct Recorder {
    arena: Arc<Arena>,
    /// Bytes that are in use of it.
    bytes: Arc<AtomicU64>,
    state: Arc<Mutex<Recording>>,
    scheduler: Option<Arc<Scheduler>>,
    card: Option<MockCard>,
}

#[derive(Default)]
struct Recording {
    trace: Trace,
    /// What the memory held at the last event, from when its address was given out: stores come
    /// unseen.
    shadow: Option<Vec<u64>>,
}

impl Recording {
    fn push(&mut self, event: Event) {
        self.trace.steps.push(Step { processor: processor(), event });
    }

    /// Finds what was stored through the address. The order of stores to one line between two
    /// events is not known, so that each line counts as one store, which may be torn anyhow.
    fn find_unseen(&mut self, arena: &Arena) {
        let Some(shadow) = &mut self.shadow else { return };
        let mut found: Vec<Vec<Part>> = Vec::new();
        let mut last = usize::MAX;
        for (word, old) in shadow.iter_mut().enumerate() {
            let value = arena.word(word);
            if value != *old {
                if word / LINE_WORDS != last {
                    last = word / LINE_WORDS;
                    found.push(Vec::new());
                }
                *old = value;
                found.last_mut().expect("one was pushed").push(Part { word, mask: u64::MAX, value });
            }
        }
        found.into_iter().for_each(|parts| self.push(Event::Store(parts)));
    }

    fn note(&mut self, parts: &[Part], arena: &Arena) {
        if let Some(shadow) = &mut self.shadow {
            parts.iter().for_each(|part| shadow[part.word] = arena.word(part.word));
        }
    }
}

impl Recorder {
    /// Blank memory of so many bytes, whole lines.
    pub fn new(bytes: u64) -> Recorder {
        assert_eq!(bytes % LINE, 0, "memory is whole lines");
        let (arena, bytes) = (Arc::new(Arena::new(bytes as usize / 8)), Arc::new(bytes.into()));
        Recorder { arena, bytes, state: Arc::default(), scheduler: None, card: None }
    }

    /// Shows the first of its bytes alone, until [`Recorder::lengthen`].
    pub fn beginning(self, bytes: u64) -> Recorder {
        self.bytes.store(bytes, Ordering::Relaxed);
        self
    }

    /// Shows all of them; what comes is not blank.
    ///
    /// # Errors
    /// As [`Memory::fence`].
    pub fn lengthen(&self) -> Result<(), Error> {
        let (start, end) = (self.bytes(), self.arena.bytes());
        self.bytes.store(end, Ordering::Relaxed);
        self.store(start, &vec![0xa5; (end - start) as usize]);
        self.write_back(start, end - start);
        self.fence()
    }

    /// Makes a fence that of all processors, as `msync` is.
    pub fn one_domain(self) -> Recorder {
        self.lock().trace.one_domain = true;
        self
    }

    /// Its memory is that of this card.
    pub fn on_card(self, card: MockCard, rules: Rules) -> Recorder {
        self.lock().trace.card = Some(rules);
        Recorder { card: Some(card), ..self }
    }

    /// The card, and what it promises.
    pub fn card(&self) -> Option<(MockCard, Rules)> {
        self.card.clone().zip(self.lock().trace.card)
    }

    /// Asks who goes on at each event.
    pub fn scheduled(self, scheduler: Arc<Scheduler>) -> Recorder {
        Recorder { scheduler: Some(scheduler), ..self }
    }

    /// From now on a crash may leave these states.
    pub fn allow(&self, bounds: Bounds) {
        let mut state = self.lock();
        state.find_unseen(&self.arena);
        let at = state.trace.steps.len();
        state.trace.bounds.push((at, bounds));
    }

    /// What was recorded.
    pub fn trace(&self) -> Trace {
        let mut state = self.lock();
        state.find_unseen(&self.arena);
        state.trace.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Recording> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the scheduler decide who goes on, then finds what was stored unseen.
    fn event(&self) -> MutexGuard<'_, Recording> {
        if let Some(scheduler) = &self.scheduler {
            scheduler.event();
        }
        let mut state = self.lock();
        state.find_unseen(&self.arena);
        state
    }

    fn put(&self, offset: u64, data: &[u8], event: fn(Vec<Part>) -> Event) {
        let mut state = self.event();
        let parts: Vec<Part> = parts(offset, data).collect();
        self.arena.store(offset, data);
        state.note(&parts, &self.arena);
        state.push(event(parts));
    }
}

impl Memory for Recorder {
    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
    fn load(&self, offset: u64, data: &mut [u8]) {
        self.arena.load(offset, data);
    }
    fn store(&self, offset: u64, data: &[u8]) {
        self.put(offset, data, Event::Store);
    }
    fn stream(&self, offset: u64, lines: &[u8]) {
        self.put(offset, lines, Event::Stream);
    }
    fn write_back(&self, offset: u64, bytes: u64) {
        let (first, end) = lines(offset, bytes);
        self.event().push(Event::WriteBack(first, end));
    }
    fn fence(&self) -> Result<(), Error> {
        self.event().push(Event::Fence);
        Ok(())
    }
    fn drains_for_all(&self) -> bool {
        self.lock().trace.one_domain
    }
    /// The processor's caches are coherent with memory: there is nothing to drop.
    fn invalidate(&self, _offset: u64, _bytes: u64) {}
    fn address(&self) -> Option<*mut u8> {
        self.lock().shadow = Some(self.arena.image());
        Some(self.arena.address())
    }
}

impl Watch for Recorder {
    fn command(&self, page: usize, line: &[u8; LINE as usize]) {
        self.event().push(Event::Command(page, *line));
    }
    fn push(&self) {
        self.event().push(Event::Push);
    }
    fn ended(&self, page: usize, tag: Option<u32>) {
        self.event().push(Event::Ended(page, tag));
    }
    /// Nothing is open.
    fn take_decided(&self) -> Vec<(usize, u64)> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that stores three words: the second is drawn anew in each run.
    fn run(place: usize, values: [u64; 3]) -> Trace {
        let part = |(at, value)| Part { word: place + at, mask: u64::MAX, value };
        let store = |part| Step { processor: 1, event: Event::Store(vec![part]) };
        Trace { steps: values.into_iter().enumerate().map(part).map(store).collect(), ..Trace::default() }
    }

    #[test]
    fn another_value_is_another_run_unless_it_is_drawn_anew() {
        let done = Done::new(run(0, [1, 70, 3]), &run(0, [1, 71, 3]));
        assert!(done.is_repeated_by(&run(0, [1, 72, 3])));
        assert!(!done.is_repeated_by(&run(0, [1, 72, 4])), "a value that is the program's");
        assert!(!done.is_repeated_by(&run(8, [1, 72, 3])), "another place");
        let unknown = Done::new(run(0, [1, 70, 3]), &run(8, [1, 71, 3]));
        assert!(unknown.is_repeated_by(&run(0, [1, 70, 3])) && !unknown.is_repeated_by(&run(0, [1, 72, 3])));
    }
}
