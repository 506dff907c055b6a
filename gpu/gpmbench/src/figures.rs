//! The paper's figures and tables of results, made of a card's: beside the numbers that the paper's text states, and what the link allows.
//!
//! A value that the results lack is `-`. GPUfs, pmemKV, RocksDB and MatrixKV are the paper's numbers alone.

use std::fmt::Write as _;

use crate::report::Report;

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

/// A program as figures 9, 10, 12 and table 4 have it.
struct Program {
    name: &'static str,
    group: &'static str,
    /// How the rows begin that have GPM's time, and those of the paper's other ways.
    ours: &'static str,
    others: &'static str,
    /// Steps in GPM's time: the other ways' times are of one.
    steps: f64,
    /// Bytes that GPM stores in a step, and that CAP does.
    stored: f64,
    by_cap: f64,
    /// What the paper's text says of GPM over CAP-fs, and over CAP-mm.
    paper: (&'static str, &'static str),
}

const GIB: f64 = (1u64 << 30) as f64;
/// SETs of a batch, each with an entry of 32 bytes and a pair of 16.
const SETS: f64 = (1u64 << 21) as f64;
/// Rows of 64 bytes; those that an update changes, each with an entry of 16 bytes and a value of 8.
const ROWS: f64 = 50e6;
const UPDATED: f64 = 2.5e6;

const PROGRAMS: [Program; 10] = [
    Program {
        name: "gpKVS",
        group: "gpKVS",
        ours: "the same, a batch",
        others: "",
        steps: 1.0,
        stored: SETS * 48.0,
        by_cap: 4.0 * GIB,
        paper: ("7-8", "4"),
    },
    Program {
        name: "gpKVS 95:5",
        group: "gpKVS 95:5",
        ours: "GPM, a batch",
        others: "",
        steps: 1.0,
        stored: SETS / 20.0 * 48.0,
        by_cap: 4.0 * GIB,
        paper: ("-", "-"),
    },
    Program {
        name: "gpDB (I)",
        group: "gpDB",
        ours: "the same, the transaction",
        others: "the whole table",
        steps: 1.0,
        stored: ROWS * 64.0,
        by_cap: ROWS * 64.0,
        paper: ("-", "3.6"),
    },
    Program {
        name: "gpDB (U)",
        group: "gpDB",
        ours: "a twentieth of the rows updated, the transaction",
        others: "the whole table",
        steps: 1.0,
        stored: UPDATED * 24.0,
        by_cap: ROWS * 64.0,
        paper: ("-", "2.6"),
    },
    checkpointed("DNN", "DNN", 431_080.0 * 4.0),
    checkpointed("CFD", "CFD", 232_536.0 * 40.0),
    checkpointed("BLK", "BLK", 2.0 * GIB),
    checkpointed("HS", "HS", GIB),
    Program {
        name: "BFS",
        group: "Programs",
        ours: "BFS of",
        others: "BFS, the costs",
        steps: 9998.0,
        stored: 24e6 * 4.0 / 9998.0,
        by_cap: 24e6 * 4.0 / 9998.0,
        paper: ("up to 85", "-"),
    },
    Program {
        name: "SRAD",
        group: "Programs",
        ours: "SRAD 131072",
        others: "SRAD, the image",
        steps: 10.0,
        stored: GIB / 2.0,
        by_cap: GIB / 2.0,
        paper: ("5-85", "-"),
    },
];

const fn checkpointed(name: &'static str, others: &'static str, bytes: f64) -> Program {
    Program { name, group: "Programs", ours: name, others, steps: 1.0, stored: bytes, by_cap: bytes, paper: ("11-18", "-") }
}

/// Prefix sums: not of a fixed size in older results.
fn sums(all: &Results<'_>) -> Program {
    let numbers = all.value("Programs", "PS, ", "arrays of").unwrap_or(0.0) * 1e9;
    let bytes = numbers * all.value("Programs", "PS, the run", "").unwrap_or(0.0) / 1e3 * 4.0;
    Program {
        name: "PS",
        group: "Programs",
        ours: "PS, the run",
        others: "PS, its sums",
        steps: 1.0,
        stored: bytes,
        by_cap: bytes,
        paper: ("5-85", "-"),
    }
}

fn programs(all: &Results<'_>) -> Vec<Program> {
    PROGRAMS.into_iter().chain([sums(all)]).collect()
}

impl Program {
    /// Milliseconds of a step.
    fn ours(&self, all: &Results<'_>) -> Option<f64> {
        let holds = if self.name == self.ours { "a checkpoint of" } else { "" };
        let rows = all.0.rows.iter().filter(|row| row.group == self.group && row.unit == "ms");
        let mut rows = rows.filter(|row| row.name.starts_with(self.ours) && row.name.contains(holds));
        rows.next().map(|row| row.value / self.steps)
    }

    fn other(&self, all: &Results<'_>, way: &str) -> Option<f64> {
        all.best(self.group, self.others, way)
    }

    /// Milliseconds that the link takes for what GPM stores, were it one stream.
    fn least(&self, all: &Results<'_>) -> Option<f64> {
        all.link().map(|link| self.stored / link / 1e6)
    }
}

fn figure_1(all: &Results<'_>, text: &mut String) {
    text.push_str("Figure 1: GPM over the best of several threads of a processor alone\n");
    for (name, paper) in [("gpKVS", "2.7-5.8"), ("gpDB, an update (U)", "6.9"), ("PS", "2.8-27"), ("SRAD", "2.8-27"), ("BFS", "2.8-27")] {
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
        let _ = writeln!(text, "  CAP-mm, {threads:>6} threads    {:>8} x   paper at most 1.47", shown(over(one, time)));
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
        "", "CAP-fs", "CAP-mm", "NDP", "GPM", "by link", "CAP-eADR", "over fs", "over mm", "over NDP", "of link", "over eADR"
    );
    for program in programs(all) {
        let ours = program.ours(all);
        let [fs, mm, near, saved] = ["CAP-fs, file", "CAP-mm", "GPM-NDP", "CAP-eADR"].map(|way| program.other(all, way));
        let least = program.least(all);
        let columns = [fs, mm, near, ours, least, saved, over(fs, ours), over(mm, ours), over(near, ours), over(least, ours), over(saved, ours)];
        let widths = [9, 9, 9, 9, 10, 9, 9, 9, 9, 9, 11];
        let cells: String = columns.iter().zip(widths).map(|(&value, width)| format!("{:>width$}", shown(value))).collect();
        let _ = writeln!(text, "  {:<12}{cells}  {}, {}", program.name, program.paper.0, program.paper.1);
    }
    text.push_str("  CAP-mm of gpKVS: the best of the whole table, its changed pages, its changed sets\n");
    text.push_str("  Paper: GPM over GPM-NDP up to 6, gpKVS 1.4-1.6; GPM-eADR up to 13 over GPM, 24 over CAP-eADR on average\n");
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
            shown(of("PM")), shown(of("HBM")), shown(one), shown(limits.map(|limits| limits.0)), shown(two), shown(limits.map(|limits| limits.1))
        );
    }
    let update = all.value("gpDB", "update: HCL over conventional", "");
    let _ = writeln!(text, "  gpDB (U)          {:>5} x; paper 6.1 (gpKVS 3.3; ours logs each place once, and has no conventional form)", shown(update));
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
    let update = all.value("gpDB", "undo, of the time of", "");
    let _ = writeln!(text, "  gpKVS       {:>10}   paper 18.96 (of 25 batches)", shown(kvs));
    let _ = writeln!(text, "  gpDB (U)    {:>10}   paper 10.43 (ours: of the update alone)", shown(update));
    // The paper's iterations; times are of 20 with 2 checkpoints.
    for (name, iterations, paper) in [("DNN", 10_000.0, 0.12), ("CFD", 5000.0, 0.30), ("BLK", 1024.0, 0.80), ("HS", 1024.0, 1.65)] {
        let run = all.value("Programs", name, "20 iterations").map(|time| time / 20.0 * iterations);
        let share = over(all.value("Programs", name, ": restore").map(|time| time * 100.0), run);
        let share = share.map_or("-".to_owned(), |share| format!("{share:.4}"));
        let _ = writeln!(text, "  {name:<12}{share:>10}   paper {paper} (of {iterations} iterations)");
    }
}
