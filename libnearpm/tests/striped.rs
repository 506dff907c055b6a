//! Striped pools: what belongs together, what is refused and loses nothing, and what lies where.

use std::sync::Arc;

use nearpm::direct::DirectPool;
use nearpm::memory::{Memory, TestMemory};
use nearpm::prelude::{PBTreeMap, Persistent, Store};
use nearpm::{Engine, Error, Mechanism, Options, Pool, Problem, Synchronisation, cards, list, remove};
use nearpm_driver::mock::{MockCard, MockOptions};
use nearpm_driver::{Card, CardOptions};

const STRIPE: u64 = 2 << 20;
const MEMBER_BYTES: u64 = STRIPE + (512 << 10);

/// Cards and their names.
struct Registered {
    names: Vec<cards::Registered>,
    mocks: Vec<MockCard>,
}

impl Registered {
    fn new(cards: usize) -> Registered {
        Registered::with(vec![vec![0; Registered::CARD_BYTES]; cards])
    }

    const CARD_BYTES: usize = 8 << 20;

    /// Cards that power up with these memories.
    fn with(memories: Vec<Vec<u8>>) -> Registered {
        let options =
            |seed| MockOptions { pm_bytes: Registered::CARD_BYTES, seed, evict_one_in: 100, ..MockOptions::default() };
        let mocks = (0..).zip(memories).map(|(seed, memory)| MockCard::with_medium(options(seed), memory));
        let mocks: Vec<_> = mocks.collect();
        let open = |mock: &MockCard| Card::open(Arc::new(mock.clone()), CardOptions::default()).unwrap();
        Registered { names: mocks.iter().map(|mock| cards::Registered::new(Arc::new(open(mock)))).collect(), mocks }
    }

    /// The location of a pool on some of the cards, in this order.
    fn on(&self, cards: &[usize], pool: &str) -> String {
        let names: Vec<&str> = cards.iter().map(|&card| self.names[card].name()).collect();
        format!("card:{}/{pool}", names.join("+"))
    }
}

fn options() -> Options {
    Options::new().lanes(1).ring_bytes(64 << 10).spare_pages(16)
}

fn problem(refused: Result<impl std::fmt::Debug, Error>) -> (String, Problem) {
    match refused {
        Err(Error::Pool { location, problem }) => (location, problem),
        other => panic!("{other:?}"),
    }
}

/// An object of many bytes as the root.
fn fill(pool: &Pool, bytes: u64) {
    let data: Vec<u8> = (0..bytes / 8).flat_map(|n| (n * 0x9e37_79b9 + 1).to_le_bytes()).collect();
    pool.tx(|tx| {
        let object = tx.alloc(bytes)?;
        tx.write(object, &data)?;
        tx.set_root(object)
    })
    .unwrap();
}

fn check(pool: &Pool, bytes: u64) {
    pool.check().unwrap();
    let data = pool.tx(|tx| tx.root().and_then(|root| tx.read_vec(root, bytes as usize))).unwrap();
    let expected = (0..bytes / 8).flat_map(|n| (n * 0x9e37_79b9 + 1).to_le_bytes());
    assert!(data.into_iter().eq(expected));
}

#[test]
fn members_that_do_not_belong_together_are_refused_by_name_and_lose_nothing() {
    let cards = Registered::new(4);
    let (first, second) = (cards.on(&[0, 1], "p"), cards.on(&[2, 3], "p"));
    for (location, id) in [(&first, 5), (&second, 6)] {
        fill(&options().id(id).create(location, 2 * MEMBER_BYTES).unwrap(), 100_000);
    }
    let open = |cards_in_order: &[usize]| problem(options().open(&cards.on(cards_in_order, "p")));
    for alone in [0, 1] {
        let (location, problem) = open(&[alone]);
        assert_eq!(location, cards.on(&[alone], "p"));
        assert!(
            matches!(&problem, Problem::MemberAlone { found } if found.contains(&format!("member {alone} of 2"))),
            "{problem}"
        );
        assert!(matches!(remove(&location), Err(Error::Pool { problem: Problem::MemberAlone { .. }, .. })));
    }
    let (location, problem) = open(&[1, 0]);
    assert_eq!(location, cards.on(&[1], "p"));
    assert!(problem.to_string().contains("is member 1 of 2"), "{problem}");
    let (location, problem) = open(&[0, 3]);
    assert_eq!(location, cards.on(&[3], "p"));
    assert!(problem.to_string().contains("0x00000006"), "{problem}");
    assert!(matches!(open(&[0, 0]).1, Problem::BadName { .. }), "doubled");
    assert!(matches!(open(&[0, 1, 2]).1, Problem::OtherMember { .. }), "one too many");
    let unknown = format!("card:{}+nobody/p", cards.names[0].name());
    assert!(matches!(self::problem(options().open(&unknown)).1, Problem::UnknownCard { name } if name == "nobody"));
    let elsewhere = self::problem(options().open(&cards.on(&[0, 1], "q")));
    assert_eq!((elsewhere.0, elsewhere.1), (cards.on(&[0], "q"), Problem::NotFound));
    for location in [&first, &second] {
        check(&options().open(location).unwrap(), 100_000);
    }
}

#[test]
fn a_pool_that_cannot_be_made_leaves_nothing_behind() {
    let cards = Registered::new(2);
    options().create(&cards.on(&[1], "p"), 1 << 20).unwrap();
    let both = cards.on(&[0, 1], "p");
    let (location, refused) = problem(options().create(&both, 2 * MEMBER_BYTES));
    assert_eq!((location, refused), (cards.on(&[1], "p"), Problem::Exists));
    assert_eq!(list(cards.names[0].name()).unwrap(), []);
    // The other card is fuller.
    let bytes = 2 * (13 << 19);
    assert!(matches!(problem(options().create(&cards.on(&[0, 1], "q"), bytes)).1, Problem::NoSpace { .. }));
    assert_eq!(list(cards.names[0].name()).unwrap(), []);
    assert!(matches!(problem(options().create(&cards.on(&[0, 1], "q"), 1 << 20)).1, Problem::TooSmall { .. }));
    for stripe in [0, 1 << 20, 3 << 20] {
        let refused = problem(options().stripe_bytes(stripe).create(&cards.on(&[0, 1], "q"), bytes));
        assert!(matches!(refused.1, Problem::BadOption { .. }), "{stripe}: {}", refused.1);
    }
    assert_eq!(list(cards.names[1].name()).unwrap().len(), 1);
}

#[test]
fn a_pool_is_removed_from_all_its_cards() {
    let cards = Registered::new(2);
    let both = cards.on(&[0, 1], "p");
    let pool = options().create(&both, 2 * MEMBER_BYTES).unwrap();
    assert!(matches!(problem(remove(&both)).1, Problem::InUse { .. }), "it is open");
    drop(pool);
    assert!(matches!(problem(remove(&cards.on(&[1, 0], "p"))).1, Problem::OtherMember { .. }));
    remove(&both).unwrap();
    cards.names.iter().for_each(|name| assert_eq!(list(name.name()).unwrap(), []));
    assert_eq!(problem(remove(&both)), (both, Problem::NotFound));
}

#[test]
fn a_card_that_has_gone_is_named() {
    let cards = Registered::new(3);
    let all = cards.on(&[0, 1, 2], "p");
    fill(&options().create(&all, 3 * MEMBER_BYTES).unwrap(), 1000);
    cards.mocks[1].power_cut();
    let before: Vec<u64> = cards.mocks.iter().map(MockCard::accesses).collect();
    let (location, refused) = problem(options().open(&all));
    assert_eq!(location, cards.on(&[1], "p"));
    assert!(matches!(refused, Problem::NoAnswer { .. }), "{refused}");
    assert_eq!(cards.mocks[2].accesses(), before[2], "the others are not touched");
}

#[test]
fn only_pools_with_a_mechanism_are_striped() {
    let cards = Registered::new(2);
    let both = cards.on(&[0, 1], "p");
    // One sentence, with what to do instead.
    let by_records = |refused: Result<DirectPool, Error>| {
        let (_, refused) = problem(refused.map(drop));
        let remedy = "use a mechanism (Options::mechanism), as Mechanism::Undo";
        assert!(matches!(refused, Problem::BadOption { what } if what.ends_with(remedy)), "{refused}");
    };
    by_records(DirectPool::create(&both, 2 * MEMBER_BYTES, &Options::new()));
    let pool = options().create(&both, 2 * MEMBER_BYTES).unwrap();
    by_records(DirectPool::open(&both, &Options::new()));
    let object = pool.tx(|tx| tx.alloc(64)).unwrap();
    assert!(matches!(problem(pool.store(object, &[1])).1, Problem::BadOption { .. }));
    assert!(matches!(problem(pool.undolog_create(0, object, 8)).1, Problem::BadOption { .. }));
}

/// The root of a typed pool.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Root {
    map: PBTreeMap<u64, [u8; 128]>,
}

/// Typed objects lie on several cards as on one: what a map held when its pool was closed, or when
/// the power went, it holds when it is opened again.
#[test]
fn a_typed_map_is_whole_over_several_cards() {
    for mechanism in Mechanism::ALL {
        let cards = Registered::new(2);
        let (both, options) = (cards.on(&[0, 1], "p"), options().mechanism(mechanism));
        let pool = DirectPool::create(&both, 2 * MEMBER_BYTES, &options).unwrap();
        let map = pool.tx(|tx| tx.root_or_zeroed::<Root>()).unwrap().map();
        for key in 0..1500 {
            pool.tx(|tx| map.insert(tx, &(key * 7 % 1500), [key as u8; 128])).unwrap();
        }
        pool.tx(|tx| map.remove(tx, &3)).unwrap();
        let images: Vec<Vec<u8>> = cards.mocks.iter().map(MockCard::power_cut).collect();
        drop(pool);
        let after = Registered::with(images);
        let pool = DirectPool::open(&after.on(&[0, 1], "p"), &options).unwrap();
        let map = pool.tx(|tx| tx.root_or_zeroed::<Root>()).unwrap().map();
        pool.tx(|tx| {
            for key in 0..1500 {
                let expected = (key * 7 % 1500 != 3).then_some([key as u8; 128]);
                assert_eq!(map.get(tx, &(key * 7 % 1500))?, expected, "{mechanism:?}: {key}");
            }
            Ok(())
        })
        .unwrap();
        pool.close().unwrap();
    }
}

#[test]
fn where_cards_cannot_wait_for_each_other_the_processor_does() {
    let cards = Registered::new(2);
    let options = options().synchronisation(Synchronisation::Delayed);
    let pool = options.create(&cards.on(&[0, 1], "p"), 2 * MEMBER_BYTES).unwrap();
    assert_eq!(pool.statistics().fallbacks, 1);
    fill(&pool, 3_000_000);
    check(&pool, 3_000_000);
    assert!(pool.statistics().commands > 0);
}

/// Every member holds its stripes and nothing else, each mechanism writes and reads over their
/// borders, and another one finds all of it.
#[test]
fn objects_over_several_stripes_are_whole() {
    for members in [1, 2, 4, 8] {
        for (n, mechanism) in Mechanism::ALL.into_iter().enumerate() {
            let rounds = if members == 1 { 4 } else { 1 + 2 / members as u64 };
            let bytes = rounds * STRIPE + (8 << 20);
            let memories: Vec<TestMemory> = (0..members).map(|_| TestMemory::new(bytes as usize)).collect();
            let boxed = || memories.iter().map(|m| Box::new(m.clone()) as Box<dyn Memory>).collect();
            let options = |mechanism| {
                Options::new().mechanism(mechanism).lanes(1).ring_bytes(4 << 20).spare_pages(700).epoch_ops(1)
            };
            // One object over a whole stripe and a part of the next; a mechanism moves or logs all
            // of it at once.
            let size = 2_500_000;
            let pool = options(mechanism).create_striped(boxed()).unwrap();
            fill(&pool, size);
            check(&pool, size);
            pool.close().unwrap();
            let other = Mechanism::ALL[(n + 1) % 4];
            check(&options(other).engine(Engine::Cpu).open_striped(boxed()).unwrap(), size);
            if members > 1 {
                let mut turned: Vec<Box<dyn Memory>> = boxed();
                turned.reverse();
                assert!(matches!(problem(options(other).open_striped(turned)).1, Problem::OtherMember { .. }));
                let holds = |memory: &TestMemory| memory.durable()[(4 << 20) + (1 << 16)..].iter().any(|&b| b != 0);
                assert!(memories.iter().filter(|memory| holds(memory)).count() >= 2, "{members} members");
            }
        }
    }
}
