//! The same kernels on two devices: what each program leaves in persistent memory has to be the
//! same.

use std::rc::Rc;

use anyhow::{Result, ensure};
use nearpm_gpu::{Device, Medium, Object, ObjectKind, PmRegion};

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
    bytes: u64,
    run: Run,
}

impl Program {
    fn of(name: &'static str, bytes: u64, run: impl Fn(&PmRegion) -> Result<()> + 'static) -> Program {
        let run = move |region: &PmRegion| {
            run(region)?;
            contents(region)
        };
        Program { name, bytes, run: Box::new(run) }
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

    /// Whether two devices left the same, bit by bit.
    ///
    /// # Errors
    /// They did not: which part, and where it starts to be another.
    pub fn compare(&self, one: &Contents, other: &Contents) -> Result<()> {
        ensure!(!one.is_empty() && one.len() == other.len(), "other parts");
        for ((name, expected), (as_other, found)) in one.iter().zip(other) {
            ensure!(name == as_other, "{name:?} is {as_other:?} there");
            ensure!(expected.len() == found.len(), "{name:?} is of another size there");
            let differing = expected.iter().zip(found).filter(|(a, b)| a != b).count();
            let first = expected.iter().zip(found).position(|(a, b)| a != b);
            ensure!(
                expected == found,
                "{name:?} is not the same: {differing} of {} bytes, the first at {first:?}",
                expected.len()
            );
        }
        Ok(())
    }
}

/// The objects of a region. In some the order of threads shows, and any is right: they find the
/// rows of an update, and take their turns with locks. Of those it is the words that are compared,
/// in the order of their size.
fn contents(region: &PmRegion) -> Result<Contents> {
    let of = |object: Object| {
        let mut bytes = region.read_vec(object.offset, object.bytes as usize)?;
        if object.kind == ObjectKind::ConventionalLog || object.name == "db.log" {
            bytes.as_chunks_mut::<4>().0.sort_unstable();
        }
        Ok((object.name, bytes))
    };
    region.objects().into_iter().map(of).collect()
}

/// How many programs there are.
pub const PROGRAMS: usize = 17;

/// All programs, small: those of GPMbench, and the logs and checkpoints that they are made of.
pub fn programs() -> [Program; PROGRAMS] {
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
    [
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
        Program::iterated("BLK", |device| BlackScholes::new(device, 300)),
        Program::of("SRAD", Srad::region_bytes(20, 24), |region| Srad::open(region, 20, 24)?.run_until(4)),
        Program::of("BFS", Bfs::region_bytes(&graph), move |region| Bfs::open(region, &graph)?.run().map(drop)),
    ]
}
