//! The function-level reset (PCIe base specification, 6.6.2).

use crate::bundles::{AxiLiteMaster, AxiLiteSlave};
use crate::dut::Ports;
use nearpm_interface::registers::{CONTROL, STATE, control, state};
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// Cycles without a request after which all that the host had sent before it asked for the reset
/// has been performed.
pub const QUIET_CYCLES: u64 = 32;
/// The share of the bound in which requests are still performed, as a power of two.
const GATHER_SHARE: usize = 8;

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Phase {
    Idle,
    Gather,
    Close,
    Ask,
    Asked,
    Poll,
    Polled,
    Leave,
    Done,
    Wait,
}

/// Resets the function when the host asks for it, between the PCIe block's `cfg_flr_in_process` and
/// `cfg_flr_done` (PG213).
///
/// Guarantees: what the host had sent before is performed and answered first; then no request is
/// taken, the card is told to drain (`CONTROL`) over the port of the registers, and the reset is
/// done when `STATE` says that it has, nothing is offered to the host any more, and not before:
/// what the card has accepted is kept. From the beginning to the end `active` masks the vectors and
/// lets no record or interrupt begin. A link that goes down ends the reset without `done`, but
/// neither an access that is under way nor the card's drain is cut short. Bound: 2^`N` cycles and
/// one access, whatever the card does; its drain then goes on by itself and `STATE` says so. Of
/// that a 256th is for requests of before, so that a host which goes on to send cannot hold the
/// reset up. Parameter: `N` from 10 to 24, 24 (67 ms at 250 MHz) being the most that PCIe's 100 ms
/// allow.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct FunctionReset<const N: usize> {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high. Only together with `LineAccess`.
    pub reset: Signal<In, Bit>,
    /// The link is down.
    pub link_down: Signal<In, Bit>,
    /// The host has asked for a reset, a bit a function; falls after `done`.
    pub in_process: Signal<In, Bits<4>>,
    /// Pulse: the function may be used again. Functions but 0 are not there.
    pub done: Signal<Out, Bits<4>>,
    /// A request is here.
    pub arriving: Signal<In, Bit>,
    /// No request is being performed.
    pub idle: Signal<In, Bit>,
    /// Take no request.
    pub hold: Signal<Out, Bit>,
    /// Something is offered to the host that may not be withdrawn.
    pub offering: Signal<In, Bit>,
    /// A reset is under way.
    pub active: Signal<Out, Bit>,
    /// Accesses of the host to the registers.
    pub host: AxiLiteSlave<12, 32, 4>,
    /// The registers.
    pub ctrl: AxiLiteMaster<12, 32, 4>,

    phase: DFF<Phase>,
    timer: DFF<Bits<N>>,
    quiet: DFF<Bits<5>>,
    lost: DFF<Bit>,
    address_done: DFF<Bit>,
    data_done: DFF<Bit>,
    asked: Signal<Local, Bit>,
    gone: Signal<Local, Bit>,
    expired: Signal<Local, Bit>,
    owns: Signal<Local, Bit>,
    is_silent: Signal<Local, Bit>,
    drained: Signal<Local, Bit>,
    #[default(Constant::new((CONTROL as u64).into()))]
    control: Constant<Bits<12>>,
    #[default(Constant::new((STATE as u64).into()))]
    state: Constant<Bits<12>>,
    #[default(Constant::new(u64::from(control::FUNCTION_RESET).into()))]
    function_reset: Constant<Bits<32>>,
    #[default(Constant::new(u64::from(state::BOOTING).into()))]
    booting: Constant<Bits<32>>,
    #[default(Constant::new(u64::from(state::REPLAYING).into()))]
    replaying: Constant<Bits<32>>,
    #[default(Constant::new(15.into()))]
    all: Constant<Bits<4>>,
    #[default(Constant::new(0.into()))]
    nothing: Constant<Bits<4>>,
    #[default(Constant::new(1.into()))]
    function0: Constant<Bits<4>>,
    #[default(Constant::new(0.into()))]
    zero: Constant<Bits<N>>,
    #[default(Constant::new(1.into()))]
    one: Constant<Bits<N>>,
    #[default(limit::<N>())]
    limit: Constant<Bits<N>>,
    #[default(Constant::new((1u64 << (N - GATHER_SHARE)).into()))]
    gather_limit: Constant<Bits<N>>,
    #[default(Constant::new(0.into()))]
    zero5: Constant<Bits<5>>,
    #[default(Constant::new(1.into()))]
    one5: Constant<Bits<5>>,
    #[default(Constant::new((QUIET_CYCLES - 1).into()))]
    quiet_limit: Constant<Bits<5>>,
}

/// The most that a timer of N bits holds.
fn limit<const N: usize>() -> Constant<Bits<N>> {
    const { assert!(N >= 10 && N <= 24) };
    Constant::new(((1u64 << N) - 1).into())
}

impl<const N: usize> Logic for FunctionReset<N> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, phase, timer, quiet, lost, address_done, data_done);
        self.expired.next = self.timer.q.val() == self.limit.val();
        self.active.next = self.phase.q.val() != Phase::Idle;
        self.hold.next = (self.phase.q.val() != Phase::Idle) & (self.phase.q.val() != Phase::Gather);
        self.asked.next = self.in_process.val().get_bit(0);
        self.done.next = self.nothing.val();
        if self.phase.q.val() == Phase::Done {
            self.done.next = self.function0.val();
        }
        self.is_silent.next = self.idle.val() & !self.arriving.val();
        self.owns.next = (self.phase.q.val() == Phase::Ask)
            | (self.phase.q.val() == Phase::Asked)
            | (self.phase.q.val() == Phase::Poll)
            | (self.phase.q.val() == Phase::Polled);
        self.drained.next =
            (self.ctrl.rdata.val() != self.booting.val()) & (self.ctrl.rdata.val() != self.replaying.val());

        // The host has the port, but for the accesses of the reset; then it asks for nothing.
        self.ctrl.awaddr.next = self.host.awaddr.val();
        self.ctrl.awvalid.next = self.host.awvalid.val();
        self.ctrl.wdata.next = self.host.wdata.val();
        self.ctrl.wstrb.next = self.host.wstrb.val();
        self.ctrl.wvalid.next = self.host.wvalid.val();
        self.ctrl.bready.next = self.host.bready.val();
        self.ctrl.araddr.next = self.host.araddr.val();
        self.ctrl.arvalid.next = self.host.arvalid.val();
        self.ctrl.rready.next = self.host.rready.val();
        self.host.awready.next = self.ctrl.awready.val() & !self.owns.val();
        self.host.wready.next = self.ctrl.wready.val() & !self.owns.val();
        self.host.bresp.next = self.ctrl.bresp.val();
        self.host.bvalid.next = self.ctrl.bvalid.val() & !self.owns.val();
        self.host.arready.next = self.ctrl.arready.val() & !self.owns.val();
        self.host.rdata.next = self.ctrl.rdata.val();
        self.host.rresp.next = self.ctrl.rresp.val();
        self.host.rvalid.next = self.ctrl.rvalid.val() & !self.owns.val();
        if self.owns.val() {
            self.ctrl.awaddr.next = self.control.val();
            self.ctrl.awvalid.next = (self.phase.q.val() == Phase::Ask) & !self.address_done.q.val();
            self.ctrl.wdata.next = self.function_reset.val();
            self.ctrl.wstrb.next = self.all.val();
            self.ctrl.wvalid.next = (self.phase.q.val() == Phase::Ask) & !self.data_done.q.val();
            self.ctrl.bready.next = true;
            self.ctrl.araddr.next = self.state.val();
            self.ctrl.arvalid.next = self.phase.q.val() == Phase::Poll;
            self.ctrl.rready.next = true;
        }

        if !self.expired.val() {
            self.timer.d.next = self.timer.q.val() + self.one.val();
        }
        self.gone.next = self.lost.q.val() | self.link_down.val() | !self.asked.val();
        self.lost.d.next = self.gone.val();
        match self.phase.q.val() {
            Phase::Idle => {
                self.timer.d.next = self.zero.val();
                self.quiet.d.next = self.zero5.val();
                self.lost.d.next = false;
                self.address_done.d.next = false;
                self.data_done.d.next = false;
                if self.asked.val() & !self.link_down.val() {
                    self.phase.d.next = Phase::Gather;
                }
            }
            Phase::Gather => {
                self.quiet.d.next = self.zero5.val();
                if self.is_silent.val() {
                    self.quiet.d.next = self.quiet.q.val() + self.one5.val();
                }
                if (self.is_silent.val() & (self.quiet.q.val() == self.quiet_limit.val()))
                    | (self.timer.q.val() > self.gather_limit.val())
                {
                    self.phase.d.next = Phase::Close;
                }
                if self.gone.val() {
                    self.phase.d.next = Phase::Idle;
                }
            }
            Phase::Close => {
                if self.idle.val() {
                    self.phase.d.next = Phase::Ask;
                } else if self.expired.val() {
                    self.phase.d.next = Phase::Leave;
                }
                if self.gone.val() {
                    self.phase.d.next = Phase::Idle;
                }
            }
            Phase::Ask => {
                self.address_done.d.next = self.address_done.q.val() | self.ctrl.awready.val();
                self.data_done.d.next = self.data_done.q.val() | self.ctrl.wready.val();
                if (self.address_done.q.val() | self.ctrl.awready.val())
                    & (self.data_done.q.val() | self.ctrl.wready.val())
                {
                    self.phase.d.next = Phase::Asked;
                }
            }
            Phase::Asked => {
                if self.ctrl.bvalid.val() {
                    self.phase.d.next = Phase::Poll;
                }
            }
            Phase::Poll => {
                if self.ctrl.arready.val() {
                    self.phase.d.next = Phase::Polled;
                }
            }
            Phase::Polled => {
                if self.ctrl.rvalid.val() {
                    self.phase.d.next = Phase::Poll;
                    if self.drained.val() | self.expired.val() {
                        self.phase.d.next = Phase::Leave;
                    }
                }
            }
            Phase::Leave => {
                if !self.offering.val() | self.expired.val() {
                    self.phase.d.next = Phase::Done;
                }
                if self.gone.val() {
                    self.phase.d.next = Phase::Idle;
                }
            }
            Phase::Done => {
                self.phase.d.next = Phase::Wait;
            }
            Phase::Wait => {
                if self.gone.val() {
                    self.phase.d.next = Phase::Idle;
                }
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
