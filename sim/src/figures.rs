//! The card's own figures as a table: latency of undo logs, sustained copy, logs a second.
//!
//! Each row gives the figure, the aim where there is one, and the ceiling that the memory model
//! sets, so that a miss shows its distance from what is possible.

use std::time::Instant;

use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::memory_ports::MemoryPorts;

use crate::bench::{self, BenchPool, CardBench};
use crate::core::CardCore;
use crate::ddr4::Config;
use crate::ddr4::measure::copy_bandwidth;

/// Sizes of the undo logs whose latency is taken, in bytes.
pub const LATENCY_BYTES: [u32; 5] = [64, 256, 1024, 4096, 16384];
/// The pool of the figures: its object half is larger than all open rows of the memory together.
pub const POOL: BenchPool = BenchPool { bytes: 8 << 20, ring: 4 << 20, ring_bytes: 4 << 20 };

/// Figures of one card at one clock.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Clock of the card.
    pub mhz: u64,
    /// Nanoseconds from a load's address at the port to its data, on an idle card.
    pub load_ns: f64,
    /// (bytes, nanoseconds from acceptance to the completion record at the port), medians.
    pub latency_ns: Vec<(u32, f64)>,
    /// Copied bytes a nanosecond with 16 KiB undo logs posted without waiting.
    pub copy_gb_per_s: f64,
    /// Millions of 64-byte undo logs a second, posted without waiting.
    pub small_logs_million_per_s: f64,
    /// Copied bytes a nanosecond that the memory model alone allows, as [`copy_ceiling`] says.
    pub copy_ceiling_gb_per_s: f64,
    /// Simulated card cycles per second of wall-clock time while the figures were taken.
    pub simulated_cycles_per_s: f64,
}

/// Takes the figures of the cards that `power_up` makes, one for each measurement, with a channel
/// behind each memory port.
pub fn take(mhz: u64, memory_ports: MemoryPorts, mut power_up: impl FnMut() -> Box<dyn CardCore>) -> Figures {
    let started = Instant::now();
    let mut bench = CardBench::open(power_up(), POOL);
    let period_ps = bench.card.period_ps();
    let load_ns = (bench::load_latency(&mut bench) * period_ps) as f64 / 1000.0;
    let mut cycles = bench.card.cycle();
    let mut bench = CardBench::open(power_up(), POOL);
    let latency_ns = LATENCY_BYTES
        .map(|bytes| {
            let cycles = bench::undo_latency(&mut bench, POOL, bytes, 33);
            (bytes, (cycles * period_ps) as f64 / 1000.0)
        })
        .to_vec();
    cycles += bench.card.cycle();
    let mut bench = CardBench::open(power_up(), POOL);
    let copy_gb_per_s = bench::undo_rate(&mut bench, POOL, 16384, 200).gb_per_s(period_ps);
    cycles += bench.card.cycle();
    let mut bench = CardBench::open(power_up(), POOL);
    let small_logs_million_per_s = bench::undo_rate(&mut bench, POOL, 64, 2000).million_per_s(period_ps);
    cycles += bench.card.cycle();
    Figures {
        mhz,
        load_ns,
        latency_ns,
        copy_gb_per_s,
        small_logs_million_per_s,
        copy_ceiling_gb_per_s: copy_ceiling(mhz, memory_ports) / 1e9,
        simulated_cycles_per_s: cycles as f64 / started.elapsed().as_secs_f64(),
    }
}

/// Copied bytes a second that the memory allows a card at `mhz`: 32 lines a direction on each
/// channel, and at most the one line a cycle each way that the card's data path carries.
fn copy_ceiling(mhz: u64, memory_ports: MemoryPorts) -> f64 {
    let channels = memory_ports.count() as f64 * copy_bandwidth(Config::default(), mhz, 32, 64);
    channels.min((LINE_U64 * mhz * 1_000_000) as f64)
}

/// The figures as a Markdown table, one column a clock. `origin` names the card that they come
/// from.
pub fn markdown(origin: &str, columns: &[Figures]) -> String {
    let mut out = format!("| figure ({origin}) | aim |");
    let mut row = |name: String, aim: &str, cell: &dyn Fn(&Figures) -> String| {
        let cells: Vec<String> = columns.iter().map(cell).collect();
        out.push_str(&format!("\n| {name} | {aim} | {} |", cells.join(" | ")));
    };
    row("load of a line, address to data, idle card".into(), "", &|f| format!("{:.0} ns", f.load_ns));
    for (i, bytes) in LATENCY_BYTES.iter().enumerate() {
        let aim = if *bytes == 64 { "at most 185 ns at 300 MHz" } else { "" };
        row(format!("undo log of {bytes} B, acceptance to completion record"), aim, &|f| {
            format!("{:.0} ns", f.latency_ns[i].1)
        });
    }
    row("sustained copy, 16 KiB undo logs".into(), "at least 8 GB/s", &|f| format!("{:.2} GB/s", f.copy_gb_per_s));
    row("share of what the memory model allows".into(), "at least 90 %", &|f| {
        format!("{:.0} % of {:.2} GB/s", 100.0 * f.copy_gb_per_s / f.copy_ceiling_gb_per_s, f.copy_ceiling_gb_per_s)
    });
    row("64 B undo logs".into(), "30 million/s", &|f| format!("{:.1} million/s", f.small_logs_million_per_s));
    let heads: String = columns.iter().map(|f| format!(" {} MHz |", f.mhz)).collect();
    let rule = format!("\n|---|---|{}", "---|".repeat(columns.len()));
    let first = out.find('\n').unwrap_or(out.len());
    out.insert_str(first, &format!("{heads}{rule}"));
    out.push('\n');
    out
}
