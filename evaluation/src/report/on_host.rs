//! The programs on a processor, measured: tables of what [`crate::on_host`] has given.

use std::collections::BTreeSet;

use maud::{Markup, html};
use nearpm::Mechanism;
use nearpm_statistics::Statistics;
use nearpm_workloads::programs::Inputs;

use super::table::{MISSING, Table, head, short, whole};
use crate::case::Configuration;
use crate::on_host::{BESIDE, ORIGIN, Row};

/// What makes them again.
const COMMAND: &str = "nearpm bench --native --pool FOLDER --survives WHAT";

/// A way to crash consistency: a mechanism of the library, or what stands beside those.
type Way = (Mechanism, Configuration);

fn way(row: &Row) -> Way {
    (row.mechanism, row.configuration)
}

/// Ways that were run.
fn ways(rows: &[Row]) -> Vec<Way> {
    let mechanisms = Mechanism::ALL.map(|mechanism| (mechanism, Configuration::Cpu));
    let all = mechanisms.into_iter().chain(BESIDE);
    all.filter(|wanted| rows.iter().any(|row| way(row) == *wanted)).collect()
}

fn name((mechanism, configuration): Way) -> &'static str {
    match configuration {
        Configuration::Lean => "lean undo",
        Configuration::WorkingCopy => "working copy",
        _ => mechanism.name(),
    }
}

/// A median, with the least and the most.
fn spread(numbers: [f64; 3], shown: fn(f64) -> String) -> String {
    let [median, least, most] = numbers.map(shown);
    format!("{median} ({least}..{most})")
}

/// Nanoseconds, with a digit behind the point where they are few.
fn ns(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { whole(value) }
}

/// A ratio, without digits behind the point where it is large.
fn ratio(value: f64) -> String {
    if value < 100.0 { short(value) } else { whole(value) }
}

/// Each program without crash consistency, and how many times as long it takes with each way to it;
/// and what these cost on average over the programs.
pub fn on_host(rows: &[Row]) -> [Table; 2] {
    [by_program(rows), by_mechanism(rows)]
}

fn by_program(rows: &[Row]) -> Table {
    let ways = ways(rows);
    let has_seeds = rows.iter().any(|row| row.seed != rows[0].seed);
    let row = |bare: &Row| {
        let of = |wanted: Way| {
            let is_it = |row: &&Row| {
                let what = |row: &Row| (row.program, row.inputs, row.seed);
                way(row) == wanted && what(row) == what(bare)
            };
            let row = rows.iter().find(is_it);
            row.map_or(MISSING.into(), |row| spread([row.over_bare, row.least_over_bare, row.most_over_bare], ratio))
        };
        let seed = if has_seeds { format!(", seed {}", bare.seed) } else { String::new() };
        let cells = [
            format!("{}, {}{seed}", bare.program.name(), bare.inputs.name()),
            spread([bare.ns_per_transaction, bare.least_ns, bare.most_ns], ns),
        ];
        cells.into_iter().chain(ways.iter().map(|&way| of(way))).collect()
    };
    let names = ways.iter().map(|&way| name(way));
    Table {
        name: "natively",
        title: "Natively: bare in ns a transaction, and the time of each way to crash consistency over it; median (least..most) of the rounds",
        head: head(["program, inputs", "bare, ns"].into_iter().chain(names)),
        rows: rows.iter().filter(|row| row.is_bare()).map(row).collect(),
    }
}

fn by_mechanism(rows: &[Row]) -> Table {
    let mut cells = Vec::new();
    for wanted in ways(rows) {
        for inputs in Inputs::ALL {
            let is_it = |row: &&Row| way(row) == wanted && row.inputs == inputs;
            let with: Vec<&Row> = rows.iter().filter(is_it).collect();
            if with.is_empty() {
                continue;
            }
            let of_all = |of: fn(&Row) -> f64| with.iter().map(move |row| of(row));
            let mean = |of: fn(&Row) -> f64| of_all(of).mean();
            cells.push(vec![
                format!("{}, {}", name(wanted), inputs.name()),
                ratio(mean(|row| row.over_bare)),
                ratio(of_all(|row| row.over_bare).geometric_mean()),
                format!("{:.1} %", 100.0 * mean(|row| 1.0 - 1.0 / row.over_bare)),
                short(mean(|row| row.log_entries)),
                short(mean(|row| row.shadow_pages)),
                short(mean(|row| row.fences)),
                short(mean(|row| row.lines_written_back)),
            ]);
        }
    }
    Table {
        name: "natively mechanisms",
        title: "Natively: means over the programs, counts a transaction",
        head: head([
            "mechanism, inputs",
            "over bare: mean",
            "geometric mean",
            "share of crash consistency",
            "log entries",
            "shadow pages",
            "fences",
            "lines written back",
        ]),
        rows: cells,
    }
}

/// What these rows are, in sentences.
pub fn described(rows: &[Row]) -> String {
    let all =
        |of: fn(&Row) -> &str| rows.iter().map(of).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join("; ");
    let rounds: BTreeSet<String> = rows.iter().map(|row| row.rounds.to_string()).collect();
    let shares = rows.iter().map(|row| row.processor_share);
    let least = shares.fold(1.0, f64::min);
    format!(
        "{ORIGIN} on {}: pools in files on {}, durable by {}; no card, and no persistent memory unless the file lies in it. {} rounds in turn behind one that warms up; \
         each case had a processor for at least {:.0} % of its median round. Program of commit {}.",
        all(|row| &row.machine),
        all(|row| &row.file_system),
        all(|row| &row.durable_by),
        rounds.into_iter().collect::<Vec<_>>().join("; "),
        100.0 * least,
        all(|row| &row.commit),
    )
}

/// The section of the page.
pub fn section(rows: &[Row]) -> Markup {
    html! {
        section id="natively" {
            h2 { "Natively" }
            p { strong { "These alone are measured" } ", in wall-clock time. They are " (described(rows)) " Command: " code { (COMMAND) } "." }
            @for table in on_host(rows) {
                h3 { (table.title) }
                (table.html())
            }
        }
    }
}
