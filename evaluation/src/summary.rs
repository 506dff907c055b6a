//! Ratios and averages of results.

use std::collections::{HashMap, HashSet};

use nearpm::Mechanism;
use nearpm_workloads::programs::{Inputs, Program};

use crate::case::{Case, Configuration, pools};
use crate::meter::Kind;
use crate::plan::{Scope, UNITS};
use crate::results::Record;
use crate::run::Outcome;

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
        let n = values.len() as f64;
        let value = values.iter().sum::<f64>() / n;
        let squares = values.iter().map(|v| (v - value).powi(2)).sum::<f64>();
        let deviation = (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt());
        (!values.is_empty()).then_some(Mean { value, deviation })
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
}

impl Selection {
    /// The paper's inputs on a card of four units, one thread.
    pub fn new(profile: &str, mechanism: Mechanism) -> Selection {
        let (inputs, units) = (Inputs::Corrected, UNITS);
        Selection { profile: profile.into(), inputs, mechanism, devices: 2, units, threads: 1 }
    }
}

/// Results, by what they are of.
pub struct Summary {
    records: HashMap<Case, Outcome>,
    seeds: Vec<u64>,
    /// The largest that was run.
    scope: Scope,
}

impl Summary {
    /// Of records; where several set-ups were run, the one of which most was, however many seeds it had; of two, the one nearer to the paper's.
    pub fn new(records: &[Record]) -> Summary {
        let run = |scope: &Scope| {
            let cases = records.iter().filter(|record| scope.holds(&record.case)).map(|record| &record.case);
            cases.map(|case| Case { seed: 0, ..case.clone() }).collect::<HashSet<_>>().len()
        };
        // Of equal ones `max_by_key` takes the last.
        let ran = [Scope::TINY, Scope::QUICK, Scope::FULL].into_iter().filter(|scope| run(scope) > 0);
        let scope = ran.max_by_key(run).unwrap_or(Scope::QUICK);
        let used = records.iter().filter(|record| scope.holds(&record.case));
        let records: HashMap<Case, Outcome> =
            used.map(|record| (record.case.clone(), record.outcome.clone())).collect();
        let mut seeds: Vec<u64> = records.keys().map(|case| case.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        Summary { records, seeds, scope }
    }

    /// What the paper's transactions were divided by.
    pub fn share(&self) -> usize {
        self.scope.share
    }

    /// Seeds.
    pub fn seeds(&self) -> usize {
        self.seeds.len()
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

    /// How much faster what crash consistency adds would be than under a baseline if nothing were left of it but the library's instructions, which each
    /// configuration is charged with alike.
    pub fn region_limit(&self, s: &Selection, program: Program, baseline: Configuration) -> Option<Mean> {
        self.over_seeds(|seed| {
            let outcome = |configuration| self.outcome(s, program, configuration, seed);
            let (floor, with) = (outcome(Configuration::Bare)?, outcome(Configuration::Card)?);
            let library = part(with, &[Kind::Compute]) - part(floor, &[Kind::Compute]);
            Some((outcome(baseline)?.per_transaction() - floor.per_transaction()) / library)
        })
    }

    /// How much faster whole programs would be than under a baseline without crash consistency, if threads were in each other's way only where they
    /// have one pool together: then one works on it at a time.
    pub fn whole_limit(&self, s: &Selection, program: Program, baseline: Configuration) -> Option<Mean> {
        self.over_seeds(|seed| {
            let floor = self.outcome(&Selection { threads: 1, ..s.clone() }, program, Configuration::Bare, seed)?;
            let all = floor.per_transaction();
            let alone = if pools(program, s.threads) < s.threads { all - part(floor, &[Kind::Compute]) } else { 0.0 };
            let ideal = (all / s.threads as f64).max(alone);
            Some(self.outcome(s, program, baseline, seed)?.per_transaction() / ideal)
        })
    }

    /// Share of what crash consistency adds which is data movement, in percent: loads, stores and write-backs of the card's memory.
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
            Some(100.0 * outcome.overlap_ns / outcome.ns)
        })
    }

    /// Share of the run time in which cards work at all, in percent: the most that can be parallel.
    pub fn busy(&self, s: &Selection, program: Program, of: Configuration) -> Option<Mean> {
        self.over_seeds(|seed| {
            let outcome = self.outcome(s, program, of, seed)?;
            Some(100.0 * outcome.busy_ns / outcome.ns)
        })
    }

    /// Where the time of a transaction goes, in nanoseconds, of the first seed.
    pub fn breakdown(&self, s: &Selection, program: Program, of: Configuration) -> Option<Vec<(String, f64)>> {
        let outcome = self.outcome(s, program, of, *self.seeds.first()?)?;
        let each = |ns: &f64| ns / outcome.transactions.max(1) as f64;
        Some(outcome.breakdown.iter().map(|(kind, ns)| (kind.clone(), each(ns))).collect())
    }

    /// The mean over the nine programs; `None` where one is missing.
    pub fn average(&self, value: impl Fn(Program) -> Option<Mean>) -> Option<f64> {
        let values = Program::ALL.iter().map(|program| Some(value(*program)?.value)).collect::<Option<Vec<f64>>>()?;
        Mean::of(&values).map(|mean| mean.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PAPER;

    fn record(scope: Scope, configuration: Configuration, seed: u64) -> Record {
        let case = Case { seed, ..scope.case(PAPER, Program::Btree, Mechanism::Undo, configuration) };
        let (breakdown, counts) = Default::default();
        let outcome = Outcome { ns: 1.0, transactions: 1, breakdown, busy_ns: 0.0, overlap_ns: 0.0, counts };
        Record { form: 1, commit: String::new(), profile: String::new(), case, outcome, wall_s: 0.0 }
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
