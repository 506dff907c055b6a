//! Direct pools on a card: what is refused, who may open them after whom, and what becomes of them
//! when the card fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nearpm::direct::{DirectPool, Mode};
use nearpm::{Engine, Error, Mechanism, Options, Problem, cards};
use nearpm_driver::card::PoolMapping;
use nearpm_driver::mock::{MockCard, MockOptions};
use nearpm_driver::{Card, CardOptions};
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::media::PAGE_BYTES;

const BYTES: u64 = 512 << 10;

/// A card and its name.
struct Registered {
    name: cards::Registered,
    card: Arc<Card>,
    mock: MockCard,
}

impl Registered {
    fn new(seed: u64) -> Registered {
        Registered::of(MockCard::new(MockOptions { pm_bytes: 4 << 20, seed, ..MockOptions::default() }))
    }

    fn of(mock: MockCard) -> Registered {
        let card = Arc::new(Card::open(Arc::new(mock.clone()), CardOptions::default()).unwrap());
        Registered { name: cards::Registered::new(card.clone()), card, mock }
    }

    /// The next process on the same boot of the host.
    fn next_process(&self) -> Registered {
        Registered::of(self.mock.clone())
    }

    fn pool(&self, pool: &str) -> String {
        self.name.pool(pool)
    }

    fn names(&self) -> Vec<String> {
        nearpm::list(self.name.name()).unwrap().into_iter().map(|p| p.name).collect()
    }
}

fn problem(result: Result<DirectPool, Error>) -> Problem {
    match result {
        Err(Error::Pool { problem, .. }) => problem,
        other => panic!("not refused as a pool: {other:?}"),
    }
}

fn create(card: &Registered, options: &Options) -> Result<DirectPool, Error> {
    DirectPool::create(&card.pool("p"), BYTES, options)
}

fn open(card: &Registered) -> DirectPool {
    DirectPool::open(&card.pool("p"), &Options::new()).unwrap()
}

/// Commits a new root of so many bytes, all of them `fill`, and frees the former one.
fn put_root(pool: &DirectPool, bytes: usize, fill: u8) -> Result<(), Error> {
    let mut tx = pool.begin()?;
    let object = tx.alloc(pool, bytes as u64)?.offset;
    poke(pool, object, &vec![fill; bytes]);
    if pool.root() != 0 {
        tx.free(pool, pool.root())?;
    }
    tx.set_root(object);
    tx.commit(pool)
}

/// Changes a byte in the middle of the root in a transaction.
fn change_root(pool: &DirectPool, bytes: usize, fill: u8) -> Result<(), Error> {
    let at = pool.root() + bytes as u64 / 2;
    let mut tx = pool.begin()?;
    tx.add(pool, at..at + 1)?;
    poke(pool, at, &[fill]);
    tx.commit(pool)
}

/// Makes the first bytes of the root durable.
fn persist(pool: &DirectPool, bytes: u64) -> Result<(), Error> {
    let range = pool.root()..pool.root() + bytes;
    pool.persist(std::slice::from_ref(&range))
}

#[allow(unsafe_code)]
fn poke(pool: &DirectPool, offset: u64, data: &[u8]) {
    assert!(pool.heap().start <= offset && offset + data.len() as u64 <= pool.heap().end);
    // SAFETY: the range lies in the heap of the pool, which is open, and this thread alone uses it.
    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), pool.base().add(offset as usize), data.len()) }
}

#[allow(unsafe_code)]
fn peek(pool: &DirectPool, bytes: usize) -> Vec<u8> {
    assert!(pool.usable_bytes(pool.root()).unwrap() >= bytes as u64);
    // SAFETY: the root is an object with as many bytes, and nobody stores to it meanwhile.
    unsafe { std::slice::from_raw_parts(pool.base().add(pool.root() as usize), bytes).to_vec() }
}

/// A root of one value with a changed byte, and with the first bytes as transactions of a mechanism
/// have written them.
fn expected(bytes: usize, fill: u8, written: &[u8]) -> Vec<u8> {
    let mut data = vec![fill; bytes];
    data[bytes / 2] = 0xaa;
    data[..written.len()].copy_from_slice(written);
    data
}

#[test]
fn what_a_card_cannot_have_is_refused_before_anything_is_written() {
    let card = Registered::new(1);
    let in_place = Options::new().mode(Mode::InPlace);
    let Problem::BadOption { what } = problem(create(&card, &in_place)) else { panic!("another problem") };
    assert!(what.contains("use Mode::WorkingCopy"), "{what}");
    let cut = Options::new().power_cut("fence=3".parse::<nearpm::memory::PowerCut>().unwrap());
    assert!(matches!(problem(create(&card, &cut)), Problem::BadOption { .. }));
    for bytes in [0, 8192] {
        let created = DirectPool::create(&card.pool("p"), bytes, &Options::new());
        assert!(matches!(problem(created), Problem::TooSmall { .. }));
    }
    let created = DirectPool::create(&card.pool("p"), 1 << 40, &Options::new());
    assert!(matches!(problem(created), Problem::NoSpace { .. }));
    let created = DirectPool::create("card:nobody/p", BYTES, &Options::new());
    assert!(matches!(problem(created), Problem::UnknownCard { .. }));
    assert_eq!(card.names(), [""; 0]);
    assert!(matches!(problem(DirectPool::open(&card.pool("p"), &Options::new())), Problem::NotFound));

    let pool = create(&card, &Options::new().id(7)).unwrap();
    assert_eq!(pool.id(), 7);
    assert_eq!(problem(create(&card, &Options::new())), Problem::Exists);
    let same = DirectPool::create(&card.pool("q"), BYTES, &Options::new().id(7));
    assert!(matches!(problem(same), Problem::BadOption { .. }));
    let again = DirectPool::open(&card.pool("p"), &Options::new());
    assert_eq!(problem(again), Problem::InUse { process: Some(std::process::id()) });
    assert!(nearpm::remove(&card.pool("p")).is_err());
    assert!(matches!(problem(DirectPool::open(&card.pool("p"), &in_place)), Problem::BadOption { .. }));
    pool.close().unwrap();
    nearpm::remove(&card.pool("p")).unwrap();
    assert_eq!(card.names(), [""; 0]);
}

/// Processes of both kinds, one after the other on one boot of the host; some close the pool and
/// some die.
#[test]
fn pools_go_to_and_fro_between_direct_use_and_the_mechanisms() {
    for seed in 0..30u64 {
        let mechanism = Mechanism::ALL[seed as usize % 4];
        let engine = if seed % 5 == 4 { Engine::Cpu } else { Engine::Card };
        let what = format!("{mechanism:?}, {engine:?}, seed {seed}");
        let mut card = Registered::new(seed);
        // Shadow paging needs pages that others leave alone.
        create(&card, &Options::new().spare_pages(10)).unwrap().close().unwrap();
        for round in 0..4u8 {
            let bytes = [60, 700, 5000, 20_000][(seed as usize + usize::from(round)) % 4];
            let pool = open(&card);
            put_root(&pool, bytes, round).unwrap();
            (0..seed % 40).for_each(|n| change_root(&pool, bytes, n as u8).unwrap());
            change_root(&pool, bytes, 0xaa).unwrap();
            if seed % 2 == 0 {
                pool.close().unwrap();
            } else {
                std::mem::forget(pool);
                card = card.next_process();
            }
            let options = Options::new().mechanism(mechanism).engine(engine).epoch_ops(1);
            let pool = options.open(&card.pool("p")).unwrap_or_else(|e| panic!("{what}: {e}"));
            pool.check().unwrap();
            let root = pool.root().unwrap();
            let found = pool.tx(|tx| tx.read_vec(root, bytes)).unwrap();
            assert!(found == expected(bytes, round, &[]), "{what}, round {round}");
            (0..20).for_each(|n| pool.tx(|tx| tx.write(root + n, &[0xbb])).unwrap());
            pool.persist().unwrap();
            if seed % 3 == 0 {
                pool.close().unwrap();
            } else {
                std::mem::forget(pool);
                card = card.next_process();
            }
            assert!(peek(&open(&card), bytes) == expected(bytes, round, &[0xbb; 20]), "{what}, round {round}");
        }
    }
}

/// Pages that the card has moved come home where a program uses a pool by pointer, whatever has
/// changed places with what.
#[test]
fn pages_that_shadow_paging_has_moved_come_home() {
    for (seed, spare) in (0..6).map(|seed| (seed, [24, 12][seed as usize % 2])) {
        const LONG: usize = 30_000;
        let mut card = Registered::new(seed);
        let by_offsets = Options::new().mechanism(Mechanism::Shadow).epoch_ops(1).spare_pages(spare);
        let pool = by_offsets.create(&card.pool("p"), BYTES).unwrap();
        let root = pool.tx(|tx| tx.alloc_zeroed(LONG as u64)).unwrap();
        pool.tx(|tx| tx.set_root(root)).unwrap();
        let mut model = vec![0; LONG];
        for number in 0..40u64 {
            let at = (number * 7919 + seed * 3001) % (LONG as u64 - 200);
            pool.tx(|tx| tx.write(root + at, &[number as u8; 200])).unwrap();
            model[at as usize..][..200].fill(number as u8);
        }
        if seed % 3 == 0 {
            pool.close().unwrap();
        } else {
            pool.persist().unwrap();
            std::mem::forget(pool);
            card = card.next_process();
        }
        let by_pointer = open(&card);
        assert!(by_pointer.recovery().redone > 0 && peek(&by_pointer, LONG) == model, "seed {seed}");
        drop(by_pointer);
        let pool = by_offsets.open(&card.pool("p")).unwrap();
        pool.check().unwrap();
        assert!(pool.tx(|tx| tx.read_vec(root, LONG)).unwrap() == model, "seed {seed}");
    }
}

/// The card goes away at any access: no call claims anything afterwards, and none blames the pool.
#[test]
fn a_card_that_goes_away_is_an_error_and_ends_the_pool() {
    const LONG: usize = 20_000;
    let card = Registered::new(3);
    let pool = create(&card, &Options::new()).unwrap();
    put_root(&pool, LONG, 1).unwrap();
    drop(pool);
    let image = card.mock.power_cut();
    let work = |pool: &DirectPool| (0..20).try_for_each(|n| put_root(pool, LONG + n, 2));
    let powered = |seed, cut_after| {
        let settings = MockOptions { pm_bytes: image.len(), cut_after, seed, ..MockOptions::default() };
        Registered::of(MockCard::with_medium(settings, image.clone()))
    };
    let card = powered(3, None);
    let before = card.mock.accesses();
    let pool = open(&card);
    let opened = card.mock.accesses();
    work(&pool).unwrap();
    let worked = card.mock.accesses();
    for n in 0..60 {
        // A third of the cuts fall into the opening.
        let cut_after = match n % 3 {
            0 => before + 1 + n * (opened - before - 1) / 60,
            _ => opened + n * (worked - opened) / 90,
        };
        let card = powered(n, Some(cut_after));
        let error = match DirectPool::open(&card.pool("p"), &Options::new()) {
            Err(error) => error,
            Ok(pool) => {
                assert!(n % 3 > 0, "cut after {cut_after} of {opened} accesses in the opening");
                let error = (0..10).find_map(|_| work(&pool).err()).expect("the card has gone away");
                assert!(matches!(pool.begin(), Err(Error::Poisoned)));
                assert!(matches!(persist(&pool, 8), Err(Error::Poisoned)));
                pool.close().unwrap();
                error
            }
        };
        assert!(matches!(error, Error::Card(_)), "cut after {cut_after}: {error}");
    }
}

/// Somebody else's log of this pool has failed on the card, which may have dropped what the pool
/// stored: nothing is acknowledged.
#[test]
fn a_failed_log_of_the_pool_is_told_by_whatever_acknowledges() {
    type Call = fn(&DirectPool) -> Result<(), Error>;
    let calls: [(&str, Call); 3] = [
        ("commit", |pool| put_root(pool, 100, 2)),
        ("persist", |pool| persist(pool, 8)),
        ("long persist", |pool| persist(pool, 100_000)),
    ];
    let ways = Mechanism::ALL.into_iter().map(Some).chain([None]);
    for (by, (what, call)) in ways.into_iter().flat_map(|by| calls.map(|call| (by, call))) {
        let card = Registered::new(4);
        // The pool's mechanism uses the second of two rings.
        let (ring, ring_bytes) = (PAGE_BYTES, 128 << 10);
        let pool = create(&card, &Options::new().mechanism(by).lanes(2).ring_bytes(ring_bytes)).unwrap();
        put_root(&pool, 100_000, 1).unwrap();
        let base = nearpm::list(card.name.name()).unwrap()[0].base;
        let mapping =
            PoolMapping { pool: pool.id(), thread: 0, base, bytes: pool.bytes(), ring, ring_bytes, committed: 0 };
        card.card.map_pool(mapping).unwrap();
        card.mock.break_memory(base + pool.root()..base + pool.root() + 64);
        let log = Command {
            opcode: Opcode::UndoLog as u8,
            pool: pool.id(),
            txid: 1,
            sequence: 1,
            source: pool.root(),
            destination: ring + 64,
            length: 64,
            ..Command::default()
        };
        card.card.post(1, log, true).unwrap();
        card.mock.finish_commands();
        let error = call(&pool).unwrap_err();
        assert!(matches!(error, Error::LogFailed { .. }), "{by:?}, {what}: {error}");
        assert!(matches!(pool.begin(), Err(Error::Poisoned)), "{by:?}, {what}");
    }
}

/// Threads that have a word each, and what each was told of its commits.
struct Threads {
    acknowledged: Vec<AtomicU64>,
}

impl Threads {
    const COUNT: u64 = 4;
    const COMMITS: u64 = 40;
    // Far enough from each other that no two share a line.
    const APART: u64 = 256;
    const BYTES: usize = (Threads::COUNT * Threads::APART) as usize;

    /// Commits in all threads at the same time, until the power goes.
    fn commit(pool: &DirectPool) -> Threads {
        let acknowledged: Vec<AtomicU64> = (0..Threads::COUNT).map(|_| AtomicU64::new(0)).collect();
        std::thread::scope(|scope| {
            for (thread, told) in (0..).zip(&acknowledged) {
                scope.spawn(move || {
                    let at = pool.root() + thread * Threads::APART;
                    for number in 1..=Threads::COMMITS {
                        let Ok(mut tx) = pool.begin() else { return };
                        if tx.add(pool, at..at + 8).is_err() {
                            return;
                        }
                        poke(pool, at, &number.to_le_bytes());
                        if tx.commit(pool).is_err() {
                            return;
                        }
                        told.store(number, Ordering::Relaxed);
                    }
                });
            }
        });
        Threads { acknowledged }
    }

    fn told(&self) -> impl Iterator<Item = u64> {
        self.acknowledged.iter().map(|told| told.load(Ordering::Relaxed))
    }

    /// What each was told is there, and of the commit behind that all or nothing.
    fn check(&self, pool: &DirectPool, what: &str) {
        let found = peek(pool, Threads::BYTES);
        for (thread, told) in self.told().enumerate() {
            let word = &found[thread * Threads::APART as usize..];
            let word = word.first_chunk().copied().map(u64::from_le_bytes).unwrap();
            assert!(word == told || word == told + 1, "{what}: {word} where {told} was told");
        }
    }
}

/// Threads whose commits wait for the card together, by records and by every mechanism: what each
/// was told survives, when the power goes in the middle of all of them.
#[test]
fn threads_that_wait_together_lose_nothing_acknowledged() {
    const CUTS: u64 = 8;
    let by = |mechanism| [Engine::Cpu, Engine::Card].map(|engine| (Some(mechanism), engine));
    for (mechanism, engine) in Mechanism::ALL.into_iter().flat_map(by).chain([(None, Engine::Cpu)]) {
        let options = Options::new().mechanism(mechanism).engine(engine);
        let settings = |seed, cut_after| MockOptions { pm_bytes: 4 << 20, seed, cut_after, ..MockOptions::default() };
        let card = Registered::of(MockCard::new(settings(0, None)));
        let pool = create(&card, &options).unwrap();
        put_root(&pool, Threads::BYTES, 0).unwrap();
        pool.close().unwrap();
        let medium = card.mock.power_cut();
        drop(card);
        let run = |seed, cut_after| {
            let what = format!("{mechanism:?} by {engine:?}, seed {seed}");
            let card = Registered::of(MockCard::with_medium(settings(seed, cut_after), medium.clone()));
            let pool = DirectPool::open(&card.pool("p"), &options).unwrap();
            let opened = card.mock.accesses();
            let threads = Threads::commit(&pool);
            let worked = card.mock.accesses();
            let medium = card.mock.power_cut();
            drop(pool);
            let card = Registered::of(MockCard::with_medium(settings(seed, None), medium));
            threads.check(&DirectPool::open(&card.pool("p"), &options).unwrap(), &what);
            (opened, worked, threads)
        };
        let (opened, worked, threads) = run(0, None);
        assert!(threads.told().all(|told| told == Threads::COMMITS));
        let cut_in_the_work = |seed: &u64| {
            let (.., threads) = run(*seed, Some(opened + seed * (worked - opened) / (CUTS + 1)));
            threads.told().any(|told| told > 0) && threads.told().any(|told| told < Threads::COMMITS)
        };
        let cut = (1..=CUTS).filter(cut_in_the_work).count() as u64;
        assert!(cut >= CUTS / 2, "{mechanism:?} by {engine:?}: only {cut} of {CUTS} runs were cut in the work");
    }
}

/// A commit that the ring has no room for goes by records, and the next one by the mechanism again.
#[test]
fn what_the_ring_has_no_room_for_survives_too() {
    const LONG: usize = 100_000;
    for mechanism in Mechanism::ALL {
        let mut card = Registered::new(6);
        let options = Options::new().mechanism(mechanism);
        let pool = create(&card, &options).unwrap();
        put_root(&pool, LONG, 1).unwrap();
        let root = pool.root();
        for fill in [2, 3] {
            let mut tx = pool.begin().unwrap();
            tx.add(&pool, root..root + LONG as u64).unwrap();
            poke(&pool, root, &[fill; LONG]);
            tx.commit(&pool).unwrap();
            let statistics = pool.statistics();
            assert!(statistics.bytes_by_cpu > LONG as u64, "{mechanism:?}: {statistics:?}");
            change_root(&pool, LONG, 0xaa).unwrap();
            let posted = pool.statistics().commands - statistics.commands;
            assert!(posted > 0, "{mechanism:?}: the next commit posts nothing");
        }
        std::mem::forget(pool);
        card = card.next_process();
        assert!(peek(&open(&card), LONG) == expected(LONG, 3, &[]), "{mechanism:?}");
    }
}
