//! The programs as the figures have them: where their rows are, what they store, and what the paper
//! says of them.

use super::Results;

/// A program as figures 9, 10, 12 and table 4 have it.
pub struct Program {
    pub name: &'static str,
    group: &'static str,
    /// How the rows begin that have GPM's time, and those of the paper's other ways.
    ours: &'static str,
    others: &'static str,
    /// Steps in GPM's time: the other ways' times are of one.
    steps: f64,
    /// Bytes that GPM stores in a step, and that CAP does.
    pub stored: f64,
    pub by_cap: f64,
    /// What the paper's text says of GPM over CAP-fs, and over CAP-mm.
    pub paper: (&'static str, &'static str),
}

pub const GIB: f64 = (1u64 << 30) as f64;
/// SETs of a batch, each with an entry of 32 bytes and a pair of 16.
const SETS: f64 = (1u64 << 21) as f64;
/// Rows of 64 bytes; those that an update changes, each with an entry of 16 bytes and a value of 8.
const ROWS: f64 = 50e6;
const UPDATED: f64 = 2.5e6;
/// Cells of CFD.
const CELLS: f64 = 232_536.0;

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
    checkpointed("CFD", "CFD", CELLS * 20.0),
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
    Program {
        name,
        group: "Programs",
        ours: name,
        others,
        steps: 1.0,
        stored: bytes,
        by_cap: bytes,
        paper: ("11-18", "-"),
    }
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

/// CFD: older results are of checkpoints that have its fluxes, too.
fn gas(all: &Results<'_>, program: Program) -> Program {
    match all.value("Programs", "CFD of", "a checkpoint of 8.9 MiB") {
        Some(_) => checkpointed(program.name, program.others, CELLS * 40.0),
        None => program,
    }
}

/// The programs, as these results have them.
pub fn programs(all: &Results<'_>) -> Vec<Program> {
    let known = PROGRAMS.into_iter().map(|program| if program.name == "CFD" { gas(all, program) } else { program });
    known.chain([sums(all)]).collect()
}

impl Program {
    /// Milliseconds of a step.
    pub fn ours(&self, all: &Results<'_>) -> Option<f64> {
        let holds = if self.name == self.ours { "a checkpoint of" } else { "" };
        let rows = all.0.rows.iter().filter(|row| row.group == self.group && row.unit == "ms");
        let mut rows = rows.filter(|row| row.name.starts_with(self.ours) && row.name.contains(holds));
        rows.next().map(|row| row.value / self.steps)
    }

    /// Milliseconds of another way, with the number of threads or the file that is best.
    pub fn other(&self, all: &Results<'_>, way: &str) -> Option<f64> {
        all.best(self.group, self.others, way)
    }

    /// Milliseconds that the link takes for what GPM stores, were it one stream.
    pub fn least(&self, all: &Results<'_>) -> Option<f64> {
        all.link().map(|link| self.stored / link / 1e6)
    }
}
