//! A second oracle: the same programs with their kernels compiled by g++ for the processor leave the same persistent memory as on the interpreter, bit by
//! bit.

use std::path::Path;
use std::rc::Rc;

use anyhow::Result;
use nearpm_gpmbench::crash::{Checkpoints, Database, LogForm, Scenario, Store, Sums, Transactions, Way};
use nearpm_gpmbench::programs::{Bfs, Cfd, Digits, Dnn, Graph, Hotspot, Iterative, Mesh, Net, Srad, Stepper};
use nearpm_gpmbench::{db, prefix};
use nearpm_gpu::{Compiled, Device, Interpreted, Medium, ObjectKind, PmRegion};

thread_local! {
    /// One device, so that each module is compiled once.
    static COMPILED: Rc<dyn Device> =
        Rc::new(Compiled::new(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels"))));
}

/// Objects of a region by name, with their bytes.
type Contents = Vec<(String, Vec<u8>)>;

/// What a program leaves, of the kinds of objects in which the order of threads does not show.
fn left_by(device: Rc<dyn Device>, bytes: u64, run: &dyn Fn(&PmRegion) -> Result<()>) -> Contents {
    let region = PmRegion::create_in(device, Medium::of_bytes(vec![0; bytes as usize])).unwrap();
    run(&region).unwrap_or_else(|error| panic!("{error:#}"));
    // Threads find the rows of an update, and take their turns with locks, in any order.
    let any_order = |kind: ObjectKind, name: &str| kind == ObjectKind::ConventionalLog || name == "db.log";
    let objects = region.objects().into_iter().filter(|object| !any_order(object.kind, &object.name));
    objects.map(|object| (object.name, region.read_vec(object.offset, object.bytes as usize).unwrap())).collect()
}

fn same(what: &str, bytes: u64, run: impl Fn(&PmRegion) -> Result<()>) {
    let interpreted = left_by(Rc::new(Interpreted::new(64 << 20)), bytes, &run);
    let compiled = left_by(COMPILED.with(Rc::clone), bytes, &run);
    assert!(!interpreted.is_empty());
    assert_eq!(interpreted.len(), compiled.len());
    for ((name, expected), (other, found)) in interpreted.iter().zip(&compiled) {
        assert!(name == other && expected == found, "{what}: {name:?} is not the same");
    }
}

fn scenario(what: &str, scenario: &dyn Scenario) {
    same(what, scenario.region_bytes(), |region| {
        scenario.prepare(region)?;
        scenario.work(region)?;
        scenario.check(region, true)
    });
}

fn transactions() {
    for form in [LogForm::Sealed, LogForm::Tail, LogForm::Conventional] {
        let module = nearpm_gpmbench::txn().clone();
        scenario(
            "transactions",
            &Transactions { form, blocks: 2, threads: 40, rounds: 3, by_processor: false, module },
        );
    }
}

fn the_store() {
    for keys in [20, 1 << 40] {
        scenario("KVS", &Store { set_bits: 5, batch: 700, keys, module: nearpm_gpmbench::kvs().clone() });
    }
}

fn the_table() {
    for partitions in [0, 5] {
        let sizes = db::Sizes { rows: 2000, updated: 500, groups: 4, partitions };
        scenario("gpDB", &Database { sizes, rows: 1000, module: nearpm_gpmbench::db().clone() });
    }
}

fn prefix_sums() {
    let sizes = prefix::Sizes { arrays: 3, blocks: 5, threads: 96 };
    scenario("PS", &Sums { sizes, module: nearpm_gpmbench::prefix().clone() });
}

fn checkpoints() {
    for way in [Way::Whole, Way::Changed, Way::Concurrent] {
        scenario("checkpoints", &Checkpoints { part: 4096, way });
    }
}

fn iterated<S: Stepper>(what: &str, make: impl Fn(&Rc<dyn Device>) -> Result<S>) {
    same(what, 1 << 20, |region| {
        let mut iterative = Iterative::open(region, make(region.device())?, 2)?;
        iterative.run_until(4)
    });
}

fn iterative_programs() {
    iterated("HS", |device| Hotspot::new(device, 20, 30));
    iterated("CFD", |device| Cfd::new(device, &Mesh::around_a_rod(600)));
    let net = Net { side: 16, maps: [3, 4], hidden: 10, batch: 6 };
    iterated("DNN", |device| Dnn::new(device, net, &Digits::new(16, 12)));
}

fn native_programs() {
    same("SRAD", Srad::region_bytes(20, 24), |region| Srad::open(region, 20, 24)?.run_until(4));
    let graph = Graph::roads(30, 8, 1);
    same("BFS", Bfs::region_bytes(&graph), |region| Bfs::open(region, &graph)?.run().map(drop));
}

/// All in one: a compiler takes its time for each module.
#[test]
fn every_program_leaves_what_it_leaves_on_the_interpreter() {
    transactions();
    the_store();
    the_table();
    prefix_sums();
    checkpoints();
    iterative_programs();
    native_programs();
}
