//! What a card is worth to somebody who may also choose another way.

use maud::{Markup, html};
use nearpm::Mechanism;
use nearpm_workloads::programs::Program;

use super::table::{Table, head, short, whole};
use crate::case::Configuration;
use crate::plan::{COMPARED, OURS, PAPER};
use crate::summary::{Mean, Promise, Selection, Summary, promise};

/// One device over the processor: the same mechanism, and the cheapest that promises at least as
/// much; charged alike, as the paper's figures are.
pub fn cheapest(summary: &Summary) -> Table {
    let all = [PAPER, OURS].into_iter().flat_map(|profile| Mechanism::ALL.map(|m| Selection::new(profile, m)));
    Table {
        name: "cheapest",
        title: "One device over the processor with the same mechanism, and with the cheapest mechanism of at least the same durability, instructions charged alike",
        ..over_cheapest(summary, all)
    }
}

/// The same among everything that there is, each path charged with its own instructions.
fn choices(summary: &Summary) -> Table {
    let all = COMPARED.into_iter().flat_map(|profile| Mechanism::ALL.map(|m| Selection::by_path(profile, m)));
    Table {
        name: "choices",
        title: "One device over the processor with the same mechanism, and with the cheapest way of at least the same durability, lean undo and the working copy among them",
        ..over_cheapest(summary, all)
    }
}

/// The same of working copies: what a card is worth to a program that stores by pointer.
fn copies(summary: &Summary) -> Table {
    let all = COMPARED.into_iter().flat_map(|profile| Mechanism::ALL.map(|m| Selection::by_path(profile, m)));
    Table {
        name: "copies",
        title: "Working copies: commits brought home by one device, over the same mechanism by the CPU, and over the cheapest way there of at least the same durability",
        ..over_cheapest_in(summary, all, [Configuration::CopyCard, Configuration::CopyCpu])
    }
}

fn over_cheapest(summary: &Summary, all: impl Iterator<Item = Selection>) -> Table {
    over_cheapest_in(summary, all, [Configuration::Card, Configuration::Cpu])
}

/// A configuration over another with the same mechanism, and over the cheapest.
fn over_cheapest_in(
    summary: &Summary,
    all: impl Iterator<Item = Selection>,
    [of, baseline]: [Configuration; 2],
) -> Table {
    let cell = |value: Option<Mean>| value.map_or("-".into(), |mean| short(mean.value));
    let row = |s: Selection| {
        let same = |summary: &Summary, program| summary.whole(&s, program, of, baseline);
        let over = |summary: &Summary, program| summary.over_cheapest(&s, program, of);
        let averages = [summary.average(same), summary.geometric(same), summary.average(over), summary.geometric(over)];
        let each = Program::ALL.map(|program| over(summary, program));
        let label = format!("{}, {}", s.mechanism.name(), s.profile);
        [label].into_iter().chain(averages.into_iter().chain(each).map(cell)).collect()
    };
    let averages = [
        "",
        "over the same mechanism on the CPU: mean",
        "geometric mean",
        "over the cheapest on the CPU of at least the same durability: mean",
        "geometric mean",
    ];
    let rows = all.map(row).collect();
    Table { name: "", title: "", head: head(averages.into_iter().chain(Program::ALL.map(Program::name))), rows }
}

/// Everything that somebody may choose, what promises more first.
fn all_ways() -> Vec<(Mechanism, Configuration)> {
    let mut all = Configuration::choices();
    all.sort_by_key(|(mechanism, of)| (*of != Configuration::Bare, std::cmp::Reverse(promise(*mechanism))));
    all
}

/// Its name, and when its transactions are durable.
fn labels((mechanism, of): (Mechanism, Configuration)) -> [String; 2] {
    let name = if of.has_mechanism() { format!("{}, {}", mechanism.name(), of.title()) } else { of.title().to_owned() };
    let durable = match promise(mechanism) {
        _ if of == Configuration::Bare => "never",
        Promise::Return => "at return",
        Promise::EpochEnd => "at the epoch's end",
    };
    [name, durable.to_owned()]
}

/// What a transaction takes in each way, on each profile.
fn ways(summary: &Summary) -> Table {
    let row = |way: (Mechanism, Configuration)| {
        let cell = |profile: &str| {
            let s = Selection::by_path(profile, way.0);
            let time = |summary: &Summary, program| summary.time(&s, program, way.1);
            let means = [summary.average(time), summary.geometric(time)];
            means.map(|mean| mean.map_or("-".into(), |mean| whole(mean.value))).join(" / ")
        };
        labels(way).into_iter().chain(COMPARED.map(cell)).collect()
    };
    Table {
        name: "ways",
        title: "Nanoseconds a transaction: mean / geometric mean over the nine programs, each path charged with its own instructions",
        head: head(["", "durable"].into_iter().chain(COMPARED)),
        rows: all_ways().into_iter().map(row).collect(),
    }
}

/// What a transaction takes in each way, by program, with this project's card.
fn ways_by_program(summary: &Summary) -> Table {
    let row = |way: (Mechanism, Configuration)| {
        let s = Selection::by_path(OURS, way.0);
        let cell = |program| summary.time(&s, program, way.1).map_or("-".into(), |mean| whole(mean.value));
        labels(way).into_iter().chain(Program::ALL.map(cell)).collect()
    };
    Table {
        name: "ways by program",
        title: "The same by program, with this project's card and cached windows",
        head: head(["", "durable"].into_iter().chain(Program::ALL.map(Program::name))),
        rows: all_ways().into_iter().map(row).collect(),
    }
}

/// The tables whose paths are charged with their own instructions, where such cases were run.
pub fn by_path(summary: &Summary) -> Vec<Table> {
    if !summary.has_paths() {
        return Vec::new();
    }
    vec![choices(summary), copies(summary), ways(summary), ways_by_program(summary)]
}

/// The section of the page.
pub fn section(summary: &Summary) -> Markup {
    html! {
        section id="choices" {
            h2 { "What a card is worth to who may choose another way" }
            p {
                "Undo and redo logging, lean undo in place and the working copy are durable when the commit returns, checkpointing and shadow paging when the epoch ends. A mechanism is \
                 compared with its own like on the processor, and with the cheapest there that promises at least as much. "
                strong { "A cached window on a card's memory is an assumption" }
                " of every other profile of a PCIe card: what VFIO gives is uncached (" code { "vcu118-300-uc" } "), what sysfs gives write-combining ("
                code { "vcu118-300-wc" } "); CXL.mem is cached (" code { "cxl-type3" } ")."
            }
            @for table in by_path(summary).into_iter().chain([cheapest(summary)]) {
                h3 { (table.title) }
                (table.html())
            }
        }
    }
}
