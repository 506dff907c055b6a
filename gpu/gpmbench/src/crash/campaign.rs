//! The campaign over all nine programs: units by number, each a program with a schedule and choices
//! of its own, so that it can be stopped and gone on with.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result};
use nearpm_gpu::{Choice, Device, Interpreted, Medium, PmRegion, Schedule};
use serde::{Deserialize, Serialize};

use super::{Campaign, Checkpoints, Database, LogForm, Resumed, Run, Scenario, Store, Sums, Tally, Transactions, Way};
use crate::programs::{Bfs, BlackScholes, Cfd, Digits, Dnn, Graph, Hotspot, Iterative, Mesh, Net, Srad, Stepper};
use crate::{db, prefix, record};

/// How far a campaign has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The unit to go on with.
    pub next: u64,
    /// Crashes of each program: moments, each with several choices of what survives.
    pub crashes: BTreeMap<String, u64>,
    /// Different images that they left, each recovered and compared with its program's oracle.
    #[serde(default)]
    pub images: BTreeMap<String, u64>,
    /// Crashes of their recoveries besides.
    pub second_crashes: u64,
}

impl Record {
    /// Reads a record, or begins one where there is no file.
    ///
    /// # Errors
    /// A file of something else.
    pub fn load(path: &Path) -> Result<Record> {
        Ok(record::read(path)?.unwrap_or_default())
    }

    /// Crashes of all programs.
    pub fn total(&self) -> u64 {
        self.crashes.values().sum()
    }

    /// Adds the unit [`Record::next`].
    pub fn add(&mut self, unit: Unit) {
        let Unit { program, tally } = unit;
        *self.crashes.entry(program.clone()).or_default() += tally.crashes;
        *self.images.entry(program).or_default() += tally.images;
        self.second_crashes += tally.second_crashes;
        self.next += 1;
    }
}

/// A unit of the campaign.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Unit {
    /// Its program.
    pub program: String,
    /// What was done.
    pub tally: Tally,
}

/// Programs of GPMbench, and the logs and checkpoints that they are made of.
const PROGRAMS: [&str; 15] = [
    "gpKVS",
    "gpDB",
    "gpDB, conventional log",
    "DNN",
    "CFD",
    "BLK",
    "HS",
    "BFS",
    "SRAD",
    "PS",
    "sealed log",
    "tail log",
    "conventional log",
    "pages that changed",
    "checkpoints in flight",
];

/// One unit: a program by turns, its crashes by the number.
///
/// # Errors
/// The first failure, with the unit that replays it.
pub fn unit(number: u64) -> Result<Unit> {
    let count = PROGRAMS.len() as u64;
    let (name, round) = (PROGRAMS[(number % count) as usize], number / count);
    crashed(name, round).with_context(|| format!("unit {number}"))
}

fn crashed(name: &str, round: u64) -> Result<Unit> {
    let scenario = scenario(name, round)?;
    let schedule = if round.is_multiple_of(8) { Schedule::RoundRobin } else { Schedule::Seeded(round) };
    let mut choices: Vec<Choice> = (0..6).map(|seed| Choice::Seeded(6 * round + seed)).collect();
    choices.extend([Choice::None, Choice::OnlyThread(round % 64), Choice::AllButThread(round % 64)]);
    let campaign = Campaign { schedules: vec![schedule], choices, every: 1 + round % 5, second: 1 };
    Ok(Unit { program: name.to_owned(), tally: campaign.run(scenario.as_ref())? })
}

/// Iterations of iterative programs, and from checkpoint to checkpoint.
const ITERATIONS: u32 = 3;
const EVERY: u32 = 1;
const BYTES: u64 = 1 << 18;

fn iterated<S: Stepper>(make: impl Fn(&Rc<dyn Device>) -> Result<S> + 'static) -> Result<Box<dyn Scenario>> {
    resumed(BYTES, move |region| {
        let mut iterative = Iterative::open(region, make(region.device())?, EVERY)?;
        iterative.run_until(ITERATIONS)?;
        let state = iterative.program.state();
        Ok(state.iter().map(|(_, buffer)| buffer.download()).collect::<Result<Vec<_>, _>>()?.concat())
    })
}

/// A program whose result, crashed or not, is that of a run of its own.
fn resumed(bytes: u64, run: impl Fn(&PmRegion) -> Result<Vec<u8>> + 'static) -> Result<Box<dyn Scenario>> {
    let device: Rc<dyn Device> = Rc::new(Interpreted::new(64 << 20));
    let region = PmRegion::create_in(device, Medium::of_bytes(vec![0; bytes as usize]))?;
    let expected = run(&region)?;
    let run: Run<'static> = Box::new(run);
    Ok(Box::new(Resumed { bytes, run, expected }))
}

fn scenario(name: &str, round: u64) -> Result<Box<dyn Scenario>> {
    let few = 1 + round as u32 % 4;
    let table = |partitions: u32| -> Box<dyn Scenario> {
        let rows = u64::from(10 * few);
        let sizes = db::Sizes { rows: 2 * rows, updated: 10 * few, groups: 3, partitions };
        Box::new(Database { sizes, rows, module: crate::kernels::db().clone() })
    };
    let transactions = |form| -> Box<dyn Scenario> {
        let module = crate::kernels::txn().clone();
        Box::new(Transactions { form, blocks: 2, threads: 3 + few, rounds: 2, by_processor: round % 2 == 1, module })
    };
    Ok(match name {
        "gpKVS" => {
            let (batch, keys) = (20 * few as usize, if round.is_multiple_of(2) { 60 } else { 1 << 40 });
            Box::new(Store { set_bits: few % 4, batch, keys, module: crate::kernels::kvs().clone() })
        }
        "gpDB" => table(0),
        "gpDB, conventional log" => table(few),
        "DNN" => {
            let net = Net { side: 16, maps: [1, 2], hidden: 3, batch: 2 };
            iterated(move |device| Dnn::new(device, net, &Digits::new(16, 5)))?
        }
        "CFD" => iterated(|device| Cfd::new(device, &Mesh::around_a_rod(42)))?,
        "BLK" => iterated(move |device| BlackScholes::new(device, 30 * few))?,
        "HS" => iterated(move |device| Hotspot::new(device, 3 + few, 8))?,
        "BFS" => {
            let graph = Graph::roads(5 + few, 4, round as u32);
            resumed(Bfs::region_bytes(&graph), move |region| {
                let mut program = Bfs::open(region, &graph)?.with_blocks(few);
                program.run()?;
                Ok(program.levels()?.into_iter().flat_map(u32::to_le_bytes).collect())
            })?
        }
        "SRAD" => resumed(Srad::region_bytes(4 + few, 8), move |region| {
            let program = Srad::open(region, 4 + few, 8)?;
            program.run_until(ITERATIONS.into())?;
            Ok(program.image()?.into_iter().flat_map(f32::to_le_bytes).collect())
        })?,
        "PS" => {
            let sizes = prefix::Sizes { arrays: 1, blocks: few, threads: 32 };
            Box::new(Sums { sizes, module: crate::kernels::prefix().clone() })
        }
        "sealed log" => transactions(LogForm::Sealed),
        "tail log" => transactions(LogForm::Tail),
        "conventional log" => transactions(LogForm::Conventional),
        "pages that changed" => Box::new(Checkpoints { part: 4096, way: Way::Changed }),
        _ => Box::new(Checkpoints { part: 1 << 8, way: Way::Concurrent }),
    })
}
