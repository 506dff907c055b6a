//! The parked table and the peer port: who waits for whom, who goes first, what is said and heard, and what software decides.

use nearpm_hdl::bundles::MapEntry;
use nearpm_hdl::dut::{Dut, PortValue, Value, on_both_back_ends};
use nearpm_hdl::units::multi_device::{Brief, Message, MultiDevice};
use nearpm_hdl::units::request_slots::Ticket;
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::PARKED_COMMANDS;
use nearpm_interface::peer::{PATIENCE_CYCLES, PEER_ASKS, PEER_TELLS, PeerMessage};
use nearpm_interface::registers::parked_action;

const SELF: u8 = 2;
const POOL: u32 = 7;
/// A command is let go within so many cycles of what it waited for.
const SOON: u64 = 60;

/// The unit, and a mapping table with an entry of [`POOL`] for each of 16 threads.
struct Bench<'a> {
    dut: &'a mut dyn Dut,
    reached: [u64; 16],
    sent: Vec<PeerMessage>,
    /// Entry that was looked up in the cycle before.
    hit: u64,
}

impl<'a> Bench<'a> {
    fn new(dut: &'a mut dyn Dut) -> Self {
        dut.reset();
        dut.set("device_number", u64::from(SELF));
        for pin in ["window_open", "slot_any", "discard_ready", "peer_out_ready"] {
            dut.set(pin, true);
        }
        Self { dut, reached: [0; 16], sent: Vec::new(), hit: u64::MAX }
    }

    fn entry(&self, map: u64) -> Value {
        let (thread, reached) = (map.into(), self.reached[map as usize].into());
        MapEntry { flags: 1.into(), thread, pool: u64::from(POOL).into(), reached, ..MapEntry::default() }.to_value()
    }

    /// One cycle; the messages that leave are noted.
    fn cycle(&mut self) {
        let (look, shown) = (self.dut.get_u64("look_map"), self.dut.get_u64("shown_map"));
        let (pool, thread) = (self.dut.get_u64("lookup_pool"), self.dut.get_u64("lookup_thread"));
        let (entry, turn) = (self.entry(look), self.reached[shown as usize]);
        if self.dut.get_bool("reach_valid") {
            self.reached[self.dut.get_u64("reach_map") as usize] = self.dut.get_u64("reach_txid");
        }
        if self.dut.get_bool("peer_out_valid") && self.dut.get_bool("peer_out_ready") {
            let bytes = self.dut.get("peer_out_data").to_bytes(PeerMessage::SIZE);
            self.sent.push(PeerMessage::from_bytes(&bytes.try_into().unwrap()));
        }
        self.dut.cycle();
        self.dut.set("looked", entry);
        self.dut.set("shown_turn", turn);
        let found =
            std::mem::replace(&mut self.hit, if pool == u64::from(POOL) && thread < 16 { thread } else { u64::MAX });
        self.dut.set("lookup_found", found != u64::MAX);
        self.dut.set("lookup_index", found & 15);
    }

    fn rest(&mut self, cycles: u64) {
        (0..cycles).for_each(|_| self.cycle());
    }

    fn pulse(&mut self, pin: &str) {
        self.dut.set(pin, true);
        self.cycle();
        self.dut.set(pin, false);
    }

    fn number(&mut self) {
        self.pulse("numbered");
    }

    /// A command is numbered with a place kept for it, and comes to its turn.
    fn park(&mut self, thread: u16, txid: u64, participants: u32, order: u64, ordered: bool) {
        let command = Command {
            opcode: Opcode::Commit as u8,
            pool: POOL,
            thread,
            txid,
            participants,
            tag: order as u32,
            ..Command::default()
        };
        let map = u64::from(thread);
        self.dut.set("keep_map", map);
        self.pulse("keep_valid");
        let synchronises = participants & !(1 << SELF) != 0;
        let ticket =
            Ticket { page: 1.into(), map: map.into(), parks: true, synchronises, ordered, ..Ticket::default() };
        self.dut.set("park_ticket", ticket.to_value());
        self.dut.set("park_raw", Value::from_bytes(&command.encode()));
        self.dut.set("park_order", order);
        self.pulse("park_valid");
    }

    fn hear(&mut self, thread: u16, device: u8, status: u8, txid: u64) {
        let message = PeerMessage { pool: POOL, thread, device, status, txid };
        self.dut.set("peer_in_data", Value::from_bytes(&message.to_bytes()));
        assert!(self.dut.get_bool("peer_in_ready"), "the port never makes others wait");
        self.pulse("peer_in_valid");
    }

    /// Order number of the command that is let go, if one is; it is numbered and takes a slot.
    fn released(&mut self) -> Option<u64> {
        for _ in 0..SOON {
            if self.dut.get_bool("release_valid") {
                let order = self.dut.get_u64("release_order");
                let command = Command::from_bytes(&self.dut.get("release_raw").to_bytes(64).try_into().unwrap());
                assert_eq!((u64::from(command.tag), self.dut.get_u64("release_page")), (order, 1));
                self.pulse("release_taken");
                self.rest(5);
                self.dut.set("let_map", u64::from(command.thread));
                self.dut.set("let_valid", true);
                self.pulse("release_ready");
                self.dut.set("let_valid", false);
                return Some(order);
            }
            self.cycle();
        }
        None
    }

    fn retire(&mut self, thread: u16) {
        self.dut.set("back_map", u64::from(thread));
        self.pulse("back_valid");
    }

    fn act(&mut self, place: u64, action: u32) {
        self.dut.set("act_place", place);
        self.dut.set("act_action", u64::from(action));
        self.pulse("act_valid");
    }

    fn told(&self, thread: u16, status: u8, txid: u64) -> PeerMessage {
        PeerMessage { pool: POOL, thread, device: SELF, status, txid }
    }
}

fn with(test: fn(&mut Bench)) {
    on_both_back_ends::<MultiDevice>(|dut| test(&mut Bench::new(dut)));
}

#[test]
fn a_command_waits_for_every_participant_and_reports() {
    with(|b| {
        b.number();
        b.park(3, 9, 1 | 2 | 1 << SELF, 100, true);
        b.rest(SOON);
        assert_eq!((b.sent.clone(), b.reached[3]), (vec![b.told(3, PEER_TELLS, 9)], 9));
        b.hear(3, 0, PEER_TELLS, 9);
        for (thread, device, status, txid) in [
            (3, 1, PEER_TELLS, 8),
            (4, 1, PEER_TELLS, 9),
            (3, 3, PEER_TELLS, 9),
            (3, 1, PEER_ASKS, 10),
            (3, 9, PEER_TELLS, 9),
        ] {
            b.hear(thread, device, status, txid);
            assert_eq!(b.released(), None, "{device} {status} {txid}");
        }
        assert_eq!((b.dut.get_u64("busy"), b.dut.get_u64("waiting")), (1 << 3, 1 << 3));
        b.hear(3, 1, PEER_TELLS, 12);
        assert_eq!(b.released(), Some(100));
        assert_eq!((b.dut.get_u64("busy"), b.dut.get_u64("waiting"), b.dut.get_u64("parked")), (1 << 3, 0, 0));
        b.retire(3);
        assert_eq!(b.dut.get_u64("busy"), 0);
        // Cumulative: what was heard of 12 counts for 11, and what is told falls back for nobody.
        b.hear(3, 1, PEER_TELLS, 2);
        b.park(3, 11, 2 | 1 << SELF, 101, true);
        assert_eq!(b.released(), Some(101));
    });
}

#[test]
fn what_was_accepted_first_goes_first_and_alone() {
    with(|b| {
        b.number();
        // An apply that was ready before its commit, what is ordered behind both, and another thread.
        b.park(5, 4, 2 | 1 << SELF, 31, false);
        b.rest(SOON);
        assert_eq!(b.reached[5], 0, "an apply does not report");
        b.park(5, 4, 2 | 1 << SELF, 30, true);
        b.park(5, 5, 0, 32, true);
        b.park(6, 1, 0, 33, true);
        assert_eq!(b.released(), Some(33), "another thread passes");
        assert_eq!(b.released(), None);
        b.hear(5, 1, PEER_TELLS, 4);
        for order in [30, 31, 32] {
            assert_eq!(b.released(), Some(order));
            assert_eq!(b.released(), None, "one at a time");
            b.retire(5);
        }
    });
}

#[test]
fn what_failed_holds_its_thread_until_the_mapping_closes() {
    with(|b| {
        b.number();
        b.park(1, 1, 0, 1, true);
        b.park(1, 2, 0, 2, true);
        assert_eq!(b.released(), Some(1));
        b.dut.set("back_failed", true);
        b.retire(1);
        b.dut.set("back_failed", false);
        assert_eq!(b.released(), None);
        b.dut.set("close_map", 1u64);
        b.pulse("close_valid");
        assert_eq!(b.released(), Some(2));
    });
}

#[test]
fn places_are_kept_used_and_given_back() {
    with(|b| {
        for i in 0..PARKED_COMMANDS as u64 {
            assert!(!b.dut.get_bool("full"), "after {i}");
            if i % 2 == 0 {
                b.park((i % 16) as u16, 1, 3 | 1 << SELF, 1 + i, true);
            } else {
                b.dut.set("keep_map", i % 16);
                b.pulse("keep_valid");
            }
        }
        assert!(b.dut.get_bool("full") && b.dut.get_u64("busy") == 0xffff && b.dut.get_u64("waiting") == 0x5555);
        b.dut.set("give_map", 3u64);
        b.pulse("give_valid");
        assert!(!b.dut.get_bool("full"));
        b.pulse("give_valid");
        assert_eq!(b.dut.get_u64("busy"), 0xffff & !(1 << 3), "both of the entry are gone");
    });
}

#[test]
fn questions_are_asked_again_and_answered() {
    with(|b| {
        b.number();
        b.hear(3, 0, PEER_ASKS, 9);
        b.rest(SOON);
        assert_eq!(b.sent, []);
        b.park(3, 9, 1 | 1 << SELF, 1, true);
        b.rest(SOON);
        b.hear(3, 0, PEER_ASKS, 10);
        b.hear(3, 0, PEER_ASKS, 9);
        b.rest(SOON);
        assert_eq!(b.sent, [b.told(3, PEER_TELLS, 9); 2], "told, and told again to who asks for that");
        b.sent.clear();
        b.rest(2 * PATIENCE_CYCLES + SOON);
        assert_eq!(b.sent, [b.told(3, PEER_ASKS, 9); 2]);
    });
}

#[test]
fn nothing_is_said_heard_or_let_go_before_the_device_is_numbered() {
    with(|b| {
        b.park(3, 9, 1 | 1 << SELF, 1, true);
        b.hear(3, 0, PEER_TELLS, 9);
        assert_eq!((b.released(), b.reached[3]), (None, 9));
        assert!(b.sent.is_empty() && !b.dut.get_bool("speaks"));
        b.number();
        b.rest(SOON);
        assert_eq!(b.sent, [b.told(3, PEER_TELLS, 9), b.told(3, PEER_ASKS, 9)], "at once, with a question");
        b.hear(3, 0, PEER_TELLS, 9);
        b.dut.set("stop", true);
        assert_eq!(b.released(), None, "nothing is let go in a drain");
        b.dut.set("stop", false);
        b.dut.set("slot_any", false);
        assert_eq!(b.released(), None, "nor without a slot");
        b.dut.set("slot_any", true);
        assert_eq!(b.released(), Some(1));
        b.pulse("clear");
        assert!(!b.dut.get_bool("speaks"));
    });
}

#[test]
fn a_link_that_takes_nothing_holds_nobody_up() {
    with(|b| {
        b.number();
        b.dut.set("peer_out_ready", false);
        b.park(3, 9, 1 | 1 << SELF, 1, true);
        b.park(4, 9, 1 | 1 << SELF, 2, true);
        b.rest(SOON);
        (0..40).for_each(|txid| b.hear(4, 0, PEER_ASKS, txid));
        b.rest(40 * 8);
        b.hear(4, 0, PEER_TELLS, 9);
        assert_eq!(b.released(), Some(2));
        b.dut.set("peer_out_ready", true);
        b.rest(2 * SOON);
        assert!(b.sent.contains(&b.told(3, PEER_TELLS, 9)) && b.sent.contains(&b.told(4, PEER_TELLS, 9)));
    });
}

#[test]
fn software_sees_what_waits_and_decides_while_the_device_is_silent() {
    with(|b| {
        b.park(3, 0x1_0000_0009, 1 | 1 << SELF, 1, true);
        b.park(4, 9, 0x81 | 1 << SELF, 2, true);
        b.park(5, 9, 0, 3, true);
        assert_eq!(b.released(), Some(3));
        assert_eq!(b.dut.get_u64("parked"), 3);
        for (place, thread, txid) in [(0u64, 3u64, 0x1_0000_0009), (1, 4, 9), (2, 0, 0), (32, 0, 0)] {
            b.dut.set("select", place);
            b.rest(3);
            let shown = Brief::from_value(b.dut.get("shown"));
            assert_eq!((shown.thread.to_u64(), shown.txid.to_u64()), (thread, txid), "place {place}");
            // Both have come to their turn here.
            assert_eq!(b.dut.get_u64("shown_reached"), if place < 2 { 1 << SELF } else { 0 });
        }
        for place in [2, 7, 33] {
            b.act(place, parked_action::DISCARD);
            b.act(place, parked_action::RELEASE);
        }
        b.act(0, 7);
        assert_eq!((b.released(), b.dut.get_u64("parked")), (None, 3));
        b.act(1, parked_action::RELEASE);
        assert_eq!(b.released(), Some(2));
        b.dut.set("discard_ready", false);
        b.act(0, parked_action::DISCARD);
        b.rest(SOON);
        assert_eq!(b.dut.get_u64("parked"), 1, "until that can be recorded");
        b.dut.set("discard_ready", true);
        assert!(b.dut.get_bool("discard_valid"));
        assert_eq!((b.dut.get_u64("discard_tag"), b.dut.get_u64("discard_page")), (1, 1));
        b.rest(2);
        assert_eq!(
            (b.dut.get_u64("parked"), b.dut.get_bool("any"), b.dut.get_bool("discard_valid")),
            (0, false, false)
        );
        // A device that speaks discards nothing.
        b.number();
        b.park(3, 20, 1 | 1 << SELF, 9, true);
        b.act(0, parked_action::DISCARD);
        b.rest(SOON);
        assert_eq!(b.dut.get_u64("parked"), 1);
    });
}

#[test]
fn the_save_reads_each_place() {
    with(|b| {
        (0..5u64).for_each(|i| b.park(i as u16, 9, 1 | 1 << SELF, 50 + i, true));
        b.dut.set("quiesce", true);
        b.rest(3);
        for place in 0..32 {
            b.dut.set("save_place", place);
            assert_eq!(b.dut.get_bool("saved_valid"), place < 5);
            if place < 5 {
                assert_eq!((b.dut.get_u64("saved_order"), b.dut.get_u64("saved_page")), (50 + place, 1));
                assert_eq!(b.dut.get("saved_raw").slice(16, 16), place);
            }
        }
    });
}

#[test]
fn messages_are_those_of_the_interface() {
    let message = PeerMessage { pool: 1, thread: 2, device: 3, status: 4, txid: 5 };
    let value = Message { pool: 1.into(), thread: 2.into(), device: 3.into(), status: 4.into(), txid: 5.into() };
    assert_eq!(value.to_value().to_bytes(PeerMessage::SIZE), message.to_bytes());
}
