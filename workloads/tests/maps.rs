//! The four maps under every mechanism, against a model: first without crashes, then with a power
//! cut at many moments, recovery, and the check that a prefix of the operations is there.

mod cuts;

use std::collections::BTreeMap;

use cuts::{Survivor, survivors};
use nearpm::memory::TestMemory;
use nearpm::{Mechanism, Options, Pool};
use nearpm_workloads::ops::{self, Mix};
use nearpm_workloads::run::{self, Progress};
use nearpm_workloads::{BTree, HashMap, Map, RbTree, SkipList, check};

const POOL_BYTES: usize = 2 << 20;

fn options(mechanism: Mechanism) -> Options {
    Options::new().mechanism(mechanism).lanes(1).ring_bytes(256 << 10).epoch_ops(0)
}

fn fresh<M: Map>(memory: &TestMemory, mechanism: Mechanism) -> (Pool, M) {
    let pool = options(mechanism).create_in(Box::new(memory.clone())).expect("the pool fits");
    let map = run::create(&pool).expect("the map fits");
    (pool, map)
}

fn agrees_with_the_model<M: Map>(mix: Mix) {
    for mechanism in Mechanism::ALL {
        let (pool, map) = fresh::<M>(&TestMemory::new(POOL_BYTES), mechanism);
        let ops = ops::generate(mix, 11, 1200);
        let mut model = BTreeMap::new();
        for (i, part) in ops.chunks(100).enumerate() {
            run::run(&pool, map, part, 32, &Progress::default(), |_| {}).expect("the operations fit");
            part.iter().for_each(|op| ops::apply(&mut model, op));
            let found = check::contents::<M>(&pool).expect("the structure is whole");
            assert!(found == model, "{} under {mechanism:?} after {} operations", M::NAME, (i + 1) * 100);
        }
    }
}

#[test]
fn the_btree_agrees_with_the_model() {
    agrees_with_the_model::<BTree>(Mix::Inserts);
    agrees_with_the_model::<BTree>(Mix::Churn);
}

#[test]
fn the_hash_map_agrees_with_the_model() {
    agrees_with_the_model::<HashMap>(Mix::Inserts);
    agrees_with_the_model::<HashMap>(Mix::Churn);
}

#[test]
fn the_red_black_tree_agrees_with_the_model() {
    agrees_with_the_model::<RbTree>(Mix::Inserts);
    agrees_with_the_model::<RbTree>(Mix::Churn);
}

#[test]
fn the_skip_list_agrees_with_the_model() {
    agrees_with_the_model::<SkipList>(Mix::Inserts);
    agrees_with_the_model::<SkipList>(Mix::Churn);
}

#[test]
fn scans_give_keys_in_order_from_any_start() {
    let (pool, tree) = fresh::<BTree>(&TestMemory::new(POOL_BYTES), Mechanism::Undo);
    let ops = ops::generate(Mix::Churn, 5, 800);
    run::run(&pool, tree, &ops, 1, &Progress::default(), |_| {}).unwrap();
    let mut model = BTreeMap::new();
    ops.iter().for_each(|op| ops::apply(&mut model, op));
    for from in [0, 1, 17, 63, 150, u64::MAX] {
        let expected: Vec<_> = model.range(from..).take(40).map(|(&k, &v)| (k, v)).collect();
        assert_eq!(pool.tx(|tx| tree.scan(tx, from, 40)).unwrap(), expected, "from {from}");
    }
}

fn lives_in_a_file_under_each_mechanism<M: Map>() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("map.pool");
    let path = path.to_str().unwrap();
    let ops = ops::generate(Mix::Churn, 9, 800);
    let mut model = BTreeMap::new();
    for (part, mechanism) in ops.chunks(200).zip(Mechanism::ALL) {
        let first = model.is_empty();
        let options = options(mechanism);
        let pool = if first { options.create(path, POOL_BYTES as u64) } else { options.open(path) }.unwrap();
        let map = if first { run::create::<M>(&pool) } else { run::open::<M>(&pool) }.unwrap();
        run::run(&pool, map, part, 16, &Progress::default(), |_| {}).unwrap();
        part.iter().for_each(|op| ops::apply(&mut model, op));
        pool.close().unwrap();
        let pool = options.open(path).unwrap();
        assert_eq!(check::contents::<M>(&pool).unwrap(), model, "{} under {mechanism:?}", M::NAME);
    }
}

#[test]
fn a_pool_file_passes_from_mechanism_to_mechanism() {
    lives_in_a_file_under_each_mechanism::<BTree>();
    lives_in_a_file_under_each_mechanism::<HashMap>();
}

#[test]
fn a_damaged_link_is_reported() {
    let memory = TestMemory::new(POOL_BYTES);
    let (pool, tree) = fresh::<BTree>(&memory, Mechanism::Undo);
    run::run(&pool, tree, &ops::generate(Mix::Inserts, 1, 200), 1, &Progress::default(), |_| {}).unwrap();
    pool.tx(|tx| {
        let root = tx.read_u64(tree.offset())?;
        let key = tx.read_u64(root + 16)?;
        tx.write_u64(root + 16, key ^ 1 << 63)
    })
    .unwrap();
    assert!(check::contents::<BTree>(&pool).is_err());
}

/// Cuts the power at `cuts` events, spread over the whole run, and checks what recovery makes of
/// each.
fn survives_cuts<M: Map>(mechanism: Mechanism, seed: u64, count: usize, cuts: u64) {
    let ops = ops::generate(Mix::Churn, seed, count);
    let prepare = |memory: &TestMemory| fresh::<M>(memory, mechanism);
    let run = |(pool, map): &(Pool, M), progress: &Progress| {
        run::run(pool, *map, &ops, 16, progress, |_| {}).expect("the operations fit");
    };
    let made = survivors(seed, cuts, POOL_BYTES, prepare, run);
    for (i, Survivor { image, acknowledged, started }) in made.into_iter().enumerate() {
        let pool = options(mechanism)
            .open_in(Box::new(TestMemory::from_image(image)))
            .unwrap_or_else(|e| panic!("{} under {mechanism:?}, cut {i}: {e}", M::NAME));
        check::prefix::<M>(&pool, &ops, acknowledged, started, nearpm::Durability::Durable)
            .unwrap_or_else(|e| panic!("{} under {mechanism:?}, seed {seed}, cut {i}: {e}", M::NAME));
    }
}

#[test]
fn power_cuts_leave_a_prefix_of_the_operations() {
    let thorough = nearpm_tier::thorough();
    for seed in 0..if thorough { 12 } else { 2 } {
        for mechanism in Mechanism::ALL {
            survives_cuts::<BTree>(mechanism, seed, 150, 60);
            survives_cuts::<HashMap>(mechanism, seed, 150, 60);
            survives_cuts::<RbTree>(mechanism, seed, 150, 60);
            survives_cuts::<SkipList>(mechanism, seed, 150, 60);
        }
    }
}
