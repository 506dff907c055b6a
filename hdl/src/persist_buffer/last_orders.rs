//! Where the last order of each warp is.

use crate::cells::clocked;
use crate::dut::Ports;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// For each of W warps the place in the queue of its last ordering entry, while that is in the
/// queue.
///
/// Whether an order of a warp lies behind an entry is answered by its last one: the paper's search
/// of all entries is not needed. Guarantees: outputs are of the state, but for `warp`; updates take
/// effect at the next edge. `set` and `leave` do not come at once.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct LastOrders<const W: usize, const V: usize, const K: usize> {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: no warp has an order.
    pub reset: Signal<In, Bit>,
    /// The warp that is meant.
    pub warp: Signal<In, Bits<V>>,
    /// It has made an order.
    pub set: Signal<In, Bit>,
    /// There.
    pub set_place: Signal<In, Bits<K>>,
    /// An ordering entry leaves.
    pub leave: Signal<In, Bit>,
    /// Its place.
    pub leave_place: Signal<In, Bits<K>>,
    /// The warp has an order in the queue.
    pub known: Signal<Out, Bit>,
    /// The last one is there.
    pub place: Signal<Out, Bits<K>>,
    #[default(0)]
    _known: u64,
    #[default([0; W])]
    _places: [u64; W],
}

impl<const W: usize, const V: usize, const K: usize> LastOrders<W, V, K> {
    fn edge(&mut self) {
        if self.leave.val() {
            let left = self.leave_place.val().to_u64();
            let stay = (0..W).filter(|warp| self._places[*warp] != left);
            self._known &= stay.fold(0, |mask, warp| mask | 1 << warp);
        }
        if self.set.val() {
            let warp = self.warp.val().index();
            self._known |= 1 << warp;
            self._places[warp] = self.set_place.val().to_u64();
        }
        if self.reset.val() {
            self._known = 0;
        }
    }
}

impl<const W: usize, const V: usize, const K: usize> Logic for LastOrders<W, V, K> {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            self.edge();
        }
        let warp = self.warp.val().index();
        self.known.next = self._known >> warp & 1 == 1;
        self.place.next = self._places[warp].into();
    }

    fn connect(&mut self) {
        self.known.connect();
        self.place.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "reg [{top}:0] places [0:{last}];\n\
             reg [{last}:0] in_queue;\n\
             integer start; integer i;\n\
             initial begin\n\
             \x20   in_queue = {W}'d0;\n\
             \x20   for (start = 0; start <= {last}; start = start + 1) places[start] = {K}'d0;\n\
             end\n\
             always @(*) begin\n\
             \x20   known = in_queue[warp];\n\
             \x20   place = places[warp];\n\
             end\n\
             always @(posedge clock) begin\n\
             \x20   for (i = 0; i <= {last}; i = i + 1)\n\
             \x20       if (leave & (places[i] == leave_place)) in_queue[i] <= 1'b0;\n\
             \x20   if (set) begin in_queue[warp] <= 1'b1; places[warp] <= set_place; end\n\
             \x20   if (reset) in_queue <= {W}'d0;\n\
             end\n",
            top = K - 1,
            last = W - 1,
        ))
    }

    fn timing(&self) -> Vec<TimingInfo> {
        clocked("last_orders", &["reset", "set", "set_place", "leave", "leave_place"], &[])
    }
}
