//! PMDK's own map programs on the simulated card, of a checkout that the environment names
//! (`NEARPM_PMDK_SOURCE`): unmodified binaries, whose power fails.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Output;

use nearpm_pmemobj_programs::examples::{LAYOUT, Mapcli, Session, answers, data_store, maps};
use nearpm_pmemobj_programs::rig::{End, draw};
use nearpm_pmemobj_programs::{CARD, Checker, Library, MECHANISMS, Run, commands};
use tempfile::TempDir;

/// Keys that come and go.
const KEYS: u64 = 40;

fn folder() -> TempDir {
    TempDir::new_in("/dev/shm").expect("a folder for the card")
}

fn random(state: &mut u64) -> u64 {
    *state = draw(*state) ^ *state << 31;
    draw(*state)
}

/// What is done to a map.
struct Script {
    /// For `mapcli`: a key that is not there is inserted, one that is there is removed, and it is
    /// looked up behind each.
    commands: String,
    /// The keys that are there after so many of them, and before the first.
    states: Vec<BTreeSet<u64>>,
    keys: Vec<u64>,
}

impl Script {
    fn new(seed: u64, steps: usize) -> Script {
        let mut state = seed;
        // Never 0, which an empty place has in some maps.
        let keys: Vec<u64> = (0..KEYS).map(|_| random(&mut state) << 32 | random(&mut state) | 1).collect();
        let mut script = Script { commands: String::new(), states: vec![BTreeSet::new()], keys };
        for _ in 0..steps {
            let mut there = script.states.last().expect("the first is there").clone();
            let key = script.keys[(random(&mut state) % KEYS) as usize];
            let command = if there.remove(&key) { "r" } else { "i" };
            if command == "i" {
                there.insert(key);
            }
            script.commands += &format!("{command} {key}\nc {key}\n");
            script.states.push(there);
        }
        script
    }

    /// How many steps have returned, of what was printed.
    ///
    /// # Panics
    /// If a key was there that was not to be, or the other way round.
    fn acknowledged(&self, printed: &str) -> usize {
        let mut count = 0;
        for (answer, (before, after)) in answers(printed).zip(self.states.iter().zip(&self.states[1..])) {
            assert_eq!(answer, after.len() > before.len(), "step {count}");
            count += 1;
        }
        count
    }
}

/// A map in a pool of a card.
struct Rig<'m> {
    mapcli: &'m Mapcli,
    checker: &'m Checker,
    map: &'static str,
    mechanism: &'static str,
    /// Here lies the card's memory, also as it is with an empty map.
    folder: TempDir,
}

impl<'m> Rig<'m> {
    fn new(mapcli: &'m Mapcli, checker: &'m Checker, map: &'static str, mechanism: &'static str) -> Rig<'m> {
        let rig = Rig { mapcli, checker, map, mechanism, folder: folder() };
        rig.session(&[]).printed("");
        std::fs::rename(rig.path(CARD), rig.path("empty")).expect("the card's memory is there");
        rig
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn session<'a>(&'a self, variables: &[(&'a str, &'a str)]) -> Session<'a> {
        let variables = [&[("NEARPM_MECHANISM", self.mechanism)], variables].concat();
        self.mapcli.on(Library::SimulatedCard, self.map, self.folder.path(), &variables)
    }

    /// Runs a script on an empty map, and maybe until the power fails.
    fn output(&self, script: &Script, cut: &str) -> Output {
        std::fs::copy(self.path("empty"), self.path(CARD)).expect("the card's memory can be copied");
        self.session(&[("NEARPM_CARD_CUT", cut)]).output(&script.commands)
    }

    /// The same, and looks what is left: how many steps have returned when the power fails at a
    /// cycle, or `Err` with the cycles that the script took as a whole.
    fn run(&self, script: &Script, cut: &str) -> Result<usize, u64> {
        let context = format!("{} by {}, {cut}", self.map, self.mechanism);
        let output = self.output(script, cut);
        let said = String::from_utf8_lossy(&output.stderr);
        let acknowledged = script.acknowledged(&String::from_utf8_lossy(&output.stdout));
        let end = End::of(&output).unwrap_or_else(|| panic!("{context}: {}\n{said}", output.status));
        assert!(end == End::Cut || acknowledged + 1 == script.states.len(), "{context}: only {acknowledged}: {said}");
        let session = self.session(&[]);
        let found = session.found("", &script.keys);
        let may_be = &script.states[acknowledged..script.states.len().min(acknowledged + 2)];
        assert!(may_be.contains(&found), "{context}: after {acknowledged} steps there is {found:?}");
        // The map goes on.
        let missing = script.keys.iter().filter(|key| !found.contains(key));
        let refill: String = missing.map(|key| format!("i {key}\n")).collect();
        assert_eq!(session.found(&refill, &script.keys).len(), script.keys.len(), "{context}: it goes on");
        self.checker.check(Library::SimulatedCard, &self.path("pool"), LAYOUT);
        match end {
            End::Cut => Ok(acknowledged),
            End::Whole(cycles) => Err(cycles),
        }
    }
}

/// Power cuts of computer and card at random cycles of PMDK's `mapcli`, with each mechanism, behind
/// an ordinary and a hostile processor: the next process finds what was acknowledged.
#[test]
fn power_cuts_of_pmdks_own_maps_lose_nothing_acknowledged() {
    let (Some(mapcli), Some(checker)) = (Mapcli::compile(), Checker::compile()) else { return };
    let (steps, cuts) = if nearpm_tier::thorough() { (120, 10) } else { (40, 1) };
    let (mut tried, mut inside) = (0, 0);
    for (number, map) in maps().into_iter().enumerate() {
        for mechanism in ["record"].into_iter().chain(MECHANISMS) {
            let rig = Rig::new(&mapcli, &checker, map, mechanism);
            let never = format!("cycle={}", u64::MAX);
            let opened = rig.output(&Script::new(1, 0), &never);
            let Some(End::Whole(idle)) = End::of(&opened) else { panic!("{map} by {mechanism}: {opened:?}") };
            let all = rig.run(&Script::new(1, steps), &never).expect_err("power was not to fail");
            for seed in (1..=cuts).map(|cut| cut + 100 * number as u64) {
                // Most of a run opens the pool: one cut in eight comes there.
                let cycle =
                    if draw(seed).is_multiple_of(8) { draw(!seed) % all } else { idle + draw(!seed) % (all - idle) };
                let cut = format!("cycle={},seed={seed},hostile={}", 1 + cycle, seed % 2);
                tried += 1;
                let met = rig.run(&Script::new(seed, steps), &cut);
                inside += u64::from(met.is_ok_and(|acknowledged| acknowledged > 0));
            }
        }
    }
    eprintln!("{tried} cuts, {inside} of them between the first step and the last");
    assert!(inside * 2 > tried, "only {inside} of {tried} cuts met a step");
}

/// `data_store` checks by itself what it finds and removes.
#[test]
fn data_store_runs_by_each_mechanism() {
    let Some(program) = data_store() else { return };
    // It does not know the last.
    for map in maps().into_iter().filter(|&map| map != "rtree") {
        for (mechanism, executor) in [("record", "cpu")].into_iter().chain(MECHANISMS.map(|name| (name, "card"))) {
            let folder = folder();
            let pool = folder.path().join("pool");
            let arguments = [map, pool.to_str().expect("the folder's name is text"), "200"];
            let variables =
                [("NEARPM_MECHANISM", mechanism), ("NEARPM_EXECUTOR", executor), ("NEARPM_STATISTICS", "1")];
            let (library, folder) = (Library::SimulatedCard, folder.path());
            let run = Run { library, folder, arguments: &arguments, variables: &variables, input: "" };
            let output = program.output_of(&run);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{map} by {mechanism}: {}\n{said}", output.status);
            assert_eq!(commands(&said) > 0, executor == "card", "{map} by {mechanism}");
        }
    }
}
