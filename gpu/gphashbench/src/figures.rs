//! Figures 5 to 15 of the paper (GPHash, FAST 2025): what its text says, beside what was measured
//! here.
//!
//! The paper's tables, its GPU (V100) and its persistent memory (Optane) are others: ratios
//! compare, figures do not.

use std::fmt::Write as _;

use nearpm_gpmbench::report::{Report, Row};

/// A figure.
struct Figure {
    number: u32,
    shows: &'static str,
    /// What the text says of it.
    says: &'static str,
    /// Beginnings of the groups, and parts of the names, of rows that belong to it.
    rows: &'static [(&'static str, &'static str)],
    /// What is not here, and why.
    lacks: &'static str,
}

/// What other people's tables would need.
const PEERS: &str = "other people's tables: see docs/gphash.md";

const FIGURES: [Figure; 11] = [
    Figure {
        number: 5,
        shows: "throughput and latency of searches, inserts, updates and deletes by the size of a batch, keys of 8 bytes",
        says: "searches at most 13.84 times the throughput, and 1/27.62 of the latency, of tables of the processor; 4.28 times \
               SlabHash's; inserts 5.79, updates 9.23, deletes 10.37 times at most",
        rows: &[("by size of a batch", ""), ("processor, ", "")],
        lacks: PEERS,
    },
    Figure {
        number: 6,
        shows: "YCSB by the size of a batch, keys of 32 bytes",
        says: "A and B 4.75 times at most, D 2.16 times other tables of a GPU",
        rows: &[("YCSB by size of a batch, keys of 32 B", ""), ("keys of 32 B", "")],
        lacks: PEERS,
    },
    Figure {
        number: 7,
        shows: "load factors",
        says: "92 %; 85 % of tables of the processor, 82 % of SlabHash",
        rows: &[("load factor", "")],
        lacks: "",
    },
    Figure {
        number: 8,
        shows: "what a batch's time goes to",
        says: "of tables of the processor more than 30.1 % goes to transfers, of logging tables up to 15.2 % to the log",
        rows: &[("N (ours): batch of", ""), ("P (paper's, repaired): batch of", "")],
        lacks: "neither design has a log or transfers values: keys go up, outcomes come down",
    },
    Figure {
        number: 9,
        shows: "what each part of the design brings",
        says: "a warp an operation brings 104.1 % at most, then keys in the slots 13.7 % at most, then a cache 40.9 % at most \
               (A 17.6, B 35.5, D and LOAD 7.6)",
        rows: &[("parts of the paper's design", "")],
        lacks: "",
    },
    Figure {
        number: 10,
        shows: "DLRM and PageRank",
        says: "7.09 times the throughput and 1/7.91 of the latency at most",
        rows: &[("DLRM-like", ""), ("PageRank-like", "")],
        lacks: "their data are not to be had: streams that look like them",
    },
    Figure {
        number: 11,
        shows: "policies and sizes of a cache",
        says: "C with LFU: 45.7 % more from 0 to 10 %, 16.0 % more from 10 to 40 %",
        rows: &[("YCSB C by size of the cache", "")],
        lacks: "",
    },
    Figure {
        number: 12,
        shows: "bytes of a key; skew",
        says: "from 8 to 128 bytes 13.1 % less, of SlabHash 38.6 %",
        rows: &[("keys of", ""), ("YCSB with a cache", "C")],
        lacks: "one skew (theta 0.99), over 10^10 ranks and over the pairs",
    },
    Figure {
        number: 13,
        shows: "levels, hash functions and slots",
        says: "more of the first two bring fuller tables and slower operations; 2L-2H-8S is the default",
        rows: &[("configurations", "")],
        lacks: "",
    },
    Figure {
        number: 14,
        shows: "times of resizing and recovery",
        says: "hundreds of milliseconds each; of recovery more than 99 % is mapping",
        rows: &[("growing", ""), ("N (ours):", "opening again"), ("P (paper's, repaired):", "opening again")],
        lacks: "",
    },
    Figure {
        number: 15,
        shows: "throughput while a cache is filled",
        says: "with filling beside operations it hardly falls; filling takes hundreds of milliseconds",
        rows: &[("filling a cache", ""), ("YCSB with a cache", "a turn")],
        lacks: "",
    },
];

/// The figures as text.
pub fn beside_the_paper(report: &Report) -> String {
    let mut text = format!("{}; times: {}; PM: {}\n", report.device, report.times, report.memory);
    for figure in &FIGURES {
        let _ = writeln!(text, "\nFigure {}: {}\n  paper: {}", figure.number, figure.shows, figure.says);
        let is_of = |row: &&Row| {
            figure.rows.iter().any(|(group, name)| row.group.starts_with(group) && row.name.contains(name))
        };
        let mut rows = report.rows.iter().filter(is_of).peekable();
        if rows.peek().is_none() {
            text += "  here: not measured in these results\n";
        }
        let mut group = "";
        for row in rows {
            if row.group != group {
                group = &row.group;
                let _ = writeln!(text, "  here, {group}:");
            }
            let _ = writeln!(text, "    {:<70} {:>10.1} {}", row.name, row.value, row.unit);
        }
        if !figure.lacks.is_empty() {
            let _ = writeln!(text, "  not here: {}", figure.lacks);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_has_its_rows() {
        let mut report = Report::default();
        report.value(
            "configurations, P (paper's, repaired): 8 slots",
            "2L-2H-8S: search, keys only",
            3.25,
            "M/s",
            None,
        );
        let text = beside_the_paper(&report);
        for number in 5..=15 {
            assert!(text.contains(&format!("Figure {number}: ")), "{text}");
        }
        let of_13 = text.split("Figure 13").nth(1).and_then(|rest| rest.split("Figure 14").next()).unwrap_or_default();
        assert!(of_13.contains("2L-2H-8S: search") && !of_13.contains("not measured"), "{of_13}");
    }
}
