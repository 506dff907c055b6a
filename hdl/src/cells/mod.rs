//! Leaf cells: what rust-hdl lacks or does too slowly.
//!
//! | cell | guarantees | bound |
//! |---|---|---|
//! | [`Register`] | flip-flops with synchronous reset and enable | 1 to 1024 bits |
//! | [`ByteRam`] | block RAM with byte enables, read latency 1, old data on a clash | 1 write, 1 read port |
//! | [`AsyncRam`] | distributed RAM, read in the same cycle | 1 write, R read ports |
//! | [`Widen`], [`Concat`], [`Gather`] | widths that add up | checked when the cell is made |
//! | [`PriorityPick`] | the lowest set bit | 2 to 64 requests |
//! | [`RoundRobin`] | the next set bit in turn, nobody starves | 2 to 64 requests |
//! | [`OneHotMux`] | the input that a one-hot selects | 2 to 64 inputs |
//! | [`Fifo`] | show-ahead queue with a count | 2^K entries |
//! | [`Reorder`] | answers in the order in which they were asked for | 2^K places |
//! | [`Crc32cBlock`] | CRC-32C of 64 bytes a cycle | latency 3 |
//!
//! Each is one Verilog module with a model of it in Rust beside it. Memories and queues keep their
//! state inside the module on purpose: rust-hdl's generator slows down faster than linearly with
//! the number of module instances. All memories start as 0 in both, as FPGA memories do.

mod async_ram;
mod byte_ram;
pub(crate) mod crc32c_block;
mod fifo;
mod join;
mod one_hot_mux;
pub(crate) mod pick;
mod register;
mod reorder;

pub use async_ram::AsyncRam;
pub use byte_ram::ByteRam;
pub use crc32c_block::Crc32cBlock;
pub use fifo::Fifo;
pub use join::{Concat, Gather, Widen};
pub use one_hot_mux::OneHotMux;
pub use pick::{PriorityPick, RoundRobin};
pub use register::Register;
pub use reorder::Reorder;

use rust_hdl::core::timing::TimingInfo;

/// The timing entry of a cell whose clock is `clock`.
pub(crate) fn clocked(name: &str, inputs: &[&str], outputs: &[&str]) -> Vec<TimingInfo> {
    let list = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
    vec![TimingInfo { name: name.into(), clock: "clock".into(), inputs: list(inputs), outputs: list(outputs) }]
}

/// Verilog of the lowest `n` of the `width` bits of a net or port.
pub(crate) fn low_bits(name: &str, width: usize, n: usize) -> String {
    if n == width { name.to_owned() } else { format!("{name}[{}:0]", n - 1) }
}

/// Verilog of `n` bits of a value, with as many zeros above them as make it `width` bits.
pub(crate) fn widened(value: &str, n: usize, width: usize) -> String {
    if n == width { value.to_owned() } else { format!("{{ {}'d0, {value} }}", width - n) }
}

/// Verilog of the index, of `k` bits, of the only bit that is set in a net of `n` bits; 0 where
/// none is. In the other direction, bits are set by masks (`1 << index`) wherever a path is long:
/// synthesis makes an adder and a shift of an assignment to a bit with a variable index.
pub(crate) fn index_of(one_hot: &str, n: usize, k: usize) -> String {
    let bit = |k: usize| {
        let mask = (0..n).filter(|i| i >> k & 1 == 1).fold(0u64, |mask, i| mask | 1 << i);
        format!("|({one_hot} & {n}'h{mask:x})")
    };
    (0..k).rev().map(bit).collect::<Vec<_>>().join(", ")
}

/// Verilog that makes nets of `width` bits zero of which only the lowest `n` are assigned; nothing
/// where those are all.
pub(crate) fn zeroed(names: &[&str], n: usize, width: usize) -> String {
    if n == width { String::new() } else { names.iter().map(|name| format!(" {name} = {width}'d0;")).collect() }
}

/// A memory declaration `mem` of `entries` words that start as 0. Verilog's `initial` is what FPGA
/// tools turn into the memory's start value.
fn memory(style: &str, width: usize, entries: usize) -> String {
    format!(
        "(* ram_style = \"{style}\" *) reg [{top}:0] mem [0:{last}];\n\
         integer start;\n\
         initial for (start = 0; start < {entries}; start = start + 1) mem[start] = {width}'d0;\n",
        top = width - 1,
        last = entries - 1,
    )
}
