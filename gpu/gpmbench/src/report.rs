//! Results: measured values with what they were measured on, as JSON and as a table.

use std::fmt::Write as _;
use std::time::Duration;

use nearpm_statistics::Figure;
use serde::{Deserialize, Serialize};

/// One value.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// What was measured together.
    pub group: String,
    /// What it is.
    pub name: String,
    /// The median.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// The smallest and the largest of the repeats.
    pub range: (f64, f64),
    /// Repeats.
    pub repeats: usize,
    /// What was aimed at, as it is written.
    pub aim: Option<String>,
}

/// All values of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The day of the run, where somebody has noted it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub date: String,
    /// The device's name.
    pub device: String,
    /// How times were taken: measured on a device, or predicted by the interpreter's cost model.
    pub times: String,
    /// What PM was made of.
    pub memory: String,
    /// The values.
    pub rows: Vec<Row>,
    /// What went wrong; the other values stand.
    pub failures: Vec<String>,
}

impl Report {
    /// Adds a value per second: `work` done in each of `times`.
    pub fn rate(
        &mut self,
        group: &str,
        name: impl Into<String>,
        work: f64,
        unit: &str,
        times: &[Duration],
        aim: Option<&str>,
    ) {
        let values = times.iter().map(|time| work / time.as_secs_f64()).collect();
        self.add(group, name.into(), values, unit, aim);
    }

    /// Adds a time in milliseconds.
    pub fn time(&mut self, group: &str, name: impl Into<String>, times: &[Duration], aim: Option<&str>) {
        let values = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        self.add(group, name.into(), values, "ms", aim);
    }

    /// Adds the time of one of `rounds` steps, in microseconds.
    pub fn step(&mut self, group: &str, name: impl Into<String>, times: &[Duration], rounds: u32, aim: Option<&str>) {
        let values = times.iter().map(|time| time.as_secs_f64() * 1e6 / f64::from(rounds)).collect();
        self.add(group, name.into(), values, "us", aim);
    }

    /// Adds a value that was made of others.
    pub fn value(&mut self, group: &str, name: impl Into<String>, value: f64, unit: &str, aim: Option<&str>) {
        self.add(group, name.into(), vec![value], unit, aim);
    }

    fn add(&mut self, group: &str, name: String, values: Vec<f64>, unit: &str, aim: Option<&str>) {
        let Some(Figure { median: value, min: low, max: high }) = Figure::of(&values) else { return };
        let row = Row {
            group: group.to_owned(),
            name,
            value,
            unit: unit.to_owned(),
            range: (low, high),
            repeats: values.len(),
            aim: aim.map(str::to_owned),
        };
        eprintln!("{}: {} {:.4} {}", row.group, row.name, row.value, row.unit);
        self.rows.push(row);
    }

    /// The median of a value, if it is there.
    pub fn find(&self, group: &str, name: &str) -> Option<f64> {
        self.rows.iter().find(|row| row.group == group && row.name == name).map(|row| row.value)
    }

    /// The values as a table.
    pub fn table(&self) -> String {
        let mut text = format!("{}; times: {}; PM: {}\n", self.device, self.times, self.memory);
        let width = self.rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
        let mut group = "";
        for row in &self.rows {
            if row.group != group {
                group = &row.group;
                let _ = writeln!(text, "\n{group}");
            }
            let aim = row.aim.as_deref().map(|aim| format!("   aim {aim}")).unwrap_or_default();
            let range = match row.repeats {
                1 => String::new(),
                repeats => format!("   ({:.4} to {:.4}, {repeats} repeats)", row.range.0, row.range.1),
            };
            let _ = writeln!(text, "  {:<width$}  {:>12.4} {}{range}{aim}", row.name, row.value, row.unit);
        }
        for failure in &self.failures {
            let _ = writeln!(text, "\nFAILED: {failure}");
        }
        text
    }
}
