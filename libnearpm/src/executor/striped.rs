//! Several members make the copies, each by an executor of its own, and agree on commits.
//!
//! A transaction that commits on several members is committed as soon as one of its commit words is
//! there: a recovery then completes it on the others. So nobody writes such a word before every
//! participant has all of it, log and data, durably. Either the processor waits for that, member by
//! member, before it sends the first word; or the cards do, by themselves, each behind what came
//! over its link. In both cases the same holds for what the transaction comes after: an earlier
//! commit that was not waited for, on a member that takes no part, is waited for now. What one
//! member alone has logged is committed there alone: the processor waits for what was only stored
//! on others.
//!
//! Where everything is on one member, its link keeps the order and nobody waits.

use std::ops::Range;
use std::sync::Arc;

use nearpm_interface::media::{EntryHead, PAGE_BYTES};

use super::{Entry, Executor, Publication, Word};
use crate::error::Error;
use crate::memory::{Medium, Member};
use crate::options::Durability;
use crate::planted::{Fault, planted};
use crate::stripes::{Mask, Stripes};

/// Executes on the members of a striped pool. Entries and words have offsets in their members,
/// everything else in the whole.
pub(crate) struct StripedExecutor {
    parts: Vec<Box<dyn Executor>>,
    media: Arc<[Medium]>,
    members: Vec<Arc<Member>>,
    stripes: Stripes,
    /// Commits wait on the cards for each other.
    delayed: bool,
    /// Members with log entries or copies of what is not committed.
    logged: Mask,
    /// Members with commits that were not waited for.
    unacknowledged: Mask,
}

/// The entries of a member.
fn entries_of(entries: &[Entry], member: usize) -> Vec<Entry> {
    entries.iter().filter(|entry| entry.member == member).copied().collect()
}

fn members_of(entries: &[Entry]) -> Mask {
    entries.iter().map(|entry| entry.member).collect()
}

/// The values of a member's entries; `values` holds those of all, one after the other.
fn values_of(entries: &[Entry], values: &[u8], member: usize) -> Vec<u8> {
    let mut at = 0;
    let mut own = Vec::new();
    for entry in entries {
        let value = &values[at..at + entry.length as usize];
        at += value.len();
        if entry.member == member {
            own.extend_from_slice(value);
        }
    }
    own
}

impl StripedExecutor {
    pub fn new(
        parts: Vec<Box<dyn Executor>>,
        media: Arc<[Medium]>,
        members: Vec<Arc<Member>>,
        stripes: Stripes,
        delayed: bool,
    ) -> StripedExecutor {
        let (logged, unacknowledged) = Default::default();
        StripedExecutor { parts, media, members, stripes, delayed, logged, unacknowledged }
    }

    /// Runs a call on a member; what it says of places becomes true for the whole.
    fn on<T>(
        &mut self,
        member: usize,
        call: impl FnOnce(&mut dyn Executor, &Medium) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let stripes = self.stripes;
        call(&mut *self.parts[member], &self.media[member]).map_err(|error| match error {
            Error::LogFailed { offset, length, source } => {
                Error::LogFailed { offset: stripes.whole_offset(member, offset), length, source }
            }
            Error::StoresLost { offset, length, source } => {
                Error::StoresLost { offset: stripes.whole_offset(member, offset), length, source }
            }
            Error::Damaged { offset, length, source } => {
                Error::Damaged { offset: stripes.whole_offset(member, offset), length, source }
            }
            other => other,
        })
    }

    fn on_all(
        &mut self,
        members: Mask,
        mut call: impl FnMut(&mut dyn Executor, &Medium) -> Result<(), Error>,
    ) -> Result<(), Error> {
        members.iter().try_for_each(|member| self.on(member, &mut call))
    }

    fn all(&self) -> Mask {
        (0..self.parts.len()).collect()
    }

    /// Members in which something was stored since the last commit.
    fn take_stored(&self) -> Mask {
        let stored = self.members.iter().enumerate().filter(|(_, member)| member.take_stored());
        stored.map(|(number, _)| number).collect()
    }

    /// Members in which something was stored or logged since the last commit.
    fn take_touched(&mut self) -> Mask {
        let (stored, logged) = (self.take_stored(), std::mem::take(&mut self.logged));
        if planted(Fault::ForgetsStores) { logged } else { stored.union(logged) }
    }

    /// Makes durable what commit words on `committing` members say, as far as these do not see to
    /// it themselves.
    fn agree(&mut self, committing: Mask, touched: Mask) -> Result<(), Error> {
        let mut involved = touched.union(committing);
        if !planted(Fault::ForgetsEarlierCommits) {
            involved = involved.union(self.unacknowledged);
        }
        let by_themselves = self.delayed || committing.len() == 1 || planted(Fault::CommitsWithoutAgreement);
        let waits = if by_themselves { involved.without(committing) } else { involved };
        self.on_all(waits, |part, medium| part.sync(medium))?;
        self.unacknowledged = self.unacknowledged.without(waits);
        Ok(())
    }

    /// Sends commits, by `post`, to all members before it waits for any. `post` gets the mask of
    /// those that wait for each other.
    fn commit_on(
        &mut self,
        committing: Mask,
        touched: Mask,
        durability: Durability,
        mut post: impl FnMut(&mut Self, usize, u32, Durability) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let several = committing.len() > 1;
        self.agree(committing, touched)?;
        let participants = if several && self.delayed { committing.bits() } else { 0 };
        for member in committing.iter() {
            post(self, member, participants, if several { Durability::Asynchronous } else { durability })?;
        }
        // The words themselves belong to no later transaction.
        self.take_stored();
        match durability {
            Durability::Durable if planted(Fault::AcknowledgesOnSending) => {}
            Durability::Durable if several => self.on_all(committing, |part, medium| part.persist(medium))?,
            Durability::Durable => {}
            Durability::Asynchronous => {
                self.unacknowledged = self.unacknowledged.union(committing);
                return Ok(());
            }
        }
        self.unacknowledged = self.unacknowledged.without(committing);
        Ok(())
    }

    /// The member in which a page lies, and the places there of two of its pages.
    fn pages(&self, from: u64, to: u64) -> (usize, u64, u64) {
        let (from, to) = (self.stripes.locate(from, PAGE_BYTES), self.stripes.locate(to, PAGE_BYTES));
        assert_eq!(from.member, to.member, "a page moves inside of its member");
        (from.member, from.offset, to.offset)
    }
}

impl Executor for StripedExecutor {
    fn log(&mut self, _: &Medium, entries: &[Entry], head: &EntryHead, dirty: bool) -> Result<(), Error> {
        let members = members_of(entries);
        self.logged = self.logged.union(members);
        for member in members.iter() {
            let own = entries_of(entries, member);
            self.on(member, |part, medium| part.log(medium, &own, head, dirty))?;
        }
        Ok(())
    }

    fn commit(&mut self, _: &Medium, word: Word, durability: Durability) -> Result<(), Error> {
        let logged = self.logged;
        let touched = self.take_touched();
        // Cards that wait by themselves see also to what was only stored. Where one alone holds the
        // log and the processor waits for an answer anyway, it asks the others before the commit
        // instead: as many round trips, and no commit on them, whose acceptance the last answer
        // would wait for.
        let asks = logged.len() == 1 && durability == Durability::Durable;
        let committing = if self.delayed && !asks { touched } else { logged };
        self.commit_on(committing, touched, durability, |all, member, participants, durability| {
            let word = Word { participants, ..word };
            all.on(member, |part, medium| part.commit(medium, word, durability))
        })
    }

    fn persist(&mut self, _: &Medium) -> Result<(), Error> {
        let members = std::mem::take(&mut self.unacknowledged);
        self.on_all(members, |part, medium| part.persist(medium))
    }

    fn comes_behind_commits(&self, offset: u64, bytes: u64) -> bool {
        let members: Mask = self.stripes.pieces(offset, bytes).map(|(piece, _)| piece.member).collect();
        let behind =
            self.unacknowledged.without(members).is_empty() && (self.unacknowledged.is_empty() || members.len() == 1);
        behind || planted(Fault::ReusesFreedSpaceAtOnce)
    }

    fn sync(&mut self, _: &Medium) -> Result<(), Error> {
        self.unacknowledged = Mask::default();
        self.on_all(self.all(), |part, medium| part.sync(medium))
    }

    fn waits(&self) -> bool {
        self.parts.iter().any(|part| part.waits())
    }

    fn send(&mut self, _: &Medium) -> Result<(), Error> {
        for member in self.all().iter() {
            if self.parts[member].waits() {
                // The barrier that follows fences this member also where nothing is stored on it
                // before.
                self.members[member].sent();
                self.on(member, |part, medium| part.send(medium))?;
            }
        }
        Ok(())
    }

    fn barrier(&mut self, _: &Medium) -> Result<(), Error> {
        for member in self.all().iter() {
            if self.parts[member].waits() || self.members[member].awaits_fence() {
                self.on(member, |part, medium| part.barrier(medium))?;
            }
        }
        Ok(())
    }

    fn publish(&mut self, _: &Medium, publication: Publication<'_>, durability: Durability) -> Result<(), Error> {
        let (committing, touched) = (members_of(publication.entries), self.take_touched());
        self.commit_on(committing, touched, durability, |all, member, participants, durability| {
            let entries = entries_of(publication.entries, member);
            let values = values_of(publication.entries, publication.values, member);
            let committed = Word { participants, ..publication.committed };
            let own = Publication { committed, entries: &entries, values: &values, ..publication };
            all.on(member, |part, medium| part.publish(medium, own, durability))
        })
    }

    fn writes_around_the_cache(&self) -> bool {
        self.parts[0].writes_around_the_cache()
    }

    fn stores(&mut self, _: &Medium, lines: Range<u64>) -> Result<(), Error> {
        let stripes = self.stripes;
        for (piece, _) in stripes.pieces(lines.start, lines.end - lines.start) {
            let own = piece.offset..piece.offset + piece.bytes;
            self.on(piece.member, |part, medium| part.stores(medium, own))?;
        }
        Ok(())
    }

    fn settle(&mut self, _: &Medium) -> Result<(), Error> {
        self.on_all(self.all(), |part, medium| part.settle(medium))
    }

    fn shadow_copy(&mut self, _: &Medium, from: u64, to: u64, dirty: bool) -> Result<(), Error> {
        let (member, from, to) = self.pages(from, to);
        self.logged.insert(member);
        self.on(member, |part, medium| part.shadow_copy(medium, from, to, dirty))
    }

    fn begin_shadow_copy(&mut self, _: &Medium, from: u64, to: u64) -> Result<(), Error> {
        let (member, from, to) = self.pages(from, to);
        self.logged.insert(member);
        self.on(member, |part, medium| part.begin_shadow_copy(medium, from, to))
    }

    fn restore(&mut self, _: &Medium, entries: &[Entry], txid: u64) -> Result<(), Error> {
        for member in members_of(entries).iter() {
            let own = entries_of(entries, member);
            self.on(member, |part, medium| part.restore(medium, &own, txid))?;
        }
        Ok(())
    }

    fn verify(&mut self, drain: bool) -> Result<(), Error> {
        self.on_all(self.all(), |part, _| part.verify(drain))
    }

    /// Those of the member that was verified least often.
    fn verifications(&self) -> u64 {
        self.parts.iter().map(|part| part.verifications()).min().unwrap_or(0)
    }

    fn close(&mut self) -> Result<(), Error> {
        // Every member is closed, whatever becomes of another.
        let closed: Vec<_> = self.parts.iter_mut().map(|part| part.close()).collect();
        closed.into_iter().collect()
    }
}
