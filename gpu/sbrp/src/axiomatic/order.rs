//! The persist memory order of an execution, and what its waits have made durable.
//!
//! Three points of each event are related: where it collects what is before it ([`GIVES`]), where
//! what it has acquired takes effect ([`TAKES`]), and where a store is durable ([`STORE`]). An
//! ordering operation collects what its thread did; a release gives it to an acquire, which takes
//! it, and what follows in the thread is behind that.

use super::candidate::Candidate;
use super::matrix::Matrix;
use crate::Scope;
use crate::litmus::Action;
use crate::rules::{Rule, Semantics};

const GIVES: usize = 0;
const TAKES: usize = 1;
const STORE: usize = 2;

/// What the axioms say of an execution.
pub struct Order {
    /// The stores to PM, as events.
    pub persists: Vec<usize>,
    /// Of each: the others that are `pmo` before it, as bits of their place in `persists`.
    pub before: Vec<u32>,
    /// What must be durable.
    pub waited_for: u32,
}

/// The order of an execution in a model.
pub fn of(candidate: &Candidate, semantics: Semantics) -> Order {
    let axioms = Axioms { c: candidate, s: semantics };
    let persists: Vec<usize> = axioms.events().filter(|e| candidate.is_persist(*e)).collect();
    let points = axioms.points();
    let related = axioms.persist_order(&points);
    let bits = |is: &dyn Fn(usize) -> bool| {
        persists.iter().enumerate().filter(|(_, p)| is(**p)).fold(0, |set, (i, _)| set | 1 << i)
    };
    let before = persists.iter().map(|b| bits(&|a| related.has(a, *b))).collect();
    let waiting = axioms.events().filter(|e| axioms.waits(*e));
    let waited_for = waiting.fold(0, |set, e| set | bits(&|a| axioms.is_covered(&points, a, e)));
    let told = |a: usize| candidate.test.threads[candidate.events[a].thread].launch < usize::from(candidate.ended);
    let drained = if semantics.keeps(Rule::KernelEndDrains) { bits(&told) } else { 0 };
    Order { persists, before, waited_for: waited_for | drained }
}

struct Axioms<'c> {
    c: &'c Candidate<'c>,
    s: Semantics,
}

impl Axioms<'_> {
    fn events(&self) -> std::ops::Range<usize> {
        0..self.c.events.len()
    }

    fn action(&self, event: usize) -> Action {
        self.c.events[event].action
    }

    /// `pmo` among events.
    fn persist_order(&self, points: &Matrix) -> Matrix {
        if self.s.is_strict() && self.s.keeps(Rule::PersistsFollowVisibility) {
            return self.c.before.clone();
        }
        let mut related = Matrix::new(self.c.events.len());
        for a in self.events() {
            for b in self.events() {
                let ordered = !self.s.is_epoch() && !self.s.is_strict() && points.has(3 * a + STORE, 3 * b + STORE);
                if ordered || self.coherent(a, b) || self.is_durable_before(points, a, b) {
                    related.add(a, b);
                }
            }
        }
        related.close();
        related
    }

    /// Whether `b` happens behind a wait, or an end of a launch, that has made `a` durable.
    fn is_durable_before(&self, points: &Matrix, a: usize, b: usize) -> bool {
        if !(self.c.is_persist(a) && self.c.is_persist(b)) {
            return false;
        }
        let launch = |event: usize| self.c.test.threads[self.c.events[event].thread].launch;
        let drained = self.s.keeps(Rule::KernelEndDrains) && launch(a) < launch(b);
        let waited = |e: usize| {
            // The store of a release that waits is itself behind its wait.
            self.waits(e) && (e == b || self.c.before.has(e, b)) && self.is_covered(points, a, e)
        };
        drained || self.events().any(waited)
    }

    /// Whether two stores to one word become durable in the order of their visibility.
    fn coherent(&self, a: usize, b: usize) -> bool {
        let (Action::Store { word, .. }, Action::Store { word: other, .. }) = (self.action(a), self.action(b)) else {
            return false;
        };
        let place = |event: usize| self.c.visible[word].iter().position(|e| *e == event);
        self.s.keeps(Rule::Coherence)
            && !self.s.is_strict()
            && word == other
            && (self.s.is_epoch() || self.c.same_block(a, b))
            && place(a) < place(b)
    }

    /// The relation among the points of the events.
    fn points(&self) -> Matrix {
        let mut points = Matrix::new(3 * self.c.events.len());
        let cumulative = self.s.keeps(Rule::Cumulativity);
        for a in self.events() {
            if cumulative {
                points.add(3 * a + TAKES, 3 * a + GIVES);
            }
            if self.orders_its_thread(a) {
                points.add(3 * a + GIVES, 3 * a + TAKES);
            }
            if matches!(self.action(a), Action::Store { release: Some(_), .. }) && self.s.keeps(Rule::ReleaseIsAPersist)
            {
                points.add(3 * a + GIVES, 3 * a + STORE);
            }
            for b in self.events() {
                if self.c.is_before_in_thread(a, b) {
                    if self.c.is_persist(a) {
                        points.add(3 * a + STORE, 3 * b + GIVES);
                    }
                    // Volatile stores are visible at once: nothing is before or behind their being
                    // durable. Epochs order by waiting: what a thread has observed its barriers
                    // cover, and its stores do not hand it on.
                    if self.c.is_persist(b) && !self.s.is_epoch() {
                        points.add(3 * a + TAKES, 3 * b + STORE);
                    }
                    if cumulative {
                        points.add(3 * a + TAKES, 3 * b + GIVES);
                    }
                }
                if self.coherent(a, b) {
                    points.add(3 * a + STORE, 3 * b + STORE);
                }
            }
        }
        self.synchronise(&mut points);
        points.close();
        points
    }

    fn orders_its_thread(&self, event: usize) -> bool {
        match self.action(event) {
            Action::OFence | Action::DFence => self.s.keeps(Rule::OFenceOrders),
            Action::Fence(_) => self.s.keeps(Rule::FenceOrders),
            _ => false,
        }
    }

    /// From who gives to who takes.
    fn synchronise(&self, points: &mut Matrix) {
        for load in self.events() {
            let Some(store) = self.c.reads[load] else { continue };
            let same_block = self.c.same_block(store, load);
            for (gives, from) in self.giving(store) {
                for (takes, to) in self.taking(load) {
                    if from.min(to).holds(same_block) || !self.s.keeps(Rule::ScopesLimit) {
                        points.add(3 * gives + GIVES, 3 * takes + TAKES);
                        if self.c.is_persist(store) && self.s.keeps(Rule::FlagBeforeAcquirer) {
                            points.add(3 * store + STORE, 3 * takes + TAKES);
                        }
                    }
                }
            }
            if self.s.is_epoch() && self.c.is_persist(store) && self.s.keeps(Rule::BarrierCoversObserved) {
                points.add(3 * store + STORE, 3 * load + TAKES);
            }
        }
        for a in self.events() {
            for b in self.events() {
                if self.c.barrier(a).is_some() && self.c.barrier(a) == self.c.barrier(b) && self.c.same_block(a, b) {
                    self.meet(points, a, b);
                }
            }
        }
    }

    /// Two arrivals at one barrier.
    fn meet(&self, points: &mut Matrix, a: usize, b: usize) {
        if self.s.is_epoch() {
            if self.s.keeps(Rule::BarrierCoversObserved) {
                points.add(3 * a + GIVES, 3 * b + TAKES);
            }
            return;
        }
        for gives in self.events().filter(|f| self.pattern_scope(*f).is_some() && self.c.is_before_in_thread(*f, a)) {
            for takes in self.events().filter(|f| self.pattern_scope(*f).is_some() && self.c.is_before_in_thread(b, *f))
            {
                points.add(3 * gives + GIVES, 3 * takes + TAKES);
            }
        }
    }

    /// What gives to who reads a store: the release that it is, and fences before it.
    fn giving(&self, store: usize) -> Vec<(usize, Scope)> {
        let fences = self.events().filter(|f| self.c.is_before_in_thread(*f, store));
        let mut all: Vec<_> = fences.filter_map(|f| Some((f, self.pattern_scope(f)?))).collect();
        if let Action::Store { release: Some(scope), .. } = self.action(store)
            && self.s.keeps(Rule::ReleaseAcquireOrders)
        {
            all.push((store, scope));
        }
        all
    }

    /// What takes from what a load reads: the acquire that it is, and fences behind it.
    fn taking(&self, load: usize) -> Vec<(usize, Scope)> {
        let fences = self.events().filter(|f| self.c.is_before_in_thread(load, *f));
        let mut all: Vec<_> = fences.filter_map(|f| Some((f, self.pattern_scope(f)?))).collect();
        if let Action::Load { acquire: Some(scope), .. } = self.action(load)
            && self.s.keeps(Rule::ReleaseAcquireOrders)
        {
            all.push((load, scope));
        }
        all
    }

    fn pattern_scope(&self, event: usize) -> Option<Scope> {
        let scope = match self.action(event) {
            Action::Fence(scope) => Some(scope),
            Action::DFence => Some(Scope::System),
            Action::OFence => self.s.is_epoch().then_some(Scope::System),
            _ => None,
        };
        scope.filter(|_| self.s.keeps(Rule::FencePattern))
    }

    /// Whether an event ends only when persists are durable.
    fn waits(&self, event: usize) -> bool {
        let unbuffered = !self.s.is_strict() && !self.s.keeps(Rule::Buffered);
        match (self.s.is_epoch(), self.action(event)) {
            (true, Action::OFence | Action::DFence | Action::Fence(Scope::System)) => self.s.keeps(Rule::BarrierWaits),
            (true, _) => false,
            (false, Action::DFence) => self.s.keeps(Rule::DFenceWaits),
            (false, Action::OFence | Action::Fence(_)) => unbuffered,
            (false, Action::Store { release: Some(_), .. }) => unbuffered,
            _ => false,
        }
    }

    /// Whether what waits at `event` waits for the persist `a`.
    fn is_covered(&self, points: &Matrix, a: usize, event: usize) -> bool {
        if self.c.is_before_in_thread(a, event) {
            return true;
        }
        if !self.s.is_epoch() && !self.s.keeps(Rule::DFenceCoversAcquired) {
            return false;
        }
        if self.s.is_strict() {
            return self.c.before.has(a, event);
        }
        let mut taken = self.events().filter(|e| *e == event || self.c.is_before_in_thread(*e, event));
        taken.any(|e| points.has(3 * a + STORE, 3 * e + TAKES))
    }
}
