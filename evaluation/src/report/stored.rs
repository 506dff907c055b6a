//! Which results are stored, and by which commit's program each was made.

use std::collections::{BTreeMap, BTreeSet};

use super::table::{Table, head, whole};
use crate::results::Record;
use crate::stored;

/// The commits that gave a table's results: that of most, and for each other one how many cases it
/// gave, of which configurations and mechanisms.
fn commits(records: &[Record]) -> String {
    let mut of: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    for record in records {
        of.entry(&record.commit).or_default().push(record);
    }
    let mut commits: Vec<(&str, Vec<&Record>)> = of.into_iter().collect();
    commits.sort_by_key(|(_, records)| std::cmp::Reverse(records.len()));
    let named = |records: &[&Record], name: fn(&Record) -> &'static str| {
        records.iter().map(|record| name(record)).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
    };
    let said = commits.iter().enumerate().map(|(number, (commit, records))| match number {
        0 => format!("`{commit}`"),
        _ => format!(
            "`{commit}`: {} cases ({}; {})",
            records.len(),
            named(records, |record| record.case.configuration.name()),
            named(records, |record| record.case.mechanism.name())
        ),
    });
    said.collect::<Vec<_>>().join("; ")
}

/// A row for each table of results: what was run, how much, and by which program.
pub fn stored(tables: &[(stored::Table, Vec<Record>)]) -> Table {
    let row = |(table, records): &(stored::Table, Vec<Record>)| {
        let cpu_s = records.iter().map(|record| record.cpu_s).sum();
        vec![
            format!("[`{0}.csv`](../evaluation/results/{0}.csv)", table.name),
            table.what.to_owned(),
            whole(records.len() as f64),
            commits(records),
            format!("{} s", whole(cpu_s)),
        ]
    };
    Table {
        name: "stored",
        title: "Stored results",
        head: head(["results", "what was run", "cases", "by the program of commit", "processor time"]),
        rows: tables.iter().map(row).collect(),
    }
}
