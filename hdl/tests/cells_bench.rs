//! The test bench itself: nested ports, complete lists, warnings, names of back ends.

use nearpm_hdl::cells::{Concat, Fifo, Register};
use nearpm_hdl::dut::Ports;
use nearpm_hdl::dut::{Dut, ModelDut, VerilatedDut, on_both_back_ends, verilog_of};
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// A bundle that the unit drives.
#[derive(Clone, Debug, Default, LogicInterface, Ports)]
struct Source {
    pub data: Signal<Out, Bits<8>>,
    pub ready: Signal<In, Bit>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Busy,
    Last,
}

/// A kernel as units have it: a state machine, cells, an array of bundles.
#[derive(SmartDefault, LogicBlock, Ports)]
struct Unit {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub go: Signal<In, Bit>,
    pub out: [Source; 2],
    pub busy: Signal<Out, Bit>,
    pub pair: Signal<Out, Bits<16>>,
    state: DFF<State>,
    last: Register<Bits<8>>,
    queue: Fifo<Bits<8>, 2, 3>,
    joined: Concat<8, 8, 16>,
    #[default(Constant::new(1.into()))]
    one: Constant<Bits<8>>,
}

impl Logic for Unit {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, last);
        clock!(self, clock, queue);
        self.queue.reset.next = self.reset.val();
        self.last.reset.next = self.reset.val();
        self.last.enable.next = self.go.val();
        self.last.d.next = self.last.q.val() + self.one.val();
        self.queue.write.next = self.go.val();
        self.queue.data_in.next = self.last.q.val();
        self.queue.read.next = self.out[1].ready.val();
        self.joined.high.next = self.last.q.val();
        self.joined.low.next = self.queue.data_out.val();
        self.pair.next = self.joined.o.val();
        for i in 0..2 {
            self.out[i].data.next = 0.into();
            if self.queue.count.val().index() == i {
                self.out[i].data.next = self.queue.data_out.val();
            }
        }
        self.busy.next = false;
        match self.state.q.val() {
            State::Idle => {
                if self.go.val() {
                    self.state.d.next = State::Busy;
                }
            }
            State::Busy => {
                self.busy.next = true;
                self.state.d.next = State::Last;
            }
            State::Last => {
                self.state.d.next = State::Idle;
            }
            _ => {
                self.state.d.next = State::Idle;
            }
        }
        if self.reset.val() {
            self.state.d.next = State::Idle;
        }
    }
}

#[test]
fn a_unit_runs_with_nested_ports() {
    on_both_back_ends::<Unit>(|dut| {
        dut.reset();
        dut.set("go", true);
        assert!(!dut.get_bool("busy"));
        dut.cycle();
        assert!(dut.get_bool("busy"));
        dut.cycle();
        assert!(!dut.get_bool("busy"));
        assert_eq!(dut.cycles(), 4, "two of reset, two of work");
        dut.set("go", false);
        assert_eq!(dut.get("out$1$data"), 0u64, "the first of two entries");
        assert_eq!(dut.get("pair"), 2u64 << 8);
        dut.set("out$1$ready", true);
        dut.cycle();
        assert_eq!(dut.get("out$1$data"), 1u64, "the one entry left");
        dut.set("go", true);
        assert_eq!(dut.run_until("busy", 10), 1);
    });
}

/// A kernel with a width error that rust-hdl does not see: Verilog widens before it adds.
#[derive(LogicBlock, Default, Ports)]
struct WrongWidth {
    pub a: Signal<In, Bits<8>>,
    pub sum: Signal<Out, Bits<16>>,
}

impl Logic for WrongWidth {
    #[hdl_gen]
    fn update(&mut self) {
        self.sum.next = bit_cast::<16, 8>(self.a.val() + self.a.val());
    }
}

#[test]
#[should_panic(expected = "WIDTHEXPAND")]
fn widths_that_verilog_would_change_are_errors() {
    VerilatedDut::new(verilog_of(Box::<WrongWidth>::default()), None);
}

/// Two fields in one signal.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
struct Request {
    address: Bits<8>,
    length: Bits<8>,
}

/// A kernel that takes bits of a field.
#[derive(LogicBlock, Default)]
struct BitsOfBits {
    pub request: Signal<In, Request>,
    pub short: Signal<Out, Bits<5>>,
}

impl Logic for BitsOfBits {
    #[hdl_gen]
    fn update(&mut self) {
        self.short.next = self.request.val().length.get_bits::<5>(0);
    }
}

#[test]
#[should_panic(expected = "bits of bits")]
fn bits_of_bits_are_errors() {
    verilog_of(Box::<BitsOfBits>::default());
}

/// A kernel that forgets a default, so that a latch is inferred.
#[derive(LogicBlock, Default, Ports)]
struct Forgetful {
    pub a: Signal<In, Bit>,
    pub enable: Signal<In, Bit>,
    pub q: Signal<Out, Bit>,
}

impl Logic for Forgetful {
    #[hdl_gen]
    fn update(&mut self) {
        if self.enable.val() {
            self.q.next = self.a.val();
        }
    }
}

#[test]
#[should_panic(expected = "LATCH")]
fn latches_are_errors() {
    VerilatedDut::new(verilog_of(Box::<Forgetful>::default()), None);
}

/// A unit with an input that nobody outside can name.
#[derive(LogicBlock, Default, Ports)]
struct Secretive {
    pub a: Signal<In, Bit>,
    enable: Signal<In, Bit>,
    pub q: Signal<Out, Bit>,
}

impl Logic for Secretive {
    #[hdl_gen]
    fn update(&mut self) {
        self.q.next = self.a.val() & self.enable.val();
    }
}

#[test]
#[should_panic(expected = "are not its ports")]
fn a_private_port_is_an_error() {
    ModelDut::new(Box::<Secretive>::default());
}

#[test]
#[should_panic(expected = "on the rust-hdl back end: no port `nothing`")]
fn failures_name_the_back_end() {
    on_both_back_ends::<Register<Bit>>(|dut| assert!(dut.get_bool("nothing")));
}

#[test]
#[should_panic(expected = "does not fit `d`")]
fn values_that_do_not_fit_are_errors() {
    let mut dut = ModelDut::new(Box::<Register<Bits<4>>>::default());
    let port = dut.port("d");
    dut.write(port, 16u64.into());
}
