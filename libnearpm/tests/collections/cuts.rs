//! Power cuts at stores, write-backs and fences: what a pool holds afterwards is what it held
//! before the transaction, or after it.

use std::sync::{Arc, Mutex};

use nearpm::direct::Mode;
use nearpm::memory::{Event, Image, TestMemory};
use nearpm::prelude::*;

use crate::{contents, objects, options, subject};
use nearpm_subjects::{Op, Subject};

/// Numbers from a seed, the same on every machine.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    fn op(&mut self) -> Op {
        // Mostly such as make the collection larger, so that nodes split and tables grow.
        let kind = if self.next().is_multiple_of(4) { self.next() as u8 } else { 0 };
        Op { kind, key: self.next() as u8, value: self.next() as u32 }
    }
}

fn recovered<S: Subject>(image: Image, mode: Mode) -> (S::Model, usize) {
    let pool = DirectPool::open_in(Box::new(TestMemory::from_image(image)), &options(mode)).unwrap();
    let found = contents::<S>(&pool);
    let held = objects(&pool);
    (found, held)
}

/// Runs transactions that are drawn under power cuts.
pub fn survive<S: Subject>(mode: Mode) {
    let mut draw = Draw(7);
    of_transactions::<S>(mode, (0..30).map(move |_| (0..1 + draw.next() % 8).map(|_| draw.op()).collect()));
}

/// Runs transactions of some operations each under power cuts.
pub fn of_transactions<S: Subject>(mode: Mode, transactions: impl Iterator<Item = Vec<Op>>) {
    let memory = TestMemory::new(1 << 19).evict(5, 3);
    let pool = DirectPool::create_in(Box::new(memory.clone()), &options(mode)).unwrap();
    let mut model = S::Model::default();
    let (mut cuts, mut ran) = (0, 0);
    let images: Arc<Mutex<Vec<Image>>> = Arc::default();
    for (number, ops) in transactions.enumerate() {
        let sink = images.clone();
        memory.probe(move |event, kind, survive| {
            if kind == Event::Fence || event % 9 == 0 {
                sink.lock().unwrap().push(survive(event));
            }
        });
        let before = (model.clone(), objects(&pool));
        pool.tx(|tx| {
            let at = subject::<S>(tx)?;
            ops.iter().try_for_each(|op| S::apply(tx, at, &mut model, op))
        })
        .unwrap();
        memory.stop_probe();
        let after = (model.clone(), objects(&pool));
        for image in std::mem::take(&mut *images.lock().unwrap()) {
            let found = recovered::<S>(image, mode);
            assert!(found == before || found == after, "transaction {number}, {found:?}");
            cuts += 1;
        }
        assert_eq!(recovered::<S>(memory.durable(), mode), after, "transaction {number} was acknowledged");
        ran += 1;
    }
    assert!(ran > 0 && cuts >= ran, "{cuts} cuts of {ran} transactions");
}
