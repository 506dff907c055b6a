//! The same kernels on two devices: what each program leaves in persistent memory has to be the same.

use std::rc::Rc;

use anyhow::{Result, ensure};
use nearpm_gpu::{Device, Medium, ObjectKind, PmRegion};

use crate::crash::{Checkpoints, Database, LogForm, Scenario, Store, Sums, Transactions, Way};
use crate::programs::{Bfs, BlackScholes, Cfd, Digits, Dnn, Graph, Hotspot, Iterative, Mesh, Net, Srad, Stepper};
use crate::{db, kernels, prefix};

/// Parts of what a program leaves, by name.
pub type Contents = Vec<(String, Vec<u8>)>;

/// Runs a program in a region, and gives what it leaves.
type Run = Box<dyn Fn(&PmRegion) -> Result<Contents>>;

/// A small run of a program.
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// How far its numbers may be apart, of the largest of them, where its kernels use operations that PTX leaves a card some freedom in. `None`: not by a bit.
    pub within: Option<f32>,
    bytes: u64,
    run: Run,
}

impl Program {
    fn of(name: &'static str, bytes: u64, run: impl Fn(&PmRegion) -> Result<()> + 'static) -> Program {
        let run = move |region: &PmRegion| {
            run(region)?;
            contents(region)
        };
        Program { name, within: None, bytes, run: Box::new(run) }
    }

    fn scenario(name: &'static str, scenario: impl Scenario + 'static) -> Program {
        Program::of(name, scenario.region_bytes(), move |region| {
            scenario.prepare(region)?;
            scenario.work(region)?;
            scenario.check(region, true)
        })
    }

    fn iterated<S: Stepper>(name: &'static str, make: impl Fn(&Rc<dyn Device>) -> Result<S> + 'static) -> Program {
        Program::of(name, 1 << 20, move |region| {
            let mut iterative = Iterative::open(region, make(region.device())?, 2)?;
            iterative.run_until(4)
        })
    }

    /// Runs it on a device. What it leaves there.
    ///
    /// # Errors
    /// What the device refuses; a result that the program's oracle does not have.
    pub fn left_on(&self, device: &Rc<dyn Device>) -> Result<Contents> {
        let region = PmRegion::create_in(device.clone(), Medium::memfd(self.bytes.next_multiple_of(4096))?)?;
        (self.run)(&region)
    }

    /// How far what two devices left is apart: 0, or up to what it may be.
    ///
    /// # Errors
    /// It is farther apart than it may be.
    pub fn compare(&self, one: &Contents, other: &Contents) -> Result<f32> {
        ensure!(!one.is_empty() && one.len() == other.len(), "{}: other parts", self.name);
        let mut most = 0.0f32;
        for ((name, expected), (as_other, found)) in one.iter().zip(other) {
            ensure!(name == as_other, "{}: {name:?} is {as_other:?} there", self.name);
            let apart = match self.within {
                Some(_) => apart(expected, found),
                None => f32::from(u8::from(expected != found)),
            };
            ensure!(apart <= self.within.unwrap_or(0.0), "{}: {name:?} is not the same", self.name);
            most = most.max(apart);
        }
        Ok(most)
    }
}

/// The objects of a region, but for those in which the order of threads shows: they find the rows of an update, and take their turns with locks, in any.
fn contents(region: &PmRegion) -> Result<Contents> {
    let any_order = |kind: ObjectKind, name: &str| kind == ObjectKind::ConventionalLog || name == "db.log";
    let objects = region.objects().into_iter().filter(|object| !any_order(object.kind, &object.name));
    objects.map(|object| Ok((object.name, region.read_vec(object.offset, object.bytes as usize)?))).collect()
}

/// The largest difference of two numbers of 4 bytes each, of the largest of the first ones; infinite where one of them is none.
fn apart(one: &[u8], other: &[u8]) -> f32 {
    let numbers =
        |bytes: &[u8]| -> Vec<f32> { bytes.as_chunks::<4>().0.iter().map(|&word| f32::from_le_bytes(word)).collect() };
    let (one, other) = (numbers(one), numbers(other));
    let largest = one.iter().fold(f32::MIN_POSITIVE, |most, number| most.max(number.abs()));
    let each = one.iter().zip(&other).map(|(a, b)| (a - b).abs() / largest);
    let found = each.fold(0.0, |most: f32, apart| if apart.is_nan() { f32::INFINITY } else { most.max(apart) });
    if one.len() == other.len() { found } else { f32::INFINITY }
}

/// All programs, small: those of GPMbench, and the logs and checkpoints that they are made of.
pub fn programs() -> Vec<Program> {
    let transactions = |name, form| {
        let module = kernels::txn().clone();
        Program::scenario(name, Transactions { form, blocks: 2, threads: 40, rounds: 3, by_processor: false, module })
    };
    let store =
        |name, keys| Program::scenario(name, Store { set_bits: 5, batch: 700, keys, module: kernels::kvs().clone() });
    let table = |name, partitions| {
        let sizes = db::Sizes { rows: 2000, updated: 500, groups: 4, partitions };
        Program::scenario(name, Database { sizes, rows: 1000, module: kernels::db().clone() })
    };
    let checkpoints = |name, way| Program::scenario(name, Checkpoints { part: 4096, way });
    let sizes = prefix::Sizes { arrays: 3, blocks: 5, threads: 96 };
    let graph = Graph::roads(30, 8, 1);
    vec![
        transactions("sealed log", LogForm::Sealed),
        transactions("tail log", LogForm::Tail),
        transactions("conventional log", LogForm::Conventional),
        store("gpKVS, few keys", 20),
        store("gpKVS", 1 << 40),
        table("gpDB", 0),
        table("gpDB, conventional log", 5),
        Program::scenario("PS", Sums { sizes, module: kernels::prefix().clone() }),
        checkpoints("checkpoints", Way::Whole),
        checkpoints("pages that changed", Way::Changed),
        checkpoints("checkpoints in flight", Way::Concurrent),
        Program::iterated("HS", |device| Hotspot::new(device, 20, 30)),
        Program::iterated("CFD", |device| Cfd::new(device, &Mesh::around_a_rod(600))),
        Program::iterated("DNN", |device| {
            Dnn::new(device, Net { side: 16, maps: [3, 4], hidden: 10, batch: 6 }, &Digits::new(16, 12))
        }),
        black_scholes(),
        Program::of("SRAD", Srad::region_bytes(20, 24), |region| Srad::open(region, 20, 24)?.run_until(4)),
        Program::of("BFS", Bfs::region_bytes(&graph), move |region| Bfs::open(region, &graph)?.run().map(drop)),
    ]
}

/// Its exponentials and logarithms are approximations, so that it is the prices in the end that are compared, not its checkpoints with their digests.
fn black_scholes() -> Program {
    let run = |region: &PmRegion| {
        let mut iterative = Iterative::open(region, BlackScholes::new(region.device(), 300)?, 2)?;
        iterative.run_until(4)?;
        let state = iterative.program.state();
        state.into_iter().map(|(name, buffer)| Ok((name.to_owned(), buffer.download()?))).collect()
    };
    Program { name: "BLK", within: Some(1e-3), bytes: 1 << 20, run: Box::new(run) }
}
