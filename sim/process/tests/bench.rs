//! `nearpm bench --card` on a card of another process, and on one that is simulated here.

mod common;

use common::Simulator;
use nearpm::Mechanism;
use nearpm_cli::bench::on_card::{self, Plan};
use nearpm_cli::card::{CardArgument, CardCommand, Transport, report};
use nearpm_workloads::programs::Program;

/// Transactions: enough that an epoch ends.
const TRANSACTIONS: usize = 70;

fn plan(card: &Transport, programs: &[Program], mechanisms: &[Mechanism]) -> Plan {
    let (programs, mechanisms) = (programs.to_vec(), mechanisms.to_vec());
    Plan { card: card.clone(), programs, mechanisms, transactions: TRANSACTIONS, seeds: 1 }
}

/// Runs the plan, and looks at every line of its table.
fn lines(plan: &Plan, origin: &str) -> usize {
    let measured = on_card::run(plan, &|_, _| {}).unwrap_or_else(|e| panic!("{e:#}"));
    println!("{}", measured.text);
    assert!(measured.failed.is_none(), "{:?}", measured.failed);
    assert!(measured.text.contains(origin), "{}", measured.text);
    let mut table = csv::Reader::from_reader(measured.csv.as_bytes());
    let headings = table.headers().unwrap().clone();
    let at = |name: &str| headings.iter().position(|heading| heading == name).unwrap();
    // A row of another length than the headings is an error.
    let rows: Vec<csv::StringRecord> = table.records().collect::<Result<_, _>>().unwrap();
    for row in &rows {
        assert_eq!(row[at("profile")], plan.card.to_string());
        assert!(row[at("origin")].starts_with(origin), "{row:?}");
        assert!(row[at("ns_per_transaction")].parse::<f64>().unwrap() > 0.0, "{row:?}");
        // What only a simulator sees is not there.
        assert!(row.iter().skip(at("busy_ns")).all(str::is_empty), "{row:?}");
    }
    rows.len()
}

#[test]
fn the_three_mechanisms_run_on_a_card_of_another_process_and_leave_nothing_behind() {
    let simulator = Simulator::new("trapping");
    let card = Transport::vfio_user(simulator.socket());
    let origin = "wall clock of an emulation";
    assert_eq!(lines(&plan(&card, &[Program::Btree, Program::Tatp], &[]), origin), 12);
    let text = report(&CardCommand::Info(CardArgument { card })).unwrap();
    assert!(!text.contains("bench-"), "{text}");
}

#[test]
fn all_nine_programs_run_on_the_model() {
    let card = "model".parse().unwrap();
    assert_eq!(lines(&plan(&card, &[], &[]), "simulated time"), 9 * 3 * 2);
}

#[test]
fn what_is_too_large_for_the_card_is_refused_and_nothing_is_left() {
    let simulator = Simulator::new("trapping");
    let card = Transport::vfio_user(simulator.socket());
    let plan = Plan { transactions: 100_000, ..plan(&card, &[Program::Btree], &[Mechanism::Undo]) };
    let error = on_card::run(&plan, &|_, _| {}).err().expect("it is too large");
    assert!(format!("{error:#}").contains("btree does not fit"), "{error:#}");
    let info = report(&CardCommand::Info(CardArgument { card })).unwrap();
    assert!(!info.contains("bench-"), "{info}");
}
