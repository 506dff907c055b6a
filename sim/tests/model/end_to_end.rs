//! The whole way of a transaction: map, log, store, commit, read back, power cut, replay.

use crate::support::*;
use nearpm_interface::registers::{self, state};
use nearpm_interface::seal;
use nearpm_interface::status::Status;
use nearpm_sim::core::CardCore;
use nearpm_sim::model::monitor::Monitor;

#[test]
fn a_transaction_is_logged_stored_and_committed() {
    let mut rig = Rig::open(None);
    rig.store(0, pattern(0, 1));
    rig.store(64, pattern(64, 1));
    let log = rig.post(undo(5, 32, 64, SLOTS));
    rig.store(0, pattern(0, 2));
    rig.store(64, pattern(64, 2));
    assert_eq!(rig.load(0), pattern(0, 2));
    assert_eq!(rig.finish(log).status, 0);
    rig.settle();
    let (head, data) = entry(rig.card.medium(), SLOTS).expect("a whole entry");
    assert_eq!((head.txid, head.offset, head.length, head.pool), (5, 32, 64, POOL));
    assert_eq!(data, [&pattern(0, 1)[32..], &pattern(64, 1)[..32]].concat());
    assert_eq!(rig.run(commit(5)).status, 0);
    assert_eq!(rig.run(undo(5, 0, 64, SLOTS)).status, Status::StaleTransaction.code());
    rig.settle();
    let word = u64::from_le_bytes(pool_bytes(rig.card.medium(), RING, 8).try_into().unwrap());
    assert_eq!(seal::open_word(word), Some(5));
    let status = rig.status(0);
    assert_eq!((status.accepted, status.retired, status.refused), (3, 3, 1));
    let mut monitor = Monitor::new();
    monitor.follow(&rig.card.take_trace());
    assert!(monitor.issued >= 7 && monitor.violations().is_empty());
}

#[test]
fn what_was_accepted_survives_a_cut_at_any_cycle_and_is_replayed_in_order() {
    let build = || {
        let mut rig = Rig::open(None);
        rig.store(0, pattern(0, 1));
        rig.settle();
        rig.post(undo(5, 0, 64, SLOTS));
        rig.store(0, pattern(0, 2));
        rig.post(undo(5, 0, 64, SLOTS + 128));
        rig.store(0, pattern(0, 3));
        rig.post(commit(5));
        rig
    };
    for cycles in 0..200 {
        let mut rig = build();
        let start = rig.card.cycle();
        rig.card.advance_to(start + cycles);
        let mut again = Rig::power_up(rig.cut(cycles));
        again.until(state::OPEN);
        let accepted = again.get(registers::REPLAYED);
        again.settle();
        let now = again.load(0);
        let number = (1..4).find(|&n| now == pattern(0, n)).expect("a whole line");
        let medium = again.card.medium();
        if let Some((_, data)) = entry(medium, SLOTS) {
            assert_eq!(data, pattern(0, 1), "{cycles}: the first log holds the first value");
        }
        if let Some((_, data)) = entry(medium, SLOTS + 128) {
            assert_eq!(data, pattern(0, 2), "{cycles}: the second log holds the second value");
        }
        assert!(number < 2 || entry(medium, SLOTS).is_some(), "{cycles}: a store passed its log");
        assert!(number < 3 || entry(medium, SLOTS + 128).is_some(), "{cycles}: a store passed its log");
        let committed = pool_bytes(medium, RING, 8).iter().any(|&b| b != 0);
        assert!(!committed || number == 3, "{cycles}: a commit passed a store");
        assert!(accepted <= 5);
        if cycles == 199 {
            assert!(committed, "everything was accepted");
            assert_eq!(again.get(registers::MAPPED), 1);
        }
    }
}
