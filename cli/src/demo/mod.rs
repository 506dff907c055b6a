//! `nearpm demo`: the main job.

mod pmdk;
mod typed;

use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use nearpm::{Engine, Mechanism};
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_workloads::BTree;

use nearpm_cards::{Cards, SimulatedCard};
use nearpm_cuts::cut::PowerCuts;
use nearpm_cuts::job::{
    CardChoice, CommitChoice, Crash, HostChoice, Job, Measured, MixChoice, PostingChoice, RING_BYTES, Recovered,
    RunArguments, Workload,
};
use nearpm_text::{Table, grouped, size, time};

/// Arguments of `nearpm demo`.
#[derive(Args, Clone, Debug)]
pub struct DemoArguments {
    /// Inserts on the transaction-level card, with a power cut
    #[arg(long, default_value_t = 100_000)]
    pub model_ops: usize,
    /// Inserts on the Verilated RTL, with a power cut; 0 leaves it out
    #[arg(long, default_value_t = 2_000)]
    pub rtl_ops: usize,
    /// Transfers of the program of typed objects, with a power cut; 0 leaves it out
    #[arg(long, default_value_t = 5_000)]
    pub typed_ops: usize,
    /// The program for PMDK.
    #[command(flatten)]
    pub pmdk: pmdk::PmdkArguments,
    /// Inserts for each row of the table; 0 leaves it out
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
        memory_ports: MemoryPorts::One,
        ops: arguments.model_ops,
        mix: MixChoice::Inserts,
        power_cut: PowerCuts::random(),
        seed: arguments.seed,
        commits: CommitChoice::Durable,
        epoch: 64,
        ring: RING_BYTES,
        pool: None,
        host: HostChoice::Ordinary,
        posting: PostingChoice::Line,
        waves: None,
        json: false,
    };
    let model = SimulatedCard::Model.cards(job.memory_ports)?;
    println!("{}", Job::new(&job, model.clone()).run::<BTree>()?);

    if arguments.rtl_ops > 0 {
        let job = RunArguments { card: CardChoice::Rtl, ops: arguments.rtl_ops, ..job.clone() };
        println!("{}", Job::new(&job, SimulatedCard::Rtl.cards(job.memory_ports)?).run::<BTree>()?);
    }

    if arguments.typed_ops > 0 {
        println!("{}", typed::run(arguments.typed_ops, arguments.seed, &model)?);
    }
    match pmdk::run(&arguments.pmdk, arguments.seed)? {
        Some(shown) => println!("{shown}"),
        None => println!("{NO_PMDK_PROGRAM}\n"),
    }

    if arguments.table_ops > 0 {
        println!("# What the card is worth\n");
        println!("{}", worth(&RunArguments { ops: arguments.table_ops, ..job }, &model)?);
    }
    eprintln!("wall-clock time: {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

const NO_PMDK_PROGRAM: &str =
    "C program for PMDK: left out; `./x run` has one where PMDK's headers are installed (Debian: libpmemobj-dev)";

/// What the times rest on.
const ASSUMPTIONS: &str = "\
All times are simulated, not measured on hardware. The pool lies on the card in both columns; \"CPU\" lets the processor
copy into logs and pages across the link, \"card\" lets the card. Host: PCIe 3.0 x8, 436 ns for a load from the card, 4.2
loads in flight, write-back caching of the card's memory. Computing inside the program costs nothing; memory accesses
do, also to what the library keeps in ordinary memory (2 ns a line; at most 1 MiB, and the pages of an epoch), and so do
checksums of log entries and commands (1 ns for 8 bytes, a third for 1 KiB and more). Card: the transaction-level model at
300 MHz with one DDR4-2400 channel. Commits are durable when they return; epochs are 64 transactions. Recovery: with the
card, from power-up after a power cut at a random moment to an open pool. Conflicts held: commands and host accesses that
waited for an earlier one on the same line.";

/// CPU and card side by side, for each mechanism.
fn worth(job: &RunArguments, cards: &Cards) -> Result<String> {
    let mut table = Table::new(&[
        "mechanism",
        "CPU, per insert",
        "card, per insert",
        "speed-up",
        "recovery",
        "commands",
        "conflicts held",
        "copied by CPU alone",
        "by CPU with card",
        "by card",
    ]);
    for mechanism in Mechanism::ALL {
        let (cpu, card) =
            (measured(job, cards, mechanism, Engine::Cpu)?, measured(job, cards, mechanism, Engine::Card)?);
        let each = |m: &Measured| time(m.ns / m.operations.max(1) as u64);
        table.row([
            mechanism.name().to_string(),
            each(&cpu),
            each(&card),
            format!("{:.2}", cpu.ns as f64 / card.ns.max(1) as f64),
            time(recovery_ns(job, cards, mechanism)?),
            grouped(card.card.commands),
            grouped(card.card.held),
            size(cpu.pool.bytes_by_cpu),
            size(card.pool.bytes_by_cpu),
            size(card.pool.bytes_by_card),
        ]);
    }
    Ok(format!("B+tree, {} random inserts, seed {}.\n\n{table}\n{ASSUMPTIONS}", grouped(job.ops as u64), job.seed))
}

/// The job without a power cut.
fn measured(job: &RunArguments, cards: &Cards, mechanism: Mechanism, engine: Engine) -> Result<Measured> {
    let job = RunArguments { mechanism, power_cut: PowerCuts::default(), ..job.clone() };
    let report = Job::with_engine(&job, cards.clone(), engine).run::<BTree>()?;
    Ok(report.measured.expect("a job without a power cut is measured"))
}

/// Time from power-up to an open pool after the job's power cut.
fn recovery_ns(job: &RunArguments, cards: &Cards, mechanism: Mechanism) -> Result<u64> {
    let job = RunArguments { mechanism, ..job.clone() };
    let report = Job::new(&job, cards.clone()).run::<BTree>()?;
    let recovered = report.crashes.first().and_then(Crash::recovered);
    let Some(Recovered { ns: Some(ns), .. }) = recovered else { bail!("the power cut came after the last operation") };
    Ok(ns)
}
