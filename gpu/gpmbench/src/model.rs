//! The cost model beside a card: what the interpreter predicts from counted transactions, and what
//! was measured.

use std::fmt::Write as _;
use std::rc::Rc;

use anyhow::{Context, Result};
use nearpm_gpu::Interpreted;
use nearpm_ptx::{CostModel, Counts, Translation};

use crate::measure::{self, Bench, Scale};
use crate::pattern::pattern;
use crate::report::Report;

/// A value of both.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Its name in the card's results.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Measured on the card.
    pub card: f64,
    /// Predicted.
    pub model: f64,
    /// Why the model does not hold for it, where it does not.
    pub outside: Option<&'static str>,
}

impl Compared {
    /// How far the model is off, in percent of the card's value.
    pub fn off(&self) -> f64 {
        (self.model / self.card - 1.0) * 100.0
    }
}

/// A value on the interpreter, and on a card.
struct Pair {
    group: &'static str,
    here: &'static str,
    there: &'static str,
    /// So many times as much is done on the card, where the value is a time.
    times: f64,
    outside: Option<&'static str>,
}

const STREAM: &str = "Stream";
const LOGS: &str = "Logs of 16 B entries (figure 11)";
const ONE: &str = "HCL one fence (12 B + seal 4 B), 512 threads";
const TWO: &str = "HCL two fences (16 B + tail 4 B), 512 threads";
const FEW: &str = "few threads: each waits for its fence, about 1 us, and the link idles";
const SORTED: &str = "by the wall, with a sort and launches, which take no time here: 4 to 24 % from run to run";
const SELECTED: &str =
    "besides the link it selects rows in the GPU's memory and changes them there, which takes no time here";

const fn held(group: &'static str, here: &'static str, there: &'static str) -> Pair {
    Pair { group, here, there, times: 1.0, outside: None }
}

const fn outside(group: &'static str, here: &'static str, there: &'static str, why: &'static str) -> Pair {
    Pair { group, here, there, times: 1.0, outside: Some(why) }
}

/// What runs on both. The model is of throughput: that of as many threads as the link needs.
const PAIRS: [Pair; 25] = [
    held(STREAM, "persist, 4 x 64 threads, 16 B each", "persist, 132 x 1024 threads, 16 B each"),
    held(STREAM, "persist, 4 x 64 threads, 16 B each", "persist, 1056 x 256 threads, 16 B each"),
    held(STREAM, "8 B persists, 64 threads", "8 B persists, 262144 threads"),
    held(STREAM, "8 B persists, 64 threads", "8 B persists, 65536 threads"),
    held(LOGS, ONE, "HCL one fence (12 B + seal 4 B), 262144 threads"),
    held(LOGS, ONE, "HCL one fence (12 B + seal 4 B), 65536 threads"),
    held(LOGS, ONE, "HCL one fence (12 B + seal 4 B), 16384 threads"),
    held(LOGS, TWO, "HCL two fences (16 B + tail 4 B), 262144 threads"),
    held(LOGS, TWO, "HCL two fences (16 B + tail 4 B), 65536 threads"),
    held(LOGS, TWO, "HCL two fences (16 B + tail 4 B), 16384 threads"),
    held(LOGS, "best conventional, head in PM", "best conventional, head in PM, 262144 threads"),
    held(LOGS, "best conventional, head in PM", "best conventional, head in PM, 65536 threads"),
    held(LOGS, "best conventional, head in PM", "best conventional, head in PM, 16384 threads"),
    held(LOGS, "best conventional, head in HBM", "best conventional, head in HBM, 262144 threads"),
    held(LOGS, "best conventional, head in HBM", "best conventional, head in HBM, 65536 threads"),
    held(LOGS, "best conventional, head in HBM", "best conventional, head in HBM, 16384 threads"),
    held("gpDB", "2000 rows of 64 B inserted (I)", "50000000 rows of 64 B inserted (I)"),
    Pair {
        group: "Checkpoint",
        here: "64 KiB, with digest, sealed",
        there: "256 MiB, with digest, sealed",
        times: 4096.0,
        outside: None,
    },
    outside(
        "gpKVS",
        "300 SETs with undo, table 64 KiB, end to end",
        "2097152 SETs with undo, table 4 GiB, end to end",
        SORTED,
    ),
    outside(STREAM, "8 B persists, 64 threads", "8 B persists, 16384 threads", FEW),
    outside(STREAM, "8 B persists, 64 threads", "8 B persists, 4096 threads", FEW),
    outside(STREAM, "8 B persists, 64 threads", "8 B persists, 1024 threads", FEW),
    outside(LOGS, ONE, "HCL one fence (12 B + seal 4 B), 1024 threads", FEW),
    outside(LOGS, TWO, "HCL two fences (16 B + tail 4 B), 1024 threads", FEW),
    outside("gpDB", "a twentieth of the rows updated (U)", "a twentieth of the rows updated (U)", SELECTED),
];

/// Random persists: the group, a name on a card, and bytes gone through. The memory of a process is
/// too small for them, so that only what the translation makes of their addresses is run.
const RANDOM: &str = "Random persists of 32 B";
const OVER: [(&str, u64); 2] = [("as they come, over 512 MiB", 512 << 20), ("as they come, over 8192 MiB", 8 << 30)];
/// Random persists that are drawn.
const DRAWN: u32 = 400_000;

/// Millions of persists of 32 bytes a second at random places of `bytes` bytes.
pub fn random_persists(bytes: u64) -> f64 {
    let (mut counts, mut translation) = (Counts::default(), Translation::default());
    let mut draw = |number: u32| {
        let word = u64::from(pattern(number, 1)) << 32 | u64::from(pattern(number, 2));
        translation.access(word % (bytes / 32) * 32, &mut counts);
    };
    // The first fill what the card holds.
    (0..DRAWN / 8).for_each(&mut draw);
    let before = counts;
    let mut draw = |number: u32| {
        let word = u64::from(pattern(number, 1)) << 32 | u64::from(pattern(number, 2));
        translation.access(word % (bytes / 32) * 32, &mut counts);
    };
    (DRAWN..2 * DRAWN).for_each(&mut draw);
    counts.translation_misses -= before.translation_misses;
    counts.walk_misses -= before.walk_misses;
    counts.pm_stores.up_to_32 = DRAWN.into();
    f64::from(DRAWN) / CostModel::default().nanoseconds(&counts) * 1e3
}

/// What of a card's results the model predicts.
///
/// # Errors
/// A measurement on the interpreter that fails; results that miss a value.
pub fn compare(card: &Report) -> Result<Vec<Compared>> {
    let bench = Bench { device: Rc::new(Interpreted::new(1 << 28)), scale: Scale::Small, repeats: 1 };
    let mut predicted = Report::default();
    for name in ["stream", "logs", "kvs", "db", "checkpoint"] {
        measure::run(&bench, name, &mut predicted);
    }
    if let Some(failure) = predicted.failures.first() {
        anyhow::bail!("on the interpreter: {failure}");
    }
    let row = |report: &Report, group: &str, begins: &str| {
        report.rows.iter().find(|row| row.group == group && row.name.starts_with(begins)).cloned()
    };
    let mut all = Vec::new();
    for Pair { group, here, there, times, outside } in PAIRS {
        // Older results have not all of them.
        let Some(found) = row(card, group, there) else { continue };
        let here = row(&predicted, group, here).with_context(|| format!("no {group}: {here}"))?;
        let (name, unit) = (format!("{group}: {}", found.name), found.unit);
        all.push(Compared { name, unit, card: found.value, model: here.value * times, outside });
    }
    anyhow::ensure!(!all.is_empty(), "the results have nothing that the model predicts");
    for (name, bytes) in OVER {
        let Some(found) = row(card, RANDOM, name) else { continue };
        let (name, unit) = (format!("{RANDOM}: {name}"), found.unit);
        all.push(Compared { name, unit, card: found.value, model: random_persists(bytes), outside: None });
    }
    Ok(all)
}

/// The same as a table.
///
/// # Errors
/// As for [`compare`].
pub fn table(card: &Report) -> Result<String> {
    let mut text = format!("{}; the model is that of the interpreter, nothing was measured for it\n\n", card.device);
    for compared in compare(card)? {
        let Compared { name, unit, card, model, outside } = &compared;
        let why = outside.map(|why| format!("   outside of the model: {why}")).unwrap_or_default();
        let _ = writeln!(text, "{name:<92} {card:>10.2} {model:>10.2} {unit:<8} {:>+6.1} %{why}", compared.off());
    }
    Ok(text)
}
