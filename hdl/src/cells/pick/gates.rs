//! The lowest of many bits as gates.

/// Bits that one LUT level of a [`Tree`] looks at together.
const RADIX: usize = 4;

/// The lowest set bit of a net, found in groups of four, of groups of four, and so on: two LUT
/// levels a step where a chain of multiplexers takes one for each few requests.
pub(super) struct Tree {
    /// Verilog that declares the nets below.
    pub text: String,
    /// Net: some bit is set.
    pub any: String,
    /// Net of K bits: the index of the lowest; 0 when there is none.
    pub index: String,
    /// Net of N bits: a lower one is set.
    pub blocked: String,
}

impl Tree {
    /// Over the `n` bits of the net `from`; all names start with `name`.
    pub fn new(name: &str, from: &str, n: usize, k: usize) -> Self {
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
