//! Tables for people: Markdown, with aligned columns.

use std::fmt;

/// A table. Hand-written, since `comfy-table` writes Markdown without the colons that align a
/// column, and these are put into pages. Columns whose cells all begin with a digit, or are `-` for
/// nothing, are right-aligned.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        Table { rows: vec![headings.iter().map(|h| h.to_string()).collect()] }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has not as many cells as there are headings.
    pub fn row(&mut self, cells: impl Into<Vec<String>>) {
        let cells = cells.into();
        assert_eq!(cells.len(), self.rows[0].len(), "a row has a cell for each heading");
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<usize> = (0..self.rows[0].len())
            .map(|column| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
            .collect();
        let is_number = |cell: &String| cell == "-" || cell.starts_with(|c: char| c.is_ascii_digit());
        let right: Vec<bool> =
            (0..widths.len()).map(|column| self.rows[1..].iter().all(|row| is_number(&row[column]))).collect();
        for (number, row) in self.rows.iter().enumerate() {
            write!(f, "|")?;
            for ((cell, &width), &right) in row.iter().zip(&widths).zip(&right) {
                if right { write!(f, " {cell:>width$} |")? } else { write!(f, " {cell:<width$} |")? }
            }
            writeln!(f)?;
            if number == 0 {
                write!(f, "|")?;
                for (&width, &right) in widths.iter().zip(&right) {
                    write!(f, "{}{}|", "-".repeat(width + 1), if right { ":" } else { "-" })?;
                }
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

/// A number with its thousands apart: `1 234 567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// A time in a unit that leaves three digits or so before the point.
pub fn time(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{ns} ns"),
        10_000..10_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

/// A size: a round one as it is meant, any other in a unit that leaves three digits or so before
/// the point.
///
/// `humansize` writes round sizes with decimals, and others with the same number of decimals
/// whatever their size.
pub fn size(bytes: u64) -> String {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    match bytes {
        0..KIB => format!("{bytes} B"),
        _ if bytes.is_multiple_of(MIB) => format!("{} MiB", bytes / MIB),
        _ if bytes < MIB && bytes.is_multiple_of(KIB) => format!("{} KiB", bytes / KIB),
        KIB..10_240 => format!("{bytes} B"),
        10_240..10_485_760 => format!("{:.1} KiB", bytes as f64 / KIB as f64),
        _ => format!("{:.1} MiB", bytes as f64 / MIB as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["name", "n"]);
        table.row(["é".into(), "10".into()]);
        table.row(vec!["-".into(), "-".into()]);
        assert_eq!(table.to_string(), "| name |  n |\n|------|---:|\n| é    | 10 |\n| -    |  - |\n");
    }

    #[test]
    fn quantities_read_well() {
        assert_eq!(grouped(1), "1");
        assert_eq!(grouped(1234567), "1 234 567");
        assert_eq!(grouped(100000), "100 000");
        assert_eq!(time(1500), "1500 ns");
        assert_eq!(time(1_500_000), "1500.0 us");
        let sizes = [64, 4096, 5000, 20480, 20481, 2 << 20, 3 << 19, 19 << 19];
        let shown = ["64 B", "4 KiB", "5000 B", "20 KiB", "20.0 KiB", "2 MiB", "1536.0 KiB", "9728.0 KiB"];
        assert_eq!(sizes.map(size), shown);
    }
}
