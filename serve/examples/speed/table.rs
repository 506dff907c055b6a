//! Tables of what was measured.

use nearpm_statistics::{Figure, Statistics, median};

use crate::record::{Cell, Pair, Record};
use crate::servers::Level;

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
        let of_pairs: Vec<f64> = record.of(cell).map(Pair::ratio).collect();
        let Some(ratio) = Figure::of(&of_pairs) else { continue };
        ratios.push(ratio.median);
        row(cell, record, ratio);
    }
    let (mean, geometric, least) = ((&ratios).mean(), (&ratios).geometric_mean(), (&ratios).min());
    println!("\nratio of {} cells: mean {mean:.2}, geometric mean {geometric:.2}, least {least:.2}", ratios.len());
}

fn row(cell: &Cell, record: &Record, Figure { median: ratio, min: least, max: greatest }: Figure) {
    let (stock, ours) = (median(record.of(cell).map(|p| p.stock)), median(record.of(cell).map(|p| p.ours)));
    let Cell { work, bytes, clients, pipeline, .. } = cell;
    println!(
        "| {work} | {bytes} | {clients} | {pipeline} | {stock:.0} | {ours:.0} | {ratio:.2} | {least:.2} to {greatest:.2} |"
    );
}
