//! The command pages: 64-byte commands from any split of stores.

#![allow(clippy::collapsible_match, reason = "the guard of an arm is not emitted: the Verilog would ignore it")]

use super::page_table::{MergeBytes, PageTable};
use crate::bundles::AxiSlave;
use crate::cells::{AsyncRam, Concat, Crc32cBlock};
use crate::dut::Ports;
use nearpm_interface::seal::RESIDUE;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// Where the port is with the write in hand.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Step {
    Idle,
    Merge,
    Check,
    Pass,
    /// Takes the data of a burst, which is refused.
    Refuse,
    Answer,
    Clear,
}

/// Where the port is with the command before it.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Desk {
    Free,
    Offer,
    Numbering,
    Answer,
}

/// AXI slave of the command BAR.
///
/// Guarantees: a slot becomes a command when all its 64 bytes have arrived, in any split and order,
/// and its checksum holds; else it is dropped and counted. A byte that comes twice before its slot
/// is full begins the slot anew with that beat. Writes are answered in order, when they are merged
/// or their command numbered, refused or dropped; `busy` from the data handshake on. While one
/// command is numbered the next is collected. A read of a page is taken only when no write with its
/// data is in hand here or in HostPort, and answers its status line. Nobody waits for a write that
/// lacks its data. Where writes here and others wait for each other, they take turns, and who came
/// first goes first. A burst is refused with SLVERR: all its beats are taken and no slot sees them,
/// or answered with zeros. Bound: six cycles from the data of a whole command to its offer; a
/// command every eight cycles.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct CommandPort {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: no slot holds anything.
    pub reset: Signal<In, Bit>,
    /// The command BAR: page in address bits 13:12, slot in 11:6. Single beats; a burst is refused.
    pub s: AxiSlave<16, 512, 64, 6>,
    /// Take no new address.
    pub stop: Signal<In, Bit>,
    /// Pulse: zero the counters, and forget what the slots hold, behind the write in hand.
    pub clear: Signal<In, Bit>,
    /// A command whose checksum holds.
    pub cmd_valid: Signal<Out, Bit>,
    /// The decoder takes it.
    pub cmd_ready: Signal<In, Bit>,
    /// Its bytes, byte 0 lowest.
    pub cmd_data: Signal<Out, Bits<512>>,
    /// Its page.
    pub cmd_page: Signal<Out, Bits<2>>,
    /// Pulse: it was numbered, refused or dropped; with `cmd_ready` or later.
    pub cmd_done: Signal<In, Bit>,
    /// A write is in hand: HostPort offers nothing.
    pub busy: Signal<Out, Bit>,
    /// HostPort has an access that could be numbered at once.
    pub host_asks: Signal<In, Bit>,
    /// Pulse: HostPort's access is numbered or refused.
    pub host_takes: Signal<In, Bit>,
    /// HostPort has a write that is not numbered.
    pub host_writes_pending: Signal<In, Bit>,
    /// Order number of the last numbered item.
    pub order: Signal<In, Bits<64>>,
    /// Mapping entries that are latched, a bit each.
    pub latched: Signal<In, Bits<16>>,
    /// Mapping entries with a command that waits, may have to wait, or has waited for other
    /// devices, a bit each.
    pub parked: Signal<In, Bits<16>>,
    /// Stores that memory refused.
    pub stores_lost: Signal<In, Bits<32>>,
    /// Pulse: a full slot was dropped for its checksum.
    pub ev_dropped: Signal<Out, Bit>,
    /// Pulse: a command is accepted.
    pub accepted_valid: Signal<In, Bit>,
    /// Its page.
    pub accepted_page: Signal<In, Bits<2>>,
    /// Pulse: a command is retired.
    pub retired_valid: Signal<In, Bit>,
    /// Its page.
    pub retired_page: Signal<In, Bits<2>>,
    /// Pulse: a command is refused.
    pub refused_valid: Signal<In, Bit>,
    /// Its page.
    pub refused_page: Signal<In, Bits<2>>,
    /// Its tag.
    pub refused_tag: Signal<In, Bits<32>>,
    /// Its status.
    pub refused_status: Signal<In, Bits<8>>,
    /// Pulse: a command is failed.
    pub failed_valid: Signal<In, Bit>,
    /// Its page.
    pub failed_page: Signal<In, Bits<2>>,
    /// Its tag.
    pub failed_tag: Signal<In, Bits<32>>,
    /// Its status.
    pub failed_status: Signal<In, Bits<8>>,
    step: DFF<Step>,
    address: DFF<Bits<16>>,
    data: DFF<Bits<512>>,
    strobes: DFF<Bits<64>>,
    whole: DFF<Bits<512>>,
    id: DFF<Bits<6>>,
    timer: DFF<Bits<2>>,
    has_address: DFF<Bit>,
    /// The address in hand is that of a burst, or the write in `Answer` was one.
    burst: DFF<Bit>,
    is_burst: Signal<Local, Bit>,
    reads_burst: Signal<Local, Bit>,
    awaits_data: Signal<Local, Bit>,
    may_take: Signal<Local, Bit>,
    desk: DFF<Desk>,
    desk_data: DFF<Bits<512>>,
    desk_page: DFF<Bits<2>>,
    desk_id: DFF<Bits<6>>,
    desk_frees: Signal<Local, Bit>,
    hands_over: Signal<Local, Bit>,
    working: Signal<Local, Bit>,
    others: Signal<Local, Bit>,
    turn: DFF<Bit>,
    may_start: Signal<Local, Bit>,
    starts: Signal<Local, Bit>,
    sweep: DFF<Bits<6>>,
    slot: Concat<2, 4, 6>,
    bytes: AsyncRam<Bits<512>, 6, 1>,
    masks: AsyncRam<Bits<64>, 6, 1>,
    old_mask: Signal<Local, Bits<64>>,
    old_bytes: Signal<Local, Bits<512>>,
    mask: Signal<Local, Bits<64>>,
    mask_now: DFF<Bits<64>>,
    merged: MergeBytes,
    in_page: Signal<Local, Bit>,
    full: Signal<Local, Bit>,
    good: Signal<Local, Bit>,
    crc: Crc32cBlock,
    counts: PageTable,
    takes_read: Signal<Local, Bit>,
    reading: DFF<Bit>,
    /// Beats that the read still has to answer, less one.
    read_left: DFF<Bits<8>>,
    read_refused: DFF<Bit>,
    read_id: DFF<Bits<6>>,
    read_line: DFF<Bits<512>>,
    forget: DFF<Bit>,
    forgets: Signal<Local, Bit>,
    #[default(Constant::new(Bits::<64>::mask()))]
    all: Constant<Bits<64>>,
    #[default(Constant::new(0.into()))]
    none: Constant<Bits<64>>,
    #[default(Constant::new(u64::from(RESIDUE).into()))]
    residue: Constant<Bits<32>>,
    #[default(Constant::new(1.into()))]
    one2: Constant<Bits<2>>,
    #[default(Constant::new(3.into()))]
    last_wait: Constant<Bits<2>>,
    #[default(Constant::new(0.into()))]
    zero2: Constant<Bits<2>>,
    #[default(Constant::new(0.into()))]
    zero6: Constant<Bits<6>>,
    #[default(Constant::new(1.into()))]
    one8: Constant<Bits<8>>,
    #[default(Constant::new(2.into()))]
    slave_error: Constant<Bits<2>>,
    #[default(Constant::new(1.into()))]
    incrementing: Constant<Bits<2>>,
    #[default(Constant::new(0.into()))]
    no_line: Constant<Bits<512>>,
    #[default(Constant::new(1.into()))]
    one6: Constant<Bits<6>>,
    #[default(Constant::new(63.into()))]
    last6: Constant<Bits<6>>,
}

impl Logic for CommandPort {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            step,
            address,
            data,
            strobes,
            whole,
            mask_now,
            id,
            timer,
            has_address,
            burst,
            desk,
            desk_data,
            desk_page,
            desk_id,
            turn,
            sweep,
            reading,
            read_left,
            read_refused,
            read_id,
            read_line,
            forget
        );
        clock!(self, clock, bytes, masks, crc, counts);
        self.crc.reset.next = self.reset.val();
        self.counts.reset.next = self.reset.val() | self.clear.val();

        // The slot of the write in hand.
        self.slot.high.next = self.address.q.val().get_bits::<2>(12);
        self.slot.low.next = self.address.q.val().get_bits::<4>(6);
        self.in_page.next =
            !self.address.q.val().get_bits::<2>(10).any() & !self.address.q.val().get_bits::<2>(14).any();
        self.bytes.read_address[0].next = self.slot.o.val();
        self.masks.read_address[0].next = self.slot.o.val();
        self.old_mask.next = self.masks.read_data[0].val();
        self.old_bytes.next = self.bytes.read_data[0].val();
        self.mask.next = self.old_mask.val() | self.strobes.q.val();
        if (self.old_mask.val() & self.strobes.q.val()).any() {
            // A byte comes twice: a new command has begun.
            self.mask.next = self.strobes.q.val();
        }
        self.full.next = self.mask_now.q.val() == self.all.val();
        self.merged.old.next = self.old_bytes.val();
        self.merged.new_bytes.next = self.data.q.val();
        self.merged.strobes.next = self.strobes.q.val();
        self.bytes.write_address.next = self.slot.o.val();
        self.bytes.write_data.next = self.merged.o.val();
        self.bytes.write_enable.next = false;
        self.masks.write_address.next = self.slot.o.val();
        self.masks.write_data.next = self.mask_now.q.val();
        if self.full.val() {
            self.masks.write_data.next = self.none.val();
        }
        self.masks.write_enable.next = false;

        self.crc.valid.next = false;
        self.crc.first.next = true;
        self.crc.block.next = self.whole.q.val();
        self.good.next = self.crc.crc.val() == self.residue.val();
        self.cmd_valid.next = false;
        self.cmd_data.next = self.desk_data.q.val();
        self.cmd_page.next = self.desk_page.q.val();
        self.ev_dropped.next = false;

        // Who goes next, a write here or what waits elsewhere. Elsewhere goes first, but not twice
        // in a row. What only waits for its master to send data keeps nobody waiting.
        self.working.next = ((self.step.q.val() != Step::Idle) & (self.step.q.val() != Step::Refuse))
            | (self.desk.q.val() != Desk::Free);
        self.others.next =
            self.host_asks.val() | (self.s.arvalid.val() & !self.reading.q.val() & !self.host_writes_pending.val());
        self.forgets.next = self.clear.val() | self.forget.q.val();
        self.forget.d.next = self.forgets.val();
        self.may_start.next = (self.turn.q.val() | !self.others.val()) & !self.stop.val() & !self.forgets.val();
        // An address is taken at once: it is the data that makes a write, and takes its turn.
        self.starts.next = self.s.awvalid.val()
            & (self.step.q.val() == Step::Idle)
            & !self.has_address.q.val()
            & !self.stop.val()
            & !self.forgets.val();
        self.is_burst.next = self.s.awlen.val().any() | (self.s.awburst.val() != self.incrementing.val());
        if self.has_address.q.val() {
            self.is_burst.next = self.burst.q.val();
        }
        self.awaits_data.next = self.has_address.q.val() | self.s.awvalid.val();
        self.may_take.next =
            (self.has_address.q.val() | self.starts.val()) & self.may_start.val() & (self.step.q.val() == Step::Idle);
        self.busy.next = self.working.val() | (self.may_take.val() & self.s.wvalid.val());

        self.s.awready.next = false;
        self.s.wready.next = false;
        self.s.bvalid.next = false;
        self.s.bid.next = self.id.q.val();
        self.s.bresp.next = self.zero2.val();

        // The command that was collected before.
        self.desk_frees.next = self.desk.q.val() == Desk::Free;
        self.hands_over.next = false;
        match self.desk.q.val() {
            Desk::Offer => {
                self.cmd_valid.next = true;
                if self.cmd_ready.val() {
                    self.desk.d.next = Desk::Numbering;
                }
                if self.cmd_done.val() {
                    self.desk.d.next = Desk::Answer;
                }
            }
            Desk::Numbering => {
                if self.cmd_done.val() {
                    self.desk.d.next = Desk::Answer;
                }
            }
            Desk::Answer => {
                self.s.bvalid.next = true;
                self.s.bid.next = self.desk_id.q.val();
                if self.s.bready.val() {
                    self.desk_frees.next = true;
                    self.desk.d.next = Desk::Free;
                }
            }
            _ => {}
        }

        match self.step.q.val() {
            Step::Clear => {
                self.masks.write_address.next = self.sweep.q.val();
                self.masks.write_data.next = self.none.val();
                self.masks.write_enable.next = true;
                self.sweep.d.next = self.sweep.q.val() + self.one6.val();
                if self.sweep.q.val() == self.last6.val() {
                    self.step.d.next = Step::Idle;
                }
            }
            Step::Idle => {
                self.s.awready.next = !self.has_address.q.val() & !self.stop.val() & !self.forgets.val();
                if self.starts.val() {
                    self.address.d.next = self.s.awaddr.val();
                    self.id.d.next = self.s.awid.val();
                    self.burst.d.next = self.is_burst.val();
                    self.has_address.d.next = true;
                }
                // Data may come with its address or later, never before.
                self.s.wready.next = self.may_take.val();
                if self.s.wvalid.val() & self.may_take.val() {
                    self.data.d.next = self.s.wdata.val();
                    self.strobes.d.next = self.s.wstrb.val();
                    self.has_address.d.next = false;
                    self.step.d.next = Step::Merge;
                    if self.is_burst.val() {
                        self.step.d.next = Step::Refuse;
                        if self.s.wlast.val() {
                            self.step.d.next = Step::Answer;
                        }
                    }
                }
                if self.forgets.val() {
                    self.forget.d.next = false;
                    self.sweep.d.next = self.zero6.val();
                    self.step.d.next = Step::Clear;
                }
            }
            Step::Merge => {
                self.whole.d.next = self.merged.o.val();
                self.timer.d.next = self.zero2.val();
                self.step.d.next = Step::Answer;
                self.mask_now.d.next = self.mask.val();
                if self.in_page.val() {
                    self.bytes.write_enable.next = true;
                    self.step.d.next = Step::Check;
                }
            }
            Step::Check => {
                self.crc.valid.next = !self.timer.q.val().any();
                self.timer.d.next = self.timer.q.val() + self.one2.val();
                if !self.timer.q.val().any() {
                    self.masks.write_enable.next = true;
                    if !self.full.val() {
                        self.step.d.next = Step::Answer;
                    }
                }
                if self.timer.q.val() == self.last_wait.val() {
                    self.step.d.next = Step::Pass;
                    if self.good.val() & self.desk_frees.val() {
                        self.hands_over.next = true;
                        self.step.d.next = Step::Idle;
                    }
                    if !self.good.val() {
                        self.ev_dropped.next = true;
                        self.step.d.next = Step::Answer;
                    }
                }
            }
            Step::Pass => {
                if self.desk_frees.val() {
                    self.hands_over.next = true;
                    self.step.d.next = Step::Idle;
                }
            }
            Step::Refuse => {
                self.s.wready.next = true;
                if self.s.wvalid.val() & self.s.wlast.val() {
                    self.step.d.next = Step::Answer;
                }
            }
            Step::Answer => {
                // Behind the answer to the command before it.
                if self.desk.q.val() == Desk::Free {
                    self.s.bvalid.next = true;
                    if self.burst.q.val() {
                        self.s.bresp.next = self.slave_error.val();
                    }
                    if self.s.bready.val() {
                        self.step.d.next = Step::Idle;
                    }
                }
            }
            _ => {
                self.step.d.next = Step::Idle;
            }
        }

        if self.hands_over.val() {
            self.desk.d.next = Desk::Offer;
            self.desk_data.d.next = self.whole.q.val();
            self.desk_page.d.next = self.address.q.val().get_bits::<2>(12);
            self.desk_id.d.next = self.id.q.val();
        }

        // Reads answer the status line of their page.
        self.counts.read_page.next = self.s.araddr.val().get_bits::<2>(12);
        self.counts.order.next = self.order.val();
        self.counts.latched.next = self.latched.val();
        self.counts.parked.next = self.parked.val();
        self.counts.stores_lost.next = self.stores_lost.val();
        self.takes_read.next = self.s.arvalid.val()
            & !self.reading.q.val()
            & !self.working.val()
            & !(self.may_take.val() & self.s.wvalid.val())
            & !self.host_writes_pending.val()
            & !self.stop.val();
        self.s.arready.next = self.takes_read.val();
        self.turn.d.next = self.awaits_data.val()
            & self.s.wvalid.val()
            & !self.may_take.val()
            & (self.turn.q.val() | self.host_takes.val() | self.takes_read.val());
        self.s.rvalid.next = self.reading.q.val();
        self.s.rid.next = self.read_id.q.val();
        self.s.rdata.next = self.read_line.q.val();
        self.s.rresp.next = self.zero2.val();
        if self.read_refused.q.val() {
            self.s.rresp.next = self.slave_error.val();
        }
        self.s.rlast.next = !self.read_left.q.val().any();
        self.reads_burst.next = self.s.arlen.val().any() | (self.s.arburst.val() != self.incrementing.val());
        if self.takes_read.val() {
            self.reading.d.next = true;
            self.read_id.d.next = self.s.arid.val();
            self.read_line.d.next = self.counts.line.val();
            self.read_left.d.next = self.s.arlen.val();
            self.read_refused.d.next = self.reads_burst.val();
            if self.reads_burst.val() {
                self.read_line.d.next = self.no_line.val();
            }
        }
        if self.reading.q.val() & self.s.rready.val() {
            self.read_left.d.next = self.read_left.q.val() - self.one8.val();
            if !self.read_left.q.val().any() {
                self.reading.d.next = false;
            }
        }
        self.counts.accepted_valid.next = self.accepted_valid.val();
        self.counts.accepted_page.next = self.accepted_page.val();
        self.counts.retired_valid.next = self.retired_valid.val();
        self.counts.retired_page.next = self.retired_page.val();
        self.counts.refused_valid.next = self.refused_valid.val();
        self.counts.refused_page.next = self.refused_page.val();
        self.counts.refused_tag.next = self.refused_tag.val();
        self.counts.refused_status.next = self.refused_status.val();
        self.counts.failed_valid.next = self.failed_valid.val();
        self.counts.failed_page.next = self.failed_page.val();
        self.counts.failed_tag.next = self.failed_tag.val();
        self.counts.failed_status.next = self.failed_status.val();
        self.counts.dropped_valid.next = self.ev_dropped.val();
        self.counts.dropped_page.next = self.address.q.val().get_bits::<2>(12);
        if self.reset.val() {
            self.step.d.next = Step::Clear;
            self.sweep.d.next = self.zero6.val();
            self.desk.d.next = Desk::Free;
            self.has_address.d.next = false;
            self.forget.d.next = false;
            self.reading.d.next = false;
        }
    }
}
