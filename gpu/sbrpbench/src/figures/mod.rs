//! Figures 6 to 11 of the paper, and what our improvements add, each from runs of the six programs.

mod bars;
mod published;
mod runs;
mod table;

use anyhow::Result;

use crate::programs::Size;
pub use runs::Runs;
pub use table::{Row, Table};

/// Figures that there are: 12 is ours.
pub const FIGURES: std::ops::RangeInclusive<u32> = 6..=12;

/// A figure as a table, beside what the paper's text says. Runs that are not in `runs` are made,
/// and added.
///
/// # Errors
/// No such figure or family, a run that went wrong, or a record that cannot be written.
pub fn figure(number: u32, family: &str, size: Size, runs: &mut Runs) -> Result<Table> {
    let plan = bars::of(number, family)?;
    let all = runs.all(plan.names, size, &plan.bars)?;
    let row = |(label, shows): (String, bars::Shows)| Row {
        values: all.iter().map(|program| shows.value(program)).collect(),
        parts: matches!(shows, bars::Shows::Scopes(..)),
        published: published::of(number, &label),
        label,
    };
    Ok(Table {
        title: published::title(number).to_string(),
        columns: plan.names.iter().map(ToString::to_string).collect(),
        rows: plan.rows.into_iter().map(row).collect(),
    })
}
