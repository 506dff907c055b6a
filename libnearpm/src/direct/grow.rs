//! Direct pools that grow while they are open.

use nearpm_interface::media::CHUNK_BYTES;

use super::DirectPool;
use crate::error::{Error, Problem};
use crate::events::event;
use crate::heap::HeapLayout;
use crate::memory::Backing;
use crate::options::Growth;
use crate::pool::grow;

impl DirectPool {
    /// Makes the pool larger while it is in use; gives the bytes that it has then, which may be
    /// somewhat fewer than asked for, because chunks are whole. A pool that has as many is left as
    /// it is.
    ///
    /// # Errors
    /// [`Problem::BadOption`] where it was opened without [`crate::Options::growth`] for so many
    /// bytes, on a card, with a mechanism or for the lint; [`Problem::NoSpace`],
    /// [`Problem::TooSmall`] and errors of the system leave it as it was. [`Error::ReadOnly`],
    /// [`Error::Forked`], [`Error::Poisoned`].
    pub fn grow(&self, bytes: u64) -> Result<u64, Error> {
        self.check_writable()?;
        self.refuse_poisoned()?;
        let mut head = self.grown.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let now = grow::bytes(&head);
        if bytes <= now {
            return Ok(now);
        }
        let refuse = |problem: Problem| problem.at(&self.location);
        if let Some(what) = self.why_fixed(bytes) {
            return Err(refuse(Problem::BadOption { what }));
        }
        let new = grow::plan(&head, bytes).map_err(refuse)?;
        self.medium.backing().grow(new.grown())?;
        let new = grow::write(&self.medium, &head, &new).map_err(|error| self.poison(error))?;
        self.view.grow(new.grown());
        self.heap.grow(&HeapLayout::of(&new));
        *head = new;
        event!(info, pool = self.location, bytes = new.grown(), "pool has grown");
        Ok(new.grown())
    }

    /// Why the pool cannot grow to so many bytes.
    fn why_fixed(&self, bytes: u64) -> Option<&'static str> {
        let most = self.options.growth.map_or(0, |growth| growth.most);
        if self.members.are_on_cards() {
            return Some(grow::ON_CARD);
        }
        if matches!(self.medium.backing(), Backing::Private(_)) {
            return Some("changes that are forgotten (Options::copy_on_write) make no pool larger");
        }
        if self.by_mechanism.is_some() || self.linter.is_some() {
            return Some("a pool that is open with a mechanism or for the lint keeps its size (nearpm pool resize)");
        }
        (bytes > most).then_some("it was not opened to grow so far (Options::growth)")
    }

    /// Makes the pool larger because an object of so many bytes finds no room, or a segment of the
    /// log; `false` where it may not grow.
    pub(super) fn grow_for(&self, bytes: u64) -> Result<bool, Error> {
        let Some(Growth { by, most }) = self.options.growth.filter(|growth| growth.by > 0) else { return Ok(false) };
        let (now, least) = {
            let head = self.grown.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            (grow::bytes(&head), HeapLayout::of(&head).least_growth())
        };
        // With the tables of a zone, and another chunk.
        let least = least.saturating_add(bytes).saturating_add(CHUNK_BYTES);
        let to = now.saturating_add(by).max(least).min(most);
        if to < least || self.why_fixed(to).is_some() {
            return Ok(false);
        }
        self.grow(to).map(|after| after > now)
    }
}
