//! Read-backs beside what another thread does with the page, and read-backs that threads share, in
//! every order of events (loom) up to a number of preemptions.
//!
//! The page is behind loom's lock in the place of the system's, and a look at the status line is an
//! event, too. The card is the mock, which carries out what it has accepted when it is asked
//! something. Of shared read-backs the card is a model: what has arrived, and what is accepted.

#[path = "shared_read.rs"]
#[allow(clippy::duplicate_mod, reason = "the driver's own, with another `sync`")]
mod shared_read;

/// What it takes from the standard library.
mod sync {
    pub use loom::sync::{Condvar, Mutex, MutexGuard};
}

use std::sync::atomic::{AtomicU64, Ordering};

use loom::sync::{Arc, Mutex, MutexGuard};
use loom::thread;
use nearpm_interface::command::Opcode;

use super::tests::{PAGE, UNKNOWN, card, command, options};
use super::*;
use crate::card::Card;
use shared_read::SharedRead as Read;

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

/// Runs a program in every order of events, with another thread.
fn explore(here: impl Fn(&Shared) + Send + Sync + 'static, there: impl Fn(&Shared) + Send + Sync + 'static) {
    let there = std::sync::Arc::new(there);
    explore_any(move || {
        let shared = Shared::new();
        let other = {
            let (shared, there) = (shared.clone(), there.clone());
            thread::spawn(move || there(&shared))
        };
        here(&shared);
        other.join().unwrap();
        shared.ends();
    });
}

/// Runs any program in every order of events, and prints how many there are.
fn explore_any(program: impl Fn() + Send + Sync + 'static) {
    let orders = std::sync::Arc::new(AtomicU64::new(0));
    let counted = orders.clone();
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.max_branches = 100_000;
    model.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        program();
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

/// A card as those see it who share a read: a bit for each commit.
struct Link {
    reads: Read<u64>,
    /// What has arrived, and what of it is accepted: all that came before a read, when that is
    /// answered.
    arrived: Mutex<(u64, u64)>,
    /// How many reads there were.
    answers: AtomicU64,
}

impl Link {
    fn new() -> Arc<Link> {
        Arc::new(Link { reads: Read::new(1), arrived: Mutex::new((0, 0)), answers: AtomicU64::new(0) })
    }

    /// Posts a commit, fenced.
    fn post(&self, commit: u64) {
        self.arrived.lock().unwrap().0 |= 1 << commit;
    }

    /// What is accepted when a read is answered.
    fn status(&self) -> u64 {
        // What arrives from here on comes behind the read.
        let ahead = self.arrived.lock().unwrap().0;
        let mut arrived = self.arrived.lock().unwrap();
        arrived.1 |= ahead;
        self.answers.fetch_add(1, Ordering::Relaxed);
        arrived.1 & ahead
    }

    fn commit(&self, commit: u64) {
        self.post(commit);
        let answer = self.reads.read(|| false, || Ok::<u64, ()>(self.status())).unwrap();
        assert!(answer >> commit & 1 == 1, "commit {commit} is acknowledged by a read that began before it");
    }
}

/// Who waits beside others is answered by a read that began behind its commit, also who comes late.
#[test]
fn in_every_order_a_shared_read_speaks_for_who_asked_before_it_began() {
    static SHARED: AtomicU64 = AtomicU64::new(0);
    explore_any(|| {
        let link = Link::new();
        let others: Vec<_> = [1, 2]
            .map(|commit| {
                let link = link.clone();
                thread::spawn(move || link.commit(commit))
            })
            .into();
        link.commit(0);
        others.into_iter().for_each(|other| other.join().unwrap());
        let before = link.answers.load(Ordering::Relaxed);
        SHARED.fetch_add(u64::from(before < 3), Ordering::Relaxed);
        // Nobody asks any more: a late comer is not answered by what was read before.
        link.commit(3);
        assert_eq!(link.answers.load(Ordering::Relaxed), before + 1);
    });
    assert!(SHARED.load(Ordering::Relaxed) > 0, "in no order a read was shared");
}

/// A read that fails answers nobody else, and nobody waits for it for ever.
#[test]
fn in_every_order_a_read_that_fails_is_not_shared() {
    explore_any(|| {
        let link = Link::new();
        let other = {
            let link = link.clone();
            thread::spawn(move || assert!(link.reads.read(|| false, || Err::<u64, ()>(())).is_err()))
        };
        link.commit(0);
        other.join().unwrap();
        link.commit(1);
    });
}
