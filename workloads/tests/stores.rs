//! The nine programs on what is no pool by offsets: lean undo logging, and direct pools on a
//! working copy and in place, each against the programs' models and behind power cuts, so that none
//! is a baseline that pays for less than it promises.

mod cuts;

use cuts::{Survivor, survivors};
use nearpm::direct::DirectPool;
use nearpm::memory::{Image, Memory, TestMemory, VolatileMemory};
use nearpm::{Error, Mode, Options};
use nearpm_workloads::programs::ycsb::Mix;
use nearpm_workloads::programs::{Inputs, Program, Rows, Setup, Workload};
use nearpm_workloads::run::{self, Progress};
use nearpm_workloads::store::{Lean, Store};

const LOG_BYTES: u64 = 64 << 10;

/// Views of a direct pool.
const MODES: [Mode; 2] = [Mode::WorkingCopy, Mode::InPlace];

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

/// Bytes of a direct pool for a program.
fn pool_bytes(program: &dyn Workload) -> usize {
    (bytes(program) + (2 << 20)) as usize
}

#[test]
fn direct_pools_agree_with_the_models_in_both_modes_and_are_there_when_opened_again() {
    for (program, mode) in Program::ALL.into_iter().flat_map(|program| MODES.map(|mode| (program, mode))) {
        let (name, program) = (format!("{} {mode:?}", program.name()), small(program, 1));
        let memory = TestMemory::new(pool_bytes(&*program));
        let options = Options::new().mode(mode);
        let pool = DirectPool::create_in(Box::new(memory.clone()), &options).expect("it fits");
        assert_eq!(pool.mode(), mode);
        agrees_with_the_model(&pool, &*program, &name);
        pool.close().expect("it closes");
        let pool = DirectPool::open_in(Box::new(memory), &options).expect("it opens");
        assert!(rows(&pool, &*program) == Some(program.after(program.count())), "{name} opened again");
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

/// Cuts the power at many events of a program on a store, on a memory whose lines are evicted at
/// any time, and gives how many of the cuts left something that is neither what was acknowledged
/// nor that with the transaction in flight; and how many there were.
fn lost_in_cuts<S: Store>(
    (program, bytes): (&dyn Workload, usize),
    seed: u64,
    create: impl Fn(TestMemory) -> S,
    open: impl Fn(&Image) -> Box<dyn Store>,
) -> (usize, usize) {
    let fresh = |memory: &TestMemory| {
        let store = create(memory.clone());
        program.create(&store).expect("it fits");
        // What the making of it has left undone is not what is tested.
        memory.drain().expect("it drains");
        store
    };
    let run = |store: &S, progress: &Progress| {
        let one = |number: usize| apply(store, program, number);
        run::durable(program.count(), progress, one).expect("they fit");
    };
    let survivors = survivors(seed, 60, bytes, fresh, run);
    let is_lost = |survivor: &Survivor| {
        let store = open(&survivor.image);
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rows(&*store, program)));
        let is = |count: usize| found.as_ref().is_ok_and(|found| *found == Some(program.after(count)));
        !(is(survivor.acknowledged) || is(survivor.started))
    };
    (survivors.iter().filter(|survivor| is_lost(survivor)).count(), survivors.len())
}

fn lost_by_lean_undo<M: Memory + 'static>(program: Program, seed: u64, over: fn(TestMemory) -> M) -> (usize, usize) {
    let program = small(program, seed);
    let create = |memory| Lean::create(over(memory), LOG_BYTES).expect("it fits");
    let open = |image: &Image| -> Box<dyn Store> {
        Box::new(Lean::open(VolatileMemory::from_bytes(image.clone()), LOG_BYTES).expect("it opens"))
    };
    lost_in_cuts((&*program, bytes(&*program) as usize), seed, create, open)
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_half_done_in_lean_undo() {
    for program in [Program::Btree, Program::Hashmap, Program::Tatp, Program::Memcached, Program::Pmemkv] {
        for seed in 1..=3 {
            let (lost, cuts) = lost_by_lean_undo(program, seed, |memory| memory);
            assert!(cuts >= 60, "{}: {cuts} cuts", program.name());
            assert_eq!(lost, 0, "{}, seed {seed}, of {cuts} cuts", program.name());
        }
    }
}

#[test]
fn lean_undo_without_its_fences_loses_something() {
    let lost: usize = (1..=3).map(|seed| lost_by_lean_undo(Program::Btree, seed, Unfenced).0).sum();
    assert!(lost > 0);
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_half_done_in_direct_pools_of_both_modes() {
    for (program, mode) in Program::ALL.into_iter().flat_map(|program| MODES.map(|mode| (program, mode))) {
        let (name, program) = (program.name(), small(program, 1));
        let options = Options::new().mode(mode);
        let create = |memory| DirectPool::create_in(Box::new(memory), &options).expect("it fits");
        let open = |image: &Image| -> Box<dyn Store> {
            let memory = TestMemory::from_image(image.clone());
            Box::new(DirectPool::open_in(Box::new(memory), &options).expect("it opens"))
        };
        let (lost, cuts) = lost_in_cuts((&*program, pool_bytes(&*program)), 1, create, open);
        assert!(cuts >= 60, "{name} {mode:?}: {cuts} cuts");
        assert_eq!(lost, 0, "{name} {mode:?}, of {cuts} cuts");
    }
}
