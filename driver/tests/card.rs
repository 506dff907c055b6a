//! The driver on a card made of a byte array: opening, firmware, posting, credits, completions,
//! failures.

mod common;

use std::sync::Arc;

use common::{POOL, RING, log, mapping, open};
use nearpm_driver::card::PoolMapping;
use nearpm_driver::mock::{MockCard, MockOptions};
use nearpm_driver::page::CREDITS;
use nearpm_driver::pci::{Caching, PciFunction};
use nearpm_driver::registers::LostStores;
use nearpm_driver::{Card, CardError, CardOptions, CommandError, FirmwareError, Posting};
use nearpm_interface::INTERFACE_VERSION;
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::firmware::{IMAGE_BYTES, IMAGE_FORMAT, IMAGE_MAGIC, ISA_VERSION, ImageHead};
use nearpm_interface::geometry::{LINE, POOLS_BASE};
use nearpm_interface::media::EntryHead;
use nearpm_interface::registers::state;
use nearpm_interface::seal;

fn try_open(mock: &MockCard) -> Result<Card, CardError> {
    Card::open(Arc::new(mock.clone()), CardOptions::default())
}

fn image() -> Vec<u8> {
    let head = ImageHead { magic: IMAGE_MAGIC, format: IMAGE_FORMAT, isa: ISA_VERSION, ..ImageHead::default() };
    let body = vec![0; IMAGE_BYTES - LINE];
    let mut line = head.to_bytes();
    seal::seal(&body, &mut line);
    [line.to_vec(), body].concat()
}

#[test]
fn every_posting_mode_delivers_the_command_before_a_later_store() {
    for posting in [Posting::Line, Posting::WriteCombining, Posting::Uncached] {
        for seed in 0..20 {
            let mock = MockCard::new(MockOptions { seed, ..MockOptions::default() });
            let card = open(&mock, posting);
            card.map_pool(mapping()).unwrap();
            let object = 0x8_0000;
            let window = card.window(POOLS_BASE..POOLS_BASE + (1 << 20), Caching::WriteBack).unwrap();
            window.store(object, b"before..");
            window.write_back(object, 8);
            window.fence();
            for round in 0..40 {
                let ticket = card.post(1, log(object, round), false).unwrap();
                // Stored, written back and fenced at once: only order can keep the old value in the
                // log.
                window.store(object, &[round as u8; 8]);
                window.write_back(object, 8);
                window.fence();
                card.read_back(ticket).unwrap();
                card.drain(1).unwrap();
                let mut entry = [0; 128];
                let slot = RING + 256 + round % 64 * 128;
                window.invalidate(slot, 128);
                window.load(slot, &mut entry);
                assert!(EntryHead::decode(&entry).is_some());
                let old = if round == 0 { *b"before.." } else { [round as u8 - 1; 8] };
                assert_eq!(entry[64..72], old, "{posting:?}, seed {seed}, round {round}");
            }
        }
    }
}

#[test]
fn what_was_read_back_survives_a_power_cut() {
    for seed in 0..50 {
        let options = MockOptions { seed, ..MockOptions::default() };
        let mock = MockCard::new(options);
        let card = open(&mock, Posting::WriteCombining);
        card.map_pool(mapping()).unwrap();
        let ticket = card.post(1, log(0x8_0000, 3), false).unwrap();
        card.read_back(ticket).unwrap();
        let medium = mock.power_cut();
        let slot = (POOLS_BASE + RING + 256 + 3 * 128) as usize;
        assert!(EntryHead::decode(&medium[slot..slot + 128]).is_some(), "seed {seed}");
    }
}

#[test]
fn thousands_of_commands_never_exceed_the_credits_or_the_ring() {
    for records in [true, false] {
        let mock = MockCard::new(MockOptions { completion_records: records, ..MockOptions::default() });
        let card = open(&mock, Posting::Line);
        card.map_pool(mapping()).unwrap();
        let mut last = None;
        for count in 0..5000 {
            last = Some(card.post(2, log(0x8_0000 + 64 * (count % 100), count), count % 3 == 0).unwrap());
        }
        card.wait(last.unwrap()).unwrap();
        card.drain(2).unwrap();
        assert_eq!(mock.executed().len(), 5001);
        assert!(card.take_failure(2, POOL, 0).unwrap().is_none());
    }
    const { assert!(CREDITS < 16) };
}

#[test]
fn a_refused_command_is_its_own_error_and_the_card_goes_on() {
    let cases = [
        (Command { opcode: 31, pool: POOL, ..Command::default() }, CommandError::BadOpcode),
        (Command { pool: 1234, ..log(0, 0) }, CommandError::Unmapped),
        (Command { thread: 9, ..log(0, 0) }, CommandError::Unmapped),
        (Command { length: 0, ..log(0, 0) }, CommandError::BadLength),
        (Command { length: u32::MAX, ..log(0, 0) }, CommandError::BadLength),
        (Command { source: u64::MAX - 2, ..log(0, 0) }, CommandError::OutOfRange),
        (Command { source: 1 << 20, ..log(0, 0) }, CommandError::OutOfRange),
        (Command { destination: 1 << 19, ..log(0, 0) }, CommandError::OutOfRange),
        (Command { destination: RING + 257, ..log(0, 0) }, CommandError::Misaligned),
        (Command { source: RING + 256, ..log(0, 0) }, CommandError::Overlap),
        (Command { txid: 0, ..log(0, 0) }, CommandError::StaleTransaction),
        (Command { participants: 2, ..log(0, 0) }, CommandError::BadParticipants),
        (Command { opcode: Opcode::Unmap as u8, pool: POOL, ..Command::default() }, CommandError::NotPrivileged),
    ];
    for records in [true, false] {
        let mock = MockCard::new(MockOptions { completion_records: records, ..MockOptions::default() });
        let card = open(&mock, Posting::Uncached);
        card.map_pool(mapping()).unwrap();
        for (command, expected) in cases {
            let ticket = card.post(1, command, true).unwrap();
            match card.wait(ticket) {
                Err(CardError::Command(failure)) => {
                    assert_eq!(failure.error, expected);
                    assert!(!failure.error.had_side_effects());
                    assert_eq!(failure.command.source, command.source);
                }
                other => panic!("{expected:?}: {other:?}"),
            }
        }
        let ticket = card.post(1, log(0x8_0000, 0), true).unwrap();
        card.wait(ticket).unwrap();
    }
}

#[test]
fn a_full_mapping_table_and_a_second_mapping_are_refused() {
    let mock = MockCard::new(MockOptions::default());
    let card = open(&mock, Posting::Line);
    for thread in 0..16 {
        card.map_pool(PoolMapping { thread, ..mapping() }).unwrap();
    }
    let error = |result: Result<(), CardError>| match result {
        Err(CardError::Command(failure)) => failure.error,
        other => panic!("{other:?}"),
    };
    assert_eq!(error(card.map_pool(PoolMapping { thread: 16, ..mapping() })), CommandError::MapFull);
    assert_eq!(error(card.map_pool(mapping())), CommandError::MapExists);
    card.unmap_pool(POOL, 3).unwrap();
    card.map_pool(PoolMapping { thread: 16, ..mapping() }).unwrap();
    assert_eq!(error(card.unmap_pool(POOL, 3)), CommandError::Unmapped);
}

#[test]
fn a_failed_log_latches_and_says_that_it_had_effects() {
    let mock = MockCard::new(MockOptions::default());
    let card = open(&mock, Posting::Line);
    card.map_pool(mapping()).unwrap();
    mock.break_memory(POOLS_BASE + 0x8_0000..POOLS_BASE + 0x8_0040);
    let ticket = card.post(1, log(0x8_0000, 0), false).unwrap();
    // The failure comes to light with the read-back if the command has run by then, and otherwise
    // later.
    let failure = match card.read_back(ticket) {
        Err(CardError::Command(failure)) => failure,
        other => {
            other.unwrap();
            card.drain(1).unwrap();
            card.take_failure(1, POOL, 0).unwrap().expect("the failure is kept for its owner")
        }
    };
    assert_eq!(failure.error, CommandError::MemoryError);
    assert!(failure.error.had_side_effects());
    let commit = Command {
        opcode: Opcode::Commit as u8,
        pool: POOL,
        destination: RING,
        auxiliary: 1,
        txid: 1,
        ..Command::default()
    };
    let ticket = card.post(1, commit, true).unwrap();
    assert!(matches!(card.wait(ticket), Err(CardError::Command(f)) if f.error == CommandError::Latched));
}

#[test]
fn a_card_that_has_gone_is_an_error_and_not_a_hang() {
    for cut_after in (50..400).step_by(7) {
        let mock = MockCard::new(MockOptions { cut_after: Some(cut_after), ..MockOptions::default() });
        let result = (|| {
            let card = Card::open(Arc::new(mock.clone()), CardOptions::default())?;
            card.map_pool(mapping())?;
            for count in 0..1000 {
                let ticket = card.post(1, log(0x8_0000, count), count % 2 == 0)?;
                card.wait(ticket)?;
            }
            Ok(())
        })();
        assert!(matches!(result, Err(CardError::Gone)), "{result:?}");
    }
}

#[test]
fn what_is_not_this_card_is_refused() {
    let mock = MockCard::new(MockOptions::default());
    mock.set_config(2, 0x55);
    let open = |mock: &MockCard| Card::open(Arc::new(mock.clone()), CardOptions::default());
    assert!(matches!(open(&mock), Err(CardError::NotACard { device: 0x9e55, .. })));

    let version = INTERFACE_VERSION + 1;
    let mock = MockCard::new(MockOptions { version, ..MockOptions::default() });
    let supported = INTERFACE_VERSION;
    assert!(
        matches!(open(&mock), Err(CardError::WrongVersion { found, supported: s }) if (found, s) == (version, supported))
    );

    let mock = MockCard::new(MockOptions { state: state::LOSS, ..MockOptions::default() });
    assert!(matches!(open(&mock), Err(CardError::Loss)));
    assert!(matches!(open(&mock), Err(CardError::Loss)), "a refusal changes nothing");
    Card::acknowledge_loss(&mock).unwrap();
    open(&mock).unwrap();

    let mock = MockCard::new(MockOptions { state: state::FIRMWARE_MISSING, ..MockOptions::default() });
    assert!(matches!(open(&mock), Err(CardError::FirmwareMissing)));
    let mock = MockCard::new(MockOptions { state: state::SAVED, ..MockOptions::default() });
    assert!(matches!(open(&mock), Err(CardError::ShutDown { .. })));
    let mock = MockCard::new(MockOptions { state: state::BOOTING, ..MockOptions::default() });
    assert!(matches!(open(&mock), Err(CardError::Timeout { .. })), "a card that never boots");
}

#[test]
fn firmware_is_loaded_where_there_is_none_and_refused_when_it_is_wrong() {
    let open = |firmware: Option<Vec<u8>>| {
        let mock = MockCard::new(MockOptions { state: state::NO_FIRMWARE, ..MockOptions::default() });
        Card::open(Arc::new(mock), CardOptions { firmware, ..CardOptions::default() })
    };
    assert!(matches!(open(None), Err(CardError::NoFirmware)));
    open(Some(image())).unwrap();
    let refused = |image: Vec<u8>| match open(Some(image)) {
        Err(CardError::Firmware(error)) => error,
        other => panic!("{other:?}"),
    };
    assert!(matches!(refused(vec![0; 10]), FirmwareError::BadSize { found: 10, .. }));
    assert_eq!(refused(vec![0; IMAGE_BYTES]), FirmwareError::BadMagic);
    let mut damaged = image();
    damaged[200] ^= 1;
    assert_eq!(refused(damaged), FirmwareError::BadCrc);
}

#[test]
fn windows_and_pages_beyond_the_card_are_refused() {
    let mock = MockCard::new(MockOptions::default());
    let bytes = mock.bar_bytes(4).unwrap();
    let card = open(&mock, Posting::Line);
    assert!(matches!(card.window(0..bytes + 1, Caching::Uncached), Err(CardError::BeyondCard { .. })));
    assert!(matches!(card.post(4, log(0, 0), false), Err(CardError::BeyondCard { .. })));
    card.shut_down().unwrap();
}

#[test]
fn commands_that_share_a_fence_all_arrive_before_a_later_store() {
    for posting in [Posting::Line, Posting::WriteCombining, Posting::Uncached] {
        for seed in 0..20 {
            let mock = MockCard::new(MockOptions { seed, ..MockOptions::default() });
            let card = open(&mock, posting);
            card.map_pool(mapping()).unwrap();
            let window = card.window(POOLS_BASE..POOLS_BASE + (1 << 20), Caching::WriteCombining).unwrap();
            // More than there are slots on a page.
            let logs: Vec<Command> = (0..40).map(|n| log(512 * 1024 + 64 * n, n)).collect();
            let last = card.post_all(1, &logs, true).unwrap().expect("the last command has a ticket");
            for n in 0..40 {
                window.store(512 * 1024 + 64 * n, &[9; 8]);
            }
            window.fence();
            card.drain(1).unwrap();
            card.wait(last).unwrap();
            assert!(card.post_all(1, &[], true).unwrap().is_none());
            let medium = mock.power_cut();
            for n in 0..40 {
                let data = POOLS_BASE as usize + RING as usize + 256 + n % 64 * 128 + LINE;
                assert_eq!(medium[data..data + 8], [0; 8], "{posting:?}, seed {seed}: log {n} holds the old value");
                assert_eq!(medium[(POOLS_BASE + 512 * 1024) as usize + 64 * n..][..8], [9; 8]);
            }
        }
    }
}

/// Which pool a failed log belongs to is asked only when the status line shows one, and found out
/// from the records.
#[test]
fn a_failed_log_is_told_to_its_pool_and_to_no_other() {
    for records in [true, false] {
        let mock = MockCard::new(MockOptions { completion_records: records, ..MockOptions::default() });
        let card = open(&mock, Posting::Line);
        let other = PoolMapping { pool: POOL + 1, base: POOLS_BASE + (1 << 20), ..mapping() };
        for mapping in [mapping(), PoolMapping { thread: 1, ..mapping() }, other] {
            card.map_pool(mapping).unwrap();
        }
        let healthy = card.push(1).unwrap();
        card.verify_logs(POOL, healthy).unwrap();
        mock.break_memory(POOLS_BASE + 0x8_0000..POOLS_BASE + 0x8_0040);
        card.post(2, Command { thread: 1, ..log(0x8_0000, 1) }, false).unwrap();
        card.drain(2).unwrap();
        // Another thread, on another page.
        let ticket = card.post(1, log(0x9_0000, 2), false).unwrap();
        let latched = card.read_back(ticket).unwrap();
        let error = card.verify_logs(POOL, latched).unwrap_err();
        let CardError::LogFailed { pool, log: Some(failure), .. } = &error else { panic!("{error}") };
        assert_eq!((*pool, failure.command.thread, failure.command.source), (POOL, 1, 0x8_0000));
        card.verify_logs(POOL + 1, latched).unwrap();
        card.unmap_pool(POOL, 1).unwrap();
        let latched = card.push(1).unwrap();
        card.verify_logs(POOL, latched).unwrap();
        assert!(card.take_failure(2, POOL, 1).unwrap().is_none(), "who maps it again has nothing to do with it");
    }
}

/// A lost store is told to the pool that it fell into, and to who opens the card next, until
/// somebody accepts it.
#[test]
fn a_lost_store_is_told_to_its_pool_and_to_no_other() {
    for records in [true, false] {
        let mock = MockCard::new(MockOptions { completion_records: records, ..MockOptions::default() });
        let card = open(&mock, Posting::Line);
        let other = PoolMapping { pool: POOL + 1, base: POOLS_BASE + (1 << 20), ..mapping() };
        for mapping in [mapping(), PoolMapping { thread: 1, ..mapping() }, other] {
            card.map_pool(mapping).unwrap();
        }
        let [own, others] = [mapping(), other].map(|m| m.base..m.base + m.bytes);
        card.verify_stores(&own, card.push(1).unwrap()).unwrap();
        let line = POOLS_BASE + 0x8_0040;
        mock.refuse_stores(line..line + 64);
        let window = card.window(own.clone(), Caching::Uncached).unwrap();
        window.store(line - own.start, &[1; 8]);
        window.store(line - own.start + 8, &[1; 8]);
        let latched = card.push(1).unwrap();
        assert_eq!((latched.entries.count_ones(), latched.stores_lost), (2, 2));
        let error = card.verify_stores(&own, latched).unwrap_err();
        let CardError::StoresLost(LostStores { count: 2, first, last }) = error else { panic!("{error}") };
        assert_eq!((first, last), (line, line));
        card.verify_stores(&others, latched).unwrap();
        card.verify_logs(POOL + 1, latched).unwrap();
        drop(card);
        assert!(matches!(try_open(&mock), Err(CardError::StoresLost(_))), "who opens the card next");
        Card::acknowledge_loss(&mock).unwrap();
        try_open(&mock).unwrap();
    }
}

/// A card is busy for a while with each load: what became of the load before is not taken for its
/// outcome.
#[test]
fn the_outcome_of_a_load_is_waited_for() {
    let mock = MockCard::new(MockOptions { load_looks: 3, ..MockOptions::default() });
    let card = open(&mock, Posting::Line);
    let mut damaged = image();
    damaged[200] ^= 1;
    let load = |image: &[u8]| match card.load_firmware(image) {
        Ok(()) => Ok(()),
        Err(CardError::Firmware(error)) => Err(error),
        Err(error) => panic!("{error}"),
    };
    let wrong = vec![0; IMAGE_BYTES];
    for _ in 0..2 {
        assert_eq!(load(&image()), Ok(()));
        assert_eq!(load(&damaged), Err(FirmwareError::BadCrc));
        assert_eq!(load(&damaged), Err(FirmwareError::BadCrc));
        assert_eq!(load(&wrong), Err(FirmwareError::BadMagic));
    }
}

/// A load that the processor makes ahead of time is in flight now and then: the card is asked
/// again, for a bounded time.
#[test]
fn firmware_is_loaded_when_the_card_is_idle_again() {
    let open = |busy_loads: u32| {
        let mock = MockCard::new(MockOptions { state: state::NO_FIRMWARE, busy_loads, ..MockOptions::default() });
        Card::open(Arc::new(mock), CardOptions { firmware: Some(image()), ..CardOptions::default() })
    };
    for busy_loads in [1, 2, 100] {
        open(busy_loads).unwrap();
    }
    let bound = CardOptions::default().timeout_ns;
    let error = open(u32::MAX).unwrap_err();
    let CardError::Firmware(FirmwareError::NotIdle { waited_ns }) = error else { panic!("{error}") };
    assert!(waited_ns > bound && waited_ns < bound + 10_000, "{waited_ns} ns");
}
