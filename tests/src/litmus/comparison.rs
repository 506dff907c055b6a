//! What runs of litmus tests showed, beside what the model allows.

use std::collections::BTreeSet;

use nearpm_ppo::litmus::Test;
use nearpm_ppo::verdict::{expected, printed};

/// Allowed states that no run shows: `test | state | cards | why`, where the cards are `model`,
/// `RTL` or `both`.
const UNREACHED: &str = include_str!("unreached.txt");

/// Which cards tests run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cards {
    /// Transaction-level ones.
    Model,
    /// Verilated ones.
    Rtl,
}

/// The sum of all tests that were run.
pub struct Comparison {
    cards: Cards,
    /// Names of the tests.
    names: BTreeSet<String>,
    /// States that the model allows.
    pub allowed: usize,
    /// Those among them that were shown.
    pub reached: usize,
    /// What was shown and is not allowed.
    wrong: Vec<String>,
    /// What is allowed and was not shown, as `test | state`.
    missing: BTreeSet<String>,
}

impl Comparison {
    /// Of no test yet.
    pub fn on(cards: Cards) -> Self {
        let (names, missing) = Default::default();
        Comparison { cards, names, allowed: 0, reached: 0, wrong: Vec::new(), missing }
    }

    /// Tests.
    pub fn tests(&self) -> usize {
        self.names.len()
    }

    /// Adds what the runs of a test showed, and prints what they did not.
    pub fn take(&mut self, name: &str, test: &Test, shown: &BTreeSet<Vec<String>>) {
        let may = expected(test);
        self.wrong.extend(shown.difference(&may).map(|state| format!("{name}: {}", printed(test, state))));
        let missing: Vec<String> = may.difference(shown).map(|state| printed(test, state)).collect();
        println!("{name:<44} {}/{} {}", may.len() - missing.len(), may.len(), missing.join("; "));
        self.missing.extend(missing.iter().map(|state| format!("{name} | {state}")));
        self.names.insert(name.to_owned());
        self.allowed += may.len();
        self.reached += may.len() - missing.len();
    }

    /// The states of the tests that were run for which there is a reason why these cards do not
    /// show them, as `test | state`.
    fn explained(&self) -> BTreeSet<String> {
        let of_line = |line: &'static str| {
            let [name, state, cards, why] = line.split(" | ").collect::<Vec<_>>()[..] else {
                panic!("{line}: not `test | state | cards | why`")
            };
            assert!(why.len() > 20, "{line}: no reason");
            let here = match cards {
                "both" => true,
                "model" => self.cards == Cards::Model,
                "RTL" => self.cards == Cards::Rtl,
                _ => panic!("{line}: no such cards"),
            };
            (here && self.names.contains(name)).then(|| format!("{name} | {state}"))
        };
        UNREACHED.lines().filter_map(of_line).collect()
    }

    /// Prints what was counted, with what the caller counted, for the page of all campaigns; then
    /// holds it against the list. With `all`, as many runs were made as the list speaks of.
    ///
    /// # Panics
    /// If a state was shown that is not allowed, or one of the list; with `all`, also if one is
    /// neither shown nor in the list.
    pub fn hold(&self, counted: &[(&str, u64)], all: bool) {
        let (explained, violations) = (self.explained(), self.wrong.len());
        let counted: String = counted.iter().map(|(name, count)| format!(r#""{name}":{count},"#)).collect();
        println!(
            r#"{{"counts":{{"tests":{},{counted}"reached":{},"explained":{},"allowed":{},"violations":{violations}}}}}"#,
            self.tests(),
            self.reached,
            self.missing.intersection(&explained).count(),
            self.allowed,
        );
        assert_eq!(self.wrong, [""; 0], "shown and not allowed");
        assert_eq!(
            explained.difference(&self.missing).collect::<Vec<_>>(),
            [""; 0],
            "explained, and shown all the same"
        );
        if all {
            assert_eq!(self.missing.difference(&explained).collect::<Vec<_>>(), [""; 0], "neither shown nor explained");
        }
    }
}
