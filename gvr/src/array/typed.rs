//! The interface for programs.

use std::marker::PhantomData;
use std::ops::{Range, RangeInclusive};
use std::rc::Rc;

use super::close::{Sealer, version_inc};
use super::core::{Change, Core, Counters, Version};
use super::cursor::Old;
use crate::error::{Error, Result};
use crate::rma::{Kind, Op};

/// A type of which arrays can be.
pub trait Element: bytemuck::Pod {
    /// What it is called in pools.
    const KIND: Kind;
}

macro_rules! element {
    ($($type:ty => $kind:ident),*) => { $(impl Element for $type { const KIND: Kind = Kind::$kind; })* };
}
element!(u8 => U8, i32 => I32, u32 => U32, i64 => I64, u64 => U64, f32 => F32, f64 => F64);

/// A box of indices. Rust's ranges are taken as they are written: `a..b` without `b`, `a..=b` with
/// it; several dimensions by an array of ranges. A pair of slices is first and last index, both
/// included, as in the C interface.
pub trait Index {
    /// First and last index by dimension, both included. An empty range gives a last index below
    /// the first, which is refused.
    fn bounds(&self) -> (Vec<u64>, Vec<u64>);
}

impl Index for Range<u64> {
    fn bounds(&self) -> (Vec<u64>, Vec<u64>) {
        std::slice::from_ref(self).bounds()
    }
}

impl Index for RangeInclusive<u64> {
    fn bounds(&self) -> (Vec<u64>, Vec<u64>) {
        (vec![*self.start()], vec![*self.end()])
    }
}

impl Index for [Range<u64>] {
    fn bounds(&self) -> (Vec<u64>, Vec<u64>) {
        // One that ends at 0 is empty, and would have no last index: no array is as long as the one
        // that it gets.
        let last = |range: &Range<u64>| range.end.checked_sub(1).unwrap_or(u64::MAX);
        (self.iter().map(|range| range.start).collect(), self.iter().map(last).collect())
    }
}

impl<const N: usize> Index for [Range<u64>; N] {
    fn bounds(&self) -> (Vec<u64>, Vec<u64>) {
        self.as_slice().bounds()
    }
}

impl Index for (&[u64], &[u64]) {
    fn bounds(&self) -> (Vec<u64>, Vec<u64>) {
        (self.0.to_vec(), self.1.to_vec())
    }
}

/// A versioned array of which each rank holds a part. A handle belongs to one rank. Made by
/// [`crate::World::array`] and [`crate::Job::array`].
pub struct Array<T> {
    pub(crate) core: Rc<Core>,
    /// Of a durable one.
    job: Option<Rc<dyn Sealer>>,
    element: PhantomData<T>,
}

impl<T: Element> Array<T> {
    pub(crate) fn of(core: Rc<Core>, job: Option<Rc<dyn Sealer>>) -> Array<T> {
        Array { core, job, element: PhantomData }
    }

    /// Elements by dimension.
    pub fn dims(&self) -> &[u64] {
        self.core.shape.dims()
    }

    /// Elements that a rank holds, counted in row-major order.
    pub fn part(&self, rank: usize) -> Range<u64> {
        self.core.shape.part(rank)
    }

    /// Stores elements in row-major order. They are there for all ranks behind [`Array::wait`] and
    /// the ranks' next meeting. Puts of several ranks at the same elements without a meeting in
    /// between leave those of one or another, element by element.
    ///
    /// # Errors
    /// [`crate::Error::OutOfRange`], [`crate::Error::Buffer`], [`crate::Error::LogFull`],
    /// [`crate::Error::Unpublished`].
    pub fn put(&self, at: impl Index, data: &[T]) -> Result<()> {
        let (lo, hi) = at.bounds();
        self.core.change(&lo, &hi, bytemuck::cast_slice(data), Change::Put)
    }

    /// Reads elements of the current version. What this rank has put is sure to be seen behind
    /// [`Array::wait`].
    ///
    /// # Errors
    /// [`crate::Error::OutOfRange`], [`crate::Error::Buffer`].
    pub fn get(&self, at: impl Index, data: &mut [T]) -> Result<()> {
        let (lo, hi) = at.bounds();
        self.core.read(&lo, &hi, bytemuck::cast_slice_mut(data))
    }

    /// As [`Array::get`], into a new vector.
    ///
    /// # Errors
    /// As [`Array::get`].
    pub fn get_vec(&self, at: impl Index) -> Result<Vec<T>> {
        let (lo, hi) = at.bounds();
        let mut data = vec![T::zeroed(); self.core.shape.elements(&lo, &hi)? as usize];
        self.core.read(&lo, &hi, bytemuck::cast_slice_mut(&mut data))?;
        Ok(data)
    }

    /// Combines elements with those that are there, each atomically with other accumulates.
    ///
    /// # Errors
    /// As [`Array::put`].
    pub fn accumulate(&self, at: impl Index, data: &[T], op: Op) -> Result<()> {
        let (lo, hi) = at.bounds();
        self.core.change(&lo, &hi, bytemuck::cast_slice(data), Change::Combine(T::KIND, op))
    }

    /// Stores an element of 8 bytes if the one that is there is `expected`, bit by bit. Gives what
    /// was there.
    ///
    /// # Errors
    /// As [`Array::put`]; [`crate::Error::BadOption`] for elements of another size.
    pub fn compare_and_swap(&self, index: &[u64], expected: T, new: T) -> Result<T> {
        if size_of::<T>() != 8 {
            return Err(Error::option("compare_and_swap is for elements of 8 bytes: nothing was changed"));
        }
        let before = self.core.compare_and_swap(index, bytemuck::cast(expected), bytemuck::cast(new))?;
        Ok(bytemuck::cast(before))
    }

    /// Waits until everything that this rank has put and accumulated is there for all.
    ///
    /// # Errors
    /// [`crate::Error::DeadRank`].
    pub fn wait(&self) -> Result<()> {
        self.core.wait()
    }

    /// Waits until buffers may be used again: they may, as puts copy them and gets return when they
    /// are filled.
    ///
    /// # Errors
    /// None.
    pub fn wait_local(&self) -> Result<()> {
        Ok(())
    }

    /// Closes the current version, and gives its number; all ranks call it. It waits for all ranks'
    /// puts. The next version begins as the one that was closed. In a [`crate::Job`] the version is
    /// durable when this returns, but with [`crate::Flush::Background`].
    ///
    /// # Errors
    /// The same on all ranks: [`crate::Error::Elsewhere`] if a rank has had an error since the last
    /// version (once: a second call closes it), [`crate::Error::Pinned`], those of the pools. The
    /// version was not closed, and nothing that was closed is lost. On one rank alone:
    /// [`crate::Error::Damaged`] where its pool has a damaged version that is kept no more; the
    /// version was closed.
    pub fn version_inc(&self, label: &str) -> Result<u64> {
        version_inc_all(&[self.face()], label)
    }

    /// This array beside ones of other types, for [`crate::version_inc_all`].
    pub fn face(&self) -> Face<'_> {
        Face { core: &self.core, job: self.job.as_deref() }
    }

    /// Number that the current version will have.
    pub fn version(&self) -> u64 {
        self.core.version()
    }

    /// Versions that can be read, the oldest first.
    pub fn versions(&self) -> Vec<Version> {
        self.core.versions()
    }

    /// Reads an old version; as long as the cursor lives it is kept.
    ///
    /// # Errors
    /// [`crate::Error::NoVersion`].
    pub fn at(&self, version: u64) -> Result<Cursor<T>> {
        Ok(Cursor { old: self.core.pin(version)?, core: Rc::clone(&self.core), element: PhantomData })
    }

    /// Reads the version that is `back` before the newest closed one.
    ///
    /// # Errors
    /// [`crate::Error::NoVersion`].
    pub fn version_dec(&self, back: u64) -> Result<Cursor<T>> {
        let version = self.version().checked_sub(1 + back).unwrap_or(u64::MAX);
        self.at(version)
    }

    /// Makes the current version what an old one was; all ranks call it.
    ///
    /// # Errors
    /// [`crate::Error::NoVersion`], and those of [`Array::put`].
    pub fn restore(&self, version: u64) -> Result<()> {
        let cursor = self.at(version)?;
        // Others may still read what is about to change.
        self.core.rma.barrier()?;
        self.core.restore_part(&cursor.old)?;
        self.core.rma.barrier()
    }

    /// Says that errors since the last version were acted upon: the next [`Array::version_inc`]
    /// does not fail for them.
    pub fn acknowledge(&self) {
        self.core.acknowledge();
    }

    /// What was done so far.
    pub fn counters(&self) -> Counters {
        self.core.counters()
    }

    /// Bytes that old versions take on this rank beside the current one.
    ///
    /// # Errors
    /// Those of reading the own window.
    pub fn version_bytes(&self) -> Result<u64> {
        self.core.version_bytes()
    }

    /// Waits until the newest version of the array's job is durable on all ranks, where versions
    /// are flushed in the background; all ranks call it.
    ///
    /// # Errors
    /// As [`crate::Job::version_wait`]; [`crate::Error::BadOption`] for an array that is of no job.
    pub fn version_wait(&self) -> Result<()> {
        let job = self.job.as_ref();
        let job = job.ok_or_else(|| Error::option("versions of an array of no job do not become durable"))?;
        job.version_wait()
    }

    /// Damages a byte, for tests.
    #[doc(hidden)]
    pub fn damage(&self, version: u64, block: u64, byte: u64, bits: u8) -> Result<bool> {
        self.core.damage(version, block, byte, bits)
    }

    /// Gives the memory of the array back; all ranks call it. An array of a job stays as long as
    /// the job is open, which goes on to seal and scrub its versions.
    ///
    /// # Errors
    /// [`crate::Error::DeadRank`].
    pub fn free(self) -> Result<()> {
        if self.job.is_some() { Ok(()) } else { self.core.free() }
    }
}

/// An array, whatever its elements are.
#[derive(Clone, Copy)]
pub struct Face<'a> {
    pub(crate) core: &'a Core,
    pub(crate) job: Option<&'a dyn Sealer>,
}

/// Closes the current version of several arrays in one cut: read back together, they are as of one
/// moment, also after a crash. All ranks call it with the same arrays. The arrays are all durable,
/// and of one job, or none is. Gives the number of the first array's version.
///
/// # Errors
/// As [`Array::version_inc`].
pub fn version_inc_all(arrays: &[Face<'_>], label: &str) -> Result<u64> {
    let job = arrays.first().and_then(|array| array.job);
    let same = |array: &Face<'_>| match (array.job, job) {
        (None, None) => true,
        (Some(one), Some(other)) => std::ptr::addr_eq(one, other),
        _ => false,
    };
    if !arrays.iter().all(same) {
        return Err(Error::option("a cut is of arrays of one job, or of arrays that are not durable: make two cuts"));
    }
    let cores: Vec<&Core> = arrays.iter().map(|array| array.core).collect();
    version_inc(&cores, label, job)
}

/// An old version, read-only.
pub struct Cursor<T> {
    core: Rc<Core>,
    old: Old,
    element: PhantomData<T>,
}

impl<T: Element> Cursor<T> {
    /// Reads elements.
    ///
    /// # Errors
    /// [`crate::Error::OutOfRange`], [`crate::Error::Buffer`].
    pub fn get(&self, at: impl Index, data: &mut [T]) -> Result<()> {
        let (lo, hi) = at.bounds();
        self.core.read_old(&self.old, &lo, &hi, bytemuck::cast_slice_mut(data))
    }
}

impl<T> Drop for Cursor<T> {
    fn drop(&mut self) {
        self.core.unpin(&self.old);
    }
}
