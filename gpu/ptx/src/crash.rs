//! What persistent memory may hold after a crash.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::machine::Running;
use crate::memory::Memory;
use crate::persist::Tracker;
use crate::word::{Store, Word};
use crate::{PmRange, ThreadId};

/// One store that a crash may lose: what of one thread's store lies in one aligned word of 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingStore {
    /// Address of the word of 8 bytes.
    pub word: u64,
    /// The bytes of the word that it writes, one bit a byte.
    pub bytes: u8,
    /// The word's content, where `bytes` says so.
    pub value: u64,
    /// Who stored.
    pub thread: ThreadId,
    /// When, in steps of the launch.
    pub step: u64,
    /// Line in the PTX text.
    pub line: u32,
}

/// Which of the pending stores reached persistent memory. Whatever is chosen is closed under
/// coherence: a store that has persisted brings the earlier stores to the same bytes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// All.
    All,
    /// None.
    None,
    /// A random subset.
    Seeded(u64),
    /// Those of one thread (by [`ThreadId::linear`]), and what coherence brings with them.
    OnlyThread(u64),
    /// Those of all threads but one, and what coherence brings with them.
    AllButThread(u64),
}

/// What a crash did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// Step of the launch after which it happened (0 when no launch was running).
    pub step: u64,
    /// Stores that were pending.
    pub pending: u64,
    /// Those of them that persisted.
    pub persisted: u64,
    /// What replays it: kernel, schedule, step and choice.
    pub replay: String,
}

/// A crash that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CrashError {
    /// The launch does not track what persists.
    #[error("what persists is not tracked: launch with Persistence::Tracked to crash")]
    NotTracked,
    /// More images than the caller wants to go through.
    #[error("the pending stores allow {images} images, more than the limit of {limit}")]
    TooMany { images: u128, limit: u128 },
}

/// Every distinct content that the PM ranges may have after a crash here: each item is the image of
/// each range, in the order of their mapping.
#[derive(Clone, Debug)]
pub struct Images {
    ranges: Vec<(PmRange, Vec<u8>)>,
    /// Address of each word with pending stores, and what it may hold.
    words: Vec<(u64, Vec<u64>)>,
    /// Which content of each word comes next; None after the last.
    next: Option<Vec<usize>>,
}

impl Images {
    /// How many there are in all.
    pub fn count_all(&self) -> u128 {
        self.words.iter().fold(1, |product, (_, values)| u128::saturating_mul(product, values.len() as u128))
    }
}

impl Iterator for Images {
    type Item = Vec<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        let digits = self.next.as_mut()?;
        let mut images = self.ranges.clone();
        for ((address, values), &digit) in self.words.iter().zip(digits.iter()) {
            put(&mut images, *address, values[digit]);
        }
        let mut carried = true;
        for (digit, (_, values)) in digits.iter_mut().zip(&self.words) {
            *digit = (*digit + 1) % values.len();
            carried = *digit == 0;
            if !carried {
                break;
            }
        }
        if carried {
            self.next = None;
        }
        Some(images.into_iter().map(|(_, image)| image).collect())
    }
}

/// Writes a word into the range that holds it; what lies past the range's end is dropped.
fn put(ranges: &mut [(PmRange, Vec<u8>)], address: u64, value: u64) {
    let holds = |range: &PmRange| address >= range.address && address - range.address < range.len;
    if let Some((range, image)) = ranges.iter_mut().find(|(range, _)| holds(range)) {
        let start = (address - range.address) as usize;
        let end = (start + 8).min(image.len());
        image[start..end].copy_from_slice(&value.to_le_bytes()[..end - start]);
    }
}

fn visible(memory: &Memory) -> Vec<(PmRange, Vec<u8>)> {
    let range = |region: &crate::memory::Region| PmRange { address: region.base, len: region.data.len() as u64 };
    memory.persistent().map(|region| (range(region), region.data.clone())).collect()
}

/// The tracker of the launch; an error where it has none.
pub(crate) fn tracker(running: Option<&Running>) -> Result<Option<&Tracker>, CrashError> {
    match running {
        None => Ok(None),
        Some(running) => running.tracker.as_ref().map(Some).ok_or(CrashError::NotTracked),
    }
}

/// Words with pending stores, by address.
fn words(tracker: &Tracker) -> Vec<(u64, &Word)> {
    let mut words: Vec<(u64, &Word)> = tracker.words.iter().map(|(&word, found)| (word << 3, found)).collect();
    words.sort_unstable_by_key(|(address, _)| *address);
    words
}

fn describe(running: &Running, address: u64, store: &Store) -> PendingStore {
    PendingStore {
        word: address,
        bytes: store.bytes,
        value: store.value,
        thread: running.shape.thread_of_linear(store.thread),
        step: store.step,
        line: store.line,
    }
}

/// All pending stores, oldest first.
pub(crate) fn pending(running: Option<&Running>) -> Result<Vec<PendingStore>, CrashError> {
    let (Some(tracker), Some(running)) = (tracker(running)?, running) else { return Ok(Vec::new()) };
    let mut stores: Vec<(u64, PendingStore)> = Vec::new();
    for (&word, found) in &tracker.words {
        stores.extend(found.stores().map(|store| (store.sequence, describe(running, word << 3, store))));
    }
    stores.sort_unstable_by_key(|(sequence, _)| *sequence);
    Ok(stores.into_iter().map(|(_, store)| store).collect())
}

/// An image, with how many stores pended and how many of them are in it.
pub(crate) struct Made {
    pub images: Vec<Vec<u8>>,
    pub pending: u64,
    pub persisted: u64,
}

/// The image for stores chosen one by one; `drop` says for a word whether a store without an
/// earlier one that it needs is dropped, rather than that one added.
fn make(
    memory: &Memory,
    running: Option<&Running>,
    mut reached: impl FnMut(&Running, u64, &Store) -> bool,
    mut drop: impl FnMut() -> bool,
) -> Result<Made, CrashError> {
    let mut ranges = visible(memory);
    let (mut pending, mut persisted) = (0, 0);
    if let (Some(tracker), Some(running)) = (tracker(running)?, running) {
        for (address, word) in words(tracker) {
            let mut chosen: Vec<bool> = word.stores().map(|store| reached(running, address, store)).collect();
            if drop() {
                word.drop_unsupported(&mut chosen);
            }
            word.close(&mut chosen);
            pending += chosen.len() as u64;
            persisted += chosen.iter().filter(|chosen| **chosen).count() as u64;
            put(&mut ranges, address, word.image(&chosen));
        }
    }
    Ok(Made { images: ranges.into_iter().map(|(_, image)| image).collect(), pending, persisted })
}

pub(crate) fn make_choice(memory: &Memory, running: Option<&Running>, choice: Choice) -> Result<Made, CrashError> {
    match choice {
        Choice::All => make(memory, running, |_, _, _| true, || false),
        Choice::None => make(memory, running, |_, _, _| false, || false),
        Choice::OnlyThread(thread) => make(memory, running, |_, _, store| store.thread == thread, || false),
        Choice::AllButThread(thread) => make(memory, running, |_, _, store| store.thread != thread, || false),
        Choice::Seeded(seed) => {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let mut closing = ChaCha8Rng::seed_from_u64(!seed);
            // Few, half, or most: each finds other bugs.
            let eighths = [1, 4, 7][random.random_range(0..3)];
            make(memory, running, |_, _, _| random.random_range(0..8) < eighths, || closing.random_bool(0.5))
        }
    }
}

pub(crate) fn make_with(
    memory: &Memory,
    running: Option<&Running>,
    mut reached: impl FnMut(&PendingStore) -> bool,
) -> Result<Made, CrashError> {
    make(memory, running, |running, address, store| reached(&describe(running, address, store)), || false)
}

/// All distinct images.
pub(crate) fn images(memory: &Memory, running: Option<&Running>, limit: u128) -> Result<Images, CrashError> {
    let ranges = visible(memory);
    let words: Vec<(u64, Vec<u64>)> = match tracker(running)? {
        Some(tracker) => words(tracker).into_iter().map(|(address, word)| (address, contents(word))).collect(),
        None => Vec::new(),
    };
    let next = Some(vec![0; words.len()]);
    let images = Images { ranges, words, next };
    match images.count_all() {
        count if count > limit => Err(CrashError::TooMany { images: count, limit }),
        _ => Ok(images),
    }
}

/// What a word may hold: its stores in order, each persisted or not, one only if no earlier one to
/// its bytes is not.
fn contents(word: &Word) -> Vec<u64> {
    let mut states = BTreeSet::from([(word.durable, 0u8)]);
    for store in word.stores() {
        let mut after = BTreeSet::new();
        for &(value, missing) in &states {
            after.insert((value, missing | store.bytes));
            if store.bytes & missing == 0 {
                after.insert((store.apply(value), missing));
            }
        }
        states = after;
    }
    let distinct: BTreeSet<u64> = states.into_iter().map(|(value, _)| value).collect();
    distinct.into_iter().collect()
}
