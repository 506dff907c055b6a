//! What the driver knows of its commands: slots that are free, records that are new, failures by
//! name, and what has been read back.

mod common;

use std::sync::Arc;

use common::{POOL, RING, log, mapping, open};
use nearpm_driver::card::PoolMapping;
use nearpm_driver::mock::{MockCard, MockOptions};
use nearpm_driver::page::HISTORY;
use nearpm_driver::pci::PciError;
use nearpm_driver::{Card, CardError, CardOptions, CommandError, CommandFailure, Posting, Waiting};
use nearpm_interface::command::Command;
use nearpm_interface::geometry::{COMMAND_PAGES, POOLS_BASE};

/// Records of a page's completion ring.
const RECORDS: u64 = 2048;

/// Nanoseconds after which a waiter looks although nothing was signalled.
const LOST_NS: u64 = 1_000_000;

fn mapped(options: MockOptions) -> (MockCard, Card) {
    let mock = MockCard::new(options);
    let card = open(&mock, Posting::Line);
    card.map_pool(mapping()).unwrap();
    (mock, card)
}

/// A command that the card refuses, recognised by its source.
fn refused(source: u64) -> Command {
    Command { opcode: 31, pool: POOL, source, ..Command::default() }
}

fn failure<T: std::fmt::Debug>(result: Result<T, CardError>) -> CommandFailure {
    match result {
        Err(CardError::Command(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

/// A card that is slow to execute has room for few commands: the next ones stay in their slots, and
/// are lost where a slot is written again.
#[test]
fn no_slot_is_written_before_its_command_has_left_it() {
    for request_slots in [1, 2, 32] {
        let (mock, card) = mapped(MockOptions { request_slots, lazy: true, ..MockOptions::default() });
        for count in 0..200 {
            card.post(1, log(0x8_0000 + 64 * (count % 100), count), false).unwrap();
        }
        card.drain(1).unwrap();
        assert!(card.take_failure(1, POOL, 0).unwrap().is_none(), "{request_slots} request slots");
        assert_eq!(mock.executed().len(), 201);
    }
}

/// A failure names the command that failed, however many came behind it before it was carried out.
#[test]
fn a_late_failure_names_its_command() {
    let request_slots = 2 * HISTORY as usize;
    let (mock, card) = mapped(MockOptions { request_slots, lazy: true, ..MockOptions::default() });
    card.map_pool(PoolMapping { thread: 1, ..mapping() }).unwrap();
    mock.break_memory(POOLS_BASE + 0x8_0000..POOLS_BASE + 0x8_0040);
    card.post(1, Command { thread: 1, ..log(0x8_0008, 0) }, false).unwrap();
    for count in 0..HISTORY + 10 {
        card.post(1, log(0x9_0000 + 64 * (count % 100), count), false).unwrap();
    }
    card.drain(1).unwrap();
    let failed = card.take_failure(1, POOL, 1).unwrap().expect("the failure is kept for its owner");
    assert_eq!((failed.error, failed.command.source), (CommandError::MemoryError, 0x8_0008));
    assert!(card.take_failure(1, POOL, 0).unwrap().is_none());
}

/// The ring of records comes round several times: each record is read once, so that each failure is
/// told once.
#[test]
fn a_record_is_read_once() {
    let (_, card) = mapped(MockOptions::default());
    for count in 0..3 * RECORDS {
        let ticket = if count % 50 == 7 {
            card.post(1, refused(count), true).unwrap()
        } else {
            card.post(1, log(0x8_0000 + 64 * (count % 100), count), true).unwrap()
        };
        let waited = card.wait(ticket);
        if count % 50 == 7 {
            assert_eq!(failure(waited).command.source, count);
        } else {
            waited.unwrap();
        }
        let other = card.take_failure(1, POOL, 0).unwrap();
        assert!(other.is_none(), "command {count}: {other:?}");
    }
}

/// Of what was drained all is known: who waits for it asks the card for nothing, and does not drain
/// what was posted since.
#[test]
fn who_waits_for_what_was_drained_asks_nobody() {
    let (mock, card) = mapped(MockOptions { lazy: true, ..MockOptions::default() });
    let done = card.post(1, log(0x8_0000, 0), true).unwrap();
    let bad = card.post(1, refused(1), true).unwrap();
    card.drain(1).unwrap();
    card.post(1, log(0x8_0040, 1), true).unwrap();
    let before = mock.accesses();
    card.wait(done).unwrap();
    assert_eq!(failure(card.wait(bad)).command.source, 1);
    assert_eq!(mock.accesses(), before);
}

/// A read-back tells the failure of its command, whether its record was seen before or not.
#[test]
fn a_refused_command_does_not_read_back_as_durable() {
    for completion_records in [true, false] {
        let (_, card) = mapped(MockOptions { completion_records, ..MockOptions::default() });
        for count in 0..40 {
            let good = card.post(1, log(0x8_0000, count), false).unwrap();
            let bad = card.post(1, refused(count), false).unwrap();
            card.read_back(good).unwrap();
            let failed = failure(card.read_back(bad));
            assert_eq!((failed.error, failed.command.source), (CommandError::BadOpcode, count));
        }
    }
}

/// A command that was refused is not counted as accepted. Those behind it are durable all the same,
/// also where its record was read meanwhile.
#[test]
fn what_comes_behind_a_refused_command_reads_back() {
    for completion_records in [true, false] {
        for seed in 0..20 {
            let (mock, card) = mapped(MockOptions { completion_records, seed, ..MockOptions::default() });
            card.post(1, refused(1), false).unwrap();
            // The status line of another command's read-back brings the refused one to the card,
            // and the next posting reads its record.
            card.push(1).unwrap();
            let ticket = card.post(1, log(0x8_0000, 3), false).unwrap();
            card.read_back(ticket).unwrap();
            let slot = (POOLS_BASE + RING + 256 + 3 * 128) as usize;
            let medium = mock.power_cut();
            assert!(nearpm_interface::media::EntryHead::decode(&medium[slot..slot + 128]).is_some(), "seed {seed}");
        }
    }
}

fn sleeping(options: MockOptions) -> (MockCard, Result<Card, CardError>) {
    let mock = MockCard::new(options);
    let options = CardOptions { waiting: Waiting::Interrupts, ..CardOptions::default() };
    let card = Card::open(Arc::new(mock.clone()), options);
    (mock, card)
}

/// Who waits by interrupts polls for no record, whether each page has a vector or all have one.
#[test]
fn a_waiter_sleeps_until_its_interrupt() {
    for vectors in [1, COMMAND_PAGES] {
        let (mock, card) = sleeping(MockOptions { vectors, lazy: true, ..MockOptions::default() });
        let card = card.unwrap();
        card.map_pool(mapping()).unwrap();
        let polls = mock.polls();
        for count in 0..100 {
            let ticket = card.post(1, log(0x8_0000 + 64 * count, count), true).unwrap();
            let start = card.function().now_ns();
            card.wait(ticket).unwrap();
            assert!(card.function().now_ns() - start < LOST_NS, "{vectors} vectors: no signal has woken it");
            assert_eq!(mock.executed().len() as u64, count + 2, "it has ended");
        }
        assert_eq!(mock.polls(), polls, "{vectors} vectors");
    }
}

/// A lost interrupt costs a millisecond and nothing else.
#[test]
fn a_lost_interrupt_is_made_up_for() {
    let options = MockOptions { vectors: COMMAND_PAGES, lose_interrupts: true, lazy: true, ..MockOptions::default() };
    let (_, card) = sleeping(options);
    let card = card.unwrap();
    card.map_pool(mapping()).unwrap();
    for count in 0..100 {
        let ticket = card.post(1, log(0x8_0000 + 64 * count, count), true).unwrap();
        let start = card.function().now_ns();
        card.wait(ticket).unwrap();
        assert!((LOST_NS..2 * LOST_NS).contains(&(card.function().now_ns() - start)));
    }
    assert_eq!(failure(card.post(1, refused(7), true).and_then(|ticket| card.wait(ticket))).command.source, 7);
}

/// A card that goes while somebody sleeps is told of.
#[test]
fn nobody_sleeps_for_ever() {
    let (mock, card) = sleeping(MockOptions { vectors: COMMAND_PAGES, lazy: true, ..MockOptions::default() });
    let card = card.unwrap();
    card.map_pool(mapping()).unwrap();
    let ticket = card.post(1, log(0x8_0000, 0), true).unwrap();
    mock.power_cut();
    assert!(matches!(card.wait(ticket), Ok(()) | Err(CardError::Gone)), "what was accepted may have told of its end");
    // A store to a card that has gone is lost without a word, so that it is posted; nothing comes
    // of it.
    let ticket = card.post(1, log(0x8_0040, 1), true).unwrap();
    assert!(matches!(card.wait(ticket), Err(CardError::Gone)));
}

/// Nothing would wake a waiter: the card does not open.
#[test]
fn interrupts_that_are_not_there_are_refused() {
    // A page without a vector of its own, beside some that have one, is none either.
    let of = |vectors, completion_records| MockOptions { vectors, completion_records, ..MockOptions::default() };
    for options in [of(0, true), of(COMMAND_PAGES - 1, true), of(COMMAND_PAGES, false)] {
        let error = sleeping(options).1.unwrap_err();
        assert!(matches!(error, CardError::Pci(PciError::Unsupported { .. })), "{error}");
    }
}

/// Threads that share a page read back what they posted while others post, and drain the page
/// behind 1 024 commands.
#[test]
fn threads_on_one_page_read_back_their_own() {
    let (mock, card) = mapped(MockOptions { evict_one_in: 0, ..MockOptions::default() });
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let card = &card;
            scope.spawn(move || {
                for count in 0..HISTORY {
                    let ticket = card.post(1, log(0x8_0000 + 64 * (count % 25 + 25 * thread), count), false).unwrap();
                    card.read_back(ticket).unwrap();
                    if count % 16 == 4 * thread {
                        let failed = failure(
                            card.post(1, refused(thread << 32 | count), false)
                                .and_then(|ticket| card.read_back(ticket)),
                        );
                        assert_eq!(failed.command.source, thread << 32 | count);
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    card.drain(1).unwrap();
    assert_eq!(mock.executed().len() as u64, 1 + 4 * HISTORY);
}
