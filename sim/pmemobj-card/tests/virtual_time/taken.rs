//! What an insertion takes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use nearpm_pmemobj_programs::{MECHANISMS, callgrind};

/// What an instruction takes, and where it stands.
const PATHS: &str = include_str!("../../../../evaluation/paths.toml");
/// Ways that run at once, where there are processors for them.
const JOBS: usize = 6;
/// What the simulated computer executes and charges itself.
const SIMULATED: [&str; 13] = [
    "View as nearpm_driver::pci::Mapping>::load",
    "View as nearpm_driver::pci::Mapping>::store",
    "View as nearpm_driver::pci::Mapping>::store_line",
    "View as nearpm_driver::pci::Mapping>::write_back",
    "View as nearpm_driver::pci::Mapping>::invalidate",
    "View as nearpm_driver::pci::Mapping>::fence",
    "View as nearpm_driver::pci::Mapping>::prefetch",
    "View as nearpm_driver::pci::Mapping>::charge",
    "Function as nearpm_driver::pci::PciFunction>::wait_interrupt",
    "Function as nearpm_driver::pci::PciFunction>::relax",
    "Function as nearpm_driver::pci::PciFunction>::now_ns",
    "Function as nearpm_driver::pci::PciFunction>::contended",
    "Buffer as nearpm_driver::pci::DmaBuffer>::load",
];

/// How a program's commits go home: by records, or by a mechanism, and who makes the copies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Way {
    pub mechanism: &'static str,
    pub executor: &'static str,
    /// Whether `TX_END` waits for the medium: see `NEARPM_DURABILITY`.
    pub durability: &'static str,
}

impl Way {
    /// What tells the library.
    pub fn variables(&self) -> [(&'static str, &'static str); 3] {
        let Way { mechanism, executor, durability } = *self;
        [("NEARPM_MECHANISM", mechanism), ("NEARPM_EXECUTOR", executor), ("NEARPM_DURABILITY", durability)]
    }
}

/// The nine ways.
pub fn ways(durability: &'static str) -> Vec<Way> {
    let of = |mechanism| ["cpu", "card"].map(|executor| Way { mechanism, executor, durability });
    let records = Way { mechanism: "record", executor: "cpu", durability };
    std::iter::once(records).chain(MECHANISMS.into_iter().flat_map(of)).collect()
}

/// What an insertion takes.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Virtual nanoseconds in the card's computer.
    pub in_computer_ns: f64,
    /// Instructions, which that computer does not see.
    pub instructions: f64,
    /// Commands that are posted.
    pub commands: f64,
}

impl Taken {
    /// Virtual nanoseconds of the instructions, as if the card did nothing meanwhile.
    pub fn of_instructions_ns(&self) -> f64 {
        self.instructions * ns_per_instruction()
    }

    pub fn ns(&self) -> f64 {
        self.in_computer_ns + self.of_instructions_ns()
    }
}

fn ns_per_instruction() -> f64 {
    let found = PATHS.lines().find_map(|line| line.strip_prefix("ns_per_instruction = "));
    found.and_then(|number| number.parse().ok()).expect("paths.toml has it")
}

/// A program that inserts into maps.
pub trait Subject: Sync {
    /// Makes it ready to insert into a map by a way.
    fn case(&self, map: &'static str, way: Way) -> Box<dyn Case + '_>;
}

/// Insertions into a map by a way. Each run begins with the same empty map.
pub trait Case {
    /// Virtual nanoseconds of so many insertions and what each run takes beside them, and commands
    /// of the whole run. Every key is read back, and some that were never there.
    fn timed(&self, operations: u64) -> (f64, u64);

    /// What callgrind writes of a whole run, without what is executed inside of functions of such
    /// names.
    fn profile(&self, operations: u64, outside: &[String]) -> String;
}

/// Instructions of a whole run, but for those of checksums and inside of accesses to the card, and
/// how many of them are the simulator's.
fn instructions(case: &dyn Case, operations: u64) -> [u64; 2] {
    let outside = SIMULATED.map(|name| format!("*nearpm_sim::machine::function::{name}"));
    let profile = case.profile(operations, &outside);
    let (all, [checksums, simulator]) =
        callgrind::own_instructions(&profile, ["crc32c::hw_x86_64::", "nearpm_sim::model"]);
    assert!(checksums > 0, "no function makes checksums by its name");
    [all - checksums, simulator]
}

/// What an insertion takes, between a number of insertions and three times as many.
fn taken(case: &dyn Case, operations: u64) -> Taken {
    let counts = [operations, 3 * operations];
    let [few, many] = counts.map(|count| case.timed(count));
    let [fewer, more] = counts.map(|count| instructions(case, count));
    let each = (2 * operations) as f64;
    // Of the simulator it is started and stopped alone, which is the same in both runs.
    let [instructions, simulator] = [0, 1].map(|of| (more[of] as f64 - fewer[of] as f64) / each);
    assert!(simulator.abs() * 50.0 < instructions, "{simulator} of {instructions} instructions are the simulator's");
    Taken { in_computer_ns: (many.0 - few.0) / each, instructions, commands: (many.1 - few.1) as f64 / each }
}

/// What an insertion takes by each of some ways, several at a time: virtual time does not depend on
/// what else the machine does.
pub fn all_taken(subject: &dyn Subject, wanted: &[(&'static str, Way)], operations: u64) -> Vec<Taken> {
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<Option<Taken>>> = Mutex::new(vec![None; wanted.len()]);
    let jobs = std::thread::available_parallelism().map_or(1, |processors| processors.get().min(JOBS));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some((number, &(map, way))) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|number| Some((number, wanted.get(number)?)))
                {
                    let taken = taken(&*subject.case(map, way), operations);
                    eprintln!("{map} {way:?}: {taken:?}");
                    found.lock().expect("no panic")[number] = Some(taken);
                }
            });
        }
    });
    found.into_inner().expect("no panic").into_iter().map(|taken| taken.expect("each was run")).collect()
}
