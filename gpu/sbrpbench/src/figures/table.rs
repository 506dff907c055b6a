//! A figure as text.

use std::fmt;

use nearpm_statistics::Statistics;

/// A bar of each program.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Row {
    /// What was run.
    pub label: String,
    /// A value a program.
    pub values: Vec<f64>,
    /// Whether the values are parts of something.
    pub parts: bool,
    /// What the paper's text says.
    pub published: &'static str,
}

impl Row {
    /// Arithmetic mean; there is none of parts of a gain where a program's is no part: below zero,
    /// or more than all.
    pub fn mean(&self) -> Option<f64> {
        let is_part = |value: &f64| (0.0..=1.0).contains(value);
        let is = if self.parts {
            self.values.iter().all(is_part)
        } else {
            self.values.iter().all(|value| value.is_finite())
        };
        is.then(|| (&self.values).mean())
    }

    /// The largest value.
    pub fn most(&self) -> f64 {
        self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Geometric mean; there is none where a value is not above zero, or no arithmetic one.
    pub fn geometric(&self) -> Option<f64> {
        self.mean().filter(|_| self.values.iter().all(|&value| value > 0.0))?;
        Some((&self.values).geometric_mean())
    }
}

/// A figure.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// The programs.
    pub columns: Vec<String>,
    /// The bars.
    pub rows: Vec<Row>,
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# {}\n", self.title)?;
        write!(f, "| simulated cycles |")?;
        self.columns.iter().try_for_each(|column| write!(f, " {column} |"))?;
        writeln!(f, " mean | geometric mean | most | the paper's text |")?;
        writeln!(f, "|---|{}---|---|---|---|", "---|".repeat(self.columns.len()))?;
        for row in &self.rows {
            write!(f, "| {} |", row.label)?;
            row.values.iter().try_for_each(|value| write!(f, " {value:.3} |"))?;
            let told = |mean: Option<f64>| mean.map_or("none".to_string(), |mean| format!("{mean:.3}"));
            let (mean, geometric) = (told(row.mean()), told(row.geometric()));
            writeln!(f, " {mean} | {geometric} | {:.3} | {} |", row.most(), row.published)?;
        }
        for row in self.rows.iter().filter(|row| row.mean().is_none()) {
            writeln!(f, "\n{}: no mean, as not every program has a part of a gain.", row.label)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[f64], parts: bool) -> Row {
        Row { label: "row".to_string(), values: values.to_vec(), parts, published: "" }
    }

    #[test]
    fn there_is_no_mean_of_what_is_no_part() {
        assert_eq!(row(&[0.5, 1.0], true).mean(), Some(0.75));
        for values in [[0.5, -2.3], [0.5, 1.5], [0.5, f64::NAN], [0.5, f64::INFINITY]] {
            let row = row(&values, true);
            assert_eq!((row.mean(), row.geometric()), (None, None), "{values:?}");
            let table =
                Table { title: "t".to_string(), columns: vec!["a".to_string(), "b".to_string()], rows: vec![row] };
            let text = table.to_string();
            assert!(text.contains("| none | none |") && text.contains("row: no mean"), "{text}");
        }
        // Speed-ups may be more than 1, and a mean of what is zero has no logarithm.
        assert_eq!(row(&[1.0, 4.0], false).geometric(), Some(2.0));
        let with_zero = row(&[0.0, 4.0], false);
        assert_eq!((with_zero.mean(), with_zero.geometric()), (Some(2.0), None));
        assert_eq!(row(&[f64::NAN, 4.0], false).mean(), None);
    }
}
