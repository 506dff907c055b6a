//! `nearpm-proofs`: proves properties of the generated Verilog, and refutes their mutants.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;
use nearpm_proofs::property::{self, Tier};
use nearpm_proofs::report;
use nearpm_proofs::run::Runner;
use nearpm_proofs::tools::Tools;
use nearpm_proofs::units::Unit;

/// Proves properties of the generated Verilog by k-induction and prints a table. Fails if one is
/// not proved.
#[derive(Parser)]
struct Arguments {
    /// Properties whose name contains this; may be given several times.
    #[arg(long)]
    only: Vec<String>,
    /// Refute each property's mutants, too.
    #[arg(long)]
    mutants: bool,
    /// The fast ones only.
    #[arg(long)]
    fast: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Seconds for one question to the solver.
    #[arg(long, default_value_t = 900)]
    seconds: u64,
    /// Folder for intermediate files and traces.
    #[arg(long, default_value = "target/proofs")]
    work: PathBuf,
    /// Print what the properties say, and prove nothing.
    #[arg(long)]
    claims: bool,
    /// Print the Verilog of a unit, in which mutants are planted, and prove nothing.
    #[arg(long)]
    verilog: Option<String>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if let Some(name) = &arguments.verilog {
        let Some(unit) = Unit::ALL.iter().find(|unit| unit.name() == name) else { bail!("there is no unit {name}") };
        print!("{}", unit.verilog());
        return Ok(ExitCode::SUCCESS);
    }
    let mut properties = property::all()?;
    properties
        .retain(|p| arguments.only.is_empty() || arguments.only.iter().any(|name| p.name.contains(name.as_str())));
    properties.retain(|p| !arguments.fast || p.tier == Tier::Fast);
    properties.retain(|p| p.tier != Tier::Open || arguments.claims || !arguments.only.is_empty());
    if properties.is_empty() {
        bail!("no property has such a name");
    }
    if arguments.claims {
        print!("{}", report::claims(&properties));
        return Ok(ExitCode::SUCCESS);
    }
    let runner = Runner {
        tools: Tools::find()?,
        work: arguments.work,
        seconds: arguments.seconds,
        mutants: arguments.mutants,
        progress: |what| eprintln!("{what}"),
    };
    let mut outcomes = Vec::new();
    for (number, property) in properties.iter().enumerate() {
        eprintln!("[{}/{}] {}", number + 1, properties.len(), property.claim);
        outcomes.push(runner.run(property)?);
    }
    if arguments.json {
        println!("{:#}", report::json(&outcomes));
    } else {
        println!("{}\n{}", report::table(&outcomes), report::counts(&outcomes));
    }
    Ok(if outcomes.iter().all(|outcome| outcome.holds()) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
