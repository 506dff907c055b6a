//! Predictions beside what the paper publishes, for people and for the page.

use std::fmt::Write as _;

use anyhow::Result;
use maud::{Markup, html};

use super::comparisons::BASELINE;
use super::tables::{predictions, tables};
use crate::published::MECHANISMS;
use crate::recovery::Recoveries;
use crate::results::Record;
use crate::summary::Summary;

/// The tables as Markdown, for which the micro-benchmarks are run, and how fast the simulator was.
///
/// # Errors
/// If a profile is wrong, or a micro-benchmark fails.
pub fn text(records: &[Record], recoveries: &[Recoveries]) -> Result<String> {
    let summary = Summary::new(records);
    let mut text = String::from(
        "All times are simulated: the host model and the transaction-level card with the profiles' values, or the card's RTL where it says RTL cycles; nothing was measured on a card.\n",
    );
    writeln!(text, "{BASELINE}")?;
    for table in tables(&summary, recoveries)? {
        write!(text, "\n{}:\n\n{}", table.title, table.markdown())?;
    }
    let on_rtl = super::beside_the_model(records);
    if !on_rtl.rows.is_empty() {
        write!(text, "\n{}:\n\n{}", on_rtl.title, on_rtl.markdown())?;
    }
    writeln!(text, "\nAmdahl's law on the paper's own figures:")?;
    for published in MECHANISMS {
        let [one, _, delayed] = published.whole;
        writeln!(
            text,
            "- {}: {} % of the time, regions {} times faster: {:.2} (at most {:.2}); it reports {one} and {delayed}.",
            published.name,
            published.share,
            published.region,
            published.amdahl(),
            published.ceiling(),
        )?;
    }
    writeln!(text, "\n{}", speed(records))?;
    Ok(text)
}

/// How fast the simulator was, over all results of the model: by processor time, which does not
/// depend on what else the machine had to do.
pub fn speed(records: &[Record]) -> String {
    let records: Vec<&Record> = records.iter().filter(|record| record.case.device.is_model()).collect();
    let sum = |value: fn(&Record) -> f64| records.iter().copied().map(value).sum::<f64>();
    let (simulated_ns, cpu_s) = (sum(|record| record.outcome.ns), sum(|record| record.cpu_s));
    let transactions = sum(|record| record.outcome.transactions as f64);
    format!(
        "The simulator: {} cases, {transactions:.0} transactions, {:.0} ms of simulated time, in {cpu_s:.0} s of processor time, making and checking of pools included: \
         {:.0} transactions and {:.0} us a second of one processor.",
        records.len(),
        simulated_ns / 1e6,
        transactions / cpu_s,
        simulated_ns / 1e3 / cpu_s,
    )
}

/// The comparison as a section of the page.
pub fn section(summary: &Summary) -> Markup {
    html! {
        section id="published" {
            h2 { "Predictions beside what the paper publishes" }
            p {
                "Each deviation is printed as it is; nothing was tuned to these figures. " (BASELINE) " The best CPU path of this library logs all ranges under one fence and is as durable."
            }
            (predictions(summary).html())
            h2 { "Amdahl's law on the paper's own figures" }
            div class="wide" {
                table {
                    tr { th { "" } th { "share" } th { "regions" } th { "so whole programs" } th { "at most" } th { "it reports, one device" } th { "delayed" } }
                    @for p in MECHANISMS {
                        tr {
                            td { (p.name) } td { (p.share) " %" } td { (p.region) }
                            td { (format!("{:.2}", p.amdahl())) } td { (format!("{:.2}", p.ceiling())) }
                            td { (p.whole[0]) } td { (p.whole[2]) }
                        }
                    }
                }
            }
        }
    }
}
