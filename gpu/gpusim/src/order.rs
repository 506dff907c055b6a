//! The persistency model as an oracle: which stores have to be durable when another is.
//!
//! Threads' stores are ordered by oFence and dFence, and from releases to the acquires that read
//! them where both scopes include both threads; releases hand on what their thread has acquired
//! (the model `SbrpCumulative`). Stores to the same bytes are ordered as they were executed. A set
//! of durable stores is allowed if with each store all that come before it are in it.

use std::collections::HashMap;
use std::sync::Arc;

use nearpm_ptx::Scope;

use crate::journal::StoreId;

/// Stores that come before: of each thread so many, its first ones.
pub(crate) type Clock = Arc<HashMap<u32, u32>>;

#[derive(Clone, Debug, Default)]
struct Thread {
    /// Before what it stores next.
    before: Clock,
    stores: Vec<StoreId>,
    /// Its first stores that are durable, without a gap.
    durable: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub address: u64,
    pub data: Box<[u8]>,
    pub thread: u32,
    /// Which of its thread's stores it is.
    pub position: u32,
    pub before: Clock,
    /// The last store to the same bytes before it.
    pub same: Option<StoreId>,
    /// What was durable when it was executed, as dFences had waited for it.
    pub waited: Clock,
    /// Stores of launches that had ended, which are all before it.
    pub launches_before: StoreId,
    durable: bool,
}

#[derive(Clone, Debug)]
struct Release {
    scope: Scope,
    block: u64,
    clock: Clock,
}

/// A durable set that the model does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "at cycle {at} a store of thread {thread} is durable, and a store of thread {missing} that comes before it is not"
)]
pub struct Violation {
    /// Core cycle.
    pub at: u64,
    /// Thread of the grid whose store is durable.
    pub thread: u32,
    /// Thread whose store is missing.
    pub missing: u32,
}

/// Who executes an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub thread: u32,
    pub block: u64,
}

/// What launches have stored, and in which order it has to become durable.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    threads: HashMap<u32, Thread>,
    pub stores: Vec<Store>,
    launches_before: StoreId,
    waited: Clock,
    /// The first stores that are durable, without a gap.
    durable: usize,
    releases: HashMap<u64, Release>,
    /// The last store to each word of four bytes.
    words: HashMap<u64, StoreId>,
}

impl Order {
    fn thread(&mut self, who: Who) -> &mut Thread {
        self.threads.entry(who.thread).or_default()
    }

    /// What comes before a thread's next ordered operation.
    fn all(&mut self, who: Who) -> Clock {
        let thread = self.thread(who);
        let count = thread.stores.len() as u32;
        if count == 0 || thread.before.get(&who.thread) == Some(&count) {
            return thread.before.clone();
        }
        let mut clock = (*thread.before).clone();
        clock.insert(who.thread, count);
        Arc::new(clock)
    }

    /// The end of a launch: all that it has stored comes before what later ones store.
    pub fn end_launch(&mut self) {
        self.launches_before = self.stores.len() as StoreId;
        self.threads.values_mut().for_each(|thread| thread.before = Clock::default());
        self.releases.clear();
        self.waited = Clock::default();
    }

    pub fn store(&mut self, who: Who, address: u64, data: &[u8]) -> StoreId {
        let id = self.stores.len() as StoreId;
        let mut same = None;
        for word in address / 4..(address + data.len() as u64).div_ceil(4) {
            same = self.words.insert(word, id).max(same);
        }
        self.releases.remove(&address);
        let launches_before = self.launches_before;
        let thread = self.thread(who);
        let position = thread.stores.len() as u32;
        thread.stores.push(id);
        let before = thread.before.clone();
        let (data, thread, waited) = (data.into(), who.thread, self.waited.clone());
        self.stores.push(Store {
            address,
            data,
            thread,
            position,
            before,
            same,
            waited,
            launches_before,
            durable: false,
        });
        id
    }

    /// A store to volatile memory: no release is read there any more.
    pub fn overwrite(&mut self, address: u64) {
        if !self.releases.is_empty() {
            self.releases.remove(&address);
        }
    }

    pub fn fence(&mut self, who: Who) {
        let clock = self.all(who);
        self.thread(who).before = clock;
    }

    /// A dFence has waited until all is durable that comes before what its thread stores next.
    pub fn waited(&mut self, who: Who) {
        let durable = self.all(who);
        let mut waited = (*self.waited).clone();
        for (&thread, &count) in durable.iter() {
            let known = waited.entry(thread).or_default();
            *known = count.max(*known);
        }
        self.waited = Arc::new(waited);
    }

    /// A release, before its own store.
    pub fn release(&mut self, who: Who, scope: Scope) -> ReleaseMark {
        let clock = self.all(who);
        // The released variable, where it is persistent, comes after.
        let kept = std::mem::replace(&mut self.thread(who).before, clock.clone());
        ReleaseMark { release: Release { scope, block: who.block, clock }, kept }
    }

    /// The release's own store has been made; where it is to persistent memory, it is handed on,
    /// too.
    pub fn released(&mut self, who: Who, address: u64, mark: ReleaseMark) {
        let ReleaseMark { mut release, kept } = mark;
        let thread = self.thread(who);
        thread.before = kept;
        let count = thread.stores.len() as u32;
        if count > release.clock.get(&who.thread).copied().unwrap_or(0) {
            let mut clock = (*release.clock).clone();
            clock.insert(who.thread, count);
            release.clock = Arc::new(clock);
        }
        self.releases.insert(address, release);
    }

    pub fn acquire(&mut self, who: Who, address: u64, scope: Scope) {
        let Some(release) = self.releases.get(&address) else { return };
        if release.block != who.block && (release.scope == Scope::Block || scope == Scope::Block) {
            return;
        }
        let from = release.clock.clone();
        let thread = self.thread(who);
        if from.iter().all(|(other, count)| thread.before.get(other).is_some_and(|known| known >= count)) {
            return;
        }
        let mut clock = (*thread.before).clone();
        for (&other, &count) in from.iter() {
            let known = clock.entry(other).or_default();
            *known = count.max(*known);
        }
        thread.before = Arc::new(clock);
    }

    /// These stores are durable now. Says whether the model allows it.
    pub fn durable(&mut self, at: u64, stores: &[StoreId]) -> Result<(), Violation> {
        for &id in stores {
            self.stores[id as usize].durable = true;
        }
        for &id in stores {
            let thread = self.threads.entry(self.stores[id as usize].thread).or_default();
            while thread.stores.get(thread.durable).is_some_and(|&id| self.stores[id as usize].durable) {
                thread.durable += 1;
            }
        }
        while self.stores.get(self.durable).is_some_and(|store| store.durable) {
            self.durable += 1;
        }
        let mut checked: Option<&Clock> = None;
        for &id in stores {
            let store = &self.stores[id as usize];
            let violation = |missing| Violation { at, thread: store.thread, missing };
            if let Some(same) = store.same.map(|same| &self.stores[same as usize]).filter(|same| !same.durable) {
                return Err(violation(same.thread));
            }
            if self.durable < store.launches_before as usize {
                return Err(violation(self.stores[self.durable].thread));
            }
            if checked.is_some_and(|clock| Arc::ptr_eq(clock, &store.before)) {
                continue;
            }
            let missing = |(other, count): &(&u32, &u32)| {
                self.threads.get(other).is_none_or(|thread| thread.durable < **count as usize)
            };
            if let Some((&other, _)) = store.before.iter().find(missing) {
                return Err(violation(other));
            }
            checked = Some(&store.before);
        }
        Ok(())
    }
}

/// A release whose own store is yet to come.
pub(crate) struct ReleaseMark {
    release: Release,
    kept: Clock,
}
