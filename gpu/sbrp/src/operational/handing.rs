//! How order is handed from thread to thread: stores, loads, fences, barriers.

use super::Machine;
use super::state::{Handed, Set, State, bit};
use crate::Scope;
use crate::litmus::Action;
use crate::rules::Rule;

impl Machine {
    /// A store becomes visible; one to PM waits from now on for what is before it.
    pub(super) fn store(&self, state: &mut State, thread: usize, id: usize, word: usize, release: Option<Scope>) {
        let own = self.own(state, thread);
        if self.stores[id].persistent {
            state.waits_for[id] = self.waits_for(state, thread, word, own, release.is_some());
            state.executed |= bit(id);
        }
        state.handed[id] = self.handed(state, thread, id, own, release);
        state.make_visible(id, word);
    }

    /// The persists that a new one to `word` waits for.
    fn waits_for(&self, state: &State, thread: usize, word: usize, own: Set, release: bool) -> Set {
        if self.semantics.is_strict() {
            return if self.keeps(Rule::PersistsFollowVisibility) { state.executed } else { 0 };
        }
        let mut set = if self.semantics.is_epoch() { 0 } else { state.threads[thread].before };
        if release && self.keeps(Rule::ReleaseIsAPersist) {
            set |= own;
        }
        if self.keeps(Rule::Coherence) {
            let ordered = |other: &usize| {
                let site = self.stores[*other];
                site.word == word && (self.semantics.is_epoch() || self.same_block(site.thread, thread))
            };
            set |= (0..self.stores.len()).filter(ordered).fold(0, |set, other| set | bit(other)) & state.executed;
        }
        set
    }

    /// What a store hands to those who read it: what the thread's fences covered, and if it
    /// releases, all.
    fn handed(&self, state: &State, thread: usize, id: usize, own: Set, release: Option<Scope>) -> Handed {
        let of = &state.threads[thread];
        let mut handed = Handed::default();
        let mut widest = None;
        if self.keeps(Rule::FencePattern) {
            handed = of.fenced;
            widest = of.widest;
        }
        if let Some(scope) = release.filter(|_| self.keeps(Rule::ReleaseAcquireOrders)) {
            let covered = self.handed_on(own, of.before);
            handed.block |= covered;
            handed.device |= if scope >= Scope::Device { covered } else { 0 };
            widest = widest.max(Some(scope));
        }
        if self.stores[id].persistent && self.keeps(Rule::FlagBeforeAcquirer) {
            handed.block |= if widest.is_some() { bit(id) } else { 0 };
            handed.device |= if widest >= Some(Scope::Device) { bit(id) } else { 0 };
        }
        handed
    }

    /// A thread has read the visible store to a word.
    pub(super) fn load(&self, state: &mut State, thread: usize, word: usize, acquire: Option<Scope>) {
        let Some(store) = state.visible_store(word) else { return };
        let mut acquired = 0;
        if let Some(scope) = acquire.filter(|_| self.keeps(Rule::ReleaseAcquireOrders)) {
            acquired = self.reaches(state, store, thread, scope);
        }
        if self.semantics.is_epoch() && self.stores[store].persistent && self.keeps(Rule::BarrierCoversObserved) {
            acquired |= bit(store);
        }
        let of = &mut state.threads[thread];
        of.before |= acquired;
        of.read |= bit(store);
    }

    /// What a store hands to a thread that acquires it at a scope.
    fn reaches(&self, state: &State, store: usize, thread: usize, scope: Scope) -> Set {
        let handed = state.handed[store];
        if self.same_block(self.stores[store].thread, thread) || !self.keeps(Rule::ScopesLimit) {
            handed.block
        } else if scope >= Scope::Device {
            handed.device
        } else {
            0
        }
    }

    /// Any fence; false if it has to wait.
    pub(super) fn fence(&self, state: &mut State, thread: usize, fence: Action) -> bool {
        let scope = self.pattern_scope(fence);
        if let Some(scope) = scope {
            let read = state.threads[thread].read;
            let heard = (0..self.stores.len()).filter(|store| read & bit(*store) != 0);
            let heard = heard.fold(state.threads[thread].heard, |set, s| set | self.reaches(state, s, thread, scope));
            state.threads[thread].before |= heard;
        }
        if self.waits(fence) && self.covered(state, thread) & !state.durable != 0 {
            return false;
        }
        let own = self.own(state, thread);
        let orders = if matches!(fence, Action::Fence(_)) { Rule::FenceOrders } else { Rule::OFenceOrders };
        let before = state.threads[thread].before;
        let of = &mut state.threads[thread];
        if let Some(scope) = scope {
            let covered = self.handed_on(own, before);
            of.fenced.block = covered;
            of.fenced.device = if scope >= Scope::Device { covered } else { of.fenced.device };
            of.widest = of.widest.max(Some(scope));
        }
        if self.keeps(orders) {
            of.before |= own;
        }
        true
    }

    /// The scope at which a fence makes releases and acquires of stores and loads; none for an
    /// `oFence`, which is about PM only.
    fn pattern_scope(&self, fence: Action) -> Option<Scope> {
        let scope = match fence {
            Action::Fence(scope) => Some(scope),
            Action::DFence => Some(Scope::System),
            _ => self.semantics.is_epoch().then_some(Scope::System),
        };
        scope.filter(|_| self.keeps(Rule::FencePattern))
    }

    fn waits(&self, fence: Action) -> bool {
        match (self.semantics.is_epoch(), fence) {
            (true, Action::Fence(scope)) => scope == Scope::System && self.keeps(Rule::BarrierWaits),
            (true, _) => self.keeps(Rule::BarrierWaits),
            (false, Action::DFence) => self.keeps(Rule::DFenceWaits),
            (false, _) => !self.semantics.is_strict() && !self.keeps(Rule::Buffered),
        }
    }

    /// What an operation of the thread that waits for durability waits for.
    pub(super) fn covered(&self, state: &State, thread: usize) -> Set {
        let before = state.threads[thread].before;
        let acquired = if self.semantics.is_epoch() {
            before
        } else if !self.keeps(Rule::DFenceCoversAcquired) {
            0
        } else if self.semantics.is_strict() {
            // All that is visible is before it.
            state.executed
        } else {
            before
        };
        self.own(state, thread) | acquired
    }

    fn handed_on(&self, own: Set, before: Set) -> Set {
        if self.keeps(Rule::Cumulativity) { own | before } else { own }
    }

    /// A thread comes to the barrier of its block; the last one opens it.
    pub(super) fn come_to_barrier(&self, state: &mut State, thread: usize) {
        state.threads[thread].at_barrier = true;
        let block: Vec<usize> = (0..state.threads.len()).filter(|other| self.same_block(*other, thread)).collect();
        if !block.iter().all(|other| state.threads[*other].at_barrier) {
            return;
        }
        let hands = |other: &usize| match self.semantics.is_epoch() {
            true => self.own(state, *other) | state.threads[*other].before,
            false => state.threads[*other].fenced.block,
        };
        let joint = block.iter().map(hands).fold(0, |set, handed| set | handed);
        for other in block {
            let of = &mut state.threads[other];
            of.at_barrier = false;
            if self.semantics.is_epoch() && self.keeps(Rule::BarrierCoversObserved) {
                of.before |= joint;
            } else if !self.semantics.is_epoch() && self.keeps(Rule::FencePattern) {
                of.heard |= joint;
            }
        }
    }

    fn same_block(&self, a: usize, b: usize) -> bool {
        let place = |thread: usize| (self.test.threads[thread].block, self.test.threads[thread].launch);
        place(a) == place(b)
    }

    fn keeps(&self, rule: Rule) -> bool {
        self.semantics.keeps(rule)
    }
}
