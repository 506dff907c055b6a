//! A table of results, and how its cells are written.

use maud::{Markup, html};

/// What stands for a value that nobody has run.
pub(super) const MISSING: &str = "not available";

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name in the documentation.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Headings.
    pub head: Vec<String>,
    /// Rows of as many cells.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// As Markdown, with nothing around it.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule = format!("|{}\n", "---|".repeat(self.head.len()));
        [line(&self.head), rule].into_iter().chain(self.rows.iter().map(|row| line(row))).collect()
    }

    /// The same table without columns in which nothing was run. One without rows stays as it is.
    pub fn of_what_was_run(mut self) -> Table {
        let is_kept = |column: &usize| self.rows.is_empty() || self.rows.iter().any(|row| row[*column] != MISSING);
        let kept: Vec<usize> = (0..self.head.len()).filter(is_kept).collect();
        let of = |cells: &[String]| kept.iter().map(|&column| cells[column].clone()).collect();
        (self.head, self.rows) = (of(&self.head), self.rows.iter().map(|row| of(row)).collect());
        self
    }

    /// As HTML, in a frame that scrolls.
    pub fn html(&self) -> Markup {
        html! {
            div class="wide" {
                table {
                    tr { @for heading in &self.head { th { (heading) } } }
                    @for row in &self.rows { tr { @for cell in row { td { (cell) } } } }
                }
            }
        }
    }
}

/// Headings.
pub(super) fn head<T: Into<String>>(cells: impl IntoIterator<Item = T>) -> Vec<String> {
    cells.into_iter().map(Into::into).collect()
}

/// A number without decimals, with its thousands apart.
pub(super) fn whole(value: f64) -> String {
    nearpm_text::grouped(value.round() as u64)
}

/// A number with two decimals, or fewer where it is large.
pub(super) fn short(value: f64) -> String {
    match value {
        v if v >= 9.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}
