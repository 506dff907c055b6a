//! The cheapest way without a card that promises as much.
//!
//! A mechanism whose epochs are durable only when they end is not to be compared with its own like
//! alone: who can do with less durability may also take the stronger promise where it costs less.

use nearpm::Mechanism;
use nearpm_workloads::programs::{Inputs, Program};

use super::{Mean, Selection, Summary};
use crate::case::{Charge, Configuration};

/// When a transaction is durable; the stronger promise is the greater one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// When its epoch ends.
    EpochEnd,
    /// When its commit returns.
    Return,
}

/// What a mechanism promises with corrected inputs.
pub fn promise(mechanism: Mechanism) -> Promise {
    if mechanism.has_epochs() { Promise::EpochEnd } else { Promise::Return }
}

impl Summary {
    /// The way without a card whose transactions take least, with their time in nanoseconds, among
    /// those that promise at least what the selection's mechanism does: every mechanism on the
    /// processor, and where instructions are charged by path working copies and what there is
    /// beside them. `None` with released inputs, whose epochs and asynchronous commits promise
    /// things that cannot be ranked, and where one of them was not run.
    pub fn cheapest(&self, s: &Selection, program: Program, seed: u64) -> Option<((Mechanism, Configuration), f64)> {
        if s.inputs == Inputs::Released {
            return None;
        }
        let wanted = promise(s.mechanism);
        let all = match s.charge {
            Charge::Path => Configuration::choices(),
            Charge::Alike => Mechanism::ALL.map(|mechanism| (mechanism, Configuration::Cpu)).to_vec(),
        };
        let by_processor = all.into_iter().filter(|(_, of)| *of != Configuration::Bare && !of.uses_card());
        let times = by_processor.filter(|(mechanism, _)| promise(*mechanism) >= wanted).map(|(mechanism, of)| {
            let s = Selection { mechanism, ..s.clone() };
            Some(((mechanism, of), self.outcome(&s, program, of, seed)?.per_transaction()))
        });
        times.collect::<Option<Vec<_>>>()?.into_iter().min_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// How much faster whole programs are than on the processor under the cheapest mechanism that
    /// promises at least as much.
    pub fn over_cheapest(&self, s: &Selection, program: Program, of: Configuration) -> Option<Mean> {
        self.over_seeds(|seed| {
            let time = self.outcome(s, program, of, seed)?.per_transaction();
            Some(self.cheapest(s, program, seed)?.1 / time)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Case;
    use crate::plan::{PAPER, Scope};
    use crate::results::Record;
    use crate::run::Outcome;

    fn record(mechanism: Mechanism, configuration: Configuration, ns: f64) -> Record {
        let case = Case { ..Scope::QUICK.case(PAPER, Program::Btree, mechanism, configuration) };
        let (breakdown, counts) = Default::default();
        let outcome = Outcome { ns, transactions: 1, breakdown, busy_ns: Some(0.0), overlap_ns: Some(0.0), counts };
        let (commit, profile, place) = Default::default();
        Record { form: 1, commit, profile, case, outcome, wall_s: 0.0, cpu_s: 0.0, place }
    }

    #[test]
    fn an_epoch_is_compared_with_everything_and_a_log_with_logs_alone() {
        let cpu = |mechanism, ns| record(mechanism, Configuration::Cpu, ns);
        let card = Mechanism::ALL.map(|mechanism| record(mechanism, Configuration::Card, 100.0));
        let with = |shadow| {
            let all = [
                (Mechanism::Undo, 300.0),
                (Mechanism::Redo, 200.0),
                (Mechanism::Checkpoint, 400.0),
                (Mechanism::Shadow, shadow),
            ];
            Summary::new(&all.map(|(m, ns)| cpu(m, ns)).into_iter().chain(card.clone()).collect::<Vec<Record>>())
        };
        let over = |summary: &Summary, mechanism| {
            let s = Selection::new(PAPER, mechanism);
            summary.over_cheapest(&s, Program::Btree, Configuration::Card).map(|mean| mean.value)
        };
        let dear = with(500.0);
        assert_eq!(Mechanism::ALL.map(|mechanism| over(&dear, mechanism)), [Some(2.0); 4]);
        // A cheap epoch is no rival of a log, whose commits are durable when they return.
        let cheap = with(150.0);
        assert_eq!([over(&cheap, Mechanism::Undo), over(&cheap, Mechanism::Redo)], [Some(2.0); 2]);
        assert_eq!([over(&cheap, Mechanism::Checkpoint), over(&cheap, Mechanism::Shadow)], [Some(1.5); 2]);
        // What was not run cannot be left out: it might be the cheapest.
        assert_eq!(over(&Summary::new(&card), Mechanism::Undo), None);
    }
}
