//! Accesses to the card's ports.

use crate::bundles::{AxiLiteMaster, AxiMaster};
use crate::cells::Concat;
use nearpm_interface::geometry::{COMMAND_BAR, LINE, MSIX_BAR, PM_BAR, REGISTER_BAR};
use rust_hdl::prelude::*;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Phase {
    Idle,
    Wide,
    WideAnswer,
    Word,
    WordAsk,
    WordAnswer,
    Done,
}

/// Performs an access to a line of a BAR: at the PM window or the command pages in one beat, at the registers Dword after Dword, at the
/// MSI-X table at once.
///
/// Guarantees: one access is under way at a time, and `done` comes when the port has answered; a refused one says `error`. Bound: three
/// cycles beside the port's own, at the registers 16 and three for each Dword.
#[derive(LogicBlock)]
pub struct LineAccess {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,
    /// An access is wanted. Stays, with what it says, until `done`.
    pub valid: Signal<In, Bit>,
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
    /// Pulse: the access is done.
    pub done: Signal<Out, Bit>,
    /// What was read, with `done`.
    pub read: Signal<Out, Bits<512>>,
    /// The port has refused it, with `done`.
    pub error: Signal<Out, Bit>,
    /// The PM window.
    pub host: AxiMaster<40, 512, 64, 6>,
    /// The command pages.
    pub cmd: AxiMaster<16, 512, 64, 6>,
    /// The registers.
    pub ctrl: AxiLiteMaster<12, 32, 4>,
    /// Pulse: write a line of the MSI-X table.
    pub table_write: Signal<Out, Bit>,
    /// A line of the MSI-X table.
    pub table_read: Signal<In, Bits<512>>,

    phase: DFF<Phase>,
    address_done: DFF<Bit>,
    data_done: DFF<Bit>,
    /// Registers: what is left to write, or has been read, turned so that the next Dword is lowest.
    words: DFF<Bits<512>>,
    strobes_left: DFF<Bits<64>>,
    lanes_left: DFF<Bits<16>>,
    word: DFF<Bits<4>>,
    refused: DFF<Bit>,
    is_host: Signal<Local, Bit>,
    is_command: Signal<Local, Bit>,
    wide_write: Signal<Local, Bit>,
    wide_read: Signal<Local, Bit>,
    taken: Signal<Local, Bit>,
    wide_b: Signal<Local, Bit>,
    wide_r: Signal<Local, Bit>,
    response: Signal<Local, Bits<2>>,
    byte_address: Concat<34, 6, 40>,
    word_place: Concat<6, 4, 10>,
    word_address: Concat<10, 2, 12>,
    next_words: Concat<32, 480, 512>,
    next_word: Signal<Local, Bits<4>>,
    pm_bar: Constant<Bits<3>>,
    command_bar: Constant<Bits<3>>,
    register_bar: Constant<Bits<3>>,
    msix_bar: Constant<Bits<3>>,
    line_size: Constant<Bits<3>>,
    incrementing: Constant<Bits<2>>,
    okay: Constant<Bits<2>>,
    zero2: Constant<Bits<2>>,
    zero6: Constant<Bits<6>>,
    zero8: Constant<Bits<8>>,
    zero4: Constant<Bits<4>>,
    one4: Constant<Bits<4>>,
    last4: Constant<Bits<4>>,
    four: Constant<Bits<64>>,
    one: Constant<Bits<16>>,
}

impl Default for LineAccess {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            reset: Default::default(),
            valid: Default::default(),
            write: Default::default(),
            bar: Default::default(),
            line: Default::default(),
            data: Default::default(),
            strobes: Default::default(),
            lanes: Default::default(),
            done: Default::default(),
            read: Default::default(),
            error: Default::default(),
            host: Default::default(),
            cmd: Default::default(),
            ctrl: Default::default(),
            table_write: Default::default(),
            table_read: Default::default(),
            phase: Default::default(),
            address_done: Default::default(),
            data_done: Default::default(),
            words: Default::default(),
            strobes_left: Default::default(),
            lanes_left: Default::default(),
            word: Default::default(),
            refused: Default::default(),
            is_host: Default::default(),
            is_command: Default::default(),
            wide_write: Default::default(),
            wide_read: Default::default(),
            taken: Default::default(),
            wide_b: Default::default(),
            wide_r: Default::default(),
            response: Default::default(),
            byte_address: Default::default(),
            word_place: Default::default(),
            word_address: Default::default(),
            next_words: Default::default(),
            next_word: Default::default(),
            pm_bar: Constant::new((PM_BAR as u64).into()),
            command_bar: Constant::new((COMMAND_BAR as u64).into()),
            register_bar: Constant::new((REGISTER_BAR as u64).into()),
            msix_bar: Constant::new((MSIX_BAR as u64).into()),
            line_size: Constant::new(u64::from(LINE.trailing_zeros()).into()),
            incrementing: Constant::new(1.into()),
            okay: Constant::new(0.into()),
            zero2: Constant::new(0.into()),
            zero6: Constant::new(0.into()),
            zero8: Constant::new(0.into()),
            zero4: Constant::new(0.into()),
            one4: Constant::new(1.into()),
            last4: Constant::new(15.into()),
            four: Constant::new(4.into()),
            one: Constant::new(1.into()),
        }
    }
}

impl Logic for LineAccess {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, phase, address_done, data_done, words, strobes_left, lanes_left, word, refused);
        self.is_host.next = self.bar.val() == self.pm_bar.val();
        self.is_command.next = self.bar.val() == self.command_bar.val();
        self.wide_write.next = (self.phase.q.val() == Phase::Wide) & self.write.val();
        self.wide_read.next = (self.phase.q.val() == Phase::Wide) & !self.write.val();
        self.byte_address.high.next = self.line.val();
        self.byte_address.low.next = self.zero6.val();

        self.host.awid.next = self.zero6.val();
        self.host.awaddr.next = self.byte_address.o.val();
        self.host.awlen.next = self.zero8.val();
        self.host.awsize.next = self.line_size.val();
        self.host.awburst.next = self.incrementing.val();
        self.host.awvalid.next = self.wide_write.val() & self.is_host.val() & !self.address_done.q.val();
        self.host.wdata.next = self.data.val();
        self.host.wstrb.next = self.strobes.val();
        self.host.wlast.next = true;
        self.host.wvalid.next = self.wide_write.val() & self.is_host.val() & !self.data_done.q.val();
        self.host.bready.next = true;
        self.host.arid.next = self.zero6.val();
        self.host.araddr.next = self.byte_address.o.val();
        self.host.arlen.next = self.zero8.val();
        self.host.arsize.next = self.line_size.val();
        self.host.arburst.next = self.incrementing.val();
        self.host.arvalid.next = self.wide_read.val() & self.is_host.val();
        self.host.rready.next = true;

        self.cmd.awid.next = self.zero6.val();
        self.cmd.awaddr.next = self.byte_address.o.val().get_bits::<16>(0);
        self.cmd.awlen.next = self.zero8.val();
        self.cmd.awsize.next = self.line_size.val();
        self.cmd.awburst.next = self.incrementing.val();
        self.cmd.awvalid.next = self.wide_write.val() & self.is_command.val() & !self.address_done.q.val();
        self.cmd.wdata.next = self.data.val();
        self.cmd.wstrb.next = self.strobes.val();
        self.cmd.wlast.next = true;
        self.cmd.wvalid.next = self.wide_write.val() & self.is_command.val() & !self.data_done.q.val();
        self.cmd.bready.next = true;
        self.cmd.arid.next = self.zero6.val();
        self.cmd.araddr.next = self.byte_address.o.val().get_bits::<16>(0);
        self.cmd.arlen.next = self.zero8.val();
        self.cmd.arsize.next = self.line_size.val();
        self.cmd.arburst.next = self.incrementing.val();
        self.cmd.arvalid.next = self.wide_read.val() & self.is_command.val();
        self.cmd.rready.next = true;

        self.word_place.high.next = self.line.val().get_bits::<6>(0);
        self.word_place.low.next = self.word.q.val();
        self.word_address.high.next = self.word_place.o.val();
        self.word_address.low.next = self.zero2.val();
        self.ctrl.awaddr.next = self.word_address.o.val();
        self.ctrl.awvalid.next = (self.phase.q.val() == Phase::WordAsk) & self.write.val() & !self.address_done.q.val();
        self.ctrl.wdata.next = self.words.q.val().get_bits::<32>(0);
        self.ctrl.wstrb.next = self.strobes_left.q.val().get_bits::<4>(0);
        self.ctrl.wvalid.next = (self.phase.q.val() == Phase::WordAsk) & self.write.val() & !self.data_done.q.val();
        self.ctrl.bready.next = true;
        self.ctrl.araddr.next = self.word_address.o.val();
        self.ctrl.arvalid.next = (self.phase.q.val() == Phase::WordAsk) & !self.write.val();
        self.ctrl.rready.next = true;
        self.next_word.next = self.word.q.val() + self.one4.val();
        // Turned by a Dword; what was read takes the place of what stood there.
        self.next_words.high.next = self.words.q.val().get_bits::<32>(0);
        if self.phase.q.val() == Phase::WordAnswer {
            self.next_words.high.next = self.ctrl.rdata.val();
        }
        self.next_words.low.next = self.words.q.val().get_bits::<480>(32);

        self.taken.next =
            (self.address_done.q.val() | self.host.awready.val()) & (self.data_done.q.val() | self.host.wready.val());
        self.wide_b.next = self.host.bvalid.val();
        self.wide_r.next = self.host.rvalid.val();
        self.response.next = self.host.rresp.val();
        if self.write.val() {
            self.response.next = self.host.bresp.val();
        }
        if self.is_command.val() {
            self.taken.next =
                (self.address_done.q.val() | self.cmd.awready.val()) & (self.data_done.q.val() | self.cmd.wready.val());
            self.wide_b.next = self.cmd.bvalid.val();
            self.wide_r.next = self.cmd.rvalid.val();
            self.response.next = self.cmd.rresp.val();
            if self.write.val() {
                self.response.next = self.cmd.bresp.val();
            }
        }

        self.table_write.next = false;
        self.done.next = self.phase.q.val() == Phase::Done;
        self.read.next = self.words.q.val();
        self.error.next = self.refused.q.val();

        match self.phase.q.val() {
            Phase::Idle => {
                self.address_done.d.next = false;
                self.data_done.d.next = false;
                self.refused.d.next = false;
                self.word.d.next = self.zero4.val();
                self.words.d.next = self.data.val();
                self.strobes_left.d.next = self.strobes.val();
                self.lanes_left.d.next = self.lanes.val();
                if self.valid.val() {
                    self.phase.d.next = Phase::Wide;
                    if self.bar.val() == self.register_bar.val() {
                        self.phase.d.next = Phase::Word;
                    }
                    if self.bar.val() == self.msix_bar.val() {
                        self.table_write.next = self.write.val();
                        self.words.d.next = self.table_read.val();
                        self.phase.d.next = Phase::Done;
                    }
                }
            }
            Phase::Wide => {
                if self.write.val() {
                    self.address_done.d.next = self.address_done.q.val()
                        | (self.is_host.val() & self.host.awready.val())
                        | (self.is_command.val() & self.cmd.awready.val());
                    self.data_done.d.next = self.data_done.q.val()
                        | (self.is_host.val() & self.host.wready.val())
                        | (self.is_command.val() & self.cmd.wready.val());
                    if self.taken.val() {
                        self.phase.d.next = Phase::WideAnswer;
                    }
                } else if (self.is_host.val() & self.host.arready.val())
                    | (self.is_command.val() & self.cmd.arready.val())
                {
                    self.phase.d.next = Phase::WideAnswer;
                }
            }
            Phase::WideAnswer => {
                self.words.d.next = self.host.rdata.val();
                if self.is_command.val() {
                    self.words.d.next = self.cmd.rdata.val();
                }
                self.refused.d.next = self.response.val() != self.okay.val();
                if (self.write.val() & self.wide_b.val()) | (!self.write.val() & self.wide_r.val()) {
                    self.phase.d.next = Phase::Done;
                }
            }
            Phase::Word => {
                self.address_done.d.next = false;
                self.data_done.d.next = false;
                if (self.write.val() & self.strobes_left.q.val().get_bits::<4>(0).any())
                    | (!self.write.val() & self.lanes_left.q.val().get_bit(0))
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
                if self.write.val() {
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
                if (self.write.val() & self.ctrl.bvalid.val()) | (!self.write.val() & self.ctrl.rvalid.val()) {
                    if (self.write.val() & (self.ctrl.bresp.val() != self.okay.val()))
                        | (!self.write.val() & (self.ctrl.rresp.val() != self.okay.val()))
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
                self.phase.d.next = Phase::Idle;
            }
            _ => {
                self.phase.d.next = Phase::Idle;
            }
        }
        if self.reset.val() {
            self.phase.d.next = Phase::Idle;
        }
    }
}

crate::dut_ports!(LineAccess {
    clock,
    reset,
    valid,
    write,
    bar,
    line,
    data,
    strobes,
    lanes,
    done,
    read,
    error,
    host,
    cmd,
    ctrl,
    table_write,
    table_read,
});
