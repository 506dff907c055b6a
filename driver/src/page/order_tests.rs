//! Read-backs beside what another thread does with the page, in every order of events (loom) up to
//! a number of preemptions.
//!
//! The page is behind loom's lock in the place of the system's, and a look at the status line is an
//! event, too. The card is the mock, which carries out what it has accepted when it is asked
//! something.

use std::sync::atomic::{AtomicU64, Ordering};

use loom::sync::{Arc, Mutex, MutexGuard};
use loom::thread;
use nearpm_interface::command::Opcode;

use super::tests::{PAGE, UNKNOWN, card, command, options};
use super::*;
use crate::card::Card;

/// A page of a card, which threads share.
struct Shared {
    /// Has mapped the pool.
    card: Card,
    window: std::sync::Arc<dyn Mapping>,
    page: Mutex<CommandPage>,
    /// An event of loom's for each look at the status line.
    looks: Mutex<()>,
}

impl Shared {
    fn new() -> Arc<Shared> {
        let card = card();
        // The card's own is not used any more.
        let page = CommandPage::open(card.function(), card.registers(), PAGE, true, &options()).unwrap();
        let window = page.window();
        Arc::new(Shared { card, window, page: Mutex::new(page), looks: Mutex::new(()) })
    }

    fn page(&self) -> MutexGuard<'_, CommandPage> {
        self.page.lock().unwrap()
    }

    fn post(&self, opcode: u8) -> Ticket {
        self.page().post(self.card.function(), command(opcode), false).unwrap()
    }

    fn post_fence(&self) -> Ticket {
        self.post(Opcode::Fence as u8)
    }

    fn read_back(&self, ticket: Ticket) -> Result<Latched, CardError> {
        let look = || {
            drop(self.looks.lock().unwrap());
            status(&*self.window)
        };
        read_back(self.card.function(), ticket, || Ok(self.page()), look)
    }

    /// Reads a refused command back.
    fn is_told(&self, refused: Ticket) {
        let told = self.read_back(refused);
        assert!(
            matches!(&told, Err(CardError::Command(failure)) if failure.error == CommandError::BadOpcode),
            "{told:?}"
        );
    }

    /// At the end: everything has ended, and nothing is left to be told.
    fn ends(&self) {
        let mut page = self.page();
        page.drain(self.card.function()).unwrap();
        assert!(page.take_failure(1, 0).is_none(), "a failure that was told is told again");
    }
}

/// Runs a program in every order of events, with another thread, and prints how many there are.
fn explore(here: impl Fn(&Shared) + Send + Sync + 'static, there: impl Fn(&Shared) + Send + Sync + 'static) {
    let orders = std::sync::Arc::new(AtomicU64::new(0));
    let (counted, there) = (orders.clone(), std::sync::Arc::new(there));
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.max_branches = 100_000;
    model.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        let shared = Shared::new();
        let other = {
            let (shared, there) = (shared.clone(), there.clone());
            thread::spawn(move || there(&shared))
        };
        here(&shared);
        other.join().unwrap();
        shared.ends();
    });
    let orders = orders.load(Ordering::Relaxed);
    println!(r#"{{"counts":{{"programs":1,"orders of events":{orders},"violations":0}}}}"#);
}

/// A command that was accepted reads back, and one that was refused does not, whatever the other
/// thread has read back meanwhile.
#[test]
fn in_every_order_each_reads_back_its_own() {
    explore(
        |shared| {
            let ticket = shared.post_fence();
            shared.read_back(ticket).unwrap();
        },
        |shared| {
            let (refused, fence) = (shared.post(UNKNOWN), shared.post_fence());
            shared.read_back(fence).unwrap();
            shared.is_told(refused);
        },
    );
}

/// The same where the page counts anew meanwhile.
#[test]
fn in_every_order_a_read_back_survives_a_drain() {
    explore(
        |shared| {
            let ticket = shared.post_fence();
            shared.read_back(ticket).unwrap();
            let refused = shared.post(UNKNOWN);
            shared.is_told(refused);
        },
        |shared| {
            shared.post_fence();
            shared.page().drain(shared.card.function()).unwrap();
            let ticket = shared.post_fence();
            shared.read_back(ticket).unwrap();
        },
    );
}
