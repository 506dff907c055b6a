//! What orders persists, thread by thread: the rules of the model, on the run that is followed.

use std::collections::{BTreeSet, HashMap};

use super::clock::Clock;
use super::finding::{Finding, Flaw};
use crate::Scope;

/// Who does something, and where.
#[derive(Clone, Copy, Debug)]
pub struct Who {
    /// Number of the thread in the grid.
    pub thread: u64,
    /// Number of its block.
    pub block: u64,
    /// Line in the PTX text.
    pub line: u32,
}

/// What a store hands on: to threads of its block, and to all others.
#[derive(Clone, Debug, Default)]
struct Handed {
    block: Clock,
    device: Clock,
}

/// The last store to a word.
#[derive(Clone, Debug)]
struct Last {
    by: Who,
    /// Its number among the persists of its thread; 0 for one to volatile memory.
    persist: u32,
    release: Option<Scope>,
    handed: Handed,
    /// Whether fences alone make it a release.
    fenced: Option<Scope>,
}

/// A persist that a thread has read without being ordered behind it.
#[derive(Clone, Copy, Debug)]
struct Read {
    by: u64,
    persist: u32,
    store: u32,
    load: u32,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    persists: u32,
    before: Clock,
    fenced: Handed,
    widest: Option<Scope>,
    /// What its loads have read, by the scope that a later fence must have.
    heard: Handed,
    reads: Vec<Read>,
    /// A plain load has read a release: the load's line, the release's, and what that would have
    /// handed on.
    unacquired: Vec<(u32, u32, Clock)>,
    barriers: usize,
}

/// The order so far.
#[derive(Default)]
pub struct Order {
    threads: HashMap<u64, Thread>,
    words: HashMap<u64, Last>,
    /// Of each block and barrier: what those that came hand on.
    barriers: HashMap<(u64, usize), Clock>,
    /// Of each thread: persists that are durable.
    durable: Clock,
    /// What was found.
    pub findings: BTreeSet<Finding>,
}

impl Order {
    /// A store to the word at an address.
    pub fn store(&mut self, who: Who, address: u64, persistent: bool, release: Option<Scope>) {
        let thread = self.threads.entry(who.thread).or_default();
        let mut persist = 0;
        let mut covered = thread.before.clone();
        covered.raise(who.thread, thread.persists);
        if persistent {
            thread.persists += 1;
            persist = thread.persists;
        }
        let mut handed = thread.fenced.clone();
        if let Some(scope) = release {
            let mut with_flag = covered;
            with_flag.raise(who.thread, persist.max(thread.persists));
            handed.block.join(&with_flag);
            if scope >= Scope::Device {
                handed.device.join(&with_flag);
            }
        }
        let fenced = thread.widest;
        if persistent {
            self.look(who);
            self.look_at_overwritten(who, address);
        }
        self.words.insert(address, Last { by: who, persist, release, handed, fenced });
    }

    /// A load of the word at an address.
    pub fn load(&mut self, who: Who, address: u64, acquire: Option<Scope>) {
        let Some(last) = self.words.get(&address) else { return };
        if last.by.thread == who.thread {
            return;
        }
        let same_block = last.by.block == who.block;
        let thread = self.threads.entry(who.thread).or_default();
        if let Some(scope) = acquire {
            let flaw = match last.release {
                None if last.fenced.is_none() => Some((Flaw::MissingRelease, last.by.line, who.line)),
                None => None,
                Some(release) if !release.holds(same_block) => Some((Flaw::NarrowRelease, last.by.line, who.line)),
                Some(_) if !scope.holds(same_block) => Some((Flaw::NarrowAcquire, who.line, last.by.line)),
                Some(_) => None,
            };
            if let Some((flaw, line, other)) = flaw {
                self.findings.insert(Finding { flaw, line, other, load: 0 });
            }
            match (same_block, scope >= Scope::Device) {
                (true, _) => thread.before.join(&last.handed.block),
                (false, true) => thread.before.join(&last.handed.device),
                (false, false) => {}
            }
        } else if last.release.is_some() {
            let handed = if same_block { &last.handed.block } else { &last.handed.device };
            thread.unacquired.push((who.line, last.by.line, handed.clone()));
        }
        if same_block {
            thread.heard.block.join(&last.handed.block);
        }
        thread.heard.device.join(&last.handed.device);
        let unordered = last.persist > thread.before.count(last.by.thread).max(self.durable.count(last.by.thread));
        if last.persist != 0 && unordered {
            let read = Read { by: last.by.thread, persist: last.persist, store: last.by.line, load: who.line };
            thread.reads.push(read);
        }
    }

    /// A fence: `orders` within the thread, makes patterns at `scope`, and of a `dFence` what is
    /// before is durable.
    pub fn fence(&mut self, who: Who, scope: Option<Scope>, durable: bool) {
        let thread = self.threads.entry(who.thread).or_default();
        if let Some(scope) = scope {
            thread.before.join(&thread.heard.block);
            if scope >= Scope::Device {
                thread.before.join(&thread.heard.device);
            }
            thread.unacquired.clear();
        }
        thread.before.raise(who.thread, thread.persists);
        if let Some(scope) = scope {
            thread.fenced.block = thread.before.clone();
            if scope >= Scope::Device {
                thread.fenced.device = thread.before.clone();
            }
            thread.widest = thread.widest.max(Some(scope));
        }
        if durable {
            self.durable.join(&thread.before);
        }
    }

    /// A thread comes to the barrier of its block. What fences have covered is heard by who fences
    /// behind it; the barrier opens when all have come, so that all have left their part when the
    /// first goes on.
    pub fn arrive(&mut self, who: Who) {
        let thread = self.threads.entry(who.thread).or_default();
        let number = thread.barriers;
        thread.barriers += 1;
        self.barriers.entry((who.block, number)).or_default().join(&thread.fenced.block);
    }

    /// The first thing that a thread does behind its last barrier.
    pub fn go_on(&mut self, who: Who) {
        let Some(thread) = self.threads.get_mut(&who.thread).filter(|thread| thread.barriers > 0) else { return };
        if let Some(joint) = self.barriers.get(&(who.block, thread.barriers - 1)) {
            thread.heard.block.join(joint);
        }
    }

    /// Looks at what a thread that persists has read.
    fn look(&mut self, who: Who) {
        let Some(thread) = self.threads.get_mut(&who.thread) else { return };
        thread.reads.retain(|read| thread.before.count(read.by) < read.persist);
        for read in &thread.reads {
            let finding = Finding { flaw: Flaw::Unordered, line: who.line, other: read.store, load: read.load };
            self.findings.insert(finding);
        }
        let missed = !thread.reads.is_empty();
        for (load, release, handed) in std::mem::take(&mut thread.unacquired) {
            if missed || !thread.before.covers(&handed) {
                self.findings.insert(Finding { flaw: Flaw::MissingAcquire, line: load, other: release, load: 0 });
            }
        }
    }

    fn look_at_overwritten(&mut self, who: Who, address: u64) {
        let Some(last) = self.words.get(&address) else { return };
        let before = self.threads.get(&who.thread).map_or(0, |thread| thread.before.count(last.by.thread));
        let ordered = last.persist <= before.max(self.durable.count(last.by.thread));
        if last.by.block != who.block && last.persist != 0 && !ordered {
            let finding = Finding { flaw: Flaw::TwoWriters, line: who.line, other: last.by.line, load: 0 };
            self.findings.insert(finding);
        }
    }
}
