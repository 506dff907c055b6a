//! The `nearpm` command-line program.

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use nearpm_cli::arguments::{Arguments, Command};
use nearpm_cli::{bench, card, demo, figures, firmware, gpu, hardware, pool, sentence, serve, shell};
use nearpm_cuts::{campaign, job};

/// A reader that goes away, as `head` does, ends the program without a word. Rust ignores the
/// signal, and printing would panic.
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
        Command::Cuts(arguments) => campaign::command(&arguments).map(done),
        Command::Firmware(command) => firmware::command(&command).map(done),
        Command::Verilog(arguments) => hardware::verilog(&arguments).map(done),
        Command::Figures(arguments) => figures::command(&arguments).map(done),
        Command::Card(command) => card::command(&command).map(done),
        Command::Pool(command) => pool::command(&command),
        Command::Bench(arguments) => bench::command(&arguments).map(done),
        Command::Report(arguments) => bench::report(&arguments).map(done),
        Command::Gpu(command) => gpu::command(&command),
        Command::Sbrp(command) => gpu::persistency(&command),
        Command::Gpusim(command) => {
            let sound = nearpm_sbrpbench::command::command(&command)?;
            Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Command::Serve(command) => serve::command(*command).map(done),
        Command::Gvr(command) => Ok(nearpm_gvr::commands::command(&command)?),
        Command::Ycsb(options) => serve::ycsb(&options).map(done),
        Command::Completions(arguments) => {
            shell::completions(&arguments, Arguments::command());
            Ok(ExitCode::SUCCESS)
        }
        Command::Manual(arguments) => shell::manual(&arguments, Arguments::command()).map(done),
    }
}
