//! Synchronisation with other devices: the parked table, and what devices tell each other.
//!
//! A command that may have to wait for other devices goes from its request slot into the table when
//! its turn has come ([decision 10](../../../../docs/decisions/0010-waiting-for-other-devices.md)).
//! There it holds nothing. What is first in its (pool, thread) is looked at again and again:
//! it *reports* that this device has come so far, and when every other participant has come as far
//! it is numbered once more. Messages are cumulative and idempotent, and may be lost: who waits
//! asks from time to time.

mod kernel;
mod records;

pub use records::{Brief, Message, Note};

use super::heard::Heard;
use super::parked_places::ParkedPlaces;
use super::request_slots::Ticket;
use crate::bundles::MapEntry;
use crate::cells::{AsyncRam, Fifo, PriorityPick, RoundRobin, Widen};
use crate::dut::Ports;
use crate::sizes::Sizes;
use nearpm_interface::peer::{PATIENCE_CYCLES, PEER_ASKS, PEER_TELLS};
use nearpm_interface::registers::parked_action;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

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
/// Guarantees: of a (pool, thread) one command is let go at a time, the one that was accepted
/// first; one that synchronises only when every other participant has told of its transaction or a
/// later one, or software has decided. It reports when it is first and everything of its thread
/// before it has retired. The device says and hears nothing before it is numbered. Nothing here
/// waits for the peer port: a message that finds no room is dropped. Bound: a command is looked at
/// 8 cycles after it has come or a message about it was taken, and a cycle for each other command
/// of its thread; with several threads in turn.
#[derive(SmartDefault, LogicBlock, Ports)]
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
    /// Mapping entries with a command that waits, may have to wait, or has waited and not retired,
    /// a bit each.
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
    #[default(Constant::new(1.into()))]
    one16: Constant<Bits<16>>,
    #[default(Constant::new(0.into()))]
    none16: Constant<Bits<16>>,
    #[default(Constant::new(1.into()))]
    one12: Constant<Bits<12>>,
    #[default(Constant::new((PATIENCE_CYCLES - 1).into()))]
    last_cycle: Constant<Bits<12>>,
    #[default(Constant::new(0.into()))]
    none8: Constant<Bits<8>>,
    #[default(Constant::new(0.into()))]
    none64: Constant<Bits<64>>,
    #[default(Constant::new(Brief::default()))]
    no_brief: Constant<Brief>,
    #[default(Constant::new(Message::default()))]
    no_message: Constant<Message>,
    #[default(Constant::new(u64::from(PEER_ASKS).into()))]
    asks: Constant<Bits<8>>,
    #[default(Constant::new(u64::from(PEER_TELLS).into()))]
    tells: Constant<Bits<8>>,
    #[default(Constant::new(u64::from(parked_action::RELEASE).into()))]
    releases: Constant<Bits<8>>,
    #[default(Constant::new(u64::from(parked_action::DISCARD).into()))]
    discards: Constant<Bits<8>>,
}

impl MultiDevice {
    /// With as many places and mapping entries.
    pub fn new(sizes: &Sizes) -> Self {
        Self {
            places: ParkedPlaces::new(sizes),
            heard: Heard::new(sizes),
            raw: AsyncRam::of_depth(sizes.parked_commands),
            note: AsyncRam::of_depth(sizes.parked_commands),
            brief: AsyncRam::of_depth(sizes.parked_commands),
            ..Self::default()
        }
    }
}
