//! The command line of the crash explorer.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use clap::{Args, Parser, Subcommand};
use nearpm_explorer::explore::{Limits, Report, explore};
use nearpm_explorer::failure::Case;
use nearpm_explorer::pools::Kind;
use nearpm_explorer::program::{Program, Structure};

/// Explores what crashes leave of a pool.
#[derive(Parser)]
#[command(name = "nearpm-explorer")]
struct Cli {
    #[command(subcommand)]
    command: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Explores random programs; a failure is made small and written to a file.
    Explore(Exploration),
    /// Repeats a failure from its file.
    Replay {
        /// The file.
        file: PathBuf,
    },
}

#[derive(Args)]
struct Exploration {
    /// The kind of pool; every kind without it.
    #[arg(long, value_enum)]
    pool: Option<Kind>,
    /// What is in it; every structure without it, but the nine programs on pools with a mechanism
    /// alone.
    #[arg(long, value_enum)]
    structure: Option<Structure>,
    /// Threads, one or two; without it one, and on direct pools two as well, and one beside a
    /// reader of snapshots.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=2))]
    threads: Option<u8>,
    /// One thread beside a reader of snapshots alone, on direct pools.
    #[arg(long, conflicts_with = "threads")]
    snapshots: bool,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Programs for each pair of pool and structure.
    #[arg(long, default_value_t = 1)]
    programs: u64,
    /// Goes on with further seeds for so many minutes.
    #[arg(long, default_value_t = 0)]
    minutes: u64,
    /// Transactions of each thread of a program.
    #[arg(long, default_value_t = 2)]
    transactions: usize,
    /// Most operations of a transaction.
    #[arg(long, default_value_t = 2)]
    operations: u64,
    /// Every state, one by one, instead of one for all that recovery cannot tell apart.
    #[arg(long)]
    exhaustive: bool,
    /// Leaves the write-back or fence of this number out (on a card also command, read that pushes,
    /// or wait for a command): a planted fault.
    #[arg(long)]
    leave_out: Option<usize>,
    /// Programs that are explored at a time [default: NEARPM_JOBS, else the number of processors].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    jobs: Option<u64>,
    /// Where a failure goes.
    #[arg(long, default_value = "crash.json")]
    output: PathBuf,
}

/// What was explored in all, and of that what was on cards, and by two threads.
#[derive(Default)]
struct Total {
    all: Report,
    on_cards: Report,
    by_two: Report,
    beside_readers: Report,
    seeds: u64,
}

/// Who runs.
#[derive(Clone, Copy, PartialEq)]
enum Threads {
    One,
    Two,
    OneAndReader,
}

impl Threads {
    const ALL: [Threads; 3] = [Threads::One, Threads::Two, Threads::OneAndReader];
}

/// One program after the other: every wanted pool and structure with one seed, then with the next.
fn programs(options: &Exploration) -> impl Iterator<Item = (u64, Program)> {
    let structures = move |pool: Kind| {
        Structure::all().filter(move |structure| match options.structure {
            Some(wanted) => wanted == *structure,
            // On direct pools a program takes minutes.
            None => !pool.is_direct() || Structure::LIBRARY.contains(structure),
        })
    };
    let pools = move || Kind::ALL.into_iter().filter(|kind| options.pool.is_none_or(|wanted| wanted == *kind));
    let pairs = move || pools().flat_map(move |pool| structures(pool).map(move |structure| (pool, structure)));
    // A kind of pool that is asked for by name says itself what it does not take.
    let threads = move |pool: Kind| {
        Threads::ALL.into_iter().filter(move |&threads| {
            let takes = match threads {
                Threads::One => true,
                Threads::Two => pool.takes_threads(),
                Threads::OneAndReader => pool.has_snapshots(),
            };
            match (options.threads, options.snapshots) {
                (None, false) => takes,
                (None, true) => threads == Threads::OneAndReader && (takes || options.pool.is_some()),
                (Some(1), _) => threads == Threads::One,
                (Some(_), _) => threads == Threads::Two && (takes || options.pool.is_some()),
            }
        })
    };
    (0..).flat_map(move |number| {
        let (seed, transactions, operations) = (options.seed + number, options.transactions, options.operations);
        pairs().flat_map(move |(pool, structure)| {
            threads(pool).map(move |threads| {
                let random = match threads {
                    Threads::One => Program::random,
                    Threads::Two => Program::random_by_two,
                    Threads::OneAndReader => Program::random_beside_reader,
                };
                let program = random(pool, structure, seed, transactions, operations);
                (number, Program { leave_out: options.leave_out, ..program })
            })
        })
    })
}

/// Makes a failure small, and writes it to a file.
fn keep(options: &Exploration, case: Case, limits: Limits) -> anyhow::Result<()> {
    println!("failed: {}", case.failure.message);
    let case = case.minimise(limits);
    println!("smallest: {}", case.failure.message);
    case.write(&options.output)?;
    println!("repeat it with: nearpm-explorer replay {}", options.output.display());
    Ok(())
}

fn run(options: &Exploration) -> anyhow::Result<ExitCode> {
    let limits = if options.exhaustive { Limits::EXHAUSTIVE } else { Limits::LAZY };
    let begin = Instant::now();
    let limit = Duration::from_secs(60 * options.minutes);
    let work = Mutex::new(programs(options));
    let total = Mutex::new(Total::default());
    let failed = Mutex::new(None);
    // A failure or an error ends all.
    let goes_on = AtomicBool::new(true);
    let next = || {
        if !goes_on.load(Ordering::Relaxed) {
            return None;
        }
        let (number, program) = lock(&work).next()?;
        (number < options.programs || begin.elapsed() < limit).then_some((number, program))
    };
    let worker = || -> anyhow::Result<()> {
        while let Some((number, program)) = next() {
            let explored = explore(&program, limits);
            if !matches!(explored, Ok((_, None))) {
                goes_on.store(false, Ordering::Relaxed);
            }
            let (report, failure) = explored.map_err(|e| anyhow!("{program:?}: {e}"))?;
            let (seed, threads) = (options.seed + number, program.threads());
            let reader = if program.reader.is_some() { " and a reader" } else { "" };
            println!("{:?}, {:?}, seed {seed}, {threads} thread(s){reader}: {report}", program.pool, program.structure);
            let mut total = lock(&total);
            total.all += report;
            total.seeds = total.seeds.max(number + 1);
            if program.pool.is_on_card() {
                total.on_cards += report;
            }
            if threads > 1 {
                total.by_two += report;
            }
            if program.reader.is_some() {
                total.beside_readers += report;
            }
            if let Some(failure) = failure {
                lock(&failed).get_or_insert(Case { program, failure });
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads = options.jobs.map_or_else(|| nearpm_tier::jobs(1), |jobs| jobs as usize);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("exploring does not panic"))
    })?;
    if let Some(case) = lock(&failed).take() {
        keep(options, case, limits)?;
        return Ok(ExitCode::FAILURE);
    }
    let total = lock(&total);
    println!("total: {}; {:.1} s", total.all, begin.elapsed().as_secs_f64());
    let Report { executions, cuts, states, again, not_followed, recoveries, deepest, cut_short, .. } = total.all;
    let (seeds, on_cards, by_two) = (total.seeds, total.on_cards.states, total.by_two.states);
    let beside_readers = total.beside_readers.states;
    println!(
        r#"{{"counts":{{"seeds":{seeds},"programs":{executions},"cuts":{cuts},"states":{states},"states on cards":{on_cards},"states of two threads":{by_two},"states beside readers":{beside_readers},"states left by recoveries":{again},"states left by recoveries and not followed":{not_followed},"recoveries":{recoveries},"crashes in a row":{deepest},"cuts not explored whole":{cut_short},"violations":0}}}}"#
    );
    Ok(ExitCode::SUCCESS)
}

/// The lock of what the threads share; nobody panics with it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics with the lock")
}

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().command {
        Action::Explore(options) => run(&options),
        Action::Replay { file } => match Case::read(&file)?.replay()? {
            Some(message) => {
                println!("it fails: {message}");
                Ok(ExitCode::FAILURE)
            }
            None => {
                println!("nothing is wrong with it");
                Ok(ExitCode::SUCCESS)
            }
        },
    }
}
