//! When the power fails in a run.

use std::str::FromStr;

use nearpm_sim::host::{Cut, Event};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// `--power-cut`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerCut {
    /// Not at all.
    Never,
    /// When operation K is about to begin, from 0.
    Operation(usize),
    /// At cycle K of the card, from its power-up.
    Cycle(u64),
    /// Somewhere in the operations, close to something that the card does.
    Random,
}

impl FromStr for PowerCut {
    type Err = String;

    fn from_str(text: &str) -> Result<PowerCut, String> {
        let number = |digits: &str| digits.parse().map_err(|_| format!("{digits:?} is no number"));
        match text.split_once(':') {
            None if text == "never" => Ok(PowerCut::Never),
            None if text == "random" => Ok(PowerCut::Random),
            Some(("op", digits)) => Ok(PowerCut::Operation(number(digits)? as usize)),
            Some(("cycle", digits)) => Ok(PowerCut::Cycle(number(digits)?)),
            _ => Err("use never, op:K, cycle:K or random".into()),
        }
    }
}

/// A cut that is chosen when an operation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Operation, from 0.
    pub operation: usize,
    /// `None` at once; otherwise armed then.
    pub cut: Option<Cut>,
}

impl PowerCut {
    /// What a run of `operations` has to do when one of them begins.
    ///
    /// A random cut is biased to the moments around accept, issue, retire and release of a command: it comes a few cycles
    /// after an event at the card's ports, where a 64-byte log takes about fifty from one end to the other.
    pub fn plan(self, operations: usize, seed: u64) -> Option<Planned> {
        match self {
            PowerCut::Never | PowerCut::Cycle(_) => None,
            PowerCut::Operation(operation) => Some(Planned { operation, cut: None }),
            PowerCut::Random => {
                let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x6375_7421);
                let operation = random.random_range(0..operations.max(1));
                let event =
                    [Event::CommandAccepted, Event::WriteAccepted, Event::Completion][random.random_range(0..3)];
                let count = random.random_range(1..=6);
                // Three in four within the life of a small log, the rest within that of a page.
                let longest = if random.random_range(0..4) == 0 { 2000 } else { 60 };
                let delay_cycles = random.random_range(1..=longest);
                Some(Planned { operation, cut: Some(Cut::AfterEvent { event, count, delay_cycles }) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_others_are_refused() {
        assert_eq!("never".parse(), Ok(PowerCut::Never));
        assert_eq!("op:12".parse(), Ok(PowerCut::Operation(12)));
        assert_eq!("cycle:99".parse(), Ok(PowerCut::Cycle(99)));
        assert_eq!("random".parse(), Ok(PowerCut::Random));
        for wrong in ["", "op", "op:", "op:x", "cycle:-1", "later"] {
            assert!(wrong.parse::<PowerCut>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn random_cuts_repeat_by_seed() {
        let plan = |seed| PowerCut::Random.plan(1000, seed);
        assert_eq!(plan(1), plan(1));
        assert!((0..20).any(|seed| plan(seed) != plan(seed + 1)));
        assert!((0..100).all(|seed| plan(seed).is_some_and(|p| p.operation < 1000)));
    }
}
