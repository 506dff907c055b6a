//! Runs what was added to the plan beside the paper's figures, in the quick form, and prints its results as comma-separated values: those of `nearpm bench`.
//!
//! ```console
//! $ cargo run --release -p nearpm-evaluation --example choices -- target/choices COMMIT > evaluation/results/choices.csv
//! ```

use anyhow::{Context, Result};
use nearpm_evaluation::bench::{Event, run_all};
use nearpm_evaluation::plan::Scope;
use nearpm_evaluation::results::{Results, csv};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().context("the folder of results is missing")?;
    let commit = arguments.next().context("the commit is missing")?;
    let results = Results::open(folder.as_ref(), &commit, false)?;
    let tell = |event: Event<'_>| {
        if let Event::Ran(record) = event {
            eprintln!("{}: {:.0} ns, {:.1} s", record.case, record.outcome.per_transaction(), record.cpu_s);
        }
    };
    let records = run_all(&Scope::QUICK.choices(), &results, 4, None, &tell)?;
    print!("{}", csv(&records));
    Ok(())
}
