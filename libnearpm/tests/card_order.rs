//! What has to come before what on a card's link, in the places where a power cut at a random
//! moment rarely shows it.

#[path = "common/on_card.rs"]
mod on_card;

use nearpm::{Durability, Engine, Mechanism, Options, Pool};
use nearpm_driver::Posting;
use nearpm_driver::mock::{MockCard, MockOptions};
use on_card::{Registered, mock, posting};

const POOL_BYTES: u64 = 512 * 1024;
/// So many lines that they do not all reach the card before something asks for it.
const BYTES: usize = 1024;

fn options(mechanism: Mechanism) -> Options {
    Options::new().mechanism(mechanism).engine(Engine::Card).lanes(1).ring_bytes(64 * 1024)
}

/// A pool on a card with an object of zeros, durably.
fn pool_with_object(mechanism: Mechanism, seed: u64) -> (Registered, Pool, u64) {
    let card = Registered::new(MockCard::new(mock(seed)), posting(seed)).unwrap();
    let pool = options(mechanism).create(&card.pool("p"), POOL_BYTES).unwrap();
    let object = pool.tx(|tx| tx.alloc_zeroed(BYTES as u64)).unwrap();
    pool.persist().unwrap();
    (card, pool, object)
}

/// What is found after a power cut now.
fn after_a_cut(card: &Registered, mechanism: Mechanism, object: u64) -> Vec<u8> {
    let medium = card.mock.power_cut();
    let settings = MockOptions { pm_bytes: medium.len(), ..mock(1) };
    let next = Registered::new(MockCard::with_medium(settings, medium), Posting::Line).unwrap();
    let pool = options(mechanism).open(&next.pool("p")).unwrap();
    pool.tx(|tx| tx.read_vec(object, BYTES)).unwrap()
}

/// A commit that nobody waited for is lost where the power fails at once, unless something durable
/// came behind it.
#[test]
fn what_is_acknowledged_covers_the_commits_before_it() {
    type Acknowledged = fn(&Pool);
    let ways: [(&str, Acknowledged); 3] = [
        ("nothing", |_| {}),
        ("a call that makes everything durable", |pool| pool.persist().unwrap()),
        // It reads nothing either: a load would push everything before it.
        ("a durable transaction that wrote nothing", |pool| pool.tx(|_| Ok(())).unwrap()),
    ];
    for mechanism in [Mechanism::Undo, Mechanism::Redo] {
        for (what, acknowledge) in ways {
            let mut lost = 0;
            for seed in 0..40 {
                let (card, pool, object) = pool_with_object(mechanism, seed);
                pool.tx_with(Durability::Asynchronous, |tx| tx.write(object, &[1; BYTES])).unwrap();
                acknowledge(&pool);
                std::mem::forget(pool);
                let found = after_a_cut(&card, mechanism, object);
                assert!(found == [0; BYTES] || found == [1; BYTES], "{mechanism:?}, {what}, seed {seed}: torn");
                lost += u32::from(found == [0; BYTES]);
            }
            assert_eq!(lost > 0, what == "nothing", "{mechanism:?}, {what}: {lost} of 40 were lost");
        }
    }
}

/// A redo log applies to what its transaction has freed. The next one allocates it and stores to it
/// at once: not before the command is posted.
#[test]
fn a_store_to_what_was_freed_comes_behind_the_log_that_applies_to_it() {
    let mut reused = 0;
    for seed in 0..20 {
        let (card, pool, object) = pool_with_object(Mechanism::Redo, seed);
        pool.tx(|tx| {
            tx.write(object, &[1; BYTES])?;
            tx.free(object)
        })
        .unwrap();
        let again = pool
            .tx(|tx| {
                let again = tx.alloc(BYTES as u64)?;
                tx.write(again, &[2; BYTES])?;
                Ok(again)
            })
            .unwrap();
        reused += u32::from(again == object);
        pool.close().unwrap();
        assert_eq!(after_a_cut(&card, Mechanism::Redo, again), [2; BYTES], "seed {seed}");
    }
    assert!(reused > 10, "{reused} of 20 have the place again");
}
