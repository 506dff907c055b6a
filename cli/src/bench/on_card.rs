//! `nearpm bench --card`: programs on a card that is there.

use anyhow::{Result, ensure};
use indicatif::ProgressBar;
use nearpm::{Mechanism, Survives};
use nearpm_evaluation::case::Configuration;
use nearpm_evaluation::on_card::{self, CONFIGURATIONS, MECHANISMS};
use nearpm_evaluation::place::{self, Place, Timing};
use nearpm_evaluation::results::{Line, table};
use nearpm_interface::geometry::POOLS_BASE;
use nearpm_interface::registers as reg;
use nearpm_workloads::programs::Program;

use super::COMMIT;
use crate::card::Transport;
use nearpm_text::{Table, time};

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The card.
    pub card: Transport,
    /// Programs; all where there is none.
    pub programs: Vec<Program>,
    /// Mechanisms; undo logging, checkpointing and shadow paging where there is none.
    pub mechanisms: Vec<Mechanism>,
    /// Transactions of each case.
    pub transactions: usize,
    /// Seeds, from 1 on.
    pub seeds: u64,
}

/// What came of it.
pub struct Measured {
    /// For people.
    pub text: String,
    /// The table of comma-separated values.
    pub csv: String,
    /// What ended it early: the rest is of the cases before.
    pub failed: Option<anyhow::Error>,
}

/// Runs it; `tell` is told of each case.
///
/// # Errors
/// If the card does not open or is too small. A case that fails ends it early, and what was found
/// before is kept.
pub fn run(plan: &Plan, tell: &dyn Fn(&Timing, u64)) -> Result<Measured> {
    let opened = plan.card.open("bench")?;
    let taken: u64 = opened.pools()?.iter().map(|pool| pool.bytes).sum();
    let name = plan.card.to_string();
    let place = Place {
        name: &name,
        location: &|pool| opened.location(pool),
        now_ns: &|| opened.card.function().now_ns(),
        room: opened.card.pm_bytes().saturating_sub(POOLS_BASE + taken),
        units: (opened.card.registers().read(reg::GEOMETRY) & 0xff) as usize,
        survives: Survives::PowerCut,
        is_prepared: false,
    };
    let mechanisms = if plan.mechanisms.is_empty() { MECHANISMS.to_vec() } else { plan.mechanisms.clone() };
    let programs = if plan.programs.is_empty() { Program::ALL.to_vec() } else { plan.programs.clone() };
    let cases = on_card::cases(&place, &programs, &mechanisms, plan.transactions, plan.seeds)?;
    let (mut timings, mut failed) = (Vec::new(), None);
    for case in &cases {
        match place::run(&place, case) {
            Ok(timing) => {
                tell(&timing, cases.len() as u64);
                timings.push(timing);
            }
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    let text = format!("{}; {}\n\n{}", opened.what, opened.clock, rows(&timings)?);
    let lines = timings.iter().map(|timing| Line {
        case: &timing.case,
        commit: COMMIT,
        origin: opened.clock,
        ns_per_transaction: timing.ns_per_transaction,
        inside: None,
    });
    Ok(Measured { text, csv: table(lines), failed })
}

/// Processor and card beside each other.
fn rows(timings: &[Timing]) -> Result<Table> {
    let mut table = Table::new(&["program", "mechanism", "seed", "CPU", "card", "speed-up", "commands a transaction"]);
    for pair in timings.chunks_exact(CONFIGURATIONS.len()) {
        let [cpu, card] = pair else { unreachable!("chunks are pairs") };
        let case = &card.case;
        ensure!(case.configuration == Configuration::Card, "cases are in pairs");
        table.row([
            case.program.name().to_owned(),
            case.mechanism.name().to_owned(),
            case.seed.to_string(),
            time(cpu.ns_per_transaction as u64),
            time(card.ns_per_transaction as u64),
            format!("{:.2}", cpu.ns_per_transaction / card.ns_per_transaction),
            format!("{:.1}", case.each(card.counts.commands)),
        ]);
    }
    Ok(table)
}

/// Runs it with progress, and prints what came of it.
pub fn command(plan: &Plan) -> Result<Measured> {
    let bar = ProgressBar::new_spinner();
    let number = std::cell::Cell::new(0);
    let measured = run(plan, &|timing, of| {
        number.set(number.get() + 1);
        let line = format!("{} of {of}: {}: {:.0} ns", number.get(), timing.case, timing.ns_per_transaction);
        if bar.is_hidden() {
            eprintln!("{line}");
        }
        bar.set_message(line);
    });
    bar.finish_and_clear();
    let measured = measured?;
    print!("{}", measured.text);
    Ok(measured)
}
