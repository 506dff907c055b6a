//! The paper's figures and tables of results, made of a card's: beside the numbers that the paper's
//! text states, and what the link allows.
//!
//! A value that the results lack is `-`. GPUfs, pmemKV, RocksDB and MatrixKV are the paper's
//! numbers alone.

mod programs;

use std::fmt::Write as _;

use crate::report::Report;
use programs::{GIB, programs};

/// The figures as text.
pub fn figures(report: &Report) -> String {
    let all = Results(report);
    let mut text = format!("{}; the paper: Titan RTX, Optane, PCIe 3.0\n", report.device);
    for part in [figure_1, figure_3, figures_9_and_10, figure_11, figure_12, table_4, table_5] {
        text += "\n";
        part(&all, &mut text);
    }
    text
}

struct Results<'r>(&'r Report);

impl Results<'_> {
    /// The first value of a group whose name begins and goes on so.
    fn value(&self, group: &str, begins: &str, holds: &str) -> Option<f64> {
        let rows = self.0.rows.iter().filter(|row| row.group.starts_with(group));
        rows.filter(|row| row.name.starts_with(begins) && row.name.contains(holds)).map(|row| row.value).next()
    }

    /// The smallest time of a way, over its numbers of threads or files.
    fn best(&self, group: &str, begins: &str, way: &str) -> Option<f64> {
        let rows = self.0.rows.iter().filter(|row| row.group == group && row.unit == "ms");
        rows.filter(|row| row.name.starts_with(begins) && row.name.contains(way))
            .map(|row| row.value)
            .min_by(f64::total_cmp)
    }

    /// GB/s of the link, as streams of persists reach it.
    fn link(&self) -> Option<f64> {
        self.value("Stream", "persist, ", "threads")
    }
}

fn shown(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) if value >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}

fn over(slow: Option<f64>, fast: Option<f64>) -> Option<f64> {
    Some(slow? / fast?)
}

fn figure_1(all: &Results<'_>, text: &mut String) {
    text.push_str("Figure 1: GPM over the best of several threads of a processor alone\n");
    for (name, paper) in
        [("gpKVS", "2.7-5.8"), ("gpDB, an update (U)", "6.9"), ("PS", "2.8-27"), ("SRAD", "2.8-27"), ("BFS", "2.8-27")]
    {
        let found = all.value("Processor alone", name, "GPM over the best");
        let _ = writeln!(text, "  {name:<22} {:>8} x   paper {paper}", shown(found));
    }
    text.push_str("  Paper, gpKVS over pmemKV, RocksDB-pmem, MatrixKV: 2.7 to 5.8 x\n");
}

fn figure_3(all: &Results<'_>, text: &mut String) {
    text.push_str("Figure 3: persists of 1 GiB, over CAP-mm with one thread\n");
    let one = all.value("Programs", "HS", "CAP-mm, 1 threads");
    for threads in [2, 4, 8, 16] {
        let time = all.value("Programs", "HS", &format!("CAP-mm, {threads} threads"));
        let _ =
            writeln!(text, "  CAP-mm, {threads:>6} threads    {:>8} x   paper at most 1.47", shown(over(one, time)));
    }
    for threads in [1024, 4096, 16384, 65536, 262_144] {
        let rate = all.value("Stream", &format!("8 B persists, {threads} threads"), "");
        let time = rate.map(|rate| GIB / rate / 1e6);
        let _ = writeln!(text, "  GPM,    {threads:>6} threads    {:>8} x   paper at most 4", shown(over(one, time)));
    }
    let least = all.link().map(|link| GIB / link / 1e6);
    let _ = writeln!(text, "  the link                  {:>8} x", shown(over(one, least)));
}

fn figures_9_and_10(all: &Results<'_>, text: &mut String) {
    text.push_str(
        "Figures 9 and 10: milliseconds, and GPM over the other ways (those of native programs without their computation)\n",
    );
    let _ = writeln!(
        text,
        "  {:<12}{:>9}{:>9}{:>9}{:>9}{:>10}{:>9}{:>9}{:>9}{:>9}{:>9}{:>11}  paper over fs, mm",
        "",
        "CAP-fs",
        "CAP-mm",
        "NDP",
        "GPM",
        "by link",
        "CAP-eADR",
        "over fs",
        "over mm",
        "over NDP",
        "of link",
        "over eADR"
    );
    for program in programs(all) {
        let ours = program.ours(all);
        let [fs, mm, near, saved] =
            ["CAP-fs, file", "CAP-mm", "GPM-NDP", "CAP-eADR"].map(|way| program.other(all, way));
        let least = program.least(all);
        let columns = [
            fs,
            mm,
            near,
            ours,
            least,
            saved,
            over(fs, ours),
            over(mm, ours),
            over(near, ours),
            over(least, ours),
            over(saved, ours),
        ];
        let widths = [9, 9, 9, 9, 10, 9, 9, 9, 9, 9, 11];
        let cells: String =
            columns.iter().zip(widths).map(|(&value, width)| format!("{:>width$}", shown(value))).collect();
        let _ = writeln!(text, "  {:<12}{cells}  {}, {}", program.name, program.paper.0, program.paper.1);
    }
    text.push_str("  CAP-mm of gpKVS: the best of the whole table, its changed pages, its changed sets\n");
    text.push_str(
        "  Paper: GPM over GPM-NDP up to 6, gpKVS 1.4-1.6; GPM-eADR up to 13 over GPM, 24 over CAP-eADR on average\n",
    );
}

fn figure_11(all: &Results<'_>, text: &mut String) {
    text.push_str("Figure 11: hierarchical over the best conventional logs, of 16 B entries\n");
    for threads in [1024, 4096, 16384, 65536, 262_144] {
        let group = "Logs of 16 B entries (figure 11)";
        let of = |head: &str| all.value(group, "HCL one fence over", &format!("head in {head}, {threads} threads"));
        let one = all.value(group, "HCL one fence", &format!(", {threads} threads"));
        let two = all.value(group, "HCL two fences", &format!(", {threads} threads"));
        let limits = all.link().map(|link| (link * 1e3 / 16.0, link * 1e3 / 20.0));
        let _ = writeln!(
            text,
            "  {threads:>6} threads   {:>5} x, head in HBM {:>5} x; one fence {:>5} of {:>5} M/s that the link allows, two {:>5} of {:>5}; paper 3.6 x on average",
            shown(of("PM")),
            shown(of("HBM")),
            shown(one),
            shown(limits.map(|limits| limits.0)),
            shown(two),
            shown(limits.map(|limits| limits.1))
        );
    }
    let update = all.value("gpDB", "update: HCL over conventional", "");
    let _ = writeln!(
        text,
        "  gpDB (U)          {:>5} x; paper 6.1 (gpKVS 3.3; ours logs each place once, and has no conventional form)",
        shown(update)
    );
}

fn figure_12(all: &Results<'_>, text: &mut String) {
    text.push_str("Figure 12: bandwidth of what GPM stores, GB/s\n");
    for program in programs(all) {
        let rate = program.ours(all).map(|time| program.stored / time / 1e6);
        let share = over(rate.map(|rate| rate * 100.0), all.link());
        let _ = writeln!(text, "  {:<12}{:>8}   {:>5} % of the link", program.name, shown(rate), shown(share));
    }
    text.push_str("  Paper: 12.5 in order and aligned, 3.13 not aligned, 0.72 at random, of a link of 13\n");
}

fn table_4(all: &Results<'_>, text: &mut String) {
    text.push_str("Table 4: bytes that CAP stores over those of GPM\n");
    for program in programs(all) {
        let paper = match program.name {
            "gpKVS" => "39.38",
            "gpDB (I)" => "1.27",
            "gpDB (U)" => "19.88",
            "gpKVS 95:5" => "-",
            _ => "1.00",
        };
        let ratio = (program.stored > 0.0).then(|| program.by_cap / program.stored);
        let _ = writeln!(text, "  {:<12}{:>8} x   paper {paper}", program.name, shown(ratio));
    }
}

fn table_5(all: &Results<'_>, text: &mut String) {
    text.push_str("Table 5: restoration, percent of the time of the operation\n");
    let kvs = all.value("gpKVS", "undo, of the time of", "");
    let insertion = all.value("gpDB", "undo of an insertion, of", "");
    let update = all.value("gpDB", "undo, of the time of", "");
    let _ = writeln!(text, "  gpKVS       {:>10}   paper 18.96 (of 25 batches)", shown(kvs));
    let _ = writeln!(text, "  gpDB (I)    {:>10}   paper 0.01", shown(insertion));
    let _ = writeln!(text, "  gpDB (U)    {:>10}   paper 10.43 (ours: of the update alone)", shown(update));
    // The paper's iterations; times are of 20 with 2 checkpoints.
    for (name, iterations, paper) in
        [("DNN", 10_000.0, 0.12), ("CFD", 5000.0, 0.30), ("BLK", 1024.0, 0.80), ("HS", 1024.0, 1.65)]
    {
        let run = all.value("Programs", name, "20 iterations").map(|time| time / 20.0 * iterations);
        let share = over(all.value("Programs", name, ": restore").map(|time| time * 100.0), run);
        let share = share.map_or("-".to_owned(), |share| format!("{share:.4}"));
        let _ = writeln!(text, "  {name:<12}{share:>10}   paper {paper} (of {iterations} iterations)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_made_of_the_results_rows() {
        let mut report = Report::default();
        let ms = |milliseconds: f64| [std::time::Duration::from_secs_f64(milliseconds / 1e3)];
        report.value("Stream", "persist, 132 x 1024 threads, 16 B each", 50.0, "GB/s", None);
        for (name, time) in [
            ("HS 16384 x 16384: CAP-mm, 1 threads", 60.0),
            ("HS 16384 x 16384: CAP-mm, 8 threads", 25.0),
            ("HS 16384 x 16384: CAP-mm, 16 threads", 30.0),
            ("HS 16384 x 16384: CAP-fs, file on tmpfs", 1000.0),
            ("HS 16384 x 16384: a checkpoint of 1024.0 MiB", 20.0),
            ("HS 16384 x 16384: 20 iterations, 2 checkpoints", 40.0),
            ("HS 16384 x 16384: restore", 20.0),
        ] {
            report.time("Programs", name, &ms(time), None);
        }
        report.value("Processor alone (figure 1)", "PS: GPM over the best", 1.5, "x", None);
        let text = figures(&report);
        let line = |part: &str, begins: &str| -> Vec<String> {
            let part = text.split("\n\n").find(|text| text.contains(part)).unwrap();
            let line = part.lines().find(|line| line.trim_start().starts_with(begins)).unwrap();
            line.split_whitespace().map(str::to_owned).collect()
        };
        // CAP-fs, the best CAP-mm, no GPM-NDP, GPM, the link; over CAP-fs, over CAP-mm.
        let row = line("Figures 9 and 10", "HS");
        assert_eq!(row[1..6], ["1000", "25.0", "-", "20.0", "21.5"].map(str::to_owned), "{row:?}");
        assert_eq!(row[7..9], ["50.0", "1.25"].map(str::to_owned), "{row:?}");
        assert_eq!(line("Figure 3", "CAP-mm,      8")[3], "2.40");
        assert_eq!(line("Figure 1:", "PS")[1], "1.50");
        // 20 of 1024 iterations of 2 ms.
        assert_eq!(line("Table 5", "HS")[1], "0.9766");
        assert_eq!(line("Table 4", "gpDB (U)")[2], "53.3");
        assert!(line("Figure 1:", "SRAD")[1] == "-" && line("Figure 12", "HS")[1] == "53.7");
    }
}
