//! How a figure is printed.

use std::fmt;

/// A figure: a head of columns, rows, and what the paper says.
pub(super) struct Table {
    pub title: String,
    pub paper: &'static str,
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(title: impl Into<String>, paper: &'static str, head: &[&str]) -> Table {
        let head = head.iter().map(|name| (*name).to_owned()).collect();
        Table { title: title.into(), paper, head, rows: Vec::new() }
    }

    pub fn row(&mut self, name: impl Into<String>, cells: impl IntoIterator<Item = String>) {
        self.rows.push(std::iter::once(name.into()).chain(cells).collect());
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({"title": self.title, "paper": self.paper, "head": self.head, "rows": self.rows})
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = || std::iter::once(&self.head).chain(&self.rows);
        let width = |column: usize| lines().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max();
        writeln!(out, "{}", self.title)?;
        for line in lines() {
            for (column, cell) in line.iter().enumerate() {
                let width = width(column).unwrap_or(0);
                if column == 0 { write!(out, "  {cell:<width$}")? } else { write!(out, "  {cell:>width$}")? }
            }
            writeln!(out)?;
        }
        writeln!(out, "  paper: {}", self.paper)
    }
}

/// Nanoseconds as microseconds.
pub(super) fn micros(nanoseconds: f64) -> String {
    format!("{:.2}", nanoseconds / 1000.0)
}

/// A ratio in percent, or as a factor.
pub(super) fn ratio(ratio: f64) -> String {
    if ratio >= 2.0 { format!("{ratio:.1} x") } else { format!("{:.1} %", 100.0 * ratio) }
}
