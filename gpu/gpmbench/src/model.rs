//! The cost model beside a card: what the interpreter predicts from counted transactions, and what was measured.

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
}

impl Compared {
    /// How far the model is off, in percent of the card's value.
    pub fn off(&self) -> f64 {
        (self.model / self.card - 1.0) * 100.0
    }
}

/// Group and name of a value on the interpreter, and its name on a card, where so many threads run that throughput is the limit.
const SAME: [(&str, &str, &str); 6] = [
    ("Stream", "persist, 4 x 64 threads, 16 B each", "persist, 1056 x 256 threads, 16 B each"),
    ("Stream", "8 B persists, 64 threads", "8 B persists, 262144 threads"),
    ("Stream", "8 B persists, 64 threads", "8 B persists, 65536 threads"),
    (
        "Logs of 16 B entries (figure 11)",
        "HCL one fence (12 B + seal 4 B), 512 threads",
        "HCL one fence (12 B + seal 4 B), 262144 threads",
    ),
    (
        "Logs of 16 B entries (figure 11)",
        "HCL one fence (12 B + seal 4 B), 512 threads",
        "HCL one fence (12 B + seal 4 B), 16384 threads",
    ),
    (
        "Logs of 16 B entries (figure 11)",
        "HCL two fences (16 B + tail 4 B), 512 threads",
        "HCL two fences (16 B + tail 4 B), 262144 threads",
    ),
];

/// Random persists: the group, a name on a card, and bytes gone through. The memory of a process is too small for them, so that only what the
/// translation makes of their addresses is run.
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
    measure::run(&bench, &["stream".to_owned(), "logs".to_owned()], &mut predicted);
    if let Some(failure) = predicted.failures.first() {
        anyhow::bail!("on the interpreter: {failure}");
    }
    let measured = |group: &str, name: &str| {
        let row = card.rows.iter().find(|row| row.group == group && row.name == name);
        row.with_context(|| format!("the results have no {group}: {name}"))
    };
    let mut all = Vec::new();
    for (group, here, there) in SAME {
        let row = measured(group, there)?;
        let model = predicted.find(group, here).with_context(|| format!("no {group}: {here}"))?;
        all.push(Compared { name: format!("{group}: {there}"), unit: row.unit.clone(), card: row.value, model });
    }
    for (name, bytes) in OVER {
        let row = measured(RANDOM, name)?;
        let (name, unit) = (format!("{RANDOM}: {name}"), row.unit.clone());
        all.push(Compared { name, unit, card: row.value, model: random_persists(bytes) });
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
        let Compared { name, unit, card, model } = &compared;
        let _ = writeln!(text, "{name:<76} {card:>10.2} {model:>10.2} {unit:<6} {:>+6.1} %", compared.off());
    }
    Ok(text)
}
