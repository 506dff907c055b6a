//! The table that is printed.

use nearpm_statistics::{Figure, Statistics, median};

use crate::{Cost, STORES};

/// Medians of the cells so far.
pub struct Table {
    /// By cell: the ratios to each of the others, and to the best of them.
    ratios: Vec<[f64; STORES.len()]>,
}

impl Table {
    /// Begins the table.
    pub fn new(names: [&str; STORES.len()]) -> Table {
        let [ours, others @ ..] = names;
        println!(
            "Times, us, and bytes are those of an insert, medians of the rounds; `written` is what the process gave to the device, `processor` the time of all that the thread did not wait. `times X` is the time of X \
             divided by that of {ours}, round by round: above 1 {ours} is the faster. The best is the one with the least median."
        );
        let times: String = others.iter().map(|name| format!(" times {name} |")).collect();
        let written: String = names.iter().map(|name| format!(" {name}, written |")).collect();
        let processor: String = names.iter().map(|name| format!(" {name}, processor |")).collect();
        println!(
            "\n| bytes | inserts a transaction | keys | {} |{times} times the best (least to greatest) | {ours}, logged |{written}{processor}",
            names.join(" | ")
        );
        println!("|{}", "---:|".repeat(3 + 3 * names.len() + others.len() + 2));
        Table { ratios: Vec::new() }
    }

    /// Prints a cell, given its rounds.
    pub fn add(&mut self, name: &str, rounds: &[[Cost; STORES.len()]]) {
        let of = |get: fn(&Cost) -> f64| {
            std::array::from_fn::<f64, { STORES.len() }, _>(|at| median(rounds.iter().map(|round| get(&round[at]))))
        };
        let (times, written) = (of(|cost| cost.microseconds), of(|cost| cost.written));
        let microseconds = |at: usize| rounds.iter().map(|round| round[at].microseconds).collect::<Vec<_>>();
        let ours = microseconds(0);
        let ratio = |at: usize| Figure::of_ratios(&microseconds(at), &ours).expect("a cell has rounds");
        let best = (1..STORES.len()).min_by(|&a, &b| times[a].total_cmp(&times[b])).expect("there are others");
        let Figure { median: to_best, min: least, max: greatest } = ratio(best);
        let ratios: Vec<f64> = (1..STORES.len()).map(|at| ratio(at).median).collect();
        let cells = |values: &[f64], digits: usize| {
            values.iter().map(|value| format!(" {value:.digits$} |")).collect::<String>()
        };
        println!(
            "| {name} |{}{} {to_best:.2} ({least:.2} to {greatest:.2}) {} | {:.0} |{}{}",
            cells(&times, 1),
            cells(&ratios, 2),
            STORES[best].0,
            of(|cost| cost.logged)[0],
            cells(&written, 0),
            cells(&of(|cost| cost.processor), 1)
        );
        self.ratios.push(std::array::from_fn(|at| ratios.get(at).copied().unwrap_or(to_best)));
    }

    /// Prints the means, and the geometric ones in brackets.
    pub fn end(&self) {
        let both = |at: usize| {
            let ratios: Vec<f64> = self.ratios.iter().map(|ratios| ratios[at]).collect();
            format!("{:.2} ({:.2})", (&ratios).mean(), (&ratios).geometric_mean())
        };
        let others: Vec<String> = (1..STORES.len()).map(|at| format!("{} {}", STORES[at].0, both(at - 1))).collect();
        println!("\nMeans (geometric means): {}; the best {}.", others.join(", "), both(STORES.len() - 1));
    }
}
