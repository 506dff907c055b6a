//! Accesses to the card's ports.

use crate::bundles::{AxiLiteMaster, AxiMaster};
use crate::cells::{Concat, Fifo, Reorder};
use crate::dut::Ports;
use nearpm_interface::geometry::{COMMAND_BAR, LINE, MSIX_BAR, PM_BAR, REGISTER_BAR};
use nearpm_interface::registers::TLPS_POISONED;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Phase {
    /// What is under way, if anything is, is at a wide port.
    Wide,
    Word,
    WordAsk,
    WordAnswer,
    Done,
}

/// An address on its way to a wide port.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Address {
    line: Bits<34>,
    /// The identifier of a read is the place of its answer.
    id: Bits<6>,
}

/// What is written at a wide port.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Payload {
    data: Bits<512>,
    strobes: Bits<64>,
}

/// What a line has read.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Answer {
    data: Bits<512>,
    refused: Bit,
}

/// Performs accesses to lines of BARs: at the PM window and the command pages in one beat, at the
/// registers Dword after Dword, at the MSI-X table at once.
///
/// Guarantees: accesses overlap where they are of one direction and of one wide port; writes have
/// one identifier, so that AXI keeps their order. Another direction, another port, and each access
/// to registers or table wait until the port has answered all that was begun. What was taken is
/// performed. Reads are answered in the order in which they were taken, in whatever order their
/// lines come; a refused one says `error`, and what becomes of a write nobody is told. Bound: at
/// most 2^`K` accesses are under way, and at most 2^`K` reads taken and not given back. An access
/// is at its port in the next cycle, what it reads is here in the cycle after the port's answer; a
/// register takes 17 cycles and three for each Dword. Parameters: `K` from 1 to 6, `C` = `K` + 1.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct LineAccess<const K: usize, const C: usize> {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,
    /// An access is wanted. May be withdrawn.
    pub valid: Signal<In, Bit>,
    /// It is taken.
    pub ready: Signal<Out, Bit>,
    /// It writes.
    pub write: Signal<In, Bit>,
    /// Its BAR, one of those that the card has.
    pub bar: Signal<In, Bits<3>>,
    /// Its line in the BAR.
    pub line: Signal<In, Bits<34>>,
    /// What to write.
    pub data: Signal<In, Bits<512>>,
    /// Bytes to write.
    pub strobes: Signal<In, Bits<64>>,
    /// Dwords to read.
    pub lanes: Signal<In, Bits<16>>,
    /// The oldest read is answered.
    pub answered: Signal<Out, Bit>,
    /// What was read, while `answered`.
    pub read: Signal<Out, Bits<512>>,
    /// The port has refused it, while `answered`.
    pub error: Signal<Out, Bit>,
    /// Its answer is taken; only while `answered`.
    pub take: Signal<In, Bit>,
    /// Nothing is under way, and no answer is left.
    pub idle: Signal<Out, Bit>,
    /// The PM window.
    pub host: AxiMaster<40, 512, 64, 6>,
    /// The command pages.
    pub cmd: AxiMaster<16, 512, 64, 6>,
    /// The registers.
    pub ctrl: AxiLiteMaster<12, 32, 4>,
    /// What `TLPS_POISONED` says: read in place of what stands there.
    pub poisoned: Signal<In, Bits<32>>,
    /// Pulse: write a line of the MSI-X table.
    pub table_write: Signal<Out, Bit>,
    /// A line of the MSI-X table.
    pub table_read: Signal<In, Bits<512>>,

    phase: DFF<Phase>,
    /// Accesses that were taken and have not ended, all of them of this direction and port.
    open: DFF<Bits<C>>,
    write_now: DFF<Bit>,
    bar_now: DFF<Bits<3>>,
    /// Of a wide port: what it has not taken yet.
    addresses: Fifo<Address, K, C>,
    payloads: Fifo<Payload, K, C>,
    answers: Reorder<Answer, K>,
    /// Registers: what is left to write, or has been read, turned so that the next Dword is lowest.
    words: DFF<Bits<512>>,
    strobes_left: DFF<Bits<64>>,
    lanes_left: DFF<Bits<16>>,
    word: DFF<Bits<4>>,
    word_line: DFF<Bits<6>>,
    place: DFF<Bits<6>>,
    refused: DFF<Bit>,
    address_done: DFF<Bit>,
    data_done: DFF<Bit>,
    is_wide: Signal<Local, Bit>,
    is_alike: Signal<Local, Bit>,
    may_begin: Signal<Local, Bit>,
    begins: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    at_host: Signal<Local, Bit>,
    at_cmd: Signal<Local, Bit>,
    has_address: Signal<Local, Bit>,
    has_payload: Signal<Local, Bit>,
    takes_address: Signal<Local, Bit>,
    takes_payload: Signal<Local, Bit>,
    address: Signal<Local, Address>,
    payload: Signal<Local, Payload>,
    answer: Signal<Local, Answer>,
    wide_b: Signal<Local, Bit>,
    wide_r: Signal<Local, Bit>,
    byte_address: Concat<34, 6, 40>,
    word_place: Concat<6, 4, 10>,
    word_address: Concat<10, 2, 12>,
    next_words: Concat<32, 480, 512>,
    next_word: Signal<Local, Bits<4>>,
    #[default(Constant::new((PM_BAR as u64).into()))]
    pm_bar: Constant<Bits<3>>,
    #[default(Constant::new((COMMAND_BAR as u64).into()))]
    command_bar: Constant<Bits<3>>,
    #[default(Constant::new((REGISTER_BAR as u64).into()))]
    register_bar: Constant<Bits<3>>,
    /// The register that the bridge answers, in words.
    #[default(Constant::new(u64::from(TLPS_POISONED / 4).into()))]
    poisoned_place: Constant<Bits<10>>,
    #[default(Constant::new((MSIX_BAR as u64).into()))]
    msix_bar: Constant<Bits<3>>,
    #[default(Constant::new(u64::from(LINE.trailing_zeros()).into()))]
    line_size: Constant<Bits<3>>,
    #[default(Constant::new(1.into()))]
    incrementing: Constant<Bits<2>>,
    #[default(Constant::new(0.into()))]
    okay: Constant<Bits<2>>,
    #[default(Constant::new(0.into()))]
    zero2: Constant<Bits<2>>,
    #[default(Constant::new(0.into()))]
    zero6: Constant<Bits<6>>,
    #[default(Constant::new(0.into()))]
    zero8: Constant<Bits<8>>,
    #[default(Constant::new(0.into()))]
    zero4: Constant<Bits<4>>,
    #[default(Constant::new(1.into()))]
    one4: Constant<Bits<4>>,
    #[default(Constant::new(15.into()))]
    last4: Constant<Bits<4>>,
    #[default(Constant::new(4.into()))]
    four: Constant<Bits<64>>,
    #[default(Constant::new(1.into()))]
    one: Constant<Bits<16>>,
    #[default(Constant::new(0.into()))]
    none_open: Constant<Bits<C>>,
    #[default(Constant::new(1.into()))]
    one_open: Constant<Bits<C>>,
    #[default(most_open::<K, C>())]
    most_open: Constant<Bits<C>>,
}

/// As many as K bits number; C bits count them.
fn most_open<const K: usize, const C: usize>() -> Constant<Bits<C>> {
    const { assert!(K >= 1 && K <= 6 && C == K + 1) };
    Constant::new((1u64 << K).into())
}

impl<const K: usize, const C: usize> Logic for LineAccess<K, C> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            phase,
            open,
            write_now,
            bar_now,
            words,
            strobes_left,
            lanes_left,
            word,
            word_line,
            place,
            refused,
            address_done,
            data_done
        );
        clock!(self, clock, addresses, payloads, answers);
        self.addresses.reset.next = self.reset.val();
        self.payloads.reset.next = self.reset.val();
        self.answers.reset.next = self.reset.val();

        // Beside what is under way only what is like it; beside nothing, anything.
        self.is_wide.next = (self.bar.val() == self.pm_bar.val()) | (self.bar.val() == self.command_bar.val());
        self.is_alike.next = self.is_wide.val()
            & (self.bar.val() == self.bar_now.q.val())
            & (self.write.val() == self.write_now.q.val())
            & (self.open.q.val() != self.most_open.val());
        self.may_begin.next = ((self.open.q.val() == self.none_open.val()) | self.is_alike.val())
            & (self.write.val() | !self.answers.full.val());
        self.begins.next = self.valid.val() & self.may_begin.val();
        self.ready.next = self.may_begin.val();
        if self.begins.val() {
            self.write_now.d.next = self.write.val();
            self.bar_now.d.next = self.bar.val();
        }
        self.answers.ask.next = self.begins.val() & !self.write.val();
        self.addresses.write.next = self.begins.val() & self.is_wide.val();
        self.addresses.data_in.next.line = self.line.val();
        self.addresses.data_in.next.id = self.answers.place.val();
        self.payloads.write.next = self.begins.val() & self.is_wide.val() & self.write.val();
        self.payloads.data_in.next.data = self.data.val();
        self.payloads.data_in.next.strobes = self.strobes.val();

        // The wide ports.
        self.at_host.next = self.bar_now.q.val() == self.pm_bar.val();
        self.at_cmd.next = self.bar_now.q.val() == self.command_bar.val();
        self.has_address.next = !self.addresses.empty.val();
        self.has_payload.next = !self.payloads.empty.val();
        self.address.next = self.addresses.data_out.val();
        self.payload.next = self.payloads.data_out.val();
        self.byte_address.high.next = self.address.val().line;
        self.byte_address.low.next = self.zero6.val();

        self.host.awid.next = self.zero6.val();
        self.host.awaddr.next = self.byte_address.o.val();
        self.host.awlen.next = self.zero8.val();
        self.host.awsize.next = self.line_size.val();
        self.host.awburst.next = self.incrementing.val();
        self.host.awvalid.next = self.has_address.val() & self.write_now.q.val() & self.at_host.val();
        self.host.wdata.next = self.payload.val().data;
        self.host.wstrb.next = self.payload.val().strobes;
        self.host.wlast.next = true;
        self.host.wvalid.next = self.has_payload.val() & self.at_host.val();
        self.host.bready.next = true;
        self.host.arid.next = self.address.val().id;
        self.host.araddr.next = self.byte_address.o.val();
        self.host.arlen.next = self.zero8.val();
        self.host.arsize.next = self.line_size.val();
        self.host.arburst.next = self.incrementing.val();
        self.host.arvalid.next = self.has_address.val() & !self.write_now.q.val() & self.at_host.val();
        self.host.rready.next = true;

        self.cmd.awid.next = self.zero6.val();
        self.cmd.awaddr.next = self.byte_address.o.val().get_bits::<16>(0);
        self.cmd.awlen.next = self.zero8.val();
        self.cmd.awsize.next = self.line_size.val();
        self.cmd.awburst.next = self.incrementing.val();
        self.cmd.awvalid.next = self.has_address.val() & self.write_now.q.val() & self.at_cmd.val();
        self.cmd.wdata.next = self.payload.val().data;
        self.cmd.wstrb.next = self.payload.val().strobes;
        self.cmd.wlast.next = true;
        self.cmd.wvalid.next = self.has_payload.val() & self.at_cmd.val();
        self.cmd.bready.next = true;
        self.cmd.arid.next = self.address.val().id;
        self.cmd.araddr.next = self.byte_address.o.val().get_bits::<16>(0);
        self.cmd.arlen.next = self.zero8.val();
        self.cmd.arsize.next = self.line_size.val();
        self.cmd.arburst.next = self.incrementing.val();
        self.cmd.arvalid.next = self.has_address.val() & !self.write_now.q.val() & self.at_cmd.val();
        self.cmd.rready.next = true;

        self.takes_address.next =
            (self.write_now.q.val() & self.host.awready.val()) | (!self.write_now.q.val() & self.host.arready.val());
        self.takes_payload.next = self.host.wready.val();
        if self.at_cmd.val() {
            self.takes_address.next =
                (self.write_now.q.val() & self.cmd.awready.val()) | (!self.write_now.q.val() & self.cmd.arready.val());
            self.takes_payload.next = self.cmd.wready.val();
        }
        self.addresses.read.next = self.takes_address.val();
        self.payloads.read.next = self.takes_payload.val();

        // What ends. Answers come from one port at a time.
        self.wide_b.next = self.host.bvalid.val() | self.cmd.bvalid.val();
        self.wide_r.next = self.host.rvalid.val() | self.cmd.rvalid.val();
        self.ends.next = self.wide_b.val() | self.wide_r.val() | (self.phase.q.val() == Phase::Done);
        if self.begins.val() & !self.ends.val() {
            self.open.d.next = self.open.q.val() + self.one_open.val();
        }
        if !self.begins.val() & self.ends.val() {
            self.open.d.next = self.open.q.val() - self.one_open.val();
        }
        self.answers.come.next = self.wide_r.val() | ((self.phase.q.val() == Phase::Done) & !self.write_now.q.val());
        self.answers.come_place.next = self.place.q.val();
        self.answers.come_data.next.data = self.words.q.val();
        self.answers.come_data.next.refused = self.refused.q.val();
        if self.at_host.val() {
            self.answers.come_place.next = self.host.rid.val();
            self.answers.come_data.next.data = self.host.rdata.val();
            self.answers.come_data.next.refused = self.host.rresp.val() != self.okay.val();
        }
        if self.at_cmd.val() {
            self.answers.come_place.next = self.cmd.rid.val();
            self.answers.come_data.next.data = self.cmd.rdata.val();
            self.answers.come_data.next.refused = self.cmd.rresp.val() != self.okay.val();
        }
        self.answer.next = self.answers.data.val();
        self.answered.next = self.answers.valid.val();
        self.read.next = self.answer.val().data;
        self.error.next = self.answer.val().refused;
        self.answers.take.next = self.take.val();
        self.idle.next = (self.open.q.val() == self.none_open.val()) & self.answers.empty.val();

        // The registers.
        self.word_place.high.next = self.word_line.q.val();
        self.word_place.low.next = self.word.q.val();
        self.word_address.high.next = self.word_place.o.val();
        self.word_address.low.next = self.zero2.val();
        self.ctrl.awaddr.next = self.word_address.o.val();
        self.ctrl.awvalid.next =
            (self.phase.q.val() == Phase::WordAsk) & self.write_now.q.val() & !self.address_done.q.val();
        self.ctrl.wdata.next = self.words.q.val().get_bits::<32>(0);
        self.ctrl.wstrb.next = self.strobes_left.q.val().get_bits::<4>(0);
        self.ctrl.wvalid.next =
            (self.phase.q.val() == Phase::WordAsk) & self.write_now.q.val() & !self.data_done.q.val();
        self.ctrl.bready.next = true;
        self.ctrl.araddr.next = self.word_address.o.val();
        self.ctrl.arvalid.next = (self.phase.q.val() == Phase::WordAsk) & !self.write_now.q.val();
        self.ctrl.rready.next = true;
        self.next_word.next = self.word.q.val() + self.one4.val();
        // Turned by a Dword; what was read takes the place of what stood there.
        self.next_words.high.next = self.words.q.val().get_bits::<32>(0);
        if self.phase.q.val() == Phase::WordAnswer {
            self.next_words.high.next = self.ctrl.rdata.val();
            if self.word_place.o.val() == self.poisoned_place.val() {
                self.next_words.high.next = self.poisoned.val();
            }
        }
        self.next_words.low.next = self.words.q.val().get_bits::<480>(32);

        self.table_write.next = false;
        match self.phase.q.val() {
            Phase::Wide => {
                self.address_done.d.next = false;
                self.data_done.d.next = false;
                self.refused.d.next = false;
                self.word.d.next = self.zero4.val();
                self.word_line.d.next = self.line.val().get_bits::<6>(0);
                self.place.d.next = self.answers.place.val();
                self.words.d.next = self.data.val();
                self.strobes_left.d.next = self.strobes.val();
                self.lanes_left.d.next = self.lanes.val();
                if self.bar.val() == self.msix_bar.val() {
                    self.words.d.next = self.table_read.val();
                }
                if self.begins.val() {
                    if self.bar.val() == self.register_bar.val() {
                        self.phase.d.next = Phase::Word;
                    }
                    if self.bar.val() == self.msix_bar.val() {
                        self.table_write.next = self.write.val();
                        self.phase.d.next = Phase::Done;
                    }
                }
            }
            Phase::Word => {
                self.address_done.d.next = false;
                self.data_done.d.next = false;
                if (self.write_now.q.val() & self.strobes_left.q.val().get_bits::<4>(0).any())
                    | (!self.write_now.q.val() & self.lanes_left.q.val().get_bit(0))
                {
                    self.phase.d.next = Phase::WordAsk;
                } else {
                    self.words.d.next = self.next_words.o.val();
                    self.strobes_left.d.next = self.strobes_left.q.val() >> self.four.val();
                    self.lanes_left.d.next = self.lanes_left.q.val() >> self.one.val();
                    self.word.d.next = self.next_word.val();
                    if self.word.q.val() == self.last4.val() {
                        self.phase.d.next = Phase::Done;
                    }
                }
            }
            Phase::WordAsk => {
                if self.write_now.q.val() {
                    self.address_done.d.next = self.address_done.q.val() | self.ctrl.awready.val();
                    self.data_done.d.next = self.data_done.q.val() | self.ctrl.wready.val();
                    if (self.address_done.q.val() | self.ctrl.awready.val())
                        & (self.data_done.q.val() | self.ctrl.wready.val())
                    {
                        self.phase.d.next = Phase::WordAnswer;
                    }
                } else if self.ctrl.arready.val() {
                    self.phase.d.next = Phase::WordAnswer;
                }
            }
            Phase::WordAnswer => {
                if (self.write_now.q.val() & self.ctrl.bvalid.val())
                    | (!self.write_now.q.val() & self.ctrl.rvalid.val())
                {
                    if (self.write_now.q.val() & (self.ctrl.bresp.val() != self.okay.val()))
                        | (!self.write_now.q.val() & (self.ctrl.rresp.val() != self.okay.val()))
                    {
                        self.refused.d.next = true;
                    }
                    self.words.d.next = self.next_words.o.val();
                    self.strobes_left.d.next = self.strobes_left.q.val() >> self.four.val();
                    self.lanes_left.d.next = self.lanes_left.q.val() >> self.one.val();
                    self.word.d.next = self.next_word.val();
                    self.phase.d.next = Phase::Word;
                    if self.word.q.val() == self.last4.val() {
                        self.phase.d.next = Phase::Done;
                    }
                }
            }
            Phase::Done => {
                self.phase.d.next = Phase::Wide;
            }
            _ => {
                self.phase.d.next = Phase::Wide;
            }
        }
        if self.reset.val() {
            self.phase.d.next = Phase::Wide;
            self.open.d.next = self.none_open.val();
        }
    }
}
