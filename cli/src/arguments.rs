//! The command line of `nearpm`: in the library, so that tests can hold the lines that pages show
//! against it.

use clap::{Parser, Subcommand};

use nearpm_cuts::{campaign, job};

use crate::{bench, card, demo, figures, firmware, gpu, hardware, pool, shell};

/// Crash-consistent persistent memory with a NearPM card.
#[derive(Parser)]
#[command(name = "nearpm", version, propagate_version = true)]
pub struct Arguments {
    /// Open a card and call it NAME, for pools at card:NAME/POOL. CARD is as in
    /// `nearpm card info --card`
    #[arg(long, global = true, value_name = "NAME=CARD")]
    pub attach: Vec<card::Attachment>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of `nearpm`: each is a module of this library.
#[derive(Subcommand)]
pub enum Command {
    /// Run a workload, cut the power, recover, and check what is left
    Run(job::RunArguments),
    /// The main job: crash and recovery on the simulated cards, and what the card is worth
    Demo(demo::DemoArguments),
    /// Cut the power many times, in short runs over all mechanisms and structures, and check what
    /// is left each time
    Cuts(campaign::CutsArguments),
    /// Assemble, disassemble or check firmware images
    #[command(subcommand)]
    Firmware(firmware::FirmwareCommand),
    /// Write the card as one Verilog file, and a description of its ports
    Verilog(hardware::VerilogArguments),
    /// Measure the simulated card itself: latency of logs, sustained copy
    Figures(figures::FiguresArguments),
    /// Ask a card what it is
    #[command(subcommand)]
    Card(card::CardCommand),
    /// Make, look into, check, repair and copy pools that no program has open
    #[command(subcommand)]
    Pool(pool::PoolCommand),
    /// Run the paper's evaluation on simulated computers, on a card, or natively on this one; or
    /// measure other libraries on it
    Bench(Box<bench::BenchArguments>),
    /// Make a page of the paper's evaluation from results of `nearpm bench`
    Report(bench::ReportArguments),
    /// Serve a pool to clients of Redis or memcached, durable before they are answered
    #[command(subcommand)]
    Serve(Box<nearpm_serve::ServeCommand>),
    /// Programs of a GPU that persist: run and crash them on the interpreter, or measure a GPU
    #[command(subcommand)]
    Gpu(gpu::GpuCommand),
    /// Persistency of GPUs: litmus tests of its models, and the scopes of CUDA programs
    #[command(subcommand)]
    Sbrp(nearpm_sbrp::command::SbrpCommand),
    /// A GPU with a persist buffer in each SM (SBRP), simulated: programs, the paper's figures,
    /// crashes, mutants
    #[command(subcommand)]
    Gpusim(nearpm_sbrpbench::command::GpusimCommand),
    /// Versioned global arrays of several ranks, durable
    #[command(subcommand)]
    Gvr(nearpm_gvr::commands::GvrCommand),
    /// Measure a server of Redis's or memcached's protocol, ours or another, by the Yahoo! Cloud
    /// Serving Benchmark
    Ycsb(nearpm_ycsb::Options),
    /// Print a script that completes commands and options in a shell
    Completions(shell::CompletionsArguments),
    /// Write manual pages of all commands
    Manual(shell::ManualArguments),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        super::Arguments::command().debug_assert();
    }
}
