//! What measurements are told by: medians, quantiles, spreads, and ratios of what was measured in
//! turn. They are those of `statrs`, whose means are handed on: `(&values).geometric_mean()`.

#![forbid(unsafe_code)]

use std::time::Duration;

use serde::{Deserialize, Serialize};
pub use statrs::statistics::Statistics;
use statrs::statistics::{Data, Max, Median, Min};

/// The median; of an even number of values the mean of the middle two.
///
/// # Panics
/// If there are none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.into_iter().collect();
    assert!(!values.is_empty(), "nothing has no median");
    Data::new(values).median()
}

/// The median of times, as [`median`].
///
/// # Panics
/// If there are none.
pub fn median_time(times: &[Duration]) -> Duration {
    Duration::from_secs_f64(median(times.iter().map(Duration::as_secs_f64)))
}

/// The value that this share of the others, 0 to 1, are not above: one of the values, as counts of
/// cycles or nanoseconds are whole. Sorts them.
///
/// # Panics
/// If there are none.
pub fn quantile<T: Copy + Ord>(values: &mut [T], share: f64) -> T {
    values.sort_unstable();
    values[((values.len() - 1) as f64 * share) as usize]
}

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
        assert_eq!((median([3.0, 1.0, 2.0]), median([4.0, 1.0, 2.0, 3.0])), (2.0, 2.5));
        let times = [7, 1, 2, 900].map(Duration::from_micros);
        assert_eq!(median_time(&times), Duration::from_nanos(4500));
        assert!(std::panic::catch_unwind(|| median([])).is_err(), "there is no median of nothing");
        assert_eq!(Figure::of(&[3.0, 1.0, 2.0]), Some(Figure { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Figure::of(&[4.0, 1.0, 2.0, 3.0]), Some(Figure { median: 2.5, min: 1.0, max: 4.0 }));
        assert_eq!(Figure::of(&[]), None);
    }

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let mut values = [40, 10, 30, 20];
        assert_eq!([0.0, 0.5, 0.75, 1.0].map(|share| quantile(&mut values, share)), [10, 20, 30, 40]);
        assert_eq!(quantile(&mut [7], 0.99), 7);
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
