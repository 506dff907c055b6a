//! What may happen between the three steps of a read-back, in which nobody holds the page: see
//! [`crate::Card::read_back`].

use std::sync::MutexGuard;

use nearpm_interface::command::Opcode;
use nearpm_interface::geometry::POOLS_BASE;

use super::*;
use crate::card::{Card, PoolMapping};
use crate::mock::{MockCard, MockOptions};

pub(super) const PAGE: usize = 1;
/// Refused: no program has this number.
pub(super) const UNKNOWN: u8 = 31;

pub(super) fn command(opcode: u8) -> Command {
    Command { opcode, pool: 1, ..Command::default() }
}

fn fence() -> Command {
    command(Opcode::Fence as u8)
}

/// How the card is opened, and further pages of it.
pub(super) fn options() -> CardOptions {
    CardOptions { posting: Posting::Line, timeout_ns: 50_000_000, ..CardOptions::default() }
}

/// The mock of a card with a pool.
pub(super) fn card() -> Card {
    let mock = MockCard::new(MockOptions { evict_one_in: 0, ..MockOptions::default() });
    let card = Card::open(Arc::new(mock), options()).unwrap();
    let mapping = PoolMapping {
        pool: 1,
        thread: 0,
        base: POOLS_BASE,
        bytes: 1 << 20,
        ring: 4 << 10,
        ring_bytes: 64 << 10,
        committed: 0,
    };
    card.map_pool(mapping).unwrap();
    card
}

fn page(card: &Card) -> MutexGuard<'_, CommandPage> {
    card.page(PAGE).unwrap()
}

/// A read-back of which the first two steps are done.
struct Begun {
    known: Known,
    status: PageStatus,
}

impl Begun {
    fn on(card: &Card) -> Begun {
        let known = page(card).known();
        let window = page(card).window();
        Begun { known, status: status(&*window).unwrap() }
    }

    fn end(self, card: &Card, ticket: Ticket) -> Result<Option<Latched>, CardError> {
        page(card).accepted(card.function(), ticket, &self.status, self.known, card.function().now_ns())
    }
}

/// Stores a command into the slot that is next, as it is.
fn store(page: &CommandPage, bytes: &[u8]) {
    page.window.store_line(page.posted % SLOTS_PER_PAGE as u64 * LINE as u64, bytes.try_into().unwrap());
    page.window.fence();
}

#[test]
fn a_page_that_counts_anew_meanwhile_is_asked_again() {
    let card = card();
    let ticket = card.post(PAGE, fence(), false).unwrap();
    card.drain(PAGE).unwrap();
    let begun = Begun::on(&card);
    {
        let mut page = page(&card);
        store(&page, &Command { flags: FLAG_COMPLETE, ..fence() }.encode());
        let mut read = 0;
        while page.foreign(&mut read).unwrap() == 0 {}
        page.restart().unwrap();
    }
    assert_eq!(begun.end(&card, ticket).unwrap(), None, "the line was read before");
    assert!(Begun::on(&card).end(&card, ticket).unwrap().is_some());
    card.post(PAGE, fence(), false).unwrap();
    card.drain(PAGE).unwrap();
}

#[test]
fn a_failure_seen_meanwhile_does_not_stand_for_a_dropped_command() {
    let card = card();
    let dropped = {
        let mut page = page(&card);
        let mut bytes = fence().encode();
        bytes[20] ^= 0xff;
        store(&page, &bytes);
        let number = page.posted;
        page.history[number as usize] = (fence(), Outcome::Unknown);
        page.posted += 1;
        Ticket { page: PAGE, number }
    };
    card.post(PAGE, fence(), false).unwrap();
    let begun = Begun::on(&card);
    let refused = card.post(PAGE, command(UNKNOWN), false).unwrap();
    while page(&card).bad_seen == 0 {
        let mut page = page(&card);
        page.status().unwrap();
        page.poll();
    }
    let failed = begun.end(&card, dropped).unwrap_err();
    assert!(matches!(&failed, CardError::Command(f) if f.error == CommandError::Dropped), "{failed}");
    assert!(matches!(card.wait(refused), Err(CardError::Command(_))));
}
