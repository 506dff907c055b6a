//! The transaction that serde's calls are made in. `Serialize` and `Deserialize` say nothing of
//! where a value lies, so a collection asks for what its thread is in: what a value is read from,
//! and what it is put into, each known while the call lasts.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::marker::PhantomData;
use std::ptr::NonNull;

use super::later::Later;
use super::persistent::{bytes_of, value_of};
use super::{Load, Persistent, Ptr, Store};
use crate::error::Error;

/// What can be read, whatever its type.
trait Reads {
    fn bytes(&self, offset: u64, data: &mut [u8]) -> Result<(), Error>;
    fn root(&self) -> Result<u64, Error>;
}

impl<L: Load> Reads for L {
    fn bytes(&self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.read(offset, data)
    }
    fn root(&self) -> Result<u64, Error> {
        self.root_object()
    }
}

/// What can be changed, whatever its type.
trait Changes: Reads {
    fn put(&mut self, offset: u64, data: &[u8]) -> Result<(), Error>;
    fn announce(&mut self, range: std::ops::Range<u64>) -> Result<(), Error>;
    fn make(&mut self, bytes: u64) -> Result<u64, Error>;
    fn take_away(&mut self, object: u64) -> Result<(), Error>;
    fn set_root(&mut self, object: u64) -> Result<(), Error>;
    fn count(&self) -> u64;
    fn only_abort(&mut self);
}

impl<S: Store> Changes for S {
    fn put(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.write(offset, data)
    }
    fn announce(&mut self, range: std::ops::Range<u64>) -> Result<(), Error> {
        self.declare(range)
    }
    fn make(&mut self, bytes: u64) -> Result<u64, Error> {
        self.alloc_bytes(bytes)
    }
    fn take_away(&mut self, object: u64) -> Result<(), Error> {
        self.free_object(object)
    }
    fn set_root(&mut self, object: u64) -> Result<(), Error> {
        self.set_root_object(object)
    }
    fn count(&self) -> u64 {
        self.changes()
    }
    fn only_abort(&mut self) {
        self.doom();
    }
}

/// What values are read from.
pub(crate) struct Source<'a>(&'a dyn Reads);

impl Load for Source<'_> {
    fn get<T: Persistent>(&self, at: Ptr<T>) -> Result<T, Error> {
        value_of(|bytes| self.read(Ptr::offset(at), bytes))
    }
    fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.0.bytes(offset, data)
    }
    fn root_object(&self) -> Result<u64, Error> {
        self.0.root()
    }
}

/// What values are put into.
pub(crate) struct Target<'a> {
    tx: &'a mut dyn Changes,
    /// Objects that were made, and not freed since.
    made: HashSet<u64>,
    /// While a value only says what it holds.
    trial: Option<Trial>,
    later: Later<Target<'a>>,
    /// The first error that was the pool's and not the text's: serde takes none but its own.
    failed: Option<Error>,
}

/// A release that is tried: it finds what it has changed, and nothing of it is done. Functions of
/// the program's own run in it, which may count down what the value goes on holding.
#[derive(Default)]
struct Trial {
    freed: HashSet<u64>,
    /// Bytes that were stored.
    stored: BTreeMap<u64, u8>,
    root: Option<u64>,
    /// Objects that were made, of which nobody will know.
    made: Vec<u64>,
}

impl Load for Target<'_> {
    fn get<T: Persistent>(&self, at: Ptr<T>) -> Result<T, Error> {
        value_of(|bytes| self.read(Ptr::offset(at), bytes))
    }
    fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.tx.bytes(offset, data)?;
        if let Some(trial) = &self.trial {
            let end = offset.saturating_add(data.len() as u64);
            trial.stored.range(offset..end).for_each(|(at, &byte)| data[(at - offset) as usize] = byte);
        }
        Ok(())
    }
    fn root_object(&self) -> Result<u64, Error> {
        self.trial.as_ref().and_then(|trial| trial.root).map_or_else(|| self.tx.root(), Ok)
    }
}

impl<'a> Store for Target<'a> {
    fn set<T: Persistent>(&mut self, at: Ptr<T>, value: T) -> Result<(), Error> {
        self.write(Ptr::offset(at), bytes_of(std::slice::from_ref(&value)))
    }
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let Some(trial) = &mut self.trial else { return self.tx.put(offset, data) };
        // What could not be read could not be stored either.
        self.tx.bytes(offset, &mut vec![0; data.len()])?;
        trial.stored.extend((offset..).zip(data.iter().copied()));
        Ok(())
    }
    fn declare(&mut self, range: std::ops::Range<u64>) -> Result<(), Error> {
        if self.trial.is_some() { Ok(()) } else { self.tx.announce(range) }
    }
    fn alloc_bytes(&mut self, bytes: u64) -> Result<u64, Error> {
        let object = self.tx.make(bytes)?;
        match &mut self.trial {
            Some(trial) => trial.made.push(object),
            None => drop(self.made.insert(object)),
        }
        Ok(object)
    }
    fn free_object(&mut self, object: u64) -> Result<(), Error> {
        if let Some(trial) = &mut self.trial {
            // As of a release that is carried out, so that what holds itself comes to an end.
            return if trial.freed.insert(object) { Ok(()) } else { Err(Error::NotAllocated { offset: object }) };
        }
        self.tx.take_away(object)?;
        self.made.remove(&object);
        Ok(())
    }
    fn set_root_object(&mut self, object: u64) -> Result<(), Error> {
        if let Some(trial) = &mut self.trial {
            trial.root = Some(object);
            return Ok(());
        }
        self.tx.set_root(object)
    }
    fn changes(&self) -> u64 {
        self.tx.count()
    }
    fn doom(&mut self) {
        self.tx.only_abort();
    }
    fn later(&mut self) -> &mut Later<Target<'a>> {
        &mut self.later
    }
}

thread_local! {
    static SOURCE: Cell<Option<NonNull<Source<'static>>>> = const { Cell::new(None) };
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static TARGET: Cell<Option<NonNull<Target<'static>>>> = const { Cell::new(None) };
}

/// Collections that may lie in each other where serde goes through them: it recurses, and both a
/// pool and a text may be deeper than any stack, or hold themselves.
pub(crate) const DEEPEST: usize = 128;

/// One collection deeper, until it is dropped.
pub(crate) struct Level(PhantomData<*const ()>);

/// Goes into a collection; `None` where that is too deep.
pub(crate) fn deeper() -> Option<Level> {
    let depth = DEPTH.get();
    (depth < DEEPEST).then(|| {
        DEPTH.set(depth + 1);
        Level(PhantomData)
    })
}

impl Drop for Level {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Puts back what was there, also when a call panics.
struct Back<T: 'static> {
    cell: &'static std::thread::LocalKey<Cell<Option<NonNull<T>>>>,
    value: Option<NonNull<T>>,
    on_this_thread: PhantomData<*const ()>,
}

impl<T> Back<T> {
    /// Another value, until the guard is dropped.
    fn after(cell: &'static std::thread::LocalKey<Cell<Option<NonNull<T>>>>, value: Option<NonNull<T>>) -> Back<T> {
        Back { cell, value: cell.replace(value), on_this_thread: PhantomData }
    }
}

impl<T> Drop for Back<T> {
    fn drop(&mut self) {
        self.cell.set(self.value);
    }
}

/// Makes a call in which collections are read from here.
pub(crate) fn reading<L: Load, R>(from: &L, call: impl FnOnce() -> R) -> R {
    let source = Source(from);
    let _back = Back::after(&SOURCE, Some(NonNull::from(&source).cast()));
    call()
}

/// What this thread reads collections from; `None` outside of [`reading`].
pub(crate) fn with_source<R>(work: impl FnOnce(&Source<'_>) -> R) -> Option<R> {
    let source = SOURCE.get()?;
    // SAFETY: `reading` has lent it, and takes the pointer away before what it points to goes.
    // Nobody changes it: there are shared references alone. No lifetime of it leaves `work`, which
    // is written for any.
    Some(work(unsafe { source.as_ref() }))
}

/// Makes a value by a call in which collections are put into a transaction. What the call has made
/// and the value does not hold is freed again, as of the variants of an enum that did not fit.
///
/// # Errors
/// The pool's; those of the call, as an abort that says what is wrong. Where something was changed
/// the transaction can only be aborted.
pub(crate) fn putting<S: Store, T: Persistent, E: std::fmt::Display>(
    tx: &mut S,
    call: impl FnOnce() -> Result<T, E>,
) -> Result<T, Error> {
    super::whole(tx, |tx| {
        let mut target = Target { tx, made: HashSet::new(), trial: None, later: Later::default(), failed: None };
        let made = {
            let _back = Back::after(&TARGET, Some(NonNull::from(&mut target).cast()));
            call()
        };
        let value = match (made, target.failed.take()) {
            (_, Some(failed)) => return Err(failed),
            (Err(error), None) => return Err(Error::abort(error.to_string())),
            (Ok(value), None) => value,
        };
        if !target.made.is_empty() {
            target.trial = Some(Trial::default());
            value.release(&mut target)?;
            let trial = target.trial.take().unwrap_or_default();
            let left: Vec<u64> = target.made.difference(&trial.freed).copied().chain(trial.made).collect();
            left.into_iter().try_for_each(|object| target.free_object(object))?;
        }
        Ok(value)
    })
}

/// Changes what this thread puts collections into; `None` outside of [`putting`]. After the first
/// failure nothing is done, and all fail as that did: untagged enums go on with their other
/// variants.
pub(crate) fn with_target<R>(work: impl FnOnce(&mut Target<'_>) -> Result<R, Error>) -> Option<Result<R, String>> {
    let mut target = TARGET.get()?;
    // Whoever asks meanwhile finds nothing, so that there is one reference.
    let _back = Back::after(&TARGET, None);
    // SAFETY: `putting` has lent it alone, and takes the pointer away before what it points to
    // goes; no other reference exists, and no lifetime of it leaves `work`, which is written for
    // any.
    let target = unsafe { target.as_mut() };
    if let Some(failed) = &target.failed {
        return Some(Err(failed.to_string()));
    }
    Some(work(target).map_err(|error| {
        let text = error.to_string();
        target.failed.get_or_insert(error);
        text
    }))
}
