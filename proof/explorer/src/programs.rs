//! The nine programs of the paper's evaluation, as `workloads` has them with their models and
//! invariants.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::marker::PhantomData;
use std::sync::OnceLock;

use nearpm::prelude::*;
use nearpm_workloads::programs::ycsb::Mix;
use nearpm_workloads::programs::{Inputs, Program, Rows, Setup, Workload};
use nearpm_workloads::store::{Store as Transactions, Transaction};
use nearpm_workloads::{Fault, Map, Value, ops};

use crate::body::Body;
use crate::explored::Explored;
use crate::pools::Open;
use nearpm_subjects::Op;

/// Keys that operations on a map choose from.
const KEYS: u64 = 24;
/// Entries that a map has at the beginning: a few more split a node of the B+tree and let the hash
/// map grow.
const ENTRIES: u64 = 14;
/// Transactions of each program that operations choose from.
const CHOICES: usize = 16;

/// A program as it is explored.
pub trait Explorable {
    /// What it must hold.
    type Rows: Clone + Default + Hash + PartialEq;
    /// Makes what transactions work on, and sets the root.
    fn create(store: &dyn Transactions) -> Result<(), Error>;
    /// Does an operation below the root, and in the model.
    fn apply(tx: &mut dyn Transaction, root: u64, rows: &mut Self::Rows, op: &Op) -> Result<(), Error>;
    /// Reads everything and checks every invariant on the way.
    fn contents(tx: &mut dyn Transaction, root: u64) -> Result<Self::Rows, Fault>;
}

/// Insertions, updates and removals, on one of the four maps: what `Map` offers.
pub struct Entries<M>(PhantomData<fn() -> M>);

/// The numbers of an operation, as one of a map.
fn read_op(op: &Op) -> ops::Op {
    let key = u64::from(op.key) % KEYS;
    if op.kind % 4 == 3 { ops::Op::Remove(key) } else { ops::Op::Insert(key, ops::value_of(key, op.value.into())) }
}

fn do_on<M: Map>(map: M, tx: &mut dyn Transaction, op: &ops::Op) -> Result<(), Error> {
    match op {
        ops::Op::Insert(key, value) => map.insert(tx, *key, value).map(drop),
        ops::Op::Remove(key) => map.remove(tx, *key).map(drop),
        ops::Op::Get(key) => map.get(tx, *key).map(drop),
    }
}

impl<M: Map> Explorable for Entries<M> {
    type Rows = BTreeMap<u64, Value>;

    fn create(store: &dyn Transactions) -> Result<(), Error> {
        store.transaction(&mut |tx| {
            let map = M::create(tx)?;
            tx.set_root(map.offset())
        })?;
        // Every other key, so that there are neighbours to be inserted.
        (0..ENTRIES).map(|i| 2 * i % KEYS + 2 * i / KEYS).try_for_each(|key| {
            store.transaction(&mut |tx| {
                let map = M::at(tx.root()?);
                map.insert(tx, key, &ops::value_of(key, key)).map(drop)
            })
        })
    }

    fn apply(tx: &mut dyn Transaction, root: u64, rows: &mut Self::Rows, op: &Op) -> Result<(), Error> {
        let op = read_op(op);
        ops::apply(rows, &op);
        do_on(M::at(root), tx, &op)
    }

    fn contents(tx: &mut dyn Transaction, root: u64) -> Result<Self::Rows, Fault> {
        M::at(root).contents(tx)
    }
}

/// One of the programs that have requests of their own, by its place in [`Program::ALL`]. An
/// operation chooses one of [`CHOICES`] transactions, and of programs with records whether it makes
/// a new one.
pub struct Requests<const N: usize>;

/// The program with transactions of a mix, made once.
fn workload(number: usize, mix: Mix) -> &'static dyn Workload {
    static MADE: [[OnceLock<Box<dyn Workload>>; 2]; Program::ALL.len()] = [const { [const { OnceLock::new() }; 2] }; _];
    let setup = Setup { inputs: Inputs::Corrected, seed: 1, count: CHOICES, share: Setup::SMALLEST, mix };
    &**MADE[number][usize::from(mix == Mix::W1)].get_or_init(|| Program::ALL[number].make(&setup))
}

impl<const N: usize> Explorable for Requests<N> {
    type Rows = Rows;

    fn create(store: &dyn Transactions) -> Result<(), Error> {
        workload(N, Mix::W1).create(store)
    }

    fn apply(tx: &mut dyn Transaction, root: u64, rows: &mut Rows, op: &Op) -> Result<(), Error> {
        // Both mixes begin with the same records.
        let program = workload(N, if op.kind.is_multiple_of(2) { Mix::W1 } else { Mix::Wtail });
        let number = op.value as usize % CHOICES;
        program.model(rows, number);
        program.apply(tx, root, number)
    }

    fn contents(tx: &mut dyn Transaction, root: u64) -> Result<Rows, Fault> {
        workload(N, Mix::W1).contents(tx, root)
    }
}

/// A program in a pool of any kind; what is stored is the offset of its root.
pub struct Nine<P>(PhantomData<fn() -> P>);

/// What a program holds. Values are long, so that a text names but a digest of them.
#[derive(Clone, Default, PartialEq)]
pub struct Known<R>(R);

impl<R: Hash> fmt::Debug for Known<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        write!(f, "rows with digest {:016x}", hasher.finish())
    }
}

impl<P: Explorable> Explored for Nine<P> {
    type Stored = u64;
    type Model = Known<P::Rows>;

    fn create(pool: &Open, at: Ptr<u64>) -> Result<(), Error> {
        P::create(&InPool { pool, root: at })
    }

    fn apply<S: Store>(tx: &mut S, at: Ptr<u64>, model: &mut Self::Model, op: &Op) -> Result<(), Error> {
        let root = tx.get(at)?;
        P::apply(&mut Writing { tx, root: at }, root, &mut model.0, op)
    }

    fn contents(from: &impl Load, at: Ptr<u64>) -> Result<Self::Model, Error> {
        let root = from.get(at)?;
        match P::contents(&mut Reading { from, root: at }, root) {
            Ok(rows) => Ok(Known(rows)),
            Err(Fault::Library(error)) => Err(error),
            Err(Fault::Damage(damage)) => Err(Error::abort(damage.to_string())),
        }
    }
}

/// A pool, as programs want it while they make their data.
struct InPool<'a> {
    pool: &'a Open,
    root: Ptr<u64>,
}

impl Transactions for InPool<'_> {
    fn transaction(&self, body: &mut dyn FnMut(&mut dyn Transaction) -> Result<(), Error>) -> Result<(), Error> {
        self.pool.tx(&mut Making { root: self.root, body })
    }
}

struct Making<'a> {
    root: Ptr<u64>,
    body: &'a mut dyn FnMut(&mut dyn Transaction) -> Result<(), Error>,
}

impl Body for Making<'_> {
    fn run<S: Store>(&mut self, tx: &mut S) -> Result<(), Error> {
        (self.body)(&mut Writing { tx, root: self.root })
    }
}

/// A transaction of a pool, as programs want it. Their root is a word in the pool's.
struct Writing<'a, S> {
    tx: &'a mut S,
    root: Ptr<u64>,
}

impl<S: Store> Transaction for Writing<'_, S> {
    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.tx.read(offset, data)
    }
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.tx.write(offset, data)
    }
    fn declare(&mut self, offset: u64, bytes: u64) -> Result<(), Error> {
        self.tx.declare(offset..offset + bytes)
    }
    fn alloc(&mut self, bytes: u64) -> Result<u64, Error> {
        self.tx.alloc_bytes(bytes)
    }
    fn free(&mut self, offset: u64) -> Result<(), Error> {
        self.tx.free_object(offset)
    }
    fn root(&mut self) -> Result<u64, Error> {
        self.tx.get(self.root)
    }
    fn set_root(&mut self, offset: u64) -> Result<(), Error> {
        self.tx.set(self.root, offset)
    }
}

/// A pool that is only read.
struct Reading<'a, L> {
    from: &'a L,
    root: Ptr<u64>,
}

fn refused() -> Error {
    Error::abort("a check must not write")
}

impl<L: Load> Transaction for Reading<'_, L> {
    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.from.read(offset, data)
    }
    fn write(&mut self, _: u64, _: &[u8]) -> Result<(), Error> {
        Err(refused())
    }
    fn declare(&mut self, _: u64, _: u64) -> Result<(), Error> {
        Err(refused())
    }
    fn alloc(&mut self, _: u64) -> Result<u64, Error> {
        Err(refused())
    }
    fn free(&mut self, _: u64) -> Result<(), Error> {
        Err(refused())
    }
    fn root(&mut self) -> Result<u64, Error> {
        self.from.get(self.root)
    }
    fn set_root(&mut self, _: u64) -> Result<(), Error> {
        Err(refused())
    }
}
