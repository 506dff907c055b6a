//! What is run: a program with its parameters.

use nearpm_text::size;
use serde::{Deserialize, Serialize};

use crate::programs::Program;

/// The maps, by the names that the program knows.
pub const MAPS: [&str; 4] = ["btree", "rbtree", "skiplist", "hashmap"];
/// A skip list of four levels searches linearly in so many entries that more hide the library.
const MOST_OPS_SKIPLIST: u64 = 10_000;
/// Ranges a transaction and their bytes; none is the empty transaction.
const ADDS: [(u32, u64); 11] = [
    (0, 8),
    (1, 8),
    (4, 8),
    (16, 8),
    (1, 64),
    (16, 64),
    (1, 1 << 10),
    (16, 4 << 10),
    (1, 64 << 10),
    (1, 1 << 20),
    (16, 1 << 20),
];
/// Insertions that are counted: how many entries a hash map moves depends on how many it holds.
const COUNTED_INSERTS: u64 = 10_000;
/// Operations of other programs that are counted: each is like the next.
const COUNTED_OPS: u64 = 1_000;
/// Bytes that all the operations of a case of `adds` modify at most.
const MOST_ADDED: u64 = 256 << 20;
/// Sizes of objects, in bytes.
const ALLOC_BYTES: [u64; 5] = [8, 64, 512, 4 << 10, 64 << 10];
/// How bytes become durable outside of transactions, and how many.
const PERSISTS: [(&str, u64); 7] = [
    ("persist", 64),
    ("persist", 4 << 10),
    ("memcpy", 64),
    ("memcpy", 1 << 10),
    ("memcpy", 64 << 10),
    ("memset", 64),
    ("memset", 4 << 10),
];
/// Single calls by the names that the program knows, and the bytes that they are told of.
const CALLS: [(&str, u64); 24] = [
    ("zalloc", 64),
    ("zalloc", 4 << 10),
    ("zalloc", 64 << 10),
    ("tx-zalloc", 64),
    ("tx-zalloc", 4 << 10),
    ("tx-zalloc", 64 << 10),
    ("construct", 64),
    ("realloc", 64),
    ("reserve", 64),
    ("set-value", 8),
    ("list", 8),
    ("flush-drain", 64),
    ("tx-memcpy", 1 << 10),
    ("abort", 64),
    ("abort", 64 << 10),
    ("tx-lock", 8),
    ("mutex", 8),
    ("direct", 8),
    ("oid", 8),
    ("type-num", 8),
    ("pool-by-ptr", 8),
    ("foreach", 100),
    ("close", 8),
    ("open", 8),
];
/// The steps of a session: kinds of calls, the bytes that they are told of, and how often each is
/// called. All are of one process and one pool, in this order.
const SESSION: [(&str, u64, u64); 44] = [
    ("alloc", 64, 40_000),
    ("zalloc", 64, 40_000),
    ("tx-alloc", 64, 40_000),
    ("tx-zalloc", 64, 40_000),
    ("alloc", 512, 40_000),
    ("zalloc", 512, 40_000),
    ("tx-alloc", 512, 40_000),
    ("tx-zalloc", 512, 40_000),
    ("alloc", 4 << 10, 40_000),
    ("zalloc", 4 << 10, 40_000),
    ("tx-alloc", 4 << 10, 40_000),
    ("tx-zalloc", 4 << 10, 40_000),
    ("alloc", 64 << 10, 5_000),
    ("zalloc", 64 << 10, 5_000),
    ("tx-alloc", 64 << 10, 5_000),
    ("tx-zalloc", 64 << 10, 5_000),
    ("construct", 64, 40_000),
    ("realloc", 64, 40_000),
    ("increment", 64, 100_000),
    ("persist", 64, 100_000),
    ("persist", 4 << 10, 20_000),
    ("increment-drain", 64, 160_000),
    ("flush-drain", 64, 160_000),
    ("memcpy", 64, 100_000),
    ("memcpy", 1 << 10, 50_000),
    ("memcpy", 64 << 10, 2_000),
    ("memset", 4 << 10, 20_000),
    ("publish", 64, 40_000),
    ("set-value", 8, 40_000),
    ("list", 8, 20_000),
    ("add", 8, 40_000),
    ("add", 1 << 10, 20_000),
    ("add", 64 << 10, 2_000),
    ("tx-memcpy", 1 << 10, 20_000),
    ("abort", 64, 40_000),
    ("abort", 64 << 10, 3_000),
    ("tx-lock", 8, 40_000),
    ("mutex", 8, 400_000),
    ("direct", 8, 1_000_000),
    ("oid", 8, 200_000),
    ("type-num", 8, 400_000),
    ("foreach", 100, 20_000),
    ("close", 8, 1),
    ("open", 8, 1),
];
/// MiB of a session's pool.
const SESSION_POOL: u64 = 512;
/// Openings and closings of a case.
const OPENINGS: u64 = 20;
/// Objects that are gone through.
const MOST_VISITED: u64 = 20_000;
/// How objects are allocated, by the names that the program knows.
const ALLOC_VARIANTS: [&str; 2] = ["atomic", "tx"];

/// A program with its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// The program.
    pub program: Program,
    /// Which map, which way to allocate, or empty.
    pub variant: String,
    /// Operations of each thread.
    pub ops: u64,
    /// Threads.
    pub threads: u32,
    /// Operations in a transaction (maps).
    pub batch: u32,
    /// Ranges in a transaction (adds).
    pub adds: u32,
    /// Bytes of a range or an object (adds, alloc).
    pub bytes: u64,
}

impl Case {
    /// Insertions into a map, one a transaction.
    pub fn map(name: &str, ops: u64) -> Self {
        Case { program: Program::Maps, variant: name.into(), ops, threads: 1, batch: 1, adds: 0, bytes: 8 }
    }

    /// Transactions with so many ranges of so many bytes.
    pub fn adds(adds: u32, bytes: u64, ops: u64) -> Self {
        let ops = ops.min((MOST_ADDED / (u64::from(adds.max(1)) * bytes)).max(16));
        Case { program: Program::Adds, variant: String::new(), ops, threads: 1, batch: 1, adds, bytes }
    }

    /// Pairs of allocation and release.
    pub fn alloc(variant: &str, bytes: u64, ops: u64) -> Self {
        Case { program: Program::Alloc, variant: variant.into(), ops, threads: 1, batch: 1, adds: 0, bytes }
    }

    /// Persists outside of transactions.
    pub fn persists(variant: &str, bytes: u64, ops: u64) -> Self {
        let ops = ops.min(MOST_ADDED / bytes);
        Case { program: Program::Persists, variant: variant.into(), ops, threads: 1, batch: 1, adds: 0, bytes }
    }

    /// Single calls, all of one kind.
    pub fn calls(variant: &str, bytes: u64, ops: u64) -> Self {
        let most = match variant {
            "open" | "close" => OPENINGS,
            "foreach" => MOST_VISITED,
            _ => MOST_ADDED / bytes,
        };
        let ops = ops.min(most);
        Case { program: Program::Calls, variant: variant.into(), ops, threads: 1, batch: 1, adds: 0, bytes }
    }

    /// The steps of a session, each of at most so many operations.
    pub fn session(most: u64) -> Vec<Self> {
        let step = |&(kind, bytes, ops): &(&str, u64, u64)| Case {
            program: Program::Session,
            ops: ops.min(most),
            ..Case::calls(kind, bytes, most)
        };
        SESSION.iter().map(step).collect()
    }

    /// Whether one process runs both, one after the other.
    pub fn is_one_run_with(&self, other: &Case) -> bool {
        self.program == Program::Session && other.program == Program::Session
    }

    /// The same with so many threads.
    pub fn on_threads(self, threads: u32) -> Self {
        Case { threads, ..self }
    }

    /// The same with so many operations in a transaction.
    pub fn in_batches(self, batch: u32) -> Self {
        Case { batch, ..self }
    }

    /// What the program is told that runs these cases, but for the pool's path.
    pub fn arguments(run: &[Case]) -> Vec<String> {
        match run {
            [case] if case.program != Program::Session => case.arguments_alone(),
            steps => {
                let steps: Vec<String> =
                    steps.iter().map(|step| format!("{}:{}:{}", step.variant, step.bytes, step.ops)).collect();
                vec![format!("--pool-mib={SESSION_POOL}"), format!("--steps={}", steps.join(","))]
            }
        }
    }

    fn arguments_alone(&self) -> Vec<String> {
        let numbers = [
            ("ops", self.ops),
            ("threads", self.threads.into()),
            ("batch", self.batch.into()),
            ("adds", self.adds.into()),
            ("bytes", self.bytes),
            ("pool-mib", self.pool_mib()),
        ];
        let mut arguments: Vec<String> = numbers.iter().map(|(name, number)| format!("--{name}={number}")).collect();
        arguments.push(format!("--variant={}", self.variant));
        arguments
    }

    /// A pool that holds the objects and a log of all that a transaction changes.
    fn pool_mib(&self) -> u64 {
        let held = match self.program {
            Program::Maps => self.ops * u64::from(self.threads) * 1024,
            Program::Adds => 4 * u64::from(self.adds) * self.bytes,
            Program::Alloc => 256 * self.bytes,
            Program::Persists => 64 * self.bytes,
            Program::Calls if ["open", "close"].contains(&self.variant.as_str()) => 448 << 20,
            Program::Calls if self.variant == "foreach" => 4 * self.ops * self.bytes,
            Program::Calls => 512 * self.bytes,
            Program::Session => SESSION_POOL << 20,
        };
        64 + held.div_ceil(1 << 20)
    }

    /// What it is, for a table.
    pub fn title(&self) -> String {
        let mut title = match (self.program, self.adds) {
            (Program::Maps, _) => format!("{}, {} inserts", self.variant, self.ops),
            (Program::Adds, 0) => "empty transaction".into(),
            (Program::Adds, 1) => format!("1 add of {}", size(self.bytes)),
            (Program::Adds, adds) => format!("{adds} adds of {}", size(self.bytes)),
            (Program::Alloc, _) => format!("{} alloc+free of {}", self.variant, size(self.bytes)),
            (Program::Persists, _) => self.title_of_call(),
            (Program::Calls, _) => self.title_of_call(),
            (Program::Session, _) => format!("session: {}", self.title_of_call()),
        };
        if self.batch > 1 {
            title += &format!(", {} a transaction", self.batch);
        }
        if self.threads > 1 {
            title += &format!(", {} threads", self.threads);
        }
        title
    }

    fn title_of_call(&self) -> String {
        let bytes = size(self.bytes);
        match (self.variant.as_str(), self.bytes) {
            ("alloc" | "zalloc" | "tx-alloc" | "tx-zalloc" | "construct", _) => {
                format!("{}, and free, of {bytes}", self.variant)
            }
            ("reserve", _) => format!("free, reserve and publish of {bytes}"),
            ("publish", _) => format!("reserve, publish and free of {bytes}"),
            ("realloc", _) => format!("realloc between {bytes} and {}", size(2 * self.bytes)),
            ("set-value", _) => "publish of 4 set_value".into(),
            ("list", _) => "list_insert_new, list_remove".into(),
            ("increment", _) => format!("increment, persist of {bytes}"),
            ("increment-drain", _) => format!("increment, flush of {bytes}, a drain for 8"),
            ("persist", 65..) => format!("persist of {bytes}, 64 B changed"),
            ("persist", _) => format!("persist of {bytes}"),
            ("memcpy" | "memset", _) => format!("{}_persist of {bytes}", self.variant),
            ("flush-drain", _) => format!("flush of {bytes}, a drain for 8"),
            ("tx-memcpy", _) => format!("TX_MEMCPY of {bytes}"),
            ("add", _) => format!("1 add of {bytes}"),
            ("abort", _) => format!("abort with an add of {bytes}"),
            ("tx-lock", _) => "transaction with a lock, 1 add of 8 B".into(),
            ("foreach", _) => "first, next: an object".into(),
            ("open" | "close", _) => format!("{} of 512 MiB", self.variant),
            (other, _) => other.into(),
        }
    }
}

/// What a user can choose to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Selection {
    /// One of [`MAPS`], by its place there.
    Map(usize),
    /// Transactions that add ranges.
    Adds,
    /// Pairs of allocation and release on one thread.
    Alloc,
    /// Persists outside of transactions.
    Persists,
    /// Single calls.
    Calls,
    /// Many kinds of single calls, one after the other in one pool.
    Session,
    /// Maps and allocation on one thread and on two.
    Threads,
}

impl Selection {
    /// Everything.
    pub fn all() -> Vec<Selection> {
        let maps = (0..MAPS.len()).map(Selection::Map);
        let others = [
            Selection::Adds,
            Selection::Alloc,
            Selection::Persists,
            Selection::Calls,
            Selection::Session,
            Selection::Threads,
        ];
        maps.chain(others).collect()
    }

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Selection::Map(map) => MAPS[map],
            Selection::Adds => "adds",
            Selection::Alloc => "alloc",
            Selection::Persists => "persists",
            Selection::Calls => "calls",
            Selection::Session => "session",
            Selection::Threads => "threads",
        }
    }

    /// The selection with a name.
    pub fn named(name: &str) -> Option<Selection> {
        Selection::all().into_iter().find(|selection| selection.name() == name)
    }

    /// Its cases. Maps are run with each number of operations, additions with the least.
    /// Allocations are short, and threads take a while until they all run: these are done most
    /// often.
    fn cases(self, ops: &[u64]) -> Vec<Case> {
        let least = ops.iter().copied().min().unwrap_or_default();
        let most = ops.iter().copied().max().unwrap_or_default();
        match self {
            Selection::Map(map) => maps_with(MAPS[map], ops),
            Selection::Adds => ADDS.iter().map(|&(adds, bytes)| Case::adds(adds, bytes, least)).collect(),
            Selection::Alloc => allocs(&ALLOC_BYTES, most),
            Selection::Persists => PERSISTS.iter().map(|&(how, bytes)| Case::persists(how, bytes, most)).collect(),
            Selection::Calls => CALLS.iter().map(|&(call, bytes)| Case::calls(call, bytes, most)).collect(),
            Selection::Session => Case::session(most),
            Selection::Threads => {
                let maps = MAPS.iter().map(|map| Case::map(map, most.min(most_ops(map))));
                let alone: Vec<Case> = maps.chain(allocs(&[8, 4 << 10], most)).collect();
                alone.into_iter().flat_map(|case| [case.clone(), case.on_threads(2)]).collect()
            }
        }
    }

    /// The cases whose instructions are counted.
    pub fn counted(self) -> Vec<Case> {
        match self {
            Selection::Map(map) => vec![Case::map(MAPS[map], COUNTED_INSERTS)],
            Selection::Adds => {
                [(0, 8), (1, 8), (16, 8)].map(|(adds, bytes)| Case::adds(adds, bytes, COUNTED_OPS)).into()
            }
            Selection::Alloc => allocs(&[8], COUNTED_OPS),
            Selection::Persists => vec![Case::persists("persist", 64, COUNTED_OPS)],
            Selection::Calls | Selection::Session | Selection::Threads => Vec::new(),
        }
    }
}

fn most_ops(map: &str) -> u64 {
    if map == "skiplist" { MOST_OPS_SKIPLIST } else { u64::MAX }
}

fn maps_with(map: &str, ops: &[u64]) -> Vec<Case> {
    let mut ops: Vec<u64> = ops.iter().map(|&ops| ops.min(most_ops(map))).collect();
    ops.sort_unstable();
    ops.dedup();
    ops.into_iter().map(|ops| Case::map(map, ops)).collect()
}

fn allocs(bytes: &[u64], ops: u64) -> Vec<Case> {
    let of = |&variant| bytes.iter().map(move |&bytes| Case::alloc(variant, bytes, ops));
    ALLOC_VARIANTS.iter().flat_map(of).collect()
}

/// The cases of a selection, each once. Those that are compared with each other, on one thread and
/// on two, are a group, and those of one process.
pub fn groups(selection: &[Selection], ops: &[u64]) -> Vec<Vec<Case>> {
    let cases: Vec<Case> = selection.iter().flat_map(|selection| selection.cases(ops)).collect();
    let mut groups: Vec<Vec<Case>> = Vec::new();
    for case in cases {
        let alone = case.clone().on_threads(1);
        let belongs = |group: &&mut Vec<Case>| group[0] == alone || case.is_one_run_with(&group[0]);
        match groups.iter_mut().find(belongs) {
            Some(group) if group.contains(&case) => {}
            Some(group) => group.push(case),
            None => groups.push(vec![case]),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_selections_correspond() {
        for selection in Selection::all() {
            assert_eq!(Selection::named(selection.name()), Some(selection));
        }
        assert_eq!(Selection::named("ctree"), None);
    }

    #[test]
    fn every_case_is_there_once() {
        let groups = groups(&Selection::all(), &[10_000, 100_000]);
        assert_eq!(groups.len(), 7 + 11 + 10 + 7 + 24 + 1, "maps; adds; alloc; persists; calls; session");
        let all = groups.concat();
        assert_eq!(all.len(), 7 + 11 + 10 + 7 + 24 + 44 + 4 + 4, "with a second thread: maps, alloc");
        for (i, case) in all.iter().enumerate() {
            assert!(!all[..i].contains(case), "{} is there twice", case.title());
        }
        for group in &groups {
            let belong = |case: &Case| case.threads == 2 || case.is_one_run_with(&group[0]);
            assert!(group[0].threads == 1 && group[1..].iter().all(belong), "{group:?}");
        }
        let titles: Vec<String> = all.iter().map(Case::title).collect();
        assert!(titles.contains(&"16 adds of 1 MiB".into()), "{titles:?}");
        assert!(titles.contains(&"tx alloc+free of 4 KiB, 2 threads".into()), "{titles:?}");
        assert!(!titles.contains(&"skiplist, 100000 inserts".into()), "{titles:?}");
    }

    #[test]
    fn a_session_is_told_its_steps_and_a_case_alone_its_own() {
        let session = Case::session(10);
        let arguments = Case::arguments(&session);
        assert!(arguments[1].starts_with("--steps=alloc:64:10,zalloc:64:10,"), "{arguments:?}");
        assert!(arguments[1].ends_with(",close:8:1,open:8:1"), "{arguments:?}");
        assert!(Case::arguments(&[Case::calls("list", 8, 10)]).contains(&"--variant=list".into()));
        assert_eq!(Case::arguments(&session[..1])[1], "--steps=alloc:64:10");
    }

    #[test]
    fn large_ranges_are_added_less_often() {
        assert_eq!(Case::adds(1, 8, 10_000).ops, 10_000);
        assert_eq!(Case::adds(16, 1 << 20, 10_000).ops, 16);
    }
}
