//! Which entries are orders.

use crate::cells::clocked;
use crate::dut::Ports;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// A bit for each of 2^K places of the queue: an ordering entry is there.
///
/// Guarantees: `order_before` is combinational; updates take effect at the next edge. `set` and
/// `leave` do not come at once.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct OrderFlags<const K: usize> {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: no entry is an order.
    pub reset: Signal<In, Bit>,
    /// An order comes.
    pub set: Signal<In, Bit>,
    /// To this place.
    pub set_place: Signal<In, Bits<K>>,
    /// The head leaves.
    pub leave: Signal<In, Bit>,
    /// The oldest place.
    pub head: Signal<In, Bits<K>>,
    /// A place of the queue.
    pub place: Signal<In, Bits<K>>,
    /// An order lies between the head, inclusive, and that place, exclusive.
    pub order_before: Signal<Out, Bit>,
    #[default({ Self::checked(); vec![false; 1 << K] })]
    _flags: Vec<bool>,
}

impl<const K: usize> OrderFlags<K> {
    /// # Panics
    /// If the parameters do not fit.
    fn checked() {
        assert!((1..=10).contains(&K), "2^{K} entries");
    }
}

impl<const K: usize> Logic for OrderFlags<K> {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            if self.leave.val() {
                self._flags[self.head.val().index()] = false;
            }
            if self.set.val() {
                self._flags[self.set_place.val().index()] = true;
            }
            if self.reset.val() {
                self._flags.fill(false);
            }
        }
        let (head, place, all) = (self.head.val().index(), self.place.val().index(), 1 << K);
        let distance = (place + all - head) % all;
        self.order_before.next = (0..distance).any(|i| self._flags[(head + i) % all]);
    }

    fn connect(&mut self) {
        self.order_before.connect();
    }

    fn hdl(&self) -> Verilog {
        let entries = 1usize << K;
        Verilog::Custom(format!(
            "reg [{last}:0] flags;\n\
             initial flags = {entries}'d0;\n\
             wire [{last}:0] all = {{{entries}{{1'b1}}}};\n\
             wire [{last}:0] below_place = ~(all << place);\n\
             wire [{last}:0] from_head = all << head;\n\
             wire [{last}:0] between = (place < head) ? (from_head | below_place) : (from_head & below_place);\n\
             always @(*) order_before = |(flags & between);\n\
             always @(posedge clock) begin\n\
             \x20   if (leave) flags[head] <= 1'b0;\n\
             \x20   if (set) flags[set_place] <= 1'b1;\n\
             \x20   if (reset) flags <= {entries}'d0;\n\
             end\n",
            last = entries - 1,
        ))
    }

    fn timing(&self) -> Vec<TimingInfo> {
        clocked("order_flags", &["reset", "set", "set_place", "leave", "head"], &[])
    }
}
