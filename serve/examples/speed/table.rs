//! Tables of what was measured.

use statrs::statistics::{Data, Median, Statistics};

use crate::record::{Cell, Pair, Record};
use crate::servers::Level;

fn median(values: impl Iterator<Item = f64>) -> f64 {
    Data::new(values.collect::<Vec<_>>()).median()
}

/// Prints a table of a level, and its means.
pub fn print(level: Level, record: &Record) {
    let cells = record.cells(level);
    if cells.is_empty() {
        return;
    }
    let pairs = cells.iter().map(|cell| record.of(cell).count()).max().unwrap_or(0);
    println!("\n{}: requests in a second, medians of {pairs} pairs\n", level.title());
    println!("| work | bytes | clients | pipeline | stock | ours | ratio | least to greatest |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    let mut ratios = Vec::new();
    for cell in cells {
        let ratio = median(record.of(cell).map(Pair::ratio));
        ratios.push(ratio);
        row(cell, record, ratio);
    }
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let (mean, geometric) = ((&ratios).mean(), (&ratios).geometric_mean());
    println!("\nratio of {} cells: mean {mean:.2}, geometric mean {geometric:.2}, least {least:.2}", ratios.len());
}

fn row(cell: &Cell, record: &Record, ratio: f64) {
    let (stock, ours) = (median(record.of(cell).map(|p| p.stock)), median(record.of(cell).map(|p| p.ours)));
    let all = || record.of(cell).map(Pair::ratio);
    let (least, greatest) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    let Cell { work, bytes, clients, pipeline, .. } = cell;
    println!(
        "| {work} | {bytes} | {clients} | {pipeline} | {stock:.0} | {ours:.0} | {ratio:.2} | {least:.2} to {greatest:.2} |"
    );
}
