//! Pools over several cards.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nearpm_driver::mock::{MockCard, MockOptions};

use super::{Registered, died, last, mock, options_of, say, used_memory};
use crate::{Caching, Error, Mechanism, OffsetTx, Options, Pool, Problem};

/// A stripe for each member, its spare pages, rings and tables.
const MEMBER_BYTES: u64 = (2 << 20) + (640 << 10);
/// Bytes of a pool with two members.
const POOL_BYTES: u64 = 2 * MEMBER_BYTES;
const PM_BYTES: usize = (1 << 20) + MEMBER_BYTES as usize;
/// Bytes of the one object, which lies on all members.
const OBJECT_BYTES: u64 = 2_300_000;
/// The object holds so many values at each of its ends, and from stripe to stripe.
const CELLS: u64 = 8;
/// Bytes of a value, and from one to the next: some share a line.
const CELL_BYTES: usize = 40;
const APART: u64 = 1000;

/// Cuts of a run.
const CUTS: u64 = 2;

/// Those while a pool is made.
const FIRST_CUTS: u64 = 8;

/// The values that are not 0.
type Values = BTreeMap<u64, u8>;

/// Cards with a pool.
struct Cards(Vec<Registered>);

impl Cards {
    /// Cards that power up with these memories. Power of the one that is named fails so many
    /// accesses after all were opened, and that of the others, too, where they have one supply.
    fn with(images: &[Vec<u8>], seed: u64, cut: Option<(usize, u64)>, one_supply: bool) -> Result<Cards, String> {
        Cards::with_settings(images, seed, cut, one_supply, settings)
    }

    fn with_settings(
        images: &[Vec<u8>],
        seed: u64,
        cut: Option<(usize, u64)>,
        one_supply: bool,
        settings: fn(u64) -> MockOptions,
    ) -> Result<Cards, String> {
        let supply = one_supply.then(|| Arc::new(AtomicBool::new(true)));
        let card = |(number, image): (usize, &Vec<u8>)| {
            let settings = MockOptions { supply: supply.clone(), ..settings(seed + number as u64) };
            Registered::new(MockCard::with_medium(settings, image.clone()), seed)
        };
        let cards = Cards(images.iter().enumerate().map(card).collect::<Result<_, _>>()?);
        if let Some((card, accesses)) = cut {
            cards.0[card].mock.cut_in(accesses);
        }
        Ok(cards)
    }

    fn pool(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(|card| card.name.name()).collect();
        format!("card:{}/p", names.join("+"))
    }

    fn power_cut(&self) -> Vec<Vec<u8>> {
        self.0.iter().map(|card| card.mock.power_cut()).collect()
    }

    /// Accesses of each card since then.
    fn accesses(&self, then: &[u64]) -> Vec<u64> {
        self.0.iter().zip(then).map(|(card, then)| card.mock.accesses() - then).collect()
    }

    /// The same cards for the next process; those that have gone are replaced by such as power up.
    fn next_process(&self, seed: u64) -> Result<Cards, String> {
        let card = |card: &Registered| {
            let mock = match card.mock.is_gone() {
                true => MockCard::with_medium(settings(seed), card.mock.power_cut()),
                false => card.mock.clone(),
            };
            Registered::new(mock, seed)
        };
        self.0.iter().map(card).collect::<Result<_, _>>().map(Cards)
    }
}

fn settings(seed: u64) -> MockOptions {
    MockOptions { pm_bytes: PM_BYTES, ..mock(seed) }
}

/// The processor's cache keeps most of what it holds for a while.
fn seldom_evicting(seed: u64) -> MockOptions {
    MockOptions { evict_one_in: 30, ..settings(seed) }
}

fn options(mechanism: Mechanism, seed: u64) -> Options {
    options_of(mechanism, seed).lanes(1).spare_pages(48)
}

fn place(object: u64, cell: u64) -> u64 {
    let inside = cell / 2 * APART + cell % 8;
    if cell.is_multiple_of(2) { object + inside } else { object + OBJECT_BYTES - APART - inside }
}

fn read(pool: &Pool) -> Result<Values, Error> {
    pool.check()?;
    pool.tx(|tx| {
        let object = tx.root()?;
        let mut values = Values::new();
        for cell in 0..2 * CELLS {
            let found = tx.read_vec(place(object, cell), CELL_BYTES)?;
            if found.iter().any(|&byte| byte != found[0]) {
                return Err(Error::abort(format!("cell {cell} is torn: {found:?}")));
            }
            if found[0] != 0 {
                values.insert(cell, found[0]);
            }
        }
        Ok(values)
    })
}

fn change(tx: &mut OffsetTx<'_>, cells: &[u64], value: u8) -> Result<(), Error> {
    let object = tx.root()?;
    cells.iter().try_for_each(|&cell| tx.write(place(object, cell), &[value; CELL_BYTES]))
}

/// Transactions on one member or more, until a card has gone; gives the states that may survive.
fn work(pool: &Pool, seed: u64, mut values: Values) -> Result<Vec<Values>, String> {
    let mut states = vec![values.clone()];
    let mut state = seed;
    let mut below = |limit: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % limit
    };
    for value in 1..24u8 {
        let cells: Vec<u64> = (0..1 + below(4)).map(|_| below(2 * CELLS)).collect();
        if below(6) == 0 {
            let given_up = pool.tx(|tx| {
                change(tx, &cells, value)?;
                Err::<(), _>(Error::abort("given up"))
            });
            match given_up {
                Err(Error::Aborted(_)) => continue,
                _ => return Ok(states),
            }
        }
        values.extend(cells.iter().map(|&cell| (cell, value)));
        let done = pool.tx(|tx| change(tx, &cells, value));
        states.push(values.clone());
        if done.is_err() {
            return Ok(states);
        }
        let statistics = pool.statistics();
        if statistics.acknowledged == statistics.transactions {
            states.drain(..states.len() - 1);
        }
        if value % 5 == 4
            && let Ok(found) = read(pool)
        {
            super::same(found, values.clone(), "while it works")?;
        }
    }
    Ok(states)
}

/// Recoveries, of which the first ones are cut at one card or all, until one comes through.
fn recovers(mechanism: Mechanism, seed: u64, mut cards: Cards, states: &[Values]) -> Result<(), String> {
    for again in 1..100u64 {
        let opened = options(mechanism, seed).open(&cards.pool()).and_then(|pool| read(&pool));
        match opened {
            Ok(found) if states.contains(&found) => return Ok(()),
            Ok(found) => return Err(format!("{found:?} is none of {} states", states.len())),
            Err(error) if !cards.0.iter().any(|card| card.mock.is_gone()) => {
                return Err(format!("the cards are there: {error}"));
            }
            Err(_) => {}
        }
        let images = cards.power_cut();
        let which = (seed + again) as usize % images.len();
        cards = Cards::with(&images, seed, Some((which, 40 * again * again)), again % 2 == 0)?;
    }
    Err("no recovery comes through".into())
}

fn fill(pool: &Pool) -> Result<(), Error> {
    pool.tx(|tx| {
        let object = tx.alloc(OBJECT_BYTES)?;
        tx.set_root(object)?;
        (0..2 * CELLS).try_for_each(|cell| tx.write(place(object, cell), &[0; CELL_BYTES]))
    })?;
    pool.persist()
}

/// Two cards that have had a pool, which was removed.
fn had_a_pool(options: &Options, seed: u64) -> Result<Vec<Vec<u8>>, String> {
    let cards = Cards::with(&[used_memory(PM_BYTES), used_memory(PM_BYTES)], seed, None, false)?;
    let pool = options.create(&cards.pool(), POOL_BYTES).map_err(say)?;
    fill(&pool).map_err(say)?;
    work(&pool, seed, Values::new())?;
    drop(pool);
    crate::remove(&cards.pool()).map_err(say)?;
    Ok(cards.power_cut())
}

/// Accesses of each card while a pool is made.
fn spans_of_creation(options: &Options, dry: &Cards) -> Result<Vec<u64>, String> {
    let start = dry.accesses(&[0, 0]);
    drop(options.create(&dry.pool(), POOL_BYTES).map_err(say)?);
    Ok(dry.accesses(&start))
}

/// Opens what is left of a pool that was being made: an empty one, or none, if it was not yet made.
fn opens_empty(options: &Options, cards: &Cards, is_made: bool) -> Result<Option<Pool>, String> {
    match options.open(&cards.pool()) {
        Ok(pool) => {
            super::same(pool.root().map_err(say)?, 0, "the root of a new pool")?;
            super::same(pool.objects().map_err(say)?.len(), 0, "objects of a new pool")?;
            Ok(Some(pool))
        }
        Err(Error::Pool { problem: Problem::NotFound | Problem::Unfinished, .. }) if !is_made => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Cuts while a pool is made where another one of the same identifier was: what is there afterwards
/// is no pool, or an empty one that takes contents.
pub fn first_use(mechanism: Mechanism, seed: u64) -> Result<(), String> {
    let options = options(mechanism, seed);
    let images = had_a_pool(&options, seed)?;
    let spans = spans_of_creation(&options, &Cards::with(&images, seed, None, false)?)?;
    for cut in 0..=FIRST_CUTS {
        let which = (seed + cut) as usize % 2;
        // The last one comes when all is done.
        let moment = if cut == FIRST_CUTS {
            spans[which]
        } else {
            (seed * 101 + cut * spans[which] / FIRST_CUTS) % spans[which]
        };
        let cards = Cards::with(&images, seed, Some((which, moment)), true)?;
        let created = options.create(&cards.pool(), POOL_BYTES);
        let is_made = created.is_ok();
        let images = cards.power_cut();
        drop(created);
        let cards = Cards::with(&images, seed, None, false)?;
        if let Some(pool) = opens_empty(&options, &cards, is_made)? {
            fill(&pool).map_err(say)?;
            let states = work(&pool, seed + cut, Values::new())?;
            let images = cards.power_cut();
            drop(pool);
            recovers(mechanism, seed, Cards::with(&images, seed, None, false)?, &states)?;
        }
    }
    Ok(())
}

/// Cuts at one access in a few of the last member while a pool is made, others by other seeds, in
/// front of a cache that keeps what nobody writes back. Where its head arrives there are cuts at
/// each access, and much else of what is on the way arrives or does not.
pub fn creation(seed: u64) -> Result<(), String> {
    const STRIDE: u64 = 2;
    const LAST: usize = 1;
    /// Other cuts at the same access, by seeds of cards that are otherwise alike.
    const AGAIN: u64 = 8;
    const ALIKE: u64 = 12;
    let options = options(Mechanism::Undo, seed);
    let images = had_a_pool(&options, seed)?;
    let powered = |seed, cut| Cards::with_settings(&images, seed, cut, true, seldom_evicting);
    let spans = spans_of_creation(&options, &powered(seed, None)?)?;
    let is_there_after = |moment: u64, again: u64| {
        let cards = powered(seed + again * ALIKE, Some((LAST, moment)))?;
        let created = options.create(&cards.pool(), POOL_BYTES);
        let is_made = created.is_ok();
        let left = cards.power_cut();
        drop(created);
        let opened = opens_empty(&options, &Cards::with(&left, seed, None, false)?, is_made)?;
        Ok::<bool, String>(opened.is_some())
    };
    let mut was_there = false;
    for moment in (seed % STRIDE..spans[LAST]).step_by(STRIDE as usize) {
        let is_there = is_there_after(moment, 0)?;
        if is_there && !was_there {
            for again in 1..=AGAIN {
                (moment.saturating_sub(3)..=moment).try_for_each(|near| is_there_after(near, again).map(drop))?;
            }
        }
        was_there |= is_there;
    }
    Ok(())
}

/// Processes that reach a pool around the cache, one that dies and one that closes it in order,
/// each between two that reach it through the cache.
pub fn uncached(seed: u64) -> Result<(), String> {
    let options = |mechanism| super::options(mechanism).lanes(1).spare_pages(48);
    let images = [vec![0; PM_BYTES], vec![0; PM_BYTES]];
    let first = Cards::with_settings(&images, seed, None, false, seldom_evicting)?;
    let pool = options(Mechanism::Undo).create(&first.pool(), POOL_BYTES).map_err(say)?;
    fill(&pool).map_err(say)?;
    let mut values = last(work(&pool, seed, Values::new())?);
    pool.close().map_err(say)?;
    let mut graves = Vec::new();
    for dies in [true, false] {
        let second = first.next_process(seed)?;
        let pool = options(Mechanism::Redo).caching(Caching::Uncached).open(&second.pool()).map_err(say)?;
        values = last(work(&pool, seed + 1 + u64::from(dies), values)?);
        if dies {
            graves.push(died(pool, &second.0.iter().collect::<Vec<_>>()));
        } else {
            pool.close().map_err(say)?;
        }
        let third = first.next_process(seed)?;
        let pool = options(Mechanism::Undo).open(&third.pool()).map_err(say)?;
        super::same(read(&pool).map_err(say)?, values.clone(), "through the cache")?;
        pool.close().map_err(say)?;
    }
    Ok(())
}

/// Cuts of one card and of all.
pub fn cuts(mechanism: Mechanism, seed: u64) -> Result<(), String> {
    let members = 2 + usize::from(seed % 4 == 3);
    let images = vec![vec![0; PM_BYTES]; members];
    let cards = Cards::with(&images, seed, None, false)?;
    let options = options(mechanism, seed);
    let pool = options.create(&cards.pool(), members as u64 * MEMBER_BYTES).map_err(say)?;
    fill(&pool).map_err(say)?;
    drop(pool);
    let images = cards.power_cut();

    let dry = Cards::with(&images, seed, None, false)?;
    let start = dry.accesses(&vec![0; members]);
    let pool = options.open(&dry.pool()).map_err(say)?;
    let opened = dry.accesses(&start);
    let states = work(&pool, seed, Values::new())?;
    let worked = dry.accesses(&start);
    pool.close().map_err(say)?;
    let whole = Cards::with(&dry.power_cut(), seed, None, false)?;
    recovers(mechanism, seed, whole, &states[states.len() - 1..])?;
    for cut in 0..CUTS {
        let which = cut as usize % members;
        let span = worked[which] - opened[which];
        let cut_after = opened[which] + (seed.wrapping_mul(7919) + cut * span / CUTS) % span;
        let dies = (cut + seed).is_multiple_of(3);
        let cards = Cards::with(&images, seed, Some((which, cut_after)), !dies && cut.is_multiple_of(2))?;
        let Ok(pool) = options.open(&cards.pool()) else { continue };
        let states = work(&pool, seed, Values::new())?;
        if dies {
            // The process dies with the card; the other cards, and what the cache holds of them,
            // stay as they are.
            let _grave = died(pool, &cards.0.iter().collect::<Vec<_>>());
            let waiting = options.open(&cards.pool());
            super::same(waiting.is_err(), true, "a card has gone")?;
            let next = cards.next_process(seed)?;
            recovers(mechanism, seed, next, &states)?;
            continue;
        }
        drop(pool);
        // What comes first is cut, too.
        let images = cards.power_cut();
        let cards = Cards::with(&images, seed, Some((which, 20 + seed * 29 % 400)), cut % 2 == 0)?;
        recovers(mechanism, seed, cards, &states)?;
    }
    Ok(())
}
