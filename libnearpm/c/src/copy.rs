//! Pools for primitives whose memory has no addresses, as that of a card: the program stores to a
//! copy, and what it has stored goes home when a call needs it there.
//!
//! | call | does with the copy |
//! |---|---|
//! | undo log, checkpoint | what was stored to the range goes home first, so that the old value is what the program sees; then the card logs its own memory |
//! | commit | what was stored to the ranges of the log goes home, then the log ends |
//! | abort | the ranges are read again |
//! | redo log | nothing; a commit puts the new values into the copy |
//! | shadow copy, switch | what was stored to the page, or to the reference, goes home first; then the copy of the page, or the reference, is read |
//! | persist, close | what was stored goes home |
//!
//! Stores may go home early, as a processor's cache may write back any line at any time. What is
//! home is known without reading it: a second copy has it, and bytes in which both differ are those
//! that the program has stored. So a page is never stored home whole, and what the library keeps
//! between objects is never stored over. A word that is a multiple of 8 goes home at once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::error::Failure;
use memmap2::{MmapMut, MmapOptions, MmapRaw};
use nearpm::{Error, Pool};

/// Bytes of a word.
const WORD: u64 = 8;
/// Bytes that are read at once.
const PIECE: u64 = 64 << 10;

/// What a log of a thread covers.
#[derive(Default)]
struct Log {
    /// Ranges whose old bytes it has.
    old: Vec<Range<u64>>,
    /// New values, and where they go.
    new: Vec<(u64, Vec<u8>)>,
}

struct State {
    /// What the medium has.
    home: MmapMut,
    logs: BTreeMap<u16, Log>,
}

/// The copy of a pool.
pub(super) struct WorkingCopy {
    /// What the program sees and stores to.
    view: MmapRaw,
    state: Mutex<State>,
}

fn no_memory(error: std::io::Error) -> Failure {
    Error::System { what: "get memory for the copy of a pool on a card".to_owned(), source: error }.into()
}

impl WorkingCopy {
    /// Copies the objects of a pool.
    pub fn of(pool: &Pool) -> Result<WorkingCopy, Failure> {
        let bytes = (pool.bytes().next_multiple_of(WORD)) as usize;
        let map = || MmapOptions::new().len(bytes).map_anon().map_err(no_memory);
        let state = State { home: map()?, logs: BTreeMap::new() };
        let copy = WorkingCopy { view: map()?.into(), state: Mutex::new(state) };
        let mut state = copy.state();
        for (object, bytes) in pool.objects()? {
            copy.read(&mut state, pool, object..object + bytes)?;
        }
        drop(state);
        Ok(copy)
    }

    /// Where the program sees offset 0.
    pub fn base(&self) -> *mut u8 {
        self.view.as_mut_ptr()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A word of the program's copy.
    fn word(&self, offset: u64) -> &AtomicU64 {
        assert!(offset.is_multiple_of(WORD) && offset + WORD <= self.view.len() as u64);
        // SAFETY: the word lies in the mapping, which begins at a page and lives as long as this.
        // The library reaches it by atomic words alone, and the program knows that no other thread
        // may store to what a call is about.
        unsafe { AtomicU64::from_ptr(self.base().add(offset as usize).cast()) }
    }

    /// Puts bytes into both copies: they are home. Bytes beside them, to which other threads may
    /// store, are not touched.
    fn put(&self, state: &mut State, offset: u64, data: &[u8]) {
        let range = offset..offset + data.len() as u64;
        for word in words_of(range.clone()) {
            let inside = inside(word, range.clone());
            let new = &data[(word + inside.start as u64 - offset) as usize..][..inside.len()];
            state.home[word as usize..][inside.clone()].copy_from_slice(new);
            match <[u8; WORD as usize]>::try_from(new) {
                Ok(whole) => self.word(word).store(u64::from_ne_bytes(whole), Ordering::Relaxed),
                Err(_) => {
                    for (byte, &value) in inside.zip(new) {
                        let at = self.word(word).as_ptr().cast::<u8>().wrapping_add(byte);
                        // SAFETY: the byte lies in the word, which lies in the mapping.
                        unsafe { AtomicU8::from_ptr(at) }.store(value, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    /// Reads a range of the medium.
    fn read(&self, state: &mut State, pool: &Pool, range: Range<u64>) -> Result<(), Failure> {
        let mut at = range.start;
        while at < range.end {
            let mut piece = vec![0; PIECE.min(range.end - at) as usize];
            pool.load(at, &mut piece)?;
            self.put(state, at, &piece);
            at += piece.len() as u64;
        }
        Ok(())
    }

    /// Stores what the program has stored to a range, as far as it is not home. Gives the ranges
    /// that were stored.
    fn bring_home(&self, state: &mut State, pool: &Pool, range: Range<u64>) -> Result<Vec<Range<u64>>, Failure> {
        let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
        for word in words_of(range.clone()) {
            let seen = self.word(word).load(Ordering::Relaxed).to_ne_bytes();
            let inside = inside(word, range.clone());
            let home = &state.home[word as usize..][..WORD as usize];
            let differs = |byte: &usize| seen[*byte] != home[*byte];
            let Some(first) = inside.clone().find(differs) else { continue };
            let last = inside.rev().find(differs).expect("the first one differs");
            let start = word + first as u64;
            match runs.last_mut() {
                Some((at, run)) if *at + run.len() as u64 == start => run.extend_from_slice(&seen[first..=last]),
                _ => runs.push((start, seen[first..=last].to_vec())),
            }
        }
        for (at, run) in &runs {
            pool.store(*at, run)?;
            state.home[*at as usize..][..run.len()].copy_from_slice(run);
        }
        Ok(runs.into_iter().map(|(at, run)| at..at + run.len() as u64).collect())
    }

    /// Refuses a range that leaves the pool, of which the copy has no bytes.
    fn check(pool: &Pool, offset: u64, bytes: u64) -> Result<Range<u64>, Failure> {
        match offset.checked_add(bytes) {
            Some(end) if end <= pool.bytes() => Ok(offset..end),
            _ => Err(Error::OutOfRange { offset, length: bytes, heap: 0..pool.bytes() }.into()),
        }
    }

    /// Logs old bytes by `log`; `range` is what it covers.
    pub fn log_old(
        &self,
        pool: &Pool,
        thread: u16,
        range: Range<u64>,
        log: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Failure> {
        let range = Self::check(pool, range.start, range.end.saturating_sub(range.start))?;
        let mut state = self.state();
        self.bring_home(&mut state, pool, range.clone())?;
        log()?;
        state.logs.entry(thread).or_default().old.push(range);
        Ok(())
    }

    /// Notes a new value that the log of a thread has got.
    pub fn noted_new(&self, thread: u16, offset: u64, value: &[u8]) {
        self.state().logs.entry(thread).or_default().new.push((offset, value.to_vec()));
    }

    /// Ends a log; what it covers is kept as the program sees it, and new values are in place.
    pub fn commit(&self, pool: &Pool, thread: u16) -> Result<(), Failure> {
        let mut state = self.state();
        let old = state.logs.get(&thread).map_or_else(Vec::new, |log| log.old.clone());
        for range in old {
            self.bring_home(&mut state, pool, range)?;
        }
        pool.commit_log(thread)?;
        for (offset, value) in state.logs.remove(&thread).unwrap_or_default().new {
            self.put(&mut state, offset, &value);
        }
        Ok(())
    }

    /// Ends a log, and takes back what it covers.
    pub fn abort(&self, pool: &Pool, thread: u16) -> Result<(), Failure> {
        let mut state = self.state();
        pool.abort_log(thread)?;
        for range in state.logs.remove(&thread).unwrap_or_default().old {
            self.read(&mut state, pool, range)?;
        }
        Ok(())
    }

    /// Makes what the program has stored to a range durable.
    pub fn persist(&self, pool: &Pool, offset: u64, bytes: u64) -> Result<(), Failure> {
        let range = Self::check(pool, offset, bytes)?;
        self.bring_home(&mut self.state(), pool, range)?;
        // Also where nothing differs: an earlier call may have stored it without waiting.
        Ok(pool.flush(offset, bytes)?)
    }

    /// Runs a call that reads `from` on the medium and changes what it gives, as an offset, by so
    /// many bytes.
    pub fn around(
        &self,
        pool: &Pool,
        from: Range<u64>,
        bytes: u64,
        call: impl FnOnce() -> Result<u64, Error>,
    ) -> Result<u64, Failure> {
        let from = Self::check(pool, from.start, from.end.saturating_sub(from.start))?;
        let mut state = self.state();
        self.bring_home(&mut state, pool, from)?;
        let changed = call()?;
        self.read(&mut state, pool, changed..changed + bytes)?;
        Ok(changed)
    }

    /// The bytes of a new object, of which the medium has zeros.
    pub fn zeroed(&self, object: u64, bytes: u64) {
        let mut state = self.state();
        for at in (object..object + bytes).step_by(PIECE as usize) {
            self.put(&mut state, at, &vec![0; PIECE.min(object + bytes - at) as usize]);
        }
    }

    /// Makes everything durable that the program has stored to objects.
    pub fn finish(&self, pool: &Pool) -> Result<(), Failure> {
        let mut state = self.state();
        for (object, bytes) in pool.objects()? {
            for stored in self.bring_home(&mut state, pool, object..object + bytes)? {
                pool.flush(stored.start, stored.end - stored.start)?;
            }
        }
        Ok(())
    }
}

/// Offsets of the words that a range touches.
fn words_of(range: Range<u64>) -> impl Iterator<Item = u64> {
    (range.start / WORD..range.end.div_ceil(WORD)).map(|word| word * WORD)
}

/// The bytes of a word that lie in a range.
fn inside(word: u64, range: Range<u64>) -> Range<usize> {
    (range.start.max(word) - word) as usize..(range.end.min(word + WORD) - word) as usize
}
