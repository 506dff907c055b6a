//! The Verilog of picks: as gates, which is what becomes hardware, and as a simulator executes it
//! fastest.

use super::super::{index_of, low_bits, widened};
use super::gates::Tree;

/// Which pick a module is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shape {
    /// Bits of the port `requests`.
    pub requests: usize,
    /// Bits of the port `index`.
    pub index_bits: usize,
    /// The requests that are heard, from the lowest.
    pub among: usize,
    /// Whether the requests take turns ([`RoundRobin`](super::RoundRobin)) or the lowest always
    /// goes first ([`PriorityPick`](super::PriorityPick)).
    pub in_turn: bool,
}

impl Shape {
    /// The shape that a module of generated Verilog has, if it is a pick.
    pub fn of(module: &str) -> Option<Self> {
        let bits = |declared: &str, name: &str| {
            let mut lines = module.lines().map(str::trim);
            lines.find_map(|line| width(line.strip_prefix(declared)?.strip_suffix(name)?.trim()))
        };
        let among = module.lines().find_map(|line| line.trim().strip_prefix("wire [")?.split_once(":0] low_a0 = "));
        Some(Self {
            requests: bits("input wire ", " requests;")?,
            index_bits: bits("output reg ", " index;")?,
            among: among?.0.parse::<usize>().ok()? + 1,
            in_turn: bits("input wire ", " take;").is_some(),
        })
    }

    /// Trees of gates: of few levels, and of many operations for a simulator.
    pub fn gates(self) -> String {
        if self.in_turn { self.gates_in_turn() } else { self.gates_of_priority() }
    }

    fn gates_of_priority(self) -> String {
        let Self { requests: all, index_bits, among: n, .. } = self;
        let heard_bits = n.next_power_of_two().ilog2() as usize;
        let requests = low_bits("requests", all, n);
        let Tree { text, any, index, blocked } = Tree::new("low", &requests, n, heard_bits);
        format!(
            "{text}always @(*) begin\n\
             \x20   any = {any};\n\
             \x20   index = {index};\n\
             \x20   grant = {grant};\n\
             end\n",
            index = widened(&index, heard_bits, index_bits),
            grant = widened(&format!("{requests} & ~{blocked}"), n, all),
        )
    }

    fn gates_in_turn(self) -> String {
        let Self { requests: n, index_bits, .. } = self;
        let above = Tree::new("high", "requests & later", n, index_bits);
        let all = Tree::new("low", "requests", n, index_bits);
        format!(
            "reg [{top}:0] later;\n\
             initial later = {{{n}{{1'b1}}}};\n\
             {above_text}{all_text}\
             wire [{top}:0] lower = {above_any} ? {above_lower} : {all_lower};\n\
             always @(*) begin\n\
             \x20   any = {any};\n\
             \x20   grant = {above_any} ? (requests & later & ~{above_lower}) : (requests & ~{all_lower});\n\
             \x20   index = {above_any} ? {above_index} : {all_index};\n\
             end\n\
             always @(posedge clock)\n\
             \x20   if (reset) later <= {{{n}{{1'b1}}}};\n\
             \x20   else if (take & any) later <= lower;\n",
            top = n - 1,
            above_text = above.text,
            above_any = above.any,
            above_lower = above.blocked,
            above_index = above.index,
            all_text = all.text,
            any = all.any,
            all_lower = all.blocked,
            all_index = all.index,
        )
    }

    /// The same by arithmetic on whole words: the lowest set bit of a number is what it has in
    /// common with its negative.
    pub fn behaviour(self) -> String {
        let Self { requests: n, index_bits, among, in_turn } = self;
        let top = n - 1;
        let (state, pool) = if in_turn {
            let state = format!(
                "reg [{top}:0] later;\ninitial later = {{{n}{{1'b1}}}};\nwire [{top}:0] above = requests & later;\n"
            );
            (state, "(|above) ? above : requests".to_owned())
        } else {
            (String::new(), widened(&low_bits("requests", n, among), among, n))
        };
        let step = if in_turn {
            format!(
                "always @(posedge clock)\n\
                 \x20   if (reset) later <= {{{n}{{1'b1}}}};\n\
                 \x20   else if (take & any) later <= ~(one | (one - {n}'d1));\n"
            )
        } else {
            String::new()
        };
        format!(
            "{state}wire [{top}:0] pool = {pool};\n\
             wire [{top}:0] one = pool & (~pool + {n}'d1);\n\
             always @(*) begin\n\
             \x20   any = |pool;\n\
             \x20   index = {{ {index} }};\n\
             \x20   grant = one;\n\
             end\n{step}",
            index = index_of("one", n, index_bits),
        )
    }
}

/// Bits of a declared range; one where there is none.
fn width(range: &str) -> Option<usize> {
    if range.is_empty() {
        return Some(1);
    }
    Some(range.strip_prefix('[')?.strip_suffix(":0]")?.parse::<usize>().ok()? + 1)
}
