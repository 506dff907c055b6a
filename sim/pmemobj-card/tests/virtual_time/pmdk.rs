//! PMDK's own maps, by its own `mapcli`, unmodified.
//!
//! ```console
//! $ git clone --branch 2.0.0 https://github.com/pmem/pmdk ~/pmdk
//! $ NEARPM_PMDK_SOURCE=~/pmdk NEARPM_THOROUGH=1 cargo nextest run --release -p nearpm-pmemobj-card --test virtual_time --no-capture -E 'test(pmdks_own)'
//! ```
//!
//! `mapcli` inserts as many random keys as it is told. It is told by a pipe, so that the card's
//! clock is read when it has answered; callgrind counts from one look-up to the next. An insertion
//! is `map_insert`, in the transactions that the map makes or, of two hash maps, does without; its
//! value is `OID_NULL`. What `mapcli` itself adds are two calls of `rand`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use nearpm_pmemobj_programs::examples::{LAYOUT, Mapcli, NEVER, Session, maps};
use nearpm_pmemobj_programs::{CARD, Checker, Library, callgrind, pmdk};
use tempfile::TempDir;

use crate::table::{Rows, best, grouped, head, line, ratio};
use crate::taken::{Case, Counted, Subject, Timed, Way};
use crate::{Taken, can_count, measure, table};

/// Insertions that PMDK itself is counted with.
const COUNTS: [u64; 2] = [100, 300];

struct Pmdks {
    mapcli: Mapcli,
    /// Looks at a pool with the map's layout.
    checker: Checker,
}

/// A map that is empty, in a pool that each run gets a copy of.
struct OneMap<'p> {
    pmdks: &'p Pmdks,
    map: &'static str,
    way: Way,
    folder: TempDir,
}

fn folder() -> TempDir {
    TempDir::new_in("/dev/shm").expect("a folder for pools")
}

fn insertions(count: u64) -> String {
    format!("n {count}\n")
}

impl Subject for Pmdks {
    fn case(&self, map: &'static str, way: Way) -> Box<dyn Case + '_> {
        let case = OneMap { pmdks: self, map, way, folder: folder() };
        // By the way that is measured: shadow paging needs room that is taken when a pool is made.
        case.session(&way.variables()).printed("");
        std::fs::rename(case.path(CARD), case.path("empty")).expect("the card's memory is there");
        Box::new(case)
    }
}

impl OneMap<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn session<'a>(&'a self, variables: &[(&'a str, &'a str)]) -> Session<'a> {
        self.pmdks.mapcli.on(Library::SimulatedCard, self.map, self.folder.path(), variables)
    }

    /// Runs on a copy of the empty map, by the way that is measured.
    fn fresh(&self) -> Session<'_> {
        std::fs::copy(self.path("empty"), self.path(CARD)).expect("the card's memory can be copied");
        let variables = [&self.way.variables()[..], &[("NEARPM_STATISTICS", "1")]].concat();
        self.session(&variables)
    }
}

impl Case for OneMap<'_> {
    fn timed(&self, operations: u64) -> Timed {
        let session = self.fresh();
        let run = session.timed(operations);
        let keys = self.pmdks.keys(self.map, &session, operations);
        let keys: BTreeSet<u64> = keys.into_iter().collect();
        assert_eq!(keys.len() as u64, operations, "{} by {:?}", self.map, self.way);
        let asked: Vec<u64> = keys.iter().flat_map(|&key| [key, key | NEVER]).collect();
        assert_eq!(session.found("", &asked), keys, "{} by {:?}", self.map, self.way);
        self.pmdks.checker.check(Library::SimulatedCard, &self.path("pool"), LAYOUT);
        Timed::of(&run)
    }

    fn counted(&self, operations: [u64; 2], outside: &[String]) -> Counted {
        Counted::of(&self.fresh().profiled(operations, outside))
    }
}

impl Pmdks {
    /// `None`, and says so, where no checkout is named.
    fn compile() -> Option<Pmdks> {
        Some(Pmdks { mapcli: Mapcli::compile()?, checker: Checker::compile()? })
    }

    /// The keys that so many insertions have left in a map.
    fn keys(&self, map: &'static str, session: &Session, operations: u64) -> Vec<u64> {
        if map != "rtree" {
            return session.keys();
        }
        // The same keys as in a `ctree`, since neither draws random numbers of its own.
        let folder = folder();
        let ctree = self.mapcli.on(Library::WorkingCopy, "ctree", folder.path(), &[]);
        ctree.printed(&insertions(operations));
        ctree.keys()
    }

    /// Instructions of an insertion on PMDK itself, with a file that passes for persistent memory;
    /// `None` where `mapcli` does not survive that.
    fn instructions_of_pmdk(&self, map: &'static str) -> Option<f64> {
        let [tried, counted] = [folder(), folder()];
        let session = self.mapcli.on(Library::Pmdk, map, tried.path(), &[]);
        if !session.output(&insertions(COUNTS[1])).status.success() {
            return None;
        }
        let keys = self.keys(map, &session, COUNTS[1]);
        assert_eq!(session.found("", &keys).len() as u64, COUNTS[1], "{map}");
        let session = self.mapcli.on(Library::Pmdk, map, counted.path(), &[]);
        let instructions = callgrind::instructions(&session.profiled(COUNTS, &[]));
        Some(instructions as f64 / (COUNTS[1] - COUNTS[0]) as f64)
    }
}

/// A row for each map: the best ways, undo logs, and instructions beside PMDK's.
fn by_map(rows: &Rows, of_pmdk: &[Option<f64>]) -> String {
    let columns = [
        "best CPU",
        "best card",
        "CPU / card",
        "undo, CPU",
        "undo, card",
        "CPU / card",
        "instructions: PMDK",
        "record",
        "undo, card",
    ];
    let mut text = head("map", &columns);
    for ((map, row), of_pmdk) in rows.iter().zip(of_pmdk) {
        let of = |mechanism: &str, executor: &str| {
            let found = row.iter().find(|(way, _)| (way.mechanism, way.executor) == (mechanism, executor));
            found.expect("every way is measured").1
        };
        let named = |(way, taken): &(Way, Taken)| format!("{} ({})", grouped(taken.ns()), way.mechanism);
        let [cpu, card] = [of("undo", "cpu"), of("undo", "card")];
        text += &line(
            map,
            [
                named(best(row, "cpu")),
                named(best(row, "card")),
                format!("{:.2}", ratio(row)),
                grouped(cpu.ns()),
                grouped(card.ns()),
                format!("{:.2}", cpu.ns() / card.ns()),
                of_pmdk.map_or("-".to_owned(), grouped),
                grouped(of("record", "cpu").instructions),
                grouped(card.instructions),
            ],
        );
    }
    text
}

/// Measures, and in thorough runs prints the tables.
fn insertions_of_pmdks_own(durability: &'static str) {
    if !can_count() {
        return;
    }
    let Some(pmdks) = Pmdks::compile() else { return };
    let rows = measure(&pmdks, &maps(), durability);
    if nearpm_tier::thorough() {
        let on_pmdk = |&(map, _): &(&'static str, _)| pmdk().and_then(|_| pmdks.instructions_of_pmdk(map));
        let of_pmdk: Vec<Option<f64>> = rows.iter().map(on_pmdk).collect();
        println!("{}\n{}\n{}", by_map(&rows, &of_pmdk), table::by_way(&rows), table::means(&rows));
        println!("\n{}", table::closing(&rows));
    }
}

#[test]
fn pmdks_own_maps_have_a_time_on_the_card_with_their_instructions() {
    insertions_of_pmdks_own("durable");
}

/// With `NEARPM_DURABILITY=asynchronous` on both sides.
#[test]
fn pmdks_own_maps_with_asynchronous_commits_have_a_time_on_the_card() {
    insertions_of_pmdks_own("asynchronous");
}
