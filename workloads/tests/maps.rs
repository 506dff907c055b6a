//! Both maps under every mechanism, against a model: first without crashes, then with a power cut at
//! many moments, recovery, and the check that a prefix of the operations is there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use nearpm::memory::{Event, Image, TestMemory};
use nearpm::{Mechanism, Pool, PoolOptions};
use nearpm_workloads::ops::{self, Mix};
use nearpm_workloads::run::{self, Progress};
use nearpm_workloads::{BTree, HashMap, Map, check};

const POOL_BYTES: usize = 2 << 20;

fn options(mechanism: Mechanism) -> PoolOptions {
    PoolOptions::new().mechanism(mechanism).lanes(1).ring_bytes(256 << 10).epoch_ops(0)
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

/// What survives cuts at sampled events, with how far the run had got.
type Cuts = Arc<Mutex<Vec<(Image, usize, usize)>>>;

fn survives_cuts<M: Map>(mechanism: Mechanism, seed: u64, count: usize, one_in: u64) {
    let memory = TestMemory::new(POOL_BYTES).evict(7, seed);
    let (pool, map) = fresh::<M>(&memory, mechanism);
    let ops = ops::generate(Mix::Churn, seed, count);
    let progress = Arc::new(Progress::default());
    let cuts = Cuts::default();
    let (seen, kept) = (progress.clone(), cuts.clone());
    memory.probe(move |number, event, surviving| {
        let weight = if event == Event::Fence { 4 } else { 1 };
        if number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 < (weight << 32) / one_in {
            kept.lock().unwrap().push((surviving(seed ^ number), seen.acknowledged(), seen.started()));
        }
    });
    run::run(&pool, map, &ops, 16, &progress, |_| {}).expect("the operations fit");
    memory.stop_probe();
    drop(pool);
    let cuts = cuts.lock().unwrap();
    assert!(cuts.len() > 20, "only {} cuts were made", cuts.len());
    for (i, (image, acknowledged, started)) in cuts.iter().enumerate() {
        let pool = options(mechanism)
            .open_in(Box::new(TestMemory::from_image(image.clone())))
            .unwrap_or_else(|e| panic!("{} under {mechanism:?}, cut {i}: {e}", M::NAME));
        check::prefix::<M>(&pool, &ops, *acknowledged, *started)
            .unwrap_or_else(|e| panic!("{} under {mechanism:?}, seed {seed}, cut {i}: {e}", M::NAME));
    }
}

#[test]
fn power_cuts_leave_a_prefix_of_the_operations() {
    let thorough = std::env::var_os("NEARPM_THOROUGH").is_some();
    for seed in 0..if thorough { 12 } else { 2 } {
        for mechanism in Mechanism::ALL {
            survives_cuts::<BTree>(mechanism, seed, 150, 150);
            survives_cuts::<HashMap>(mechanism, seed, 150, 150);
        }
    }
}
