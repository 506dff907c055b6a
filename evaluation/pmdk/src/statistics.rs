//! Medians, spreads, and ratios of what was measured in turn.

use serde::{Deserialize, Serialize};
use statrs::statistics::{Data, Max, Median, Min};

/// A figure from many samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The median; of an even number of samples the mean of the middle two.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
}

impl Figure {
    /// The figure of samples, or `None` of none.
    pub fn of(samples: &[f64]) -> Option<Figure> {
        if samples.is_empty() {
            return None;
        }
        let samples = Data::new(samples.to_vec());
        Some(Figure { median: samples.median(), min: samples.min(), max: samples.max() })
    }

    /// The figure of `above / below`, round by round: what disturbs the machine in one round
    /// disturbs both.
    pub fn of_ratios(above: &[f64], below: &[f64]) -> Option<Figure> {
        let ratios: Vec<f64> = above.iter().zip(below).map(|(a, b)| a / b).collect();
        Figure::of(&ratios)
    }

    /// The figure of `(ours - floor) / (theirs - floor)`, round by round, or `None` where theirs is
    /// no slower than the floor.
    pub fn of_ratios_above(floor: &[f64], ours: &[f64], theirs: &[f64]) -> Option<Figure> {
        let above = |samples: &[f64]| -> Vec<f64> { samples.iter().zip(floor).map(|(s, f)| s - f).collect() };
        let theirs = above(theirs);
        if theirs.iter().any(|&t| t <= 0.0) { None } else { Figure::of_ratios(&above(ours), &theirs) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_spreads() {
        assert_eq!(Figure::of(&[3.0, 1.0, 2.0]), Some(Figure { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Figure::of(&[4.0, 1.0, 2.0, 3.0]), Some(Figure { median: 2.5, min: 1.0, max: 4.0 }));
        assert_eq!(Figure::of(&[]), None);
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine was twice as slow in the second round: the ratio of medians would be 0.75.
        let figure = Figure::of_ratios(&[1.0, 2.0], &[2.0, 4.0]).expect("two rounds");
        assert_eq!(figure, Figure { median: 0.5, min: 0.5, max: 0.5 });
    }

    #[test]
    fn the_floor_is_taken_off_both() {
        let figure = Figure::of_ratios_above(&[10.0, 10.0], &[14.0, 18.0], &[20.0, 26.0]).expect("above the floor");
        assert_eq!(figure, Figure { median: 0.45, min: 0.4, max: 0.5 });
        assert_eq!(Figure::of_ratios_above(&[10.0], &[12.0], &[9.0]), None, "no sense below the floor");
    }
}
