//! Cuts the power of the RTL at every clock cycle of the catalogue's scenarios and, for as long as
//! it is given, of random ones: `docs/power-cuts.md`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_sim::rtl::RtlCards;
use nearpm_tests::cuts::catalogue;
use nearpm_tests::cuts::copies::{caught, keep_panics};
use nearpm_tests::cuts::run::length;
use nearpm_tests::cuts::striped;
use nearpm_tests::cuts::subject::{Settings, Subject};
use nearpm_tests::cuts::tally::{Findings, Tally};
use nearpm_tests::rig::rtl_cards;

/// Cuts the power of the card's RTL at every clock cycle.
#[derive(Parser)]
struct Arguments {
    /// Chooses the cuts whose save and replay are cut too, what memory tears, and the random
    /// scenarios.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Ends after so many minutes: first the work of all scenarios is cut, then what follows some
    /// of these cuts, then random scenarios.
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
    /// Copies of the process at a time [default: NEARPM_JOBS, else the number of processors, four
    /// at least].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    jobs: Option<u64>,
}

impl Arguments {
    /// `start`: when the program began.
    fn settings(&self, start: Instant) -> Settings {
        let tier = if self.fast { Settings::FAST } else { Settings::THOROUGH };
        let jobs = self.jobs.map_or_else(|| nearpm_tier::jobs(tier.jobs), |jobs| jobs as usize);
        let (saves, replays) = (self.deeper.unwrap_or(tier.saves), self.deeper.unwrap_or(tier.replays));
        let deadline = (self.minutes > 0).then(|| start + Duration::from_secs(60 * self.minutes));
        Settings { seed: self.seed, jobs, saves, replays, stride: self.stride, deadline, ..tier }
    }

    /// The scenarios, the short ones first; those of several cards, where a cut costs more, behind
    /// them.
    fn scenarios(&self, cards: &RtlCards) -> Vec<Box<dyn Subject>> {
        let (mut one_card, mut several) =
            if self.fast { (catalogue::fast(), striped::fast()) } else { (catalogue::all(), striped::all()) };
        one_card.retain(|scenario| scenario.name.contains(&self.scenario));
        several.retain(|striped| striped.name().contains(&self.scenario));
        // One that does not end fails when it is explored.
        one_card.sort_by_cached_key(|scenario| caught(|| length(cards, scenario)).unwrap_or(0));
        catalogue::together(one_card, several)
    }
}

/// What was done so far.
struct Campaign {
    seed: u64,
    memory_ports: u8,
    all: Tally,
}

impl Campaign {
    /// Tells of a part; what failed ends the campaign.
    fn take(&mut self, what: &str, subject: &dyn Subject, work: impl FnOnce() -> Findings) -> Result<(), String> {
        let begun = Instant::now();
        let Findings { tally, failure, cut_short, .. } = work();
        self.all.add(&tally);
        println!(
            "{:<16} {:<52} {what:<8} {:>7} cuts {:>9} cycles {:>6.1} s{}",
            subject.family(),
            subject.name(),
            tally.all_cuts(),
            tally.cycles,
            begun.elapsed().as_secs_f64(),
            if cut_short { ", cut short by the time" } else { "" }
        );
        let Campaign { seed, memory_ports, .. } = self;
        let repeat =
            format!("every-cycle --seed {seed} --memory-ports {memory_ports} --scenario \"{}\"", subject.name());
        failure.map_or(Ok(()), |failure| Err(format!("{failure}\nrepeat with: {repeat}")))
    }

    /// All scenarios before any is looked into deeper, so that a time that is too short leaves out
    /// the deeper cuts of all.
    fn run(&mut self, cards: &RtlCards, arguments: &Arguments, settings: Settings) -> Result<(), String> {
        let mut scenarios = arguments.scenarios(cards);
        for scenario in scenarios.iter().take_while(|_| !settings.is_late()) {
            self.take("work", &**scenario, || scenario.every_cycle(cards, settings))?;
        }
        // Which of them are left out, if any, depends on the seed.
        let first = settings.seed as usize % scenarios.len().max(1);
        scenarios.rotate_left(first);
        // By turns, so that a time that ends on the way has met saves and replays; what is rare
        // first.
        let deeper = settings.deeper();
        let pass = |pass| scenarios.iter().zip(deeper.iter().cycle().skip(pass));
        let mut turns: Vec<_> = (0..deeper.len()).flat_map(pass).collect();
        turns.sort_by_key(|(scenario, deeper)| !scenario.is_rare(**deeper));
        for (scenario, &deeper) in turns.into_iter().take_while(|_| !settings.is_late()) {
            self.take(deeper.name(), &**scenario, || scenario.cut_deeper(cards, settings, deeper))?;
        }
        let further = if settings.deadline.is_some() && !arguments.fast { u64::MAX } else { 0 };
        for number in (0..further).take_while(|_| !settings.is_late()) {
            let scenario = catalogue::random(settings.seed, 1000 + number);
            self.take("all", &scenario, || scenario.explore(cards, settings))?;
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    let (arguments, start) = (Arguments::parse(), Instant::now());
    let ports = if arguments.memory_ports == 2 { MemoryPorts::Two } else { MemoryPorts::One };
    let cards = rtl_cards(ports);
    keep_panics();
    let mut campaign = Campaign { seed: arguments.seed, memory_ports: arguments.memory_ports, all: Tally::default() };
    if let Err(failure) = campaign.run(&cards, &arguments, arguments.settings(start)) {
        println!("{failure}");
        return ExitCode::FAILURE;
    }
    let all = campaign.all;
    println!("{}", all.report(start.elapsed()));
    let Tally {
        scenarios,
        saves,
        replays,
        second_replays,
        recoveries,
        second_recoveries,
        distinct,
        with_commands,
        with_stores,
        decided,
        torn,
        losses,
        cycles,
        ..
    } = all;
    println!(
        r#"{{"counts":{{"scenarios":{scenarios},"saves cut":{saves},"replays cut":{replays},"second replays cut":{second_replays},"recoveries cut":{recoveries},"cuts in second recoveries":{second_recoveries},"cuts":{},"cycles":{cycles},"distinct memories":{distinct},"with commands":{with_commands},"with stores":{with_stores},"decided by recoveries":{decided},"torn":{torn},"reported losses":{losses},"violations":0}}}}"#,
        all.all_cuts()
    );
    ExitCode::SUCCESS
}
