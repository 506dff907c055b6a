//! The parked table and the peer port: who waits for whom, who goes first, what is said and heard,
//! and what software decides.

use nearpm_hdl::bundles::MapEntry;
use nearpm_hdl::dut::{Dut, PortValue, Value, on_both_back_ends};
use nearpm_hdl::units::multi_device::{Brief, Message, MultiDevice};
use nearpm_hdl::units::request_slots::Ticket;
use nearpm_hdl_bench::planted::Edit;
use nearpm_hdl_bench::planted::unit::{UnitFault, each_is_seen};
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::PARKED_COMMANDS;
use nearpm_interface::peer::{PATIENCE_CYCLES, PEER_ASKS, PEER_TELLS, PeerMessage};
use nearpm_interface::registers::parked_action;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeSet, VecDeque};

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
    /// A message that was offered and not taken in the cycle before.
    kept: Option<Value>,
}

impl<'a> Bench<'a> {
    fn new(dut: &'a mut dyn Dut) -> Self {
        dut.reset();
        dut.set("device_number", u64::from(SELF));
        for pin in ["window_open", "slot_any", "discard_ready", "peer_out_ready"] {
            dut.set(pin, true);
        }
        Self { dut, reached: [0; 16], sent: Vec::new(), hit: u64::MAX, kept: None }
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
        let out = self.dut.get_bool("peer_out_valid").then(|| self.dut.get("peer_out_data"));
        let silenced = ["clear", "quiesce"].map(|pin| self.dut.get_bool(pin)) != [false; 2];
        if let Some(before) = self.kept.take() {
            assert!(out == Some(before), "a message is withdrawn or changes before it was taken");
        }
        self.kept = out.filter(|_| !self.dut.get_bool("peer_out_ready") && !silenced);
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

macro_rules! on_both {
    ($($scenario:ident),+ $(,)?) => {
        mod both {
            $(
                #[test]
                fn $scenario() {
                    super::on_both_back_ends::<super::MultiDevice>(super::$scenario);
                }
            )+
        }
    };
}

on_both!(
    a_command_waits_for_every_participant_and_reports,
    what_was_accepted_first_goes_first_and_alone,
    what_failed_holds_its_thread_until_the_mapping_closes,
    places_are_kept_used_and_given_back,
    questions_are_asked_again_and_answered,
    nothing_is_said_heard_or_let_go_before_the_device_is_numbered,
    a_link_that_takes_nothing_holds_nobody_up,
    software_sees_what_waits_and_decides_while_the_device_is_silent,
    the_save_reads_each_place,
    what_is_forgotten_or_left_behind_is_waited_for_and_dropped,
    messages_delay_a_thread_as_long_as_they_come_one_upon_the_other,
    whatever_comes_at_once_only_what_may_go_goes,
);

/// Messages go first, and nothing bounds their number: what the page says of that.
fn messages_delay_a_thread_as_long_as_they_come_one_upon_the_other(dut: &mut dyn Dut) {
    let b = &mut Bench::new(dut);
    b.number();
    b.reached[4] = 1;
    // Five cycles to take a message in, and eleven where it is a question that is answered.
    for (status, dense, sparse) in [(PEER_TELLS, 4, 20), (PEER_ASKS, 9, 40)] {
        let send = |b: &mut Bench, every: u64, cycles: u64| {
            for cycle in 0..cycles {
                if cycle % every == 0 {
                    b.hear(4, 0, status, 1)
                } else {
                    b.cycle()
                }
                if b.dut.get_bool("release_valid") {
                    return Some(cycle);
                }
            }
            None
        };
        send(b, dense, 200);
        b.park(6, 1, 0, 33, true);
        assert_eq!(send(b, dense, 5000), None, "messages of status {status} no longer go before a thread");
        b.rest(16 * 14);
        assert_eq!(b.released(), Some(33), "behind the last message");
        b.retire(6);
        b.rest(SOON);
        b.park(6, 1, 0, 34, true);
        assert!(send(b, sparse, 5000).is_some_and(|cycle| cycle < SOON), "a message in {sparse} cycles is too much");
        assert_eq!(b.released(), Some(34));
        b.retire(6);
    }
}

fn a_command_waits_for_every_participant_and_reports(dut: &mut dyn Dut) {
    let b = &mut Bench::new(dut);
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
    assert_eq!(b.released(), Some(101), "what was told falls back for nobody");
}

fn what_was_accepted_first_goes_first_and_alone(dut: &mut dyn Dut) {
    let b = &mut Bench::new(dut);
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
}

fn what_failed_holds_its_thread_until_the_mapping_closes(dut: &mut dyn Dut) {
    let b = &mut Bench::new(dut);
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
}

fn places_are_kept_used_and_given_back(dut: &mut dyn Dut) {
    let b = &mut Bench::new(dut);
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
}

fn questions_are_asked_again_and_answered(dut: &mut dyn Dut) {
    let b = &mut Bench::new(dut);
    b.number();
    b.hear(3, 0, PEER_ASKS, 9);
    b.rest(SOON);
    assert_eq!(b.sent, []);
    b.park(3, 9, 1 | 1 << SELF, 1, true);
    b.rest(SOON);
    b.hear(3, 0, PEER_ASKS, 10);
    b.rest(SOON);
    assert_eq!(b.sent, [b.told(3, PEER_TELLS, 9)], "who asks for more than has come waits");
    b.hear(3, 0, PEER_ASKS, 9);
    b.rest(SOON);
    assert_eq!(b.sent, [b.told(3, PEER_TELLS, 9); 2], "told, and told again to who asks for that");
    b.sent.clear();
    b.rest(2 * PATIENCE_CYCLES + SOON);
    assert_eq!(b.sent, [b.told(3, PEER_ASKS, 9); 2], "who waits asks again");
}

fn nothing_is_said_heard_or_let_go_before_the_device_is_numbered(dut: &mut dyn Dut) {
    let b = &mut Bench::new(dut);
    b.park(3, 9, 1 | 1 << SELF, 1, true);
    b.hear(3, 0, PEER_TELLS, 9);
    assert_eq!((b.released(), b.reached[3]), (None, 9));
    assert!(b.sent.is_empty() && !b.dut.get_bool("speaks"), "a device without a number speaks");
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
}

fn a_link_that_takes_nothing_holds_nobody_up(dut: &mut dyn Dut) {
    let b = &mut Bench::new(dut);
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
}

fn software_sees_what_waits_and_decides_while_the_device_is_silent(dut: &mut dyn Dut) {
    let b = &mut Bench::new(dut);
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
    assert_eq!(b.released(), Some(2), "software has released it");
    b.dut.set("discard_ready", false);
    b.act(0, parked_action::DISCARD);
    b.rest(SOON);
    assert_eq!(b.dut.get_u64("parked"), 1, "until that can be recorded");
    b.dut.set("discard_ready", true);
    assert!(b.dut.get_bool("discard_valid"));
    assert_eq!((b.dut.get_u64("discard_tag"), b.dut.get_u64("discard_page")), (1, 1));
    b.rest(2);
    assert_eq!((b.dut.get_u64("parked"), b.dut.get_bool("any"), b.dut.get_bool("discard_valid")), (0, false, false));
    // A device that speaks discards nothing.
    b.number();
    b.park(3, 20, 1 | 1 << SELF, 9, true);
    b.act(0, parked_action::DISCARD);
    b.rest(SOON);
    assert_eq!(b.dut.get_u64("parked"), 1);
}

fn the_save_reads_each_place(dut: &mut dyn Dut) {
    let b = &mut Bench::new(dut);
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
}

fn what_is_forgotten_or_left_behind_is_waited_for_and_dropped(dut: &mut dyn Dut) {
    let b = &mut Bench::new(dut);
    b.number();
    b.park(3, 9, 1 | 1 << SELF, 1, true);
    b.dut.set("slot_any", false);
    b.hear(3, 0, PEER_TELLS, 9);
    b.rest(SOON);
    // The entry is written anew: what was heard of it is not of this one.
    b.dut.set("forget_map", 3u64);
    b.pulse("forget_valid");
    b.dut.set("slot_any", true);
    assert_eq!(b.released(), None, "what was heard of an entry that is gone");
    b.hear(3, 0, PEER_TELLS, 9);
    assert_eq!(b.released(), Some(1));
    // A reset left the entry to its command: it goes with it, and not before it has retired.
    b.dut.set("orphans", 1u64 << 3 | 1 << 5);
    assert_eq!(b.dut.get_u64("drop"), 1 << 5, "entries that are dropped");
    b.dut.set("window_open", false);
    assert_eq!(b.dut.get_u64("drop"), 0, "a closed card drops entries");
    b.dut.set("window_open", true);
    b.retire(3);
    assert_eq!(b.dut.get_u64("drop"), 1 << 3 | 1 << 5, "entries that are dropped");
    b.dut.set("orphans", 0u64);
    // Who unmaps and is taken away opens its entry again.
    b.pulse("clear");
    for unmaps in [false, true] {
        b.dut.set("keep_map", 4u64);
        b.pulse("keep_valid");
        let ticket = Ticket { map: 4u64.into(), parks: true, synchronises: true, unmaps, ..Ticket::default() };
        b.dut.set("park_ticket", ticket.to_value());
        b.pulse("park_valid");
        b.act(0, parked_action::DISCARD);
        let mut reopened = 0;
        for _ in 0..SOON {
            reopened += u64::from(b.dut.get_bool("reopen_valid"));
            b.cycle();
        }
        assert_eq!((reopened, b.dut.get_u64("parked")), (u64::from(unmaps), 0), "entries that are open again");
    }
}

/// A command that waits, in the order of its thread.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    order: u64,
    txid: u64,
    others: u64,
    ordered: bool,
    place: u64,
    forced: bool,
}

/// Commands come and go, messages arrive and are held up, slots are free or not: all in the same
/// cycles.
fn whatever_comes_at_once_only_what_may_go_goes(dut: &mut dyn Dut) {
    const MAPS: usize = 6;
    let (rounds, cycles) = if dut.back_end() == "verilator" { (9, 2500) } else { (1, 500) };
    let mut rng = ChaCha8Rng::seed_from_u64(38);
    let mut let_go = 0;
    for round in 0..rounds {
        let b = &mut Bench::new(dut);
        b.number();
        let mut order = 0;
        let mut kept: [VecDeque<u64>; MAPS] = Default::default();
        let mut waiting: [VecDeque<Waiting>; MAPS] = Default::default();
        // What was asked of a thread, and what others have told of it.
        let mut asked: [BTreeSet<u64>; MAPS] = Default::default();
        let mut heard = [[0u64; 8]; MAPS];
        let (mut running, mut failed) = ([false; MAPS], [false; MAPS]);
        // Messages until now, and how likely one is: a flood leaves no time for anything else.
        let (mut told, talk) = (0usize, [0.03, 0.1, 0.3][round % 3]);
        // The entry whose command the decoder has.
        let mut taken: Option<usize> = None;
        for cycle in 0..cycles + 8000 {
            for pin in ["keep_valid", "park_valid", "give_valid", "act_valid", "peer_in_valid", "back_valid"] {
                b.dut.set(pin, false);
            }
            for pin in ["release_taken", "release_ready", "let_valid", "close_valid", "back_failed"] {
                b.dut.set(pin, false);
            }
            let drains = cycle >= cycles;
            if drains && waiting.iter().all(VecDeque::is_empty) && taken.is_none() {
                break;
            }
            assert!(
                cycle + 1 < cycles + 8000,
                "round {round}: what may go does not go: {waiting:?}, taken {taken:?}, not retired {running:?}, failed {failed:?}"
            );
            b.dut.set("slot_any", drains || rng.random_bool(0.7));
            b.dut.set("stop", !drains && rng.random_bool(0.1));
            b.dut.set("peer_out_ready", rng.random_bool(if drains { 0.9 } else { [0.02, 0.2, 0.05][round % 3] }));
            let map = rng.random_range(0..MAPS);
            if !drains && rng.random_bool(0.1) && !b.dut.get_bool("full") {
                order += 1;
                kept[map].push_back(order);
                b.dut.set("keep_map", map as u64);
                b.dut.set("keep_valid", true);
            }
            let map = rng.random_range(0..MAPS);
            let mut parked = None;
            if let Some(order) = kept[map].front().copied().filter(|_| drains || rng.random_bool(0.1))
                && !(b.dut.get_bool("keep_valid") && b.dut.get_u64("keep_map") == map as u64)
            {
                kept[map].pop_front();
                if rng.random_bool(0.2) {
                    b.dut.set("give_map", map as u64);
                    b.dut.set("give_valid", true);
                } else {
                    let others = rng.random_range(0..256u64) & rng.random_range(0..256u64) & !(1 << SELF);
                    let (txid, ordered) = (order / 2 + 1, rng.random_bool(0.7));
                    let command = Command {
                        pool: POOL,
                        thread: map as u16,
                        txid,
                        participants: (others | 1 << SELF) as u32,
                        tag: order as u32,
                        ..Command::default()
                    };
                    let synchronises = others != 0;
                    let page = 1u64.into();
                    let ticket = Ticket {
                        page,
                        map: (map as u64).into(),
                        parks: true,
                        synchronises,
                        ordered,
                        ..Ticket::default()
                    };
                    b.dut.set("park_ticket", ticket.to_value());
                    b.dut.set("park_raw", Value::from_bytes(&command.encode()));
                    b.dut.set("park_order", order);
                    b.dut.set("park_valid", true);
                    asked[map].insert(txid);
                    parked = Some((map, Waiting { order, txid, others, ordered, place: 0, forced: false }));
                }
            }
            // Messages of any device about any thread, more than are looked at.
            if rng.random_bool(if drains { 0.1 } else { talk }) {
                told += 1;
                let thread = if drains { told % MAPS } else { rng.random_range(0..MAPS + 1) };
                let device = if drains { (told / MAPS % 8) as u8 } else { rng.random_range(0..10u8) };
                let status = if drains || rng.random_bool(0.8) { PEER_TELLS } else { PEER_ASKS };
                let txid = if drains { 1 << 40 } else { (order / 2 + 3).saturating_sub(rng.random_range(0..8)) };
                let message = PeerMessage { pool: POOL, thread: thread as u16, device, status, txid };
                b.dut.set("peer_in_data", Value::from_bytes(&message.to_bytes()));
                b.dut.set("peer_in_valid", true);
                if status == PEER_TELLS && thread < MAPS && device < 8 {
                    let word = &mut heard[thread][device as usize];
                    *word = txid.max(*word);
                }
            }
            // A device that speaks releases, and discards nothing.
            let all: Vec<u64> = waiting.iter().flatten().map(|waiting| waiting.place).collect();
            if !drains && !all.is_empty() && rng.random_bool(0.02) {
                let (place, releases) = (all[rng.random_range(0..all.len())], rng.random_bool(0.5));
                b.dut.set("act_place", place);
                b.dut.set("act_action", if releases { parked_action::RELEASE } else { parked_action::DISCARD } as u64);
                b.dut.set("act_valid", true);
                if releases {
                    waiting.iter_mut().flatten().filter(|other| other.place == place).for_each(|w| w.forced = true);
                }
            }
            // The decoder takes what is released, and numbers it some cycles later.
            let mut leaves = None;
            if let Some(map) = taken {
                if rng.random_bool(0.3) {
                    b.dut.set("release_ready", true);
                    b.dut.set("let_map", map as u64);
                    b.dut.set("let_valid", true);
                    let gone = waiting[map].pop_front().expect("it waits");
                    leaves = Some(gone.place);
                    (running[map], taken) = (true, None);
                    let_go += 1;
                }
            } else if b.dut.get_bool("release_valid") {
                assert!(
                    b.dut.get_bool("slot_any") && !b.dut.get_bool("stop"),
                    "released without a slot, or in a drain"
                );
                let command = Command::from_bytes(&b.dut.get("release_raw").to_bytes(64).try_into().expect("a line"));
                let map = usize::from(command.thread);
                let first = *waiting[map].front().expect("a thread without a command is released");
                let shown = (u64::from(command.tag), b.dut.get_u64("release_order"), b.dut.get_u64("release_page"));
                assert_eq!(shown, (first.order, first.order, 1), "who is released");
                assert!(!running[map] && !failed[map], "released behind one of its thread that has not retired");
                let told = |device: usize| first.others >> device & 1 == 0 || heard[map][device] >= first.txid;
                assert!(first.forced || (0..8).all(told), "released without what others have to tell");
                let reported = first.others == 0 || !first.ordered || b.reached[map] >= first.txid;
                assert!(reported, "released before this device has reported");
                if rng.random_bool(0.3) {
                    b.dut.set("release_taken", true);
                    taken = Some(map);
                }
            }
            let retires: Vec<usize> = (0..MAPS).filter(|map| running[*map]).collect();
            if leaves.is_none() && !retires.is_empty() && rng.random_bool(if drains { 0.1 } else { 0.02 }) {
                let map = retires[rng.random_range(0..retires.len())];
                let fails = !drains && rng.random_bool(0.2);
                b.dut.set("back_map", map as u64);
                b.dut.set("back_valid", true);
                b.dut.set("back_failed", fails);
                (running[map], failed[map]) = (false, fails);
            } else if let Some(map) = (0..MAPS).find(|map| failed[*map])
                && rng.random_bool(0.05)
            {
                b.dut.set("close_map", map as u64);
                b.dut.set("close_valid", true);
                failed[map] = false;
            }
            if b.dut.get_bool("reach_valid") {
                let (map, txid) = (b.dut.get_u64("reach_map") as usize, b.dut.get_u64("reach_txid"));
                let first = waiting[map].front().expect("a thread without a command reports");
                assert!(txid == first.txid && first.ordered && first.others != 0, "who reports");
                assert!(txid > b.reached[map], "a report falls back");
                assert!(!running[map] && !failed[map], "reported behind one of its thread that has not retired");
            }
            let before = b.dut.get_u64("parked");
            let sent = b.sent.len();
            b.cycle();
            for message in &b.sent[sent..] {
                let map = usize::from(message.thread);
                if message.status == PEER_TELLS {
                    assert!((1..=b.reached[map]).contains(&message.txid), "what is told of entry {map}");
                } else {
                    assert!(asked[map].contains(&message.txid), "what is asked of entry {map}");
                }
            }
            let after = b.dut.get_u64("parked");
            if let Some((map, mut entry)) = parked {
                entry.place = u64::from((after & !before).trailing_zeros());
                waiting[map].push_back(entry);
            }
            let places = waiting.iter().flatten().fold(0, |mask, waiting| mask | 1u64 << waiting.place);
            assert_eq!(after, places, "round {round}, cycle {cycle}: places in use");
        }
        b.dut.set("peer_out_ready", true);
        b.rest(4 * SOON);
        for map in (0..MAPS).filter(|map| b.reached[*map] > 0) {
            let told = b.told(map as u16, PEER_TELLS, b.reached[map]);
            assert!(b.sent.contains(&told), "round {round}: how far entry {map} has come was told nobody");
        }
    }
    assert!(let_go > 20, "{let_go} commands were let go");
}

#[test]
fn messages_are_those_of_the_interface() {
    let message = PeerMessage { pool: 1, thread: 2, device: 3, status: 4, txid: 5 };
    let value = Message { pool: 1.into(), thread: 2.into(), device: 3.into(), status: 4.into(), txid: 5.into() };
    assert_eq!(value.to_value().to_bytes(PeerMessage::SIZE), message.to_bytes());
}

const FAULTS: &[UnitFault] = &[
    UnitFault {
        module: "",
        what: "a command goes without what a participant has to tell",
        edits: &[Edit::Text("missing$d = noted[", "missing$d = ~FAULT & noted[", 1)],
        scenario: whatever_comes_at_once_only_what_may_go_goes,
        seen: "released without what others have to tell",
    },
    UnitFault {
        module: "",
        what: "a message about an earlier transaction takes a later one back",
        edits: &[Edit::Text(
            "heard$tell_valid = is_behind[32'h0] &",
            "heard$tell_valid = (is_behind[32'h0] | FAULT) &",
            1,
        )],
        scenario: a_command_waits_for_every_participant_and_reports,
        seen: "what was told falls back",
    },
    UnitFault {
        module: "",
        what: "a device with a number above 7 is taken for another one",
        edits: &[Edit::Text("~|arrival_device[(32'h3)+:(5)]", "(~|arrival_device[(32'h3)+:(5)] | FAULT)", 1)],
        scenario: whatever_comes_at_once_only_what_may_go_goes,
        seen: "released without what others have to tell",
    },
    UnitFault {
        module: "",
        what: "what is not ordered reports",
        edits: &[Edit::Text(
            "owed$d = noted[(64'h42)+:(1)] & noted[(64'h43)+:(1)] &",
            "owed$d = noted[(64'h42)+:(1)] & (noted[(64'h43)+:(1)] | FAULT) &",
            1,
        )],
        scenario: whatever_comes_at_once_only_what_may_go_goes,
        seen: "who reports",
    },
    UnitFault {
        module: "",
        what: "a report is made twice",
        edits: &[Edit::Text("(looked[(64'h113)+:(64)] < txid)", "((looked[(64'h113)+:(64)] < txid) | FAULT)", 1)],
        scenario: whatever_comes_at_once_only_what_may_go_goes,
        seen: "a report falls back",
    },
    UnitFault {
        module: "",
        what: "the newest of a thread goes first",
        edits: &[Edit::Text(
            "(noted[(64'h0)+:(64)] < best$q)",
            "(FAULT ? noted[(64'h0)+:(64)] > best$q : noted[(64'h0)+:(64)] < best$q)",
            1,
        )],
        scenario: whatever_comes_at_once_only_what_may_go_goes,
        seen: "who ",
    },
    UnitFault {
        module: "",
        what: "a command is released without a slot",
        edits: &[Edit::Text("release_valid = slot_any &", "release_valid = (slot_any | FAULT) &", 1)],
        scenario: whatever_comes_at_once_only_what_may_go_goes,
        seen: "released without a slot, or in a drain",
    },
    UnitFault {
        module: "",
        what: "a command is released in a drain",
        edits: &[Edit::Text("& runs;", "& (runs | FAULT);", 1)],
        scenario: whatever_comes_at_once_only_what_may_go_goes,
        seen: "released without a slot, or in a drain",
    },
    UnitFault {
        module: "",
        what: "what is released keeps its place",
        edits: &[Edit::Text("places$leave_valid = 1'b1;", "places$leave_valid = ~FAULT;", 1)],
        scenario: whatever_comes_at_once_only_what_may_go_goes,
        seen: "places in use",
    },
    UnitFault {
        module: "",
        what: "a command goes while the one before it in its thread runs",
        edits: &[Edit::Text(
            "turn$requests = places$waiting & ~places$let_go;",
            "turn$requests = places$waiting & (~places$let_go | {16{FAULT}});",
            1,
        )],
        scenario: whatever_comes_at_once_only_what_may_go_goes,
        seen: "of its thread that has not retired",
    },
    UnitFault {
        module: "",
        what: "the next message replaces one that is not taken",
        edits: &[Edit::Text("due$any & active & ~sending$q", "due$any & active & (~sending$q | FAULT)", 1)],
        scenario: a_link_that_takes_nothing_holds_nobody_up,
        seen: "a message is withdrawn or changes",
    },
    UnitFault {
        module: "",
        what: "a message goes whether it is taken or not",
        edits: &[Edit::Text("if (peer_out_ready) begin", "if (peer_out_ready | FAULT) begin", 1)],
        scenario: whatever_comes_at_once_only_what_may_go_goes,
        seen: "a message is withdrawn or changes",
    },
    UnitFault {
        module: "",
        what: "who asks for more than has come is answered",
        edits: &[Edit::Text(
            "if ((looked[(64'h113)+:(64)] >= message$q[(64'h40)+:(64)]) & has_number$q) begin",
            "if (((looked[(64'h113)+:(64)] >= message$q[(64'h40)+:(64)]) | FAULT) & has_number$q) begin",
            1,
        )],
        scenario: questions_are_asked_again_and_answered,
        seen: "who asks for more than has come waits",
    },
    UnitFault {
        module: "",
        what: "nobody asks again",
        edits: &[Edit::Text(
            "if ((timer$q == last_cycle) & has_number$q & active) begin",
            "if ((timer$q == last_cycle) & has_number$q & active & ~FAULT) begin",
            1,
        )],
        scenario: questions_are_asked_again_and_answered,
        seen: "who waits asks again",
    },
    UnitFault {
        module: "",
        what: "a report is told nobody",
        edits: &[Edit::Each("due$requests", "asking$q", 1)],
        scenario: whatever_comes_at_once_only_what_may_go_goes,
        seen: "was told nobody",
    },
    UnitFault {
        module: "",
        what: "a device without a number speaks",
        edits: &[Edit::Text("if (has_number$q) begin", "if (has_number$q | FAULT) begin", 1)],
        scenario: nothing_is_said_heard_or_let_go_before_the_device_is_numbered,
        seen: "a device without a number speaks",
    },
    UnitFault {
        module: "",
        what: "a device that gets its number does not say how far it has come",
        edits: &[Edit::Text("telling$d = places$waiting;", "telling$d = FAULT ? telling$q : places$waiting;", 1)],
        scenario: nothing_is_said_heard_or_let_go_before_the_device_is_numbered,
        seen: "at once, with a question",
    },
    UnitFault {
        module: "",
        what: "a device that speaks discards",
        edits: &[Edit::Text(
            "(act_action == discards) & ~has_number$q",
            "(act_action == discards) & (~has_number$q | FAULT)",
            1,
        )],
        scenario: whatever_comes_at_once_only_what_may_go_goes,
        seen: "places in use",
    },
    UnitFault {
        module: "",
        what: "what software has released still waits",
        edits: &[Edit::Text("& ~is_forced[32'h0]", "& (~is_forced[32'h0] | FAULT)", 1)],
        scenario: software_sees_what_waits_and_decides_while_the_device_is_silent,
        seen: "software has released it",
    },
    UnitFault {
        module: "",
        what: "a command is taken away before that can be recorded",
        edits: &[Edit::Text(
            "discard_valid = active & discard_ready;",
            "discard_valid = active & (discard_ready | FAULT);",
            1,
        )],
        scenario: software_sees_what_waits_and_decides_while_the_device_is_silent,
        seen: "until that can be recorded",
    },
    UnitFault {
        module: "",
        what: "an unmap that is taken away leaves its entry closing",
        edits: &[Edit::Text("reopen_valid = discard_valid &", "reopen_valid = ~FAULT & discard_valid &", 1)],
        scenario: what_is_forgotten_or_left_behind_is_waited_for_and_dropped,
        seen: "entries that are open again",
    },
    UnitFault {
        module: "",
        what: "what was heard of an entry counts for the next one in its place",
        edits: &[Edit::Each("heard$forget_valid", "1'b0", 1)],
        scenario: what_is_forgotten_or_left_behind_is_waited_for_and_dropped,
        seen: "what was heard of an entry that is gone",
    },
    UnitFault {
        module: "",
        what: "an entry is dropped before its last command",
        edits: &[Edit::Text("drop = orphans & ~places$busy;", "drop = orphans & (~places$busy | {16{FAULT}});", 1)],
        scenario: what_is_forgotten_or_left_behind_is_waited_for_and_dropped,
        seen: "entries that are dropped",
    },
    UnitFault {
        module: "",
        what: "a closed card drops entries",
        edits: &[Edit::Text("if (active) begin", "if (active | FAULT) begin", 1)],
        scenario: what_is_forgotten_or_left_behind_is_waited_for_and_dropped,
        seen: "a closed card drops entries",
    },
];

#[test]
fn planted_faults_are_seen_by_the_unit_s_own_tests() {
    each_is_seen::<MultiDevice>("MultiDevice", FAULTS);
}
