//! Keeps what is known of stores that memory refused.

use crate::bundles::Lost;
use crate::cells::Register;
use crate::dut::Ports;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// Counts lost stores and keeps the lowest and the highest of their lines, until software has
/// acknowledged them.
///
/// Guarantees: a store is counted at the edge at which it is told, also in the cycle in which the
/// earlier ones are forgotten. The count stops at its highest value. Bound: a store a cycle.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct LostStores {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: nothing is known.
    pub reset: Signal<In, Bit>,
    /// Pulse: memory refused a store.
    pub refused: Signal<In, Bit>,
    /// Its line address.
    pub line: Signal<In, Bits<34>>,
    /// Pulse: software has acknowledged what it read.
    pub forget: Signal<In, Bit>,
    /// Pulse: this is known from before the power went.
    pub restore_valid: Signal<In, Bit>,
    /// See `restore_valid`.
    pub restore: Signal<In, Lost>,
    /// What is known.
    pub lost: Signal<Out, Lost>,
    /// Some store was lost.
    pub any: Signal<Out, Bit>,
    known: Register<Lost>,
    older: Signal<Local, Lost>,
    newer: Signal<Local, Lost>,
    #[default(Constant::new(Lost::default()))]
    none: Constant<Lost>,
    #[default(Constant::new(1.into()))]
    one: Constant<Bits<32>>,
    #[default(Constant::new(u64::from(u32::MAX).into()))]
    most: Constant<Bits<32>>,
}

impl Logic for LostStores {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, known);
        self.known.reset.next = self.reset.val();
        self.known.enable.next = true;
        self.lost.next = self.known.q.val();
        self.older.next = self.known.q.val();
        if self.forget.val() {
            self.older.next = self.none.val();
        }
        if self.restore_valid.val() {
            self.older.next = self.restore.val();
        }
        self.any.next = self.known.q.val().count.any();
        self.newer.next = self.older.val();
        if self.refused.val() {
            if self.older.val().count != self.most.val() {
                self.newer.next.count = self.older.val().count + self.one.val();
            }
            if !self.older.val().count.any() | (self.line.val() < self.older.val().first) {
                self.newer.next.first = self.line.val();
            }
            if !self.older.val().count.any() | (self.line.val() > self.older.val().last) {
                self.newer.next.last = self.line.val();
            }
        }
        self.known.d.next = self.newer.val();
    }
}
