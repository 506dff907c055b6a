//! Transactions whose loss or tearing shows: each writes one number to two places that are far
//! apart, and fills a block with it.

use nearpm::{Durability, Engine, Error, Mechanism, Options, Pool};

use super::Registered;

pub const POOL_BYTES: u64 = 1 << 20;
const BLOCK: usize = 300;

pub fn options(mechanism: Mechanism) -> Options {
    Options::new().mechanism(mechanism).engine(Engine::Card).lanes(1).ring_bytes(64 << 10)
}

/// What the program knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// The last number whose transaction was acknowledged.
    pub acknowledged: u64,
    /// Transactions in all.
    pub transactions: u64,
}

/// Makes a pool with its objects.
pub fn create(registered: &Registered, mechanism: Mechanism) -> Pool {
    create_named(registered, mechanism, "bank")
}

/// Makes a pool of a name with its objects.
pub fn create_named(registered: &Registered, mechanism: Mechanism, name: &str) -> Pool {
    let pool =
        options(mechanism).durability(Durability::Durable).create(&registered.location(name), POOL_BYTES).unwrap();
    pool.tx(|tx| {
        let root = tx.alloc_zeroed(24)?;
        for word in 0..3 {
            let part = tx.alloc_zeroed(4096)?;
            tx.write_u64(root + 8 * word, part)?;
        }
        tx.set_root(root)
    })
    .unwrap();
    pool
}

fn parts(pool: &Pool) -> Result<[u64; 3], Error> {
    let root = pool.root()?;
    pool.tx(|tx| Ok([tx.read_u64(root)?, tx.read_u64(root + 8)?, tx.read_u64(root + 16)?]))
}

/// Works until `until` transactions are done or something fails; gives the failure.
pub fn work(pool: &Pool, known: &mut Known, until: u64) -> Result<(), Error> {
    let [first, block, last] = parts(pool)?;
    while known.transactions < until {
        let number = known.acknowledged + 1;
        pool.tx(|tx| {
            tx.write_u64(first + 8 * (number % 7), number)?;
            tx.write_u64(first + 1024, number)?;
            tx.write(block, &[number as u8; BLOCK])?;
            tx.write_u64(last + 2048, number)
        })?;
        known.acknowledged = number;
        known.transactions += 1;
    }
    Ok(())
}

/// Checks that nothing acknowledged is lost and nothing is half done; goes on from what was found.
pub fn verify(pool: &Pool, known: &mut Known) {
    pool.check().unwrap();
    let [first, block, last] = parts(pool).unwrap();
    let mut bytes = vec![0; BLOCK];
    let (a, b) = pool
        .tx(|tx| {
            tx.read(block, &mut bytes)?;
            Ok((tx.read_u64(first + 1024)?, tx.read_u64(last + 2048)?))
        })
        .unwrap();
    assert_eq!(a, b, "half done");
    assert_eq!(bytes, [a as u8; BLOCK], "half done");
    let possible = known.acknowledged..=known.acknowledged + 1;
    assert!(possible.contains(&a), "found {a}, acknowledged {}", known.acknowledged);
    known.acknowledged = a;
}

/// Opens the pool again, verifies it, and does some more.
pub fn reopen_and_verify(registered: &Registered, mechanism: Mechanism, known: &mut Known) {
    let pool = options(mechanism).open(&registered.location("bank")).unwrap();
    verify(&pool, known);
    let until = known.transactions + 3;
    work(&pool, known, until).unwrap();
    verify(&pool, known);
    pool.close().unwrap();
}
