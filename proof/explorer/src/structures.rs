//! Runs programs on the structures, and checks what a recovery gives against every state that the
//! model was in.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nearpm::prelude::*;
use nearpm_driver::mock::MockCard;
use nearpm_workloads::programs::Program as Paper;
use nearpm_workloads::{BTree, HashMap, RbTree, SkipList};

use crate::body::{Body, Look};
use crate::card;
use crate::crash::CrashMemory;
use crate::explored::Explored;
use crate::pools::{Kind, Open};
use crate::program::{Checker, Program, Reader, Recorded, Structure, Transaction};
use crate::programs::{Entries, Nine, Requests};
use crate::quiet::quietly;
use crate::schedule::{Scheduler, run_on};
use crate::slots::Slots;
use crate::trace::{Bounds, Recorder, Trace};
use nearpm_subjects::{
    Numbers, Op, Ordered, OrderedTexts, Queue, Table, Text as OneText, TextTable, Texts as ManyTexts,
};

/// What a thread works on.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
pub struct Side<C: Persistent> {
    lock: PLock,
    subject: C,
}

/// The root of a pool: a structure for each of two threads.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
pub struct Root<C: Persistent> {
    /// Something in front, so that nothing is there by accident.
    guard: u64,
    first: Side<C>,
    second: Side<C>,
}

const GUARD: u64 = 0x6775_6172_6421;

impl Program {
    /// Runs it.
    ///
    /// # Errors
    /// It did not do what its model did.
    pub fn record(&self) -> Result<Recorded, String> {
        self.run(self.pool.rules().map(card::blank))
    }

    /// The same; a pool on a card lies on this one, which is blank.
    ///
    /// # Errors
    /// It did not do what its model did, or the card has gone.
    pub fn record_on(&self, card: MockCard) -> Result<Recorded, String> {
        self.run(Some(card))
    }

    fn run(&self, card: Option<MockCard>) -> Result<Recorded, String> {
        if self.threads() > 2 || (self.is_scheduled() && !self.pool.takes_threads()) {
            return Err("two threads at most, and those on a pool that takes them".into());
        }
        if self.threads() > 1 && self.reader.is_some() {
            return Err("a reader is the second thread".into());
        }
        record(self, card)
    }
}

/// Runs a program on its structure; a pool on a card lies on this one.
fn record(program: &Program, card: Option<MockCard>) -> Result<Recorded, String> {
    match program.structure {
        Structure::Slots => run::<Slots>(program, card),
        Structure::Vector => run::<Numbers>(program, card),
        Structure::Texts => run::<ManyTexts>(program, card),
        Structure::Text => run::<OneText>(program, card),
        Structure::HashMap => run::<Table>(program, card),
        Structure::HashMapOfTexts => run::<TextTable>(program, card),
        Structure::OrderedMap => run::<Ordered>(program, card),
        Structure::OrderedMapOfTexts => run::<OrderedTexts>(program, card),
        Structure::Queue => run::<Queue>(program, card),
        Structure::Btree => run::<Nine<Entries<BTree>>>(program, card),
        Structure::Rbtree => run::<Nine<Entries<RbTree>>>(program, card),
        Structure::Skiplist => run::<Nine<Entries<SkipList>>>(program, card),
        Structure::Hashmap => run::<Nine<Entries<HashMap>>>(program, card),
        Structure::Tpcc => run::<Nine<Requests<{ Paper::Tpcc as usize }>>>(program, card),
        Structure::Tatp => run::<Nine<Requests<{ Paper::Tatp as usize }>>>(program, card),
        Structure::Memcached => run::<Nine<Requests<{ Paper::Memcached as usize }>>>(program, card),
        Structure::Redis => run::<Nine<Requests<{ Paper::Redis as usize }>>>(program, card),
        Structure::Pmemkv => run::<Nine<Requests<{ Paper::Pmemkv as usize }>>>(program, card),
    }
}

type SideOf<S> = Ptr<Side<<S as Explored>::Stored>>;

fn side<S: Explored>(root: Ptr<Root<S::Stored>>, thread: usize) -> SideOf<S> {
    if thread == 0 { root.first() } else { root.second() }
}

/// Makes the root; gives it.
struct Setup<S: Explored>(Option<Ptr<Root<S::Stored>>>);

impl<S: Explored> Body for Setup<S> {
    fn run<T: Store>(&mut self, tx: &mut T) -> Result<(), Error> {
        let root = tx.root_or_zeroed::<Root<S::Stored>>()?;
        tx.set(root.guard(), GUARD)?;
        self.0 = Some(root);
        Ok(())
    }
}

/// A transaction on a side, and the model.
struct Change<'a, S: Explored> {
    at: SideOf<S>,
    model: &'a mut S::Model,
    transaction: &'a Transaction,
    /// Beside a reader: it may go on between two operations, as between two transactions.
    scheduler: Option<&'a Scheduler>,
}

impl<S: Explored> Body for Change<'_, S> {
    fn run<T: Store>(&mut self, tx: &mut T) -> Result<(), Error> {
        for operation in &self.transaction.operations {
            let op = Op { kind: operation.kind, key: operation.key, value: operation.value };
            S::apply(tx, self.at.subject(), self.model, &op)?;
            self.scheduler.into_iter().for_each(Scheduler::event);
        }
        if self.transaction.aborts { Err(Error::abort("taken back")) } else { Ok(()) }
    }
}

/// Everything in a side.
struct Contents<S: Explored>(usize, std::marker::PhantomData<S>);

impl<S: Explored> Look for Contents<S> {
    type Found = Option<S::Model>;
    fn look<L: Load>(&mut self, from: &L) -> Result<Option<S::Model>, Error> {
        let Some(root) = from.root::<Root<S::Stored>>()? else { return Ok(None) };
        if from.get(root.guard())? != GUARD {
            return Ok(None);
        }
        S::contents(from, side::<S>(root, self.0).subject()).map(Some)
    }
}

fn contents<S: Explored>(pool: &Open, thread: usize) -> Result<S::Model, String> {
    let found = pool.read(&mut Contents::<S>(thread, std::marker::PhantomData)).map_err(say)?;
    found.ok_or_else(|| "the root is not there".into())
}

fn say(error: Error) -> String {
    error.to_string()
}

/// Allocates, to see that nothing is given out twice.
struct Probe<'a>(&'a [(u64, u64)]);

impl Body for Probe<'_> {
    fn run<T: Store>(&mut self, tx: &mut T) -> Result<(), Error> {
        for bytes in [48, 200] {
            let object = tx.alloc_bytes(bytes)?;
            let overlaps = |&(other, usable): &(u64, u64)| object < other + usable && other < object + bytes;
            assert!(!self.0.iter().any(overlaps), "{object:#x} is given out twice");
        }
        Err(Error::abort("it was but a question"))
    }
}

/// A state of a thread.
#[derive(Clone)]
struct State<M> {
    model: M,
    /// Objects that were allocated in the pool.
    objects: usize,
    /// States of the other thread that were over when the transaction began that led here: whoever
    /// finds this one finds these, too (C4).
    behind: usize,
}

struct Check<S: Explored> {
    kind: Kind,
    /// Objects that are in no thread's structure, where these tell how many they have.
    others: Option<usize>,
    /// For each thread, in order.
    states: Vec<Vec<State<S::Model>>>,
}

impl<S: Explored> Checker for Check<S> {
    fn check(&self, memory: &CrashMemory, bounds: &Bounds, probe: bool) -> Result<(), String> {
        let pool = self.kind.open(memory.clone()).map_err(say)?;
        memory.recovered();
        let objects = pool.objects().map_err(say)?;
        if let Some(pair) = objects.windows(2).find(|pair| pair[0].0 + pair[0].1 > pair[1].0) {
            return Err(format!("the objects at {:#x} and {:#x} overlap", pair[0].0, pair[1].0));
        }
        let (mut in_use, mut possible) = (self.others, Vec::new());
        for (thread, (states, &(low, high))) in self.states.iter().zip(bounds).enumerate() {
            let found = contents::<S>(&pool, thread)?;
            in_use = in_use.zip(S::objects(&found)).map(|(others, own)| others + own);
            // A thread's states were counted while the other one made objects.
            let same = |s: &State<S::Model>| s.model == found && (self.states.len() > 1 || s.objects == objects.len());
            if low > high {
                return Err(format!("state {low} was acknowledged when a crash could still leave none behind {high}"));
            }
            let those: Vec<usize> = (low..=high).filter(|&number| same(&states[number])).collect();
            if those.is_empty() {
                let count = objects.len();
                return Err(format!("none of the states {low} to {high}: {found:?}, {count} objects allocated"));
            }
            possible.push(those);
        }
        if let [first, second] = &possible[..] {
            let fit = |&a: &usize, &b: &usize| self.states[0][a].behind <= b && self.states[1][b].behind <= a;
            if !first.iter().any(|a| second.iter().any(|b| fit(a, b))) {
                return Err(format!(
                    "a transaction is there, and one that was over when it began is not: states {first:?} and {second:?}"
                ));
            }
        }
        if let Some(in_use) = in_use.filter(|&in_use| in_use != objects.len()) {
            return Err(format!("{} objects are allocated, and {in_use} are in use", objects.len()));
        }
        if !probe {
            return Ok(());
        }
        match pool.tx(&mut Probe(&objects)) {
            Err(Error::Aborted(_) | Error::Full { .. }) => Ok(()),
            other => Err(format!("a transaction after the recovery: {other:?}")),
        }
    }
}

/// A program while it runs.
struct Running<'a, S: Explored> {
    pool: &'a Open,
    memory: &'a Recorder,
    root: Ptr<Root<S::Stored>>,
    bounds: &'a Mutex<Bounds>,
    /// Where a reader runs beside it.
    beside: Option<&'a Scheduler>,
    /// States of each thread that are over.
    over: [AtomicUsize; 2],
    /// Transactions that did not fit.
    refused: AtomicUsize,
    /// Snapshots that a transaction ran beside.
    overlapped: AtomicUsize,
}

impl<S: Explored> Running<'_, S> {
    fn allow(&self, thread: usize, change: impl FnOnce(&mut (usize, usize))) {
        let mut bounds = self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut bounds[thread]);
        self.memory.allow(bounds.clone());
    }

    fn has_two_threads(&self) -> bool {
        self.bounds.lock().unwrap_or_else(PoisonError::into_inner).len() > 1
    }

    /// Runs a transaction; gives the model after it.
    fn transaction(&self, transaction: &Transaction, thread: usize, model: &S::Model) -> Result<S::Model, String> {
        let at = side::<S>(self.root, thread);
        let mut after = model.clone();
        let mut body = Change::<S> { at, model: &mut after, transaction, scheduler: self.beside };
        let done =
            if self.has_two_threads() { self.pool.locked(at.lock(), &mut body) } else { self.pool.tx(&mut body) };
        match done {
            Ok(()) => Ok(after),
            Err(Error::Aborted(_)) => Ok(model.clone()),
            // What does not fit is taken back.
            Err(Error::Full { .. } | Error::TooLarge { .. }) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                Ok(model.clone())
            }
            Err(error) => Err(say(error)),
        }
    }

    /// Runs the transactions of a thread; gives its states.
    fn thread(
        &self,
        transactions: &[Transaction],
        thread: usize,
        first: State<S::Model>,
    ) -> Result<Vec<State<S::Model>>, String> {
        let mut states = vec![first];
        for transaction in transactions.iter().filter(|tx| tx.thread == thread) {
            self.beside.into_iter().for_each(Scheduler::event);
            self.allow(thread, |bounds| bounds.1 += 1);
            let behind = self.over[1 - thread].load(Ordering::Relaxed);
            let model = self.transaction(transaction, thread, &states[states.len() - 1].model)?;
            self.over[thread].store(states.len(), Ordering::Relaxed);
            states.push(State { model, objects: self.pool.objects().map_err(say)?.len(), behind });
            if self.pool.is_acknowledged() {
                // Who can tell it from the one before? Of two threads' objects nobody knows whose.
                let last = &states[states.len() - 1];
                let is_same = |state: &&State<S::Model>| {
                    state.model == last.model && (self.has_two_threads() || state.objects == last.objects)
                };
                let same = states.iter().rev().take_while(is_same).count();
                self.allow(thread, |bounds| bounds.0 = bounds.1 + 1 - same);
            }
        }
        Ok(states)
    }
}

/// What a reader has found twice in one snapshot, and which states it may be: those from the last
/// that was over before to the last that had begun behind.
struct Seen<M> {
    found: [M; 2],
    possible: (usize, usize),
}

/// Snapshots that a reader takes, one after the other.
const SNAPSHOTS: usize = 2;

/// Lets the scheduler decide who goes on before each load.
struct AtEachLoad<'a, L> {
    from: &'a L,
    scheduler: &'a Scheduler,
}

impl<L: Load> Load for AtEachLoad<'_, L> {
    fn get<T: Persistent>(&self, at: Ptr<T>) -> Result<T, Error> {
        self.scheduler.event();
        self.from.get(at)
    }
    fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.scheduler.event();
        self.from.read(offset, data)
    }
    fn root_object(&self) -> Result<u64, Error> {
        self.from.root_object()
    }
}

/// The pool by one transaction a load, of which nothing makes one version.
struct ByLoads<'a>(&'a DirectPool);

impl Load for ByLoads<'_> {
    fn get<T: Persistent>(&self, at: Ptr<T>) -> Result<T, Error> {
        self.0.read(|from| from.get(at))
    }
    fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.0.read(|from| from.read(offset, data))
    }
    fn root_object(&self) -> Result<u64, Error> {
        self.0.read(|from| from.root_object())
    }
}

impl<S: Explored> Running<'_, S> {
    /// Reads all of the structure twice from each of a few snapshots.
    fn read(&self, reader: Reader, scheduler: &Scheduler) -> Result<Vec<Seen<S::Model>>, String> {
        let Open::Direct(pool) = self.pool else { return Err("snapshots are of direct pools".into()) };
        let begun = || self.bounds.lock().unwrap_or_else(PoisonError::into_inner)[0].1;
        (0..SNAPSHOTS)
            .map(|_| {
                let over = self.over[0].load(Ordering::Relaxed);
                let (found, begun) = match reader {
                    Reader::Snapshots => {
                        let snapshot = pool.snapshot().map_err(say)?;
                        let begun = begun();
                        let look = || snapshot.read(|from| look::<S>(from, scheduler)).map_err(say);
                        ([look()?, look()?], begun)
                    }
                    Reader::Loads => {
                        let look = || look::<S>(&ByLoads(pool), scheduler).map_err(say);
                        ([look()?, look()?], begun())
                    }
                };
                let [Some(first), Some(second)] = found else { return Err("the reader finds no root".into()) };
                let is_beside = over < begun || over < self.over[0].load(Ordering::Relaxed);
                self.overlapped.fetch_add(usize::from(is_beside), Ordering::Relaxed);
                Ok(Seen { found: [first, second], possible: (over, begun) })
            })
            .collect()
    }
}

/// All of the first side, load by load.
fn look<S: Explored>(from: &impl Load, scheduler: &Scheduler) -> Result<Option<S::Model>, Error> {
    Contents::<S>(0, std::marker::PhantomData).look(&AtEachLoad { from, scheduler })
}

/// Makes sure that each snapshot has shown one version, and one that it may.
fn one_version<S: Explored>(seen: &[Seen<S::Model>], states: &[State<S::Model>]) -> Result<(), String> {
    seen.iter().try_for_each(|Seen { found: [first, second], possible: (low, high) }| {
        if first != second {
            return Err(format!("one snapshot shows {first:?}, and later {second:?}"));
        }
        match states[*low..=(*high).min(states.len() - 1)].iter().any(|state| state.model == *first) {
            true => Ok(()),
            false => Err(format!("a snapshot shows none of the states {low} to {high}: {first:?}")),
        }
    })
}

/// Runs the threads of a program by a schedule.
fn threads<S: Explored + Send + Sync>(
    running: &Running<'_, S>,
    program: &Program,
    scheduler: &Scheduler,
    first: &State<S::Model>,
) -> Result<Vec<Vec<State<S::Model>>>, String>
where
    S::Model: Send + Sync,
{
    if let Some(reader) = program.reader {
        let (states, seen) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                run_on(1);
                scheduler.enter();
                let states = running.thread(&program.transactions, 0, first.clone());
                scheduler.leave();
                states
            });
            let reader = scope.spawn(move || {
                run_on(2);
                scheduler.enter();
                // A snapshot that is torn may have pointers to anywhere.
                let read = || running.read(reader, scheduler);
                let seen = quietly(|| catch_unwind(AssertUnwindSafe(read)));
                scheduler.leave();
                seen.unwrap_or_else(|_| Err("the reader panics".into()))
            });
            (writer.join(), reader.join())
        });
        let (states, seen) = (states.map_err(|_| "the writer panicked")??, seen.map_err(|_| "the reader panicked")??);
        one_version::<S>(&seen, &states)?;
        return Ok(vec![states]);
    }
    if program.threads() == 1 {
        return Ok(vec![running.thread(&program.transactions, 0, first.clone())?]);
    }
    // Read by none of them: a read waits for the other one's first transaction.
    let second = State { model: contents::<S>(running.pool, 1)?, ..first.clone() };
    std::thread::scope(|scope| {
        let start = |thread: usize, first: State<S::Model>| {
            scope.spawn(move || {
                run_on(thread as u32 + 1);
                scheduler.enter();
                let states = running.thread(&program.transactions, thread, first);
                scheduler.leave();
                states
            })
        };
        let threads = [start(0, first.clone()), start(1, second)];
        threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked")?).collect()
    })
}

fn run<S: Explored + Send + Sync + 'static>(program: &Program, card: Option<MockCard>) -> Result<Recorded, String>
where
    S::Model: Send + Sync,
{
    let kind = program.pool;
    let scheduler = Arc::new(Scheduler::new(program.schedule.clone()));
    let more = program.structure.more_bytes();
    let bytes = kind.most_bytes() + more;
    let memory = Recorder::new(bytes).beginning(kind.bytes() + more).scheduled(scheduler.clone());
    let memory = if kind.is_one_domain() { memory.one_domain() } else { memory };
    let memory = match kind.rules().zip(card) {
        Some((rules, card)) => memory.on_card(card, rules),
        None => memory,
    };
    let pool = kind.create(memory.clone()).map_err(say)?;
    let mut setup = Setup::<S>(None);
    pool.tx(&mut setup).map_err(say)?;
    let root = setup.0.expect("the transaction has run");
    (0..program.threads()).try_for_each(|thread| S::create(&pool, side::<S>(root, thread).subject())).map_err(say)?;
    let bounds = Mutex::new(vec![(0, 0); program.threads()]);
    let running = Running::<S> {
        pool: &pool,
        memory: &memory,
        root,
        bounds: &bounds,
        beside: program.reader.is_some().then_some(&*scheduler),
        over: Default::default(),
        refused: AtomicUsize::new(0),
        overlapped: AtomicUsize::new(0),
    };
    let mut model = contents::<S>(&pool, 0)?;
    for transaction in &program.before {
        model = running.transaction(transaction, 0, &model)?;
    }
    pool.wait_durable().map_err(say)?;
    let first = State { model, objects: pool.objects().map_err(say)?.len(), behind: 0 };
    memory.allow(vec![(0, 0); program.threads()]);
    let mut others = Some(first.objects);
    for thread in 0..program.threads() {
        let own = S::objects(&contents::<S>(&pool, thread)?);
        others = others.zip(own).map(|(all, own)| all - own);
    }
    let states = threads(&running, program, &scheduler, &first)?;
    for (thread, states) in states.iter().enumerate() {
        if contents::<S>(&pool, thread)? != states[states.len() - 1].model {
            return Err(format!("thread {thread} sees something else than its model"));
        }
    }
    let (refused, overlapped) = (running.refused.into_inner(), running.overlapped.into_inner());
    // Closing is cut, too.
    pool.close().map_err(say)?;
    memory.allow(states.iter().map(|states| (states.len() - 1, states.len() - 1)).collect());
    let mut trace = memory.trace();
    program.leave_out.into_iter().try_for_each(|number| leave_out(&mut trace, number))?;
    let checker = Box::new(Check::<S> { kind, others, states });
    Ok(Recorded { trace, words: bytes as usize / 8, checker, turns: scheduler.turns(), refused, overlapped })
}

/// Takes a step out of a trace, as if the library had forgotten it, or as if a command were lost.
fn leave_out(trace: &mut Trace, number: usize) -> Result<(), String> {
    let begin = trace.bounds.first().map_or(0, |first| first.0);
    let at = (begin..trace.steps.len()).filter(|&i| trace.steps[i].event.is_asked_for()).nth(number);
    let at = at.ok_or_else(|| format!("there are no {number} steps that could be left out"))?;
    trace.steps.remove(at);
    trace.bounds.iter_mut().filter(|bounds| bounds.0 > at).for_each(|bounds| bounds.0 -= 1);
    Ok(())
}
