//! What is still to be freed: an explicit list, so that no depth of nested collections takes stack.

use crate::Store;
use crate::error::Error;

/// Frees a part of something, and puts what it leaves, and what that part owns, on the list.
type Step<S> = fn(&mut S, [u64; 4]) -> Result<(), Error>;

/// What a transaction has still to free. While it is being worked off, what an object owns is added
/// instead of freed at once: the last added first, so that it has as many entries as the nest is
/// deep.
pub struct Later<S> {
    steps: Vec<(Step<S>, [u64; 4])>,
    running: bool,
}

impl<S> Default for Later<S> {
    fn default() -> Later<S> {
        Later { steps: Vec::new(), running: false }
    }
}

/// Carries a step out, now or after those under way, with everything that it adds.
///
/// # Errors
/// Those of the steps; [`Error::System`] without memory for the list.
pub(crate) fn later<S: Store>(tx: &mut S, step: Step<S>, state: [u64; 4]) -> Result<(), Error> {
    let list = tx.later();
    let refuse = |_| Error::system("remember what is still to be freed", std::io::ErrorKind::OutOfMemory.into());
    list.steps.try_reserve(1).map_err(refuse)?;
    list.steps.push((step, state));
    if std::mem::replace(&mut list.running, true) {
        return Ok(());
    }
    let done = work_off(tx);
    *tx.later() = Later::default();
    done
}

fn work_off<S: Store>(tx: &mut S) -> Result<(), Error> {
    while let Some((step, state)) = tx.later().steps.pop() {
        step(tx, state)?;
    }
    Ok(())
}
