//! When operations begin.

use std::time::{Duration, Instant};

/// Moments at which one client begins its operations.
pub struct Pace {
    start: Instant,
    first_s: f64,
    every_s: f64,
    begun: u64,
}

impl Pace {
    /// For one client of `clients` that begin `target` operations a second together, evenly.
    pub fn new(start: Instant, target: f64, client: u64, clients: u64) -> Pace {
        let every_s = clients as f64 / target;
        Pace { start, first_s: client as f64 / target, every_s, begun: 0 }
    }

    /// When the next operation is to begin. It does not move when the last one took long.
    pub fn next(&mut self) -> Instant {
        let after_s = self.first_s + self.begun as f64 * self.every_s;
        self.begun += 1;
        self.start + Duration::from_secs_f64(after_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_begin_in_turn_and_evenly() {
        let start = Instant::now();
        let mut paces: Vec<_> = (0..4).map(|client| Pace::new(start, 1000.0, client, 4)).collect();
        let moments: Vec<_> = (0..12).map(|turn| (paces[turn % 4].next() - start).as_micros()).collect();
        assert_eq!(moments, (0..12).map(|turn| turn * 1000).collect::<Vec<_>>());
    }
}
