//! Collections in pools against those of the standard library: random operations in transactions
//! that commit or give up, pools that are opened anew, and power cuts.

mod cuts;
mod deep;
mod entries;
mod full;
mod removal;
mod sets;

use nearpm::memory::TestMemory;
use nearpm::prelude::*;
use nearpm::typed::fingerprint;
use nearpm::{Mechanism, Options};
use proptest::prelude::*;

use nearpm::direct::Mode;
use nearpm_subjects::{Counted, Numbers, Op, Ordered, OrderedTexts, Queue, Subject, Table, Text, TextTable, Texts};

/// The root of a pool that holds one collection.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
pub struct Root<C: Persistent> {
    /// Something in front, so that nothing is there by accident.
    guard: u64,
    subject: C,
}

const GUARD: u64 = 0x6775_6172_6421;

/// How a transaction ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Commit,
    Abort,
    /// A commit, then the process dies, and another one opens the pool.
    Reopen,
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![3 => Just(End::Commit), 1 => Just(End::Abort), 1 => Just(End::Reopen)]
}

fn op() -> impl Strategy<Value = Op> {
    (any::<u8>(), any::<u8>(), any::<u32>()).prop_map(|(kind, key, value)| Op { kind, key, value })
}

fn transactions() -> impl Strategy<Value = Vec<(Vec<Op>, End)>> {
    // Miri takes its time.
    let (ops, transactions) = if cfg!(miri) { (20, 2) } else { (60, 8) };
    prop::collection::vec((prop::collection::vec(op(), 0..ops), end()), 1..transactions)
}

fn options(mode: Mode) -> Options {
    Options::new().mode(mode).id(5)
}

/// The collection of a pool, made if need be.
fn subject<S: Subject>(tx: &mut impl Store) -> Result<Ptr<S::Stored>, Error> {
    let root = tx.root_or_zeroed::<Root<S::Stored>>()?;
    tx.set(root.guard(), GUARD)?;
    Ok(root.subject())
}

fn contents<S: Subject>(pool: &DirectPool) -> S::Model {
    let read = pool.read(|from| {
        let Some(root) = from.root::<Root<S::Stored>>()? else { return Ok(S::Model::default()) };
        assert_eq!(from.get(root.guard())?, GUARD);
        S::contents(from, root.subject())
    });
    read.unwrap()
}

fn objects(pool: &DirectPool) -> usize {
    std::iter::successors(pool.next_object(0), |&object| pool.next_object(object)).count()
}

/// Runs transactions on a direct pool.
fn direct<S: Subject>(mode: Mode, transactions: &[(Vec<Op>, End)]) {
    let mut memory = TestMemory::new(if cfg!(miri) { 1 << 18 } else { 1 << 20 });
    let mut pool = DirectPool::create_in(Box::new(memory.clone()), &options(mode)).unwrap();
    let mut model = S::Model::default();
    for (ops, end) in transactions {
        let mut after = model.clone();
        let done = pool.tx(|tx| {
            let at = subject::<S>(tx)?;
            ops.iter().try_for_each(|op| S::apply(tx, at, &mut after, op))?;
            assert_eq!(S::contents(tx, at)?, after, "a transaction sees its own stores");
            if matches!(end, End::Abort) { Err(Error::abort("given up")) } else { Ok(()) }
        });
        match end {
            End::Abort => assert!(matches!(done, Err(Error::Aborted(_))), "{done:?}"),
            _ => {
                done.unwrap();
                model = after;
            }
        }
        if matches!(end, End::Reopen) {
            std::mem::forget(pool);
            memory = TestMemory::from_image(memory.durable());
            pool = DirectPool::open_in(Box::new(memory.clone()), &options(mode)).unwrap();
        }
        assert_eq!(contents::<S>(&pool), model);
    }
    pool.tx(|tx| subject::<S>(tx).and_then(|at| S::clear(tx, at))).unwrap();
    assert_eq!(contents::<S>(&pool), S::Model::default());
    assert_eq!(objects(&pool), 1, "only the root is left");
}

/// Runs transactions on a pool with a mechanism: the same code, by the same traits.
fn with_mechanism<S: Subject>(mechanism: Mechanism, transactions: &[(Vec<Op>, End)]) {
    let pool = Options::new().mechanism(mechanism).create_in(Box::new(TestMemory::new(4 << 20))).unwrap();
    let mut model = S::Model::default();
    for (ops, end) in transactions {
        let mut after = model.clone();
        let done = pool.tx(|tx| {
            let mut tx = tx.typed();
            let at = subject::<S>(&mut tx)?;
            ops.iter().try_for_each(|op| S::apply(&mut tx, at, &mut after, op))?;
            if matches!(end, End::Abort) { Err(Error::abort("given up")) } else { Ok(()) }
        });
        if done.is_ok() {
            model = after;
        } else {
            assert!(matches!((end, &done), (End::Abort, Err(Error::Aborted(_)))), "{done:?}");
        }
        let found = pool.tx(|tx| {
            let mut tx = tx.typed();
            let at = subject::<S>(&mut tx)?;
            S::contents(&tx, at)
        });
        assert_eq!(found.unwrap(), model);
    }
}

/// So many values that they are copied in several pieces, each over the place of another one.
#[test]
fn many_values_move_up_and_down() {
    let pool = DirectPool::create_in(Box::new(TestMemory::new(1 << 20)), &options(Mode::WorkingCopy)).unwrap();
    let mut model: Vec<u32> = (0..1000).collect();
    let moved = pool.tx(|tx| {
        let at = subject::<Numbers>(tx)?;
        at.extend(tx, &model)?;
        at.insert(tx, 3, 7000)?;
        model.insert(3, 7000);
        assert_eq!(at.to_vec(tx)?, model);
        assert_eq!(at.remove(tx, 1)?, Some(model.remove(1)));
        assert_eq!(at.to_vec(tx)?, model);
        Ok(())
    });
    moved.unwrap();
}

macro_rules! subjects {
    ($($name:ident: $subject:ty;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 40 }, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $name(transactions in transactions(), in_place: bool) {
                    direct::<$subject>(if in_place { Mode::InPlace } else { Mode::WorkingCopy }, &transactions);
                }
            )*
        }

        mod power_cuts {
            use super::*;
            $(
                #[test]
                fn $name() {
                    cuts::survive::<$subject>(Mode::WorkingCopy);
                    cuts::survive::<$subject>(Mode::InPlace);
                }
            )*
        }

        mod mechanisms {
            use super::*;
            proptest! {
                #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 8 }, ..ProptestConfig::default() })]
                $(
                    #[test]
                    fn $name(transactions in transactions(), mechanism in 0usize..4) {
                        with_mechanism::<$subject>(Mechanism::ALL[mechanism], &transactions);
                    }
                )*
            }
        }

        #[test]
        fn every_collection_has_a_layout_of_its_own() {
            let mut layouts = vec![$(fingerprint::<<$subject as Subject>::Stored>()),*];
            layouts.sort_unstable();
            layouts.dedup();
            assert_eq!(layouts.len(), [$(stringify!($name)),*].len());
        }
    };
}

subjects! {
    a_vector_of_numbers: Numbers;
    a_vector_of_texts: Texts;
    a_text: Text;
    a_hash_map_of_numbers: Table;
    a_hash_map_of_texts: TextTable;
    an_ordered_map_of_numbers: Ordered;
    an_ordered_map_of_texts: OrderedTexts;
    an_ordered_map_that_counts: Counted;
    a_queue: Queue;
}
