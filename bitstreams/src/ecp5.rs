//! The execution side of the card as a bitstream for an ECP5-85k, by open tools.
//!
//! The whole card does not fit: with four units its execution side alone takes four fifths of the
//! part. What is built is the execution side with one unit, of the card's own source;
//! `ecp5/nearpm_ecp5.v` puts its memory, 256 KiB of block RAM, and four wires for a host around it,
//! `ecp5/board.lpf` the pins of a board.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::checksum;
use crate::tools::Tool;
use crate::yosys;

/// Top module.
pub const TOP: &str = "nearpm_ecp5";
/// Units; a card has four.
pub const UNITS: usize = 1;
/// What stands around the execution side.
const HARNESS: &str = include_str!("../ecp5/nearpm_ecp5.v");
/// The pins.
const PINS: &str = include_str!("../ecp5/board.lpf");
/// What yosys' models of ECP5 cells lack.
const BLOCK_RAM: &str = include_str!("../ecp5/dp16kd.v");
/// Synthesis for place and route (`mapped.json`) and for simulation (`netlist.v`).
const SYNTHESIS: &str = "read_verilog -sv design.v; synth_ecp5 -top nearpm_ecp5 -abc9; delete t:$scopeinfo; \
                         write_json mapped.json; write_verilog -noattr netlist.v";
/// Options for place and route: the part, and everything that the result depends on. The clock
/// asked for is above the aim of 100 MHz, at which the router stops to look for shorter ways.
const PLACE: &[&str] =
    &["--um5g-85k", "--package", "CABGA381", "--speed", "8", "--seed", "1", "--freq", "110", "--timing-allow-fail"];
/// Its files.
const PLACE_FILES: &[&str] =
    &["--lpf", "board.lpf", "--json", "mapped.json", "--textcfg", "placed.config", "--report", "report.json"];

/// Options and files for the bitstream.
const PACK: &[&str] = &["--compress", "placed.config", "nearpm.bit"];

/// What a build gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Built {
    /// Checksum of all that goes in; see [`source`].
    pub source: String,
    /// Checksum of the bitstream.
    pub bitstream: String,
    /// Bytes of the bitstream.
    pub bytes: u64,
    /// Used and available: LUTs of four inputs, with those of carry chains and distributed RAM.
    pub luts: [u64; 2],
    /// Used and available: flip-flops.
    pub flip_flops: [u64; 2],
    /// Used and available: block RAMs of 18 Kb.
    pub block_rams: [u64; 2],
    /// Highest clock, by nextpnr's timing analysis, in MHz, to two places.
    pub mhz: f64,
    /// Version of yosys, as it names itself.
    pub yosys: String,
    /// Version of nextpnr.
    pub nextpnr: String,
    /// Version of ecppack.
    pub ecppack: String,
}

/// The Verilog of the design.
pub fn design() -> String {
    format!("{HARNESS}{}", nearpm_hdl::generate_execution_side::<UNITS>())
}

/// Checksum of all that goes into the bitstream: the Verilog, the pins, and what the tools are
/// told.
pub fn source(design: &str) -> String {
    let [place, files, pack] = [PLACE, PLACE_FILES, PACK].map(|options| options.join(" "));
    checksum([design, PINS, SYNTHESIS, &place, &files, &pack].join("\n").as_bytes())
}

/// Whether all tools are installed.
pub fn tools_are_there() -> bool {
    [Tool::Yosys, Tool::Nextpnr, Tool::Ecppack].iter().all(|tool| tool.path().is_ok())
}

/// Maps the design to ECP5 cells: `mapped.json` for place and route, `netlist.v` for simulation.
///
/// # Errors
/// yosys is missing or fails.
pub fn synthesise(design: &str, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    std::fs::write(folder.join("design.v"), design).context("cannot write the Verilog")?;
    Tool::Yosys.run(&["-q", "-p", SYNTHESIS], folder).map(|_| ())
}

/// Builds the bitstream in `folder`, as `nearpm.bit`.
///
/// # Errors
/// A tool is missing or fails.
pub fn build(folder: &Path) -> Result<Built> {
    let design = design();
    synthesise(&design, folder)?;
    std::fs::write(folder.join("board.lpf"), PINS).context("cannot write the pins")?;
    Tool::Nextpnr.run(&[PLACE, PLACE_FILES].concat(), folder)?;
    Tool::Ecppack.run(PACK, folder)?;
    built(&design, folder)
}

/// What the build in `folder` gave, which was of `design`.
///
/// # Errors
/// It has not run to its end, or a tool is missing.
pub fn built(design: &str, folder: &Path) -> Result<Built> {
    let report = report(folder)?;
    let cells = |name: &str| -> Result<[u64; 2]> {
        let number =
            |key| report["utilization"][name][key].as_u64().with_context(|| format!("the report has no {name}"));
        Ok([number("used")?, number("available")?])
    };
    let clocks = report["fmax"].as_object().context("the report names no clock")?;
    // Of several clocks the slowest; of none, none.
    let slowest = clocks.values().filter_map(|clock| clock["achieved"].as_f64()).fold(f64::INFINITY, f64::min);
    ensure!(slowest.is_finite(), "the report names no clock");
    let bitstream = std::fs::read(folder.join("nearpm.bit")).context("there is no bitstream")?;
    Ok(Built {
        source: source(design),
        bitstream: checksum(&bitstream),
        bytes: bitstream.len() as u64,
        luts: cells("TRELLIS_COMB")?,
        flip_flops: cells("TRELLIS_FF")?,
        block_rams: cells("DP16KD")?,
        mhz: (slowest * 100.0).round() / 100.0,
        yosys: Tool::Yosys.version()?,
        nextpnr: Tool::Nextpnr.version()?,
        ecppack: Tool::Ecppack.version()?,
    })
}

/// nextpnr's report.
fn report(folder: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(folder.join("report.json")).context("there is no report")?;
    serde_json::from_str(&text).context("the report is not JSON")
}

/// The path with the least slack: its cells with their delays.
///
/// # Errors
/// There is no report in `folder`.
pub fn longest_path(folder: &Path) -> Result<Vec<String>> {
    let report = report(folder)?;
    let paths = report["critical_paths"].as_array().context("the report has no path")?;
    let clocked = paths.iter().find(|path| path["from"] == path["to"]).context("no path from clock to clock")?;
    let step = |step: &Value| {
        let (kind, delay) = (step["type"].as_str().unwrap_or(""), step["delay"].as_f64().unwrap_or(0.0));
        let to = step["to"]["cell"].as_str().unwrap_or("");
        format!("{delay:6.2} ns {kind:9} {to}")
    };
    Ok(clocked["path"].as_array().context("a path without cells")?.iter().map(step).collect())
}

/// The netlist that [`synthesise`] left in `folder` with models of its cells, as one text for a
/// simulator; its top module is [`TOP`].
///
/// # Errors
/// yosys fails.
pub fn gates(folder: &Path) -> Result<String> {
    std::fs::write(folder.join("dp16kd.v"), BLOCK_RAM).context("cannot write the model of the block RAM")?;
    // What the memory holds at power-up nobody looks at, and the model has no parameters for it.
    let contents: String = (0..64).map(|row| format!(" -unset INITVAL_{row:02X}")).collect();
    let script = format!(
        "read_verilog -sv netlist.v; setparam{contents} t:DP16KD; read_verilog -overwrite -sv +/ecp5/cells_sim.v; \
         read_verilog -overwrite -sv dp16kd.v; {}",
        yosys::simulated(TOP)
    );
    Tool::Yosys.run(&["-q", "-p", &script], folder)?;
    std::fs::read_to_string(folder.join("gates.v")).context("there is no netlist")
}
