//! The primitives of the paper, and stores of the program between them.

use super::{POOL_BYTES, Registered, mock, options, same, say};
use crate::{Error, Mechanism};
use nearpm_driver::mock::MockCard;

/// Each primitive once.
pub fn primitives(seed: u64) -> Result<(), String> {
    let card = Registered::new(MockCard::new(mock(seed)), seed)?;
    let options = options(Mechanism::Undo);
    let pool = options.create(&card.pool(), POOL_BYTES).map_err(say)?;
    let found = pool.tx(|tx| Ok((tx.alloc_zeroed(4096)?, tx.alloc_zeroed(64)?)));
    let (object, reference) = found.map_err(say)?;
    let work = || -> Result<(u64, Vec<u8>), Error> {
        // A page that will be the copy's has lines in the cache.
        let used = pool.tx(|tx| tx.alloc_zeroed(4096))?;
        pool.store(used + seed % 5 * 700, &[9; 700])?;
        pool.tx(|tx| tx.free(used))?;
        pool.tx(|tx| tx.write_u64(reference, object))?;
        // Lines that are dirty, or clean and soon stale, when the card reads or writes them.
        pool.store(object + 64, &[7; 64])?;
        let first = pool.redolog_create(0, object, &[1; 100])?;
        let second = pool.redolog_create(0, object + 1000, &[2; 100])?;
        pool.applylog(0, first, 100)?;
        pool.applylog(0, second, 100)?;
        pool.commit_log(0)?;
        pool.store(object + 1200, &[4; 64])?;
        let copy = pool.shadowcpy(0, object, 4096)?;
        let mut seen = vec![0; 1300];
        pool.load(copy, &mut seen)?;
        pool.store(copy + 2000, &[3; 100])?;
        pool.flush(copy, 4096)?;
        pool.switch_page(reference, copy)?;
        pool.store(copy + 3000, &[5; 64])?;
        pool.undolog_create(0, copy + 3000, 64)?;
        pool.store(copy + 3000, &[6; 64])?;
        pool.abort_log(0)?;
        let mut back = [0; 64];
        pool.load(copy + 3000, &mut back)?;
        seen.extend(back);
        pool.undolog_create(0, copy + 3500, 64)?;
        pool.store(copy + 3500, &[8; 64])?;
        pool.commit_log(0)?;
        Ok((copy, seen))
    };
    let (copy, seen) = work().map_err(say)?;
    same((seen[0], seen[99], seen[100], seen[1000], seen[1200]), (1, 1, 7, 2, 4), "the copy")?;
    same(&seen[1300..], &[5; 64][..], "what was rolled back")?;
    let after = Registered::new(MockCard::with_medium(mock(seed), card.mock.power_cut()), seed)?;
    let pool = options.open(&after.pool()).map_err(say)?;
    let page = pool.tx(|tx| tx.read_u64(reference)).map_err(say)?;
    same(page, copy, "the reference")?;
    let found = pool.tx(|tx| tx.read_vec(page, 4096)).map_err(say)?;
    same((found[0], found[100], found[1000], found[1200], found[2000], found[3000]), (1, 7, 2, 4, 3, 5), "the page")?;
    same(&found[3500..3564], &[8; 64][..], "what was committed under an undo log")
}
