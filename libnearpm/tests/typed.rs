//! Typed objects: pointers, fields, transactions, the root, threads.

use nearpm::memory::TestMemory;
use nearpm::prelude::*;

const BYTES: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Persistent)]
#[repr(C)]
struct Small {
    word: u64,
    half: u32,
    quarter: u16,
    bytes: [u8; 2],
}

#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
struct Root {
    small: Small,
    list: PVec<u64>,
    next: Option<Ptr<Root>>,
    rows: [[u32; 3]; 2],
}

fn options() -> DirectOptions {
    DirectOptions { id: Some(5), ..DirectOptions::default() }
}

fn pool() -> (TestMemory, DirectPool) {
    let memory = TestMemory::new(BYTES);
    let pool = DirectPool::create_in(Box::new(memory.clone()), &options()).unwrap();
    (memory, pool)
}

fn reopen(memory: &TestMemory) -> DirectPool {
    DirectPool::open_in(Box::new(TestMemory::from_image(memory.durable())), &options()).unwrap()
}

const SMALL: Small = Small { word: 1 << 60, half: 0xdead_beef, quarter: 7, bytes: [1, 2] };

#[test]
fn fields_are_stored_and_loaded_each_alone_and_survive() {
    let (memory, pool) = pool();
    pool.tx(|tx| {
        let root = tx.root_or_zeroed::<Root>()?;
        tx.set(root.small(), SMALL)?;
        tx.set(root.small().quarter(), 8)?;
        tx.set(root.small().bytes().at(1), 3)?;
        tx.set(root.rows().at(1).at(2), 44)?;
        root.list().push(tx, 5)?;
        tx.set(root.next(), Some(root))
    })
    .unwrap();
    std::mem::forget(pool);
    let pool = reopen(&memory);
    pool.read(|from| {
        let root = from.root::<Root>()?.expect("it was made");
        assert_eq!(from.get(root.small())?, Small { quarter: 8, bytes: [1, 3], ..SMALL });
        assert_eq!(from.get(root.small().half())?, SMALL.half);
        assert_eq!(from.get(root.rows())?, [[0, 0, 0], [0, 0, 44]]);
        assert_eq!(root.list().to_vec(from)?, [5]);
        assert_eq!(from.get(root.next())?, Some(root));
        Ok(())
    })
    .unwrap();
}
