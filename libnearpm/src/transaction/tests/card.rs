//! On a card, whose power fails at any access of the host.

use std::sync::{Arc, Mutex};

use nearpm_driver::mock::{MockCard, MockOptions};
use nearpm_driver::{Card, CardOptions};

use super::{Done, Oracle, clear, contents, create, drive, options};
use crate::{Durability, Engine, Error, Mechanism, Pool, cards};

const BYTES: u64 = 1 << 20;
const STEPS: u64 = 250;

/// Who makes the copies, and how.
#[derive(Clone, Copy, Debug)]
struct Way {
    mechanism: Mechanism,
    engine: Engine,
    durability: Durability,
    host_ordered: bool,
}

/// A card and its name.
struct Registered {
    name: cards::Registered,
    mock: MockCard,
}

impl Way {
    fn on(self, medium: Option<Vec<u8>>, seed: u64, cut_after: Option<u64>) -> Result<Registered, String> {
        let (host_ordered, pm_bytes) = (self.host_ordered, 2 << 20);
        let settings = MockOptions { pm_bytes, seed, cut_after, host_ordered, ..MockOptions::default() };
        let mock = match medium {
            Some(medium) => MockCard::with_medium(settings, medium),
            None => MockCard::new(settings),
        };
        let card = Card::open(Arc::new(mock.clone()), CardOptions::default()).map_err(|e| e.to_string())?;
        Ok(Registered { name: cards::Registered::new(Arc::new(card)), mock })
    }

    fn open(self, card: &Registered) -> Result<Pool, String> {
        let options = options(self.mechanism).engine(self.engine).durability(self.durability);
        options.open(&card.name.pool("p")).map_err(|e| e.to_string())
    }

    /// Drives a pool until its power fails, and opens what that has left.
    fn run(self, medium: &[u8], seed: u64, cut_after: Option<u64>) -> (Result<Done, Error>, u64, u64) {
        let what = format!("{self:?}, seed {seed}, cut after {cut_after:?}");
        let card = self.on(Some(medium.to_vec()), seed, cut_after).unwrap();
        let pool = self.open(&card).unwrap();
        let (oracle, opened) = (Mutex::new(Oracle::new()), card.mock.accesses());
        let done = drive(pool.shared(), &pool, (&oracle, self.durability), (seed, STEPS), &|| true);
        let worked = card.mock.accesses();
        let cut = done.is_err();
        if !cut {
            let last = *oracle.lock().unwrap().states.last().unwrap();
            assert_eq!(contents(&pool).unwrap(), last, "{what}");
        }
        let medium = card.mock.power_cut();
        drop(pool);
        let next = self.on(Some(medium), seed, None).unwrap();
        let pool = self.open(&next).unwrap_or_else(|e| panic!("{what}: {e}"));
        let found = contents(&pool).unwrap_or_else(|e| panic!("{what}: {e}"));
        oracle.lock().unwrap().judge(self.mechanism, &found).unwrap_or_else(|e| panic!("{what}: {e}"));
        (done, opened, worked)
    }

    fn cuts(self) {
        let (seeds, cuts) = if nearpm_tier::thorough() { (20, 12) } else { (2, 6) };
        let mut cut = 0;
        for seed in 0..seeds {
            let card = self.on(None, seed, None).unwrap();
            let options = options(self.mechanism).engine(self.engine);
            let pool = options.create(&card.name.pool("p"), BYTES).unwrap();
            create(&pool).unwrap();
            let free = pool.free_bytes().unwrap();
            assert_eq!(clear(&pool).unwrap(), free);
            pool.close().unwrap();
            let medium = card.mock.power_cut();
            let (done, opened, worked) = self.run(&medium, seed, None);
            let done = done.unwrap();
            assert!(done.commits > 20 && done.aborts > 3 && done.beside > 10, "{self:?}, seed {seed}: {done:?}");
            for n in 1..=cuts {
                let after = opened + (worked - opened) * n / (cuts + 1);
                cut += u64::from(self.run(&medium, seed, Some(after)).0.is_err());
            }
        }
        assert!(cut > seeds * cuts / 2, "{self:?}: only {cut} runs were cut");
    }
}

fn cuts(mechanism: Mechanism) {
    for engine in [Engine::Cpu, Engine::Card] {
        for durability in [Durability::Durable, Durability::Asynchronous] {
            for host_ordered in [true, false] {
                Way { mechanism, engine, durability, host_ordered }.cuts();
            }
        }
    }
}

#[test]
fn undo_beside_others_on_a_card_survives_cuts() {
    cuts(Mechanism::Undo);
}

#[test]
fn redo_beside_others_on_a_card_survives_cuts() {
    cuts(Mechanism::Redo);
}

#[test]
fn checkpoints_beside_others_on_a_card_survive_cuts() {
    cuts(Mechanism::Checkpoint);
}

#[test]
fn shadow_pages_beside_others_on_a_card_survive_cuts() {
    cuts(Mechanism::Shadow);
}
