//! The maps of this project's own programs (`evaluation/pmdk/programs`).
//!
//! A program stops where its timed part begins and ends (`common.c`, `--counted`); there the file
//! of `NEARPM_CARD_CLOCK` says how far the computer of the card has come. In between the program
//! has executed instructions, which that computer does not see: callgrind counts them, without
//! those of the simulator and of checksums, which the computer charges. Their time is added, as if
//! the card did nothing meanwhile.

use std::path::Path;

use nearpm_pmemobj_programs::{Library, Program, Run};
use tempfile::TempDir;

use crate::taken::{Case, Counted, Subject, Timed, Way};
use crate::{can_count, measure, table};

const MAPS: [&str; 4] = ["btree", "rbtree", "skiplist", "hashmap"];
/// Pools are so large.
const POOL_MIB: &str = "32";

struct Ours(Program);

struct OneMap<'p> {
    program: &'p Program,
    map: &'static str,
    way: Way,
}

impl Subject for Ours {
    fn case(&self, map: &'static str, way: Way) -> Box<dyn Case + '_> {
        Box::new(OneMap { program: &self.0, map, way })
    }
}

impl OneMap<'_> {
    /// A run with a pool and a card of its own.
    fn run<T>(&self, operations: u64, by: impl FnOnce(&Program, &Run) -> T) -> T {
        let folder = TempDir::new_in("/dev/shm").expect("a folder for the card");
        let pool = folder.path().join("pool");
        let (pool, count) = (pool.to_str().expect("the folder's name is text"), operations.to_string());
        let arguments = ["--pool", pool, "--pool-mib", POOL_MIB, "--variant", self.map, "--ops", &count];
        let variables = [&self.way.variables()[..], &[("NEARPM_STATISTICS", "1")]].concat();
        let (library, folder): (_, &Path) = (Library::SimulatedCard, folder.path());
        by(self.program, &Run { library, folder, arguments: &arguments, variables: &variables, input: "" })
    }
}

impl Case for OneMap<'_> {
    fn timed(&self, operations: u64) -> Timed {
        let run = self.run(operations, Program::followed);
        let text = String::from_utf8_lossy(&run.output.stderr);
        assert!(run.output.status.success(), "{} by {:?}: {}\n{text}", self.map, self.way, run.output.status);
        let said = String::from_utf8_lossy(&run.output.stdout);
        assert!(said.contains(&format!("\"ops\":{operations},")), "{said}");
        Timed::of(&run)
    }

    fn counted(&self, operations: [u64; 2], outside: &[String]) -> Counted {
        let [few, many] = operations
            .map(|operations| Counted::of(&self.run(operations, |program, run| program.profiled(run, outside))));
        many.beside(few)
    }
}

/// Measures, and in thorough runs prints a table.
fn insertions(durability: &'static str) {
    if !can_count() {
        return;
    }
    let Some(program) = Program::maps() else { return };
    let rows = measure(&Ours(program), &MAPS, durability);
    if nearpm_tier::thorough() {
        println!("{}\n{}\n\n{}", table::by_way(&rows), table::means(&rows), table::closing(&rows));
    }
}

#[test]
fn unmodified_map_programs_have_a_time_on_the_card_with_their_instructions() {
    insertions("durable");
}

/// With `NEARPM_DURABILITY=asynchronous` on both sides.
#[test]
fn map_programs_with_asynchronous_commits_have_a_time_on_the_card() {
    insertions("asynchronous");
}
