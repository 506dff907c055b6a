//! Arguments of the programs `nearpm-gphashbench` and `nearpm gpu hash`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use crate::exhaust::{By, Survivors};
use crate::measure;
use crate::named::{DesignName, Hole, SubjectArguments};

/// What to do with hash tables of a GPU in persistent memory.
#[derive(Subcommand)]
pub enum HashCommand {
    /// Run histories on the interpreter, crash them at any instruction, and check that they are
    /// durably linearizable
    Run(RunArguments),
    /// The same of all tables in turn, until there are so many: the records tell where to go on
    Campaign(CampaignArguments),
    /// Go through every order of two or three threads on one bucket, within a bound on preemptions
    Exhaust(ExhaustArguments),
    /// Measure a GPU, or try the measurements out on the interpreter
    Bench(BenchArguments),
    /// Compare a table on a GPU, or on the interpreter, with a model, operation by operation
    Model(ModelArguments),
    /// Kill processes that work on a table of a GPU, and look at what is left
    Soak(SoakArguments),
    /// Print the results of a measurement
    Report {
        /// The file that `bench --json` has written
        results: PathBuf,
        /// Figures 5 to 15 of the paper instead: what it says, beside what was measured here
        #[arg(long)]
        figures: bool,
    },
}

/// Arguments of a run.
#[derive(Args)]
pub struct RunArguments {
    #[command(flatten)]
    pub(crate) subject: SubjectArguments,
    /// A hole to plant: the run ends with the history that shows it
    #[arg(long)]
    pub(crate) hole: Option<Hole>,
    /// Histories, one a seed
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) histories: u64,
    /// Crashes of each
    #[arg(long, default_value_t = 4)]
    pub(crate) crashes: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Each so many-th seed alone, and what it came to as JSON: for the campaign
    #[arg(long, hide = true)]
    pub(crate) every: Option<u64>,
}

/// Arguments of a campaign.
#[derive(Args)]
pub struct CampaignArguments {
    /// Folder with the records, which are made or gone on with
    #[arg(long)]
    pub(crate) records: PathBuf,
    /// Histories in all, and as many crashes
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) histories: u64,
    /// Crashes of each history, where a record does not say it
    #[arg(long, default_value_t = 2)]
    pub(crate) crashes: u64,
    /// Stop after so many seconds
    #[arg(long)]
    pub(crate) seconds: Option<u64>,
    /// Processes that do it
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub(crate) workers: u64,
}

/// Arguments of exhaustive schedules.
#[derive(Args)]
pub struct ExhaustArguments {
    #[command(flatten)]
    pub(crate) subject: SubjectArguments,
    /// A hole to plant: it ends with the schedule that shows it
    #[arg(long)]
    pub(crate) hole: Option<Hole>,
    /// Threads, of a warp each
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=3))]
    pub(crate) threads: u32,
    /// How often a thread that could go on is made to wait
    #[arg(long, default_value_t = 1)]
    pub(crate) preemptions: u32,
    /// Most states, or schedules, of each choice of operations
    #[arg(long, default_value_t = 100_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: u64,
    /// Crash at each store and fence, too: what survives of the stores that pend there
    #[arg(long, num_args = 0..=1, default_missing_value = "of-threads", require_equals = true)]
    pub(crate) crashes: Option<Survivors>,
    /// What is gone through: each state of the program once, or each schedule; both show the same
    #[arg(long, value_enum, default_value_t = By::States)]
    pub(crate) by: By,
    /// File with the record, which is made or gone on with
    #[arg(long)]
    pub(crate) record: Option<PathBuf>,
    /// Stop after so many seconds, behind a choice of operations
    #[arg(long)]
    pub(crate) seconds: Option<u64>,
    /// Processes that do it, a choice of operations each
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub(crate) workers: u64,
    /// Go through one choice of operations, and print what that came to as JSON: for the command
    /// without it
    #[arg(long, hide = true)]
    pub(crate) trial: Option<usize>,
}

/// Which device runs it.
#[derive(Args)]
pub struct DeviceArguments {
    /// Run on the interpreter: no GPU is used
    #[arg(long)]
    pub(crate) interpreted: bool,
    /// Number of the GPU
    #[arg(long, default_value_t = 0)]
    pub(crate) card: usize,
}

/// Arguments of a model test.
#[derive(Args)]
pub struct ModelArguments {
    #[command(flatten)]
    pub(crate) device: DeviceArguments,
    /// The design
    pub(crate) design: DesignName,
    /// Operations in all
    #[arg(long, default_value_t = 100_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) operations: u64,
    /// Operations of a batch
    #[arg(long, default_value_t = 1 << 18, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub(crate) batch: u32,
    /// Keys that are asked for
    #[arg(long, default_value_t = 1 << 21, value_parser = clap::value_parser!(u32).range(1..=1 << 26))]
    pub(crate) keys: u32,
    /// Of the operations
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

/// Arguments of a soak.
#[derive(Args)]
pub struct SoakArguments {
    #[command(flatten)]
    pub(crate) device: DeviceArguments,
    /// The design
    pub(crate) design: DesignName,
    /// Processes that are killed
    #[arg(long, default_value_t = 200)]
    pub(crate) kills: u32,
    /// What a process that is killed works on
    #[arg(long, hide = true)]
    pub(crate) child: Option<PathBuf>,
    /// Batches that were answered before
    #[arg(long, hide = true, default_value_t = 0)]
    pub(crate) answered: u32,
}

/// Arguments of a measurement.
#[derive(Args)]
pub struct BenchArguments {
    /// On the interpreter sizes are small: nothing is measured, times are predicted from counted
    /// transactions
    #[command(flatten)]
    pub(crate) device: DeviceArguments,
    /// Only these measurements
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(measure::NAMES))]
    pub(crate) only: Vec<String>,
    /// Only these workloads of YCSB: A, B, C, D, F or LOAD. E needs scans, and is refused
    #[arg(long, value_delimiter = ',', value_parser = measure::workload, conflicts_with = "only")]
    pub(crate) workload: Vec<&'static str>,
    /// Repeats of each value
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeats: u32,
    /// Slots of our table for each spare cell
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    pub(crate) spares: u32,
    /// File for the results as JSON
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
    /// File for the results as text, which go to standard output, too
    #[arg(long)]
    pub(crate) text: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        bench: BenchArguments,
    }

    fn workloads(of: &str) -> Result<Vec<&'static str>, String> {
        let parsed = Program::try_parse_from(["bench", "--interpreted", "--workload", of]);
        parsed.map(|program| program.bench.workload).map_err(|error| error.to_string())
    }

    #[test]
    fn scans_are_refused_with_the_reason() {
        assert_eq!(workloads("a,C,load"), Ok(vec!["A", "C", "LOAD"]));
        for name in ["e", "E", "a,E"] {
            let error = workloads(name).expect_err("a hash table cannot scan");
            assert!(error.contains("E scans keys in their order") && error.contains("A, B, C, D, F, LOAD"), "{error}");
        }
        let error = workloads("g").expect_err("there is no such workload");
        assert!(error.contains("no workload of YCSB"), "{error}");
    }

    #[test]
    fn a_workload_is_measured_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.json");
        let words = ["bench", "--interpreted", "--workload=d", "--json", path.to_str().unwrap()];
        let arguments = Program::try_parse_from(words).unwrap().bench;
        assert!(crate::command::bench(&arguments).unwrap());
        let report: nearpm_gpmbench::report::Report =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let ratios = report.rows.iter().filter(|row| row.group == "YCSB, N over P");
        assert_eq!(ratios.map(|row| row.name.as_str()).collect::<Vec<_>>(), ["D", "LOAD"]);
        assert!(report.rows.iter().all(|row| row.group.starts_with("YCSB, ")), "{:?}", report.rows);
    }
}
