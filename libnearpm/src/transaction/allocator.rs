//! What a transaction by offsets does to the heap.
//!
//! The tables in the pool change through the mechanism like any other data, as soon as the
//! transaction allocates or frees, so that they are rolled back with it. The index
//! ([`crate::heap::index`]) follows at the end: an object that a transaction frees stays taken
//! until the commit, so that nothing is put over bytes that an abort needs. A run that a commit
//! empties becomes free chunks with it.
//!
//! A transaction that is open beside others reserves and claims in the index alone, and the tables
//! change when it ends ([`Allocator::adopt`]): what is not an object by a commit may lie in a run
//! whose word is not written yet, and an object that somebody is to free is one until then.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::error::Error;
use crate::heap::index::{Arena, Heap, Placement, Runs};
use crate::heap::spans::Spread;
use crate::heap::tables::{Bitmaps, HeapTables};
use crate::heap::{HeapLayout, Reservation};
use crate::mechanism::{Context, Protocol, change_tables};
use crate::statistics::HeapState;

#[cfg(test)]
mod tests;

/// What the transaction that has the heap has done to the index, or will do to it at its commit.
enum Step {
    /// Took an object.
    Took { object: u64 },
    /// Will make a reservation an object.
    Allocates { object: u64 },
    /// Will free an object.
    Frees { object: u64 },
    /// Will give a reservation back.
    Cancels { object: u64 },
    /// Will free a run that has become empty: its first chunk.
    FreesRun { chunk: u32 },
}

/// The heap, and what the transaction does to it that has it: one at a time.
pub(crate) struct Allocator {
    heap: Heap,
    arena: Arena,
    steps: Vec<Step>,
    /// Objects that transactions beside each other are to free.
    claimed: BTreeSet<u64>,
}

impl Allocator {
    /// Builds the index from a recovered pool, checking what it reads.
    pub fn load(cx: &mut Context, protocol: &mut dyn Protocol) -> Result<Allocator, Error> {
        let placement = Placement::Lowest(Spread::of(&cx.head));
        let tables = HeapTables::load(
            HeapLayout::of(&cx.head),
            Bitmaps::OfRuns,
            |range| vec![range],
            |offset, bytes| protocol.read(cx, offset, bytes),
        )?;
        let heap = Heap::build(&tables, 0, 0, placement)?;
        Ok(Allocator { heap, arena: Arena::default(), steps: Vec::new(), claimed: BTreeSet::new() })
    }

    /// Where the heap's parts are.
    pub fn layout(&self) -> HeapLayout {
        self.heap.layout()
    }

    /// Offsets that programs may use.
    pub fn range(&self) -> Range<u64> {
        self.heap.range()
    }

    /// Free bytes: in free chunks, and in runs with room. What open transactions have reserved is
    /// not free, nor is what they are to free.
    pub fn free_bytes(&mut self) -> u64 {
        self.heap.retire(&mut self.arena);
        self.heap.free_bytes()
    }

    /// What there is.
    pub fn state(&self) -> HeapState {
        self.heap.state()
    }

    /// Objects by a commit: offset and usable bytes, rising.
    pub fn objects(&self) -> Vec<(u64, u64)> {
        self.heap.objects_with(&self.claimed)
    }

    /// Takes space, in the index alone.
    ///
    /// # Errors
    /// [`Error::ZeroSize`] and [`Error::Full`] leave everything as it was.
    #[inline]
    pub fn reserve(&mut self, bytes: u64) -> Result<Reservation, Error> {
        self.heap.prefer_lowest(&mut self.arena, bytes);
        let reserved = self.heap.reserve(&mut self.arena, bytes, Runs::Listed, |_, _| {});
        reserved.map_err(|error| match error {
            Error::Full { requested, .. } => Error::Full { requested, free: self.free_bytes() },
            other => other,
        })
    }

    /// Allocates.
    ///
    /// # Errors
    /// [`Error::ZeroSize`] and [`Error::Full`] leave everything as it was. After any other the
    /// transaction must be aborted.
    pub fn alloc(&mut self, cx: &mut Context, protocol: &mut dyn Protocol, bytes: u64) -> Result<Reservation, Error> {
        let reserved = self.reserve(bytes)?;
        let object = reserved.offset;
        self.steps.push(Step::Took { object });
        self.heap.allocation(object, |change| change_tables(protocol, cx, change))?;
        self.heap.allocated(object);
        Ok(reserved)
    }

    /// Usable bytes of an object. One that a transaction beside the caller's is to free is an
    /// object still.
    pub fn size_of(&self, object: u64) -> Result<u64, Error> {
        let is_object = |_: &u64| !self.heap.is_reserved(object) || self.claimed.contains(&object);
        self.heap.usable_bytes(object).filter(is_object).ok_or(Error::NotAllocated { offset: object })
    }

    /// Claims an object for a transaction that is open beside others, which will free it.
    ///
    /// # Errors
    /// [`Error::NotAllocated`] leaves everything as it was.
    pub fn claim(&mut self, object: u64) -> Result<(), Error> {
        self.heap.claim(object)?;
        self.claimed.insert(object);
        Ok(())
    }

    /// A transaction that was open beside others ends: it has the heap now, with what it has
    /// reserved, reserved and given up, and claimed.
    pub fn adopt(&mut self, reserved: &[Reservation], cancelled: &[Reservation], claimed: &[u64]) {
        self.steps.extend(reserved.iter().map(|of| Step::Allocates { object: of.offset }));
        self.steps.extend(claimed.iter().map(|&object| Step::Frees { object }));
        // Behind what is freed: whoever is the last to leave a run gives it back.
        self.steps.extend(cancelled.iter().map(|of| Step::Cancels { object: of.offset }));
    }

    /// Changes the tables as the transaction wants them that was adopted.
    ///
    /// # Errors
    /// After any the transaction must be aborted.
    #[cold]
    pub fn change_adopted(&self, cx: &mut Context, protocol: &mut dyn Protocol) -> Result<(), Error> {
        self.steps.iter().try_for_each(|step| match *step {
            Step::Allocates { object } => self.heap.allocation(object, |change| change_tables(protocol, cx, change)),
            Step::Frees { object } => change_tables(protocol, cx, self.heap.removal(object)),
            _ => Ok(()),
        })
    }

    /// Frees.
    ///
    /// # Errors
    /// [`Error::NotAllocated`] leaves everything as it was. After any other the transaction must be
    /// aborted.
    pub fn free(&mut self, cx: &mut Context, protocol: &mut dyn Protocol, object: u64) -> Result<(), Error> {
        self.heap.claim(object)?;
        self.steps.push(Step::Frees { object });
        change_tables(protocol, cx, self.heap.removal(object))
    }

    /// The open transaction is about to commit: runs that it emptied become free chunks in the
    /// pool.
    pub fn prepare(&mut self, cx: &mut Context, protocol: &mut dyn Protocol) -> Result<(), Error> {
        let mut left: BTreeMap<u32, u32> = BTreeMap::new();
        for step in &self.steps {
            if let Step::Frees { object } = *step
                && let Some((chunk, used)) = self.heap.run_of(object)
            {
                *left.entry(chunk).or_insert(used) -= 1;
            }
        }
        for (chunk, _) in left.into_iter().filter(|&(_, left)| left == 0) {
            self.steps.push(Step::FreesRun { chunk });
            change_tables(protocol, cx, self.heap.run_removal(chunk))?;
        }
        Ok(())
    }

    /// The open transaction has committed.
    pub fn commit(&mut self) {
        for step in self.steps.drain(..) {
            match step {
                Step::Took { .. } => {}
                Step::Allocates { object } => self.heap.allocated(object),
                Step::Frees { object } => {
                    if !self.claimed.is_empty() {
                        self.claimed.remove(&object);
                    }
                    self.heap.release(object);
                }
                Step::Cancels { object } => Self::give_back(&self.heap, &mut self.arena, object),
                Step::FreesRun { chunk } => {
                    self.heap.retire(&mut self.arena);
                    self.heap.dissolve(chunk);
                }
            }
        }
    }

    /// The open transaction was taken back.
    pub fn abort(&mut self) {
        for step in self.steps.drain(..).rev() {
            match step {
                Step::Took { object } => {
                    // It is none where the transaction failed half-way, or has freed it.
                    let _ = self.heap.claim(object);
                    Self::give_back(&self.heap, &mut self.arena, object);
                }
                Step::Allocates { object } | Step::Cancels { object } => {
                    Self::give_back(&self.heap, &mut self.arena, object);
                }
                Step::Frees { object } => {
                    self.claimed.remove(&object);
                    self.heap.allocated(object);
                }
                Step::FreesRun { .. } => {}
            }
        }
    }

    /// Gives a reservation back. A run that has nothing any more becomes free chunks: in the tables
    /// it is free, be its word there or not.
    #[cold]
    fn give_back(heap: &Heap, arena: &mut Arena, object: u64) {
        let run = heap.run_of(object);
        heap.release(object);
        if let Some((chunk, 1)) = run {
            heap.retire(arena);
            heap.dissolve(chunk);
        }
    }

    /// Compares the index with the pool. Reservations and claims of open transactions are no
    /// difference.
    pub fn check(&self, cx: &mut Context, protocol: &mut dyn Protocol) -> Result<(), Error> {
        let pool = Allocator::load(cx, protocol)?;
        if self.heap.says_the_same(&pool.heap, &self.claimed) {
            return Ok(());
        }
        Err(Error::Corrupt { what: "the heap differs from its index", offset: self.layout().word(0) })
    }
}
