//! The tables that are printed.

use nearpm_statistics::{Figure, Statistics, median};

use crate::disk::{Counters, Disk};
use crate::{Cell, Cost, STORES};

/// Medians of the cells so far.
pub struct Table {
    /// By cell: the ratios to each of the others, and to the best of them.
    ratios: Vec<[f64; STORES.len()]>,
    /// Rows of the table of bytes and of what the disk counts.
    written: Vec<String>,
}

fn row<T>(of: impl IntoIterator<Item = T>, text: impl Fn(T) -> String) -> String {
    of.into_iter().map(|value| format!(" {} |", text(value))).collect()
}

impl Table {
    /// Begins the table of times.
    pub fn new(names: [&str; STORES.len()]) -> Table {
        let [ours, others @ ..] = names;
        println!(
            "Times, us, are those of an insert, medians of the rounds; `processor` is the time of all that the thread did not wait. `times X` is the time of X \
             divided by that of {ours}, round by round: above 1 {ours} is the faster. The best is the one with the least median."
        );
        println!(
            "\n| bytes | inserts a transaction | keys |{}{} times the best (least to greatest) |{}",
            row(names, str::to_owned),
            row(others, |name| format!("times {name}")),
            row(names, |name| format!("{name}, processor"))
        );
        println!("|{}", "---:|".repeat(3 + 2 * names.len() + others.len() + 1));
        Table { ratios: Vec::new(), written: Vec::new() }
    }

    /// Prints a cell, given its rounds, and what the disk has counted in one of its transactions.
    pub fn add(&mut self, cell: &Cell, rounds: &[[Cost; STORES.len()]], counted: Option<[Counters; STORES.len()]>) {
        let of = |get: fn(&Cost) -> f64| {
            std::array::from_fn::<f64, { STORES.len() }, _>(|at| median(rounds.iter().map(|round| get(&round[at]))))
        };
        let times = of(|cost| cost.microseconds);
        let microseconds = |at: usize| rounds.iter().map(|round| round[at].microseconds).collect::<Vec<_>>();
        let ours = microseconds(0);
        let ratio = |at: usize| Figure::of_ratios(&microseconds(at), &ours).expect("a cell has rounds");
        let best = (1..STORES.len()).min_by(|&a, &b| times[a].total_cmp(&times[b])).expect("there are others");
        let Figure { median: to_best, min: least, max: greatest } = ratio(best);
        let ratios: Vec<f64> = (1..STORES.len()).map(|at| ratio(at).median).collect();
        let name = format!("{} | {} | {}", cell.bytes, cell.inserts, format!("{:?}", cell.keys).to_lowercase());
        println!(
            "| {name} |{}{} {to_best:.2} ({least:.2} to {greatest:.2}) {} |{}",
            row(times, |time| format!("{time:.1}")),
            row(&ratios, |ratio| format!("{ratio:.2}")),
            STORES[best].0,
            row(of(|cost| cost.processor), |time| format!("{time:.1}"))
        );
        self.ratios.push(std::array::from_fn(|at| ratios.get(at).copied().unwrap_or(to_best)));
        let transactions = cell.transactions as f64;
        let disk = counted.map_or_else(String::new, |counted| {
            row(counted, |of: Counters| format!("{:.0}", of.bytes as f64 / (transactions * cell.inserts as f64)))
                + &row(counted, |of: Counters| {
                    format!("{:.2} + {:.2}", of.writes as f64 / transactions, of.flushes as f64 / transactions)
                })
        });
        let logged = of(|cost| cost.logged)[0];
        self.written
            .push(format!("| {name} | {logged:.0} |{}{disk}", row(of(|cost| cost.written), |all| format!("{all:.0}"))));
    }

    /// Prints the means, the geometric ones in brackets, and the table of bytes.
    pub fn end(&self, disk: Option<&Disk>) {
        let both = |at: usize| {
            let ratios: Vec<f64> = self.ratios.iter().map(|ratios| ratios[at]).collect();
            format!("{:.2} ({:.2})", (&ratios).mean(), (&ratios).geometric_mean())
        };
        let others: Vec<String> = (1..STORES.len()).map(|at| format!("{} {}", STORES[at].0, both(at - 1))).collect();
        println!("\nMeans (geometric means): {}; the best {}.", others.join(", "), both(STORES.len() - 1));
        println!(
            "\nBytes of an insert: `logged` is what ours logged, `written` what the process gave to the file system's device, page by page, medians of the rounds."
        );
        match disk {
            Some(disk) => println!(
                "`disk` is what {} itself counts between two synchronisations of the file system around one turn of a round of its own: bytes of an insert, and writes + flushes of a transaction. Whatever else writes to it is in them.",
                disk.name()
            ),
            None => println!("The file system has no disk of its own: there are no counters of one."),
        }
        let names = STORES.map(|(name, _)| name);
        let disk = disk.map_or_else(String::new, |_| {
            row(names, |name| format!("{name}, disk")) + &row(names, |name| format!("{name}, writes + flushes"))
        });
        let head = format!(
            "| bytes | inserts a transaction | keys | {}, logged |{}{disk}",
            names[0],
            row(names, |name| format!("{name}, written"))
        );
        println!("\n{head}\n|{}", "---:|".repeat(head.matches('|').count() - 1));
        self.written.iter().for_each(|row| println!("{row}"));
    }
}
