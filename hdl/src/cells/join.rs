//! Wiring that kernels cannot write: widening and concatenation.
//!
//! A cast to a wider type in a kernel is emitted without one, so that Verilog widens the operands
//! first and carries out of the narrow sum appear. Through these cells the widths are exact.

use crate::dut::Ports;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// Zero-extends A bits to B bits, B >= A.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct Widen<const A: usize, const B: usize> {
    /// The narrow value.
    pub i: Signal<In, Bits<A>>,
    /// The same number, wide; combinational.
    #[default({ Self::checked(); Signal::default() })]
    pub o: Signal<Out, Bits<B>>,
}

impl<const A: usize, const B: usize> Widen<A, B> {
    /// # Panics
    /// If the parameters do not fit.
    fn checked() {
        assert!(B >= A && A > 0, "{A} bits do not widen to {B}");
    }
}

impl<const A: usize, const B: usize> Logic for Widen<A, B> {
    fn update(&mut self) {
        self.o.next = bit_cast::<B, A>(self.i.val());
    }

    fn connect(&mut self) {
        self.o.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(match B - A {
            0 => "always @(*) o = i;\n".into(),
            spare => format!("always @(*) o = {{{spare}'d0, i}};\n"),
        })
    }
}

/// Puts `high` (H bits) above `low` (L bits): W = H + L bits.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct Concat<const H: usize, const L: usize, const W: usize> {
    /// The upper bits.
    pub high: Signal<In, Bits<H>>,
    /// The lower bits.
    pub low: Signal<In, Bits<L>>,
    /// Both; combinational.
    #[default({ Self::checked(); Signal::default() })]
    pub o: Signal<Out, Bits<W>>,
}

impl<const H: usize, const L: usize, const W: usize> Concat<H, L, W> {
    /// # Panics
    /// If the parameters do not fit.
    fn checked() {
        assert!(H + L == W && H > 0 && L > 0, "{H} + {L} bits are not {W}");
    }
}

impl<const H: usize, const L: usize, const W: usize> Logic for Concat<H, L, W> {
    fn update(&mut self) {
        let high = bit_cast::<W, H>(self.high.val()) << (L as LiteralType);
        self.o.next = high | bit_cast::<W, L>(self.low.val());
    }

    fn connect(&mut self) {
        self.o.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom("always @(*) o = {high, low};\n".into())
    }
}

/// Puts N single bits side by side, number 0 lowest. N is 2 to 64.
#[derive(LogicBlock, Ports)]
pub struct Gather<const N: usize> {
    /// The bits.
    pub i: [Signal<In, Bit>; N],
    /// The vector; combinational.
    pub o: Signal<Out, Bits<N>>,
}

impl<const N: usize> Default for Gather<N> {
    fn default() -> Self {
        assert!((2..=64).contains(&N), "{N} bits to gather");
        Self { i: std::array::from_fn(|_| Default::default()), o: Default::default() }
    }
}

impl<const N: usize> Logic for Gather<N> {
    fn update(&mut self) {
        let bits = self.i.iter().enumerate().map(|(bit, i)| u64::from(i.val()) << bit);
        self.o.next = bits.sum::<u64>().into();
    }

    fn connect(&mut self) {
        self.o.connect();
    }

    fn hdl(&self) -> Verilog {
        let names: Vec<_> = (0..N).rev().map(|bit| format!("i${bit}")).collect();
        Verilog::Custom(format!("always @(*) o = {{{}}};\n", names.join(", ")))
    }
}
