//! The `nearpm` command-line program.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use nearpm_cli::{bench, card, cuts, demo, figures, firmware, gpu, hardware, job, pool, sentence, serve};

/// Crash-consistent persistent memory with a NearPM card.
#[derive(Parser)]
#[command(version, propagate_version = true)]
struct Arguments {
    /// Open a card and call it NAME, for pools at card:NAME/POOL. CARD is as in `nearpm card info --card`
    #[arg(long, global = true, value_name = "NAME=CARD")]
    attach: Vec<card::Attachment>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a workload, cut the power, recover, and check what is left
    Run(job::RunArguments),
    /// The main job: crash and recovery on the simulated cards, and what the card is worth
    Demo(demo::DemoArguments),
    /// Cut the power many times, in short runs over all mechanisms and structures, and check what is left each time
    Cuts(cuts::CutsArguments),
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
    /// Run the paper's evaluation on simulated computers, on a card, or natively on this one; or measure other libraries on it
    Bench(Box<bench::BenchArguments>),
    /// Make a page of the paper's evaluation from results of `nearpm bench`
    Report(bench::ReportArguments),
    /// Programs of a GPU that persist: run and crash them on the interpreter, or measure a GPU
    #[command(subcommand)]
    Gpu(gpu::GpuCommand),
    /// Serve a pool to clients of Redis or memcached, durable before they are answered
    #[command(subcommand)]
    Serve(nearpm_serve::ServeCommand),
    /// Measure a server of Redis's or memcached's protocol, ours or another, by the Yahoo! Cloud Serving Benchmark
    Ycsb(nearpm_ycsb::Options),
}

/// A reader that goes away, as `head` does, ends the program without a word. Rust ignores the signal, and printing would panic.
#[cfg(unix)]
fn end_with_the_pipe() {
    // SAFETY: no thread runs yet, and the default action calls nothing of this program.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

fn main() -> ExitCode {
    #[cfg(unix)]
    end_with_the_pipe();
    match run(Arguments::parse()) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("nearpm: {}", sentence(&error));
            ExitCode::FAILURE
        }
    }
}

fn run(Arguments { attach, command }: Arguments) -> anyhow::Result<ExitCode> {
    let done = |()| ExitCode::SUCCESS;
    let _attached = attach.iter().map(card::Attachment::open).collect::<anyhow::Result<Vec<_>>>()?;
    match command {
        Command::Run(arguments) => job::command(&arguments).map(done),
        Command::Demo(arguments) => demo::command(&arguments).map(done),
        Command::Cuts(arguments) => cuts::command(&arguments).map(done),
        Command::Firmware(command) => firmware::command(&command).map(done),
        Command::Verilog(arguments) => hardware::verilog(&arguments).map(done),
        Command::Figures(arguments) => figures::command(&arguments).map(done),
        Command::Card(command) => card::command(&command).map(done),
        Command::Pool(command) => pool::command(&command),
        Command::Bench(arguments) => bench::command(&arguments).map(done),
        Command::Report(arguments) => bench::report(&arguments).map(done),
        Command::Gpu(command) => gpu::command(&command),
        Command::Serve(command) => serve::command(command).map(done),
        Command::Ycsb(options) => serve::ycsb(&options).map(done),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        super::Arguments::command().debug_assert();
    }
}
