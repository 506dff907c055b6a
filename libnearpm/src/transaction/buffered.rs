//! A transaction that is open beside others: it collects what it changes, and does all of it when
//! it ends.
//!
//! Nothing of it is in persistent memory before: its objects are reservations, what it frees is
//! claimed, and its new bytes are in memory of the processor. So nobody waits for its body. The
//! end takes the pool's lock and does to the mechanism what a transaction that has the pool for
//! itself does in its course. Calls of the body take the lock for a moment, where they read, or ask
//! the heap.
//!
//! What programs change at the same time they keep apart. The heap, its tables and the root are the
//! library's: they change with the lock.

use super::Inner;
use super::collected::Collected;
use super::exclusive::Exclusive;
use super::shared::{Awaited, Shared};
use crate::error::Error;
use crate::heap::HeapLayout;
use crate::mechanism::{Acknowledged, hand_over};
use crate::options::Durability;

pub(super) struct Buffered<'p> {
    shared: &'p Shared,
    collected: Collected,
    /// It can only be aborted.
    doomed: bool,
    /// Committed or taken back.
    ended: bool,
}

impl<'p> Buffered<'p> {
    pub fn begin(shared: &'p Shared) -> Buffered<'p> {
        Buffered { shared, collected: shared.take_spare(), doomed: false, ended: false }
    }

    /// Commits what is done, or takes it back.
    pub fn end<T>(mut self, done: Result<T, Error>, durability: Durability) -> Result<T, Error> {
        self.ended = true;
        if !self.shared.process.is_current() {
            // It is the parent's.
            return Err(Error::Forked);
        }
        let done = done.and_then(|value| if self.doomed { Err(Error::half_done()) } else { Ok(value) });
        let mut inner = self.shared.lock_anyway();
        self.collected.hand_to(&mut inner.allocator);
        let awaited = match done {
            Ok(value) => self.commit(&mut inner, durability).map(|awaited| (value, awaited)),
            Err(error) => {
                inner.allocator.abort();
                Err(error)
            }
        };
        let awaited = awaited.inspect_err(|_| inner.count_abort());
        drop(inner);
        let (value, awaited) = awaited?;
        awaited.map_or(Ok(()), |awaited| self.shared.wait(awaited))?;
        Ok(value)
    }

    /// Gives what is to be waited for without the lock.
    fn commit(&self, inner: &mut Inner, durability: Durability) -> Result<Option<Awaited>, Error> {
        if inner.poisoned {
            inner.allocator.abort();
            return Err(Error::Poisoned);
        }
        let posts = self.shared.posts(inner);
        if posts {
            self.shared.tell_acknowledged(inner);
        }
        let with_the_lock = if posts { Durability::Asynchronous } else { durability };
        let committed = self.commit_with_the_lock(inner, with_the_lock);
        inner.poison_after(&committed);
        inner.count_commit(committed?);
        if !posts || self.shared.mechanism.has_epochs() {
            return Ok(None);
        }
        // Those that are not waited for are posted, too. One that has changed nothing may have read
        // what was posted.
        let awaited = self.shared.awaited(inner, self.collected.changes);
        Ok((durability == Durability::Durable).then_some(awaited))
    }

    fn commit_with_the_lock(&self, inner: &mut Inner, durability: Durability) -> Result<Acknowledged, Error> {
        let mut tx = Exclusive::begin(inner);
        let committed = match self.collected.replay(tx.inner) {
            Ok(()) => tx.commit(durability),
            // Why it failed is worth more than what the rollback says, which poisons the pool.
            Err(error) => {
                let _ = tx.rollback();
                Err(error)
            }
        };
        drop(tx);
        let handed_over = hand_over(self.shared.mechanism, &inner.cx);
        inner.poisoned |= handed_over.is_err();
        let acknowledged = committed?;
        handed_over.map(|()| acknowledged)
    }

    pub fn abandon(&mut self) {
        self.doomed = true;
    }

    fn check_writable(&self) -> Result<(), Error> {
        if self.shared.read_only { Err(Error::ReadOnly) } else { Ok(()) }
    }

    pub fn layout(&self) -> HeapLayout {
        self.shared.layout
    }

    pub fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        {
            let inner = &mut *self.shared.lock()?;
            inner.protocol.read(&mut inner.cx, offset, data)?;
        }
        self.collected.writes.patch(&self.shared.medium, offset, data);
        Ok(())
    }

    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.check_writable()?;
        self.collected.writes.insert(&self.shared.medium, offset, data);
        self.collected.changes = true;
        Ok(())
    }

    pub fn declare(&mut self, offset: u64, bytes: u64) -> Result<(), Error> {
        self.check_writable()?;
        self.collected.declared.push(offset..offset + bytes);
        self.collected.changes = true;
        Ok(())
    }

    pub fn alloc(&mut self, bytes: u64) -> Result<u64, Error> {
        self.check_writable()?;
        let reserved = self.shared.lock()?.allocator.reserve(bytes)?;
        self.collected.reserved.push(reserved);
        self.collected.changes = true;
        Ok(reserved.offset)
    }

    pub fn free(&mut self, object: u64) -> Result<(), Error> {
        self.check_writable()?;
        let Collected { reserved, cancelled, freed, changes, .. } = &mut self.collected;
        if let Some(at) = reserved.iter().rposition(|own| own.offset == object) {
            cancelled.push(reserved.swap_remove(at));
            return Ok(());
        }
        self.shared.lock()?.allocator.claim(object)?;
        freed.push(object);
        *changes = true;
        Ok(())
    }

    pub fn size_of(&self, object: u64) -> Result<u64, Error> {
        let Collected { reserved, freed, .. } = &self.collected;
        if let Some(own) = reserved.iter().find(|own| own.offset == object) {
            return Ok(own.bytes);
        }
        if freed.contains(&object) {
            return Err(Error::NotAllocated { offset: object });
        }
        self.shared.lock()?.allocator.size_of(object)
    }
}

impl Drop for Buffered<'_> {
    /// A transaction that was not ended is unwinding: what it has taken is given back.
    fn drop(&mut self) {
        // Else it is the parent's.
        if !self.shared.process.is_current() {
            return;
        }
        if !self.ended {
            let allocator = &mut self.shared.lock_anyway().allocator;
            self.collected.hand_to(allocator);
            allocator.abort();
        }
        self.shared.give_spare(std::mem::take(&mut self.collected));
    }
}
