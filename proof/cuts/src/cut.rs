//! When the power fails in a run, and for how long the save then has energy.

use std::fmt;
use std::str::FromStr;

use nearpm_sim::host::{Cut, CutRecord, Event};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use nearpm_sim::saved::Saved;

/// When the power fails. Cycles and accesses are counted from the last power-up, operations from
/// the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// When operation K is about to begin, from 0; behind the last one for their number.
    Operation(usize),
    /// At cycle K of the card.
    Cycle(u64),
    /// Instead of the host's access K, from 1: a load, store, write-back, fence or poll.
    Access(u64),
    /// Somewhere in the operations, close to something that the card does.
    Random,
}

impl Moment {
    /// When a power cut came.
    pub fn of(record: &CutRecord) -> Moment {
        record.access.map_or(Moment::Cycle(record.cycle), Moment::Access)
    }
}

/// One power cut that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCut {
    /// When.
    pub moment: Moment,
    /// Cycles of the card that the save has energy for; `None` is enough for any save.
    pub energy: Option<u64>,
}

/// `--power-cut`: the first from the first power-up, each further one from the power-up after the
/// last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PowerCuts(pub Vec<PowerCut>);

/// What a user may write.
const FORMS: &str = "use never, op:K, cycle:K, access:K or random, one for each power-up with commas between, each with @E \
                     behind it where the save has energy for E cycles only";

impl FromStr for PowerCuts {
    type Err = String;

    fn from_str(text: &str) -> Result<PowerCuts, String> {
        match text {
            "never" => Ok(PowerCuts::default()),
            _ => text.split(',').map(PowerCut::from_str).collect::<Result<_, _>>().map(PowerCuts),
        }
    }
}

impl FromStr for PowerCut {
    type Err = String;

    fn from_str(text: &str) -> Result<PowerCut, String> {
        let number = |digits: &str| digits.parse::<u64>().map_err(|_| format!("{digits:?} is no number"));
        let (when, energy) = match text.split_once('@') {
            Some((when, energy)) => (when, Some(number(energy)?)),
            None => (text, None),
        };
        let moment = match when.split_once(':') {
            None if when == "random" => Moment::Random,
            Some(("op", digits)) => Moment::Operation(number(digits)? as usize),
            Some(("cycle", digits)) => Moment::Cycle(number(digits)?),
            Some(("access", digits)) => Moment::Access(number(digits)?),
            _ => return Err(FORMS.into()),
        };
        Ok(PowerCut { moment, energy })
    }
}

impl fmt::Display for PowerCuts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return write!(f, "never");
        }
        for (number, cut) in self.0.iter().enumerate() {
            write!(f, "{}{cut}", if number == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Display for PowerCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.moment {
            Moment::Operation(operation) => write!(f, "op:{operation}")?,
            Moment::Cycle(cycle) => write!(f, "cycle:{cycle}")?,
            Moment::Access(access) => write!(f, "access:{access}")?,
            Moment::Random => write!(f, "random")?,
        }
        self.energy.map_or(Ok(()), |cycles| write!(f, "@{cycles}"))
    }
}

/// A power cut as a run makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strike {
    /// Operation with which it is armed, or the first one after it that this power-up does; `None`
    /// arms it at the power-up.
    pub operation: Option<usize>,
    /// `None` at once; otherwise counted from when it is armed.
    pub cut: Option<Cut>,
    /// What comes in the place of both, armed at the power-up, where the card has a save with items
    /// to replay.
    pub in_replay: Option<Cut>,
    /// Cycles of the card that the save has energy for; `None` is enough for any save.
    pub energy: Option<u64>,
}

impl Strike {
    /// The strike after a cut that left `before` in the save area.
    pub fn after(self, before: Option<Saved>) -> Strike {
        let replays = before.and_then(|saved| saved.image).is_some_and(|image| image.items() > 0);
        match self.in_replay {
            Some(cut) if replays => Strike { operation: None, cut: Some(cut), ..self },
            _ => self,
        }
    }
}

impl PowerCuts {
    /// One, at random.
    pub fn random() -> PowerCuts {
        PowerCuts(vec![PowerCut { moment: Moment::Random, energy: None }])
    }

    /// What a run of `operations` does. Each random cut is chosen by `seed` and its number.
    pub fn strikes(&self, operations: usize, seed: u64) -> Vec<Strike> {
        let strike = |(number, cut): (usize, &PowerCut)| {
            let (operation, when) = match cut.moment {
                Moment::Operation(operation) => (Some(operation), None),
                Moment::Cycle(cycle) => (None, Some(Cut::AtCycle(cycle))),
                Moment::Access(access) => (None, Some(Cut::AtAccess(access))),
                Moment::Random => random(operations, seed.wrapping_add(number as u64)),
            };
            Strike { operation, cut: when, in_replay: None, energy: cut.energy }
        };
        self.0.iter().enumerate().map(strike).collect()
    }
}

/// A cut that is biased to the moments around accept, issue, retire and release of a command: it
/// comes a few cycles after an event at the card's ports, where a 64-byte log takes about fifty
/// from one end to the other.
fn random(operations: usize, seed: u64) -> (Option<usize>, Option<Cut>) {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x6375_7421);
    let operation = random.random_range(0..operations.max(1));
    let event = [Event::CommandAccepted, Event::WriteAccepted, Event::Completion][random.random_range(0..3)];
    let count = random.random_range(1..=6);
    // Three in four within the life of a small log, the rest within that of a page.
    let longest = if random.random_range(0..4) == 0 { 2000 } else { 60 };
    let delay_cycles = random.random_range(1..=longest);
    (Some(operation), Some(Cut::AfterEvent { event, count, delay_cycles }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_written_and_others_are_refused() {
        for form in ["never", "op:12", "cycle:99", "access:7", "random", "cycle:99,op:3@0,random@400"] {
            assert_eq!(form.parse::<PowerCuts>().unwrap().to_string(), form);
        }
        let two = PowerCuts(vec![
            PowerCut { moment: Moment::Cycle(5), energy: None },
            PowerCut { moment: Moment::Access(6), energy: Some(7) },
        ]);
        assert_eq!("cycle:5,access:6@7".parse(), Ok(two));
        for wrong in ["", "op", "op:", "op:x", "cycle:-1", "later", "cycle:1,", "cycle:1@", "never,op:1"] {
            assert!(wrong.parse::<PowerCuts>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn random_cuts_repeat_by_seed() {
        let cuts: PowerCuts = "random,random".parse().unwrap();
        let strikes = |seed| cuts.strikes(1000, seed);
        assert_eq!(strikes(1), strikes(1));
        assert!((0..20).any(|seed| strikes(seed) != strikes(seed + 1)));
        assert!((0..100).any(|seed| strikes(seed)[0] != strikes(seed)[1]));
        assert!((0..100).all(|seed| strikes(seed).iter().all(|s| s.operation.is_some_and(|o| o < 1000))));
    }
}
