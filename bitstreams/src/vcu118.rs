//! The modules of the VCU118's design, and what they take of its part.

use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::checksum;
use crate::netlist::Netlist;
use crate::tools::Tool;
use crate::yosys::{self, xcvu9p};
use nearpm_hdl::{BRIDGE_MODULE, GeneratedCard, MODULE, MemoryPorts, Parameters};

/// The card and the bridge by their modules' names.
///
/// The board's memory is volatile and the board has no energy of its own: the card does not say
/// that it is safe from power cuts. No link to other cards is on the board, nor does it say that
/// there is one.
pub fn modules() -> [(&'static str, GeneratedCard); 2] {
    let parameters = Parameters { power_fail_safe: false, memory_ports: MemoryPorts::Two, peers: false };
    [(MODULE, nearpm_hdl::generated(&parameters)), (BRIDGE_MODULE, nearpm_hdl::generated_bridge())]
}

/// LUT levels between registers that a path should have at most at 300 MHz, carry chains not
/// counted.
pub const LEVELS: usize = 6;

/// What a module takes when open tools map it to the part's cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapped {
    /// Checksum of all that goes in; see [`source`].
    pub source: String,
    /// Used and available: LUTs of six inputs, with those of distributed RAM.
    pub luts: [u64; 2],
    /// Used and available: flip-flops.
    pub flip_flops: [u64; 2],
    /// Used and available: block RAMs of 18 Kb.
    pub block_rams: [u64; 2],
    /// Levels of the deepest path between registers, or from one to an output.
    pub levels: u64,
    /// Flip-flops and block RAMs behind so many levels, by that number.
    pub registers: Vec<u64>,
    /// Version of yosys, as it names itself.
    pub yosys: String,
}

/// Checksum of all that the mapping depends on: the Verilog and what yosys is told.
pub fn source(verilog: &str, top: &str) -> String {
    checksum([verilog, &yosys::script(top), yosys::MAPPING].join("\n").as_bytes())
}

impl Mapped {
    /// What a module's netlist takes, which is of this Verilog.
    ///
    /// # Errors
    /// The netlist has a combinational loop, or yosys is missing.
    pub fn of(netlist: &Netlist, verilog: &str, top: &str) -> Result<Mapped> {
        let pair = |used: usize, of: usize| [used as u64, of as u64];
        Ok(Mapped {
            source: source(verilog, top),
            luts: pair(netlist.luts(), xcvu9p::LUTS),
            flip_flops: pair(netlist.flip_flops(), xcvu9p::FLIP_FLOPS),
            block_rams: pair((2.0 * netlist.block_rams()) as usize, 2 * xcvu9p::BLOCK_RAMS),
            levels: netlist.deepest()?.levels as u64,
            registers: netlist.registers_by_levels()?,
            yosys: Tool::Yosys.version()?,
        })
    }

    /// Flip-flops and block RAMs behind more than [`LEVELS`], and all.
    pub fn beyond(&self) -> [u64; 2] {
        [self.registers.iter().skip(LEVELS + 1).sum(), self.registers.iter().sum()]
    }

    /// Maps a module; `folder` takes the intermediate files.
    ///
    /// # Errors
    /// As [`yosys::map`] and [`Mapped::of`].
    pub fn map(verilog: &str, top: &str, folder: &Path) -> Result<Mapped> {
        Mapped::of(&yosys::map(verilog, top, folder)?, verilog, top)
    }
}
