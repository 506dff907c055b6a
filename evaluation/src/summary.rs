//! Ratios and averages of results.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nearpm::Mechanism;
use nearpm_statistics::Statistics;
use nearpm_workloads::programs::{Inputs, Program};

use crate::case::{Case, Charge, Configuration, pools};
use crate::meter::Kind;
use crate::plan::{Scope, UNITS};
use crate::results::Record;
use crate::run::Outcome;

mod cheapest;

pub use cheapest::{Promise, promise};

/// A mean over seeds, with the standard deviation where there are several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// The standard deviation; `None` with one seed.
    pub deviation: Option<f64>,
}

impl Mean {
    /// Of some values; `None` of none.
    pub fn of(values: &[f64]) -> Option<Mean> {
        let deviation = (values.len() > 1).then(|| values.std_dev());
        (!values.is_empty()).then(|| Mean { value: values.mean(), deviation })
    }
}

/// What moves data between processor and card.
const MOVEMENT: [Kind; 3] = [Kind::Load, Kind::Store, Kind::WriteBack];

/// Parts of the time of a transaction, in nanoseconds.
fn part(outcome: &Outcome, kinds: &[Kind]) -> f64 {
    let ns: f64 = kinds.iter().filter_map(|kind| outcome.breakdown.get(kind.name())).sum();
    ns / outcome.transactions.max(1) as f64
}

/// Which runs: everything of a case but program, scale and seed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selection {
    /// Profile.
    pub profile: String,
    /// Inputs.
    pub inputs: Inputs,
    /// Mechanism.
    pub mechanism: Mechanism,
    /// Cards.
    pub devices: usize,
    /// Units.
    pub units: usize,
    /// Threads.
    pub threads: usize,
    /// What instructions are charged by.
    pub charge: Charge,
}

impl Selection {
    /// The paper's inputs on a card of four units, one thread.
    pub fn new(profile: &str, mechanism: Mechanism) -> Selection {
        let (inputs, units) = (Inputs::Corrected, UNITS);
        Selection { profile: profile.into(), inputs, mechanism, devices: 2, units, threads: 1, charge: Charge::Alike }
    }

    /// The same with instructions that are those of each path.
    pub fn by_path(profile: &str, mechanism: Mechanism) -> Selection {
        Selection { charge: Charge::Path, ..Selection::new(profile, mechanism) }
    }
}

/// Results, by what they are of.
#[derive(Clone)]
pub struct Summary {
    records: Rc<HashMap<Case, Outcome>>,
    seeds: Vec<u64>,
    /// The largest that was run.
    scope: Scope,
    /// Where the results are.
    place: PathBuf,
}

impl Summary {
    /// Of records of the model, since those of the RTL are not to be mixed with them; where several
    /// set-ups were run, the one of which most was, however many seeds it had; of two, the one
    /// nearer to the paper's.
    pub fn new(records: &[Record]) -> Summary {
        let records: Vec<&Record> = records.iter().filter(|record| record.case.device.is_model()).collect();
        let run = |scope: &Scope| {
            let cases = records.iter().filter(|record| scope.holds(&record.case)).map(|record| &record.case);
            cases.map(|case| Case { seed: 0, ..case.clone() }).collect::<HashSet<_>>().len()
        };
        // Of equal ones `max_by_key` takes the last.
        let ran = [Scope::TINY, Scope::QUICK, Scope::FULL].into_iter().filter(|scope| run(scope) > 0);
        let scope = ran.max_by_key(run).unwrap_or(Scope::QUICK);
        let used = records.iter().filter(|record| scope.holds(&record.case));
        let place = used.clone().next().map(|record| record.place.clone()).unwrap_or_default();
        let records: HashMap<Case, Outcome> =
            used.map(|record| (record.case.clone(), record.outcome.clone())).collect();
        let mut seeds: Vec<u64> = records.keys().map(|case| case.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        Summary { records: Rc::new(records), seeds, scope, place }
    }

    /// What the paper's transactions were divided by.
    pub fn share(&self) -> usize {
        self.scope.share
    }

    /// Seeds.
    pub fn seeds(&self) -> usize {
        self.seeds.len()
    }

    /// Whether these are the seeds that the form has where none are asked for.
    pub fn has_its_own_seeds(&self) -> bool {
        self.seeds() as u64 == self.scope.seeds
    }

    /// The folder or the table that the results are in.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Whether cases were run whose paths are charged with their own instructions.
    pub fn has_paths(&self) -> bool {
        self.records.keys().any(|case| case.charge == Charge::Path)
    }

    /// Profiles of the results.
    pub fn profiles(&self) -> BTreeSet<&str> {
        self.records.keys().map(|case| case.profile.as_str()).collect()
    }

    /// The result of a run.
    pub fn outcome(
        &self,
        s: &Selection,
        program: Program,
        configuration: Configuration,
        seed: u64,
    ) -> Option<&Outcome> {
        let case = self.scope.case(&s.profile, program, s.mechanism, configuration);
        let several = case.devices > 1;
        let card = configuration.uses_card();
        let case = Case {
            inputs: s.inputs,
            devices: if several { s.devices } else { 1 },
            units: if card { s.units } else { UNITS },
            threads: s.threads,
            seed,
            charge: if configuration == Configuration::Bare { Charge::Alike } else { s.charge },
            ..case
        };
        self.records.get(&case)
    }

    /// A value of each seed's runs, averaged; `None` where a run is missing.
    fn over_seeds(&self, value: impl Fn(u64) -> Option<f64>) -> Option<Mean> {
        Mean::of(&self.seeds.iter().filter_map(|&seed| value(seed)).collect::<Vec<f64>>())
    }

    /// Nanoseconds a transaction.
    pub fn time(&self, s: &Selection, program: Program, configuration: Configuration) -> Option<Mean> {
        self.over_seeds(|seed| Some(self.outcome(s, program, configuration, seed)?.per_transaction()))
    }

    /// How much faster whole programs are than under a baseline.
    pub fn whole(&self, s: &Selection, program: Program, of: Configuration, baseline: Configuration) -> Option<Mean> {
        self.over_seeds(|seed| {
            let time = |configuration| Some(self.outcome(s, program, configuration, seed)?.per_transaction());
            Some(time(baseline)? / time(of)?)
        })
    }

    /// How much faster what crash consistency adds to the floor is than under a baseline.
    pub fn region(&self, s: &Selection, program: Program, of: Configuration, baseline: Configuration) -> Option<Mean> {
        self.over_seeds(|seed| {
            let time = |configuration| Some(self.outcome(s, program, configuration, seed)?.per_transaction());
            let floor = time(Configuration::Bare)?;
            Some((time(baseline)? - floor) / (time(of)? - floor))
        })
    }

    /// Share of the run time that crash consistency takes, in percent.
    pub fn share_of(&self, s: &Selection, program: Program, of: Configuration) -> Option<Mean> {
        self.over_seeds(|seed| {
            let time = |configuration| Some(self.outcome(s, program, configuration, seed)?.per_transaction());
            Some(100.0 * (1.0 - time(Configuration::Bare)? / time(of)?))
        })
    }

    /// How much faster what crash consistency adds would be than under a baseline if nothing were
    /// left of it but the library's instructions, which each configuration is charged with alike.
    pub fn region_limit(&self, s: &Selection, program: Program, baseline: Configuration) -> Option<Mean> {
        self.over_seeds(|seed| {
            let time = |configuration| Some(self.outcome(s, program, configuration, seed)?.per_transaction());
            Some((time(baseline)? - time(Configuration::Bare)?) / self.instructions(s, program, seed)?)
        })
    }

    /// How much faster whole programs would be than under a baseline if nothing were left of crash
    /// consistency but the library's instructions.
    pub fn whole_with_instructions(&self, s: &Selection, program: Program, baseline: Configuration) -> Option<Mean> {
        self.over_seeds(|seed| {
            let time = |configuration| Some(self.outcome(s, program, configuration, seed)?.per_transaction());
            Some(time(baseline)? / (time(Configuration::Bare)? + self.instructions(s, program, seed)?))
        })
    }

    /// The library's instructions for crash consistency with a card, in nanoseconds a transaction.
    fn instructions(&self, s: &Selection, program: Program, seed: u64) -> Option<f64> {
        let computed = |of| Some(part(self.outcome(s, program, of, seed)?, &[Kind::Compute]));
        Some(computed(Configuration::Card)? - computed(Configuration::Bare)?)
    }

    /// How much faster whole programs would be than under a baseline without crash consistency, if
    /// threads were in each other's way only where they have one pool together: then one works on
    /// it at a time.
    pub fn whole_limit(&self, s: &Selection, program: Program, baseline: Configuration) -> Option<Mean> {
        self.over_seeds(|seed| {
            let floor = self.outcome(&Selection { threads: 1, ..s.clone() }, program, Configuration::Bare, seed)?;
            let all = floor.per_transaction();
            let alone = if pools(program, s.threads) < s.threads { all - part(floor, &[Kind::Compute]) } else { 0.0 };
            let ideal = (all / s.threads as f64).max(alone);
            Some(self.outcome(s, program, baseline, seed)?.per_transaction() / ideal)
        })
    }

    /// Share of what crash consistency adds which is data movement, in percent: loads, stores and
    /// write-backs of the card's memory.
    pub fn movement(&self, s: &Selection, program: Program, of: Configuration) -> Option<Mean> {
        self.over_seeds(|seed| {
            let added = self.outcome(s, program, of, seed)?.per_transaction()
                - self.outcome(s, program, Configuration::Bare, seed)?.per_transaction();
            Some(100.0 * self.moved(s, program, of, seed)? / added)
        })
    }

    /// How much faster whole programs would be if crash consistency moved no data.
    pub fn without_movement(&self, s: &Selection, program: Program, of: Configuration) -> Option<Mean> {
        self.over_seeds(|seed| {
            let all = self.outcome(s, program, of, seed)?.per_transaction();
            Some(all / (all - self.moved(s, program, of, seed)?))
        })
    }

    /// Data movement that crash consistency adds, in nanoseconds a transaction.
    fn moved(&self, s: &Selection, program: Program, of: Configuration, seed: u64) -> Option<f64> {
        let moved = |configuration| Some(part(self.outcome(s, program, configuration, seed)?, &MOVEMENT));
        Some(moved(of)? - moved(Configuration::Bare)?)
    }

    /// Share of the run time in which cards work and no processor waits for them, in percent.
    pub fn parallel(&self, s: &Selection, program: Program, of: Configuration) -> Option<Mean> {
        self.over_seeds(|seed| {
            let outcome = self.outcome(s, program, of, seed)?;
            Some(100.0 * outcome.overlap_ns? / outcome.ns)
        })
    }

    /// Share of the run time in which cards work at all, in percent: the most that can be parallel.
    pub fn busy(&self, s: &Selection, program: Program, of: Configuration) -> Option<Mean> {
        self.over_seeds(|seed| {
            let outcome = self.outcome(s, program, of, seed)?;
            Some(100.0 * outcome.busy_ns? / outcome.ns)
        })
    }

    /// Where the time of a transaction goes, in nanoseconds, of the first seed.
    pub fn breakdown(&self, s: &Selection, program: Program, of: Configuration) -> Option<Vec<(String, f64)>> {
        let outcome = self.outcome(s, program, of, *self.seeds.first()?)?;
        let each = |ns: &f64| ns / outcome.transactions.max(1) as f64;
        Some(outcome.breakdown.iter().map(|(kind, ns)| (kind.clone(), each(ns))).collect())
    }

    /// The mean over the nine programs, of each seed, and the mean of these: its deviation is that
    /// of averages. `None` where a program is missing. `value` is asked for a summary of one seed.
    pub fn average(&self, value: impl Fn(&Summary, Program) -> Option<Mean>) -> Option<Mean> {
        self.over_programs(value, |values| values.mean())
    }

    /// As [`Summary::average`], the geometric mean: of ratios it is the same whichever of the two
    /// is the baseline, and one program that gains much does not make it.
    pub fn geometric(&self, value: impl Fn(&Summary, Program) -> Option<Mean>) -> Option<Mean> {
        self.over_programs(value, |values| values.geometric_mean())
    }

    /// What `fold` makes of the values of the nine programs, of each seed, and the mean of these.
    fn over_programs(
        &self,
        value: impl Fn(&Summary, Program) -> Option<Mean>,
        fold: impl Fn(&[f64]) -> f64,
    ) -> Option<Mean> {
        let of_seed = |seed: &u64| {
            let one = Summary { seeds: vec![*seed], ..self.clone() };
            let values = Program::ALL.iter().map(|program| Some(value(&one, *program)?.value));
            Some(fold(&values.collect::<Option<Vec<f64>>>()?))
        };
        Mean::of(&self.seeds.iter().filter_map(of_seed).collect::<Vec<f64>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PAPER;

    fn record(scope: Scope, configuration: Configuration, seed: u64) -> Record {
        let case = Case { seed, ..scope.case(PAPER, Program::Btree, Mechanism::Undo, configuration) };
        let (breakdown, counts) = Default::default();
        let outcome =
            Outcome { ns: 1.0, transactions: 1, breakdown, busy_ns: Some(0.0), overlap_ns: Some(0.0), counts };
        let (commit, profile, place) = Default::default();
        Record { form: 1, commit, profile, case, outcome, wall_s: 0.0, cpu_s: 0.0, place }
    }

    #[test]
    fn an_average_deviates_as_the_seeds_averages_do() {
        let case =
            |seed, program| Case { seed, ..Scope::QUICK.case(PAPER, program, Mechanism::Undo, Configuration::Cpu) };
        let with = |seed, program, ns| {
            let record = record(Scope::QUICK, Configuration::Cpu, seed);
            Record { case: case(seed, program), outcome: Outcome { ns, ..record.outcome.clone() }, ..record }
        };
        // Programs differ much, and seeds by two.
        let all = (1..=2u64).flat_map(|seed| {
            let ns = move |n: usize| (100 * n) as f64 + if seed == 1 { 0.0 } else { 2.0 };
            Program::ALL.into_iter().enumerate().map(move |(n, program)| with(seed, program, ns(n)))
        });
        let mut records: Vec<Record> = all.collect();
        let s = Selection::new(PAPER, Mechanism::Undo);
        let average = |records: &[Record]| {
            Summary::new(records).average(|summary, program| summary.time(&s, program, Configuration::Cpu))
        };
        let Mean { value, deviation } = average(&records).unwrap();
        assert_eq!(value, 401.0);
        let geometric = Summary::new(&records[9..]).geometric(|summary, program| {
            let time = summary.time(&s, program, Configuration::Cpu)?;
            Some(Mean { value: if program == Program::ALL[0] { 512.0 } else { time.value / time.value }, ..time })
        });
        assert!((geometric.unwrap().value - 2.0).abs() < 1e-9, "the ninth root of 512: {geometric:?}");
        assert!((deviation.unwrap() - 2f64.sqrt()).abs() < 1e-9, "{deviation:?}");
        // A seed that one program lacks is left out.
        records.pop();
        assert_eq!(average(&records), Some(Mean { value: 400.0, deviation: None }));
    }

    #[test]
    fn a_few_runs_of_a_larger_set_up_do_not_hide_the_others() {
        let quick = [Configuration::Cpu, Configuration::Card].map(|of| record(Scope::QUICK, of, 1));
        let full = |of| (1..=10).map(move |seed| record(Scope::FULL, of, seed));
        let some: Vec<Record> = quick.into_iter().chain(full(Configuration::Card)).collect();
        assert_eq!(Summary::new(&some).share(), Scope::QUICK.share);
        let all: Vec<Record> = some.into_iter().chain(full(Configuration::Cpu)).collect();
        assert_eq!((Summary::new(&all).share(), Summary::new(&all).seeds()), (1, 10));
    }
}
