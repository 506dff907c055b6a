//! One of several requests.

mod gates;
mod shape;

use super::clocked;
use crate::dut::Ports;
use rust_hdl::prelude::*;
pub(crate) use shape::Shape;
use smart_default::SmartDefault;

/// Checks the parameters of a pick among `n` requests with an index of `k` bits.
fn check(n: usize, k: usize) {
    assert!((2..=64).contains(&n), "a pick among {n} requests");
    assert!(1 << k >= n && 1 << (k - 1) < n, "{k} bits are not the index width of {n} requests");
}

/// The lowest of N requests, combinationally.
///
/// Request 0 can starve all others; where each must get its turn use [`RoundRobin`]. N is 2 to 64,
/// K is its index width (the smallest with 2^K >= N).
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct PriorityPick<const N: usize, const K: usize> {
    /// Who asks.
    pub requests: Signal<In, Bits<N>>,
    /// Whether anybody asks.
    pub any: Signal<Out, Bit>,
    /// The lowest that asks; 0 if nobody does.
    pub index: Signal<Out, Bits<K>>,
    /// The same, one-hot; 0 if nobody asks.
    pub grant: Signal<Out, Bits<N>>,
    #[default({ check(N, K); N })]
    _among: usize,
}

impl<const N: usize, const K: usize> PriorityPick<N, K> {
    /// Among the lowest `n` requests, 2 to N; the others are not heard.
    pub fn among(n: usize) -> Self {
        assert!((2..=N).contains(&n), "a pick among {n} of {N} requests");
        Self { _among: n, ..Self::default() }
    }
}

impl<const N: usize, const K: usize> Logic for PriorityPick<N, K> {
    fn update(&mut self) {
        let requests = self.requests.val().to_u64() & all(self._among);
        self.any.next = requests != 0;
        self.index.next = lowest_set(requests).into();
        self.grant.next = (requests & requests.wrapping_neg()).into();
    }

    fn connect(&mut self) {
        self.any.connect();
        self.index.connect();
        self.grant.connect();
    }

    fn hdl(&self) -> Verilog {
        let shape = Shape { requests: N, index_bits: K, among: self._among, in_turn: false };
        Verilog::Custom(shape.gates())
    }
}

/// The index of the lowest 1, or 0.
fn lowest_set(requests: u64) -> u64 {
    if requests == 0 { 0 } else { u64::from(requests.trailing_zeros()) }
}

/// The next of N requests in turn.
///
/// Picks the lowest request above the one that was taken last, else the lowest of all. A request
/// that stays up is picked after at most N - 1 others were taken. The pick is combinational, and
/// may change while it is not taken. N is 2 to 64, K its index width.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct RoundRobin<const N: usize, const K: usize> {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: the turn goes to request 0.
    pub reset: Signal<In, Bit>,
    /// Who asks.
    pub requests: Signal<In, Bits<N>>,
    /// The present pick is taken at the next edge; ignored when nobody asks.
    pub take: Signal<In, Bit>,
    /// Whether anybody asks.
    pub any: Signal<Out, Bit>,
    /// The pick; 0 if nobody asks.
    pub index: Signal<Out, Bits<K>>,
    /// The pick, one-hot; 0 if nobody asks.
    pub grant: Signal<Out, Bits<N>>,
    /// The requests above the one that was taken last.
    #[default({ check(N, K); all(N) })]
    _later: u64,
}

/// N bits of 1.
fn all(n: usize) -> u64 {
    u64::MAX >> (64 - n)
}

impl<const N: usize, const K: usize> RoundRobin<N, K> {
    /// The pick, one-hot.
    fn pick(&self) -> u64 {
        let requests = self.requests.val().to_u64();
        let later = requests & self._later;
        let pool = if later != 0 { later } else { requests };
        pool & pool.wrapping_neg()
    }
}

impl<const N: usize, const K: usize> Logic for RoundRobin<N, K> {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            let grant = self.pick();
            if self.reset.val() {
                self._later = all(N);
            } else if self.take.val() && grant != 0 {
                self._later = all(N) & !(grant | (grant - 1));
            }
        }
        let grant = self.pick();
        self.any.next = grant != 0;
        self.index.next = lowest_set(grant).into();
        self.grant.next = grant.into();
    }

    fn connect(&mut self) {
        self.any.connect();
        self.index.connect();
        self.grant.connect();
    }

    fn hdl(&self) -> Verilog {
        let shape = Shape { requests: N, index_bits: K, among: N, in_turn: true };
        Verilog::Custom(shape.gates())
    }

    fn timing(&self) -> Vec<TimingInfo> {
        clocked("round_robin", &["reset", "requests", "take"], &[])
    }
}
