//! Nests of collections that are deeper than a stack: nothing that is freed with what it owns takes
//! stack for each level.

use nearpm::memory::VolatileMemory;
use nearpm::prelude::*;

/// Levels of a nest. A test's thread has 2 MiB of stack, 2 B a level in the thorough tier.
fn levels() -> u64 {
    if cfg!(miri) {
        50
    } else if nearpm_tier::thorough() {
        1_000_000
    } else {
        60_000
    }
}

/// A value that owns others of its kind, in a collection of each kind.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Nest {
    row: PVec<Nest>,
    queue: PQueue<Nest>,
    table: PHashMap<u64, Nest>,
    tree: PBTreeMap<u64, Nest>,
}

/// The root.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Root {
    top: PVec<Nest>,
}

/// A value that owns the last one, in a collection of the kind whose turn it is, beside one that
/// owns nothing.
fn around(tx: &mut impl Store, at: Ptr<Nest>, level: u64, last: Nest, empty: Nest) -> Result<Nest, Error> {
    tx.set(at, empty)?;
    match level % 4 {
        0 => at.row().extend(tx, &[empty, last, empty])?,
        1 => {
            at.queue().push(tx, empty)?;
            at.queue().push(tx, last)?;
        }
        2 => {
            at.table().insert(tx, &level, last)?;
            at.table().insert(tx, &0, empty)?;
        }
        _ => {
            at.tree().insert(tx, &level, last)?;
            at.tree().insert(tx, &0, empty)?;
        }
    }
    tx.get(at)
}

/// Makes a nest in the root's vector, and gives the place of its outermost value.
fn build(pool: &DirectPool, levels: u64) -> Ptr<Nest> {
    let top = pool.tx(|tx| {
        let top = tx.root_or_zeroed::<Root>()?.top();
        let place = tx.alloc_zeroed::<Nest>(1)?;
        let empty = tx.get(place)?;
        top.push(tx, empty)?;
        tx.free(place)?;
        Ok(top)
    });
    let top = top.unwrap();
    let (mut last, mut done) = (pool.read(|from| top.get(from, 0)).unwrap().unwrap(), 0);
    let empty = last;
    while done < levels {
        let until = levels.min(done + 500);
        last = pool
            .tx(|tx| {
                let at = top.slot(tx, 0)?.unwrap();
                (done..until).try_fold(last, |last, level| around(tx, at, level + 1, last, empty))
            })
            .unwrap();
        done = until;
    }
    pool.read(|from| top.slot(from, 0)).unwrap().unwrap()
}

fn objects(pool: &DirectPool) -> usize {
    std::iter::successors(pool.next_object(0), |&object| pool.next_object(object)).count()
}

fn pool() -> DirectPool {
    let bytes = (levels() * 1200).next_power_of_two().max(1 << 20);
    DirectPool::create_in(Box::new(VolatileMemory::new(bytes as usize)), &Options::new()).unwrap()
}

#[test]
fn a_nest_of_any_depth_is_cleared() {
    let pool = pool();
    build(&pool, levels());
    pool.tx(|tx| tx.root_or_zeroed::<Root>()?.top().clear(tx)).unwrap();
    assert_eq!(objects(&pool), 1, "only the root is left");
}

#[test]
fn a_nest_of_any_depth_is_destroyed_truncated_and_released() {
    let pool = pool();
    for way in 0..3 {
        let at = build(&pool, levels() / 4);
        let done = pool.tx(|tx| {
            let top = tx.root_or_zeroed::<Root>()?.top();
            match way {
                0 => {
                    let nest = tx.get(at)?;
                    let object = tx.alloc(nest)?;
                    top.pop(tx)?;
                    tx.destroy(object)
                }
                1 => top.truncate(tx, 0),
                _ => top.pop(tx)?.unwrap().release(tx),
            }
        });
        done.unwrap();
        pool.tx(|tx| tx.root_or_zeroed::<Root>()?.top().clear(tx)).unwrap();
        assert_eq!(objects(&pool), 1, "only the root is left, way {way}");
    }
}

/// A chain that frees itself by a function of the program's own.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
#[persistent(release = release_chained)]
struct Chained {
    next: Option<Ptr<Chained>>,
}

fn release_chained<S: Store>(value: Chained, tx: &mut S) -> Result<(), Error> {
    value.next.map_or(Ok(()), |next| tx.destroy(next))
}

#[test]
fn a_chain_that_a_program_frees_is_as_deep_as_it_likes() {
    let pool = pool();
    let mut first = None;
    for _ in 0..levels() / 100 {
        let grown = pool.tx(|tx| (0..100).try_fold(first, |next, _| tx.alloc(Chained { next }).map(Some)));
        first = grown.unwrap();
    }
    pool.tx(|tx| tx.destroy(first.unwrap())).unwrap();
    assert_eq!(objects(&pool), 0);
}

/// A handle that was copied into what it holds is an error, and no endless work.
#[test]
fn a_collection_that_holds_itself_is_refused() {
    let pool = pool();
    let done = pool.tx(|tx| {
        let top = tx.root_or_zeroed::<Root>()?.top();
        let place = tx.alloc_zeroed::<Nest>(1)?;
        let empty = tx.get(place)?;
        top.push(tx, empty)?;
        let itself = tx.get(top)?;
        let inner = top.slot(tx, 0)?.unwrap();
        tx.set(inner.row(), itself)?;
        top.clear(tx)
    });
    assert!(matches!(done, Err(Error::NotAllocated { .. })), "{done:?}");
}
