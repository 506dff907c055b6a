//! The RTL beside the model: the micro-benchmark, and programs in a small form.

use anyhow::Result;
use maud::{Markup, html};
use nearpm_sim::microbenchmark::Point;
use nearpm_text::size;

use super::profile;
use super::table::{Table, head, short, whole};
use crate::case::{Case, Configuration};
use crate::copies::{COPIES, Copies, LOG_BYTES};
use crate::device::Device;
use crate::plan::OURS;
use crate::results::Record;

/// What makes the copies again.
pub const COPIES_COMMAND: &str = "nearpm bench copies --device rtl";
/// What makes the programs again.
const PROGRAMS_COMMAND: &str = "nearpm bench --device rtl";

/// The stored copies of the RTL, and their commit.
///
/// # Errors
/// If they are wrong.
pub fn stored() -> Result<(Vec<Point>, String)> {
    let Copies { points, commit, .. } = Copies::stored()?;
    Ok((points, commit))
}

/// The micro-benchmark with this project's card: the model, run here and now, and the RTL, as it is
/// stored.
///
/// # Errors
/// If the stored copies or the profile are wrong, or the card refuses something.
pub fn copies() -> Result<Table> {
    let stored = Copies::stored()?;
    let ours = profile(OURS)?;
    let model = Copies::run(&ours, Device::Model, None, "")?;
    let row = |(rtl, model): (&Point, &Point)| {
        let both = |value: fn(&Point) -> f64| [short(value(model)), short(value(rtl))];
        let ns = |value: fn(&Point) -> f64| [whole(value(model)), whole(value(rtl))];
        let times = [ns(|p| p.cpu_ns), ns(|p| p.card_ns), ns(|p| p.record_ns)];
        let speed_ups = [both(Point::speed_up), both(Point::speed_up_by_record)];
        let cells = [times.concat(), speed_ups.concat()].concat();
        [format!("copy of {}", size(u64::from(rtl.bytes)))].into_iter().chain(cells).collect()
    };
    let columns = ["CPU, ns", "card, ns", "card by its record, ns", "speed-up", "speed-up by the record"];
    let of_both = columns.into_iter().flat_map(|what| Device::ALL.map(|device| format!("{what}: {}", device.origin())));
    let head = head([String::new()].into_iter().chain(of_both));
    let mut rows: Vec<Vec<String>> = stored.points.iter().zip(&model.points).map(row).collect();
    // Nobody waits for the log, and the processor's own is not timed.
    let mut log = vec!["-".to_owned(); head.len()];
    log[0] = format!("log of {LOG_BYTES} B, not waited for");
    [log[3], log[4]] = [model.log_ns, stored.log_ns].map(|ns| format!("{ns:.1}"));
    rows.push(log);
    Ok(Table {
        name: "copies-rtl",
        title: "Copies, waiting for each, with this project's card: the model and the RTL",
        head,
        rows,
    })
}

/// Times of cases that both devices have a result of: this project's card by one device, and the
/// best path on the processor.
pub fn beside_the_model(records: &[Record]) -> Table {
    let of = |case: &Case| records.iter().find(|record| record.case == *case).map(|r| r.outcome.per_transaction());
    let both = |case: &Case| {
        let on = |device| of(&Case { device, ..case.clone() });
        Some((on(Device::Model)?, on(Device::Rtl)?))
    };
    let row = |record: &Record| {
        let card = &record.case;
        let cpu = Case { configuration: Configuration::Cpu, ..card.clone() };
        let ((model, rtl), (cpu_model, cpu_rtl)) = (both(card)?, both(&cpu)?);
        Some(vec![
            format!("{}, {}", card.program.name(), card.mechanism.name()),
            card.seed.to_string(),
            whole(cpu_model),
            whole(cpu_rtl),
            whole(model),
            whole(rtl),
            format!("{:+.1} %", 100.0 * (rtl / model - 1.0)),
            short(cpu_model / model),
            short(cpu_rtl / rtl),
        ])
    };
    let is_row = |case: &Case| case.device == Device::Rtl && case.configuration == Configuration::Card;
    Table {
        name: "rtl",
        title: "Programs in a small form, ns a transaction: the model and the RTL",
        head: head([
            "",
            "seed",
            "CPU: model",
            "CPU: RTL cycles",
            "one device: model",
            "one device: RTL cycles",
            "RTL over model",
            "speed-up: model",
            "speed-up: RTL cycles",
        ]),
        rows: records.iter().filter(|record| is_row(&record.case)).filter_map(row).collect(),
    }
}

/// Both as a section of the page; the programs where the results have some on the RTL.
///
/// # Errors
/// If what is stored is wrong, or the micro-benchmark fails.
pub fn section(records: &[Record]) -> Result<Markup> {
    let (copies, programs) = (copies()?, beside_the_model(records));
    let rtl = records.iter().find(|record| record.case.device == Device::Rtl);
    let (_, commit) = stored()?;
    Ok(html! {
        section id="rtl" {
            h2 { "The RTL as the card" }
            p {
                "Host and link are simulated with the profile's values in each column; the card is the transaction-level one (model), or its Verilog, simulated cycle by cycle (RTL cycles)."
            }
            h3 { (copies.title) }
            (copies.html())
            p { "Medians of " (COPIES) " copies, profile " code { (OURS) } ". Commit of the RTL's: " code { (commit) } ". Command: " code { (COPIES_COMMAND) } "." }
            @if let Some(Record { case, commit, .. }) = rtl {
                h3 { (programs.title) }
                (programs.html())
                p {
                    (case.count) " transactions each, the paper's tables divided by " (case.share) ", profile " code { (case.profile) } ". Commit: " code { (commit) }
                    ". Command: " code { (PROGRAMS_COMMAND) } "."
                }
            }
        }
    })
}
