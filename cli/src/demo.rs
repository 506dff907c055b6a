//! `nearpm demo`: the main job.

use std::time::Instant;

use anyhow::Result;
use clap::Args;
use nearpm::{Engine, Mechanism};
use nearpm_workloads::BTree;

use crate::cut::PowerCut;
use crate::job::{CardChoice, Job, Measured, RunArguments, Workload};
use crate::rig::CardKind;
use crate::table::{Table, grouped, size, time};

/// Arguments of `nearpm demo`.
#[derive(Args, Clone, Debug)]
pub struct DemoArguments {
    /// Inserts on the transaction-level card, with a power cut
    #[arg(long, default_value_t = 100_000)]
    pub model_ops: usize,
    /// Inserts on the Verilated RTL, with a power cut; 0 leaves it out
    #[arg(long, default_value_t = 2_000)]
    pub rtl_ops: usize,
    /// Inserts for each row of the table
    #[arg(long, default_value_t = 10_000)]
    pub table_ops: usize,
    /// Seed of everything
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Runs the command.
pub fn command(arguments: &DemoArguments) -> Result<()> {
    let started = Instant::now();
    println!("# Crash and recovery\n");
    let job = RunArguments {
        workload: Workload::Btree,
        mechanism: Mechanism::Undo,
        card: CardChoice::Model,
        ops: arguments.model_ops,
        power_cut: PowerCut::Random,
        seed: arguments.seed,
        epoch: 64,
    };
    println!("{}", Job::new(&job, CardKind::Model).run::<BTree>()?);

    if arguments.rtl_ops > 0 {
        let job = RunArguments { card: CardChoice::Rtl, ops: arguments.rtl_ops, ..job.clone() };
        println!("{}", Job::new(&job, CardKind::Rtl).run::<BTree>()?);
    }

    println!("# What the card is worth\n");
    println!("{}", worth(&RunArguments { ops: arguments.table_ops, power_cut: PowerCut::Never, ..job })?);
    eprintln!("wall-clock time: {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// What the times rest on.
const ASSUMPTIONS: &str = "\
All times are simulated, not measured on hardware. The pool lies on the card in both columns; \"CPU\" lets the processor
copy into logs and pages across the link, \"card\" lets the card. Host: PCIe 3.0 x8, 436 ns for a load from the card, 4.2
loads in flight, write-back caching of the card's memory; computing inside the program costs nothing, memory accesses
do. Card: the transaction-level model at 300 MHz with one DDR4-2400 channel. Commits are durable when they return; epochs
are 64 transactions. Conflicts held: commands and host accesses that waited for an earlier one on the same line.";

/// CPU and card side by side, for each mechanism.
fn worth(job: &RunArguments) -> Result<String> {
    let mut table = Table::new(&[
        "mechanism",
        "CPU, per insert",
        "card, per insert",
        "speed-up",
        "commands",
        "conflicts held",
        "copied by CPU alone",
        "by CPU with card",
        "by card",
    ]);
    for mechanism in Mechanism::ALL {
        let measure = |engine| -> Result<Measured> {
            let report =
                Job::with_engine(&RunArguments { mechanism, ..job.clone() }, CardKind::Model, engine).run::<BTree>()?;
            Ok(report.measured.expect("a job without a power cut is measured"))
        };
        let (cpu, card) = (measure(Engine::Cpu)?, measure(Engine::Card)?);
        let each = |m: &Measured| time(m.ns / m.operations.max(1) as u64);
        table.row([
            mechanism.name().to_string(),
            each(&cpu),
            each(&card),
            format!("{:.2}", cpu.ns as f64 / card.ns.max(1) as f64),
            grouped(card.card.commands),
            grouped(card.card.held),
            size(cpu.pool.bytes_by_cpu),
            size(card.pool.bytes_by_cpu),
            size(card.pool.bytes_by_card),
        ]);
    }
    Ok(format!("B+tree, {} random inserts, seed {}.\n\n{table}\n{ASSUMPTIONS}", grouped(job.ops as u64), job.seed))
}
