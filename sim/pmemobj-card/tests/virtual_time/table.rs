//! Tables of what insertions take, in Markdown.

use crate::{Taken, Way};

/// Maps, and what an insertion takes by each way.
pub type Rows = [(&'static str, Vec<(Way, Taken)>)];

/// The least of a map's ways by the processor, or of those by the card.
pub fn best<'r>(row: &'r [(Way, Taken)], executor: &str) -> &'r (Way, Taken) {
    let ways = row.iter().filter(|(way, _)| way.executor == executor);
    ways.min_by(|(_, one), (_, other)| one.ns().total_cmp(&other.ns())).expect("both are measured")
}

/// The best way by the processor over the best by the card.
pub fn ratio(row: &[(Way, Taken)]) -> f64 {
    best(row, "cpu").1.ns() / best(row, "card").1.ns()
}

/// A number without a fraction, with spaces between thousands.
pub fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if text.ends_with(|last: char| last.is_ascii_digit()) && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// What closing the pool takes more for an insertion, of all ways of all maps.
pub fn closing(rows: &Rows) -> String {
    let mut text = head("closing", &rows.iter().map(|(map, _)| *map).collect::<Vec<&str>>());
    for (number, (way, _)) in rows[0].1.iter().enumerate() {
        let label = format!("{}, {}", way.mechanism, way.executor);
        text += &line(&label, rows.iter().map(|(_, row)| grouped(row[number].1.closing_ns)));
    }
    text
}

/// A line of a table.
pub fn line(label: &str, cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<String> = cells.into_iter().collect();
    format!("| {label} | {} |\n", cells.join(" | "))
}

/// A table with these columns behind the first, without its lines.
pub fn head(label: &str, columns: &[&str]) -> String {
    let mut text = line(label, columns.iter().map(|&column| column.to_owned()));
    text += &format!("|---|{}\n", "---:|".repeat(columns.len()));
    text
}

/// All ways of all maps.
pub fn by_way(rows: &Rows) -> String {
    let mut text = head("way", &rows.iter().map(|(map, _)| *map).collect::<Vec<&str>>());
    for (number, (way, _)) in rows[0].1.iter().enumerate() {
        let cell = |(_, taken): &(Way, Taken)| {
            let [computer, instructions] = [taken.in_computer_ns, taken.of_instructions_ns()];
            let [all, computer, instructions] = [taken.ns(), computer, instructions].map(grouped);
            format!("{all} ({computer} + {instructions}; {:.1})", taken.commands)
        };
        let label = format!("{}, {}", way.mechanism, way.executor);
        text += &line(&label, rows.iter().map(|(_, row)| cell(&row[number])));
    }
    text + &line("best CPU / best card", rows.iter().map(|(_, row)| format!("{:.2}", ratio(row))))
}

/// The means of the maps' ratios.
pub fn means(rows: &Rows) -> String {
    let ratios = rows.iter().map(|(_, row)| ratio(row));
    let mean = ratios.clone().sum::<f64>() / rows.len() as f64;
    let geometric = (ratios.map(f64::ln).sum::<f64>() / rows.len() as f64).exp();
    format!("best CPU / best card: mean {mean:.2}, geometric mean {geometric:.2}")
}
