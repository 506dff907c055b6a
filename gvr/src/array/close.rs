//! Closing a version: what the owner of each part does while all ranks wait.
//!
//! All ranks meet, then each closes its own part, then they meet again and tell each other where
//! their logs are now. Between the meetings nobody puts or gets, so that an owner may do with its
//! log what it likes; cursors that are open hold on to their versions.

use super::core::{Core, Version};
use super::geometry::{PRESSURE, RESERVE};
use super::nodes;
use super::options::{Fault, Layout};
use super::tree::Tree;
use crate::error::{Error, Result};
use crate::rma::{GATHER_WORDS, Work};

/// A block that changed in the version that is closed, and where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    pub block: u64,
    pub logical: u64,
}

/// Checksums of the blocks that changed.
#[derive(Clone, Copy)]
pub(crate) enum Sums<'s> {
    /// They are to be computed, if they are wanted.
    Unknown,
    /// Sealing has computed them.
    Known(&'s [u32]),
    /// Sealing will, while the program goes on.
    Later,
}

/// What a rank tells of its part at the second meeting.
pub(crate) const TOLD: usize = 3;

impl Core {
    /// What this rank says at the first meeting: its error since the last version (0: none), and
    /// the oldest version that it reads.
    pub(crate) fn opening(&self) -> [u64; 2] {
        let mut state = self.state.borrow_mut();
        let pinned = state.pins.keys().next().copied().unwrap_or(u64::MAX);
        [state.failed.take().unwrap_or(0), pinned]
    }

    /// Blocks of this rank's part that changed in the current version, rising. Called between the
    /// meetings.
    pub(crate) fn changed(&self) -> Result<Vec<Changed>> {
        self.changed_of(self.me())
    }

    /// As [`Core::changed`], of a rank's part that is not closed yet.
    pub(crate) fn changed_of(&self, rank: usize) -> Result<Vec<Changed>> {
        if !self.is_log() || self.is_paper() {
            return Ok(Vec::new());
        }
        let start = self.state.borrow().peers[rank].tail;
        let end = self.tail_of(rank)?;
        let mut owners = vec![0; (end - start) as usize];
        let here = (self.geometry.capacity - self.geometry.place(start)).min(end - start) as usize;
        self.rma.load_many(self.place(rank, self.geometry.owner(start)), &mut owners[..here])?;
        if here < owners.len() {
            self.rma.load_many(self.place(rank, self.geometry.owner(0)), &mut owners[here..])?;
        }
        let mut changed = Vec::with_capacity(owners.len());
        for (owner, logical) in owners.into_iter().zip(start..) {
            if owner != 0 && self.rma.load_still(self.place(rank, self.geometry.entry(owner - 1)))? == logical {
                changed.push(Changed { block: owner - 1, logical });
            }
        }
        changed.sort_unstable_by_key(|changed| changed.block);
        Ok(changed)
    }

    fn own_tail(&self) -> Result<u64> {
        self.tail_of(self.me())
    }

    /// Where a rank's log ends; puts that found it full may have moved the tail beyond.
    fn tail_of(&self, rank: usize) -> Result<u64> {
        let limit = self.limit(&self.state.borrow().peers[rank]);
        Ok(self.rma.load(self.place(rank, 0))?.min(limit))
    }

    /// Whether cursors hold versions for which there may be no room. The same on all ranks.
    fn crowded(&self, pinned: u64) -> bool {
        let state = self.state.borrow();
        if self.is_log() && !self.is_paper() {
            return state.versions.len() as u64 > self.options.kept();
        }
        self.overdue(&state, 1) > 0 && state.versions.front().is_some_and(|oldest| oldest.number >= pinned)
    }

    /// Whether there is room for another version's tree, where cursors hold old ones. Copies have
    /// no room for another version.
    fn check_room(&self, pinned: u64, changed: &[Changed]) -> Result<()> {
        if !self.crowded(pinned) {
            return Ok(());
        }
        let state = self.state.borrow();
        let most = (changed.len() as u64 * u64::from(self.geometry.levels)).min(nodes::nodes(self.geometry.blocks));
        if self.is_log() && !self.is_paper() && state.nodes.available() >= most {
            return Ok(());
        }
        Err(Error::Pinned { rank: self.me(), version: state.version, pinned })
    }

    /// Versions more than are kept, with those that are about to come.
    fn overdue(&self, state: &super::core::State, coming: u64) -> u64 {
        (state.versions.len() as u64 + coming).saturating_sub(self.options.kept())
    }

    /// Closes this rank's part of the version and gives what it tells the others.
    pub(crate) fn close(&self, pinned: u64, changed: &[Changed], sums: Sums<'_>) -> Result<[u64; TOLD]> {
        match self.options.layout {
            Layout::Flat => self.close_flat()?,
            Layout::Log { .. } if self.is_paper() => self.close_paper()?,
            Layout::Log { .. } => self.close_log(changed, sums)?,
        }
        // Blocks are sealed as differences to the version before.
        let held = matches!(sums, Sums::Later) && !self.options.planted(Fault::ReuseBeforeSealed);
        let pinned = if held { pinned.min(self.newest()) } else { pinned };
        self.drop_overdue(pinned, 1);
        if self.is_log() && !self.is_paper() {
            self.clean(changed.len() as u64)?;
            self.rma.flush(self.me())?;
        }
        if self.reach.is_some() && self.is_log() {
            let (tail, head) = {
                let state = self.state.borrow();
                (state.peers[self.me()].tail, state.peers[self.me()].head)
            };
            self.note_opened(tail, head)?;
            self.rma.flush(self.me())?;
        }
        let state = self.state.borrow();
        let peer = &state.peers[self.me()];
        Ok([peer.tail, peer.head, state.root])
    }

    /// Drops versions that are kept no more, but none that a cursor reads. A version that is closed
    /// is counted when its tree is made: what that does not use of the oldest version's goes with
    /// it.
    fn drop_overdue(&self, pinned: u64, coming: u64) {
        let mut state = self.state.borrow_mut();
        let pinned = if self.options.planted(Fault::NoEpochs) { u64::MAX } else { pinned };
        while self.overdue(&state, coming) > 0 && state.versions.front().is_some_and(|oldest| oldest.number < pinned) {
            state.versions.pop_front();
            state.nodes.drop_oldest();
        }
    }

    fn close_flat(&self) -> Result<()> {
        let me = self.me();
        let copy = self.geometry.copy(self.state.borrow().version);
        self.rma.copy_own(self.base, self.base + copy, self.shape.part_bytes())?;
        self.rma.work(Work::StoreNow { bytes: self.shape.part_bytes() })?;
        self.rma.flush(me)
    }

    /// All entries are copied (III-C).
    fn close_paper(&self) -> Result<()> {
        let me = self.me();
        let (slot, tail) = (self.state.borrow().version % (self.options.kept() + 1), self.own_tail()?);
        self.store_later(tail - self.state.borrow().peers[me].tail)?;
        let (from, to) = (self.base + self.geometry.entry(0), self.base + self.geometry.old_entry(slot, 0));
        self.rma.copy_own(from, to, 8 * self.geometry.blocks)?;
        self.rma.flush(me)?;
        let state = &mut *self.state.borrow_mut();
        (state.peers[me].tail, state.root) = (tail, slot + 1);
        Ok(())
    }

    /// What blocks replaced goes to where old versions are stored (III-D1d).
    fn store_later(&self, blocks: u64) -> Result<()> {
        let room = (self.geometry.capacity - self.geometry.blocks) * self.geometry.block;
        self.rma.work(Work::StoreLater { bytes: blocks * self.geometry.block, room })
    }

    /// Number of the newest version that was closed.
    fn newest(&self) -> u64 {
        self.state.borrow().versions.back().map_or(u64::MAX, |newest| newest.number)
    }

    /// Whether the log has so little room that what a cut is made of cannot be held while the
    /// program goes on. A log of the size that is taken by default has room for one version more
    /// than it keeps.
    fn tight(&self) -> Result<bool> {
        if self.options.planted(Fault::ReuseBeforeSealed) {
            return Ok(false);
        }
        let pressure = self.rma.load(self.place(self.me(), PRESSURE))? != 0;
        let state = self.state.borrow();
        let used = self.own_tail()? - state.peers[self.me()].head;
        let free = (self.geometry.capacity - RESERVE).saturating_sub(used);
        Ok(pressure || self.options.log_blocks != 0 && free < self.geometry.blocks)
    }

    fn close_log(&self, changed: &[Changed], sums: Sums<'_>) -> Result<()> {
        let me = self.me();
        let tail = self.own_tail()?;
        self.store_later(changed.len() as u64)?;
        let tree = Tree { rma: &*self.rma, geometry: &self.geometry, base: self.place(me, 0) };
        let entries: Vec<(u64, u64)> = changed.iter().map(|changed| (changed.block, changed.logical)).collect();
        {
            let state = &mut *self.state.borrow_mut();
            state.root = tree.update(&mut state.nodes, state.root, &entries)?;
            state.nodes.close();
            state.peers[me].tail = tail;
        }
        if !self.options.planted(Fault::StaleClaims) {
            let mut words: Vec<u64> = changed.iter().map(|changed| changed.block / 64).collect();
            words.dedup();
            for word in words {
                self.rma.replace_many(self.place(me, self.geometry.claims(word)), &[0])?;
            }
        }
        match sums {
            Sums::Unknown => self.note_sums(changed),
            Sums::Known(sums) => {
                self.note_given_sums(changed, sums);
                Ok(())
            }
            Sums::Later => Ok(()),
        }
    }

    /// What all ranks told at the second meeting: the version is closed.
    pub(crate) fn closed(&self, label: &str, told: impl Iterator<Item = [u64; TOLD]>) -> u64 {
        let mut state = self.state.borrow_mut();
        let mut roots = Vec::with_capacity(state.peers.len());
        for (peer, [tail, head, root]) in state.peers.iter_mut().zip(told) {
            (peer.tail, peer.head) = (tail, head);
            roots.push(root);
        }
        let number = state.version;
        state.versions.push_back(Version { number, label: label.to_owned(), roots });
        state.version += 1;
        number
    }

    /// As if the array had had `version` versions before: for one that is read from pools.
    pub(crate) fn begin_at(&self, version: u64) {
        self.state.borrow_mut().version = version;
    }
}

/// What ranks say at the first meeting of a version.
struct Opening {
    /// Of each array the oldest version that some rank reads.
    pinned: Vec<u64>,
    /// A log of some rank has little room.
    tight: bool,
}

/// The first meeting: nothing is done on any rank if one has had an error, or could not seal the
/// cut before.
fn open(rma: &dyn crate::rma::Rma, arrays: &[&Core], sealer: Option<&dyn Sealer>) -> Result<Opening> {
    let arrived = sealer.map_or(Ok(()), Sealer::arrived);
    if let Err(error @ (Error::Stopped { .. } | Error::DeadRank { .. })) = arrived {
        return Err(error);
    }
    let tight =
        sealer.is_some() && arrays.iter().map(|array| array.tight()).collect::<Result<Vec<_>>>()?.contains(&true);
    let mut opening: Vec<u64> = arrays.iter().flat_map(|array| array.opening()).collect();
    opening.extend([arrived.as_ref().map_or_else(Error::code, |()| 0), u64::from(tight)]);
    let all = gather(rma, &opening)?;
    let said = |at: usize| all.chunks_exact(opening.len()).map(move |said| [said[2 * at], said[2 * at + 1]]);
    let failed = |at: usize| said(at).enumerate().find(|(_, [code, _])| *code != 0);
    if let Some((rank, [code, _])) = (0..arrays.len()).find_map(failed) {
        return Err(Error::of_code(code, rank));
    }
    arrived?;
    if let Some((rank, [code, _])) = failed(arrays.len()) {
        return Err(Error::of_code(code, rank));
    }
    let oldest = |at: usize| said(at).map(|[_, pinned]| pinned).min().unwrap_or(u64::MAX);
    let pinned = (0..arrays.len()).map(oldest).collect();
    Ok(Opening { pinned, tight: said(arrays.len()).any(|[_, tight]| tight != 0) })
}

/// Closes the current version of several arrays together: one cut, in which all of them are as of
/// the same moment. All ranks call it with the same arrays and label.
pub(crate) fn version_inc(arrays: &[&Core], label: &str, sealer: Option<&dyn Sealer>) -> Result<u64> {
    let Some(first) = arrays.first() else {
        return Err(Error::option("a version of no arrays cannot be made: give at least one"));
    };
    check_label(label)?;
    if arrays.iter().enumerate().any(|(at, array)| arrays[..at].iter().any(|other| std::ptr::eq(*other, *array))) {
        return Err(Error::option("a cut names an array twice: give each once; nothing was closed"));
    }
    let rma = &*first.rma;
    for array in arrays {
        array.wait()?;
    }
    let Opening { pinned, tight } = open(rma, arrays, sealer)?;
    if let Some(sealer) = sealer {
        sealer.settled();
    }
    let changed: Vec<Vec<Changed>> = arrays.iter().map(|array| array.changed()).collect::<Result<_>>()?;
    agree_on_room(arrays, &pinned, &changed)?;
    let later = sealer.filter(|sealer| sealer.in_background() && !tight);
    let at_once = if later.is_some() { None } else { sealer };
    let sums = at_once.map(|sealer| sealer.seal(arrays, &changed, label)).transpose()?;
    if let Some(sealer) = later {
        sealer.prepare(arrays, &changed, label)?;
    }
    let mut told = Vec::new();
    for (at, ((array, pinned), changed)) in arrays.iter().zip(pinned).zip(&changed).enumerate() {
        let sums = match &sums {
            _ if later.is_some() => Sums::Later,
            Some(sums) => Sums::Known(&sums[at]),
            None => Sums::Unknown,
        };
        told.extend(array.close(pinned, changed, sums)?);
    }
    let all = gather(rma, &told)?;
    let mut number = 0;
    for (at, array) in arrays.iter().enumerate().rev() {
        let of = |said: &[u64]| [said[TOLD * at], said[TOLD * at + 1], said[TOLD * at + 2]];
        number = array.closed(label, all.chunks_exact(told.len()).map(of));
    }
    at_once.map_or(Ok(()), Sealer::sealed_by_all)?;
    later.map_or(Ok(()), Sealer::begin)?;
    Ok(number)
}

/// Makes versions durable: at once, between the meetings, or in the background, one cut at a time.
/// Cleaning is done in `version_inc` alone, which waits for the cut before: what is read in the
/// background does not change meanwhile.
pub(crate) trait Sealer {
    /// Waits until this rank has sealed the cut that is on its way, if there is one. Where it has
    /// failed, the next call tries again.
    fn arrived(&self) -> Result<()>;
    /// All ranks have sealed it.
    fn settled(&self);
    /// Whether cuts are sealed while the program goes on.
    fn in_background(&self) -> bool;
    /// Seals this rank's part, and returns when all ranks have; where one cannot, all take it back
    /// and get an error. Gives the checksums of the blocks that changed.
    fn seal(&self, arrays: &[&Core], changed: &[Vec<Changed>], label: &str) -> Result<Vec<Vec<u32>>>;
    /// All ranks have sealed: what is kept no more can go.
    fn sealed_by_all(&self) -> Result<()>;
    /// Notes what is to be sealed in the background, before any rank closes its part.
    fn prepare(&self, arrays: &[&Core], changed: &[Vec<Changed>], label: &str) -> Result<()>;
    /// Begins to seal what was noted: all ranks have closed their parts.
    fn begin(&self) -> Result<()>;
    /// Waits until the newest cut is durable on all ranks; every rank gets an error if one has one.
    fn version_wait(&self) -> Result<()>;
}

/// Labels are kept in pools, in fields of fixed length.
pub(crate) fn check_label(label: &str) -> Result<()> {
    let most = super::core::MOST_LABEL;
    if label.len() <= most {
        return Ok(());
    }
    Err(Error::option(format!("a label of {} bytes is too long: give up to {most}", label.len())))
}

/// What every rank says, one after the other, however much it is.
fn gather(rma: &dyn crate::rma::Rma, words: &[u64]) -> Result<Vec<u64>> {
    if words.len() <= GATHER_WORDS {
        return rma.allgather(words);
    }
    let mut all = vec![0; words.len() * rma.ranks()];
    for (at, piece) in words.chunks(GATHER_WORDS).enumerate() {
        let given = rma.allgather(piece)?;
        for (said, piece) in all.chunks_exact_mut(words.len()).zip(given.chunks_exact(piece.len())) {
            said[at * GATHER_WORDS..][..piece.len()].copy_from_slice(piece);
        }
    }
    Ok(all)
}

/// Drops what cursors held for too long and hold no more. Where some still do, all ranks have to
/// have room for another version.
fn agree_on_room(arrays: &[&Core], pinned: &[u64], changed: &[Vec<Changed>]) -> Result<()> {
    arrays.iter().zip(pinned).for_each(|(array, pinned)| array.drop_overdue(*pinned, 0));
    if !arrays.iter().zip(pinned).any(|(array, pinned)| array.crowded(*pinned)) {
        return Ok(());
    }
    let mine = arrays
        .iter()
        .zip(pinned)
        .zip(changed)
        .try_for_each(|((array, pinned), changed)| array.check_room(*pinned, changed));
    let code = mine.as_ref().map_or_else(Error::code, |()| 0);
    let all = arrays[0].rma.allgather(&[code])?;
    mine?;
    all.iter().position(|code| *code != 0).map_or(Ok(()), |rank| Err(Error::of_code(all[rank], rank)))
}
