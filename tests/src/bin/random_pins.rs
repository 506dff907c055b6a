//! Drives the RTL at its pins with random traffic over the whole space of addresses, for its
//! coverage.

use std::process::ExitCode;

use clap::Parser;
use nearpm_hdl::Parameters;
use nearpm_tests::pins::session::run;
use nearpm_verilate::{Library, Source};

/// Drives the card's RTL at its pins with random traffic.
#[derive(Parser)]
struct Arguments {
    /// Chooses the traffic.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Memories, each of which is powered up several times.
    #[arg(long, default_value_t = 12)]
    memories: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let card = nearpm_hdl::generated(&Parameters::default());
    let library = match Library::build(&Source::new(nearpm_hdl::MODULE, card.simulated())) {
        Ok(library) => library,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let tally = run(&library, &[], arguments.seed, arguments.memories, &mut |tally| println!("{tally:?}"));
    println!(
        r#"{{"counts":{{"power-ups":{},"cycles":{},"accesses":{},"loads compared":{},"conflicts held":{},"reported losses":{},"lost stores told":{},"violations":0}}}}"#,
        tally.sessions, tally.cycles, tally.accesses, tally.compared, tally.held, tally.losses, tally.lost_stores
    );
    ExitCode::SUCCESS
}
