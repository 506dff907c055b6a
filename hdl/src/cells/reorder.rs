//! Answers in the order of what was asked.

use super::{clocked, low_bits, memory, widened};
use crate::dut::Ports;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;
use std::collections::VecDeque;

/// Puts answers that come in any order into the order in which they were asked for.
///
/// Whoever asks gets a `place`, and the answer comes with it; `data` is the oldest one's answer
/// while `valid`. Asks and gives an answer in each cycle; an answer that comes shows in the next.
/// Asking while `full` and taking while not `valid` do nothing. An answer comes once for each place
/// that was given, and never in the cycle in which it is given. Built from distributed RAM: 2^K
/// places, K is 1 to 6.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct Reorder<T: Synth, const K: usize> {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: nobody waits for anything afterwards.
    pub reset: Signal<In, Bit>,
    /// Give `place` away at the next edge.
    pub ask: Signal<In, Bit>,
    /// The next place, 0 to 2^K - 1.
    pub place: Signal<Out, Bits<6>>,
    /// All places are given.
    pub full: Signal<Out, Bit>,
    /// No place is given.
    #[default(Signal::new_with_default(true))]
    pub empty: Signal<Out, Bit>,
    /// An answer is here.
    pub come: Signal<In, Bit>,
    /// Its place.
    pub come_place: Signal<In, Bits<6>>,
    /// The answer.
    pub come_data: Signal<In, T>,
    /// The oldest place has its answer.
    pub valid: Signal<Out, Bit>,
    /// The answer; meaningless while not `valid`.
    pub data: Signal<Out, T>,
    /// Free the oldest place at the next edge.
    pub take: Signal<In, Bit>,
    #[default({ Self::checked(); VecDeque::new() })]
    _answers: VecDeque<Option<T>>,
    _oldest: usize,
}

impl<T: Synth, const K: usize> Reorder<T, K> {
    /// # Panics
    /// If the parameters do not fit.
    fn checked() {
        assert!((1..=6).contains(&K), "2^{K} places do not fit six bits");
    }
}

impl<T: Synth, const K: usize> Reorder<T, K> {
    const PLACES: usize = 1 << K;

    fn edge(&mut self) {
        if self.reset.val() {
            self._answers.clear();
            self._oldest = 0;
            return;
        }
        let (full, valid) = (self._answers.len() == Self::PLACES, self.has_oldest());
        if self.come.val() {
            let place = self.come_place.val().to_u64() as usize;
            let behind = (place + Self::PLACES - self._oldest) % Self::PLACES;
            if let Some(answer) = self._answers.get_mut(behind) {
                *answer = Some(self.come_data.val());
            }
        }
        if self.take.val() && valid {
            self._answers.pop_front();
            self._oldest = (self._oldest + 1) % Self::PLACES;
        }
        if self.ask.val() && !full {
            self._answers.push_back(None);
        }
    }

    fn has_oldest(&self) -> bool {
        matches!(self._answers.front(), Some(Some(_)))
    }
}

impl<T: Synth, const K: usize> Logic for Reorder<T, K> {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            self.edge();
        }
        let next = (self._oldest + self._answers.len()) % Self::PLACES;
        self.place.next = (next as u64).into();
        self.full.next = self._answers.len() == Self::PLACES;
        self.empty.next = self._answers.is_empty();
        self.valid.next = self.has_oldest();
        // The Verilog shows a stale answer while there is none; nobody may look at either.
        self.data.next = self._answers.front().copied().flatten().unwrap_or_default();
    }

    fn connect(&mut self) {
        self.place.connect();
        self.full.connect();
        self.empty.connect();
        self.valid.connect();
        self.data.connect();
    }

    fn hdl(&self) -> Verilog {
        let memory = memory("distributed", T::BITS, Self::PLACES);
        let come = low_bits("come_place", 6, K);
        let place = widened("newest", K, 6);
        Verilog::Custom(format!(
            "{memory}\
             reg [{top}:0] oldest;\n\
             reg [{top}:0] newest;\n\
             reg [{K}:0] used;\n\
             reg [{last}:0] here;\n\
             wire append = ask & ~full;\n\
             wire remove = take & valid;\n\
             integer n;\n\
             initial begin oldest = {K}'d0; newest = {K}'d0; used = {count}'d0; here = {places}'d0; end\n\
             always @(*) begin\n\
             \x20   place = {place};\n\
             \x20   full = used[{K}];\n\
             \x20   empty = ~|used;\n\
             \x20   valid = here[oldest];\n\
             \x20   data = mem[oldest];\n\
             end\n\
             always @(posedge clock) begin\n\
             \x20   if (come) mem[{come}] <= come_data;\n\
             \x20   if (reset) begin oldest <= {K}'d0; newest <= {K}'d0; used <= {count}'d0; here <= {places}'d0; end\n\
             \x20   else begin\n\
             \x20       if (append) newest <= newest + {K}'d1;\n\
             \x20       if (remove) oldest <= oldest + {K}'d1;\n\
             \x20       used <= used + {{{K}'d0, append}} - {{{K}'d0, remove}};\n\
             \x20       for (n = 0; n < {places}; n = n + 1)\n\
             \x20           if (come & ({come} == n[{top}:0])) here[n] <= 1'b1;\n\
             \x20           else if (remove & (oldest == n[{top}:0])) here[n] <= 1'b0;\n\
             \x20   end\n\
             end\n",
            top = K - 1,
            last = Self::PLACES - 1,
            places = Self::PLACES,
            count = K + 1,
        ))
    }

    fn timing(&self) -> Vec<TimingInfo> {
        let inputs = ["reset", "ask", "come", "come_place", "come_data", "take"];
        clocked("reorder", &inputs, &["place", "full", "empty", "valid", "data"])
    }
}
