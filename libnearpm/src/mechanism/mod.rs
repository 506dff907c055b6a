//! The four ways to make transactions survive a crash, behind one trait.

use std::sync::Arc;

use nearpm_interface::media::PoolHead;

use crate::damage::Class;
use crate::error::Error;
use crate::heap::Form;
use crate::heap::index::Change;
use crate::lane::Lane;
use crate::memory::{Medium, View};
use crate::options::{Durability, Mechanism};
use crate::pages::Pages;

mod batch;
mod checkpoint;
mod epoch;
mod redo;
mod redo_log;
mod shadow;
mod together;
mod undo;

pub(crate) use batch::Batch;
pub(crate) use together::{Number, Together};

/// What a mechanism works on.
pub(crate) struct Context {
    pub medium: Arc<Medium>,
    pub head: PoolHead,
    pub pages: Pages,
    /// The lane of transactions.
    pub lane: Lane,
}

/// What a commit achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acknowledged {
    /// Every transaction so far.
    All,
    /// Nothing new.
    Nothing,
}

/// A mechanism at work on a pool. One transaction is open at a time; offsets are those of the heap
/// as programs see it, and ranges have been checked.
pub(crate) trait Protocol: Send {
    /// Reads, own writes included.
    #[inline]
    fn read(&mut self, cx: &mut Context, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        for (place, part) in cx.pages.pieces(offset, data.len() as u64) {
            cx.medium.load_checked(place, &mut data[part])?;
        }
        Ok(())
    }

    /// Writes. When it fails with [`Error::TooLarge`] nothing was written.
    fn write(&mut self, cx: &mut Context, offset: u64, data: &[u8]) -> Result<(), Error>;

    /// The open transaction is about to change parts of this range, and nobody else changes
    /// anything in it.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the log has no room for it.
    fn declare(&mut self, _cx: &mut Context, _offset: u64, _bytes: u64) -> Result<(), Error> {
        Ok(())
    }

    /// The open transaction has allocated this range: its old contents matter to nobody.
    fn fresh(&mut self, _cx: &mut Context, _offset: u64, _bytes: u64) {}

    /// Does what must be done before the commit point. When it fails the transaction can still be
    /// aborted.
    fn prepare(&mut self, cx: &mut Context) -> Result<(), Error>;

    /// Does everything that a transaction which changes nothing but this must do before its commit
    /// point. What it stores to is not taken back any more.
    ///
    /// # Errors
    /// After [`Error::TooLarge`] and [`Error::NoMemory`] nothing has changed but what was
    /// allocated, once the transaction is aborted. After all others only a recovery can tell.
    fn bring(&mut self, cx: &mut Context, batch: &mut Batch, view: &View) -> Result<(), Error>;

    /// Passes the commit point. When it fails only a recovery can tell whether the transaction
    /// happened.
    fn commit(&mut self, cx: &mut Context, durability: Durability) -> Result<Acknowledged, Error>;

    /// Takes every write of the open transaction back.
    fn abort(&mut self, cx: &mut Context) -> Result<(), Error>;

    /// Makes every committed transaction durable. No transaction is open.
    fn persist(&mut self, cx: &mut Context) -> Result<(), Error>;

    /// Ends the epoch that commits are in, if there is one, as a commit that is posted: ordered
    /// ahead of everything later, and durable when [`crate::executor::Executor::posted`] is waited
    /// for.
    ///
    /// # Errors
    /// As those of [`Protocol::persist`].
    fn post(&mut self, _cx: &mut Context) -> Result<(), Error> {
        Ok(())
    }

    /// Every commit so far has been read back, by somebody else: it is durable.
    fn acknowledged(&mut self, _cx: &mut Context) {}

    /// Programs are about to use memory behind the transactions: it must be there, and reachable
    /// through the processor's cache.
    fn share(&mut self, _cx: &mut Context) -> Result<(), Error> {
        Ok(())
    }

    /// Brings what lies elsewhere to where offsets say, so that memory may be used behind the
    /// mechanism's back. Everything is finished.
    fn bring_home(&mut self, _cx: &mut Context) -> Result<(), Error> {
        Ok(())
    }

    /// Leaves nothing to be done later, so that the pool can be closed.
    fn finish(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.persist(cx)
    }
}

/// Makes a change of the heap's tables as a write.
///
/// # Errors
/// [`Error::Corrupt`] for a word that is damaged; what the mechanism says.
#[inline]
pub(crate) fn change_tables(protocol: &mut dyn Protocol, cx: &mut Context, change: Change) -> Result<(), Error> {
    let offset = change.offset();
    let word = match change {
        Change::Word(_, word) => word,
        Change::Set(_, mask, form) | Change::Clear(_, mask, form) => {
            let mut word = [0; 8];
            protocol.read(cx, offset, &mut word)?;
            let (set, clear) = if matches!(change, Change::Set(..)) { (mask, 0) } else { (0, mask) };
            changed_word(cx, offset, u64::from_le_bytes(word), (set, clear, form))?
        }
    };
    protocol.write(cx, offset, &word.to_le_bytes())
}

/// Orders what a commit has stored behind its last fence ahead of the next commit, which another
/// processor may make: values of a redo log; pages of an epoch, and the words that name them.
///
/// Where handing over is a locked instruction it is waited for all the same; the medium's contract,
/// which tests hold, promises no more than a processor's own fence.
#[cfg_attr(test, track_caller)]
pub(crate) fn hand_over(mechanism: Mechanism, cx: &Context) -> Result<(), Error> {
    let stores_behind_commits = matches!(mechanism, Mechanism::Redo | Mechanism::Shadow);
    let by_this_processor = !cx.lane.executor.writes_around_the_cache() && !cx.medium.backing().drains_for_all();
    if stores_behind_commits && by_this_processor { cx.medium.fence() } else { Ok(()) }
}

/// A word of the heap's tables with bits set and cleared.
///
/// # Errors
/// [`Error::Corrupt`] for one that is damaged, unless the medium has gone.
fn changed_word(cx: &Context, offset: u64, word: u64, (set, clear, form): (u64, u64, Form)) -> Result<u64, Error> {
    let changed = form.change(word, set, clear);
    if changed.is_none() {
        // A card that has gone reads as ones.
        cx.medium.backing().alive()?;
    }
    changed.ok_or_else(|| Class::BitmapWord.at(offset))
}

/// The mechanism that an option names.
pub(crate) fn protocol(mechanism: Mechanism, epoch_ops: u64) -> Box<dyn Protocol> {
    match mechanism {
        Mechanism::Undo => Box::new(undo::Undo::default()),
        Mechanism::Redo => Box::new(redo::Redo::default()),
        Mechanism::Checkpoint => Box::new(checkpoint::Checkpoint::new(epoch_ops)),
        Mechanism::Shadow => Box::new(shadow::Shadow::new(epoch_ops)),
    }
}
