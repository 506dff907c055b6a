//! The report: figures with their origin, and one page that needs nothing else.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use nearpm_sim::profile::EMBEDDED;

use crate::compute::Compute;
use crate::on_host::Row;
use crate::plan::{OURS, PAPER, WINDOWS};
use crate::recovery::{self, Recoveries};
use crate::results::{FOLDER, Record};
use crate::summary::Summary;

mod beyond;
mod columns;
mod comparisons;
mod figures;
mod findings;
mod on_host;
mod on_rtl;
mod profiles;
mod stored;
mod svg;
mod table;
mod tables;
mod terminal;
mod text;

pub use comparisons::{Average, Comparison, comparisons};
pub use on_host::{described, on_host};
pub use on_rtl::{beside_the_model, copies};
pub use stored::stored;
use svg::Chart;
pub use table::Table;
pub use tables::tables;
pub use text::{speed, text};

/// A figure.
pub struct Figure {
    /// Name of its file and its anchor.
    pub id: String,
    /// Heading.
    pub title: String,
    /// What the paper publishes of it in its text.
    pub published: String,
    /// What no card could go beyond, and how that is found; nothing where there is no such bound.
    pub limit: Option<String>,
    /// What its values are: simulated with which profile, or computed from what.
    pub origin: String,
    /// What makes it again.
    pub command: String,
    /// What is to be seen, and what is not.
    pub remark: String,
    chart: Chart,
}

impl Figure {
    /// The figure as an SVG file, with what the page has around it: it may be looked at where the
    /// page is not.
    pub fn file(&self) -> String {
        let limit = self.limit.as_ref().map(|limit| format!("limit: {limit}"));
        let notes = [format!("paper: {}", self.published)].into_iter().chain(limit).chain([
            format!("origin: {}", self.origin),
            format!("command: {}", self.command),
            self.remark.clone(),
        ]);
        self.chart.file(&self.title, &notes.collect::<Vec<String>>())
    }

    /// The figure for a terminal, with what the paper says of it.
    pub fn text(&self) -> String {
        format!("{}, {}\n\npaper: {}\norigin: {}\n", self.title, self.chart.text(), self.published, self.origin)
    }

    fn section(&self) -> Markup {
        html! {
            section id=(self.id) {
                h2 { (self.title) }
                div class="wide" { div class="chart" { (self.chart.drawing()) } }
                (self.chart.legend())
                dl {
                    dt { "paper" } dd { (self.published) }
                    @if let Some(limit) = &self.limit { dt { "limit" } dd { (limit) } }
                    dt { "origin" } dd { (self.origin) }
                    dt { "command" } dd { code { (self.command) } }
                }
                p { (self.remark) }
                (self.chart.table())
            }
        }
    }
}

/// The command that makes every result again: with the seeds, the profiles and the folder that it
/// was given.
fn command(summary: &Summary) -> String {
    let mut bench = String::from(if summary.share() == 1 { "nearpm bench --full" } else { "nearpm bench" });
    if !summary.has_its_own_seeds() {
        bench.push_str(&format!(" --seeds {}", summary.seeds()));
    }
    // The plan has all that are known by name, and no others.
    let profiles = summary.profiles();
    let planned: BTreeSet<&str> = EMBEDDED.iter().map(|(name, _)| *name).filter(|n| !WINDOWS.contains(n)).collect();
    let profiles: BTreeSet<&str> = profiles.into_iter().filter(|name| !WINDOWS.contains(name)).collect();
    if profiles != planned {
        bench.push_str(&format!(" --profiles {}", profiles.into_iter().collect::<Vec<_>>().join(",")));
    }
    let place = summary.place().display().to_string();
    let is_table = summary.place().extension().is_some_and(|extension| extension == "csv");
    let (of_bench, of_report) = match place.as_str() {
        "" | FOLDER => Default::default(),
        _ if is_table => (format!(" --csv {place}"), format!(" --results {place}")),
        _ => (format!(" --results {place}"), format!(" --results {place}")),
    };
    format!("{bench}{of_bench} && nearpm report{of_report}")
}

/// The recoveries of this project's card, which figures and text show.
///
/// # Errors
/// If the profile is wrong, or a recovery is.
pub fn recoveries() -> Result<Vec<Recoveries>> {
    recovery::all(&profile(OURS)?)
}

/// Every figure that the results have enough for.
///
/// # Errors
/// If a profile of the figures is wrong, or the micro-benchmark fails.
pub fn figures(records: &[Record], recoveries: &[Recoveries]) -> Result<Vec<Figure>> {
    let summary = Summary::new(records);
    let mut all = figures::all(&summary)?;
    all.extend(beyond::all(&summary, recoveries)?);
    Ok(all)
}

/// The page, with what was measured natively.
///
/// # Errors
/// If the stored compute times, a profile or the written findings are wrong.
pub fn page(records: &[Record], figures: &[Figure], measured: &[Row]) -> Result<String> {
    let summary = Summary::new(records);
    let compute = Compute::stored()?;
    let commits: BTreeSet<&str> = records.iter().map(|record| record.commit.as_str()).collect();
    let commits = commits.into_iter().collect::<Vec<_>>().join(", ");
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "NearPM: the paper's evaluation" }
                style { (PreEscaped(svg::STYLE)) (PreEscaped(STYLE)) }
            }
            body {
                h1 { "NearPM: the paper's evaluation" }
                p {
                    "Every time in the figures is " strong { "simulated" } ": the host model and the transaction-level card with the parameters of a profile, or, \
                     where it says RTL cycles, the card's own Verilog. Nothing was measured on a card. What programs compute for was measured natively, once: " (compute.origin) "."
                }
                p {
                    "Nine programs, " (summary.seeds()) " seed(s), the paper's transactions divided by " (summary.share()) ". \
                     Commit of the results: " (commits) ". Profile of the predictions: " code { (PAPER) } ", calibrated on the two published points \
                     of Fig. 17 and on nothing else; this project's card: " code { (OURS) } "."
                }
                nav {
                    @for (id, heading) in findings::SECTIONS { a href=(format!("#{id}")) { (heading) } " " }
                    @for figure in figures { a href=(format!("#{}", figure.id)) { (figure.title) } " " }
                }
                (columns::section(&summary))
                (text::section(&summary))
                (on_rtl::section(records)?)
                (on_host::section(measured))
                (findings::sections()?)
                @for figure in figures { (figure.section()) }
                (profiles::section(&compute)?)
            }
        }
    };
    Ok(page.into_string())
}

/// Style of the page besides that of the charts.
const STYLE: &str = "\
body{background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem}\
h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2.5rem}h3{font-size:1.05rem}li{margin:.4rem 0}nav a{display:inline-block;margin-right:.6rem}a{color:var(--c0)}\
.wide{overflow-x:auto}.chart{min-width:36rem}.chart svg{width:100%;height:auto;display:block}\
.legend span{display:inline-block;margin-right:1rem}table{border-collapse:collapse;font-size:.85rem}\
th,td{border:1px solid var(--rule);padding:.2rem .5rem;text-align:right}th:first-child,td:first-child{text-align:left}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem .8rem;font-size:.9rem}dt{color:var(--faint)}dd{margin:0;overflow-wrap:anywhere}\
code{overflow-wrap:anywhere}";

/// A profile by the name that this program knows.
fn profile(name: &str) -> Result<nearpm_sim::profile::Profile> {
    nearpm_sim::profile::Profile::load(name).with_context(|| format!("the profile {name}"))
}
