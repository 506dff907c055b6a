//! What the paper publishes in its text. Its figures have more, which nobody can read exactly: that
//! is "not available" here.

use nearpm::Mechanism;

use crate::case::Configuration;

/// Mechanisms as the paper counts them, with the figures of its text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// The mechanism; the paper's "logging" is undo and redo logging, mostly PMDK's undo log.
    pub mechanism: Mechanism,
    /// Its name there.
    pub name: &'static str,
    /// Share of the run time that crash consistency takes on the processor, in percent (section
    /// 2.1, Fig. 1a).
    pub share: f64,
    /// Share of that which is data movement, in percent (section 2.1, Fig. 1b to 1d).
    pub movement: f64,
    /// Average speed-up of the code regions (section 8.2.3, Fig. 15; the abstract has 6.97, 4.26
    /// and 9.76).
    pub region: f64,
    /// Average speed-up of whole programs with one device, two with software synchronisation, two
    /// with delayed (section 8.2.4, Fig. 16).
    pub whole: [f64; 3],
    /// Share of the run time that is parallel, in percent (section 8.2.2, Fig. 18).
    pub parallel: f64,
}

/// The three mechanisms.
pub const MECHANISMS: [Published; 3] = [
    Published {
        mechanism: Mechanism::Undo,
        name: "logging",
        share: 37.7,
        movement: 68.9,
        region: 6.9,
        whole: [1.29, 1.21, 1.35],
        parallel: 20.01,
    },
    Published {
        mechanism: Mechanism::Checkpoint,
        name: "checkpointing",
        share: 48.6,
        movement: 60.4,
        region: 4.3,
        whole: [1.15, 1.14, 1.22],
        parallel: 17.25,
    },
    Published {
        mechanism: Mechanism::Shadow,
        name: "shadow paging",
        share: 67.2,
        movement: 70.5,
        region: 9.8,
        whole: [1.28, 1.23, 1.33],
        parallel: 24.68,
    },
];

/// Configurations of [`Published::whole`], in its order.
pub const WHOLE: [Configuration; 3] = [Configuration::Card, Configuration::Software, Configuration::Delayed];

/// Speed-up of TATP's regions under undo logging (section 8.2.3).
pub const TATP_REGION: f64 = 1.23;

impl Published {
    /// What Amdahl's law makes of the share and of the speed-up of the regions: the speed-up of a
    /// whole program.
    pub fn amdahl(&self) -> f64 {
        let share = self.share / 100.0;
        1.0 / (1.0 - share + share / self.region)
    }

    /// What it could be at most: regions that take no time.
    pub fn ceiling(&self) -> f64 {
        1.0 / (1.0 - self.share / 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's whole-program speed-ups are below what its shares and regions give.
    #[test]
    fn the_papers_figures_do_not_fit_each_other() {
        let found = MECHANISMS.map(|published| (published.amdahl() * 100.0).round() / 100.0);
        assert_eq!(found, [1.48, 1.59, 2.52]);
        for published in MECHANISMS {
            assert!(published.whole.iter().all(|whole| *whole < published.amdahl()));
        }
    }
}
