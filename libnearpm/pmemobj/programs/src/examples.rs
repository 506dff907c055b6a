//! PMDK's own programs of maps (`src/examples/libpmemobj/map` of its sources), unmodified, from a
//! checkout that the environment names. They are no part of this project.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{Followed, Library, Program, Run, headers_present, skip};

/// Names the checkout: of tag 1.12.1, 1.13.1, 2.0.0 or 2.1.0, whose maps are the same.
pub const SOURCE: &str = "NEARPM_PMDK_SOURCE";
/// Names those of [`MAPS`] that are wanted, with commas between them; all without it.
const WANTED: &str = "NEARPM_PMDK_MAPS";

/// PMDK's maps, as its programs name them.
pub const MAPS: [&str; 8] =
    ["ctree", "btree", "rtree", "rbtree", "skiplist", "hashmap_tx", "hashmap_atomic", "hashmap_rp"];

/// The layout of the pools of `mapcli`.
pub const LAYOUT: &str = "map";
/// Bytes of a card with room for the pool of `mapcli`, which has 160 MiB.
const MAPCLI_CARD_BYTES: &str = "184549376";
/// Of the random numbers of `mapcli`.
const SEED: &str = "1";

/// No random number of `mapcli` has this bit.
pub const NEVER: u64 = 1 << 63;

/// A command that looks up a key that was never there, behind which what comes before is done.
fn look_up() -> String {
    format!("c {NEVER}\n")
}

/// The maps that are wanted.
///
/// # Panics
/// If the environment names one that PMDK does not have.
pub fn maps() -> Vec<&'static str> {
    let Ok(wanted) = std::env::var(WANTED) else { return MAPS.to_vec() };
    let named = |name: &str| MAPS.into_iter().find(|map| *map == name);
    let of = |name| named(name).unwrap_or_else(|| panic!("{WANTED} names {name:?}, which is none of {MAPS:?}"));
    wanted.split(',').map(of).collect()
}

/// Compiles a map program of PMDK's examples with all of its maps, as PMDK's Makefile does but
/// optimised; `None`, and says so, where no checkout is named.
///
/// # Panics
/// If what is named is no checkout, or does not compile.
fn compile(name: &str) -> Option<Program> {
    let Some(source) = std::env::var_os(SOURCE) else {
        // Nobody is obliged to have it, so that this is no `skip`.
        eprintln!("SKIPPED: {SOURCE} names no checkout of github.com/pmem/pmdk");
        return None;
    };
    if !headers_present() {
        skip("libpmemobj.h is not installed (Debian: libpmemobj-dev)");
        return None;
    }
    let examples = PathBuf::from(&source).join("src/examples");
    let maps = examples.join("libpmemobj");
    let main = maps.join("map").join(name).with_extension("c");
    assert!(main.is_file(), "{SOURCE}: there is no {}", main.display());
    let folder = tempfile::tempdir().expect("a folder for the program");
    let binary = folder.path().join(name);
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu99", "-O2", "-ggdb", "-Wall", "-pthread", "-o"]).arg(&binary).arg("-I").arg(&examples);
    gcc.arg("-I").arg(&maps);
    for part in ["map", "tree_map", "list_map", "hashmap"] {
        gcc.arg("-I").arg(maps.join(part));
    }
    gcc.arg(main).arg(maps.join("map/map.c"));
    gcc.args(MAPS.map(|map| maps.join(format!("map/map_{map}.c"))));
    gcc.args(MAPS.map(|map| match map {
        "skiplist" => maps.join("list_map/skiplist_map.c"),
        map if map.starts_with("hashmap") => maps.join(format!("hashmap/{map}.c")),
        map => maps.join(format!("tree_map/{map}_map.c")),
    }));
    let output = gcc.arg(super::library()).output().expect("gcc runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(Program { name: name.to_owned(), binary, folder })
}

/// `data_store`: inserts into a map that it makes, all in one transaction where the map knows
/// transactions, and removes one key after the other.
pub fn data_store() -> Option<Program> {
    compile("data_store")
}

/// `mapcli`: does to a map what its standard input says.
pub struct Mapcli(Program);

impl Mapcli {
    /// Compiles it; `None`, and says so, where no checkout is named.
    pub fn compile() -> Option<Mapcli> {
        compile("mapcli").map(Mapcli)
    }

    /// Runs of it on the pool of a folder, which the first one makes.
    pub fn on<'a>(
        &'a self,
        library: Library,
        map: &'static str,
        folder: &'a Path,
        variables: &[(&'a str, &'a str)],
    ) -> Session<'a> {
        let mut all = vec![("NEARPM_CARD_BYTES", MAPCLI_CARD_BYTES)];
        all.extend(variables);
        Session { program: &self.0, library, map, folder, variables: all }
    }
}

/// Runs of `mapcli` on one pool.
pub struct Session<'a> {
    program: &'a Program,
    library: Library,
    map: &'static str,
    folder: &'a Path,
    variables: Vec<(&'a str, &'a str)>,
}

impl Session<'_> {
    fn run<T>(&self, commands: &str, by: impl FnOnce(&Program, &Run) -> T) -> T {
        let pool = self.folder.join("pool");
        let arguments = [self.map, pool.to_str().expect("the folder's name is text"), SEED];
        let Session { library, folder, ref variables, .. } = *self;
        by(self.program, &Run { library, folder, arguments: &arguments, variables, input: commands })
    }

    /// How a run with these commands ends, and what it prints, line by line.
    pub fn output(&self, commands: &str) -> Output {
        self.run(commands, Program::output_by_lines_of)
    }

    /// What a run with these commands prints. It must succeed.
    pub fn printed(&self, commands: &str) -> String {
        succeeded(self.map, &self.output(commands))
    }

    /// Insertions of so many random keys into the map, in a run that must succeed, with marks in
    /// front of them and behind.
    pub fn timed(&self, insertions: u64) -> Followed {
        let parts = [look_up(), format!("n {insertions}\n{}", look_up())];
        let run = self.run("", |program, run| program.asked(run, &parts.each_ref().map(String::as_str)));
        succeeded(self.map, &run.output);
        run
    }

    /// What callgrind writes of insertions from one number to another: see [`Program::profiled`].
    pub fn profiled(&self, insertions: [u64; 2], outside: &[String]) -> String {
        let [few, many] = insertions;
        let commands = format!("n {few}\n{0}n {1}\n{0}", look_up(), many - few);
        // Nobody calls it but for the command that looks a key up, and no compiler can inline it.
        self.run(&commands, |program, run| program.profiled_between(run, outside, "map_lookup"))
    }

    /// The keys that the map has by its own walk, in the order of it, and by its own count where
    /// it keeps one. Not of `rtree`, which says what is left of a key in each node.
    pub fn keys(&self) -> Vec<u64> {
        assert_ne!(self.map, "rtree", "its walk has no keys");
        self.walked(&self.printed("p\n"))
    }

    /// Those of some keys that the map finds, after other commands that print nothing. No other
    /// keys may be in it: its walk must find the same.
    pub fn found(&self, after: &str, keys: &[u64]) -> BTreeSet<u64> {
        let walks = self.map != "rtree";
        let mut commands = after.to_owned();
        commands.extend(keys.iter().map(|key| format!("c {key}\n")));
        commands += if walks { "p\n" } else { "" };
        let printed = self.printed(&commands);
        let answers: Vec<bool> = answers(&printed).collect();
        assert_eq!(answers.len(), keys.len(), "{}: {printed}", self.map);
        let found: BTreeSet<u64> =
            keys.iter().zip(answers).filter(|(_, is_there)| *is_there).map(|(&key, _)| key).collect();
        // The walk of a `ctree` passes over its only key if that has no value, and none has.
        if walks && (self.map, found.len()) != ("ctree", 1) {
            let walked = self.walked(&printed);
            assert_eq!(walked.len(), found.len(), "{}: {printed}", self.map);
            assert_eq!(walked.into_iter().collect::<BTreeSet<u64>>(), found, "{}: {printed}", self.map);
        }
        found
    }

    /// Keys of a walk, of what was printed.
    fn walked(&self, printed: &str) -> Vec<u64> {
        let line = printed.lines().last().unwrap_or_default();
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{}: {text:?} is no number", self.map));
        let keys: Vec<u64> = line.split_whitespace().map(number).collect();
        if let Some(count) = printed.lines().find_map(|line| line.strip_prefix("count: ")) {
            assert_eq!(number(count), keys.len() as u64, "{}: its count is not what its walk finds", self.map);
        }
        keys
    }
}

/// What `mapcli` has said of keys that it was asked for: whether each was there. A recovery prints
/// other lines.
pub fn answers(printed: &str) -> impl Iterator<Item = bool> {
    printed.lines().filter(|line| ["0", "1"].contains(line)).map(|line| line == "1")
}

fn succeeded(map: &str, output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "mapcli {map}: {}\n{text}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}
