//! `synthesise`: utilisation and logic depth of Verilog modules.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use nearpm_bitstreams::yosys::{self, xcvu9p};

/// Maps a Verilog file to the VCU118's cells and prints what it takes and how deep it is.
#[derive(Parser)]
struct Arguments {
    /// Verilog file, such as `nearpm verilog --out DIR` writes.
    verilog: PathBuf,
    /// Module to take as the top.
    #[arg(long, default_value = "nearpm_card")]
    top: String,
    /// Folder for intermediate files.
    #[arg(long, default_value = "target/synthesis")]
    work: PathBuf,
    /// Levels beyond which a register is named with its deepest path.
    #[arg(long, default_value_t = 6)]
    limit: usize,
    /// How many of them at most.
    #[arg(long, default_value_t = 40)]
    paths: usize,
    /// Judge the netlist that an earlier run left in the folder.
    #[arg(long)]
    mapped: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let text = std::fs::read_to_string(&arguments.verilog)
        .with_context(|| format!("cannot read {}", arguments.verilog.display()))?;
    eprintln!("synthesising {} (yosys, minutes for the whole card)", arguments.top);
    let netlist = if arguments.mapped {
        yosys::mapped(&arguments.top, &arguments.work)?
    } else {
        yosys::map(&text, &arguments.top, &arguments.work)?
    };
    let share = |used: f64, of: usize| 100.0 * used / of as f64;
    println!("| {} (yosys, xcup) | used | share of XCVU9P |\n|---|---|---|", arguments.top);
    for (name, used, of) in [
        ("LUT", netlist.luts() as f64, xcvu9p::LUTS),
        ("flip-flop", netlist.flip_flops() as f64, xcvu9p::FLIP_FLOPS),
        ("block RAM 36 Kb", netlist.block_rams(), xcvu9p::BLOCK_RAMS),
    ] {
        println!("| {name} | {used} | {:.2} % |", share(used, of));
    }
    let paths = netlist.deeper_than(0)?;
    let deepest = paths.first().map_or(0, |path| path.levels);
    println!("\nDeepest path between registers: {deepest} LUT levels, carry chains not counted.");
    let beyond = paths.iter().take_while(|path| path.levels > arguments.limit).count();
    println!(
        "{beyond} of {} registers lie behind more than {} levels; the deepest path of each:\n",
        paths.len(),
        arguments.limit
    );
    for path in paths.iter().take_while(|path| path.levels > arguments.limit).take(arguments.paths) {
        println!("{} levels: {}", path.levels, path.nets.join(" -> "));
    }
    Ok(())
}
