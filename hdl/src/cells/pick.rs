//! One of several requests.

use super::{clocked, low_bits, widened};
use rust_hdl::prelude::*;

/// Checks the parameters of a pick among `n` requests with an index of `k` bits.
fn check(n: usize, k: usize) {
    assert!((2..=64).contains(&n), "a pick among {n} requests");
    assert!(1 << k >= n && 1 << (k - 1) < n, "{k} bits are not the index width of {n} requests");
}

/// Bits that one LUT level of a [`Tree`] looks at together.
const RADIX: usize = 4;

/// The lowest set bit of a net, found in groups of four, of groups of four, and so on: two LUT levels a step where a chain of
/// multiplexers takes one for each few requests.
struct Tree {
    /// Verilog that declares the nets below.
    text: String,
    /// Net: some bit is set.
    any: String,
    /// Net of K bits: the index of the lowest; 0 when there is none.
    index: String,
    /// Net of N bits: a lower one is set.
    blocked: String,
}

impl Tree {
    /// Over the `n` bits of the net `from`; all names start with `name`.
    fn new(name: &str, from: &str, n: usize, k: usize) -> Self {
        let mut text = format!("wire [{}:0] {name}_a0 = {from};\n", n - 1);
        let mut width = n;
        let mut widths = vec![n];
        let mut level = 0;
        while width > 1 {
            level += 1;
            text += &Self::level(name, level, width);
            width = width.div_ceil(RADIX);
            widths.push(width);
        }
        for level in (0..widths.len() - 1).rev() {
            text += &Self::blocks(name, level, widths[level], level + 2 == widths.len());
        }
        text += &format!("wire [{}:0] {name}_index = {name}_i{level}_0[{}:0];\n", k - 1, k - 1);
        Tree { text, any: format!("{name}_a{level}"), index: format!("{name}_index"), blocked: format!("{name}_b0") }
    }

    /// `any` of each group, and the index of its lowest within it.
    fn level(name: &str, level: usize, width: usize) -> String {
        let below = level - 1;
        let groups = width.div_ceil(RADIX);
        let bit = |i: usize| if i < width { format!("{name}_a{below}[{i}]") } else { "1'b0".into() };
        let inner = |i: usize| if i < width { format!("{name}_i{below}_{i}") } else { format!("{}'d0", 2 * below) };
        let mut text = String::new();
        let mut anys = Vec::new();
        for group in 0..groups {
            let [a, b, c, d] = std::array::from_fn(|i| bit(RADIX * group + i));
            anys.push(format!("{a} | {b} | {c} | {d}"));
            let net = format!("{name}_i{level}_{group}");
            text += &format!("wire [1:0] {net}s = {{ ~{a} & ~{b} & ({c} | {d}), ~{a} & ({b} | ~{c} & {d}) }};\n");
            let [e, f, g, h] = std::array::from_fn(|i| inner(RADIX * group + i));
            let rest = format!("{net}s[1] ? ({net}s[0] ? {h} : {g}) : ({net}s[0] ? {f} : {e})");
            let rest = if below == 0 { String::new() } else { format!(", {rest}") };
            text += &format!("wire [{}:0] {net} = {{ {net}s{rest} }};\n", 2 * level - 1);
        }
        anys.reverse();
        text += &format!("wire [{}:0] {name}_a{level} = {{ {} }};\n", groups - 1, anys.join(", "));
        text
    }

    /// Whether a lower bit is set: one of the same group, or of a lower group.
    fn blocks(name: &str, level: usize, width: usize, last: bool) -> String {
        let lower = |i: usize| {
            let mut terms: Vec<String> = (i - i % RADIX..i).map(|j| format!("{name}_a{level}[{j}]")).collect();
            if !last {
                terms.push(format!("{name}_b{}[{}]", level + 1, i / RADIX));
            }
            if terms.is_empty() { "1'b0".to_string() } else { terms.join(" | ") }
        };
        let bits: Vec<String> = (0..width).rev().map(lower).collect();
        format!("wire [{}:0] {name}_b{level} = {{ {} }};\n", width - 1, bits.join(", "))
    }
}

/// The lowest of N requests, combinationally.
///
/// Request 0 can starve all others; where each must get its turn use [`RoundRobin`]. N is 2 to 64, K
/// is its index width (the smallest with 2^K >= N).
#[derive(LogicBlock)]
pub struct PriorityPick<const N: usize, const K: usize> {
    /// Who asks.
    pub requests: Signal<In, Bits<N>>,
    /// Whether anybody asks.
    pub any: Signal<Out, Bit>,
    /// The lowest that asks; 0 if nobody does.
    pub index: Signal<Out, Bits<K>>,
    /// The same, one-hot; 0 if nobody asks.
    pub grant: Signal<Out, Bits<N>>,
    _among: usize,
}

impl<const N: usize, const K: usize> Default for PriorityPick<N, K> {
    fn default() -> Self {
        check(N, K);
        Self {
            requests: Default::default(),
            any: Default::default(),
            index: Default::default(),
            grant: Default::default(),
            _among: N,
        }
    }
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
        let n = self._among;
        let index_bits = n.next_power_of_two().ilog2() as usize;
        let requests = low_bits("requests", N, n);
        let Tree { text, any, index, blocked } = Tree::new("low", &requests, n, index_bits);
        Verilog::Custom(format!(
            "{text}always @(*) begin\n\
             \x20   any = {any};\n\
             \x20   index = {index};\n\
             \x20   grant = {grant};\n\
             end\n",
            index = widened(&index, index_bits, K),
            grant = widened(&format!("{requests} & ~{blocked}"), n, N),
        ))
    }
}

/// The index of the lowest 1, or 0.
fn lowest_set(requests: u64) -> u64 {
    if requests == 0 { 0 } else { u64::from(requests.trailing_zeros()) }
}

crate::dut_ports!([const N: usize, const K: usize] PriorityPick<N, K> { requests, any, index, grant });

/// The next of N requests in turn.
///
/// Picks the lowest request above the one that was taken last, else the lowest of all. A request
/// that stays up is picked after at most N - 1 others were taken. The pick is combinational, and may
/// change while it is not taken. N is 2 to 64, K its index width.
#[derive(LogicBlock)]
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
    _later: u64,
}

/// N bits of 1.
fn all(n: usize) -> u64 {
    u64::MAX >> (64 - n)
}

impl<const N: usize, const K: usize> Default for RoundRobin<N, K> {
    fn default() -> Self {
        check(N, K);
        Self {
            clock: Default::default(),
            reset: Default::default(),
            requests: Default::default(),
            take: Default::default(),
            any: Default::default(),
            index: Default::default(),
            grant: Default::default(),
            _later: all(N),
        }
    }
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
        let above = Tree::new("high", "requests & later", N, K);
        let all = Tree::new("low", "requests", N, K);
        Verilog::Custom(format!(
            "reg [{top}:0] later;\n\
             initial later = {{{N}{{1'b1}}}};\n\
             {above_text}{all_text}\
             wire [{top}:0] lower = {above_any} ? {above_lower} : {all_lower};\n\
             always @(*) begin\n\
             \x20   any = {any};\n\
             \x20   grant = {above_any} ? (requests & later & ~{above_lower}) : (requests & ~{all_lower});\n\
             \x20   index = {above_any} ? {above_index} : {all_index};\n\
             end\n\
             always @(posedge clock)\n\
             \x20   if (reset) later <= {{{N}{{1'b1}}}};\n\
             \x20   else if (take & any) later <= lower;\n",
            top = N - 1,
            above_text = above.text,
            above_any = above.any,
            above_lower = above.blocked,
            above_index = above.index,
            all_text = all.text,
            any = all.any,
            all_lower = all.blocked,
            all_index = all.index,
        ))
    }

    fn timing(&self) -> Vec<TimingInfo> {
        clocked("round_robin", &["reset", "requests", "take"], &[])
    }
}

crate::dut_ports!([const N: usize, const K: usize] RoundRobin<N, K> {
    clock, reset, requests, take, any, index, grant
});
