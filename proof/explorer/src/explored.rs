//! What is explored in a pool: something with a model that says what it must hold.

use std::fmt::Debug;

use nearpm::prelude::*;

use crate::pools::Open;
use nearpm_subjects::{Op, Subject};

/// Something in a pool, and its model.
pub trait Explored {
    /// What the pool holds of it, at a place of its own.
    type Stored: Persistent;
    /// What it must hold.
    type Model: Clone + Debug + Default + PartialEq;

    /// Makes what transactions work on; the place holds zeros before.
    ///
    /// # Errors
    /// Those of the transactions that this takes.
    fn create(_pool: &Open, _at: Ptr<Self::Stored>) -> Result<(), Error> {
        Ok(())
    }

    /// Does an operation on both.
    ///
    /// # Errors
    /// Any takes the transaction back.
    fn apply<S: Store>(tx: &mut S, at: Ptr<Self::Stored>, model: &mut Self::Model, op: &Op) -> Result<(), Error>;

    /// Everything in it.
    ///
    /// # Errors
    /// An invariant does not hold, or the library refuses an access.
    fn contents(from: &impl Load, at: Ptr<Self::Stored>) -> Result<Self::Model, Error>;

    /// Objects of the pool that it consists of; `None` where the model does not tell.
    fn objects(_model: &Self::Model) -> Option<usize> {
        None
    }
}

/// The library's own subjects begin as zeros.
impl<S: Subject> Explored for S {
    type Stored = S::Stored;
    type Model = S::Model;

    fn apply<T: Store>(tx: &mut T, at: Ptr<S::Stored>, model: &mut S::Model, op: &Op) -> Result<(), Error> {
        S::apply(tx, at, model, op)
    }

    fn contents(from: &impl Load, at: Ptr<S::Stored>) -> Result<S::Model, Error> {
        S::contents(from, at)
    }
}
