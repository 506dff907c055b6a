//! Pools on a card: every mechanism with the card's copies, power cuts at any host access, hostile
//! caches.

mod common;
#[path = "common/on_card.rs"]
mod on_card;

use common::{Model, Operation, apply, check_leaks, contents, create, operations, put};
use nearpm::{Durability, Engine, Error, Mechanism, Options, Pool};
use nearpm_driver::Posting;
use nearpm_driver::mock::{MockCard, MockOptions};
use on_card::{Registered, mock, posting};

const POOL_BYTES: u64 = 512 * 1024;

fn options(mechanism: Mechanism, engine: Engine) -> Options {
    Options::new().mechanism(mechanism).engine(engine).lanes(1).ring_bytes(64 * 1024).epoch_ops(5)
}

/// Does operations until the power fails; returns the states that may survive.
fn run(pool: &Pool, operations: &[Operation], mut model: Model) -> (Vec<Model>, bool) {
    let mut states = vec![model.clone()];
    for operation in operations {
        let before = model.clone();
        let result = apply(pool, &mut model, operation);
        operation.done_to(&mut model);
        if result.is_err() {
            states.push(model);
            return (states, true);
        }
        let statistics = pool.statistics();
        if statistics.acknowledged == statistics.transactions {
            states.clear();
        } else if states.is_empty() {
            states.push(before);
        }
        states.push(model.clone());
    }
    (states, false)
}

fn survives(
    mechanism: Mechanism,
    engine: Engine,
    durability: Durability,
    host_ordered: bool,
    seeds: std::ops::Range<u64>,
) {
    let mut cuts = 0;
    for seed in seeds {
        let what = format!("{mechanism:?}, {engine:?}, {durability:?}, ordered {host_ordered}, seed {seed}");
        let script = operations(seed, 30, 300);
        let settings = MockOptions { host_ordered, completion_records: seed % 5 != 0, ..mock(seed) };
        // A first run without a cut says how many accesses there are to cut at.
        let dry = Registered::new(MockCard::new(settings.clone()), posting(seed)).unwrap();
        let location = dry.pool("p");
        let options = options(mechanism, engine).durability(durability);
        let pool = options.create(&location, POOL_BYTES).unwrap();
        create(&pool).unwrap();
        pool.persist().unwrap();
        drop(pool);
        let image = dry.mock.power_cut();

        let dry = Registered::new(MockCard::with_medium(settings.clone(), image.clone()), posting(seed)).unwrap();
        let pool = options.open(&dry.pool("p")).unwrap();
        let opened = dry.mock.accesses();
        let (states, cut) = run(&pool, &script, Model::new());
        assert!(!cut, "{what}");
        let (model, accesses) = (states.last().unwrap().clone(), dry.mock.accesses());
        assert_eq!(contents(&pool).unwrap(), model, "{what}");
        check_leaks(&pool, &model).unwrap();
        if engine == Engine::Card {
            let statistics = pool.statistics();
            assert!(statistics.commands > 0 && statistics.fallbacks == 0, "{what}: {statistics:?}");
        }
        drop(pool);

        for cut in 0..6u64 {
            let span = accesses - opened;
            let cut_after = opened + (seed.wrapping_mul(7919) + cut * span / 6) % span;
            let settings = MockOptions { cut_after: Some(cut_after), ..settings.clone() };
            let card = Registered::new(MockCard::with_medium(settings.clone(), image.clone()), posting(seed)).unwrap();
            let Ok(pool) = options.open(&card.pool("p")) else { continue };
            let (states, failed) = run(&pool, &script, Model::new());
            drop(pool);
            cuts += u64::from(failed);
            let mut medium = card.mock.power_cut();
            // The recovery is cut too, at growing distances, until it comes through.
            for again in 1..200 {
                let settings = MockOptions { cut_after: Some(again * 37), ..settings.clone() };
                let card = MockCard::with_medium(settings, medium);
                let reopened = Registered::new(card.clone(), posting(seed)).and_then(|card| {
                    let pool = options.open(&card.pool("p"))?;
                    let found = contents(&pool)?;
                    check_leaks(&pool, &found)?;
                    Ok(found)
                });
                medium = card.power_cut();
                if let Ok(found) = reopened {
                    assert!(
                        states.contains(&found),
                        "{what}, cut after {cut_after}: {found:?}\nis none of {} states, last {:?}",
                        states.len(),
                        states.last()
                    );
                    break;
                }
                assert!(again < 199, "{what}: {reopened:?}");
            }
        }
    }
    assert!(cuts > 20, "only {cuts} cuts");
}

/// What a transaction has written to pages that it is the first to touch is put back from where the
/// mechanism has saved them, what it has written to others from what it has kept.
#[test]
fn an_abort_takes_back_writes_to_pages_of_its_own_and_of_former_transactions() {
    const PAGE: u64 = 4096;
    const BYTES: u64 = 5 * PAGE;
    type Writes = [(u64, usize)];
    let former = [(0, 100), (2 * PAGE + 30, 40)];
    let aborted = [(50, 200), (PAGE + 7, 3), (2 * PAGE, 64), (3 * PAGE - 100, 4096)];
    let later = [(PAGE + 5, 10), (3 * PAGE + 64, 128)];
    let engines = [(1, Engine::Card), (2, Engine::Card), (3, Engine::Card), (4, Engine::Cpu)];
    for (mechanism, (seed, engine)) in Mechanism::ALL.into_iter().flat_map(|m| engines.map(|engine| (m, engine))) {
        let what = format!("{mechanism:?}, seed {seed}");
        let settings = MockOptions { host_ordered: seed != 3, ..mock(seed) };
        let card = Registered::new(MockCard::new(settings.clone()), posting(seed)).unwrap();
        let options = options(mechanism, engine).epoch_ops(100);
        let pool = options.create(&card.pool("p"), POOL_BYTES).unwrap();
        let object = pool.tx(|tx| tx.alloc(BYTES)).unwrap();
        let mut model: Vec<u8> = (0..BYTES).map(|n| n as u8).collect();
        let write = |pool: &Pool, writes: &Writes, value: u8, end: Result<(), Error>| {
            pool.tx(|tx| {
                writes.iter().try_for_each(|&(at, bytes)| tx.write(object + at, &vec![value; bytes]))?;
                end
            })
        };
        let remember = |model: &mut [u8], writes: &Writes, value: u8| {
            writes.iter().for_each(|&(at, bytes)| model[at as usize..][..bytes].fill(value));
        };
        let read = |pool: &Pool| pool.tx(|tx| tx.read_vec(object, BYTES as usize)).unwrap();
        pool.tx(|tx| tx.write(object, &model)).unwrap();
        pool.persist().unwrap();
        write(&pool, &former, 0xaa, Ok(())).unwrap();
        remember(&mut model, &former, 0xaa);
        // The second one finds each page touched.
        for value in [0xbb, 0xcc] {
            write(&pool, &aborted, value, Err(Error::abort("no"))).unwrap_err();
            assert_eq!(read(&pool), model, "{what}");
        }
        write(&pool, &later, 0xdd, Ok(())).unwrap();
        remember(&mut model, &later, 0xdd);
        assert_eq!(read(&pool), model, "{what}");
        pool.persist().unwrap();
        drop(pool);
        let card = MockCard::with_medium(settings, card.mock.power_cut());
        let card = Registered::new(card, posting(seed)).unwrap();
        assert_eq!(read(&options.open(&card.pool("p")).unwrap()), model, "{what}, after a power cut");
    }
}

#[test]
fn undo_survives_power_cuts() {
    survives(Mechanism::Undo, Engine::Card, Durability::Durable, true, 0..20);
    survives(Mechanism::Undo, Engine::Card, Durability::Asynchronous, true, 20..32);
}

#[test]
fn redo_survives_power_cuts() {
    survives(Mechanism::Redo, Engine::Card, Durability::Durable, true, 0..20);
    survives(Mechanism::Redo, Engine::Card, Durability::Asynchronous, true, 20..32);
}

#[test]
fn checkpoints_survive_power_cuts() {
    survives(Mechanism::Checkpoint, Engine::Card, Durability::Durable, true, 0..20);
}

#[test]
fn shadow_pages_survive_power_cuts() {
    survives(Mechanism::Shadow, Engine::Card, Durability::Durable, true, 0..20);
}

#[test]
fn a_card_that_does_not_order_host_accesses_is_waited_for() {
    for mechanism in Mechanism::ALL {
        survives(mechanism, Engine::Card, Durability::Durable, false, 40..46);
    }
}

#[test]
fn the_processor_keeps_a_pool_on_a_card_consistent_too() {
    for mechanism in Mechanism::ALL {
        survives(mechanism, Engine::Cpu, Durability::Durable, true, 50..56);
    }
}

/// The program's own stores may still be in the cache when it asks for a log: the log must hold
/// them.
#[test]
fn a_log_captures_what_the_program_has_stored_and_not_flushed() {
    for seed in 0..80 {
        let card = Registered::new(MockCard::new(mock(seed)), posting(seed)).unwrap();
        let engine = if seed % 2 == 0 { Engine::Card } else { Engine::Cpu };
        let options = Options::new().engine(engine).lanes(2).ring_bytes(64 * 1024);
        let pool = options.create(&card.pool("p"), POOL_BYTES).unwrap();
        let object = pool.tx(|tx| tx.alloc_zeroed(4096)).unwrap();
        let page = object / 4096 * 4096;
        for round in 0..4u8 {
            pool.store(object + 40, &[round; 100]).unwrap();
            if round % 2 == 0 {
                pool.undolog_create(0, object + 40, 100).unwrap();
            } else {
                pool.ckpoint_create(0, page, 4096).unwrap();
            }
            pool.store(object + 40, &[0xee; 100]).unwrap();
            if seed % 3 == 0 {
                pool.flush(object + 40, 100).unwrap();
            }
            pool.abort_log(0).unwrap();
            let mut found = [0; 100];
            pool.load(object + 40, &mut found).unwrap();
            assert_eq!(found, [round; 100], "seed {seed}, round {round}");
        }
        pool.undolog_create(0, object + 40, 100).unwrap();
        pool.store(object + 40, &[0xdd; 100]).unwrap();
        pool.flush(object + 40, 100).unwrap();
        let medium = card.mock.power_cut();
        let after = Registered::new(MockCard::with_medium(mock(seed), medium), Posting::Line).unwrap();
        let pool = options.open(&after.pool("p")).unwrap();
        assert_eq!(pool.tx(|tx| tx.read_vec(object + 40, 100)).unwrap(), [3; 100], "seed {seed}");
    }
}

/// Table 2 on the card: redo logs, checkpoints and shadow copies by hand.
#[test]
fn the_primitives_work_on_a_card() {
    for seed in 0..20 {
        let card = Registered::new(MockCard::new(mock(seed)), posting(seed)).unwrap();
        let options = Options::new().engine(Engine::Card).lanes(3).ring_bytes(32 * 1024);
        let pool = options.create(&card.pool("p"), POOL_BYTES).unwrap();
        let (object, reference) = pool.tx(|tx| Ok((tx.alloc_zeroed(4096)?, tx.alloc_zeroed(64)?))).unwrap();
        pool.tx(|tx| tx.write_u64(reference, object)).unwrap();
        let first = pool.redolog_create(0, object, &[1; 100]).unwrap();
        let second = pool.redolog_create(0, object + 1000, &[2; 100]).unwrap();
        pool.applylog(0, first, 100).unwrap();
        pool.applylog(0, second, 100).unwrap();
        pool.commit_log(0).unwrap();
        let copy = pool.shadowcpy(1, object, 4096).unwrap();
        pool.store(copy + 2000, &[3; 100]).unwrap();
        pool.flush(copy, 4096).unwrap();
        pool.switch_page(reference, copy).unwrap();
        assert!(pool.statistics().commands >= 8);
        let medium = card.mock.power_cut();
        let after = Registered::new(MockCard::with_medium(mock(seed), medium), Posting::Line).unwrap();
        let pool = options.open(&after.pool("p")).unwrap();
        let page = pool.tx(|tx| tx.read_u64(reference)).unwrap();
        assert_eq!(page, copy);
        let found = pool.tx(|tx| tx.read_vec(page, 4096)).unwrap();
        assert_eq!((found[0], found[999], found[1000], found[1099], found[2000], found[2100]), (1, 0, 2, 2, 3, 0));
        assert_eq!(pool.objects().unwrap().len(), 2, "the old page was freed");
    }
}

#[test]
fn a_full_mapping_table_falls_back_to_the_processor_and_is_counted() {
    let card = Registered::new(MockCard::new(MockOptions { pm_bytes: 8 << 20, ..mock(3) }), Posting::Line).unwrap();
    let options = options(Mechanism::Undo, Engine::Card);
    let pools: Vec<Pool> = (0..17).map(|n| options.create(&card.pool(&format!("p{n}")), 400 * 1024).unwrap()).collect();
    for (n, pool) in pools.iter().enumerate() {
        create(pool).unwrap();
        let mut model = Model::new();
        for operation in operations(n as u64, 10, 100) {
            apply(pool, &mut model, &operation).unwrap();
        }
        assert_eq!(contents(pool).unwrap(), model);
        let statistics = pool.statistics();
        assert_eq!(statistics.fallbacks, u64::from(n == 16), "pool {n}");
        assert_eq!(statistics.commands == 0, n == 16, "pool {n}");
    }
}

#[test]
fn a_failed_log_names_the_range_and_the_pool_is_recovered_by_opening_it() {
    let card = Registered::new(MockCard::new(mock(4)), Posting::Line).unwrap();
    let options = options(Mechanism::Undo, Engine::Card);
    let pool = options.create(&card.pool("p"), POOL_BYTES).unwrap();
    let object = pool
        .tx(|tx| {
            let object = tx.alloc_zeroed(4096)?;
            tx.set_root(object)?;
            Ok(object)
        })
        .unwrap();
    let base = nearpm::list(card.name.name()).unwrap()[0].base;
    card.mock.break_memory(base + object + 1024..base + object + 1088);
    let error = pool.tx(|tx| tx.write(object + 1024, &[1; 64])).unwrap_err();
    let Error::LogFailed { offset, length, .. } = error else { panic!("{error}") };
    assert_eq!((offset, length), (object + 1024, 64));
    assert!(matches!(pool.tx(|tx| tx.root()), Err(Error::Poisoned)));
    drop(pool);
    let pool = options.open(&card.pool("p")).unwrap();
    assert_eq!(pool.tx(|tx| tx.read_vec(object, 1024)).unwrap(), vec![0; 1024]);
    pool.tx(|tx| tx.write(object, &[2; 64])).unwrap();
}

/// Memory refuses a store that the card had accepted: the call that would have acknowledged it says
/// so, and so does every open until it is accepted.
#[test]
fn a_lost_store_names_the_range_and_acknowledges_nothing() {
    for mechanism in [Mechanism::Undo, Mechanism::Redo, Mechanism::Checkpoint, Mechanism::Shadow] {
        let card = Registered::new(MockCard::new(mock(6)), Posting::Line).unwrap();
        let options = options(mechanism, Engine::Card);
        let pool = options.create(&card.pool("p"), POOL_BYTES).unwrap();
        let object = pool
            .tx(|tx| {
                let object = tx.alloc_zeroed(8192)?;
                tx.set_root(object)?;
                Ok(object)
            })
            .unwrap();
        pool.persist().unwrap();
        let base = nearpm::list(card.name.name()).unwrap()[0].base;
        // Any store of the pool: which lines a mechanism stores to is its own.
        card.mock.refuse_stores(base..base + POOL_BYTES);
        let told = pool.tx(|tx| tx.write(object + 1024, &[1; 64])).and_then(|()| pool.persist());
        let error = told.expect_err("a lost store was acknowledged");
        let Error::StoresLost { offset, length, .. } = error else { panic!("{mechanism:?}: {error}") };
        assert!(length >= 64 && offset + length <= POOL_BYTES, "{mechanism:?}: {length} bytes at {offset:#x}");
        assert!(matches!(pool.tx(|tx| tx.root()), Err(Error::Poisoned)), "{mechanism:?}");
    }
}

#[test]
fn the_table_of_pools_survives_cuts_and_knows_names() {
    let card = Registered::new(MockCard::new(mock(5)), Posting::Line).unwrap();
    let options = options(Mechanism::Undo, Engine::Auto);
    drop(options.create(&card.pool("first"), POOL_BYTES).unwrap());
    drop(options.create(&card.pool("second"), POOL_BYTES).unwrap());
    let names = |name: &str| nearpm::list(name).unwrap().into_iter().map(|p| p.name).collect::<Vec<_>>();
    assert_eq!(names(card.name.name()), ["first", "second"]);
    let error = options.create(&card.pool("first"), POOL_BYTES).unwrap_err().to_string();
    assert!(error.contains("exists already"), "{error}");
    let error = options.create(&card.pool("third"), 16 << 20).unwrap_err().to_string();
    assert!(error.contains("not that many free"), "{error}");
    let open = options.open(&card.pool("first")).unwrap();
    let error = options.open(&card.pool("first")).unwrap_err().to_string();
    assert!(error.contains("open already"), "{error}");
    let error = nearpm::remove(&card.pool("first")).unwrap_err().to_string();
    assert!(error.contains("open already"), "{error}");
    drop(open);
    nearpm::remove(&card.pool("first")).unwrap();
    assert_eq!(names(card.name.name()), ["second"]);
    let error = options.open(&card.pool("first")).unwrap_err().to_string();
    assert!(error.contains("does not exist"), "{error}");
    for bad in ["", "a/b", "x:y", &"n".repeat(33)] {
        let error = options.create(&card.pool(bad), POOL_BYTES).unwrap_err().to_string();
        assert!(error.contains("bad name"), "{bad:?}: {error}");
    }
    let error = options.open("card:nobody/p").unwrap_err().to_string();
    assert!(error.contains("register"), "{error}");

    // A cut at any access of a creation leaves the old table or the new one.
    let image = card.mock.power_cut();
    for cut_after in (20..1200).step_by(13) {
        let settings = MockOptions { cut_after: Some(cut_after), ..mock(cut_after) };
        let cut = MockCard::with_medium(settings, image.clone());
        if let Ok(card) = Registered::new(cut.clone(), Posting::Line) {
            let _ = options.create(&card.pool("new"), 400 * 1024);
        }
        let after = Registered::new(MockCard::with_medium(mock(1), cut.power_cut()), Posting::Line).unwrap();
        let found = names(after.name.name());
        assert!(found == ["second"] || found == ["second", "new"], "{cut_after}: {found:?}");
        drop(options.open(&after.pool("second")).unwrap());
        if found.len() == 2 {
            drop(options.open(&after.pool("new")).unwrap());
        }
    }
}

#[test]
fn one_damaged_copy_of_the_table_is_survived_and_two_are_refused() {
    let card = Registered::new(MockCard::new(mock(6)), Posting::Line).unwrap();
    let options = options(Mechanism::Undo, Engine::Auto);
    drop(options.create(&card.pool("a"), POOL_BYTES).unwrap());
    drop(options.create(&card.pool("b"), POOL_BYTES).unwrap());
    let mut image = card.mock.power_cut();
    // The first change wrote copy 0, the second copy 1.
    image[70] ^= 1;
    let after = Registered::new(MockCard::with_medium(mock(1), image.clone()), Posting::Line).unwrap();
    assert_eq!(nearpm::list(after.name.name()).unwrap().len(), 2);
    image[0x8000 + 70] ^= 1;
    let after = Registered::new(MockCard::with_medium(mock(1), image), Posting::Line).unwrap();
    let error = nearpm::list(after.name.name()).unwrap_err().to_string();
    assert!(error.contains("corrupt"), "{error}");
}

/// The program stores beside redo transactions, through the cache that the applies go around:
/// neither loses what the other wrote.
#[test]
fn stores_of_the_program_and_redo_transactions_see_each_other() {
    for seed in 0..60 {
        let card = Registered::new(MockCard::new(mock(seed)), posting(seed)).unwrap();
        let options = Options::new().mechanism(Mechanism::Redo).engine(Engine::Card).lanes(2).ring_bytes(64 * 1024);
        let pool = options.create(&card.pool("p"), POOL_BYTES).unwrap();
        let object = pool.tx(|tx| tx.alloc_zeroed(4096)).unwrap();
        for round in 1..6u8 {
            // One line, in thirds: by a transaction, by a store, by a transaction that reads
            // before.
            pool.tx(|tx| tx.write(object, &[round; 16])).unwrap();
            let mut found = [0; 16];
            pool.load(object, &mut found).unwrap();
            assert_eq!(found, [round; 16], "seed {seed}: the program does not see the transaction");
            pool.store(object + 16, &[round; 16]).unwrap();
            let found = pool.tx(|tx| {
                let found = tx.read_vec(object + 16, 16)?;
                tx.write(object + 32, &[round; 16])?;
                Ok(found)
            });
            assert_eq!(found.unwrap(), [round; 16], "seed {seed}: the transaction does not see the store");
            pool.tx(|tx| tx.write(object + 2048, &[round; 300])).unwrap();
            pool.store(object + 16, &[round | 0x80; 16]).unwrap();
            // The line is dirty now, and nobody reads it before it is changed again.
            pool.tx(|tx| tx.write(object + 48, &[round; 16])).unwrap();
            let line = pool.tx(|tx| tx.read_vec(object, 64)).unwrap();
            assert_eq!(line[..16], [round; 16], "seed {seed}");
            assert_eq!(line[16..32], [round | 0x80; 16], "seed {seed}");
            assert_eq!(line[32..], [round; 32], "seed {seed}");
        }
        pool.flush(object, 64).unwrap();
        pool.close().unwrap();
        let medium = card.mock.power_cut();
        let after = Registered::new(MockCard::with_medium(mock(seed), medium), Posting::Line).unwrap();
        let pool = options.open(&after.pool("p")).unwrap();
        let line = pool.tx(|tx| tx.read_vec(object, 64)).unwrap();
        assert_eq!((line[0], line[16], line[32], line[63]), (5, 5 | 0x80, 5, 5), "seed {seed}");
    }
}

/// A process dies and leaves its lines in the processor's cache; the next one opens the pool on the
/// same boot.
#[test]
fn a_process_that_dies_leaves_a_pool_that_recovers() {
    for mechanism in [Mechanism::Redo, Mechanism::Shadow] {
        for seed in 0..40 {
            let what = format!("{mechanism:?}, seed {seed}");
            let card = Registered::new(MockCard::new(mock(seed)), posting(seed)).unwrap();
            let options = options(mechanism, Engine::Card);
            let pool = options.create(&card.pool("p"), POOL_BYTES).unwrap();
            create(&pool).unwrap();
            pool.persist().unwrap();
            let (states, cut) = run(&pool, &operations(seed, 20 + seed as usize % 7, 300), Model::new());
            assert!(!cut, "{what}");
            std::mem::forget(pool);
            let next = Registered::new(card.mock.clone(), posting(seed)).unwrap();
            let pool = options.open(&next.pool("p")).unwrap_or_else(|e| panic!("{what}: {e}"));
            let found = contents(&pool).unwrap();
            assert!(states.contains(&found), "{what}: {found:?}\nis none of {} states", states.len());
            check_leaks(&pool, &found).unwrap();
        }
    }
}

/// A log of another thread of the pool has failed: whatever would acknowledge something says so,
/// and the pool ends there.
#[test]
fn a_failed_log_of_another_thread_is_told_by_whatever_acknowledges() {
    type Call = fn(&Pool, u64) -> Result<(), Error>;
    let calls: [(&str, Mechanism, Call); 6] = [
        ("undo commit", Mechanism::Undo, |pool, object| pool.tx(|tx| tx.write(object, &[1; 64]))),
        ("redo commit", Mechanism::Redo, |pool, object| pool.tx(|tx| tx.write(object, &[1; 64]))),
        ("persist", Mechanism::Undo, |pool, _| pool.persist()),
        ("commit of another log", Mechanism::Undo, |pool, object| {
            pool.undolog_create(1, object, 64)?;
            pool.commit_log(1)
        }),
        ("asynchronous commit, then persist", Mechanism::Redo, |pool, object| {
            pool.tx_with(Durability::Asynchronous, |tx| tx.write(object, &[1; 64]))?;
            pool.persist()
        }),
        ("load of what is held back", Mechanism::Undo, |pool, object| pool.load(object + 1024, &mut [0; 8])),
    ];
    for (what, mechanism, call) in calls {
        let mut told_late = 0;
        for seed in 0..12 {
            let ordered = seed % 3 > 0;
            let settings = MockOptions { host_ordered: ordered, ..mock(seed) };
            let card = Registered::new(MockCard::new(settings), Posting::Line).unwrap();
            let options = Options::new().mechanism(mechanism).engine(Engine::Card).lanes(3).ring_bytes(64 * 1024);
            let pool = options.create(&card.pool("p"), POOL_BYTES).unwrap();
            let other = options.create(&card.pool("other"), POOL_BYTES).unwrap();
            let object = pool.tx(|tx| tx.alloc(4096)).unwrap();
            pool.store(object + 1024, &[0xff; 8]).unwrap();
            pool.flush(object + 1024, 8).unwrap();
            let base = nearpm::list(card.name.name()).unwrap()[0].base;
            card.mock.break_memory(base + object + 2048..base + object + 2112);
            // A card that orders host accesses lets the program go on, most often before the log
            // has failed.
            let logged = pool.undolog_create(0, object + 2048, 64);
            assert!(ordered || logged.is_err(), "{what}");
            card.mock.finish_commands();
            told_late += u64::from(logged.is_ok());
            let error = logged.and_then(|()| call(&pool, object)).unwrap_err();
            let Error::LogFailed { offset, length, .. } = error else { panic!("{what}: {error}") };
            assert_eq!((offset, length), (object + 2048, 64), "{what}");
            assert!(error.to_string().contains("nothing was acknowledged"), "{error}");
            assert!(matches!(pool.tx(|tx| tx.root()), Err(Error::Poisoned)), "{what}");
            assert!(matches!(pool.persist(), Err(Error::Poisoned)), "{what}");
            other.tx(|tx| tx.alloc(64)).unwrap();
            other.close().unwrap();
            drop(pool);
            let pool = options.open(&card.pool("p")).unwrap();
            pool.tx(|tx| tx.write(object, &[2; 64])).unwrap();
            pool.undolog_create(0, object, 64).unwrap();
            pool.commit_log(0).unwrap();
            pool.close().unwrap();
        }
        assert!(told_late > 3, "{what}: {told_late}");
    }
}

/// Nothing is waited for until the pool is closed, which waits for everything.
#[test]
fn a_log_that_fails_after_its_commit_is_told_when_the_pool_is_closed() {
    for seed in 0..20 {
        let card = Registered::new(MockCard::new(mock(2 * seed + 1)), Posting::Line).unwrap();
        let options = options(Mechanism::Undo, Engine::Card).durability(Durability::Asynchronous);
        let pool = options.create(&card.pool("p"), POOL_BYTES).unwrap();
        let object = pool.tx(|tx| tx.alloc(4096)).unwrap();
        pool.persist().unwrap();
        let base = nearpm::list(card.name.name()).unwrap()[0].base;
        card.mock.break_memory(base + object + 1024..base + object + 1088);
        let committed = pool.tx(|tx| tx.write(object + 1024, &[1; 64]));
        let told = committed.and_then(|()| pool.close());
        assert!(matches!(told, Err(Error::LogFailed { .. })), "seed {seed}: {told:?}");
    }
}

/// The process that has the pool open stops for ever, between two transactions or inside of one.
fn dies(pool: Pool, inside: bool) {
    if !inside {
        return std::mem::forget(pool);
    }
    let (begun, waits) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        pool.tx(|tx| -> Result<(), Error> {
            (0..5).try_for_each(|key| put(tx, key, &[0xdd; 200]))?;
            begun.send(()).expect("the test waits");
            loop {
                std::thread::park();
            }
        })
    });
    waits.recv().expect("the transaction begins");
}

/// Three processes on one boot: two die, and each is followed by one that uses another mechanism,
/// or the processor alone. What the dead left in the processor's cache, before commands wrote it or
/// dirty, reaches nobody.
#[test]
fn a_process_that_dies_leaves_a_pool_to_every_other_mechanism() {
    for seed in 0..256 {
        let mechanism = |n: u64| Mechanism::ALL[(seed / n) as usize % 4];
        let engine = |n: u64| if (seed / n) % 3 == 2 { Engine::Cpu } else { Engine::Card };
        let processes = [(mechanism(1), Engine::Card), (mechanism(4), engine(1)), (mechanism(16), engine(3))];
        let what = format!("{processes:?}, seed {seed}");
        let card = Registered::new(MockCard::new(mock(seed)), posting(seed)).unwrap();
        let pool = options(processes[0].0, processes[0].1).create(&card.pool("p"), POOL_BYTES).unwrap();
        create(&pool).unwrap();
        pool.persist().unwrap();
        let mut at_work = (card, pool, Model::new());
        for (n, &(mechanism, engine)) in processes[1..].iter().enumerate() {
            let (card, pool, model) = at_work;
            let operations = operations(seed + 1000 * n as u64, 20 + seed as usize % 7, 300);
            let (states, cut) = run(&pool, &operations, model);
            assert!(!cut, "{what}");
            dies(pool, seed % 2 == 0);
            let next = Registered::new(card.mock.clone(), posting(seed)).unwrap();
            let pool = options(mechanism, engine).open(&next.pool("p")).unwrap_or_else(|e| panic!("{what}: {e}"));
            let found = contents(&pool).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(states.contains(&found), "{what}: {found:?}\nis none of {} states", states.len());
            check_leaks(&pool, &found).unwrap_or_else(|e| panic!("{what}: {e}"));
            at_work = (next, pool, found);
        }
        let (_card, pool, mut model) = at_work;
        for operation in operations(seed, 10, 300) {
            apply(&pool, &mut model, &operation).unwrap();
        }
        assert_eq!(contents(&pool).unwrap(), model, "{what}");
        pool.close().unwrap();
    }
}

/// A pool goes from a file to a card with its identifier and its offsets, or not at all.
#[test]
fn a_pool_is_copied_to_a_card() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pool");
    let file = file.to_str().unwrap();
    let card = Registered::new(MockCard::new(mock(1)), posting(1)).unwrap();
    let pool = options(Mechanism::Undo, Engine::Cpu).id(9).create(file, POOL_BYTES).unwrap();
    create(&pool).unwrap();
    let mut model = Model::new();
    operations(1, 60, 200).iter().for_each(|operation| apply(&pool, &mut model, operation).unwrap());
    pool.close().unwrap();
    let copied = nearpm::check::copy(file, &card.pool("copy"), None).unwrap();
    assert_eq!(copied.bytes, POOL_BYTES);
    let pool = Options::new().open(&card.pool("copy")).unwrap();
    assert_eq!((contents(&pool).unwrap(), pool.id()), (model.clone(), 9));
    apply(&pool, &mut model, &Operation::Put { key: 3, bytes: 50, fill: 7 }).unwrap();
    assert_eq!(contents(&pool).unwrap(), model);
    pool.close().unwrap();
    // And back, with what has happened to it.
    let (back, on_card) = (format!("{file}-back"), card.pool("copy"));
    assert!(nearpm::check::check(&on_card).unwrap().is_sound());
    assert_eq!(nearpm::check::Image::open(&on_card).unwrap().info().unwrap().id, 9);
    nearpm::check::copy(&on_card, &back, None).unwrap();
    assert_eq!(contents(&Options::new().open(&back).unwrap()).unwrap(), model);
    let open = Options::new().open(&on_card).unwrap();
    assert!(nearpm::check::check(&on_card).is_err(), "it is in use");
    drop(open);
    // The identifier is taken, and so is the name; nothing else appears.
    for name in ["copy", "other"] {
        assert!(nearpm::check::copy(file, &card.pool(name), None).is_err());
    }
    assert!(nearpm::check::copy(file, &card.pool("large"), Some(1 << 40)).is_err());
    assert_eq!(nearpm::list(card.name.name()).unwrap().len(), 1);
}
