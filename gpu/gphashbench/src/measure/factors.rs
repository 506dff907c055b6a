//! What each part of the paper's design brings (figure 9): a warp an operation, keys in the slots,
//! a cache of buckets, one after the other.

use std::time::Duration;

use anyhow::Result;
use nearpm_gphash::{
    CacheOptions, Design, Keys, Layout, Op, Table, level_kernels, level_kernels_alone, level_kernels_alone_wide,
    level_kernels_wide,
};
use nearpm_gpmbench::report::Report;
use nearpm_gpu::Module;

use super::wide_ycsb::Run;
use super::{Bench, Subject, VALUE, WORKLOADS, region};
use crate::skew::Choice;

/// Bytes of a key.
const KEY: u32 = 8;
/// Between the seeds of rounds that warm a cache, and from those to the seeds of what is timed.
const APART: u64 = 1 << 32;

/// A version of the design.
struct Version {
    name: &'static str,
    keys: Keys,
    kernels: Option<fn() -> &'static Module>,
    /// The share of the buckets that is cached.
    cached: f64,
    /// Whether it has one part more than the version before it.
    is_step: bool,
}

/// In the order of the figure, then the one that it does not have. A key that is not in its slot
/// lies behind its value, and the slot has 64 bits that depend on it.
const VERSIONS: [Version; 5] = [
    Version {
        name: "1 neither: a thread an operation, keys beside values",
        keys: Keys::Fixed(KEY),
        kernels: Some(level_kernels_alone_wide),
        cached: 0.0,
        is_step: false,
    },
    Version {
        name: "2 a warp an operation",
        keys: Keys::Fixed(KEY),
        kernels: Some(level_kernels_wide),
        cached: 0.0,
        is_step: true,
    },
    Version {
        name: "3 and keys in the slots",
        keys: Keys::Words,
        kernels: Some(level_kernels),
        cached: 0.0,
        is_step: true,
    },
    Version { name: "4 and a cache of 20 %", keys: Keys::Words, kernels: None, cached: 0.2, is_step: true },
    Version {
        name: "a thread an operation, keys in the slots",
        keys: Keys::Words,
        kernels: Some(level_kernels_alone),
        cached: 0.0,
        is_step: false,
    },
];

pub fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let (mut before, mut gains): (Option<Vec<f64>>, Vec<(String, f64)>) = (None, Vec::new());
    for version in &VERSIONS {
        let (names, rates): (Vec<String>, Vec<f64>) = of(bench, version, report)?.into_iter().unzip();
        if let Some(before) = before.filter(|_| version.is_step) {
            let gain = |((name, rate), before): ((&String, &f64), f64)| {
                (format!("{name}: {}", version.name), 100.0 * (rate / before - 1.0))
            };
            gains.extend(names.iter().zip(&rates).zip(before).map(gain));
        }
        before = Some(rates);
    }
    for (name, gain) in gains {
        report.value("parts of the paper's design: what each brings", name, gain, "%", None);
    }
    Ok(())
}

fn of(bench: &Bench, version: &Version, report: &mut Report) -> Result<Vec<(String, f64)>> {
    let pairs: u32 = bench.pick(300, 1 << 21);
    let subject = Subject { name: version.name, design: Design::Levels, holes: 0 };
    // Room for what D inserts.
    let layout = Layout { keys: version.keys, ..subject.layout(bench, u64::from(pairs) * 10 / 7, VALUE) };
    let region = region(bench, &layout)?;
    drop(Table::create(&region, "table", &layout, 1)?);
    let table = match version.kernels {
        Some(kernels) => Table::open_with(&region, "table", kernels())?,
        None => Table::open_cached(&region, "table", CacheOptions::share(&layout, version.cached))?,
    };
    let mut run = Run::new(bench, &table, KEY);
    let most = subject.most_updates(&layout).min(bench.pick(64, 1 << 16));
    let mut load = Vec::new();
    for first in (0..pairs).step_by(most as usize) {
        load.push(run.batch(&vec![Op::Insert; most.min(pairs - first) as usize], Choice::Latest, 0)?);
    }
    let group = format!("parts of the paper's design: {pairs} pairs, keys of {KEY} B, values of {VALUE} B");
    let mut rates = Vec::new();
    let mut rate = |name: &str, size: u32, operations: u32, times: &[Duration]| {
        let (millions, name) = (f64::from(operations) / 1e6, format!("{name}, batches of {size}"));
        let row = format!("{name}: {}", version.name);
        report.rate(&group, &*row, millions, "M/s", times, None);
        rates.push((name, report.find(&group, &row).unwrap_or(f64::NAN)));
    };
    rate("LOAD", most, pairs, &[load.iter().sum()]);
    for size in bench.pick([32, 64], [1 << 12, 1 << 16]) {
        for (number, (name, reads, other, choice)) in WORKLOADS.into_iter().enumerate() {
            let seed = 1000 * u64::from(size) + 100 * number as u64;
            if version.cached > 0.0 {
                // The cache comes to have what is popular: from other operations than those timed.
                for round in 1..=bench.pick(1, 6) {
                    run.workload((reads, other, choice), size, seed + round * APART)?;
                }
            }
            rate(name, size, size, &run.workload((reads, other, choice), size, seed)?);
        }
    }
    run.read_all(most)?;
    Ok(rates)
}
