//! Whether a whole card, with small tables, fits an ECP5-85k: mapped, placed, and routed as far as
//! a router gets in some minutes.
//!
//! Nothing of a board stands around it. Its inputs are a chain of flip-flops that is shifted in by
//! one wire, its outputs are folded to one: that is less than any memory and any host would take,
//! so where this does not fit, no card of these sizes does.

use std::fmt::Write;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nearpm_hdl::{MODULE, Parameters, Sizes, generate_small_card};
use serde::Deserialize;

use crate::tools::Tool;

/// Top module.
pub const TOP: &str = "nearpm_small_card";
/// Bytes of memory that the card is told of, a constant.
const PM_BYTES: u64 = 256 << 10;
/// Outputs that a flip-flop folds.
const FOLDED: usize = 16;
/// LUTs of four inputs that the part has.
const PART_LUTS: u64 = 83_640;
/// LUTs of four inputs that a cell of each kind takes.
const IN_LUTS: [(&str, u64); 3] = [("LUT4", 1), ("CCU2C", 2), ("TRELLIS_DPR16X4", 6)];
/// What nextpnr's second router says of an iteration.
const OVERUSED: &str = "overused=";
/// How it says that it is done.
const ROUTED: &str = "Routing globals and nets finished";

/// The smallest tables that a card may have; the simulation runs those of [`Sizes::SMALL`].
pub const SMALLEST: Sizes = Sizes { slots: 4, lines: 4, held_stores: 2, map_entries: 2, parked_commands: 4 };

/// How it is placed and routed.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Seed of the placement.
    pub seed: u64,
    /// nextpnr's router: `router1` or `router2`.
    pub router: String,
    /// It is stopped after so long.
    pub limit: Duration,
}

/// Cells of the mapped card by kind, and the LUTs of four inputs that they take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Kind and number.
    pub cells: Vec<(String, u64)>,
    /// LUTs, with those of carry chains and distributed RAM.
    pub luts: u64,
}

/// How far an attempt came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// To its end.
    Routed,
    /// The time was over; what the router said last.
    TimedOut(String),
    /// nextpnr ended with an error; its status, and what it said last.
    Failed(String),
}

#[derive(Deserialize)]
struct Described {
    ports: Vec<Port>,
}

#[derive(Deserialize)]
struct Port {
    name: String,
    direction: String,
    bits: usize,
}

/// The Verilog of a card with these tables and what stands around it.
///
/// # Errors
/// If the description of its ports is none.
pub fn design(sizes: Sizes) -> Result<String> {
    let card = generate_small_card(&Parameters::default(), sizes);
    let described: Described = serde_json::from_str(&card.ports_json).context("the description of the ports")?;
    Ok(around(&described.ports) + &card.verilog)
}

/// What stands around a module with these ports.
fn around(ports: &[Port]) -> String {
    let (mut pins, mut inputs, mut outputs) = (Vec::new(), 0, 0);
    for Port { name, direction, bits } in ports {
        let signal = match (name.as_str(), direction.as_str()) {
            ("clk" | "rst_n", _) => name.clone(),
            ("pm_bytes", _) => format!("{bits}'d{PM_BYTES}"),
            (_, "input") => {
                inputs += bits;
                format!("given[{}:{}]", inputs - 1, inputs - bits)
            }
            _ => {
                outputs += bits;
                format!("seen[{}:{}]", outputs - 1, outputs - bits)
            }
        };
        pins.push(format!("        .{name}({signal})"));
    }
    let folded = outputs.div_ceil(FOLDED);
    let mut text = format!(
        "module {TOP} (input wire clk, input wire rst_n, input wire shift, input wire in, output reg out);\n    \
         reg [{0}:0] given;\n    wire [{1}:0] seen;\n    reg [{2}:0] folded;\n    always @(posedge clk) begin\n        \
         if (shift) given <= {{in, given[{0}:1]}};\n",
        inputs - 1,
        outputs - 1,
        folded - 1
    );
    for number in 0..folded {
        let (from, to) = (number * FOLDED, ((number + 1) * FOLDED).min(outputs) - 1);
        let before = if number == 0 { String::new() } else { format!(" ^ folded[{}]", number - 1) };
        let _ = writeln!(text, "        folded[{number}] <= ^seen[{to}:{from}]{before};");
    }
    let _ = write!(
        text,
        "        out <= folded[{}];\n    end\n    {MODULE} card (\n{}\n    );\nendmodule\n",
        folded - 1,
        pins.join(",\n")
    );
    text
}

/// Maps a design to the part's cells in `folder`: `mapped.json`.
///
/// # Errors
/// yosys is missing or fails.
pub fn map(design: &str, folder: &Path) -> Result<Mapped> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::write(folder.join("design.v"), design).context("cannot write the Verilog")?;
    let script = format!(
        "read_verilog -sv design.v; synth_ecp5 -top {TOP} -abc9; delete t:$scopeinfo; write_json mapped.json; tee -o cells.json stat -json"
    );
    Tool::Yosys.run(&["-q", "-p", &script], folder)?;
    mapped(&fs::read_to_string(folder.join("cells.json")).context("yosys has counted no cells")?)
}

/// Cells in what yosys has counted.
fn mapped(counted: &str) -> Result<Mapped> {
    // The command that is logged stands before the object.
    let object = &counted[counted.find('{').context("yosys has counted no cells")?..];
    let counted: serde_json::Value = serde_json::from_str(object).context("what yosys has counted")?;
    let by_type = counted["design"]["num_cells_by_type"].as_object().context("yosys has counted no cells")?;
    let cells: Vec<(String, u64)> =
        by_type.iter().filter_map(|(kind, number)| Some((kind.clone(), number.as_u64()?))).collect();
    let of = |kind: &str| cells.iter().find(|(name, _)| name == kind).map_or(0, |(_, number)| *number);
    let luts = IN_LUTS.iter().map(|(kind, each)| of(kind) * each).sum();
    ensure!(luts > 0, "the card is mapped to no LUT");
    Ok(Mapped { cells, luts })
}

impl Mapped {
    /// As lines, with the share of the part.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (kind, number) in &self.cells {
            let _ = writeln!(text, "{number:8} {kind}");
        }
        let share = 100.0 * self.luts as f64 / PART_LUTS as f64;
        let _ = writeln!(text, "{:8} LUTs of four inputs together, of {PART_LUTS} ({share:.0} %)", self.luts);
        text
    }
}

/// Places and routes what [`map`] has left in `folder`; `tell` is told of each line that says how
/// far the router is.
///
/// # Errors
/// nextpnr is missing or does not start.
pub fn route(folder: &Path, attempt: &Attempt, tell: &mut dyn FnMut(&str)) -> Result<Came> {
    let log = folder.join(format!("route-{}-{}.log", attempt.router, attempt.seed));
    let file = File::create(&log).with_context(|| format!("cannot make {}", log.display()))?;
    let seed = attempt.seed.to_string();
    let mut router = Command::new(Tool::Nextpnr.path()?)
        .args([
            "--um5g-85k",
            "--package",
            "CABGA381",
            "--speed",
            "8",
            "--json",
            "mapped.json",
            "--lpf-allow-unconstrained",
        ])
        .args([
            "--freq",
            "12",
            "--timing-allow-fail",
            "--textcfg",
            "placed.config",
            "--seed",
            &seed,
            "--router",
            &attempt.router,
        ])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()
        .context("nextpnr does not start")?;
    let (end, mut told) = (Instant::now() + attempt.limit, 0);
    loop {
        let ended = router.try_wait()?;
        let said = fs::read_to_string(&log).unwrap_or_default();
        let said = if ended.is_some() { said.as_str() } else { whole_lines(&said) };
        let steps: Vec<&str> = said.lines().filter(|line| is_step(line)).collect();
        steps.iter().skip(told).for_each(|line| tell(line));
        told = steps.len();
        match ended {
            Some(status) if status.success() => return Ok(Came::Routed),
            Some(status) => return Ok(Came::Failed(format!("{status}: {}", last(said)?))),
            None if Instant::now() >= end => {
                router.kill()?;
                router.wait()?;
                return Ok(Came::TimedOut(last(said)?));
            }
            None => std::thread::sleep(Duration::from_secs(2)),
        }
    }
}

/// A log without the line at its end that is still being written.
fn whole_lines(said: &str) -> &str {
    &said[..said.rfind('\n').map_or(0, |at| at + 1)]
}

/// Whether a line says how far a router is.
fn is_step(line: &str) -> bool {
    line.contains(OVERUSED)
        || line.contains(ROUTED)
        || line.contains("ERROR")
        || line.contains('|') && line.contains("Info:")
}

/// The last step of a log.
fn last(said: &str) -> Result<String> {
    match said.lines().rfind(|line| is_step(line)).or_else(|| said.lines().next_back()) {
        Some(line) => Ok(line.trim().to_owned()),
        None => bail!("nextpnr has said nothing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pin_is_driven_once_and_every_output_is_folded() {
        let port = |name: &str, direction: &str, bits| Port { name: name.into(), direction: direction.into(), bits };
        let ports = [
            port("clk", "input", 1),
            port("rst_n", "input", 1),
            port("pm_bytes", "input", 64),
            port("a", "input", 3),
            port("b", "input", 1),
            port("x", "output", 20),
            port("y", "output", 1),
        ];
        let text = around(&ports);
        for part in [
            ".clk(clk)",
            ".rst_n(rst_n)",
            ".pm_bytes(64'd262144)",
            ".a(given[2:0])",
            ".b(given[3:3])",
            ".x(seen[19:0])",
            ".y(seen[20:20])",
            "reg [3:0] given",
            "wire [20:0] seen",
            "reg [1:0] folded",
            "folded[0] <= ^seen[15:0];",
            "folded[1] <= ^seen[20:16] ^ folded[0];",
            "out <= folded[1];",
        ] {
            assert!(text.contains(part), "{part} is missing:\n{text}");
        }
    }

    #[test]
    fn cells_are_counted_in_luts() {
        let counted = "stat -json\n{\"design\":{\"num_cells_by_type\":{\"LUT4\":100,\"CCU2C\":10,\"TRELLIS_DPR16X4\":2,\"TRELLIS_FF\":7}}}";
        assert_eq!(mapped(counted).unwrap().luts, 132);
        assert!(mapped(counted).unwrap().text().contains("     132 LUTs of four inputs together"));
        assert!(mapped("{\"design\":{\"num_cells_by_type\":{\"TRELLIS_FF\":7}}}").is_err() && mapped("").is_err());
    }

    #[test]
    fn how_far_a_router_came_is_its_last_step() {
        let said = "Info: Running router2...\nInfo:     iter=1 wires=9 overused=7 overuse=8\nInfo:     iter=2 wires=9 overused=5 overuse=6\nInfo: more\n";
        assert!(last(said).unwrap().starts_with("Info:     iter=2") && last(said).unwrap().contains("overused=5"));
        assert_eq!(last("ERROR: no room\n").unwrap(), "ERROR: no room");
        assert!(last("").is_err());
    }

    #[test]
    fn a_line_that_is_being_written_is_left_for_later() {
        let said = "Info: iter=1 overused=7\nInfo: iter=2 overu";
        assert_eq!(whole_lines(said), "Info: iter=1 overused=7\n");
        assert_eq!(whole_lines("Info: iter=1 overused=7\n"), "Info: iter=1 overused=7\n");
        assert_eq!((whole_lines("Info: it"), whole_lines("")), ("", ""));
    }

    #[test]
    fn the_smallest_card_has_sizes_that_a_card_may_have() {
        SMALLEST.check();
    }
}
