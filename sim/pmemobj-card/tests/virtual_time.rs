//! PMDK's map programs, unmodified binaries, on the simulated card in virtual time, each way
//! charged with the instructions that it executes.
//!
//! ```console
//! $ NEARPM_THOROUGH=1 cargo nextest run --release -p nearpm-pmemobj-card --test virtual_time --no-capture    # the table of docs/pmdk-card.md
//! ```
//!
//! A program stops where its timed part begins and ends (`evaluation/pmdk/programs/common.c`,
//! `--counted`); there the file of `NEARPM_CARD_CLOCK` says how far the computer of the card has
//! come. In between the program has executed instructions, which that computer does not see:
//! callgrind counts them, without those of the simulator and of checksums, which the computer
//! charges. Their time is added, as if the card did nothing meanwhile.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use nearpm_pmemobj_programs::{MECHANISMS, Program, callgrind, commands};

/// What an instruction takes, and where it stands.
const PATHS: &str = include_str!("../../../evaluation/paths.toml");
const MAPS: [&str; 4] = ["btree", "rbtree", "skiplist", "hashmap"];
/// Ways that run at once.
const JOBS: usize = 6;
/// Pools are so large.
const POOL_MIB: &str = "32";
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
struct Way {
    mechanism: &'static str,
    executor: &'static str,
    /// Whether `TX_END` waits for the medium: see `NEARPM_DURABILITY`.
    durability: &'static str,
}

fn ways(durability: &'static str) -> Vec<Way> {
    let of = |mechanism| ["cpu", "card"].map(|executor| Way { mechanism, executor, durability });
    let records = Way { mechanism: "record", executor: "cpu", durability };
    std::iter::once(records).chain(MECHANISMS.into_iter().flat_map(of)).collect()
}

/// What an insertion takes.
#[derive(Clone, Copy, Debug)]
struct Taken {
    /// In the card's computer, and for instructions.
    ns: [f64; 2],
    commands: f64,
}

impl Taken {
    fn ns(&self) -> f64 {
        self.ns.iter().sum()
    }
}

fn ns_per_instruction() -> f64 {
    let found = PATHS.lines().find_map(|line| line.strip_prefix("ns_per_instruction = "));
    found.and_then(|number| number.parse().ok()).expect("paths.toml has it")
}

struct Runner<'p> {
    program: &'p Program,
    map: &'static str,
    way: Way,
}

impl Runner<'_> {
    fn arguments(&self, folder: &Path, operations: u64) -> Vec<String> {
        let pool = folder.join("pool");
        let pool = pool.to_str().expect("the folder's name is text");
        ["--pool", pool, "--pool-mib", POOL_MIB, "--variant", self.map, "--ops", &operations.to_string()]
            .map(str::to_owned)
            .to_vec()
    }

    fn variables(&self) -> [(&'static str, &'static str); 3] {
        let Way { mechanism, executor, durability } = self.way;
        [("NEARPM_MECHANISM", mechanism), ("NEARPM_EXECUTOR", executor), ("NEARPM_DURABILITY", durability)]
    }

    /// Virtual nanoseconds of the timed part, and commands of the whole run. The program reads
    /// every key back, and some that were never there.
    fn timed(&self, operations: u64) -> (f64, u64) {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder for the card");
        let arguments = self.arguments(folder.path(), operations);
        let run = self.program.followed_on_card(folder.path(), &arguments, &self.variables());
        let text = String::from_utf8_lossy(&run.output.stderr);
        assert!(run.output.status.success(), "{} by {:?}: {}\n{text}", self.map, self.way, run.output.status);
        let said = String::from_utf8_lossy(&run.output.stdout);
        assert!(said.contains(&format!("\"ops\":{operations},")), "{said}");
        let [begun, ended] = run.marks_ps[..] else { panic!("{} marks", run.marks_ps.len()) };
        ((ended - begun) as f64 / 1000.0, commands(&text))
    }

    /// Instructions of a whole run, but for those of checksums and inside of accesses to the card,
    /// and how many of them are the simulator's.
    fn instructions(&self, operations: u64) -> [u64; 2] {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder for the card");
        let profile = self.program.profiled_on_card(
            folder.path(),
            &self.arguments(folder.path(), operations),
            &self.variables(),
            &SIMULATED.map(|name| format!("*nearpm_sim::machine::function::{name}")),
        );
        let (all, [checksums, simulator]) =
            callgrind::own_instructions(&profile, ["hw_x86_64::crc32c", "nearpm_sim::model"]);
        assert!(checksums > 0, "no function makes checksums by its name");
        [all - checksums, simulator]
    }

    /// What an insertion takes, between a number of insertions and three times as many.
    fn taken(&self, operations: u64) -> Taken {
        let counts = [operations, 3 * operations];
        let [few, many] = counts.map(|count| self.timed(count));
        let [fewer, more] = counts.map(|count| self.instructions(count));
        let each = (2 * operations) as f64;
        // Of the simulator it is started and stopped alone, which is the same in both runs.
        let [instructions, simulator] = [0, 1].map(|of| (more[of] as f64 - fewer[of] as f64) / each);
        assert!(
            simulator.abs() * 50.0 < instructions,
            "{simulator} of {instructions} instructions are the simulator's"
        );
        let ns = [(many.0 - few.0) / each, instructions * ns_per_instruction()];
        Taken { ns, commands: (many.1 - few.1) as f64 / each }
    }
}

/// The least of a row's ways by the processor, and of those by the card.
fn best(row: &[(Way, Taken)], executor: &str) -> f64 {
    row.iter().filter(|(way, _)| way.executor == executor).map(|(_, taken)| taken.ns()).fold(f64::INFINITY, f64::min)
}

fn table(rows: &[(&str, Vec<(Way, Taken)>)]) -> String {
    let line = |label: &str, cells: Vec<String>| format!("| {label} | {} |\n", cells.join(" | "));
    let mut text = line("way", rows.iter().map(|(map, _)| (*map).to_owned()).collect());
    text += &format!("|---|{}\n", "--:|".repeat(rows.len()));
    for (number, (way, _)) in rows[0].1.iter().enumerate() {
        let cell = |(_, taken): &(Way, Taken)| {
            let [card, instructions] = taken.ns;
            format!("{:.0} ({card:.0} + {instructions:.0}; {:.1})", taken.ns(), taken.commands)
        };
        text += &line(
            &format!("{}, {}", way.mechanism, way.executor),
            rows.iter().map(|(_, row)| cell(&row[number])).collect(),
        );
    }
    let ratio = |row: &[(Way, Taken)]| format!("{:.2}", best(row, "cpu") / best(row, "card"));
    text + &line("best CPU / best card", rows.iter().map(|(_, row)| ratio(row)).collect())
}

/// What an insertion takes by each of some ways, several at a time: virtual time does not depend on
/// what else the machine does.
fn all_taken(program: &Program, wanted: &[(&'static str, Way)], operations: u64) -> Vec<Taken> {
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<Option<Taken>>> = Mutex::new(vec![None; wanted.len()]);
    std::thread::scope(|scope| {
        for _ in 0..JOBS {
            scope.spawn(|| {
                while let Some((number, &(map, way))) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|number| Some((number, wanted.get(number)?)))
                {
                    let taken = Runner { program, map, way }.taken(operations);
                    eprintln!("{map} {way:?}: {taken:?}");
                    found.lock().expect("no panic")[number] = Some(taken);
                }
            });
        }
    });
    found.into_inner().expect("no panic").into_iter().map(|taken| taken.expect("each was run")).collect()
}

/// What an insertion takes by each way, checked, and in thorough runs printed as a table.
fn measure(durability: &'static str) {
    if std::process::Command::new("valgrind").arg("--version").output().is_err() {
        return nearpm_pmemobj_programs::skip("valgrind is not installed (Debian: valgrind)");
    }
    let Some(program) = Program::maps() else { return };
    let all = ways(durability);
    let (maps, wanted, operations) = match nearpm_tier::thorough() {
        true => (&MAPS[..], all, 100),
        false => (&MAPS[..1], vec![all[0], all[1], all[2]], 40),
    };
    let wanted: Vec<(&'static str, Way)> =
        maps.iter().flat_map(|&map| wanted.iter().map(move |&way| (map, way))).collect();
    let taken = all_taken(&program, &wanted, operations);
    for ((map, way), taken) in wanted.iter().zip(&taken) {
        // Asynchronous commits share an epoch, whose commands may come behind the last insertion.
        let commands = if durability == "durable" { 1.0 } else { 0.01 };
        assert_eq!(taken.commands >= commands, way.executor == "card", "{map} {way:?}: {taken:?}");
        // A durable commit waits for a read-back at least, and an insertion has thousands of
        // instructions.
        let waits = if durability == "durable" { 300.0 } else { 0.0 };
        assert!(taken.ns[0] > waits && taken.ns[1] > 100.0, "{map} {way:?}: {taken:?}");
    }
    let of = |map: &str| {
        let all = wanted.iter().zip(&taken).filter(|((of, _), _)| *of == map);
        all.map(|((_, way), taken)| (*way, *taken)).collect::<Vec<(Way, Taken)>>()
    };
    let rows: Vec<(&str, Vec<(Way, Taken)>)> = maps.iter().map(|&map| (map, of(map))).collect();
    if nearpm_tier::thorough() {
        let ratios = rows.iter().map(|(_, row)| best(row, "cpu") / best(row, "card"));
        let mean = ratios.clone().sum::<f64>() / rows.len() as f64;
        let geometric = ratios.map(f64::ln).sum::<f64>() / rows.len() as f64;
        println!("{}\nbest CPU / best card: mean {mean:.2}, geometric mean {:.2}", table(&rows), geometric.exp());
    }
}

#[test]
fn unmodified_map_programs_have_a_time_on_the_card_with_their_instructions() {
    measure("durable");
}

/// With `NEARPM_DURABILITY=asynchronous` on both sides.
#[test]
fn map_programs_with_asynchronous_commits_have_a_time_on_the_card() {
    measure("asynchronous");
}
