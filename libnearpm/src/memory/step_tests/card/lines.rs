//! Lines that several have to do with: processes one after the other, transactions and stores of
//! the program.

use nearpm_driver::mock::MockCard;

use super::super::common::{Model, check_leaks, contents, create, operations};
use super::{POOL_BYTES, Registered, died, mock, options, same, say, work};
use crate::{Error, Mechanism, OffsetTx};

/// A process takes a transaction back and closes the pool in order, so that the next one drops no
/// lines, whose commands write the same lines.
pub fn taken_back(mechanism: Mechanism, seed: u64) -> Result<(), String> {
    // They share lines, which commands write where they write a part.
    const OBJECT_BYTES: usize = 40;
    const OBJECTS: usize = 8;
    let card = Registered::new(MockCard::new(mock(seed)), seed)?;
    let store = |tx: &mut OffsetTx<'_>, value: u8| {
        (0..OBJECTS).try_for_each(|_| {
            let object = tx.alloc(OBJECT_BYTES as u64)?;
            tx.write(object, &[value; OBJECT_BYTES])
        })
    };
    let pool = options(Mechanism::Undo).create(&card.pool(), POOL_BYTES).map_err(say)?;
    let given_up = pool.tx(|tx| store(tx, 0xee).and_then(|()| Err::<(), _>(Error::abort("given up"))));
    same(matches!(given_up, Err(Error::Aborted(_))), true, "it was taken back")?;
    pool.close().map_err(say)?;
    let pool = options(mechanism).open(&card.pool()).map_err(say)?;
    pool.tx(|tx| store(tx, 0x11)).map_err(say)?;
    pool.close().map_err(say)?;
    let pool = options(Mechanism::Undo).open(&card.pool()).map_err(say)?;
    let objects = pool.objects().map_err(say)?;
    same(objects.len(), OBJECTS, "objects")?;
    for (object, _) in objects {
        let found = pool.tx(|tx| tx.read_vec(object, OBJECT_BYTES)).map_err(say)?;
        same(found, vec![0x11; OBJECT_BYTES], "the next process")?;
    }
    pool.close().map_err(say)
}

/// Processes that die on one boot, and what the next one finds.
pub fn processes(seed: u64) -> Result<(), String> {
    let mechanism = |n: u64| Mechanism::ALL[(seed / n) as usize % 4];
    let mut card = Registered::new(MockCard::new(mock(seed)), seed)?;
    let mut pool = options(mechanism(1)).create(&card.pool(), POOL_BYTES).map_err(say)?;
    create(&pool).and_then(|()| pool.persist()).map_err(say)?;
    let (mut model, mut graves) = (Model::new(), Vec::new());
    for n in [4, 3, 1] {
        let states = work(&pool, &operations(seed + 1000 * n, 15 + seed as usize % 7, 300), model)?;
        graves.push(died(pool, &[&card]));
        let next = Registered::new(card.mock.clone(), seed)?;
        pool = options(mechanism(n)).open(&next.pool()).map_err(say)?;
        model = contents(&pool).map_err(say)?;
        if !states.contains(&model) {
            return Err(format!("the next process finds none of {} states", states.len()));
        }
        check_leaks(&pool, &model).map_err(say)?;
        card = next;
    }
    pool.close().map_err(say)
}

/// Transactions and stores of the program on one line.
pub fn mixed(mechanism: Mechanism, seed: u64) -> Result<(), String> {
    let card = Registered::new(MockCard::new(mock(seed)), seed)?;
    let pool = options(mechanism).create(&card.pool(), POOL_BYTES).map_err(say)?;
    let object = pool.tx(|tx| tx.alloc_zeroed(4096)).map_err(say)?;
    for round in 1..6u8 {
        // One line, in thirds: by a transaction, by a store, by a transaction that reads before.
        pool.tx(|tx| tx.write(object, &[round; 16])).map_err(say)?;
        let mut found = [0; 16];
        pool.load(object, &mut found).map_err(say)?;
        same(found, [round; 16], "the program")?;
        pool.store(object + 16, &[round; 16]).map_err(say)?;
        let found = pool.tx(|tx| {
            let found = tx.read_vec(object + 16, 16)?;
            tx.write(object + 32, &[round; 16])?;
            Ok(found)
        });
        same(found.map_err(say)?, vec![round; 16], "the transaction")?;
        pool.tx(|tx| tx.write(object + 2048, &[round; 300])).map_err(say)?;
        pool.store(object + 16, &[round | 0x80; 16]).map_err(say)?;
        // The line is dirty, and nobody reads it before it is changed again, or what was changed is
        // taken back.
        let kept = pool.tx(|tx| {
            tx.write(object + 48, &[if round % 2 == 0 { round } else { 0xee }; 16])?;
            if round % 2 == 0 { Ok(()) } else { Err(Error::abort("taken back")) }
        });
        let last = if kept.is_ok() { round } else { round - 1 };
        let line = pool.tx(|tx| tx.read_vec(object, 64)).map_err(say)?;
        let expected = [[round; 16], [round | 0x80; 16], [round; 16], [last; 16]].concat();
        same(line, expected, "the line")?;
    }
    pool.flush(object, 64).map_err(say)?;
    pool.close().map_err(say)?;
    let after = Registered::new(MockCard::with_medium(mock(seed), card.mock.power_cut()), seed)?;
    let pool = options(mechanism).open(&after.pool()).map_err(say)?;
    let line = pool.tx(|tx| tx.read_vec(object, 64)).map_err(say)?;
    same((line[0], line[16], line[32], line[63]), (5, 5 | 0x80, 5, 4), "after the power cut")
}
