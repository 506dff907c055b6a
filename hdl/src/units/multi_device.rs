//! Synchronisation with other devices.
//!
//! A message says how far a device has come with a (pool, thread): *my synchronisation of transaction t is reached*. It
//! is cumulative (a later t covers an earlier one) and idempotent: it may be doubled, or sent again after a replay.
//! Who waits *asks* from time to time, with a message that says how far it has come itself; who is asked and has
//! come as far answers. So a message may also be lost.

use crate::cells::{AsyncRam, Concat};
use nearpm_interface::geometry::{MAX_DEVICES, UNITS};
use rust_hdl::prelude::*;

/// Cycles between two questions of a synchronisation that waits.
const PATIENCE: u64 = 4096;

/// A message of the peer port, 128 bits, first field lowest.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct Message {
    /// Pool identifier.
    pub pool: Bits<32>,
    /// Thread.
    pub thread: Bits<16>,
    /// Number of the device that speaks; below 8.
    pub device: Bits<8>,
    /// 1: wants an answer.
    pub status: Bits<8>,
    /// Transaction to which the device has come.
    pub txid: Bits<64>,
}

crate::port_record!(Message { pool, thread, device, status, txid });

/// How far a device has come with a (pool, thread).
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct Reached {
    /// Pool identifier.
    pub pool: Bits<32>,
    /// Thread.
    pub thread: Bits<16>,
    /// Transaction; 0 for none.
    pub txid: Bits<64>,
}

crate::port_record!(Reached { pool, thread, txid });

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Phase {
    Idle,
    Learn,
    Look,
    Own,
    Check,
    Verdict,
    Send,
}

/// Serves `Synchronise`.
///
/// Guarantees: `sync_ready` only when every participant but this device has reported a transaction at least as
/// high for the same (pool, thread); in the same cycle when there is no other participant. Bound: none where a device never
/// answers. A device remembers 32 (pool, thread) by the low bits of their exclusive or; of two that share a place the later
/// stays, and the earlier is asked for again. Several devices are not claimed by this version.
#[derive(LogicBlock)]
pub struct MultiDevice {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,
    /// Number of this device: its bit in a participants mask.
    pub device_number: Signal<In, Bits<5>>,
    /// A unit synchronises; stays high until `sync_ready`.
    pub sync_valid: [Signal<In, Bit>; UNITS],
    /// Participants of each unit's transaction; 0 stands for this device alone.
    pub sync_participants: [Signal<In, Bits<32>>; UNITS],
    /// Transaction of each unit.
    pub sync_txid: [Signal<In, Bits<64>>; UNITS],
    /// Pool of each unit.
    pub sync_pool: [Signal<In, Bits<32>>; UNITS],
    /// Thread of each unit.
    pub sync_thread: [Signal<In, Bits<16>>; UNITS],
    /// Every participant has come as far.
    pub sync_ready: [Signal<Out, Bit>; UNITS],
    /// A message to every other device.
    pub peer_out_valid: Signal<Out, Bit>,
    /// The message is taken.
    pub peer_out_ready: Signal<In, Bit>,
    /// The message.
    pub peer_out_data: Signal<Out, Message>,
    /// A message from another device.
    pub peer_in_valid: Signal<In, Bit>,
    /// The message is taken.
    pub peer_in_ready: Signal<Out, Bit>,
    /// The message.
    pub peer_in_data: Signal<In, Message>,
    phase: DFF<Phase>,
    heard: DFF<Message>,
    out: DFF<Message>,
    waiting: DFF<Reached>,
    others: DFF<Bits<32>>,
    unit: DFF<Bits<2>>,
    turn: DFF<Bits<2>>,
    device: DFF<Bits<3>>,
    missing: DFF<Bit>,
    stage: DFF<Bits<2>>,
    entry: DFF<Reached>,
    place_now: DFF<Bits<8>>,
    timer: DFF<Bits<12>>,
    reached: AsyncRam<Reached, 8, 1>,
    place: Concat<3, 5, 8>,
    heard_pool: Signal<Local, Bits<32>>,
    heard_thread: Signal<Local, Bits<16>>,
    heard_device: Signal<Local, Bits<8>>,
    waiting_pool: Signal<Local, Bits<32>>,
    waiting_thread: Signal<Local, Bits<16>>,
    heard_hash: Signal<Local, Bits<5>>,
    own_hash: Signal<Local, Bits<5>>,
    own: Signal<Local, Bits<32>>,
    read: Signal<Local, Bit>,
    same_heard: Signal<Local, Bit>,
    same_own: Signal<Local, Bit>,
    one32: Constant<Bits<32>>,
    one12: Constant<Bits<12>>,
    one3: Constant<Bits<3>>,
    one2: Constant<Bits<2>>,
    three2: Constant<Bits<2>>,
    last: Constant<Bits<3>>,
    patience: Constant<Bits<12>>,
    asks: Constant<Bits<8>>,
    tells: Constant<Bits<8>>,
    speaker: crate::cells::Widen<5, 8>,
}

impl Default for MultiDevice {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            reset: Default::default(),
            device_number: Default::default(),
            sync_valid: Default::default(),
            sync_participants: Default::default(),
            sync_txid: Default::default(),
            sync_pool: Default::default(),
            sync_thread: Default::default(),
            sync_ready: Default::default(),
            peer_out_valid: Default::default(),
            peer_out_ready: Default::default(),
            peer_out_data: Default::default(),
            peer_in_valid: Default::default(),
            peer_in_ready: Default::default(),
            peer_in_data: Default::default(),
            phase: Default::default(),
            heard: Default::default(),
            out: Default::default(),
            waiting: Default::default(),
            others: Default::default(),
            unit: Default::default(),
            turn: Default::default(),
            device: Default::default(),
            missing: Default::default(),
            stage: Default::default(),
            entry: Default::default(),
            place_now: Default::default(),
            timer: Default::default(),
            reached: Default::default(),
            place: Default::default(),
            heard_pool: Default::default(),
            heard_thread: Default::default(),
            heard_device: Default::default(),
            waiting_pool: Default::default(),
            waiting_thread: Default::default(),
            heard_hash: Default::default(),
            own_hash: Default::default(),
            own: Default::default(),
            read: Default::default(),
            same_heard: Default::default(),
            same_own: Default::default(),
            one32: Constant::new(1.into()),
            one12: Constant::new(1.into()),
            one3: Constant::new(1.into()),
            one2: Constant::new(1.into()),
            three2: Constant::new(3.into()),
            last: Constant::new((MAX_DEVICES as u64 - 1).into()),
            patience: Constant::new((PATIENCE - 1).into()),
            asks: Constant::new(1.into()),
            tells: Constant::new(0.into()),
            speaker: Default::default(),
        }
    }
}

impl Logic for MultiDevice {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, phase, heard, out, waiting, others, unit, turn, device, missing, stage, entry, place_now,
            timer
        );
        clock!(self, clock, reached);
        self.own.next = self.one32.val() << self.device_number.val();
        self.speaker.i.next = self.device_number.val();
        self.peer_in_ready.next = self.phase.q.val() == Phase::Idle;
        self.peer_out_valid.next = self.phase.q.val() == Phase::Send;
        self.peer_out_data.next = self.out.q.val();
        for i in 0..UNITS {
            self.sync_ready[i].next =
                self.sync_valid[i].val() & !(self.sync_participants[i].val() & !self.own.val()).any();
        }
        if self.timer.q.val() != self.patience.val() {
            self.timer.d.next = self.timer.q.val() + self.one12.val();
        }

        self.heard_pool.next = self.heard.q.val().pool;
        self.heard_thread.next = self.heard.q.val().thread;
        self.heard_device.next = self.heard.q.val().device;
        self.waiting_pool.next = self.waiting.q.val().pool;
        self.waiting_thread.next = self.waiting.q.val().thread;
        self.heard_hash.next = self.heard_pool.val().get_bits::<5>(0) ^ self.heard_thread.val().get_bits::<5>(0);
        self.own_hash.next = self.waiting_pool.val().get_bits::<5>(0) ^ self.waiting_thread.val().get_bits::<5>(0);
        self.entry.d.next = self.reached.read_data[0].val();
        self.stage.d.next = self.stage.q.val() + self.one2.val();
        self.read.next = self.stage.q.val() == self.three2.val();
        self.same_heard.next = (self.entry.q.val().pool == self.heard.q.val().pool)
            & (self.entry.q.val().thread == self.heard.q.val().thread);
        self.same_own.next = (self.entry.q.val().pool == self.waiting.q.val().pool)
            & (self.entry.q.val().thread == self.waiting.q.val().thread);
        self.place.high.next = self.device.q.val();
        self.place.low.next = self.own_hash.val();
        self.place_now.d.next = self.place.o.val();
        self.reached.read_address[0].next = self.place_now.q.val();
        self.reached.write_address.next = self.place_now.q.val();
        self.reached.write_data.next = self.waiting.q.val();
        self.reached.write_enable.next = false;

        match self.phase.q.val() {
            Phase::Idle => {
                self.heard.d.next = self.peer_in_data.val();
                self.stage.d.next = 0.into();
                self.device.d.next = self.device_number.val().get_bits::<3>(0);
                self.turn.d.next = self.turn.q.val() + self.one2.val();
                for i in 0..UNITS {
                    if self.turn.q.val().index() == i {
                        self.waiting.d.next.pool = self.sync_pool[i].val();
                        self.waiting.d.next.thread = self.sync_thread[i].val();
                        self.waiting.d.next.txid = self.sync_txid[i].val();
                        self.others.d.next = self.sync_participants[i].val() & !self.own.val();
                        self.unit.d.next = self.turn.q.val();
                        if self.sync_valid[i].val() & !self.sync_ready[i].val() {
                            self.phase.d.next = Phase::Own;
                        }
                    }
                }
                if self.peer_in_valid.val() {
                    self.phase.d.next = Phase::Learn;
                }
            }
            // What another device says of itself.
            Phase::Learn => {
                self.place.high.next = self.heard_device.val().get_bits::<3>(0);
                self.place.low.next = self.heard_hash.val();
                self.reached.write_data.next.pool = self.heard.q.val().pool;
                self.reached.write_data.next.thread = self.heard.q.val().thread;
                self.reached.write_data.next.txid = self.heard.q.val().txid;
                if self.read.val() {
                    self.reached.write_enable.next =
                        !self.same_heard.val() | (self.entry.q.val().txid < self.heard.q.val().txid);
                    self.phase.d.next = Phase::Idle;
                    if self.heard.q.val().status == self.asks.val() {
                        self.phase.d.next = Phase::Look;
                    }
                }
            }
            // And what this device can answer.
            Phase::Look => {
                self.place.low.next = self.heard_hash.val();
                self.out.d.next.pool = self.heard.q.val().pool;
                self.out.d.next.thread = self.heard.q.val().thread;
                self.out.d.next.txid = self.entry.q.val().txid;
                self.out.d.next.status = self.tells.val();
                self.out.d.next.device = self.speaker.o.val();
                if self.read.val() {
                    self.phase.d.next = Phase::Idle;
                    if self.same_heard.val() & (self.entry.q.val().txid >= self.heard.q.val().txid) {
                        self.phase.d.next = Phase::Send;
                    }
                }
            }
            Phase::Own => {
                if self.read.val() {
                    self.reached.write_enable.next =
                        !self.same_own.val() | (self.entry.q.val().txid < self.waiting.q.val().txid);
                    self.device.d.next = 0.into();
                    self.missing.d.next = false;
                    self.phase.d.next = Phase::Check;
                }
            }
            Phase::Check => {
                if self.read.val() {
                    self.device.d.next = self.device.q.val() + self.one3.val();
                    self.others.d.next = self.others.q.val() >> 1;
                    if self.others.q.val().get_bit(0)
                        & !(self.same_own.val() & (self.entry.q.val().txid >= self.waiting.q.val().txid))
                    {
                        self.missing.d.next = true;
                    }
                    if self.device.q.val() == self.last.val() {
                        self.phase.d.next = Phase::Verdict;
                    }
                }
            }
            Phase::Verdict => {
                self.out.d.next.pool = self.waiting.q.val().pool;
                self.out.d.next.thread = self.waiting.q.val().thread;
                self.out.d.next.txid = self.waiting.q.val().txid;
                self.out.d.next.status = self.asks.val();
                self.out.d.next.device = self.speaker.o.val();
                self.phase.d.next = Phase::Idle;
                if !self.missing.q.val() {
                    for i in 0..UNITS {
                        if self.unit.q.val().index() == i {
                            self.sync_ready[i].next = true;
                        }
                    }
                } else if self.timer.q.val() == self.patience.val() {
                    self.timer.d.next = 0.into();
                    self.phase.d.next = Phase::Send;
                }
            }
            Phase::Send => {
                if self.peer_out_ready.val() {
                    self.phase.d.next = Phase::Idle;
                }
            }
            _ => {
                self.phase.d.next = Phase::Idle;
            }
        }
        if self.reset.val() {
            self.phase.d.next = Phase::Idle;
            self.timer.d.next = self.patience.val();
        }
    }
}

crate::dut_ports!(MultiDevice {
    clock,
    reset,
    device_number,
    sync_valid,
    sync_participants,
    sync_txid,
    sync_pool,
    sync_thread,
    sync_ready,
    peer_out_valid,
    peer_out_ready,
    peer_out_data,
    peer_in_valid,
    peer_in_ready,
    peer_in_data,
});
