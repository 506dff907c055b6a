//! The memory of an open pool, with its counters.

use std::ops::Range;
use std::sync::{Arc, LockResult, Mutex, MutexGuard, TryLockError};

use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::media::lines_of;

#[cfg(test)]
use super::planted::{self, Step};
use super::{MappedMemory, Memory, PrivateMemory, View, Work};
use crate::error::Error;
use crate::statistics::{Counters, count};

/// Where a pool's bytes are. A mapped file has a variant of its own, so that its accesses are
/// inlined and not dispatched.
pub(crate) enum Backing {
    Mapped(MappedMemory),
    /// A pool that is only read.
    Private(PrivateMemory),
    Other(Box<dyn Memory>),
}

macro_rules! each {
    ($self:ident, $memory:ident => $call:expr) => {
        match $self {
            Backing::Mapped($memory) => $call,
            Backing::Private($memory) => $call,
            Backing::Other($memory) => $call,
        }
    };
}

impl Backing {
    pub fn bytes(&self) -> u64 {
        each!(self, memory => memory.bytes())
    }

    pub fn address(&self) -> Option<*mut u8> {
        each!(self, memory => memory.address())
    }

    pub fn is_mapped(&self) -> bool {
        each!(self, memory => memory.is_mapped())
    }

    /// Makes the memory larger.
    ///
    /// # Errors
    /// As [`Memory::grow`].
    pub fn grow(&self, bytes: u64) -> Result<(), Error> {
        each!(self, memory => memory.grow(bytes))
    }

    #[inline]
    pub fn load(&self, offset: u64, data: &mut [u8]) {
        each!(self, memory => memory.load(offset, data));
    }

    #[inline]
    pub fn store(&self, offset: u64, data: &[u8]) {
        each!(self, memory => memory.store(offset, data));
    }

    pub fn write_ahead(&self, offset: u64, bytes: u64) {
        each!(self, memory => memory.write_ahead(offset, bytes));
    }

    #[inline]
    #[cfg_attr(test, track_caller)]
    pub fn stream(&self, offset: u64, lines: &[u8]) {
        #[cfg(test)]
        if planted::left_out(Step::Stream) {
            return self.store(offset, lines);
        }
        each!(self, memory => memory.stream(offset, lines));
    }

    /// As [`Memory::append`].
    #[inline]
    #[cfg_attr(test, track_caller)]
    pub fn append(&self, offset: u64, lines: &[u8]) {
        #[cfg(test)]
        if planted::left_out(Step::Stream) {
            return self.store(offset, lines);
        }
        each!(self, memory => memory.append(offset, lines));
    }

    /// As [`Backing::stream`] of whole lines of the view, which go from there to the same place
    /// here. `false`: not here, and nothing has changed.
    pub fn stream_from(&self, view: &View, offset: u64, bytes: u64) -> bool {
        match self {
            Backing::Mapped(memory) => memory.stream_from(view, offset, bytes),
            _ => false,
        }
    }

    #[inline(never)]
    #[cfg_attr(test, track_caller)]
    pub fn write_back(&self, offset: u64, bytes: u64) {
        #[cfg(test)]
        if planted::left_out(Step::WriteBack) {
            return;
        }
        each!(self, memory => memory.write_back(offset, bytes));
    }

    #[inline]
    #[cfg_attr(test, track_caller)]
    pub fn fence(&self) -> Result<(), Error> {
        #[cfg(test)]
        if planted::left_out(Step::Fence) {
            return Ok(());
        }
        each!(self, memory => memory.fence())
    }

    #[inline]
    #[cfg_attr(test, track_caller)]
    pub fn drain(&self) -> Result<(), Error> {
        #[cfg(test)]
        if planted::left_out(Step::Drain) {
            return Ok(());
        }
        each!(self, memory => memory.drain())
    }

    #[cfg_attr(test, track_caller)]
    pub fn invalidate(&self, offset: u64, bytes: u64) {
        #[cfg(test)]
        if planted::left_out(Step::Invalidate) {
            return;
        }
        each!(self, memory => memory.invalidate(offset, bytes));
    }

    #[inline]
    pub fn prefetch(&self, offset: u64, bytes: u64) {
        if let Backing::Other(memory) = self {
            memory.prefetch(offset, bytes);
        }
    }

    #[inline]
    pub fn charge(&self, work: Work) {
        if let Backing::Other(memory) = self {
            memory.charge(work);
        }
    }

    /// See [`Memory::is_behind_a_link`].
    pub fn is_behind_a_link(&self) -> bool {
        if let Backing::Other(memory) = self { memory.is_behind_a_link() } else { false }
    }

    /// See [`Memory::contended`].
    pub fn contended(&self) -> bool {
        if let Backing::Other(memory) = self { memory.contended() } else { false }
    }

    pub fn alive(&self) -> Result<(), Error> {
        each!(self, memory => memory.alive())
    }

    /// Maps every page of a file. Other memory has none to map.
    pub fn populate(&self) {
        if let Backing::Mapped(memory) = self {
            memory.populate();
        }
    }

    pub fn keeps_order(&self) -> bool {
        each!(self, memory => memory.keeps_order())
    }

    pub fn drains_for_all(&self) -> bool {
        each!(self, memory => memory.drains_for_all())
    }

    /// See [`Memory::is_read_back`].
    pub fn is_read_back(&self) -> bool {
        if let Backing::Other(memory) = self { memory.is_read_back() } else { false }
    }

    /// Takes the right to store away, where a pool is only read.
    pub fn freeze(&self) -> Result<(), Error> {
        match self {
            Backing::Private(memory) => memory.freeze(),
            Backing::Mapped(_) | Backing::Other(_) => Ok(()),
        }
    }

    /// The parts of a range that may be other than zero, rising. Of a file with holes those are
    /// not.
    pub fn data(&self, range: Range<u64>) -> Vec<Range<u64>> {
        match self {
            Backing::Mapped(memory) => memory.data(range),
            Backing::Private(memory) => memory.data(range),
            Backing::Other(_) => vec![range],
        }
    }

    /// The parts of a range that are to be read, because they may be other than zero.
    pub fn to_read(&self, range: Range<u64>) -> Vec<Range<u64>> {
        // So few bytes are read sooner than a file system looks through all that follows for the
        // next hole.
        const READ_SOONER: u64 = 4 << 20;
        if range.end - range.start <= READ_SOONER { vec![range] } else { self.data(range) }
    }

    /// Whether it is a file of this computer, behind which nobody writes.
    pub fn is_file(&self) -> bool {
        !matches!(self, Backing::Other(_))
    }

    /// What was stored to private pages, rising.
    pub fn stored(&self) -> Vec<Range<u64>> {
        match self {
            Backing::Private(memory) => memory.stored(),
            Backing::Mapped(_) | Backing::Other(_) => Vec::new(),
        }
    }

    /// Whether everything that was loaded of a file was there. A card is not asked: that costs a
    /// read over PCIe, and rings that it did not answer for are damaged by their seals.
    ///
    /// # Errors
    /// [`Problem::Truncated`](crate::error::Problem::Truncated), what the system refuses.
    pub fn file_is_whole(&self) -> Result<(), Error> {
        match self {
            Backing::Mapped(memory) => memory.alive(),
            Backing::Private(memory) => memory.alive(),
            Backing::Other(_) => Ok(()),
        }
    }

    /// Whether nothing of a file was lost. A card is asked where it may have gone.
    #[inline]
    pub fn is_whole(&self) -> bool {
        match self {
            Backing::Mapped(memory) => memory.is_whole(),
            Backing::Private(memory) => memory.is_whole(),
            Backing::Other(_) => true,
        }
    }

    /// Whether every byte has room on the medium.
    #[inline]
    pub fn is_complete(&self) -> bool {
        !matches!(self, Backing::Mapped(memory) if !memory.is_complete())
    }

    /// Takes room on the medium for ranges that are about to come into use.
    ///
    /// # Errors
    /// [`crate::Problem::NoSpace`]; what the system refuses.
    pub fn secure(&self, ranges: impl IntoIterator<Item = Range<u64>>) -> Result<(), Error> {
        match self {
            Backing::Mapped(memory) if !memory.is_complete() => {
                ranges.into_iter().try_for_each(|range| memory.secure(&range))
            }
            _ => Ok(()),
        }
    }

    /// A volatile copy: of a mapped file all of it, its pages being shared until they are stored
    /// to; of other memory the ranges alone.
    pub fn working_copy(&self, ranges: &[Range<u64>]) -> Result<View, Error> {
        match self {
            Backing::Mapped(memory) => memory.private_view(),
            Backing::Private(memory) => Ok(View::in_place(memory.base(), memory.bytes())),
            Backing::Other(_) => self.copied(ranges),
        }
    }

    /// A volatile copy of the ranges alone, of which no page is shared with anybody.
    pub fn copied(&self, ranges: &[Range<u64>]) -> Result<View, Error> {
        const PIECE: u64 = 1 << 16;
        let view = View::anonymous(self.bytes())?;
        let mut piece = vec![0; PIECE as usize];
        for range in ranges {
            for at in range.clone().step_by(PIECE as usize) {
                let piece = &mut piece[..PIECE.min(range.end - at) as usize];
                self.load(at, piece);
                view.store(at, piece);
            }
        }
        Ok(view)
    }
}

/// A backing, counted.
pub(crate) struct Medium {
    backing: Backing,
    /// As the backing says, which is asked for at each lock.
    is_behind_a_link: bool,
    pub counters: Arc<Counters>,
}

impl Medium {
    pub fn new(backing: Backing) -> Medium {
        Medium { is_behind_a_link: backing.is_behind_a_link(), backing, counters: Arc::default() }
    }

    /// A medium whose work counts as that of another one.
    pub fn counted_with(backing: Backing, other: &Medium) -> Medium {
        Medium { counters: other.counters.clone(), ..Medium::new(backing) }
    }

    /// The memory, uncounted.
    #[inline]
    pub fn backing(&self) -> &Backing {
        &self.backing
    }

    /// Locks what another thread may hold while it uses this memory, also where threads go on by
    /// turns in simulated time.
    ///
    /// # Errors
    /// As [`Mutex::lock`].
    #[inline]
    pub fn lock<'m, T>(&self, mutex: &'m Mutex<T>) -> LockResult<MutexGuard<'m, T>> {
        if self.is_behind_a_link { self.lock_by_turns(mutex) } else { mutex.lock() }
    }

    /// Whether it is behind a link. Then threads may go on by turns in simulated time, so that a
    /// lock is to be had from [`lock`](Self::lock), and it is worth saying what will be changed
    /// soon.
    #[inline]
    pub fn is_behind_a_link(&self) -> bool {
        self.is_behind_a_link
    }

    #[cold]
    #[inline(never)]
    fn lock_by_turns<'m, T>(&self, mutex: &'m Mutex<T>) -> LockResult<MutexGuard<'m, T>> {
        loop {
            match mutex.try_lock() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(poisoned)) => return Err(poisoned),
                Err(TryLockError::WouldBlock) if self.backing.contended() => {}
                Err(TryLockError::WouldBlock) => return mutex.lock(),
            }
        }
    }

    pub fn bytes(&self) -> u64 {
        self.backing.bytes()
    }

    pub fn address(&self) -> Option<*mut u8> {
        self.backing.address()
    }

    #[inline]
    pub fn load(&self, offset: u64, data: &mut [u8]) {
        self.backing.load(offset, data);
    }

    /// Loads on behalf of the program, and makes sure that what was loaded is there: a card that
    /// has gone reads all ones. Loads go upwards, so that the last bytes tell.
    #[inline]
    pub fn load_checked(&self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        match &self.backing {
            Backing::Mapped(memory) => {
                memory.load(offset, data);
                memory.alive()?;
            }
            Backing::Private(memory) => {
                memory.load(offset, data);
                memory.alive()?;
            }
            Backing::Other(memory) => {
                memory.load(offset, data);
                let tail = &data[data.len().saturating_sub(8)..];
                if tail.iter().all(|&b| b == 0xff) {
                    memory.alive()?;
                }
            }
        }
        Ok(())
    }

    pub fn load_vec(&self, offset: u64, bytes: u64) -> Vec<u8> {
        let mut data = vec![0; bytes as usize];
        self.load(offset, &mut data);
        data
    }

    #[inline]
    pub fn load_word(&self, offset: u64) -> u64 {
        let mut word = [0; 8];
        self.load(offset, &mut word);
        u64::from_le_bytes(word)
    }

    #[inline]
    pub fn store(&self, offset: u64, data: &[u8]) {
        self.backing.store(offset, data);
    }

    /// Stores a word and starts its write-back.
    #[cfg_attr(test, track_caller)]
    pub fn put_word(&self, offset: u64, word: u64) {
        self.store(offset, &word.to_le_bytes());
        self.write_back(offset, 8);
    }

    /// Stores and starts the write-back.
    #[cfg_attr(test, track_caller)]
    pub fn put(&self, offset: u64, data: &[u8]) {
        self.store(offset, data);
        self.write_back(offset, data.len() as u64);
    }

    /// Stores whole lines around the cache and starts their write-back.
    #[cfg_attr(test, track_caller)]
    pub fn stream(&self, offset: u64, lines: &[u8]) {
        count(&self.counters.lines_written_back, lines.len() as u64 / LINE_U64);
        self.backing.stream(offset, lines);
    }

    /// Says that the lines in the range will be loaded or stored to in part.
    #[inline]
    pub fn prefetch(&self, offset: u64, bytes: u64) {
        self.backing.prefetch(offset, bytes);
    }

    /// Begins to fetch the lines of which a range has a part, not all: the first, the last, or
    /// none. A store to a part of a line waits for the rest.
    pub fn prefetch_parts(&self, range: &Range<u64>) {
        let (first, last) = (range.start / LINE_U64 * LINE_U64, range.end / LINE_U64 * LINE_U64);
        let first = (first < range.start).then_some(first);
        let last = (last < range.end && Some(last) != first).then_some(last);
        first.into_iter().chain(last).for_each(|line| self.prefetch(line, LINE_U64));
    }

    /// Accounts for work beside the memory.
    #[inline]
    pub fn charge(&self, work: Work) {
        self.backing.charge(work);
    }

    /// Zeroes what is not zero for sure, and starts the write-back.
    #[cfg_attr(test, track_caller)]
    pub fn put_zeros(&self, offset: u64, bytes: u64) {
        const PIECE: u64 = 4096;
        for part in self.backing.data(offset..offset + bytes) {
            let mut at = part.start;
            while at < part.end {
                let length = PIECE.min(part.end - at);
                self.put(at, &[0; PIECE as usize][..length as usize]);
                at += length;
            }
        }
    }

    /// The words of a range that are not zero, rising, with their offsets. The range begins and
    /// ends at multiples of 8.
    pub fn words(&self, range: Range<u64>) -> impl Iterator<Item = (u64, u64)> + '_ {
        const PIECE: u64 = 1 << 16;
        let whole = |part: Range<u64>| part.start / 8 * 8..part.end.next_multiple_of(8);
        let parts = self.backing.to_read(range).into_iter().map(whole);
        let pieces =
            parts.flat_map(|part| part.clone().step_by(PIECE as usize).map(move |at| at..part.end.min(at + PIECE)));
        pieces.flat_map(|piece| {
            let bytes = self.load_vec(piece.start, piece.end - piece.start);
            let words: Vec<_> =
                bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight"))).collect();
            (piece.start..).step_by(8).zip(words).filter(|&(_, word)| word != 0)
        })
    }

    #[inline(always)]
    #[cfg_attr(test, track_caller)]
    pub fn write_back(&self, offset: u64, bytes: u64) {
        if bytes > 0 {
            count(&self.counters.lines_written_back, lines_of(offset, bytes));
            self.backing.write_back(offset, bytes);
        }
    }

    #[inline]
    #[cfg_attr(test, track_caller)]
    pub fn fence(&self) -> Result<(), Error> {
        count(&self.counters.fences, 1);
        self.backing.fence()
    }

    #[cfg_attr(test, track_caller)]
    pub fn drain(&self) -> Result<(), Error> {
        count(&self.counters.fences, 1);
        self.backing.drain()
    }

    #[cfg_attr(test, track_caller)]
    pub fn invalidate(&self, offset: u64, bytes: u64) {
        if bytes > 0 {
            self.backing.invalidate(offset, bytes);
        }
    }
}
