//! Synchronisation: alone, with a peer that asks first, and with messages that are lost.

use nearpm_hdl::dut::{Dut, Value, on_both_back_ends};
use nearpm_hdl::units::multi_device::MultiDevice;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Message {
    pool: u64,
    thread: u64,
    device: u64,
    asks: bool,
    txid: u64,
}

fn decode(value: Value) -> Message {
    Message {
        pool: value.slice(0, 32).to_u64(),
        thread: value.slice(32, 16).to_u64(),
        device: value.slice(48, 8).to_u64(),
        asks: value.slice(56, 8) == 1u64,
        txid: value.slice(64, 64).to_u64(),
    }
}

fn tell(dut: &mut dyn Dut, message: Message) {
    let value = Value::from(message.pool)
        .with_slice(32, 16, message.thread)
        .with_slice(48, 8, message.device)
        .with_slice(56, 8, u64::from(message.asks))
        .with_slice(64, 64, message.txid);
    dut.set("peer_in_data", value);
    dut.set("peer_in_valid", true);
    dut.run_until("peer_in_ready", 100);
    dut.cycle();
    dut.set("peer_in_valid", false);
}

fn hear(dut: &mut dyn Dut, limit: u64) -> Message {
    dut.run_until("peer_out_valid", limit);
    let message = decode(dut.get("peer_out_data"));
    dut.set("peer_out_ready", true);
    dut.cycle();
    dut.set("peer_out_ready", false);
    message
}

fn synchronise(dut: &mut dyn Dut, unit: usize, participants: u64, txid: u64) {
    dut.set(&format!("sync_participants${unit}"), participants);
    dut.set(&format!("sync_txid${unit}"), txid);
    dut.set(&format!("sync_pool${unit}"), 7u64);
    dut.set(&format!("sync_thread${unit}"), 3u64);
    dut.set(&format!("sync_valid${unit}"), true);
}

const SELF: u64 = 2;

#[test]
fn alone_there_is_nothing_to_wait_for() {
    on_both_back_ends::<MultiDevice>(|dut| {
        dut.reset();
        dut.set("device_number", SELF);
        for participants in [0, 1 << SELF] {
            synchronise(dut, 1, participants, 9);
            assert!(dut.get_bool("sync_ready$1") && !dut.get_bool("sync_ready$0"));
        }
        synchronise(dut, 1, 3, 9);
        assert!(!dut.get_bool("sync_ready$1"));
    });
}

#[test]
fn a_unit_waits_for_every_participant_and_later_transactions_count() {
    on_both_back_ends::<MultiDevice>(|dut| {
        dut.reset();
        dut.set("device_number", SELF);
        let peer = Message { pool: 7, thread: 3, device: 0, asks: false, txid: 9 };
        synchronise(dut, 3, 1 | 2 | 1 << SELF, 9);
        assert_eq!(hear(dut, 100), Message { device: SELF, asks: true, ..peer });
        tell(dut, peer);
        for other in [
            Message { device: 1, txid: 8, ..peer },
            Message { device: 1, pool: 8, ..peer },
            Message { device: 1, thread: 4, ..peer },
            Message { device: 3, ..peer },
        ] {
            tell(dut, other);
            for _ in 0..50 {
                assert!(!dut.get_bool("sync_ready$3"), "{other:?}");
                dut.cycle();
            }
        }
        tell(dut, Message { device: 1, txid: 12, ..peer });
        dut.run_until("sync_ready$3", 50);
        dut.cycle();
        dut.set("sync_valid$3", false);
        // Cumulative: the next transaction up to 12 waits for device 0 only.
        synchronise(dut, 0, 2, 11);
        dut.run_until("sync_ready$0", 50);
    });
}

#[test]
fn a_question_is_answered_once_this_device_has_come_as_far_and_is_asked_again() {
    on_both_back_ends::<MultiDevice>(|dut| {
        dut.reset();
        dut.set("device_number", SELF);
        let ask = Message { pool: 7, thread: 3, device: 0, asks: true, txid: 9 };
        tell(dut, ask);
        for _ in 0..50 {
            assert!(!dut.get_bool("peer_out_valid"));
            dut.cycle();
        }
        synchronise(dut, 0, 1, 9);
        dut.run_until("sync_ready$0", 100);
        dut.cycle();
        dut.set("sync_valid$0", false);
        tell(dut, ask);
        assert_eq!(hear(dut, 50), Message { device: SELF, asks: false, ..ask });
        // Nobody answers: the question comes again.
        synchronise(dut, 2, 2, 20);
        let first = hear(dut, 100);
        assert_eq!(hear(dut, 5000), first);
    });
}
