//! A choice by one-hot.

use crate::dut::Ports;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// The input whose bit of `select` is set; 0 when none is.
///
/// Two LUT levels for six inputs, where a choice by index first decodes it. At most one bit of
/// `select` may be set: the Verilog shows the union of the inputs otherwise. N is 2 to 64.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct OneHotMux<T: Synth, const N: usize> {
    /// Which input, a bit each.
    pub select: Signal<In, Bits<N>>,
    /// The inputs.
    #[default(std::array::from_fn(|_| Default::default()))]
    pub i: [Signal<In, T>; N],
    /// The one that is selected; combinational.
    #[default({ Self::checked(); Signal::default() })]
    pub o: Signal<Out, T>,
}

impl<T: Synth, const N: usize> OneHotMux<T, N> {
    /// # Panics
    /// If the parameters do not fit.
    fn checked() {
        assert!((2..=64).contains(&N), "a choice among {N}");
    }
}

impl<T: Synth, const N: usize> Logic for OneHotMux<T, N> {
    fn update(&mut self) {
        let select = self.select.val().to_u64();
        debug_assert!(select.count_ones() <= 1, "{select:#b} selects more than one input");
        let chosen = self.i.get(select.trailing_zeros() as usize);
        self.o.next = chosen.map(|input| input.val()).unwrap_or_default();
    }

    fn connect(&mut self) {
        self.o.connect();
    }

    fn hdl(&self) -> Verilog {
        let terms: Vec<_> = (0..N).map(|i| format!("({{{width}{{select[{i}]}}}} & i${i})", width = T::BITS)).collect();
        Verilog::Custom(format!("always @(*) o = {};\n", terms.join(" | ")))
    }
}
