//! A figure as text, for terminals: a bar a line.
//!
//! Hand-written, since crates for terminals (`textplots`) draw curves over a numbered axis, and
//! these are bars of named groups with limits.

use std::fmt::Write;

use super::svg::{Chart, Panel, Series, number};

/// Columns of the longest bar.
const WIDEST: usize = 36;

/// The bar of a value: eighths of a column, so that small differences are seen.
fn bar(value: f64, most: f64, is_limit: bool) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (value.clamp(0.0, most) / most * (WIDEST * 8) as f64).round() as usize;
    if is_limit { "░".repeat(eighths / 8) } else { "█".repeat(eighths / 8) + EIGHTHS[eighths % 8] }
}

/// The largest value that is drawn whole: what is beyond every card ends at the edge, as in the
/// drawing.
fn most(chart: &Chart) -> f64 {
    let series = chart.panels.iter().flat_map(|panel| &panel.series).filter(|series| !series.is_limit);
    let values = series.flat_map(|series| series.values.iter().flatten()).map(|mean| mean.value);
    values.chain(chart.published.iter().map(|(_, value)| *value)).fold(f64::MIN_POSITIVE, f64::max)
}

fn row(text: &mut String, width: usize, name: &str, value: f64, most: f64, is_limit: bool) {
    let beyond = if value > most { "→" } else { "" };
    let _ = writeln!(text, "  {name:width$}  {}{beyond} {}", bar(value, most, is_limit), number(value));
}

impl Chart {
    /// The chart as lines of text. Groups that have no value are left out.
    pub(super) fn text(&self) -> String {
        let names = self.panels.iter().flat_map(|panel| &panel.series).map(|series| &series.name);
        let names = names.chain(self.published.iter().map(|(name, _)| name));
        let width = names.map(|name| name.chars().count()).max().unwrap_or_default();
        let most = most(self);
        let mut text = format!("{}\n", self.unit);
        for Panel { name, series } in &self.panels {
            if !name.is_empty() {
                let _ = writeln!(text, "\n{name}");
            }
            for (place, group) in self.groups.iter().enumerate() {
                let value = |series: &Series| series.values.get(place).copied().flatten().map(|mean| mean.value);
                if series.iter().all(|series| value(series).is_none()) {
                    continue;
                }
                let _ = writeln!(text, "{group}");
                for one in series {
                    if let Some(value) = value(one) {
                        row(&mut text, width, &one.name, value, most, one.is_limit);
                    }
                }
            }
        }
        if !self.published.is_empty() {
            text.push('\n');
        }
        self.published.iter().for_each(|(name, value)| row(&mut text, width, name, *value, most, false));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::svg::Form;
    use crate::summary::Mean;

    #[test]
    fn bars_are_as_long_as_their_values() {
        let known = |value| Some(Mean { value, deviation: None });
        let chart = Chart {
            title: String::new(),
            form: Form::Bars,
            unit: "times as fast".to_owned(),
            groups: vec!["btree".to_owned(), "tatp".to_owned()],
            panels: Panel::only(vec![
                Series::new("card", vec![known(2.0), None]),
                Series::new("limit", vec![known(9.0), None]).into_limit(),
            ]),
            published: vec![("paper".to_owned(), 1.0)],
        };
        let text = chart.text();
        let long = |name: &str| {
            let line = text.lines().find(|line| line.trim_start().starts_with(name)).expect("it has a line");
            line.chars().filter(|c| "█░".contains(*c)).count()
        };
        assert_eq!((long("card"), long("paper"), long("limit")), (WIDEST, WIDEST / 2, WIDEST));
        assert!(text.contains("→ 9.00") && !text.contains("tatp"), "{text}");
    }

    #[test]
    fn eighths_of_a_column_are_seen() {
        // An eighth of a column is 1 / 288 of the longest bar.
        for (value, drawn) in [(0.0, ""), (1.0 / 288.0, "▏"), (4.0 / 288.0, "▌"), (9.0 / 288.0, "█▏")] {
            assert_eq!(bar(value, 1.0, false), drawn, "{value}");
        }
        assert_eq!(bar(2.0, 1.0, false).chars().count(), WIDEST, "what is beyond the scale ends at the edge");
    }
}
