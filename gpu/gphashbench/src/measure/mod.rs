//! The measurements. Each looks at what was stored or read before it says how fast.

mod cache;
mod curves;
mod factors;
mod growth;
mod large;
mod latency;
mod micro;
mod processor;
mod records;
mod streams;
mod wide;
mod wide_ycsb;
mod ycsb;

use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, ensure};
use nearpm_gphash::{Design, Layout, Op, Operations, Outcome, Table};
use nearpm_gpmbench::report::Report;
use nearpm_gpu::{Device, Medium, PmRegion};

pub use records::Records;

use crate::skew::Choice;

/// Names of the measurements, in the order in which they are made.
pub const NAMES: [&str; 16] = [
    "micro",
    "volatile",
    "latency",
    "ycsb",
    "large",
    "cache",
    "growth",
    "wide",
    "wide-ycsb",
    "load",
    "dlrm",
    "pagerank",
    "curves",
    "factors",
    "unsound",
    "processor",
];

/// Bytes of a value, as in the paper.
const VALUE: u32 = 128;

/// YCSB's workloads: name, share of reads in percent, what the others are, and which records are
/// asked for.
const WORKLOADS: [(&str, u32, Op, Choice); 5] = [
    ("A", 50, Op::Update, Choice::Scrambled),
    ("B", 95, Op::Update, Choice::Scrambled),
    ("C", 100, Op::Update, Choice::Scrambled),
    ("D", 95, Op::Insert, Choice::Latest),
    ("F", 50, Op::Rmw, Choice::Scrambled),
];

/// What YCSB calls the filling of a table.
const LOAD: &str = "LOAD";

/// A workload of YCSB by its name, capital or not.
///
/// # Errors
/// One that is not measured, and why.
pub fn workload(name: &str) -> Result<&'static str, String> {
    let known = || WORKLOADS.iter().map(|(known, ..)| *known).chain([LOAD]);
    known().find(|known| known.eq_ignore_ascii_case(name)).ok_or_else(|| {
        let known = known().collect::<Vec<_>>().join(", ");
        match name.eq_ignore_ascii_case("E") {
            true => format!("E scans keys in their order, and a hash table has them in none; there are {known}"),
            false => format!("no workload of YCSB that is measured; there are {known}"),
        }
    })
}

/// What is measured on.
pub struct Bench {
    /// The device.
    pub device: Rc<dyn Device>,
    /// Whether it is a GPU: the sizes of the aims. On the interpreter small ones.
    pub full: bool,
    /// Repeats of what can be repeated.
    pub repeats: usize,
    /// Spare cells of our table, of its slots: 1 of so many.
    pub spares: u32,
    /// Workloads of YCSB by the measurement `ycsb`, beside LOAD, which fills the table: all, where
    /// none is named.
    pub workloads: Vec<&'static str>,
}

/// A table under test.
pub struct Subject {
    /// What the report calls it.
    pub name: &'static str,
    /// Its design.
    pub design: Design,
    /// Holes that are planted: those of the paper's table, to be compared with.
    pub holes: u32,
}

/// Our design, the paper's repaired, and the paper's.
pub const SUBJECTS: [Subject; 2] = [
    Subject { name: "N (ours)", design: Design::Tags, holes: 0 },
    Subject { name: "P (paper's, repaired)", design: Design::Levels, holes: 0 },
];
/// Fence, readers and duplicates as the paper's table has them.
pub const UNSOUND: Subject = Subject { name: "P with the paper's holes", design: Design::Levels, holes: 1 | 2 | 4 };

impl Subject {
    fn layout(&self, bench: &Bench, slots: u64, value_bytes: u32) -> Layout {
        match self.design {
            Design::Tags => {
                let layout = Layout::tags(slots, value_bytes);
                Layout { spares: (layout.buckets / layout.windows * layout.width / bench.spares).max(64), ..layout }
            }
            Design::Levels => Layout::levels(slots, value_bytes),
        }
    }

    fn create(&self, bench: &Bench, slots: u64, value_bytes: u32, batch: u32) -> Result<(PmRegion, Table)> {
        let layout = self.layout(bench, slots, value_bytes);
        let region = region(bench, &layout)?;
        let table = Table::create(&region, "table", &layout, 1)?;
        drop(table);
        let table = self.open(&region, batch)?;
        Ok((region, table))
    }

    fn open(&self, region: &PmRegion, batch: u32) -> Result<Table> {
        let mut table = match self.holes {
            0 => Table::open(region, "table")?,
            _ => Table::open_with(region, "table", nearpm_gphash::level_kernels_with_holes())?,
        };
        if self.holes != 0 {
            table.plant(self.holes)?;
        }
        table.sort_batches(batch)?;
        Ok(table)
    }

    /// Most updates that a batch may have.
    fn most_updates(&self, layout: &Layout) -> u32 {
        match self.design {
            Design::Tags => (u64::from(layout.windows) * u64::from(layout.spares) * 9 / 10) as u32,
            Design::Levels => layout.spares,
        }
    }
}

/// Makes a measurement by its name; what fails is in the report.
pub fn run(bench: &Bench, name: &str, report: &mut Report) {
    let outcome = match name {
        "micro" => SUBJECTS.iter().try_for_each(|subject| micro::measure(bench, subject, report)),
        "volatile" => micro::volatile(bench, report),
        "latency" => SUBJECTS.iter().try_for_each(|subject| latency::measure(bench, subject, report)),
        "ycsb" => ycsb::measure(bench, report),
        "large" => large::measure(bench, report),
        "cache" => cache::measure(bench, report),
        "growth" => growth::growth(bench, report),
        "wide" => wide::measure(bench, report),
        "wide-ycsb" => wide_ycsb::measure(bench, report),
        "load" => growth::load(bench, report),
        "dlrm" => streams::dlrm(bench, report),
        "curves" => curves::measure(bench, report),
        "factors" => factors::measure(bench, report),
        "pagerank" => streams::pagerank(bench, report),
        "processor" => processor::measure(bench, report),
        _ => micro::measure(bench, &UNSOUND, report),
    };
    if let Err(error) = outcome {
        eprintln!("{name}: {error:#}");
        report.failures.push(format!("{name}: {error:#}"));
    }
}

impl Bench {
    fn pick<T>(&self, small: T, full: T) -> T {
        if self.full { full } else { small }
    }

    /// The time of batches that run one after the other.
    fn time(&self, table: &Table, batches: &[Operations]) -> Result<Duration> {
        let mut failed = Ok(());
        let elapsed = self.device.time(&mut || {
            failed = batches.iter().try_for_each(|batch| table.run(batch));
            Ok(())
        })?;
        failed?;
        Ok(elapsed.time.max(Duration::from_nanos(1)))
    }
}

fn all(what: &str, wrong: u32, of: u32) -> Result<()> {
    ensure!(wrong == 0, "{what}: {wrong} of {of} operations went wrong: no figure is printed");
    Ok(())
}

/// A region for a table.
fn region(bench: &Bench, layout: &Layout) -> Result<PmRegion> {
    let medium = Medium::memfd((layout.bytes() + (1 << 20)).next_multiple_of(1 << 21))?;
    Ok(PmRegion::create_in(bench.device.clone(), medium)?)
}

/// Inserts records from `first` on, in batches, each looked at.
fn insert(bench: &Bench, table: &Table, records: &Records, first: u32, count: u32, most: u32) -> Result<Duration> {
    let mut time = Duration::ZERO;
    for at in (first..first + count).step_by(most as usize) {
        let piece = most.min(first + count - at);
        let batch = records.fill(records.sequence(Op::Insert, at.into(), piece, 0)?, 1)?;
        time += bench.time(table, std::slice::from_ref(&batch))?;
        all("insert", records.wrong(&batch, None, Outcome::Done, 1, false)?, piece)?;
    }
    Ok(time)
}
