//! What a transaction by offsets does to the heap.
//!
//! The tables in the pool change through the mechanism like any other data, as soon as the
//! transaction allocates or frees, so that they are rolled back with it. The index
//! ([`crate::heap::index`]) follows at the end: an object that a transaction frees stays taken
//! until the commit, so that nothing is put over bytes that an abort needs. A run that a commit
//! empties becomes free chunks with it.

use std::collections::BTreeMap;
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

/// What the open transaction has done to the index, or will do to it at its commit.
enum Step {
    /// Took an object; it may be the first of chunks that were free.
    Took { object: u64, fresh: bool },
    /// Will free an object.
    Frees { object: u64 },
    /// Will free a run that has become empty: its first chunk.
    FreesRun { chunk: u32 },
}

/// The heap, and what the open transaction does to it. One is open at a time.
pub(crate) struct Allocator {
    heap: Heap,
    arena: Arena,
    steps: Vec<Step>,
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
        Ok(Allocator { heap: Heap::build(&tables, 0, 0, placement)?, arena: Arena::default(), steps: Vec::new() })
    }

    /// Where the heap's parts are.
    pub fn layout(&self) -> HeapLayout {
        self.heap.layout()
    }

    /// Offsets that programs may use.
    pub fn range(&self) -> Range<u64> {
        self.heap.range()
    }

    /// Free bytes: in free chunks, and in runs with room.
    pub fn free_bytes(&mut self) -> u64 {
        self.heap.retire(&mut self.arena);
        self.heap.free_bytes()
    }

    /// What there is.
    pub fn state(&self) -> HeapState {
        self.heap.state()
    }

    /// Allocated objects: offset and usable bytes, rising.
    pub fn objects(&self) -> Vec<(u64, u64)> {
        self.heap.objects()
    }

    /// Allocates.
    ///
    /// # Errors
    /// [`Error::ZeroSize`] and [`Error::Full`] leave everything as it was. After any other the
    /// transaction must be aborted.
    pub fn alloc(&mut self, cx: &mut Context, protocol: &mut dyn Protocol, bytes: u64) -> Result<Reservation, Error> {
        self.heap.prefer_lowest(&mut self.arena, bytes);
        let mut fresh = false;
        let reserved = self.heap.reserve(&mut self.arena, bytes, Runs::Listed, |_, _| fresh = true);
        let reserved = reserved.map_err(|error| match error {
            Error::Full { requested, .. } => Error::Full { requested, free: self.free_bytes() },
            other => other,
        })?;
        let object = reserved.offset;
        self.steps.push(Step::Took { object, fresh });
        self.heap.allocation(object, |change| change_tables(protocol, cx, change))?;
        self.heap.allocated(object);
        Ok(reserved)
    }

    /// Usable bytes of an object.
    pub fn size_of(&self, object: u64) -> Result<u64, Error> {
        let bytes = self.heap.usable_bytes(object).filter(|_| !self.heap.is_reserved(object));
        bytes.ok_or(Error::NotAllocated { offset: object })
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
                Step::Frees { object } => self.heap.release(object),
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
                Step::Took { object, fresh } => {
                    // It is none where the transaction failed half-way, or has freed it.
                    let _ = self.heap.claim(object);
                    let run = self.heap.run_of(object);
                    self.heap.release(object);
                    if let Some((chunk, _)) = run.filter(|_| fresh) {
                        self.heap.retire(&mut self.arena);
                        self.heap.dissolve(chunk);
                    }
                }
                Step::Frees { object } => self.heap.allocated(object),
                Step::FreesRun { .. } => {}
            }
        }
    }

    /// Compares the index with the pool.
    pub fn check(&self, cx: &mut Context, protocol: &mut dyn Protocol) -> Result<(), Error> {
        let pool = Allocator::load(cx, protocol)?;
        if pool.heap.says_the_same(&self.heap) {
            return Ok(());
        }
        Err(Error::Corrupt { what: "the heap differs from its index", offset: self.layout().word(0) })
    }
}
