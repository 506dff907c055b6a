//! The baselines that are no pools with a mechanism: lean undo logging in place, and a working
//! copy, each against the programs' models; and the former behind power cuts, so that it is no
//! baseline that pays for less than it promises.

mod cuts;

use cuts::{Survivor, survivors};
use nearpm::direct::DirectPool;
use nearpm::memory::{Memory, TestMemory, VolatileMemory};
use nearpm::{Error, Options};
use nearpm_workloads::programs::ycsb::Mix;
use nearpm_workloads::programs::{Inputs, Program, Rows, Setup, Workload};
use nearpm_workloads::run::{self, Progress};
use nearpm_workloads::store::{Lean, Store};

const LOG_BYTES: u64 = 64 << 10;

fn small(program: Program, seed: u64) -> Box<dyn Workload> {
    program.make(&Setup { inputs: Inputs::Corrected, seed, count: 24, share: Setup::SMALLEST, mix: Mix::W1 })
}

/// Bytes of a store of a program.
fn bytes(program: &dyn Workload) -> u64 {
    (2 * program.bytes() + (1 << 20)).next_multiple_of(1 << 20)
}

fn apply(store: &dyn Store, program: &dyn Workload, number: usize) -> Result<(), Error> {
    store.transaction(&mut |tx| {
        let root = tx.root()?;
        program.apply(tx, root, number)
    })
}

/// What a store holds; nothing before it has a root.
fn rows(store: &dyn Store, program: &dyn Workload) -> Option<Rows> {
    let mut found = None;
    let read = store.transaction(&mut |tx| {
        let root = tx.root()?;
        found = (root != 0).then(|| program.contents(tx, root).expect("the structure is whole"));
        Ok(())
    });
    read.expect("it can be read");
    found
}

/// Makes a program, applies its transactions and aborts some between them.
fn agrees_with_the_model(store: &dyn Store, program: &dyn Workload, name: &str) {
    program.create(store).expect("it fits");
    for number in 0..program.count() {
        if number % 5 == 2 {
            let abort = store.transaction(&mut |tx| {
                let root = tx.root()?;
                program.apply(tx, root, number)?;
                Err(Error::abort("to be taken back"))
            });
            assert!(abort.is_err(), "{name}");
        }
        apply(store, program, number).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(rows(store, program) == Some(program.after(number + 1)), "{name} after {number}");
    }
}

#[test]
fn lean_undo_agrees_with_the_models_and_is_there_when_opened_again() {
    for program in Program::ALL {
        let (name, program) = (program.name(), small(program, 1));
        let memory = VolatileMemory::new(bytes(&*program) as usize);
        let lean = Lean::create(memory, LOG_BYTES).expect("it fits");
        agrees_with_the_model(&lean, &*program, name);
        let counts = lean.counts();
        assert!(counts.entries > 0 && counts.fences > counts.entries / 8, "{counts:?}");
        let lean = Lean::open(lean.into_memory(), LOG_BYTES).expect("it opens");
        assert!(rows(&lean, &*program) == Some(program.after(program.count())), "{name} opened again");
        // The index knows what is free: what follows damages nothing.
        apply(&lean, &*program, 0).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut model = program.after(program.count());
        program.model(&mut model, 0);
        assert!(rows(&lean, &*program) == Some(model), "{name} goes on");
    }
}

#[test]
fn a_working_copy_agrees_with_the_models() {
    for program in Program::ALL {
        let (name, program) = (program.name(), small(program, 1));
        let memory = VolatileMemory::new((bytes(&*program) + (8 << 20)) as usize);
        let pool = DirectPool::create_in(Box::new(memory), &Options::new()).expect("it fits");
        agrees_with_the_model(&pool, &*program, name);
    }
}

/// A memory that forgets its fences, so that lean undo must lose something there.
struct Unfenced(TestMemory);

impl Memory for Unfenced {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
    fn load(&self, offset: u64, data: &mut [u8]) {
        self.0.load(offset, data);
    }
    fn store(&self, offset: u64, data: &[u8]) {
        self.0.store(offset, data);
    }
    fn write_back(&self, offset: u64, bytes: u64) {
        self.0.write_back(offset, bytes);
    }
    fn fence(&self) -> Result<(), Error> {
        Ok(())
    }
    fn drain(&self) -> Result<(), Error> {
        self.0.drain()
    }
    fn invalidate(&self, offset: u64, bytes: u64) {
        self.0.invalidate(offset, bytes);
    }
}

/// Cuts the power at many events of a program, on a memory whose lines are evicted at any time, and
/// gives how many of the cuts left something that is neither what was acknowledged nor that with
/// the transaction in flight; and how many there were.
fn lost_in_cuts<M: Memory>(program: Program, seed: u64, over: impl Fn(TestMemory) -> M) -> (usize, usize) {
    let program = small(program, seed);
    let fresh = |memory: &TestMemory| {
        let lean = Lean::create(over(memory.clone()), LOG_BYTES).expect("it fits");
        program.create(&lean).expect("it fits");
        // What the making of it has left undone is not what is tested.
        lean.memory().drain().expect("it drains");
        lean
    };
    let run = |lean: &Lean<M>, progress: &Progress| {
        let one = |number: usize| apply(lean, &*program, number);
        run::durable(program.count(), progress, one).expect("they fit");
    };
    let survivors = survivors(seed, 60, bytes(&*program) as usize, fresh, run);
    let is_lost = |survivor: &Survivor| {
        let lean = Lean::open(VolatileMemory::from_bytes(survivor.image.clone()), LOG_BYTES).expect("it opens");
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rows(&lean, &*program)));
        let is = |count: usize| found.as_ref().is_ok_and(|found| *found == Some(program.after(count)));
        !(is(survivor.acknowledged) || is(survivor.started))
    };
    (survivors.iter().filter(|survivor| is_lost(survivor)).count(), survivors.len())
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_half_done_in_lean_undo() {
    for program in [Program::Btree, Program::Hashmap, Program::Tatp, Program::Memcached, Program::Pmemkv] {
        for seed in 1..=3 {
            let (lost, cuts) = lost_in_cuts(program, seed, |memory| memory);
            assert!(cuts >= 60, "{}: {cuts} cuts", program.name());
            assert_eq!(lost, 0, "{}, seed {seed}, of {cuts} cuts", program.name());
        }
    }
}

#[test]
fn lean_undo_without_its_fences_loses_something() {
    let lost: usize = (1..=3).map(|seed| lost_in_cuts(Program::Btree, seed, Unfenced).0).sum();
    assert!(lost > 0);
}
