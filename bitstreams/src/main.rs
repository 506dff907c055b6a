//! `synthesise`: utilisation and logic depth of Verilog modules.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use nearpm_bitstreams::manifest::Manifest;
use nearpm_bitstreams::netlist::Netlist;
use nearpm_bitstreams::{vcu118, yosys};

/// Maps the modules of the VCU118's design to its cells, prints what they take and how deep they
/// are, and writes their part of `bitstreams/manifest.toml`.
#[derive(Parser)]
struct Arguments {
    /// A Verilog file to map instead, such as `nearpm verilog --out DIR` writes. The manifest is
    /// left alone.
    verilog: Option<PathBuf>,
    /// Its module to take as the top.
    #[arg(long, default_value = "nearpm_card", requires = "verilog")]
    top: String,
    /// Folder for intermediate files.
    #[arg(long, default_value = "target/synthesis")]
    work: PathBuf,
    /// Levels beyond which paths are named.
    #[arg(long, default_value_t = vcu118::LEVELS)]
    limit: usize,
    /// How many of them at most.
    #[arg(long, default_value_t = 40)]
    paths: usize,
    /// Judge the netlists that an earlier run left in the folder.
    #[arg(long)]
    mapped: bool,
}

impl Arguments {
    /// Maps a module, or takes its netlist of before; prints what it takes.
    fn measure(&self, verilog: &str, top: &str) -> Result<vcu118::Mapped> {
        let folder = self.work.join(top);
        eprintln!("synthesising {top} (yosys, a quarter of an hour for the whole card)");
        let netlist = if self.mapped {
            let of = yosys::source(&folder)?;
            ensure!(of == verilog, "{} holds a netlist of other Verilog: leave out --mapped", folder.display());
            yosys::mapped(top, &folder)?
        } else {
            yosys::map(verilog, top, &folder)?
        };
        let mapped = vcu118::Mapped::of(&netlist, verilog, top)?;
        println!("| {top} (yosys, xcup) | used | share of XCVU9P |\n|---|---:|---:|");
        let rows = [("LUT", mapped.luts), ("flip-flop", mapped.flip_flops), ("block RAM 18 Kb", mapped.block_rams)];
        for (name, [used, of]) in rows {
            println!("| {name} | {used} | {:.2} % |", 100.0 * used as f64 / of as f64);
        }
        println!("\nDeepest path between registers: {} LUT levels, carry chains not counted.", mapped.levels);
        let [beyond, all] = mapped.beyond();
        println!(
            "{beyond} of {all} registers lie behind more than {}; by levels: {:?}.\n",
            vcu118::LEVELS,
            mapped.registers
        );
        self.name_deepest(&netlist)?;
        Ok(mapped)
    }

    /// Prints the deepest paths.
    fn name_deepest(&self, netlist: &Netlist) -> Result<()> {
        let paths = netlist.deeper_than(self.limit)?;
        println!("{} nets at which paths end lie behind more than {}; the deepest:\n", paths.len(), self.limit);
        for path in paths.iter().take(self.paths) {
            println!("{} levels: {}", path.levels, path.nets.join(" -> "));
        }
        println!();
        Ok(())
    }

    fn file(&self, verilog: &Path) -> Result<()> {
        let text = std::fs::read_to_string(verilog).with_context(|| format!("cannot read {}", verilog.display()))?;
        self.measure(&text, &self.top).map(drop)
    }

    fn design(&self) -> Result<()> {
        let measure = |(name, generated): (&str, nearpm_hdl::GeneratedCard)| {
            Ok((name.to_owned(), self.measure(&generated.verilog, name)?))
        };
        let measured = vcu118::modules().into_iter().map(measure).collect::<Result<BTreeMap<_, _>>>()?;
        Manifest::change(|manifest| manifest.vcu118 = measured)
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    match &arguments.verilog {
        Some(verilog) => arguments.file(verilog),
        None => arguments.design(),
    }
}
