//! What is done with a pool, whatever its kind.

use nearpm::prelude::*;

/// What is done in a transaction.
pub trait Body {
    /// Does it.
    ///
    /// # Errors
    /// Any takes the transaction back.
    fn run<S: Store>(&mut self, tx: &mut S) -> Result<(), Error>;
}

/// What is read.
pub trait Look {
    /// What it gives.
    type Found;
    /// Reads.
    ///
    /// # Errors
    /// Those of the loads.
    fn look<L: Load>(&mut self, from: &L) -> Result<Self::Found, Error>;
}
