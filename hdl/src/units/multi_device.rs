//! Synchronisation with other devices: the parked table, and what devices tell each other.
//!
//! A command that may have to wait for other devices goes from its request slot into the table when its turn has come
//! ([decision 10](../../../docs/decisions/0010-waiting-for-other-devices.md)). There it holds nothing. What is first in its
//! (pool, thread) is looked at again and again: it *reports* that this device has come so far, and when every other participant has come as far it is
//! numbered once more. Messages are cumulative and idempotent, and may be lost: who waits asks from time to time.

use super::heard::Heard;
use super::parked_places::ParkedPlaces;
use super::request_slots::Ticket;
use crate::bundles::MapEntry;
use crate::cells::{AsyncRam, Fifo, PriorityPick, RoundRobin, Widen};
use nearpm_interface::peer::{PATIENCE_CYCLES, PEER_ASKS, PEER_TELLS};
use nearpm_interface::registers::parked_action;
use rust_hdl::prelude::*;

/// A message of the peer port, as `nearpm_interface::peer::PeerMessage`: 128 bits, first field lowest.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct Message {
    /// Pool identifier.
    pub pool: Bits<32>,
    /// Thread.
    pub thread: Bits<16>,
    /// Number of the device that speaks.
    pub device: Bits<8>,
    /// `PEER_TELLS` or `PEER_ASKS`.
    pub status: Bits<8>,
    /// Transaction.
    pub txid: Bits<64>,
}

crate::port_record!(Message { pool, thread, device, status, txid });

/// What the table notes of a command beside its bytes.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct Note {
    /// Order number under which it was accepted.
    pub order: Bits<64>,
    /// Page that it came from.
    pub page: Bits<2>,
    /// It waits for every participant.
    pub synchronises: Bit,
    /// It reports, if it synchronises.
    pub ordered: Bit,
    /// It unmaps.
    pub unmaps: Bit,
}

crate::port_record!(Note { order, page, synchronises, ordered, unmaps });

/// What the registers show of a command that waits.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct Brief {
    /// Pool identifier.
    pub pool: Bits<32>,
    /// Thread.
    pub thread: Bits<16>,
    /// Opcode.
    pub opcode: Bits<8>,
    /// Participants.
    pub participants: Bits<8>,
    /// Transaction.
    pub txid: Bits<64>,
    /// Mapping entry.
    pub map: Bits<4>,
}

crate::port_record!(Brief { pool, thread, opcode, participants, txid, map });

/// What is being looked at.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Phase {
    Idle,
    Find,
    Arrived,
    Learn,
    Learnt,
    Gather,
    Collect,
    Read,
    Weigh,
    Judge,
    Let,
    Letting,
    Discard,
}

/// The parked table and the peer port.
///
/// Guarantees: of a (pool, thread) one command is let go at a time, the one that was accepted first; one that synchronises only when every other participant
/// has told of its transaction or a later one, or software has decided. It reports when it is first and everything of its thread before
/// it has retired. The device says and hears nothing before it is numbered. Nothing here waits for the peer port: a message that finds no room is
/// dropped. Bound: a command is looked at 8 cycles after it has come or a message about it was taken, and a cycle for each other command of its
/// thread; with several threads in turn.
#[derive(LogicBlock)]
pub struct MultiDevice {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,
    /// Number of this device: its bit in a participants mask.
    pub device_number: Signal<In, Bits<4>>,
    /// Pulse: software has written that number.
    pub numbered: Signal<In, Bit>,
    /// Pulse: a function-level reset is done. The device is silent until it is numbered again.
    pub clear: Signal<In, Bit>,
    /// Commands are taken; else nothing is said, heard, let go or decided.
    pub window_open: Signal<In, Bit>,
    /// The ports take no new work: nothing is let go.
    pub stop: Signal<In, Bit>,
    /// Power goes, or a boot is halted: the device is silent, and `save_place` is read.
    pub quiesce: Signal<In, Bit>,
    /// Software has numbered the device since the power came or the function was reset.
    pub speaks: Signal<Out, Bit>,

    /// A command is numbered for which a place is kept.
    pub keep_valid: Signal<In, Bit>,
    /// Its mapping entry.
    pub keep_map: Signal<In, Bits<4>>,
    /// It retires without having waited.
    pub give_valid: Signal<In, Bit>,
    /// Its mapping entry.
    pub give_map: Signal<In, Bits<4>>,
    /// It leaves its slot, and waits from the next cycle on.
    pub park_valid: Signal<In, Bit>,
    /// The command as it was posted.
    pub park_raw: Signal<In, Bits<512>>,
    /// Order number under which it was accepted.
    pub park_order: Signal<In, Bits<64>>,
    /// What retirement knows of it.
    pub park_ticket: Signal<In, Ticket>,
    /// Mapping entries with a command that waits, may have to wait, or has waited and not retired, a bit each.
    pub busy: Signal<Out, Bits<16>>,
    /// Mapping entries with a command that waits, a bit each.
    pub waiting: Signal<Out, Bits<16>>,
    /// Some command waits.
    pub any: Signal<Out, Bit>,
    /// Every place is in use or kept.
    pub full: Signal<Out, Bit>,

    /// Some request slot is free.
    pub slot_any: Signal<In, Bit>,
    /// A command waits no more and is to be numbered.
    pub release_valid: Signal<Out, Bit>,
    /// The decoder has taken it.
    pub release_taken: Signal<In, Bit>,
    /// Pulse: it was numbered.
    pub release_ready: Signal<In, Bit>,
    /// The command as it was posted.
    pub release_raw: Signal<Out, Bits<512>>,
    /// Page that it came from.
    pub release_page: Signal<Out, Bits<2>>,
    /// Order number under which it was accepted.
    pub release_order: Signal<Out, Bits<64>>,
    /// A command that has waited is numbered, also one that is replayed.
    pub let_valid: Signal<In, Bit>,
    /// Its mapping entry.
    pub let_map: Signal<In, Bits<4>>,
    /// It retires.
    pub back_valid: Signal<In, Bit>,
    /// Its mapping entry.
    pub back_map: Signal<In, Bits<4>>,
    /// It keeps its slot.
    pub back_failed: Signal<In, Bit>,
    /// A mapping entry closes: what failed of it is let go.
    pub close_valid: Signal<In, Bit>,
    /// The entry.
    pub close_map: Signal<In, Bits<4>>,

    /// Mapping entry that is wanted.
    pub look_map: Signal<Out, Bits<4>>,
    /// It, one cycle later.
    pub looked: Signal<In, MapEntry>,
    /// Pool to look up.
    pub lookup_pool: Signal<Out, Bits<32>>,
    /// Thread to look up.
    pub lookup_thread: Signal<Out, Bits<16>>,
    /// Two cycles later: there is a mapping.
    pub lookup_found: Signal<In, Bit>,
    /// Its index.
    pub lookup_index: Signal<In, Bits<4>>,
    /// This device has come further with a mapping entry.
    pub reach_valid: Signal<Out, Bit>,
    /// The entry.
    pub reach_map: Signal<Out, Bits<4>>,
    /// To this transaction.
    pub reach_txid: Signal<Out, Bits<64>>,
    /// The unmap of a mapping entry was taken away.
    pub reopen_valid: Signal<Out, Bit>,
    /// Mapping entries that a function-level reset left to their commands, a bit each.
    pub orphans: Signal<In, Bits<16>>,
    /// Of these, the ones whose commands are gone.
    pub drop: Signal<Out, Bits<16>>,
    /// A mapping entry is written.
    pub forget_valid: Signal<In, Bit>,
    /// The entry.
    pub forget_map: Signal<In, Bits<4>>,

    /// A command was taken away, with the next cycle in which `discard_ready` is high.
    pub discard_valid: Signal<Out, Bit>,
    /// That can be recorded.
    pub discard_ready: Signal<In, Bit>,
    /// Its page.
    pub discard_page: Signal<Out, Bits<2>>,
    /// Its tag.
    pub discard_tag: Signal<Out, Bits<32>>,
    /// Pulse: `PARKED_ACT` was written.
    pub act_valid: Signal<In, Bit>,
    /// Its place.
    pub act_place: Signal<In, Bits<8>>,
    /// Its action.
    pub act_action: Signal<In, Bits<8>>,
    /// `PARKED_SELECT`.
    pub select: Signal<In, Bits<32>>,
    /// `PARKED`.
    pub parked: Signal<Out, Bits<32>>,
    /// The selected command; 0 if there is none.
    pub shown: Signal<Out, Brief>,
    /// Its mapping entry.
    pub shown_map: Signal<Out, Bits<4>>,
    /// What that entry has reached, one cycle later.
    pub shown_turn: Signal<In, Bits<64>>,
    /// `PARKED_REACHED`.
    pub shown_reached: Signal<Out, Bits<8>>,

    /// Place to read out, while `quiesce` is high; combinational.
    pub save_place: Signal<In, Bits<5>>,
    /// It holds a command.
    pub saved_valid: Signal<Out, Bit>,
    /// The command.
    pub saved_raw: Signal<Out, Bits<512>>,
    /// Order number under which it was accepted.
    pub saved_order: Signal<Out, Bits<64>>,
    /// Page that it came from.
    pub saved_page: Signal<Out, Bits<2>>,

    /// A message to every other device.
    pub peer_out_valid: Signal<Out, Bit>,
    /// The message is taken.
    pub peer_out_ready: Signal<In, Bit>,
    /// The message.
    pub peer_out_data: Signal<Out, Message>,
    /// A message from another device.
    pub peer_in_valid: Signal<In, Bit>,
    /// Always high: what finds no room is dropped, and asked for again.
    pub peer_in_ready: Signal<Out, Bit>,
    /// The message.
    pub peer_in_data: Signal<In, Message>,

    places: ParkedPlaces,
    heard: Heard,
    raw: AsyncRam<Bits<512>, 5, 1>,
    note: AsyncRam<Note, 5, 1>,
    brief: AsyncRam<Brief, 5, 1>,
    inbox: Fifo<Message, 4, 5>,
    pick: PriorityPick<32, 5>,
    doom: PriorityPick<32, 5>,
    due: PriorityPick<16, 4>,
    turn: RoundRobin<16, 4>,
    phase: DFF<Phase>,
    has_number: DFF<Bit>,
    announced: DFF<Bit>,
    /// Entries of which the others are to be told, and entries to ask about.
    telling: DFF<Bits<16>>,
    asking: DFF<Bits<16>>,
    timer: DFF<Bits<12>>,
    sending: DFF<Bit>,
    out: DFF<Message>,
    message: DFF<Message>,
    /// The entry and the place that are looked at.
    map: DFF<Bits<4>>,
    place: DFF<Bits<5>>,
    /// The look is for a message, and not to let go.
    speaking: DFF<Bit>,
    /// Places that are not compared yet, and the oldest until now.
    left: DFF<Bits<32>>,
    has: DFF<Bit>,
    best_any: DFF<Bit>,
    best: DFF<Bits<64>>,
    best_place: DFF<Bits<5>>,
    own: DFF<Bits<16>>,
    others: DFF<Bits<8>>,
    missing: DFF<Bit>,
    owed: DFF<Bit>,
    chosen: DFF<Bit>,
    shown_others: DFF<Bits<8>>,
    shown_own: DFF<Bits<8>>,
    active: Signal<Local, Bit>,
    runs: Signal<Local, Bit>,
    noted: Signal<Local, Note>,
    command: Signal<Local, Bits<512>>,
    txid: Signal<Local, Bits<64>>,
    map_bit: Signal<Local, Bits<16>>,
    act_bit: Signal<Local, Bit>,
    is_forced: Signal<Local, Bits<32>>,
    place_used: Signal<Local, Bits<32>>,
    looked_flags: Signal<Local, Bits<3>>,
    is_behind: Signal<Local, Bits<8>>,
    selected: Signal<Local, Bits<32>>,
    brief_now: Signal<Local, Brief>,
    brief_devices: Signal<Local, Bits<8>>,
    arrival: Signal<Local, Message>,
    arrival_device: Signal<Local, Bits<8>>,
    parked_note: Signal<Local, Note>,
    parked_brief: Signal<Local, Brief>,
    speaker: Widen<4, 8>,
    one16: Constant<Bits<16>>,
    none16: Constant<Bits<16>>,
    one12: Constant<Bits<12>>,
    last_cycle: Constant<Bits<12>>,
    none8: Constant<Bits<8>>,
    none64: Constant<Bits<64>>,
    no_brief: Constant<Brief>,
    no_message: Constant<Message>,
    asks: Constant<Bits<8>>,
    tells: Constant<Bits<8>>,
    releases: Constant<Bits<8>>,
    discards: Constant<Bits<8>>,
}

impl Default for MultiDevice {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            reset: Default::default(),
            device_number: Default::default(),
            numbered: Default::default(),
            clear: Default::default(),
            window_open: Default::default(),
            stop: Default::default(),
            quiesce: Default::default(),
            speaks: Default::default(),
            keep_valid: Default::default(),
            keep_map: Default::default(),
            give_valid: Default::default(),
            give_map: Default::default(),
            park_valid: Default::default(),
            park_raw: Default::default(),
            park_order: Default::default(),
            park_ticket: Default::default(),
            busy: Default::default(),
            waiting: Default::default(),
            any: Default::default(),
            full: Default::default(),
            slot_any: Default::default(),
            release_valid: Default::default(),
            release_taken: Default::default(),
            release_ready: Default::default(),
            release_raw: Default::default(),
            release_page: Default::default(),
            release_order: Default::default(),
            let_valid: Default::default(),
            let_map: Default::default(),
            back_valid: Default::default(),
            back_map: Default::default(),
            back_failed: Default::default(),
            close_valid: Default::default(),
            close_map: Default::default(),
            look_map: Default::default(),
            looked: Default::default(),
            lookup_pool: Default::default(),
            lookup_thread: Default::default(),
            lookup_found: Default::default(),
            lookup_index: Default::default(),
            reach_valid: Default::default(),
            reach_map: Default::default(),
            reach_txid: Default::default(),
            reopen_valid: Default::default(),
            orphans: Default::default(),
            drop: Default::default(),
            forget_valid: Default::default(),
            forget_map: Default::default(),
            discard_valid: Default::default(),
            discard_ready: Default::default(),
            discard_page: Default::default(),
            discard_tag: Default::default(),
            act_valid: Default::default(),
            act_place: Default::default(),
            act_action: Default::default(),
            select: Default::default(),
            parked: Default::default(),
            shown: Default::default(),
            shown_map: Default::default(),
            shown_turn: Default::default(),
            shown_reached: Default::default(),
            save_place: Default::default(),
            saved_valid: Default::default(),
            saved_raw: Default::default(),
            saved_order: Default::default(),
            saved_page: Default::default(),
            peer_out_valid: Default::default(),
            peer_out_ready: Default::default(),
            peer_out_data: Default::default(),
            peer_in_valid: Default::default(),
            peer_in_ready: Default::default(),
            peer_in_data: Default::default(),
            places: Default::default(),
            heard: Default::default(),
            raw: Default::default(),
            note: Default::default(),
            brief: Default::default(),
            inbox: Default::default(),
            pick: Default::default(),
            doom: Default::default(),
            due: Default::default(),
            turn: Default::default(),
            phase: Default::default(),
            has_number: Default::default(),
            announced: Default::default(),
            telling: Default::default(),
            asking: Default::default(),
            timer: Default::default(),
            sending: Default::default(),
            out: Default::default(),
            message: Default::default(),
            map: Default::default(),
            place: Default::default(),
            speaking: Default::default(),
            left: Default::default(),
            has: Default::default(),
            best_any: Default::default(),
            best: Default::default(),
            best_place: Default::default(),
            own: Default::default(),
            others: Default::default(),
            missing: Default::default(),
            owed: Default::default(),
            chosen: Default::default(),
            shown_others: Default::default(),
            shown_own: Default::default(),
            active: Default::default(),
            runs: Default::default(),
            noted: Default::default(),
            command: Default::default(),
            txid: Default::default(),
            map_bit: Default::default(),
            act_bit: Default::default(),
            is_forced: Default::default(),
            place_used: Default::default(),
            looked_flags: Default::default(),
            is_behind: Default::default(),
            selected: Default::default(),
            brief_now: Default::default(),
            brief_devices: Default::default(),
            arrival: Default::default(),
            arrival_device: Default::default(),
            parked_note: Default::default(),
            parked_brief: Default::default(),
            speaker: Default::default(),
            one16: Constant::new(1.into()),
            none16: Constant::new(0.into()),
            one12: Constant::new(1.into()),
            last_cycle: Constant::new((PATIENCE_CYCLES - 1).into()),
            none8: Constant::new(0.into()),
            none64: Constant::new(0.into()),
            no_brief: Constant::new(Brief::default()),
            no_message: Constant::new(Message::default()),
            asks: Constant::new(u64::from(PEER_ASKS).into()),
            tells: Constant::new(u64::from(PEER_TELLS).into()),
            releases: Constant::new(u64::from(parked_action::RELEASE).into()),
            discards: Constant::new(u64::from(parked_action::DISCARD).into()),
        }
    }
}

impl Logic for MultiDevice {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            phase,
            has_number,
            announced,
            telling,
            asking,
            timer,
            sending,
            out,
            message,
            map,
            place,
            speaking,
            left,
            has,
            best_any,
            best,
            best_place,
            own,
            others,
            missing,
            owed,
            chosen,
            shown_others,
            shown_own
        );
        clock!(self, clock, places, heard, raw, note, brief, inbox, turn);
        self.places.reset.next = self.reset.val();
        self.heard.reset.next = self.reset.val();
        self.inbox.reset.next = self.reset.val();
        self.turn.reset.next = self.reset.val();
        self.active.next = self.window_open.val() & !self.quiesce.val();
        self.runs.next = self.active.val() & !self.stop.val();
        self.own.d.next = self.one16.val() << self.device_number.val();
        self.speaker.i.next = self.device_number.val();
        self.map_bit.next = self.one16.val() << self.map.q.val();
        self.arrival_device.next = self.message.q.val().device;

        // Commands come, and go.
        self.places.keep_valid.next = self.keep_valid.val();
        self.places.keep_map.next = self.keep_map.val();
        self.places.give_valid.next = self.give_valid.val();
        self.places.give_map.next = self.give_map.val();
        self.places.put_valid.next = self.park_valid.val();
        self.places.put_map.next = self.park_ticket.val().map;
        self.places.leave_valid.next = false;
        self.places.leave_place.next = self.place.q.val();
        self.places.let_valid.next = self.let_valid.val();
        self.places.let_map.next = self.let_map.val();
        self.places.back_valid.next = self.back_valid.val();
        self.places.back_map.next = self.back_map.val();
        self.places.back_failed.next = self.back_failed.val();
        self.places.close_valid.next = self.close_valid.val();
        self.places.close_map.next = self.close_map.val();
        self.places.close_all.next = self.clear.val();
        self.places.ask_map.next = self.map.q.val();
        self.busy.next = self.places.busy.val();
        self.waiting.next = self.places.waiting.val();
        self.any.next = self.places.waiting.val().any();
        self.full.next = self.places.full.val();
        self.raw.write_enable.next = self.park_valid.val();
        self.raw.write_address.next = self.places.put_place.val();
        self.raw.write_data.next = self.park_raw.val();
        self.parked_note.next.order = self.park_order.val();
        self.parked_note.next.page = self.park_ticket.val().page;
        self.parked_note.next.synchronises = self.park_ticket.val().synchronises;
        self.parked_note.next.ordered = self.park_ticket.val().ordered;
        self.parked_note.next.unmaps = self.park_ticket.val().unmaps;
        self.note.write_enable.next = self.park_valid.val();
        self.note.write_address.next = self.places.put_place.val();
        self.note.write_data.next = self.parked_note.val();
        self.parked_brief.next.pool = self.park_raw.val().get_bits::<32>(32);
        self.parked_brief.next.thread = self.park_raw.val().get_bits::<16>(16);
        self.parked_brief.next.opcode = self.park_raw.val().get_bits::<8>(0);
        self.parked_brief.next.participants = self.park_raw.val().get_bits::<8>(448);
        self.parked_brief.next.txid = self.park_raw.val().get_bits::<64>(64);
        self.parked_brief.next.map = self.park_ticket.val().map;
        self.brief.write_enable.next = self.park_valid.val();
        self.brief.write_address.next = self.places.put_place.val();
        self.brief.write_data.next = self.parked_brief.val();

        // The command that is looked at. While the power goes that is the save's.
        self.raw.read_address[0].next = self.place.q.val();
        self.note.read_address[0].next = self.place.q.val();
        if self.quiesce.val() {
            self.raw.read_address[0].next = self.save_place.val();
            self.note.read_address[0].next = self.save_place.val();
        }
        self.command.next = self.raw.read_data[0].val();
        self.noted.next = self.note.read_data[0].val();
        self.txid.next = self.command.val().get_bits::<64>(64);
        self.place_used.next = self.places.used.val() >> self.save_place.val();
        self.saved_valid.next = self.place_used.val().get_bit(0);
        self.saved_raw.next = self.command.val();
        self.saved_order.next = self.noted.val().order;
        self.saved_page.next = self.noted.val().page;
        self.release_raw.next = self.command.val();
        self.release_page.next = self.noted.val().page;
        self.release_order.next = self.noted.val().order;
        self.discard_page.next = self.noted.val().page;
        self.discard_tag.next = self.command.val().get_bits::<32>(416);
        self.is_forced.next = self.places.forced.val() >> self.place.q.val();
        self.release_valid.next = false;
        self.discard_valid.next = false;
        self.reopen_valid.next = false;
        self.look_map.next = self.map.q.val();
        self.looked_flags.next = self.looked.val().flags;
        self.reach_valid.next = false;
        self.reach_map.next = self.map.q.val();
        self.reach_txid.next = self.txid.val();
        self.heard.look_map.next = self.map.q.val();
        self.heard.look_txid.next = self.txid.val();
        self.heard.tell_valid.next = false;
        self.heard.tell_map.next = self.map.q.val();
        self.heard.tell_device.next = self.arrival_device.val().get_bits::<3>(0);
        self.heard.tell_txid.next = self.message.q.val().txid;
        self.heard.forget_valid.next = self.forget_valid.val();
        self.heard.forget_map.next = self.forget_map.val();
        // An entry that a function-level reset left goes with its last command.
        self.drop.next = self.none16.val();
        if self.active.val() {
            self.drop.next = self.orphans.val() & !self.places.busy.val();
        }

        // What software asks and decides.
        self.parked.next = self.places.used.val();
        self.act_bit.next = self.act_valid.val() & self.active.val() & !self.act_place.val().get_bits::<3>(5).any();
        self.places.act_place.next = self.act_place.val().get_bits::<5>(0);
        self.places.force_valid.next = self.act_bit.val() & (self.act_action.val() == self.releases.val());
        self.places.doom_valid.next =
            self.act_bit.val() & (self.act_action.val() == self.discards.val()) & !self.has_number.q.val();
        self.selected.next = self.places.used.val() >> self.select.val().get_bits::<5>(0);
        self.chosen.d.next = self.selected.val().get_bit(0) & !self.select.val().get_bits::<27>(5).any();
        self.brief.read_address[0].next = self.select.val().get_bits::<5>(0);
        self.brief_now.next = self.brief.read_data[0].val();
        self.brief_devices.next = self.brief_now.val().participants;
        self.shown_map.next = self.brief_now.val().map;
        self.heard.show_map.next = self.brief_now.val().map;
        self.heard.show_txid.next = self.brief_now.val().txid;
        self.shown_others.d.next = self.brief_devices.val() & !self.own.q.val().get_bits::<8>(0);
        self.shown_own.d.next = self.brief_devices.val() & self.own.q.val().get_bits::<8>(0);
        self.shown.next = self.no_brief.val();
        self.shown_reached.next = self.none8.val();
        if self.chosen.q.val() {
            self.shown.next = self.brief_now.val();
            self.shown_reached.next = self.shown_others.q.val() & !self.heard.shown.val();
            if self.shown_turn.val() >= self.brief_now.val().txid {
                self.shown_reached.next =
                    (self.shown_others.q.val() & !self.heard.shown.val()) | self.shown_own.q.val();
            }
        }

        // Messages come. What finds no room is asked for again, so that no device waits for another's port.
        self.peer_in_ready.next = true;
        self.inbox.write.next = self.peer_in_valid.val();
        self.inbox.data_in.next = self.peer_in_data.val();
        self.inbox.read.next = false;
        self.arrival.next = self.inbox.data_out.val();
        self.lookup_pool.next = self.arrival.val().pool;
        self.lookup_thread.next = self.arrival.val().thread;
        self.is_behind.next = self.heard.behind.val() >> self.arrival_device.val().get_bits::<3>(0);

        // Messages go.
        self.speaks.next = self.has_number.q.val();
        self.peer_out_valid.next = self.sending.q.val();
        self.peer_out_data.next = self.out.q.val();
        if self.peer_out_ready.val() {
            self.sending.d.next = false;
        }

        // Whose turn is it?
        self.pick.requests.next = self.left.q.val();
        self.doom.requests.next = self.places.doomed.val();
        self.due.requests.next = self.telling.q.val() | self.asking.q.val();
        self.turn.requests.next = self.places.waiting.val() & !self.places.let_go.val();
        self.turn.take.next = false;
        self.has.d.next = false;

        // Who waits asks.
        self.timer.d.next = self.timer.q.val() + self.one12.val();
        if (self.timer.q.val() == self.last_cycle.val()) & self.has_number.q.val() & self.active.val() {
            self.asking.d.next = self.asking.q.val() | self.places.waiting.val();
        }
        if !self.places.waiting.val().any() {
            self.timer.d.next = 0.into();
        }
        if self.has_number.q.val() & self.active.val() & !self.announced.q.val() {
            self.announced.d.next = true;
            self.timer.d.next = 0.into();
            self.telling.d.next = self.places.waiting.val();
            self.asking.d.next = self.places.waiting.val();
        }

        match self.phase.q.val() {
            Phase::Idle => {
                if !self.inbox.empty.val() {
                    self.phase.d.next = Phase::Find;
                } else if self.doom.any.val() & self.active.val() {
                    self.place.d.next = self.doom.index.val();
                    self.phase.d.next = Phase::Discard;
                } else if self.due.any.val() & self.active.val() & !self.sending.q.val() {
                    self.map.d.next = self.due.index.val();
                    self.speaking.d.next = true;
                    self.phase.d.next = Phase::Gather;
                } else if self.turn.any.val() & self.runs.val() {
                    self.turn.take.next = true;
                    self.map.d.next = self.turn.index.val();
                    self.speaking.d.next = false;
                    self.phase.d.next = Phase::Gather;
                }
            }

            // A message: is its (pool, thread) mapped here?
            Phase::Find => {
                self.phase.d.next = Phase::Arrived;
            }
            Phase::Arrived => {
                self.inbox.read.next = true;
                self.message.d.next = self.arrival.val();
                self.map.d.next = self.lookup_index.val();
                self.phase.d.next = Phase::Idle;
                if self.lookup_found.val() & self.has_number.q.val() & self.active.val() {
                    self.phase.d.next = Phase::Learn;
                }
            }
            Phase::Learn => {
                self.heard.look_txid.next = self.message.q.val().txid;
                self.phase.d.next = Phase::Learnt;
            }
            Phase::Learnt => {
                self.phase.d.next = Phase::Idle;
                if self.message.q.val().status == self.asks.val() {
                    if (self.looked.val().reached >= self.message.q.val().txid) & self.has_number.q.val() {
                        self.telling.d.next = self.telling.q.val() | self.map_bit.val();
                    }
                } else {
                    self.heard.tell_valid.next =
                        self.is_behind.val().get_bit(0) & !self.arrival_device.val().get_bits::<5>(3).any();
                }
            }

            // The command of a mapping entry that was accepted first.
            Phase::Gather => {
                self.left.d.next = self.places.of_map.val();
                self.best_any.d.next = false;
                self.phase.d.next = Phase::Collect;
            }
            Phase::Collect => {
                self.place.d.next = self.pick.index.val();
                self.has.d.next = self.pick.any.val();
                self.left.d.next = self.left.q.val() & !self.pick.grant.val();
                if self.has.q.val() & (!self.best_any.q.val() | (self.noted.val().order < self.best.q.val())) {
                    self.best.d.next = self.noted.val().order;
                    self.best_place.d.next = self.place.q.val();
                    self.best_any.d.next = true;
                }
                if !self.pick.any.val() & !self.has.q.val() {
                    self.place.d.next = self.best_place.q.val();
                    self.phase.d.next = Phase::Read;
                }
            }
            Phase::Read => {
                self.others.d.next = self.command.val().get_bits::<8>(448) & !self.own.q.val().get_bits::<8>(0);
                self.phase.d.next = Phase::Weigh;
            }
            Phase::Weigh => {
                self.missing.d.next = self.noted.val().synchronises
                    & !self.is_forced.val().get_bit(0)
                    & (self.others.q.val() & self.heard.behind.val()).any();
                self.owed.d.next = self.noted.val().synchronises
                    & self.noted.val().ordered
                    & self.others.q.val().any()
                    & (self.looked.val().reached < self.txid.val());
                self.phase.d.next = Phase::Judge;
            }
            Phase::Judge => {
                self.phase.d.next = Phase::Idle;
                if self.speaking.q.val() {
                    self.out.d.next.pool = self.looked.val().pool;
                    self.out.d.next.thread = self.looked.val().thread;
                    self.out.d.next.device = self.speaker.o.val();
                    self.out.d.next.status = self.tells.val();
                    self.out.d.next.txid = self.looked.val().reached;
                    if (self.telling.q.val() & self.map_bit.val()).any() {
                        self.telling.d.next = self.telling.q.val() & !self.map_bit.val();
                        self.sending.d.next =
                            self.looked_flags.val().get_bit(0) & (self.looked.val().reached != self.none64.val());
                    } else {
                        self.out.d.next.status = self.asks.val();
                        self.out.d.next.txid = self.txid.val();
                        self.asking.d.next = self.asking.q.val() & !self.map_bit.val();
                        self.sending.d.next = self.best_any.q.val() & self.noted.val().synchronises;
                    }
                } else if self.best_any.q.val() & self.runs.val() {
                    if self.owed.q.val() {
                        self.reach_valid.next = true;
                        if self.has_number.q.val() {
                            self.telling.d.next = self.telling.q.val() | self.map_bit.val();
                        }
                    }
                    if !self.missing.q.val() {
                        self.phase.d.next = Phase::Let;
                    }
                }
            }

            // Only while a slot is free, so that the command port is not held up for it.
            Phase::Let => {
                self.release_valid.next = self.slot_any.val() & self.runs.val();
                if !self.release_valid.val() {
                    self.phase.d.next = Phase::Idle;
                }
                if self.release_taken.val() {
                    self.phase.d.next = Phase::Letting;
                }
            }
            // It is in its slot before it has left the table.
            Phase::Letting => {
                if self.release_ready.val() {
                    self.places.leave_valid.next = true;
                    self.phase.d.next = Phase::Idle;
                }
            }
            Phase::Discard => {
                self.discard_valid.next = self.active.val() & self.discard_ready.val();
                self.reopen_valid.next = self.discard_valid.val() & self.noted.val().unmaps;
                self.places.leave_valid.next = self.discard_valid.val();
                if self.discard_valid.val() | !self.active.val() {
                    self.phase.d.next = Phase::Idle;
                }
            }
            _ => {
                self.phase.d.next = Phase::Idle;
            }
        }

        if self.numbered.val() {
            self.has_number.d.next = true;
            self.announced.d.next = false;
        }
        if self.reset.val() | self.clear.val() | self.quiesce.val() {
            self.has_number.d.next = false;
            self.announced.d.next = false;
            self.telling.d.next = self.none16.val();
            self.asking.d.next = self.none16.val();
            self.sending.d.next = false;
        }
        if self.reset.val() {
            self.phase.d.next = Phase::Idle;
            self.timer.d.next = 0.into();
        }
    }
}

crate::dut_ports!(MultiDevice {
    clock,
    reset,
    device_number,
    numbered,
    clear,
    window_open,
    stop,
    quiesce,
    speaks,
    keep_valid,
    keep_map,
    give_valid,
    give_map,
    park_valid,
    park_raw,
    park_order,
    park_ticket,
    busy,
    waiting,
    any,
    full,
    slot_any,
    release_valid,
    release_taken,
    release_ready,
    release_raw,
    release_page,
    release_order,
    let_valid,
    let_map,
    back_valid,
    back_map,
    back_failed,
    close_valid,
    close_map,
    look_map,
    looked,
    lookup_pool,
    lookup_thread,
    lookup_found,
    lookup_index,
    reach_valid,
    reach_map,
    reach_txid,
    reopen_valid,
    orphans,
    drop,
    forget_valid,
    forget_map,
    discard_valid,
    discard_ready,
    discard_page,
    discard_tag,
    act_valid,
    act_place,
    act_action,
    select,
    parked,
    shown,
    shown_map,
    shown_turn,
    shown_reached,
    save_place,
    saved_valid,
    saved_raw,
    saved_order,
    saved_page,
    peer_out_valid,
    peer_out_ready,
    peer_out_data,
    peer_in_valid,
    peer_in_ready,
    peer_in_data,
});
