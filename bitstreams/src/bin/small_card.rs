//! `small_card`: whether a whole card with small tables fits an ECP5-85k.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use nearpm_bitstreams::small_card::{Attempt, Came, SMALLEST, TOP, design, map, route};
use nearpm_hdl::Sizes;

/// Maps, places and routes a whole card with one unit and small tables on an ECP5-85k, and says how
/// far that goes; fails where it is not routed.
#[derive(Parser)]
struct Arguments {
    /// The smallest tables that a card may have: 4 request slots, 4 host lines, 2 mapping entries.
    /// Without it 8, 8 and 4.
    #[arg(long)]
    smallest: bool,
    /// Seeds of the placement, one attempt each.
    #[arg(long, value_delimiter = ',', default_value = "1")]
    seeds: Vec<u64>,
    /// nextpnr's router.
    #[arg(long, default_value = "router2", value_parser = ["router1", "router2"])]
    router: String,
    /// Minutes of each attempt; with 0 the card is mapped and not placed.
    #[arg(long, default_value_t = 30)]
    minutes: u64,
    /// Folder for intermediate files.
    #[arg(long, default_value = "target/small-card")]
    work: PathBuf,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let sizes = if arguments.smallest { SMALLEST } else { Sizes::SMALL };
    eprintln!("mapping {TOP}, {sizes:?} (a quarter of an hour)");
    print!("{}", map(&design(sizes)?, &arguments.work)?.text());
    if arguments.minutes == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    for &seed in &arguments.seeds {
        let limit = Duration::from_secs(60 * arguments.minutes);
        let attempt = Attempt { seed, router: arguments.router.clone(), limit };
        match route(&arguments.work, &attempt, &mut |line| eprintln!("{}", line.trim()))? {
            Came::Routed => {
                println!("seed {seed}, {}: routed", attempt.router);
                return Ok(ExitCode::SUCCESS);
            }
            Came::TimedOut(last) => {
                println!("seed {seed}, {}: NOT ROUTED in {} minutes: {last}", attempt.router, arguments.minutes);
            }
            Came::Failed(why) => println!("seed {seed}, {}: nextpnr FAILED: {why}", attempt.router),
        }
    }
    Ok(ExitCode::FAILURE)
}
