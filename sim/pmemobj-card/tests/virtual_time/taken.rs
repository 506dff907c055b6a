//! What an insertion takes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use nearpm_pmemobj_programs::{Followed, MECHANISMS, callgrind, commands};

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
    /// What closing the pool takes more for it, likewise: there a log goes home.
    pub closing_ns: f64,
    /// Instructions, which that computer does not see, without those of closing.
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
    /// Times so many insertions. Every key is read back, and some that were never there.
    fn timed(&self, operations: u64) -> Timed;

    /// Instructions from one number of insertions to another, without those that are executed
    /// inside of functions of such names.
    fn counted(&self, operations: [u64; 2], outside: &[String]) -> Counted;
}

/// What a run took.
pub struct Timed {
    /// Virtual nanoseconds of the insertions, and of what comes behind them until the pool is
    /// closed.
    ns: [f64; 2],
    /// Of the whole run.
    commands: u64,
}

impl Timed {
    /// Those of a run with a mark in front of the insertions and one behind.
    pub fn of(run: &Followed) -> Timed {
        let [begun, ended] = run.marks_ps[..] else { panic!("{} marks", run.marks_ps.len()) };
        let ns = [ended - begun, run.end_ps - ended].map(|ps| ps as f64 / 1000.0);
        Timed { ns, commands: commands(&String::from_utf8_lossy(&run.output.stderr)) }
    }
}

/// Instructions that were counted.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// All but those of checksums, which the simulated computer charges.
    own: u64,
    /// How many of them are the simulator's.
    simulator: u64,
}

impl Counted {
    /// Those of a profile.
    pub fn of(profile: &str) -> Counted {
        let (all, [checksums, simulator]) =
            callgrind::own_instructions(profile, ["crc32c::hw_x86_64::", "nearpm_sim::model"]);
        assert!(checksums > 0, "no function makes checksums by its name");
        Counted { own: all - checksums, simulator }
    }

    /// Those that a run has beside another one's.
    pub fn beside(self, other: Counted) -> Counted {
        Counted { own: self.own - other.own, simulator: self.simulator.abs_diff(other.simulator) }
    }
}

/// What an insertion takes, between a number of insertions and three times as many.
fn taken(case: &dyn Case, operations: u64) -> Taken {
    let counts = [operations, 3 * operations];
    let [few, many] = counts.map(|count| case.timed(count));
    let counted = case.counted(counts, &SIMULATED.map(|name| format!("*nearpm_sim::machine::function::{name}")));
    // It is started and stopped alone, which is the same whatever the program does.
    assert!(counted.simulator * 50 < counted.own, "{counted:?}: too many are the simulator's");
    let each = (2 * operations) as f64;
    Taken {
        in_computer_ns: (many.ns[0] - few.ns[0]) / each,
        closing_ns: (many.ns[1] - few.ns[1]) / each,
        instructions: counted.own as f64 / each,
        commands: (many.commands - few.commands) as f64 / each,
    }
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
