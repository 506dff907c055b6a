//! Counts the instructions of each path (`evaluation/paths.toml`), under Valgrind's callgrind, and
//! prints them as TOML.
//!
//! ```console
//! $ cargo run --release -p nearpm-evaluation --example instructions > paths.toml
//! $ cargo run --release -p nearpm-evaluation --example instructions -- --jobs 32 > paths.toml   # so many runs at once
//! ```
//!
//! Each program runs on a card that is a mock, at two numbers of transactions, whose difference is
//! divided by that of the numbers. What is executed inside of accesses to the card is not
//! collected, and what is collected of checksums is taken away: the mock, which makes the copies
//! inside of accesses, makes checksums, too, so that collection cannot be switched by both.

use std::collections::BTreeMap;
use std::ops::Range;
use std::process::Command;
use std::sync::Arc;
use std::sync::Mutex;

use anyhow::{Context, Result, bail, ensure};
use nearpm::direct::DirectPool;
use nearpm::memory::CardMemory;
use nearpm::{Caching, Durability, Mechanism, Options, cards};
use nearpm_driver::mock::{MockCard, MockOptions};
use nearpm_driver::pci::{DmaBuffer, Mapping, PciError, PciFunction, Work};
use nearpm_driver::{Card, CardOptions};
use nearpm_evaluation::case::{Case, Configuration};
use nearpm_evaluation::compute::{self, Compute, Paths};
use nearpm_evaluation::plan::{OURS, Scope};
use nearpm_evaluation::served::{Alone, EPOCH};
use nearpm_evaluation::working_copy;
use nearpm_interface::geometry::POOLS_BASE;
use nearpm_pmemobj_programs::callgrind;
use nearpm_workloads::programs::ycsb::Mix;
use nearpm_workloads::programs::{Inputs, Program, Setup, Workload};
use nearpm_workloads::store::{Bare, Lean, Store};

/// Transactions of the two runs; epochs end in both.
const COUNTS: [usize; 2] = [EPOCH, 3 * EPOCH];
/// Tables are the paper's divided by this, as where times are measured.
const SHARE: usize = 200;
/// Programs whose times say what an instruction takes.
const TIMED: [Program; 3] = [Program::Btree, Program::Rbtree, Program::Skiplist];
/// Runs at once, where nobody says how many.
const JOBS: usize = 2;
const LOG_BYTES: u64 = 64 << 10;

/// Accesses that are not counted: functions with this in their names.
struct Outside(Box<dyn Mapping>);

#[inline(never)]
fn xoutsidex_load(view: &dyn Mapping, offset: u64, data: &mut [u8]) {
    view.load(offset, data);
}
#[inline(never)]
fn xoutsidex_store(view: &dyn Mapping, offset: u64, data: &[u8]) {
    view.store(offset, data);
}
#[inline(never)]
fn xoutsidex_line(view: &dyn Mapping, offset: u64, line: &[u8; 64]) {
    view.store_line(offset, line);
}
#[inline(never)]
fn xoutsidex_write_back(view: &dyn Mapping, offset: u64, bytes: u64) {
    view.write_back(offset, bytes);
}
#[inline(never)]
fn xoutsidex_invalidate(view: &dyn Mapping, offset: u64, bytes: u64) {
    view.invalidate(offset, bytes);
}
#[inline(never)]
fn xoutsidex_fence(view: &dyn Mapping) {
    view.fence();
}
#[inline(never)]
fn xoutsidex_dma(buffer: &dyn DmaBuffer, offset: usize, data: &mut [u8]) {
    buffer.load(offset, data);
}
#[inline(never)]
fn xoutsidex_relax(card: &MockCard, ns: u64) {
    card.relax(ns);
}

impl Mapping for Outside {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
    fn load(&self, offset: u64, data: &mut [u8]) {
        xoutsidex_load(&*self.0, offset, data);
    }
    fn store(&self, offset: u64, data: &[u8]) {
        xoutsidex_store(&*self.0, offset, data);
    }
    fn store_line(&self, offset: u64, line: &[u8; 64]) {
        xoutsidex_line(&*self.0, offset, line);
    }
    fn write_back(&self, offset: u64, bytes: u64) {
        xoutsidex_write_back(&*self.0, offset, bytes);
    }
    fn invalidate(&self, offset: u64, bytes: u64) {
        xoutsidex_invalidate(&*self.0, offset, bytes);
    }
    fn fence(&self) {
        xoutsidex_fence(&*self.0);
    }
    fn charge(&self, _work: Work) {}
}

struct Records(Box<dyn DmaBuffer>);

impl DmaBuffer for Records {
    fn bus_address(&self) -> u64 {
        self.0.bus_address()
    }
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
    fn load(&self, offset: usize, data: &mut [u8]) {
        xoutsidex_dma(&*self.0, offset, data);
    }
}

struct Function(MockCard);

impl PciFunction for Function {
    fn config_read(&self, offset: u16, data: &mut [u8]) -> Result<(), PciError> {
        self.0.config_read(offset, data)
    }
    fn config_write(&self, offset: u16, data: &[u8]) -> Result<(), PciError> {
        self.0.config_write(offset, data)
    }
    fn bar_bytes(&self, bar: usize) -> Option<u64> {
        self.0.bar_bytes(bar)
    }
    fn map(&self, bar: usize, range: Range<u64>, caching: Caching) -> Result<Box<dyn Mapping>, PciError> {
        Ok(Box::new(Outside(self.0.map(bar, range, caching)?)))
    }
    fn interrupt_vectors(&self) -> usize {
        self.0.interrupt_vectors()
    }
    fn wait_interrupt(&self, vector: usize, timeout_ns: u64) -> Result<bool, PciError> {
        self.0.wait_interrupt(vector, timeout_ns)
    }
    fn allocate_dma(&self, bytes: usize) -> Result<Box<dyn DmaBuffer>, PciError> {
        Ok(Box::new(Records(self.0.allocate_dma(bytes)?)))
    }
    fn reset(&self) -> Result<(), PciError> {
        self.0.reset()
    }
    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }
    fn relax(&self, ns: u64) {
        xoutsidex_relax(&self.0, ns);
    }
    fn host_boot(&self) -> Option<u64> {
        self.0.host_boot()
    }
    fn contended(&self) -> bool {
        self.0.contended()
    }
}

/// Bytes of the log: the pages of an epoch fit, and no more, for the mock takes long for them.
fn ring_bytes(program: Program) -> u32 {
    if program == Program::Tpcc { 4 << 20 } else { 1 << 20 }
}

/// A card with room for so many bytes of pools.
fn card(bytes: u64) -> Result<Arc<Card>> {
    let options =
        MockOptions { pm_bytes: (POOLS_BASE + bytes) as usize + (1 << 20), evict_one_in: 0, ..MockOptions::default() };
    let card = Card::open(Arc::new(Function(MockCard::new(options))), CardOptions::default())?;
    Ok(Arc::new(card))
}

fn workload(program: Program) -> Box<dyn Workload> {
    // The larger number in both runs, so that what is made before is the same.
    program.make(&Setup { inputs: Inputs::Corrected, seed: 1, count: COUNTS[1], share: SHARE, mix: Mix::W1 })
}

/// Runs so many transactions on a store of its own.
fn alone<S: Store>(program: Box<dyn Workload>, store: S, count: usize) -> Result<()> {
    let mut alone = Alone::prepare(program, store)?;
    (0..count).try_for_each(|_| alone.apply())?;
    alone.check()
}

fn pool(program: Box<dyn Workload>, bytes: u64, case: &Case, count: usize) -> Result<()> {
    let engine = case.configuration.engine();
    let options = Options::new().lanes(1).ring_bytes(ring_bytes(case.program)).epoch_ops(EPOCH as u64);
    let options = options.mechanism(case.mechanism).engine(engine).durability(Durability::Durable);
    let pool = options.create("card:mock/pool", bytes)?;
    program.create(&pool)?;
    let root = pool.root()?;
    (0..count).try_for_each(|number| pool.tx(|tx| program.apply(tx, root, number)))?;
    pool.persist()?;
    let found = nearpm_workloads::check::rows(&pool, &*program)?.context("the pool has a root")?;
    ensure!(found == program.after(count), "the pool does not hold what the model says");
    Ok(pool.close()?)
}

/// The same on a working copy.
fn copied(program: Box<dyn Workload>, bytes: u64, case: &Case, count: usize) -> Result<()> {
    let options = working_copy::options(case, ring_bytes(case.program));
    let mut alone = working_copy::prepare(program, &options, "card:mock/pool", bytes)?.reopen(|pool| {
        pool.close()?;
        Ok(DirectPool::open("card:mock/pool", &options)?)
    })?;
    let before = alone.store().statistics();
    working_copy::run(case, &mut alone, count, |pool| pool, || ())?;
    let commands = alone.store().statistics().since(&before).commands;
    ensure!(case.configuration.uses_card() == (commands > 0), "the card was given {commands} commands");
    alone.check()
}

/// Runs a path, for callgrind to count in.
fn execute(case: &Case, count: usize) -> Result<()> {
    let program = workload(case.program);
    let bytes = (2 * program.bytes() + 3 * u64::from(ring_bytes(case.program)) + (2 << 20)).next_multiple_of(1 << 20);
    let card = card(bytes + (4 << 20))?;
    cards::register("mock", card.clone());
    let memory = || CardMemory::map(card.clone(), None, POOLS_BASE, bytes, Caching::WriteBack);
    match case.configuration {
        Configuration::Bare => alone(program, Bare::new(memory()?), count),
        Configuration::Lean => alone(program, Lean::create(memory()?, LOG_BYTES)?, count),
        of if of.is_copy() => copied(program, bytes, case, count),
        _ => pool(program, bytes, case, count),
    }
}

/// Every path of a program.
fn paths(program: Program) -> Vec<Case> {
    let of = |(mechanism, of)| Scope::QUICK.by_path(OURS, program, mechanism, of);
    Configuration::choices().into_iter().map(of).collect()
}

/// What the functions that make checksums have in their names.
const CHECKSUM: &str = "crc32c::hw_x86_64::";

/// Instructions of this program with some arguments, but for those outside.
fn counted(arguments: &[String]) -> Result<u64> {
    let folder = tempfile::tempdir()?;
    let profile = folder.path().join("out");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=*xoutsidex*", "--collect-atstart=yes"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(std::env::current_exe()?)
        .args(arguments)
        .output()
        .context("valgrind does not start (Debian: valgrind)")?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{arguments:?}: {text}");
    let line = text.lines().find_map(|line| line.split("Collected :").nth(1)).context("callgrind says nothing")?;
    let collected: u64 = line.trim().parse()?;
    let (all, [checksums]) = callgrind::own_instructions(&std::fs::read_to_string(profile)?, [CHECKSUM]);
    ensure!(all == collected, "{arguments:?}: the profile has {all} instructions of {collected}");
    // Without a log there is nothing to sum.
    let has_log = arguments.iter().any(|argument| argument.contains("cpu") || argument.contains("card"));
    ensure!(checksums > 0 || !has_log, "{arguments:?}: no function has the name {CHECKSUM}");
    Ok(collected - checksums)
}

/// Instructions a transaction of a run with such arguments and a number of transactions behind
/// them.
fn a_transaction(arguments: &[&str]) -> Result<f64> {
    let of = |count: usize| {
        let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).chain([count.to_string()]).collect();
        counted(&arguments)
    };
    let [few, many] = [of(COUNTS[0])?, of(COUNTS[1])?];
    Ok((many - few) as f64 / (COUNTS[1] - COUNTS[0]) as f64)
}

/// What an instruction takes: times that were measured, over the instructions of what was timed.
fn ns_per_instruction(in_cache: &Counts) -> Result<f64> {
    let compute = Compute::stored()?;
    let (mut ns, mut instructions) = (0.0, 0.0);
    for program in TIMED {
        for mechanism in Mechanism::ALL {
            let times = compute.of(program)?;
            ns += times.program_ns + times.library(mechanism);
            instructions += in_cache[program.name()][mechanism.name()];
        }
    }
    Ok(ns / instructions)
}

/// Instructions a transaction, by program and path.
type Counts = BTreeMap<String, BTreeMap<String, f64>>;

/// Counts kinds of paths, which are arguments of this program, `jobs` at once.
fn counted_paths(jobs: usize, wanted: Vec<(&str, Program, String)>) -> Result<BTreeMap<String, Counts>> {
    let wanted = Mutex::new(wanted);
    let found: Mutex<BTreeMap<String, Counts>> = Mutex::default();
    std::thread::scope(|scope| {
        let count = || -> Result<()> {
            loop {
                let Some((kind, program, path)) = wanted.lock().expect("no panic").pop() else { return Ok(()) };
                let instructions = a_transaction(&[kind, program.name(), &path])?;
                eprintln!("{kind} {} {path}: {instructions:.0}", program.name());
                let mut found = found.lock().expect("no panic");
                let of_kind = found.entry(kind.to_owned()).or_default();
                of_kind.entry(program.name().to_owned()).or_default().insert(path, instructions);
            }
        };
        let jobs: Vec<_> = (0..jobs).map(|_| scope.spawn(count)).collect();
        jobs.into_iter().try_for_each(|job| job.join().expect("no panic"))
    })?;
    Ok(found.into_inner().expect("no panic"))
}

fn all(jobs: usize) -> Result<()> {
    let of_path = |case: Case| ("path", case.program, compute::path(&case));
    let in_cache =
        TIMED.into_iter().flat_map(|program| Mechanism::ALL.map(|m| ("in-cache", program, m.name().to_owned())));
    let wanted = in_cache.chain(Program::ALL.into_iter().flat_map(paths).map(of_path)).collect();
    let mut found = counted_paths(jobs, wanted)?;
    let mut of = |kind: &str| found.remove(kind).context("it was counted");
    let mut programs = of("path")?;
    programs.values_mut().flat_map(BTreeMap::values_mut).for_each(|instructions| *instructions = instructions.round());
    let origin = "instructions a transaction by valgrind's callgrind, of this workspace as its release profile builds it, on a mock card; accesses to the card and checksums \
                  left out, which the simulated host charges; ns_per_instruction: the times of compute.toml over the instructions of what was timed there, btree, rbtree and skiplist under all mechanisms";
    let paths = Paths {
        origin: origin.into(),
        ns_per_instruction: (ns_per_instruction(&of("in-cache")?)? * 1e4).round() / 1e4,
        programs,
    };
    print!("{}", toml::to_string(&paths)?);
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let program = |name: &str| name.parse::<Program>().map_err(anyhow::Error::msg);
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => all(JOBS),
        ["--jobs", jobs] => all(jobs.parse().context("--jobs takes a number")?),
        ["path", of, path, count] => {
            let case = paths(program(of)?).into_iter().find(|case| compute::path(case) == path);
            execute(&case.context("there is no such path")?, count.parse()?)
        }
        ["counted", ..] => {
            println!("{}", counted(&arguments[1..])?);
            Ok(())
        }
        ["in-cache", of, mechanism, count] => {
            let mechanism = Mechanism::ALL.into_iter().find(|m| m.name() == mechanism).context("no such mechanism")?;
            compute::execute(program(of)?, mechanism, COUNTS[1], count.parse()?)
        }
        _ => bail!("no arguments, --jobs and a number, or those that it gives itself"),
    }
}
