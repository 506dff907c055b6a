//! Cuts the power of the RTL at every clock cycle of the catalogue's scenarios and, for as long as it is given, of random ones:
//! `docs/power-cuts.md`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_tests::cuts::catalogue;
use nearpm_tests::cuts::copies::keep_panics;
use nearpm_tests::cuts::explore::{Settings, explore};
use nearpm_tests::cuts::scenario::Scenario;
use nearpm_tests::cuts::tally::Tally;
use nearpm_tests::rig::rtl_cards;

/// Cuts the power of the card's RTL at every clock cycle.
#[derive(Parser)]
struct Arguments {
    /// Chooses the cuts whose save and replay are cut too, what memory tears, and the random scenarios.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Goes on with random scenarios for so many minutes.
    #[arg(long, default_value_t = 0)]
    minutes: u64,
    /// Only scenarios whose name contains this.
    #[arg(long, default_value = "")]
    scenario: String,
    /// The few scenarios of the ordinary tests.
    #[arg(long)]
    fast: bool,
    /// Memory ports of the card: 1 or 2.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    memory_ports: u8,
    /// Cuts the work in every n-th cycle only.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    stride: u64,
    /// Cuts of each scenario whose save, and whose replay, is cut at every cycle.
    #[arg(long)]
    deeper: Option<usize>,
    /// Copies of the process at a time.
    #[arg(long)]
    jobs: Option<usize>,
}

impl Arguments {
    fn settings(&self) -> Settings {
        let tier = if self.fast { Settings::FAST } else { Settings::THOROUGH };
        let jobs = self.jobs.unwrap_or(tier.jobs).max(1);
        let (saves, replays) = (self.deeper.unwrap_or(tier.saves), self.deeper.unwrap_or(tier.replays));
        Settings { seed: self.seed, jobs, saves, replays, stride: self.stride, ..tier }
    }

    /// The scenarios; those behind the catalogue are random and do not end.
    fn scenarios(&self) -> impl Iterator<Item = Scenario> {
        let catalogue = if self.fast { catalogue::fast() } else { catalogue::all() };
        let seed = self.seed;
        let random = (0..).map(move |number| catalogue::random(seed, 1000 + number));
        let further = if self.minutes > 0 && !self.fast { usize::MAX } else { 0 };
        let named = self.scenario.clone();
        catalogue.into_iter().filter(move |s| s.name.contains(&named)).chain(random.take(further))
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ports = if arguments.memory_ports == 2 { MemoryPorts::Two } else { MemoryPorts::One };
    let cards = rtl_cards(ports);
    keep_panics();
    let limit = (arguments.minutes > 0).then(|| Duration::from_secs(60 * arguments.minutes));
    let (start, mut all) = (Instant::now(), Tally::default());
    for scenario in arguments.scenarios() {
        if limit.is_some_and(|limit| start.elapsed() >= limit) {
            break;
        }
        let begun = Instant::now();
        let found = explore(&cards, &scenario, arguments.settings());
        all.add(&found.tally);
        let (cuts, cycles) = (found.tally.all_cuts(), found.tally.cycles);
        println!(
            "{:<16} {:<52} {cuts:>7} cuts {cycles:>9} cycles {:>6.1} s",
            scenario.family,
            scenario.name,
            begun.elapsed().as_secs_f64()
        );
        if let Some(failure) = found.failure {
            let ports = arguments.memory_ports;
            println!(
                "{failure}\nrepeat with: every-cycle --seed {} --memory-ports {ports} --scenario \"{}\"",
                arguments.seed, scenario.name
            );
            return ExitCode::FAILURE;
        }
    }
    println!("{}", all.report(start.elapsed()));
    let Tally { scenarios, distinct, with_commands, with_stores, torn, losses, cycles, .. } = all;
    println!(
        r#"{{"counts":{{"scenarios":{scenarios},"cuts":{},"cycles":{cycles},"distinct memories":{distinct},"with commands":{with_commands},"with stores":{with_stores},"torn":{torn},"reported losses":{losses},"violations":0}}}}"#,
        all.all_cuts()
    );
    ExitCode::SUCCESS
}
