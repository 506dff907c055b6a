//! A figure as text.

use std::fmt;

/// A bar of each program.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Row {
    /// What was run.
    pub label: String,
    /// A value a program.
    pub values: Vec<f64>,
    /// What the paper's text says.
    pub published: &'static str,
}

impl Row {
    /// Arithmetic mean.
    pub fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    /// The largest value.
    pub fn most(&self) -> f64 {
        self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Geometric mean; there is none where a value is not above zero.
    pub fn geometric(&self) -> Option<f64> {
        let logarithms = self.values.iter().map(|value| value.ln()).sum::<f64>();
        self.values.iter().all(|&value| value > 0.0).then(|| (logarithms / self.values.len() as f64).exp())
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
            let geometric = row.geometric().map_or("-".into(), |mean| format!("{mean:.3}"));
            writeln!(f, " {:.3} | {geometric} | {:.3} | {} |", row.mean(), row.most(), row.published)?;
        }
        Ok(())
    }
}
