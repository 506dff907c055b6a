//! The table that is printed.

use crate::{Cost, STORES};

/// Medians of the cells so far.
pub struct Table {
    /// By cell: the ratios to each of the others, and to the best of them.
    ratios: Vec<[f64; STORES.len()]>,
}

fn median(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0], values[values.len() - 1])
}

impl Table {
    /// Begins the table.
    pub fn new(names: [&str; STORES.len()]) -> Table {
        let [ours, others @ ..] = names;
        println!(
            "Times, us, and bytes are those of an insert, medians of the rounds; `written` is what the process gave to the device. `times X` is the time of X \
             divided by that of {ours}, round by round: above 1 {ours} is the faster. The best is the one with the least median."
        );
        let times: String = others.iter().map(|name| format!(" times {name} |")).collect();
        let written: String = names.iter().map(|name| format!(" {name}, written |")).collect();
        println!(
            "\n| bytes | inserts a transaction | keys | {} |{times} times the best (least to greatest) | {ours}, logged |{written}",
            names.join(" | ")
        );
        println!("|{}", "---:|".repeat(3 + 2 * names.len() + others.len() + 2));
        Table { ratios: Vec::new() }
    }

    /// Prints a cell, given its rounds.
    pub fn add(&mut self, name: &str, rounds: &[[Cost; STORES.len()]]) {
        let of = |get: fn(&Cost) -> f64| {
            std::array::from_fn::<f64, { STORES.len() }, _>(|at| median(rounds.iter().map(|round| get(&round[at]))).0)
        };
        let (times, written) = (of(|cost| cost.microseconds), of(|cost| cost.written));
        let ratio = |at: usize| median(rounds.iter().map(|round| round[at].microseconds / round[0].microseconds));
        let best = (1..STORES.len()).min_by(|&a, &b| times[a].total_cmp(&times[b])).expect("there are others");
        let (to_best, least, greatest) = ratio(best);
        let ratios: Vec<f64> = (1..STORES.len()).map(|at| ratio(at).0).collect();
        let cells = |values: &[f64], digits: usize| {
            values.iter().map(|value| format!(" {value:.digits$} |")).collect::<String>()
        };
        println!(
            "| {name} |{}{} {to_best:.2} ({least:.2} to {greatest:.2}) {} | {:.0} |{}",
            cells(&times, 1),
            cells(&ratios, 2),
            STORES[best].0,
            of(|cost| cost.logged)[0],
            cells(&written, 0)
        );
        self.ratios.push(std::array::from_fn(|at| ratios.get(at).copied().unwrap_or(to_best)));
    }

    /// Prints the means, and the geometric ones in brackets.
    pub fn end(&self) {
        let mean = |of: &dyn Fn(f64) -> f64, at: usize| {
            self.ratios.iter().map(|ratios| of(ratios[at])).sum::<f64>() / self.ratios.len() as f64
        };
        let both = |at: usize| format!("{:.2} ({:.2})", mean(&|ratio| ratio, at), mean(&f64::ln, at).exp());
        let others: Vec<String> = (1..STORES.len()).map(|at| format!("{} {}", STORES[at].0, both(at - 1))).collect();
        println!("\nMeans (geometric means): {}; the best {}.", others.join(", "), both(STORES.len() - 1));
    }
}
